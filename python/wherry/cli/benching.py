"""From what `wherry bench` was given to a job."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wherry import found_peers as finding
from wherry import inputs, jobcontrol, journal, outputs, runner, stamp
from wherry import then as then_room
from wherry.cell import Problem
from wherry.cli import dimensions as dimension_room
from wherry.cli import keeping, names, reporting, thennow, whole
from wherry.cli import peers as peer_room
from wherry.cli.job import Bench, Task
from wherry.cli.options import Options
from wherry.cli.printer import Printer
from wherry.errors import WherryError
from wherry.experiments import Experiment, Request, offers
from wherry.formats.samples import beside as raw_samples
from wherry.found_peers import Peer
from wherry.sentences import join
from wherry.striping import given as stripe_files
from wherry.units import parse_size
from wherry.yardsticks import YARDSTICKS


def bench(options: Options, *, asked: dict | None = None, run: dict | None = None) -> int:
    """`asked`: the parameters to go on by, should the run be interrupted. `run`: the interrupted one that goes on."""
    began = jobcontrol.clock()
    thennow.check_json(options.then, options.as_json)
    picture = reporting.check_plot(options.plot)
    limit = whole.seconds(options.budget, options.every, options.processes, options.rounds)
    chosen = _experiments(options)
    peers = _with_found(options)
    subject = _subject(options, chosen, peers)
    request = subject.request
    plan, left_out = whole.plan(chosen, request, options.every)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    job = Bench(
        Task(
            plan=plan,
            request=request,
            path=_place(options, plan, picture, goes_on=run is not None),
            asked=asked or {},
            left_out=left_out,
            course=whole.course_of(plan, request, limit, seed, run, began),
            peers=subject.good_specs,
            inputs=inputs.gather(subject.specs, request.members, [own.name for own, _ in plan]),
            pin=subject.pin,
            seed=seed,
            problems=subject.problems,
        ),
        options,
    )
    status = job.run()
    told = options.found_peers or options.no_found_peers
    if not (options.as_json or told or job.document["interrupted"]):
        _tell_of_peers(job.printer, chosen, peers, request.ops)
    reporting.after_bench(job.document, job.path, picture, options.page, aside=options.as_json)
    return status


def _experiments(options: Options) -> list[Experiment]:
    """Those that are asked for, if they heed what is given with them."""
    chosen = whole.chosen(options.experiments, options.every)
    thennow.check(options.then, [experiment.name for experiment in chosen])
    if options.then and not options.routines:
        chosen = [then_room.widened(experiment) for experiment in chosen]
    dimension_room.check_heeded(
        chosen,
        routines=options.routines,
        sizes=options.sizes,
        states=options.states,
        ops=options.ops,
        regions=options.regions,
        isa=options.isa,
        mixes=options.mixes,
        found=options.no_found_peers,
        turns=options.turns,
        members=options.members,
        disks=options.disks,
        scratch=options.scratch,
        **options.dimensions,
    )
    return chosen


@dataclass(frozen=True)
class _Subject:
    """What is measured: the words of the options read into values."""

    request: Request
    specs: Sequence[str]  # all peers, NAME=PATH[:PREFIX]
    good_specs: list[str]  # those that can be measured
    problems: list[Problem]  # of the others
    pin: int | None


def _subject(options: Options, chosen: list[Experiment], peers: Sequence[str]) -> _Subject:
    # Source and destination have to fit together.
    product = dimension_room.product(
        chosen, options.sizes, options.mixes, options.ops, options.pin, options.dimensions
    )
    sizes = () if product else tuple(parse_size(t, buffers=2) for t in names.split(options.sizes))
    states = names.states(options.states)
    pin = dimension_room.check_pins(options.pin, product)
    mixes = product.mixes if product else dimension_room.mixes(options.mixes)
    ops = product.ops if product else names.ops(options.ops)
    regions = names.regions(options.regions, mixes, ops)
    cpu = runner.cpu()
    names.check_isa(options.isa, cpu)
    catalogue = runner.routines()
    found = [] if options.no_found_peers else _wanted(chosen, peers)
    specs = [*peers, *(peer.spec for peer in found)]
    problems = peer_room.check(specs, options.hang_limit, {peer.name for peer in found})
    good_specs = peer_room.without(specs, problems)
    good_names = set(map(peer_room.name_of, good_specs))
    wanted = _routines(options, names.targets(catalogue, specs) | YARDSTICKS.keys())
    request = Request(
        catalogue=catalogue,
        routines=tuple(name for name in wanted if name != "all"),
        all_routines="all" in wanted,
        peers=tuple(name for name in map(peer_room.name_of, peers) if name in good_names),
        ops=ops,
        regions=regions,
        isa=options.isa,
        mixes=mixes,
        found=tuple(peer for peer in found if peer.name in good_names),
        caches=_caches(cpu),
        tier=cpu.get("tier") or "",
        sizes=sizes,
        states=states,
        product=product,
        quick=options.quick,
        processes=options.processes,
        rounds=options.rounds,
        turns=options.turns,
        members=stripe_files.gather(options.members),
        disks=dimension_room.numbers("disks", options.disks, 1, 9),
        scratch=options.scratch,
    )
    return _Subject(request, specs, good_specs, problems, pin)


def _routines(options: Options, known: set[str]) -> list[str]:
    wanted = names.split(options.routines)
    for name in wanted:
        if name != "all" and names.unknown_routine(name, known):
            raise names.no_routine(name, known | {"all"})
    return wanted


def _place(
    options: Options, plan: list[tuple[Experiment, list]], picture: Path | None, goes_on: bool
) -> Path:
    """Of the run file, when it and all that comes beside it can be written."""
    path = Path(options.save or stamp.run_path(sum(len(rows) for _, rows in plan)))
    keeping.check(path, explicit=bool(options.save))
    if options.save and not goes_on:
        journal.check_none(path)
    if options.raw:
        outputs.check(raw_samples(path), outputs.RAW)
    experiments = [experiment.name for experiment, _ in plan]
    reporting.check_beside(path, picture, options.page, experiments)
    return path


def _found_beside(peers: Sequence[str]) -> list[Peer]:
    """What make peers built under other names than these."""
    return finding.found(without=map(peer_room.name_of, peers))


def _with_found(options: Options) -> Sequence[str]:
    """What --peer gives, and with --found-peers what make peers built."""
    if not options.found_peers:
        return options.peers
    if options.no_found_peers:
        raise WherryError("--found-peers and --no-found-peers contradict each other; give one")
    own = [peer for peer in _found_beside(options.peers) if not peer.loops]
    if not own:
        raise WherryError("--found-peers: none were found; make peers builds some (docs/peers.md)")
    return (*options.peers, *(peer.spec for peer in own))


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


def _tell_of_peers(
    printer: Printer, chosen: list[Experiment], peers: Sequence[str], ops: Sequence[str]
) -> None:
    """Of those that some tables above leave out and could have."""
    takers = [own for own in chosen if "routines" in own.takes]
    there = _found_beside(peers) if takers else ()
    left_out: dict[tuple[str, ...], list[str]] = {}
    for own in takers:
        could = (ops or (own.op,)) if "ops" in own.takes else own.ops
        names = tuple(
            peer.name
            for peer in there
            if not peer.loops
            and offers(peer, could)
            and not ("found" in own.takes and own.wants(peer))
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
