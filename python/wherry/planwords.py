"""What a plan says, in words."""

from __future__ import annotations

from collections.abc import Mapping

from wherry.plans import OFF, Cpu, Plan, size_text

# Whose loops have a choice of vectors and lines; the ladder's, and those of shorter vectors, have none.
_CHOOSES_LOOPS = ("avx512", "avx512_together")


def describe_cpu(cpu: Cpu) -> str:
    words = [f"{cpu.vendor} family {cpu.family}"]
    words.append("any model" if cpu.model is None else f"model {cpu.model}")
    if cpu.stepping is not None:
        words.append(f"stepping {cpu.stepping}")
    if cpu.present:
        words.append("with " + " ".join(cpu.present))
    if cpu.absent:
        words.append("without " + " ".join(cpu.absent))
    if cpu.last_level:
        words.append(f"last-level cache {size_text(cpu.last_level)}")
    return ", ".join(words)


def _from(size: int) -> str:
    return "never" if size == OFF else f"from {size_text(size)}"


def _methods(t: Mapping[str, int], side: str, choice: str) -> str:
    start, end, stream = (t[f"{side}_{key}"] for key in ("rep_from", "rep_to", "stream_from"))
    words = ["vector loop"]
    if start != OFF:
        text = f"rep {'movsb' if side == 'copy' else 'stosb'} from {size_text(start)}"
        if end != OFF:
            text += f" to {size_text(end)}"
        conditions = []
        if (recent := t[f"{side}_rep_recent_from"]) != start:
            conditions.append(f"written lately: {_from(recent)}")
        if side == "copy" and t["copy_rep_slow_ahead"]:
            every = t["copy_rep_all_from"]
            conditions.append(f"1 to {t['copy_rep_slow_ahead']} B ahead: {_from(every)}")
        if conditions:
            text += f" (destination {'; '.join(conditions)})"
        words.append(text)
    past = "never past the caches" if stream == OFF else f"past the caches from {size_text(stream)}"
    if stream != OFF and (recent := t[f"{side}_stream_recent_from"]) != stream:
        past += f" (destination touched lately: {_from(recent)})"
    if side == "copy" and stream != OFF and (parts := t["copy_parts_from"]) != OFF:
        past += " in five parts at once"
        if parts > stream:
            past += f" (from {size_text(parts)})"
    words.append(past)
    if side == "copy" and (ahead := t["copy_backward_ahead"]):
        words.append(f"loop backward with the destination 1 to {ahead} B ahead")
    if side == "copy":
        words += loops(choice, t["copy_ymm_from"], t["copy_source_lines_to"])
    return ", ".join(words)


def loops(choice: str, ymm: int, lines: int) -> list[str]:
    """How copies by the loops of a choice go otherwise than by its own vectors and by lines of the source."""
    words = []
    if choice in _CHOOSES_LOOPS:
        if ymm != OFF:
            words.append(f"by 32-byte vectors from {size_text(ymm)}")
        if lines != OFF:
            begin = f" from {size_text(lines)}" if lines else ""
            words.append(f"by lines of the destination{begin}")
    return words


def describe(plan: Plan) -> list[tuple[str, str]]:
    """Label and text, for a person."""
    small = {
        "avx512_ladder": " (a branch for each count of blocks: for sizes that repeat)",
        "avx512_together": " (one run of instructions to 255 bytes: for sizes that nobody can foresee)",
    }
    pairs = [
        ("Plan", plan.name),
        ("For", describe_cpu(plan.cpu)),
        ("Choice", plan.choice + small.get(plan.choice, "")),
        ("Copies", _methods(plan.thresholds, "copy", plan.choice)),
        ("Sets", _methods(plan.thresholds, "set", plan.choice)),
    ]
    if plan.made:
        pairs.append(("Made", ", ".join(f"{key} {value}" for key, value in plan.made.items())))
    return pairs


def as_dict(plan: Plan) -> dict:
    """For a program; a threshold of null means never, or no end."""
    return {
        "name": plan.name,
        "choice": plan.choice,
        "cpu": {
            "vendor": plan.cpu.vendor,
            "family": plan.cpu.family,
            "model": plan.cpu.model,
            "stepping": plan.cpu.stepping,
            "with": list(plan.cpu.present),
            "without": list(plan.cpu.absent),
            "last_level": plan.cpu.last_level,
        },
        "thresholds": {k: None if v == OFF else v for k, v in plan.thresholds.items()},
        "made": plan.made,
    }
