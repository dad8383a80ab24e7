"""What `wherry bench` is asked: from the options to a job."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from wherry import found_peers as finding
from wherry import inputs, jobcontrol, journal, outputs, runner, stamp
from wherry import then as then_room
from wherry.cli import dimensions as dimension_room
from wherry.cli import keeping, names, reporting, thennow, whole
from wherry.cli import peers as peer_room
from wherry.cli.job import Bench
from wherry.cli.printer import Printer
from wherry.errors import WherryError, unknown
from wherry.experiments import Experiment, Request
from wherry.formats.samples import beside as raw_samples
from wherry.found_peers import Peer
from wherry.sentences import join
from wherry.striping import given as stripe_files
from wherry.units import parse_size
from wherry.yardsticks import YARDSTICKS


def bench(
    experiments,
    *,
    routines,
    sizes,
    peers,
    states,
    ops,
    regions,
    isa,
    mixes,
    no_found_peers,
    quick,
    verify_first,
    pin,
    processes,
    rounds,
    seed,
    hang_limit,
    save,
    raw,
    as_json,
    then=False,
    every=False,
    budget=None,
    asked=None,
    run=None,
    plot=None,
    page=False,
    counters=False,
    found_peers=False,
    turns=None,
    members=(),
    disks=(),
    scratch=None,
    **dimensions,
) -> int:
    began = jobcontrol.clock()
    thennow.check_json(then, as_json)
    picture = reporting.check_plot(plot)
    limit = whole.seconds(budget, every, processes, rounds)
    chosen = whole.chosen(experiments, every)
    thennow.check(then, [experiment.name for experiment in chosen])
    if then and not routines:
        chosen = [then_room.widened(experiment) for experiment in chosen]
    dimension_room.check_heeded(
        chosen,
        routines=routines,
        sizes=sizes,
        states=states,
        ops=ops,
        regions=regions,
        isa=isa,
        mixes=mixes,
        found=no_found_peers,
        turns=turns,
        members=members,
        disks=disks,
        scratch=scratch,
        **dimensions,
    )
    peers = _with_found(peers, found_peers, no_found_peers)
    wanted = names.split(routines)
    # Source and destination have to fit together.
    product = dimension_room.product(chosen, sizes, mixes, ops, pin, dimensions)
    size_list = () if product else tuple(parse_size(t, buffers=2) for t in names.split(sizes))
    state_list = names.states(states)
    pin = dimension_room.check_pins(pin, product)
    mix_list = product.mixes if product else dimension_room.mixes(mixes)
    op_list = product.ops if product else names.ops(ops)
    region_list = names.regions(regions, mix_list, op_list)
    cpu = runner.cpu()
    names.check_isa(isa, cpu)
    catalogue = runner.routines()
    found = [] if no_found_peers else _wanted(chosen, peers)
    specs = [*peers, *(peer.spec for peer in found)]
    peer_problems = peer_room.check(specs, hang_limit)
    good_specs = peer_room.without(specs, peer_problems)
    good_names = set(map(peer_room.name_of, good_specs))
    known = names.targets(catalogue, specs) | YARDSTICKS.keys()
    for name in wanted:
        if name != "all" and names.unknown_routine(name, known):
            raise unknown("routine", name, known | {"all"}, "wherry list routines")
    request = Request(
        catalogue=catalogue,
        routines=tuple(name for name in wanted if name != "all"),
        all_routines="all" in wanted,
        peers=tuple(name for name in map(peer_room.name_of, peers) if name in good_names),
        ops=op_list,
        regions=region_list,
        isa=isa,
        mixes=mix_list,
        found=tuple(peer for peer in found if peer.name in good_names),
        caches=_caches(cpu),
        tier=cpu.get("tier") or "",
        sizes=size_list,
        states=state_list,
        product=product,
        quick=quick,
        processes=processes,
        rounds=rounds,
        turns=turns,
        members=stripe_files.gather(members),
        disks=dimension_room.numbers("disks", disks, 1, 9),
        scratch=scratch,
    )
    plan, left_out = whole.plan(chosen, request, every)
    path = Path(save) if save else stamp.run_path(sum(len(rows) for _, rows in plan))
    keeping.check(path, explicit=bool(save))
    if save and run is None:
        journal.check_none(path)
    if raw:
        outputs.check(raw_samples(path), outputs.RAW)
    reporting.check_beside(path, picture, page, [experiment.name for experiment, _ in plan])
    seed = secrets.randbits(32) if seed is None else seed
    job = Bench(
        plan,
        request,
        path,
        raw=raw,
        then=then,
        asked=asked or {},
        left_out=left_out,
        course=whole.course_of(plan, request, limit, seed, run, began),
        as_json=as_json,
        explicit=bool(save),
        peers=good_specs,
        inputs=inputs.gather(specs, request.members, [own.name for own, _ in plan]),
        pin=pin,
        seed=seed,
        hang_limit=hang_limit,
        verify_first=verify_first,
        problems=peer_problems,
        counters=counters,
    )
    status = job.run()
    if not (as_json or found_peers or no_found_peers or job.document["interrupted"]):
        _tell_of_peers(job.printer, chosen, peers)
    reporting.after_bench(job.document, job.path, picture, page, aside=as_json)
    return status


def _found_beside(peers: Sequence[str]) -> list[Peer]:
    """What make peers built under other names than these."""
    return finding.found(without=map(peer_room.name_of, peers))


def _with_found(peers: Sequence[str], found_peers: bool, no_found_peers: bool) -> Sequence[str]:
    """What --peer gives, and with --found-peers what make peers built."""
    if not found_peers:
        return peers
    if no_found_peers:
        raise WherryError("--found-peers and --no-found-peers contradict each other; give one")
    own = [peer for peer in _found_beside(peers) if not peer.loops]
    if not own:
        raise WherryError("--found-peers: none were found; make peers builds some (docs/peers.md)")
    return (*peers, *(peer.spec for peer in own))


def _wanted(chosen: Sequence[Experiment], peers: Sequence[str]) -> list[Peer]:
    """Of what make peers built that which an experiment takes without being asked."""
    takers = [experiment for experiment in chosen if "found" in experiment.takes]
    if not takers:
        return []
    return [
        peer
        for peer in _found_beside(peers)
        if any(experiment.wants(peer) for experiment in takers)
    ]


def _tell_of_peers(printer: Printer, chosen: list[Experiment], peers: Sequence[str]) -> None:
    """Of those that some tables above leave out and could have."""
    takers = [own for own in chosen if "routines" in own.takes]
    there = _found_beside(peers) if takers else ()
    left_out: dict[tuple[str, ...], list[str]] = {}
    for own in takers:
        names = tuple(
            peer.name
            for peer in there
            if not peer.loops and not ("found" in own.takes and own.wants(peer))
        )
        if names:
            left_out.setdefault(names, []).append(own.name)
    for names, without in left_out.items():
        printer.paragraph(
            f"Not in {join(without)}: {join(names)}, which make peers built; --found-peers takes them in."
        )


def _caches(cpu: dict) -> dict[str, int]:
    """Sizes of the data caches that the runner believes in."""
    believed = cpu.get("believed") or {}
    return {
        level.removesuffix("d"): own["size"]
        for level, own in believed.items()
        if level in ("L1d", "L2", "L3") and isinstance(own, dict) and own.get("size")
    }
