"""`wherry record -- CMD`: runs a program and writes down what it copies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from wherry import children
from wherry.cli import recorded
from wherry.errors import EXIT_FAILED, FailedError, WherryError
from wherry.recording import leftovers, telling
from wherry.recording.ending import Ending

# What a file of parts may need; a directory in memory with less free is not used.
LEAST_FREE = 512 << 20
LEFTOVERS_SHOWN = 3
WITHOUT_COMMAND = ("--recover", "--into", "--collect")
# Programs that a preloaded object would stop, or make write complaints of their loader among what they write.
DISTURBED = ("sanitizer", "musl", "other libc", "other architecture")


def _target(given: str | None, command: str, plan: str | None, library: str | None) -> Path:
    from wherry import outputs

    path = Path(given) if given else Path(f"{outputs.plain_name(Path(command).name)}.mix.json")
    read = ((plan, "the plan"), (library, "the library"), (shutil.which(command), "the command"))
    outputs.refuse_inputs(path, {Path(own): what for own, what in read if own})
    outputs.check(path, outputs.MIX)
    return path


def _parts() -> Path:
    """A directory for the processes' files: in memory where there is room, as nothing there is written back."""
    base = None
    shared = Path("/dev/shm")
    if (
        shared.is_dir()
        and os.access(shared, os.W_OK)
        and shutil.disk_usage(shared).free > LEAST_FREE
    ):
        base = shared
    home = Path(tempfile.mkdtemp(prefix=leftovers.PREFIX, dir=base))
    if os.geteuid() == 0:
        # A server's workers give up being root, and begin their files afterwards.
        home.chmod(0o1733)
    if len(str(home)) > 300:
        home.rmdir()
        raise WherryError(f"the temporary directory {home.parent} has too long a path; set TMPDIR")
    return home


@dataclass(frozen=True)
class _Asked:
    command: tuple[str, ...]
    target: Path
    note: str
    ceilings: bool
    count: bool  # what nobody else sees
    tries: bool
    plan: Path | None
    library: str | None  # tried in place of the drop-in
    runs: int
    prepare: str | None


def _prepare(shell: str) -> None:
    from wherry import preloading, runner

    # No pipe: what it leaves running would hold that open.
    with tempfile.TemporaryFile() as errors:
        status = subprocess.run(
            ["/bin/sh", "-c", shell],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            check=False,
            env=preloading.own_environment(),
            preexec_fn=children.before_exec(),
        ).returncode
        if status:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines()
            more = f": {said[-1]}" if said else ""
            raise FailedError(f"--prepare {runner.ended_by(status)}{more}; mend it: {shell}")


def _runs(asked: _Asked, verdict, home: Path, merger, counting, ending: Ending) -> tuple:
    """The command, as often as asked for; what it took in all, and what was tried."""
    from wherry import commands, preloading, standardinput
    from wherry.recording import preparing, running, writing

    env, tried = preloading.own_environment(), None
    if verdict.kind not in DISTURBED:
        tries = asked.ceilings and not asked.count and asked.tries
        prepared = preparing.preparation(tries=tries, plan=asked.plan, library=asked.library)
        env, tried = prepared.environment(env, home), prepared.tried
    path, argv = verdict.argv(asked.command[1:])
    ran, given = None, standardinput.Repeated()
    for number in range(asked.runs):
        if asked.prepare is not None:
            try:
                _prepare(asked.prepare)
            except FailedError:
                if not ending.asked or ran is None:
                    raise
        if ending.asked:
            if ran is None:
                raise KeyboardInterrupt
            telling.say(f"interrupted: {number} of {asked.runs} runs are in the mix")
            break
        if number and not given.again():
            telling.say(
                "standard input is a pipe, which has been read to its end; run "
                f"{number + 1} of {asked.runs} finds nothing there. Give each run a file to read: < FILE"
            )
        merger.begin_run(number, asked.runs)
        try:
            own = running.run(argv, path, env, home, merger, counting)
        except OSError as error:
            failed = FailedError(f"cannot execute {path}: {error.strerror}")
            failed.exit_code = commands.exit_code_of(error)
            raise failed from None
        for part in leftovers.parts(home):
            merger.add(part)
            part.unlink(missing_ok=True)
        if not home.is_dir():
            raise FailedError(
                f"somebody removed {home} with the records while {asked.command[0]} ran; nothing is saved. "
                "systemd does so in /dev/shm when a user logs out (loginctl enable-linger keeps it)"
            )
        leftovers.note_merged(home, merger.processes)
        if asked.ceilings and not asked.count:
            own.unrecorded_s = writing.unrecorded_s(own, merger, ending)
        ran = own if ran is None else ran.followed_by(own)
        if own.exit:
            if number + 1 < asked.runs:
                telling.say(f"run {number + 1} of {asked.runs} failed; there is none after it")
            break
    return ran, tried


def _load() -> None:
    """Loads the libraries that begin threads (numpy's), with Ctrl-C's signals blocked, which the threads inherit: one
    that blocks none would take a signal from the thread that waits for it to hand it on to the command."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGQUIT))
    from wherry.recording import running, summary, writing  # noqa: F401

    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _record(asked: _Asked, quiet: bool) -> int:
    _load()
    from wherry import commands

    verdict = commands.examine(asked.command[0])
    if verdict.exit_code:
        telling.say(f"{commands.named(asked.command[0])}: {verdict.reason}")
        return verdict.exit_code
    _tell_leftovers()
    ending = Ending()
    home = _parts()
    try:
        with leftovers.held(home, asked.command, asked.target, asked.note), ending.in_charge():
            return _recorded(asked, quiet, verdict, home, ending)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _recorded(asked: _Asked, quiet: bool, verdict, home: Path, ending: Ending) -> int:
    from wherry.recording import preparing, running, unseen, writing
    from wherry.recording.merge import Merger

    if verdict.kind not in DISTURBED:
        preparing.leave_out_the_dropin()
    merger = Merger()
    if not verdict.helps:
        more = "; it runs untouched" if verdict.kind in DISTURBED else ""
        telling.say(f"{asked.command[0]} itself cannot be recorded: {verdict.reason}{more}")
    for note in verdict.notes:
        telling.say(f"{asked.command[0]}: {note}")
    counting = unseen.Counting() if asked.count else None
    ran, tried = _runs(asked, verdict, home, merger, counting, ending)
    not_seen = None
    if counting is not None:
        seen = sum(part["calls"] for part in merger.ops().values()) + merger.uncounted
        not_seen = unseen.judged(counting.finish(), seen)
    document = writing.document(
        name=recorded.name_of(asked.target),
        command=asked.command,
        note=asked.note,
        ran=ran,
        merger=merger,
        unrecorded=running.unrecorded(ran, merger, verdict, home, os.environ),
        ceilings=asked.ceilings and not asked.count,
        ending=ending,
        unseen=not_seen,
        tried=tried,
    )
    saved = recorded.save(document, asked.target, home, merger, ran, quiet)
    return ran.exit if saved else EXIT_FAILED


def _tell_leftovers() -> None:
    from wherry import shellwords

    found = list(leftovers.every())
    for own in found[:LEFTOVERS_SHOWN]:
        what = shellwords.line(own.command)
        what = what if len(what) < 60 else f"{what[:57]}..."
        place = shellwords.path(str(own.home))
        telling.say(
            f"a recording of {what} begun at {own.started} was cut off: wherry record --recover {place} saves it, "
            f"rm -r {place} removes it"
        )
    if len(found) > LEFTOVERS_SHOWN:
        telling.say(f"and {len(found) - LEFTOVERS_SHOWN} more in {found[-1].home.parent}")


def _alone(option: str, what: str, told: Mapping[str, bool], heeded: set[str]) -> None:
    """That this option is given with no other than those."""
    others = [own for own, there in told.items() if there and own != option and own not in heeded]
    if not others:
        return
    if others[0] in WITHOUT_COMMAND:
        raise WherryError(f"{option} and {others[0]} are two things to do; give one of them")
    more = f"{others[0]} is for a command that is run, leave it out"
    raise WherryError(f"{option} {what}; {'leave out the command' if others[0] == 'CMD' else more}")


def _plan(plan: str | None, library: str | None, without: Mapping[str, bool]) -> Path | None:
    """The file of --plan, when it can be tried. `without`: options that leave out the trial, and whether given."""
    for option, value in (("--plan", plan), ("--try", library)):
        if value is not None and (others := [own for own, there in without.items() if there]):
            raise WherryError(
                f"{option} is of the trial, which {others[0]} leaves out; give one of them"
            )
    if plan is None:
        return None
    if library is not None:
        raise WherryError("--plan is the drop-in's, and --try tries another library; give one")
    chosen = Path(plan)
    if not chosen.is_file():
        raise WherryError(
            f"--plan {plan}: there is no such file; wherry plan default -o FILE or wherry tune -o FILE writes one"
        )
    from wherry import planuse

    planuse.refuse_unused(chosen, f"--plan {plan}")
    return chosen


@click.command(
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    epilog="Examples: wherry record -- sort big.txt; wherry record -o gcc.mix.json -- make -j4; "
    "then wherry replay gcc.mix.json",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to write the mix (default: CMD.mix.json). A directory that is missing is made, which is said.",
)
@click.option("--note", metavar="TEXT", default="", help="A sentence to keep in the mix.")
@click.option(
    "--no-ceiling",
    is_flag=True,
    help="Leave out how much time the copies took (its costs are measured once after each boot, in a few seconds), "
    "and the trial, which needs that time.",
)
@click.option(
    "--unseen",
    is_flag=True,
    help="Also count what libc copies inside itself, by probes of the kernel (CAP_PERFMON). Each call takes some 10 us "
    "longer then, so no ceiling is told, and nothing is tried.",
)
@click.option(
    "--no-trial",
    is_flag=True,
    help="All calls go to libc. Otherwise they go to libc's routines and to the drop-in's by turns, and the mix tells "
    "what each took.",
)
@click.option(
    "--plan", metavar="FILE", help="The drop-in is tried with this plan instead of the default."
)
@click.option(
    "--try",
    "library",
    metavar="FILE.so|libc",
    help="Another library's memory functions are tried in place of the drop-in's; libc: its own once more, which shows "
    "what differs by chance.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    metavar="N",
    help="The command so often, into one mix; each reads all of a file on standard input. From three on the trial's "
    "interval tells how runs differ.",
)
@click.option("--prepare", metavar="SHELL", help="Before each run, not recorded: rm -rf copy")
@click.option(
    "--recover",
    metavar="DIR",
    help="Save what a wherry record that was killed had recorded in DIR; no CMD then. The next wherry record names "
    "such directories.",
)
@click.option(
    "--into",
    metavar="DIR",
    help="For what somebody else starts (a service, a container): make DIR ready to record into, and print the "
    "environment that does it. No CMD then.",
)
@click.option(
    "--collect",
    metavar="DIR",
    help="Save what has been recorded there until now, as often as you like; that goes on.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no summary.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD [ARG]...")
def command(
    output: str | None,
    note: str,
    no_ceiling: bool,
    unseen: bool,
    no_trial: bool,
    plan: str | None,
    library: str | None,
    runs: int,
    prepare: str | None,
    recover: str | None,
    into: str | None,
    collect: str | None,
    quiet: bool,
    command: tuple[str, ...],
) -> int:
    """Runs a program with a recorder preloaded and writes what it copied, moved and set as a mix.

    Counts every call of memcpy, memmove, memset and their relatives by size, alignment, distance and overlap, in all
    processes and threads, times some of them, tries the drop-in's routines by turns with libc's, and prints what even a
    free memcpy could gain and what the drop-in does. The summary goes to standard error; exit status and standard
    streams are the program's own (1 when the mix could not be saved where it was to be; then it says where it is). What
    libc copies inside itself, what the compiler inlined, static and set-user-ID programs are not seen, and the summary
    says so."""
    told = {
        "CMD": bool(command),
        "--no-ceiling": no_ceiling,
        "--unseen": unseen,
        "--no-trial": no_trial,
        "--plan": plan is not None,
        "--try": library is not None,
        "--runs": runs != 1,
        "--prepare": prepare is not None,
        "--quiet": quiet,
        "--recover": recover is not None,
        "--into": into is not None,
        "--collect": collect is not None,
    }
    if recover is not None:
        _alone("--recover", "saves what is there already", told, {"--quiet"})
        return recorded.recover(Path(recover), output, note, quiet)
    if collect is not None:
        from wherry.cli import outside

        _alone("--collect", "saves what is recorded already", told, {"--quiet", "--no-ceiling"})
        return outside.collect(collect, output, note, ceiling=not no_ceiling, quiet=quiet)
    if into is not None:
        from wherry.cli import outside

        _alone(
            "--into", "is for what somebody else starts", told, {"--no-trial", "--plan", "--try"}
        )
        chosen = _plan(plan, library, {"--no-trial": no_trial})
        return outside.into(into, output, note, tries=not no_trial, plan=chosen, library=library)
    if not command:
        raise click.UsageError("Missing argument '-- CMD [ARG]...'.", click.get_current_context())
    if unseen and runs > 1:
        raise WherryError("--unseen counts in one run; leave out --runs")
    without = {"--no-trial": no_trial, "--no-ceiling": no_ceiling, "--unseen": unseen}
    chosen = _plan(plan, library, without)
    if Path(command[0]).name == "wherry" and command[1:2] == ("exec",):
        raise WherryError(
            "wherry exec gives all calls to the drop-in, past the recorder; record the program itself, to which "
            "wherry record gives both by turns: wherry record [--plan FILE] -- CMD"
        )
    target = _target(output, command[0], plan, library)
    asked = _Asked(
        command, target, note, not no_ceiling, unseen, not no_trial, chosen, library, runs, prepare
    )
    return _record(asked, quiet) or 0
