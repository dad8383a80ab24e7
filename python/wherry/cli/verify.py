"""`wherry verify`: proves routines, the public functions and peers right."""

from __future__ import annotations

import shlex
import sys

import click


@click.command(
    epilog="Example: wherry verify rep_movsb --peer musl=/lib/ld-musl-x86_64.so.1 --full. "
    "Exit status: 0 all right, 1 something wrong or cut off, 2 misuse."
)
@click.argument("targets", metavar="[ROUTINE ...]", nargs=-1)
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="NAME=PATH[:PREFIX]",
    help="Also somebody else's shared object. Repeatable.",
)
@click.option("--only-peers", is_flag=True, help="Peers and nothing else.")
@click.option("--full", is_flag=True, help="Everything (about 20 minutes).")
@click.option("--quick", is_flag=True, help="Two to five minutes; the default.")
@click.option("--brief", is_flag=True, help="What make bench runs, under a minute.")
@click.option(
    "--family",
    metavar="NAME,...",
    help="Only these families of checks, which wherry-run verify --help lists.",
)
@click.option(
    "--isa",
    metavar="TIER",
    help="The public functions forced to sse2, avx2, avx512, avx512_ladder or avx512_together.",
)
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), help="Repeat a run's random choices.")
@click.option("--jobs", type=click.IntRange(1, 64), help="Processes at once (default: CPUs).")
@click.option("--case", "case", metavar="CASE", help="Just one case, as a failure prints it.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON, for a program.")
def command(targets, peers, only_peers, family, isa, seed, jobs, case, as_json, **levels) -> int:
    """Proves routines right against a byte-by-byte reference."""
    from wherry import plans, runner, verification
    from wherry.cli.ending import interrupted_status
    from wherry.cli.printer import Printer
    from wherry.cli.progress import Progress
    from wherry.errors import EXIT_FAILED, EXIT_OK, WherryError

    level = _level(levels)
    if case is not None:
        _alone(level if any(levels.values()) else None, family, seed, jobs)
    if isa in plans.CHOICES:
        plans.forced(isa, runner.cpu())
    if only_peers and not peers:
        raise WherryError("--only-peers, but no --peer NAME=PATH to verify")
    from wherry.cli import names
    from wherry.cli import peers as peer_room

    known = names.targets(runner.routines(), peers)
    targets = [target for given in targets for target in given.split(",")]
    for target in targets:
        if names.unknown_target(target, known):
            raise names.no_routine(target, known)
    broken = peer_room.check(peers)
    good_peers = peer_room.without(peers, broken)
    gone = {problem.routine for problem in broken}
    left = [target for target in targets if target.partition(":")[0] not in gone]
    arguments = [*left, level]
    for peer in good_peers:
        arguments += ["--peer", peer]
    if only_peers:
        arguments.append("--only-peers")
    for option, value in (
        ("--family", family),
        ("--isa", isa),
        ("--seed", seed),
        ("--jobs", jobs),
        ("--case", case),
    ):
        if value is not None:
            arguments += [option, str(value)]
    parts = [0, 0]
    if (targets and not left) or (only_peers and not good_peers):
        result = verification.Verification()
    else:
        with Progress("verify", "parts", 0) as progress:

            def at(done: int, total: int, what: str) -> None:
                parts[:] = done, total
                progress.at(done, total, f"verify {what}"[:40])

            result = verification.verify(arguments, at)
    if result.end and not result.end.get("cases") and not broken and not result.failures:
        raise WherryError(_nothing(result, family, isa))
    for problem in broken:
        result.failures.append(
            {"target": problem.routine, "message": problem.message, "state": problem.kind}
        )
    printer = Printer()
    if as_json:
        _json(printer, result)
    else:
        report(printer, result, case is not None)
    if result.interrupted:
        wrong = "what was wrong until then is above" if result.failures else "nothing was wrong"
        when = f"after {parts[0]:,} of {parts[1]:,} parts; {wrong}"
        if not parts[0] and not result.failures:
            when = "before a part was verified"
        print(f"wherry: interrupted {when}", file=sys.stderr)
        return interrupted_status[0]
    return EXIT_FAILED if result.failures or result.unfinished_targets() else EXIT_OK


def _level(given: dict[str, bool]) -> str:
    """--full, --quick or --brief."""
    from wherry.errors import WherryError

    chosen = [f"--{name}" for name, wanted in given.items() if wanted]
    if len(chosen) > 1:
        raise WherryError(f"{' and '.join(chosen)} exclude each other; give one of them")
    return chosen[0] if chosen else "--quick"


def _alone(level: str | None, family: str | None, seed: int | None, jobs: int | None) -> None:
    """Refuses what a --case would pass over: it is one case of one family, with a seed of its own."""
    from wherry.errors import WherryError

    given = [("--family", family), ("--seed", seed), ("--jobs", jobs)]
    passed_over = [level] if level else []
    passed_over += [option for option, value in given if value is not None]
    if passed_over:
        raise WherryError(
            f"--case is one case, whose family and seed it says itself; leave out {' and '.join(passed_over)}"
        )


def _nothing(result, family: str | None, isa: str | None) -> str:
    """What to say where no case was left to try: that is no proof."""
    reasons = {skip["reason"] for skip in result.skips if skip.get("reason")}
    # What follows from another one of them tells nothing.
    reasons = {r for r in reasons if not r.endswith("in another family")} or reasons
    if reasons:
        return f"nothing was verified: {'; '.join(sorted(reasons))}"
    asked = f"--family {family}" if family else f"--isa {isa}" if isa else "what was asked for"
    return f"nothing was verified: the routines named have no case of {asked}; leave it out, or name others"


def _json(printer, result) -> None:
    from wherry.runfile import encode

    document = {
        "start": result.start,
        "families": result.families,
        "skips": result.skips,
        "failures": result.failures,
        "end": result.end,
        "interrupted": result.interrupted,
    }
    printer.write(encode(document).decode())


# Of one wrong routine: more are the same bug seen again.
SHOWN_OF_ONE = 3


def _shown(failures: list[dict]) -> list[dict]:
    """The first of each of its functions, and of what else there is as many as make SHOWN_OF_ONE."""
    first = {failure.get("function"): i for i, failure in reversed(list(enumerate(failures)))}
    others = [i for i in range(len(failures)) if i not in first.values()]
    chosen = {*first.values(), *others[: max(SHOWN_OF_ONE - len(first), 0)]}
    return [failures[i] for i in sorted(chosen)]


def _command(line: str) -> str:
    """As the runner says it, but of letters that can be printed: a path need not be text."""
    if line.isprintable():
        return line
    from wherry import shellwords

    return shellwords.line(shlex.split(line))


def report(printer, result, one_case: bool = False) -> None:
    """Failures with the command that repeats each, skips by reason, the sum. `one_case`: no level was asked for."""
    from wherry.units import plural, seconds_in_words

    by_target: dict[str, list[dict]] = {}
    for failure in result.failures:
        by_target.setdefault(failure.get("target", "?"), []).append(failure)
    for target, failures in by_target.items():
        states = {failure.get("state") for failure in failures}
        word = {"hang": "HUNG", "crash": "CRASHED"}.get(states.pop()) if len(states) == 1 else None
        printer.text(f"{word or 'WRONG'}: {target}", "bad")
        shown = _shown(failures)
        for failure in shown:
            printer.paragraph(failure.get("message", "wrong"), indent="  ")
            if failure.get("repeat"):
                printer.text(f"    repeat: {_command(failure['repeat'])}", "dim")
        if len(failures) > len(shown):
            printer.text(f"  and {len(failures) - len(shown)} more of the same functions")
    reasons: dict[str, list[str]] = {}
    for skip in result.skips:
        part = f"family {skip['family']}: " if skip.get("family") else ""
        names = reasons.setdefault(part + skip.get("reason", ""), [])
        if skip.get("target") not in names:
            names.append(skip.get("target", "?"))
    for reason, names in reasons.items():
        printer.paragraph(f"Skipped ({reason}): {', '.join(names)}.", "dim")
    if result.end:
        targets = {f.get("target", "?") for f in result.families if f.get("cases")}
        seed = f", seed {result.start['seed']}" if "seed" in result.start else ""
        state = (
            f"{plural(len(result.failures), 'failure')} in {', '.join(by_target)}"
            if result.failures
            else "all right"
        )
        if cut := result.unfinished_targets():
            state = f"{state if result.failures else 'nothing wrong so far'}; cut off, so not proved: {', '.join(cut)}"
        tried = "" if one_case else result.tried()
        tried = f" ({tried})" if tried else ""
        printer.paragraph(
            f"Verified {plural(len(targets), 'target')}, "
            f"{plural(result.end.get('cases', 0), 'case')}{tried} in {seconds_in_words(result.end.get('seconds', 0))}"
            f"{seed}: {state}."
        )
