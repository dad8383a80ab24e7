"""What a command is, as the kernel and the loader will have it, and whether the drop-in can serve it.

verdict = commands.examine("sort")               # can it help, and if not, why
os.execve(*verdict.argv(arguments), env)         # env: of preloading.environment
"""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from wherry import elf, preloading

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as a shell has it
# Scripts of scripts; the kernel gives up after as many.
DEEPEST = 5
HEAD = 256  # bytes of a file by which the kernel goes
# Machines whose programs an x86-64 kernel may execute by itself.
_EXECUTED = ("x86-64", "32-bit x86")
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_LOADER_OF_GLIBC = r"ld-linux|ld-[0-9.]+\.so"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What is known of a command before it runs."""

    command: str
    path: str | None  # the file to execute; None: it cannot be
    program: str | None  # what runs in the end: the file itself, or a script's interpreter
    helps: bool
    reason: str | None  # why not, as a sentence without its end; None when it helps
    notes: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()  # from the script to the program
    exit_code: int = 0  # 127, 126 when it cannot be executed at all
    kind: str = "dynamic"  # in a word, for a program: static, musl, set-user-ID, sanitizer ...
    shell: bool = False  # a text without #!, which execvp(3) hands to /bin/sh

    def argv(self, arguments: Sequence[str]) -> tuple[str, list[str]]:
        """What to hand to execve: the file, and its arguments."""
        if self.shell:
            return "/bin/sh", ["/bin/sh", self.path, *arguments]
        return self.path, [self.command, *arguments]


def exit_code_of(error: OSError) -> int:
    """What a shell ends with when a command cannot be executed for that reason."""
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def find(command: str, env: Mapping[str, str]) -> tuple[str | None, int]:
    """The file that a shell would run, or None and its exit code."""
    if "/" in command:
        places = [command]
    else:
        path = env.get("PATH", _DEFAULT_PATH)
        places = [f"{home or '.'}/{command}" for home in path.split(":")] if command else []
    code = NOT_FOUND
    for place in places:
        try:
            mode = Path(place).stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError):
            code = NOT_EXECUTABLE
            continue
        if stat.S_ISREG(mode) and os.access(place, os.X_OK):
            return place, 0
        code = NOT_EXECUTABLE
    return None, code


def _head(path: str) -> bytes | None:
    try:
        with Path(path).open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return None


def _more_formats() -> bool:
    """Whether the kernel may execute what is neither (binfmt_misc)."""
    try:
        names = os.listdir("/proc/sys/fs/binfmt_misc")  # noqa: PTH208
    except OSError:
        return False
    return not {*names} <= {"register", "status"}


def _no_new_privileges() -> bool:
    try:
        status = Path("/proc/self/status").read_bytes()
    except OSError:
        return False
    return b"\nNoNewPrivs:\t1\n" in status


def _privileges(path: str) -> str | None:
    """The privileges that a file gives to us who run it, as a word; None when none, as for its owner: the kernel tells
    the loader of those alone that change something. Nor does it heed those bits in a process that may gain no
    privileges, as in many containers; capabilities it withholds there, and tells the loader of them all the same."""
    try:
        found = Path(path).stat()
        if os.statvfs(path).f_flag & os.ST_NOSUID:
            return None
    except OSError:
        return None
    user, group = os.getuid(), os.getgid()
    if not _no_new_privileges():
        if found.st_mode & stat.S_ISUID and not user == os.geteuid() == found.st_uid:
            return "set-user-ID"
        executed_by_group = found.st_mode & stat.S_ISGID and found.st_mode & stat.S_IXGRP
        if executed_by_group and not group == os.getegid() == found.st_gid:
            return "set-group-ID"
    if user == 0:
        return None
    try:
        os.getxattr(path, "security.capability")
    except OSError:
        return None
    return "given capabilities"


def _interpreter(head: bytes) -> list[str] | None:
    """The words of a #! line, the interpreter first; its one argument is whole, as the kernel hands it on. None where
    the kernel finds none, as in a name that is too long for it: then a shell runs the file."""
    line, ended, _ = head[2:].partition(b"\n")
    if not ended and len(head) == HEAD and not re.search(rb"[^ \t][ \t\0]", line):
        return None
    line = os.fsdecode(line.split(b"\0")[0].strip(b" \t"))
    return re.split(r"[ \t]+", line, maxsplit=1) if line else None


# Options of env by their letters, and those of them that a word belongs to.
_LONG_OF_ENV = {
    "ignore-environment": "i",
    "unset": "u",
    "chdir": "C",
    "split-string": "S",
    "argv0": "a",
}
_WITH_A_WORD = "uCSa"
_CLEARS = "clears the environment (env -i), LD_PRELOAD with it"
_SETS = "takes LD_PRELOAD from it (env)"
# Of what is started by these it is no part of the environment, unless their settings say so.
_OTHER_USERS, _LOGINS = ("sudo", "doas", "pkexec"), ("su", "runuser")
_LONG_OF_LOGINS = {
    "login": "l",
    "command": "c",
    "session-command": "c",
    "shell": "s",
    "group": "g",
    "supp-group": "G",
    "user": "u",
    "whitelist-environment": "w",
}
_WITH_A_WORD_OF_LOGINS = "csgGuw"
# Nor where one of these options stands; the last word is what belongs to it.
_CLEARED_BY = {
    "setpriv": (("--reset-env",),),
    "bwrap": (("--clearenv",), ("--unsetenv", "LD_PRELOAD")),
}


def _long(word: str, letters: Mapping[str, str]) -> str:
    """The letter of a long option, of which as much may be written as no other begins with."""
    if word in letters:
        return letters[word]
    found = {letter for name, letter in letters.items() if word and name.startswith(word)}
    return found.pop() if len(found) == 1 else ""


def _of_env(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """The program that `env` starts for these arguments with its own, nothing where that is not understood; and why
    nothing can be preloaded there, as the end of a sentence."""
    words, why = list(arguments), None
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            name, sets, _ = word.partition("=")
            if not sets:
                return [word, *words], why
            if name == "LD_PRELOAD":
                why = why or _SETS
            continue
        name, _, value = word.removeprefix("--").partition("=")
        if word.startswith("--"):
            letters = _long(name, _LONG_OF_ENV)
        else:
            letters, value = word[1:] or "i", ""
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter == "i":
                why = _CLEARS
            elif letter in _WITH_A_WORD:
                value, letters = value or letters, ""
                if not value and not words:
                    return [], why
                value = value or words.pop(0)
                if letter == "u" and value == "LD_PRELOAD":
                    why = why or _SETS
                elif letter == "S":
                    try:
                        words = shlex.split(value) + words
                    except ValueError:
                        return [], why
    return [], why


def _logs_in(arguments: Sequence[str]) -> bool:
    """Whether `su` gives the user an environment of a login for these arguments, and LD_PRELOAD is not kept in it."""
    words, logs_in, kept = list(arguments), "-" in arguments, False
    while words:
        word = words.pop(0)
        if word == "--":
            break
        name, given, value = word.removeprefix("--").partition("=")
        letters = _long(name, _LONG_OF_LOGINS) if word.startswith("--") else word[1:]
        if not word.startswith("-"):
            continue
        while letters:
            letter, letters = letters[0], letters[1:]
            logs_in = logs_in or letter == "l"
            if letter in _WITH_A_WORD_OF_LOGINS:
                value = value if given else letters or (words.pop(0) if words else "")
                letters = ""
                kept = kept or (letter == "w" and "LD_PRELOAD" in value.split(","))
    return logs_in and not kept


def _in_a_scope(arguments: Sequence[str]) -> bool:
    """Whether `systemd-run` starts the command itself, or is told to hand LD_PRELOAD on to the manager that does."""
    return "--scope" in arguments or any("LD_PRELOAD" in word for word in arguments)


def _clears(name: str, arguments: Sequence[str]) -> bool:
    own = arguments[: [*arguments, "--"].index("--")]
    return any(
        own[at : at + len(words)] == list(words)
        for words in _CLEARED_BY.get(name, ())
        for at in range(len(own))
    )


def _withheld(path: str, arguments: Sequence[str]) -> str | None:
    """Why nothing that is preloaded into this program reaches the one that it starts for these arguments; None: it
    does, as far as they tell."""
    name, arguments = Path(path).name, list(arguments)
    if name == "env":
        started, what = _of_env(arguments)
        if what is None and started and (why := _withheld(started[0], started[1:])):
            return f"it starts {named(started[0])}, and {why}"
    elif (
        (name in _OTHER_USERS and arguments)
        or (name in _LOGINS and _logs_in(arguments))
        or (name == "systemd-run" and arguments and not _in_a_scope(arguments))
        or _clears(name, arguments)
    ):
        what = "gives what it starts an environment without LD_PRELOAD"
    else:
        what = None
    return f"it {what}: write {name} in front of wherry, not behind it" if what else None


def _no(command: str, path: str | None, kind: str, reason: str, **more: object) -> Verdict:
    return Verdict(command, path, more.pop("program", path), False, reason, kind=kind, **more)


# Of kinds that cannot be executed at all.
_EXIT_CODES = {"no loader": NOT_FOUND, "refused": NOT_EXECUTABLE}
_FIRST = "whose memory routines must come first"
# They have none, but what they check should be what the program does elsewhere.
_CHECKED = dict.fromkeys(
    ("LeakSanitizer", "UndefinedBehaviorSanitizer"), "and such programs are left as they are"
)


def _of_elf(path: str, env: Mapping[str, str]) -> tuple[str, str | None, tuple[str, ...]]:
    """(kind, why nothing can be preloaded or None, notes) of a program that is no script."""
    granted = _privileges(path)
    try:
        if not elf.executable(Path(path)):
            return "refused", "its file is no ELF program that the kernel would execute", ()
        found = elf.read(Path(path))
    except OSError as error:
        if granted:
            return (
                granted,
                f"it is {granted}: the loader leaves preloaded objects out of such programs",
                (),
            )
        return "dynamic", None, (f"its file cannot be read ({error.strerror}), so this is a guess",)
    except elf.DamagedError:
        return "damaged", "its file is no ELF program that a loader would take", ()
    if found.machine != "x86-64" or found.bits != 64:
        what = "x32" if found.machine == "x86-64" else found.machine
        if found.machine not in _EXECUTED and not _more_formats():
            return "refused", f"it is a program for {what}, which this machine does not execute", ()
        return (
            "other architecture",
            f"it is a program for {what}, and the drop-in is for x86-64",
            (),
        )
    if found.soname is not None and re.match(_LOADER_OF_GLIBC, found.soname):
        return "dynamic", None, ("it is the loader: this says nothing of the program it is given",)
    if (
        found.interpreter is None
        and found.kind == "shared"
        and not found.pie
        and (found.soname or found.needed)
    ):
        return "no program", "it is a shared object, and no program", ()
    if found.interpreter is None:
        what = "static-pie" if found.kind == "shared" else "static"
        go = ", by Go" if found.go else ""
        return (
            what,
            f"it is linked statically ({what}{go}): no loader runs that could preload anything",
            (),
        )
    loader = Path(found.interpreter).name
    if not Path(found.interpreter).exists():
        return "no loader", f"its loader {found.interpreter} does not exist", ()
    if not Path(found.interpreter).is_file() or not os.access(found.interpreter, os.X_OK):
        return "refused", f"its loader {found.interpreter} cannot be executed", ()
    if "musl" in loader:
        return (
            "musl",
            f"its C library is musl ({found.interpreter}), and the drop-in is for glibc",
            (),
        )
    if not re.match(_LOADER_OF_GLIBC, loader):
        return "other libc", f"its loader is {found.interpreter}, not that of glibc", ()
    if granted:
        return (
            granted,
            f"it is {granted}: the loader leaves preloaded objects out of such programs",
            (),
        )
    if found.sanitizer:
        return (
            "sanitizer",
            f"it was built with {found.sanitizer}, {_CHECKED.get(found.sanitizer, _FIRST)}",
            (),
        )
    if preloaded := preloading.sanitizer_preloaded(env):
        sanitizer, word = preloaded
        return (
            "sanitizer",
            f"LD_PRELOAD names {sanitizer}'s runtime ({word}), {_CHECKED.get(sanitizer, _FIRST)}",
            (),
        )
    notes = []
    if found.go:
        notes.append(
            "it is written in Go, whose own copies do not go through libc: only those of its C parts do"
        )
    return "dynamic", None, tuple(notes)


def named(command: str) -> str:
    """A command in a sentence: one that shows nothing, in quotes."""
    return command if command.strip() else f"'{command}'"


def examine(
    command: str, env: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
) -> Verdict:
    """Whether the drop-in can help that command, and why not. Follows scripts to their interpreters. `arguments`: by
    them also whether it can help what that command starts in its turn."""
    env = os.environ if env is None else env
    path, code = find(command, env)
    if path is None:
        reason = (
            "there is no such command"
            if code == NOT_FOUND
            else "it is not a file that may be executed"
        )
        return _no(command, None, "missing", reason, exit_code=code)
    at, chain = path, []
    while True:
        chain.append(at)
        head = _head(at)
        more = {"program": at, "chain": tuple(chain)}
        words = _interpreter(head) if head is not None and head.startswith(b"#!") else None
        if words:
            if len(chain) > DEEPEST:
                return _no(
                    command,
                    path,
                    "script",
                    "its interpreter is a script of a script too deep",
                    exit_code=NOT_EXECUTABLE,
                    **more,
                )
            target, taken = words[0], None
            # The kernel looks nowhere but where it is told: a name alone is one in this directory.
            found, code = find(target if "/" in target else f"./{target}", env)
            missing = code
            if found and Path(target).name == "env" and len(words) > 1:
                started, taken = _of_env(words[1:])
                target = started[0] if started else target
                # What it cannot find is its own to tell: it may look elsewhere.
                found, missing = find(target, env)
            if found is None:
                what = "does not exist" if missing == NOT_FOUND else "cannot be executed"
                why = f"its interpreter {target} {what}"
                if words[-1].endswith("\r"):
                    why += " (its lines end as on Windows; dos2unix mends that)"
                return _no(command, path, "script", why, exit_code=code, **more)
            if taken:
                return _no(command, path, "script", f"its first line {taken}", **more)
            at = found
            continue
        if head is not None and not head.startswith(b"\x7fELF"):
            if b"\0" in head or len(chain) > 1:
                why = "it is neither a script nor an ELF program"
                code = 0 if _more_formats() else NOT_EXECUTABLE
                return _no(command, path, "damaged", why, exit_code=code, **more)
            kind, reason, notes = _of_elf("/bin/sh", env)
            return Verdict(
                command,
                path,
                "/bin/sh",
                reason is None,
                reason,
                notes,
                (at, "/bin/sh"),
                0,
                kind,
                True,
            )
        kind, reason, notes = _of_elf(at, env)
        if reason is None and len(chain) == 1 and (withheld := _withheld(path, arguments)):
            kind, reason = "environment", withheld
        code = _EXIT_CODES.get(kind, 0)
        return Verdict(command, path, at, reason is None, reason, notes, tuple(chain), code, kind)
