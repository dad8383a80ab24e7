"""Makes one peer from one source, proves it right, and writes down what it is."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from recipes import LENIENT, LOOPS, PLAIN, Recipe
from sources import (
    HEADERS,
    PACKAGES,
    SHARED,
    BrokenError,
    Source,
    complaint,
    no_calls_of_memcpy,
    run,
    stamp,
)
from wherry import runner
from wherry.found_peers import TIERS

SHIMS = Path(__file__).resolve().parent
# The first CPU of each tier, by a name that every compiler knows.
MARCH = {"sse2": "x86-64", "avx2": "haswell", "avx512": "skylake-avx512"}
NEVER = (1 << 63) - 1
# Of ours, for a shim that brings loops: what they are made of.
OURS = SHIMS.parent
MADE_OF = ("runner/measure/loops.tmpl.h", "runner/measure/packets.tmpl.h", "include/wherry.h")
MADE_OF += ("runner/measure/packet_loops.h", "runner/measure/loops.h", "runner/measure/timed.h")
LINK = (
    *("-shared", "-fPIC", "-nostdlib"),
    *("-Wl,-z,defs", "-Wl,-z,noexecstack", "-Wl,-z,now", "-Wl,--build-id=none"),
)
# ELF, as elf(5) has it.
SECTION_HEADERS_AT, SECTION_COUNT_AT = 0x28, 0x3A
SHT_SYMTAB, STT_GNU_IFUNC, STV_MASK = 2, 10, 3


@dataclass
class Workshop:
    into: Path
    cc: list[str]
    compiler: str
    cpu: dict

    def make(self, recipe: Recipe, source: Source) -> tuple[str, str]:
        """`built` or `kept`, and what it has; or why not: `not here`, `broken` or `wrong`."""
        tier = self.cpu.get("tier")
        if TIERS.index(recipe.tier) > (TIERS.index(tier) if tier in TIERS else 0):
            return "not here", f"this CPU has no {recipe.tier.upper()}"
        key = self._key(recipe, source)
        library, sidecar = (self.into / f"{recipe.name}.{end}" for end in ("so", "json"))
        before = description(sidecar)
        stands = library.is_file() and before.get("key") == key
        if stands and before.get("stamp") == stamp(library):
            return "kept", " ".join(before.get("has", []))
        with tempfile.TemporaryDirectory(dir=self.into) as temporary:
            work = Path(temporary)
            try:
                names = self._build(recipe, source, work)
                made = work / "peer.so"
                fault = _verify(recipe.name, made)
                end = "wrong"
            except BrokenError as error:
                fault, end = str(error), "broken"
            if fault:
                library.unlink(missing_ok=True)
                sidecar.unlink(missing_ok=True)
                return end, fault
            text = {
                "name": recipe.name,
                "what": recipe.what,
                "version": source.version,
                "package": PACKAGES[recipe.source],
                "tier": _tier_of(made) if recipe.source in LENIENT else recipe.tier,
                "compiler": self.compiler if recipe.source in (*HEADERS, *SHARED) else "",
                # Of one that is there for its loops the function only proves it.
                "has": [LOOPS] if _brings_loops(recipe) else names,
                "from": str(source.paths[0]),
                "key": key,
                "stamp": stamp(made),
            }
            (work / "peer.json").write_text(json.dumps(text, indent=1) + "\n")
            (work / "peer.json").replace(sidecar)
            made.replace(library)
            return "built", " ".join(text["has"])

    def _build(self, recipe: Recipe, source: Source, work: Path) -> list[str]:
        if recipe.source in HEADERS:
            return self._from_header(recipe, source, work)
        if recipe.source in SHARED:
            march = f"-march={MARCH[recipe.tier]}"
            words = ["-std=gnu17", march, *recipe.options, shim_of(recipe), source.paths[0]]
            return self._link(words, [outer for outer, _ in recipe.exports], work)
        return self._from_archive(recipe, source, work)

    def _from_archive(self, recipe: Recipe, source: Source, work: Path) -> list[str]:
        """The members that define the functions, with the variables of a shim when they need any."""
        archive, whole, shim = source.paths[0], work / "whole.o", work / "shim.o"
        inputs = []
        if recipe.source == "glibc":
            self._cc(
                *("-c", "-O2", "-fPIC", *thresholds(recipe, self.cpu)),
                *("-o", shim, SHIMS / "glibc.c"),
            )
            inputs.append(shim)
        demands = [f"-Wl,-u,{inner}" for _, inner in recipe.exports]
        try:
            # Before the archive: what a shim defines, no member of it is taken for.
            self._cc("-r", "-nostdlib", *demands, "-o", whole, *inputs, archive)
            exports = _show(whole, recipe.exports)
        except (BrokenError, struct.error, IndexError, ValueError) as error:
            raise BrokenError(f"{archive}: {error}") from None
        there = {inner for _, inner in exports}
        lacking = [inner for _, inner in recipe.exports if inner not in there]
        if not exports or (lacking and recipe.source not in LENIENT):
            raise BrokenError(f"{archive} has no {lacking[0]}")
        aliases = [f"-Wl,--defsym={outer}={inner}" for outer, inner in exports if outer != inner]
        return self._link([*aliases, whole], [outer for outer, _ in exports], work)

    def _from_header(self, recipe: Recipe, source: Source, work: Path) -> list[str]:
        includes = [word for path in source.paths for word in ("-isystem", path)]
        if recipe.source == "dpdk" and (source.paths[0] / "rte_config.h").is_file():
            includes += ["-include", "rte_config.h"]
        flags = ["-std=gnu17", "-fvisibility=hidden", f"-march={MARCH[recipe.tier]}"]
        # A header that sums may call memcpy for two bytes, which only the compiler can supply here.
        if any(outer in PLAIN for outer, _ in recipe.exports):
            flags.append("-fno-builtin")
        flags += no_calls_of_memcpy(self.compiler)
        if _brings_loops(recipe):
            includes += [f"-I{OURS / room}" for room in ("runner/measure", "include", "src")]
        words = [*flags, *recipe.options, *includes, shim_of(recipe)]
        return self._link(words, [outer for outer, _ in recipe.exports], work)

    def _link(self, words: Sequence[str | Path], names: list[str], work: Path) -> list[str]:
        script = work / "exports.map"
        script.write_text("{ global: " + "; ".join(names) + "; local: *; };\n")
        self._cc(*LINK, f"-Wl,--version-script={script}", "-o", work / "peer.so", *words)
        return names

    def _cc(self, *words: str | Path) -> None:
        done = run(*self.cc, *words)
        if done.returncode != 0:
            raise BrokenError(complaint(done.stderr))

    def _key(self, recipe: Recipe, source: Source) -> str:
        """Changes when anything does that the peer is made from."""
        files = [*SHIMS.glob("*.py"), shim_of(recipe), *source.paths]
        if _brings_loops(recipe):
            files += [OURS / name for name in MADE_OF]
        if recipe.source in HEADERS:
            files.append(source.paths[0] / HEADERS[recipe.source][0])
        stamps = []
        for file in sorted(file for file in files if file.exists()):
            status = file.stat()
            stamps.append((str(file), status.st_size, status.st_mtime_ns))
        parts = (recipe, stamps, self.cc, self.compiler, source.version)
        chosen = thresholds(recipe, self.cpu) if recipe.source == "glibc" else []
        return hashlib.sha256(repr((parts, chosen)).encode()).hexdigest()


def _brings_loops(recipe: Recipe) -> bool:
    return (LOOPS, LOOPS) in recipe.exports


def shim_of(recipe: Recipe) -> Path:
    return SHIMS / f"{recipe.shim or recipe.source}.c"


def thresholds(recipe: Recipe, cpu: dict) -> list[str]:
    """The values that peers/glibc.c asks for; its head comment tells the rules."""
    last = cpu.get("last_level")
    non_temporal = (last if isinstance(last, int) and last > 0 else 1 << 20) * 3 // 4
    amd = cpu.get("vendor_id") == "AuthenticAMD"
    fsrm = cpu.get("features", {}).get("fsrm") is True
    movsb = {"glibc_sse2": 2048, "glibc_avx512": 16384}.get(recipe.name, 8192)
    values = {
        "NON_TEMPORAL": non_temporal,
        "REP_MOVSB": non_temporal if amd else 2112 if fsrm else movsb,
        "REP_STOSB": NEVER if amd else 2048,
    }
    return [f"-D{name}={value}L" for name, value in values.items()]


def description(sidecar: Path) -> dict:
    try:
        said = json.loads(sidecar.read_text())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _verify(name: str, library: Path) -> str:
    """Nothing when the peer loads and is right; else the first thing that is wrong with it."""
    done = run(
        *(runner.path(), "verify", "--only-peers", "--brief", "--json"),
        *("--peer", f"{name}={library}"),
    )
    if done.returncode == 0:
        return ""
    for line in done.stdout.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == "failure":
            return str(event.get("message", "it failed verification"))
    return runner.complaint(done.stderr) or f"verification ended with status {done.returncode}"


def _show(relocatable: Path, exports: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Makes functions that are hidden in their archive visible, so that the linker may export them, without which each
    call would pass through a jump; returns those that are there."""
    exports = list(exports)
    wanted = {inner for _, inner in exports}
    data = bytearray(relocatable.read_bytes())
    (sections,) = struct.unpack_from("<Q", data, SECTION_HEADERS_AT)
    size, count = struct.unpack_from("<HH", data, SECTION_COUNT_AT)
    tables = [struct.unpack_from("<IIQQQQIIQQ", data, sections + size * i) for i in range(count)]
    present = set()
    for _, kind, _, _, offset, length, link, _, _, entry in tables:
        if kind != SHT_SYMTAB:
            continue
        names = tables[link][4]
        for at in range(offset, offset + length, entry):
            name_at, info, other, section = struct.unpack_from("<IBBH", data, at)
            start = names + name_at
            name = data[start : data.index(0, start)].decode(errors="replace")
            if name not in wanted or section == 0:
                continue
            if info & 15 == STT_GNU_IFUNC:
                raise BrokenError(f"{name} is an IFUNC there, which chooses for itself")
            data[at + 5] = other & ~STV_MASK
            present.add(name)
    relocatable.write_bytes(data)
    return [(outer, inner) for outer, inner in exports if inner in present]


def _tier_of(library: Path) -> str:
    """The widest registers that the code names; how a package was built is not known otherwise."""
    if not shutil.which("objdump"):
        return ""
    code = run("objdump", "-d", "--no-show-raw-insn", library).stdout
    return "avx512" if "%zmm" in code else "avx2" if "%ymm" in code else "sse2"
