"""Programs that a sanitizer is built into, or preloaded for: nothing is preloaded into them."""

from __future__ import annotations

import os

import pytest
from conftest import need_tool, run
from test_exec import compiled, dropin, source
from test_exec_check import refused
from wherry import commands

__all__ = ["dropin", "source"]  # fixtures


@pytest.mark.parametrize("name", ["address", "thread", "undefined", "leak"])
def test_sanitizers_of_gcc(wherry, dropin, source, name):
    source.write_text("int main(int c, char **v) { int a[3] = {1, 2, 3}; return a[c] << c; }\n")
    why = "and such programs are left" if name in ("undefined", "leak") else "whose memory routines"
    refused(wherry, compiled(source, f"-fsanitize={name}"), f"Sanitizer, {why}")


@pytest.mark.parametrize("name", ["address", "thread", "memory"])
def test_sanitizers_of_clang(wherry, dropin, source, name):
    """Linked in statically, where no library's name tells of them."""
    clang = need_tool("clang", "clang")
    refused(wherry, compiled(source, f"-fsanitize={name}", compiler=[clang]), "Sanitizer")


@pytest.mark.parametrize(
    "compiler, options, sanitizer",
    [
        ("gcc", ("-fsanitize=address", "-static-libasan"), "AddressSanitizer"),
        ("gcc", ("-fsanitize=thread", "-static-libtsan"), "ThreadSanitizer"),
        ("gcc", ("-fsanitize=leak", "-static-liblsan"), "LeakSanitizer"),
        ("gcc", ("-fsanitize=undefined", "-static-libubsan"), "UndefinedBehaviorSanitizer"),
        ("gcc", ("-fsanitize=thread", "-static-libtsan", "-no-pie"), "ThreadSanitizer"),
        ("clang", ("-fsanitize=dataflow",), "DataFlowSanitizer"),
        (
            "clang",
            ("-fsanitize=undefined", "-fsanitize-minimal-runtime"),
            "UndefinedBehaviorSanitizer",
        ),
    ],
)
def test_sanitizers_in_stripped_programs(source, compiler, options, sanitizer):
    """Their runtimes are linked in, and nearly all symbols are gone."""
    source.write_text("int main(int c, char **v) { int a[3] = {1, 2, 3}; return a[c] << c; }\n")
    tool = need_tool(compiler, compiler)
    program = compiled(source, *options, "-s", compiler=[tool])
    verdict = commands.examine(str(program))
    assert (verdict.kind, verdict.helps) == ("sanitizer", False)
    assert verdict.reason.startswith(f"it was built with {sanitizer},")


def test_a_program_that_speaks_of_a_sanitizer_has_none(source):
    words = '"AddressSanitizer", "ThreadSanitizer", "ubsan: add-overflow", "__asan_init"'
    source.write_text(
        f"#include <stdio.h>\nint main(int c, char **v) {{ char *w[] = {{{words}}}; return puts(w[c]); }}\n"
    )
    assert commands.examine(str(compiled(source))).helps


@pytest.mark.parametrize(
    "name, sanitizer",
    [
        ("libasan.so.8", "AddressSanitizer"),
        ("libhwasan.so.0", "HWAddressSanitizer"),
        ("libclang_rt.tsan-x86_64.so", "ThreadSanitizer"),
        ("libclang_rt.ubsan_standalone.so", "UndefinedBehaviorSanitizer"),
        ("libasanas.so", None),
        ("libm.so.6", None),
    ],
)
def test_a_preloaded_runtime_is_known_by_its_name(name, sanitizer):
    verdict = commands.examine("cat", {**os.environ, "LD_PRELOAD": f"libm.so.6 {name}"})
    assert verdict.helps == (sanitizer is None)
    if sanitizer:
        assert (verdict.kind, verdict.reason.split("'")[0]) == (
            "sanitizer",
            f"LD_PRELOAD names {sanitizer}",
        )


def test_a_preloaded_sanitizer_stays_first(wherry, dropin, source):
    """Its runtime ends a program in which it does not come first. Under another name it is known by what is in it."""
    gcc = need_tool("gcc", "gcc")
    runtime = run(gcc, "-print-file-name=libasan.so").stdout.strip()
    program = compiled(source)
    link = source.parent / "first.so"
    link.symlink_to(runtime)
    verdict = commands.examine(str(program), {"LD_PRELOAD": str(link)})
    assert "AddressSanitizer's runtime" in verdict.reason
    # What Python keeps until it ends would be told as lost.
    env = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"}
    plain = run(program, check=False, env={**os.environ, **env})
    if plain.stderr:
        pytest.skip(
            f"AddressSanitizer does not run here, without wherry either: {plain.stderr[:200]}"
        )
    done = wherry("exec", "--check", "--", program, env=env)
    assert "no: LD_PRELOAD names AddressSanitizer's runtime" in done.stdout
    assert done.returncode == 1
    for words in (("exec",), ("record", "-q", "-o", source.parent / "m.mix.json")):
        done = wherry(*words, "--", program, env=env)
        assert "untouched" in done.stderr and "come first" not in done.stderr.split("\n", 1)[1]
        assert done.returncode == plain.returncode
    done = wherry("ab", "--runs", "2", "--", program, env=env)
    assert "LD_PRELOAD names AddressSanitizer's runtime" in done.stderr
    assert done.returncode == 2


def test_a_child_built_with_a_sanitizer_inherits_the_dropin(wherry, dropin, source):
    """What docs/dropin.md says of such children, and the way out that it names."""
    source.write_text(
        "#include <string.h>\nint main(int c, char **v) { char to[9]; memcpy(to, v[0], c); return 3; }\n"
    )
    child = compiled(source, "-fsanitize=address", compiler=[need_tool("gcc", "gcc")])
    if run(child, check=False).returncode != 3:
        pytest.skip("a program with AddressSanitizer does not run here")
    done = wherry("exec", "--", "sh", "-c", f"{child}; echo $?")
    assert "does not come first" in done.stderr and done.stdout == "1\n"
    done = wherry("exec", "--", "sh", "-c", f"env -u LD_PRELOAD {child}; echo $?")
    assert (done.stderr, done.stdout) == ("", "3\n")
    # clang's runtime is in the program: an overflow in a copy is found with the drop-in as without.
    clang = need_tool("clang", "clang")
    source.write_text(
        "#include <string.h>\nint main(int c, char **v) { char to[2]; memcpy(to, v[0], 2 + c); return to[0]; }\n"
    )
    child = compiled(source, "-fsanitize=address", compiler=[clang])
    done = wherry("exec", "--", "sh", "-c", f"{child}; true")
    assert "stack-buffer-overflow" in done.stderr
