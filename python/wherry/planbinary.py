"""A plan as the library maps it: a header and one record a plan, checked (docs/plan.md; src/planfile reads it)."""

from __future__ import annotations

import struct
import zlib

from wherry.plans import CHOICES, FEATURES, FIELDS, Cpu, Plan, fault

MAGIC = b"WHPLAN\r\n"
VERSION = 7
MOST_PLANS = 64
ANY = (1 << 32) - 1
# magic, version, plans, bytes of the whole file, bytes of a record, CRC-32 of all with this word 0, nothing
HEADER = struct.Struct("<8sIIIIII")
# vendor; family, model, stepping, with, without, choice; last level; the thresholds; name
RECORD = struct.Struct(f"<12sIIIIIIIQ{len(FIELDS)}Q48s")
_CRC_AT = 24


class BadPlanError(ValueError):
    """What is wrong with the bytes, as the end of a sentence that begins with the file's name."""


def _mask(features: tuple[str, ...]) -> int:
    return sum(1 << FEATURES.index(name) for name in features)


def _features(mask: int) -> tuple[str, ...]:
    if mask >> len(FEATURES):
        raise BadPlanError("names CPU features that this version does not know")
    return tuple(name for i, name in enumerate(FEATURES) if mask >> i & 1)


def _text(padded: bytes, what: str) -> str:
    text, _, rest = padded.partition(b"\0")
    if not text or rest.strip(b"\0") or not all(0x20 <= byte < 0x7F for byte in text):
        raise BadPlanError(f"has a {what} that is no text")
    return text.decode("ascii")


def encode(plans: list[Plan]) -> bytes:
    body = b""
    for plan in plans:
        cpu = plan.cpu
        body += RECORD.pack(
            cpu.vendor.encode(),
            cpu.family,
            ANY if cpu.model is None else cpu.model,
            ANY if cpu.stepping is None else cpu.stepping,
            _mask(cpu.present),
            _mask(cpu.absent),
            CHOICES.index(plan.choice),
            0,
            cpu.last_level or 0,
            *(plan.thresholds[field] for field in FIELDS),
            plan.name.encode(),
        )
    length = HEADER.size + len(body)

    def whole(crc: int) -> bytes:
        return HEADER.pack(MAGIC, VERSION, len(plans), length, RECORD.size, crc, 0) + body

    return whole(zlib.crc32(whole(0)))


def decode(data: bytes) -> list[Plan]:
    if data[: len(MAGIC)] != MAGIC:
        raise BadPlanError("is not a compiled plan")
    if len(data) < HEADER.size:
        raise BadPlanError("is cut short")
    _, version, count, length, record, crc, zero = HEADER.unpack_from(data)
    if version != VERSION:
        raise BadPlanError(
            f"is of plan format {version}; this version reads {VERSION}; compile it again"
        )
    if len(data) != length:
        raise BadPlanError(f"is cut short, or longer than it says ({len(data)} of {length} bytes)")
    if zlib.crc32(data[:_CRC_AT] + b"\0\0\0\0" + data[_CRC_AT + 4 :]) != crc:
        raise BadPlanError("is damaged: its checksum is wrong")
    if (
        zero
        or record != RECORD.size
        or not 1 <= count <= MOST_PLANS
        or length != HEADER.size + count * RECORD.size
    ):
        raise BadPlanError("has a header that contradicts itself")
    plans = []
    for at in range(HEADER.size, length, RECORD.size):
        vendor, family, model, stepping, present, absent, choice, zero, level, *rest = (
            RECORD.unpack_from(data, at)
        )
        *values, name = rest
        if zero or choice >= len(CHOICES):
            raise BadPlanError("has a choice that this version does not know")
        plan = Plan(
            _text(name, "name"),
            CHOICES[choice],
            Cpu(
                _text(vendor, "vendor"),
                family,
                None if model == ANY else model,
                None if stepping == ANY else stepping,
                _features(present),
                _features(absent),
                level or None,
            ),
            dict(zip(FIELDS, values, strict=True)),
        )
        wrong = fault(plan)
        if wrong:
            raise BadPlanError(f"has a plan '{plan.name}' with {wrong}")
        plans.append(plan)
    return plans
