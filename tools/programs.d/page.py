"""The page that tools/programs writes: a table for the default plan, one for the tuned plan, and what they come to."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from programs import PROGRAMS
from wherry import machine
from wherry.ab.verdict import change
from wherry.units import percent

# From this ceiling on a program has something to gain.
HIGH = 0.1
DEFAULT, TUNED = "default", "tuned"


def _bare(text: str) -> str:
    return text.replace(" %", "")


def _cpu(own: Mapping, which: str) -> Mapping | None:
    return own["measured"].get(which, {}).get("cpu")


def _prediction(own: Mapping, which: str) -> Mapping | None:
    return own["predictions"].get(which)


def _predicted(own: Mapping | None) -> str:
    if own is None:
        return "-"
    low, high, middle = (_bare(change(1 + own[key])) for key in ("low", "high", "change"))
    calls = "" if own.get("turned") else ", by calls"
    return f"{middle} [{low}, {high}]{calls}" + ("" if own["measurable"] else ", not measurable")


def _measured(own: Mapping | None) -> str:
    if own is None or own["ratio"] is None:
        return "-"
    middle, low, high = (_bare(change(own["ratio"][key])) for key in ("median", "low", "high"))
    return f"{middle} [{low}, {high}] ±{_bare(percent(own['noise_floor']))}"


def within(predicted: Mapping, measured: Mapping) -> bool:
    """Whether the predicted change lies in the interval of the measured one."""
    return measured["ratio"]["low"] <= 1 + predicted["change"] <= measured["ratio"]["high"]


def agreement(predicted: Mapping | None, measured: Mapping | None) -> str:
    """Whether what was predicted and what was measured are the same."""
    if predicted is None or measured is None or measured["ratio"] is None:
        return "-"
    called = measured["call"]
    seen = measured["ratio"]["median"] - 1
    if not predicted["measurable"]:
        if called == "tie":
            return "yes: nothing claimed, nothing seen"
        same = (predicted["change"] < 0) == (seen < 0)
        return f"nothing claimed; sign {'right' if same else 'wrong'}"
    if called == "tie":
        return (
            "undecided: ab's interval holds the claim"
            if within(predicted, measured)
            else "no: claimed, not seen"
        )
    if called != ("faster" if predicted["change"] < 0 else "slower"):
        return "no: refuted"
    size = predicted["change"] / seen
    if 0.7 <= size <= 1.3:
        return "yes, size too"
    return f"in sign; {size:.1f} times the size"


def _share(own: Mapping) -> str:
    ceiling = own["ceiling"]
    if not ceiling:
        return "-"
    return _bare(f"{percent(ceiling['likely'])} ({percent(ceiling['at_most'])})")


def _table(results: Mapping[str, Mapping], which: str) -> list[str]:
    lines = [
        "| program | does | ceiling (at most) | predicted | measured, ± noise | ab says | do they agree? |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, own in results.items():
        predicted, measured = _prediction(own, which), _cpu(own, which)
        words = [name, PROGRAMS[name].idea, _share(own), _predicted(predicted)]
        words += [_measured(measured), measured["call"] if measured else "-"]
        words.append(agreement(predicted, measured))
        lines.append(f"| {' | '.join(words)} |")
    return lines


def _high(own: Mapping) -> bool:
    return bool(own["ceiling"]) and own["ceiling"]["likely"] >= HIGH


def _wrapped(text: str, hang: str = "") -> list[str]:
    return textwrap.wrap(text, 118, subsequent_indent=hang, break_on_hyphens=False)


def _list(names: list[str]) -> str:
    return ", ".join(names) if names else "none"


def _sentences(results: Mapping[str, Mapping], which: str) -> list[str]:
    """What the table comes to."""
    called: dict[str, list[str]] = {"faster": [], "slower": [], "tie": []}
    told: dict[str, str] = {}
    above = []
    inside = 0
    for name, own in results.items():
        measured = _cpu(own, which)
        if measured is None or measured["ratio"] is None:
            continue
        called[measured["call"]].append(name)
        told[name] = agreement(_prediction(own, which), measured)
        predicted = _prediction(own, which)
        inside += predicted is not None and within(predicted, measured)
        gain = 1 - measured["ratio"]["high"]
        if measured["call"] == "faster" and own["ceiling"] and gain > own["ceiling"]["at_most"]:
            above.append(name)
    high = [name for name in told if _high(results[name])]
    gained = [name for name in called["faster"] if name in high]
    refuted = [name for name, text in told.items() if text == "no: refuted"]
    unseen = [name for name, text in told.items() if text == "no: claimed, not seen"]
    open_ = [name for name, text in told.items() if text.startswith("undecided")]
    wrong = [name for name, text in told.items() if text.endswith("sign wrong")]
    right = [name for name, text in told.items() if text.endswith("sign right")]
    held = [name for name, text in told.items() if text.startswith(("yes, size", "in sign"))]
    calls = (
        f"Of {len(told)} programs {len(called['faster'])} are faster, {len(called['slower'])} slower "
        f"({_list(called['slower'])}), {len(called['tie'])} show no difference beyond the noise. "
        f"Of the {len(high)} whose ceiling is {percent(HIGH)} or more, {len(gained)} are faster: {_list(gained)}."
    )
    claims = (
        f"Claims of replay that ab confirmed: {len(held)}; refuted: {_list(refuted)}; claimed and not seen: "
        f"{_list(unseen)}; undecided, in ab's interval, which does not leave out the noise: {_list(open_)}. "
        f"Where replay claimed nothing and ab saw a difference, {len(right)} times it had the sign "
        f"that replay took for likelier; the other sign: {_list(wrong)}. "
        f"The predicted change lies in ab's interval for {inside} of {len(told)} programs. "
        f"Gains larger than the ceiling: {_list(above)}."
    )
    return [*_wrapped(calls), "", *_wrapped(claims)]


def _span(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} to {most}"


def page(results: Mapping[str, Mapping], left_out: Mapping[str, str]) -> str:
    """Programs with the highest ceiling first."""
    first = next(iter(results.values()))
    order = sorted(results, key=lambda n: -((results[n]["ceiling"] or {}).get("likely") or 0))
    results = {name: results[name] for name in order}
    rounds = [part["rounds"] for own in results.values() for part in own["measured"].values()]
    minutes = sum(own["seconds"] for own in results.values()) / 60
    lines = ["# Real programs: ceiling, prediction, measurement", ""]
    lines += _wrapped(
        "`tools/programs` made this page. None of the programs was written for the purpose; what each was given to do "
        "is in `tools/programs.d/programs.py`. Gains and losses stand here alike. All figures are per cent of CPU time "
        "(user and system, of all processes)."
    )
    lines.append("")
    for item in (
        "- **Ceiling**: what copies took by `wherry record`, which timed some (at most: with page faults, and as far "
        "as those that it timed may be from the mean).",
        "- **Predicted**: the change that `wherry replay` derives from the recording of several runs, with a 95 % "
        "interval: by how fast the whole program was in turns of 1 to 2 ms, or of tens of calls where these are of "
        "megabytes, with libc and with the drop-in; marked *by calls* where those tell too little: of calls of more than 1 KiB by what they took in such turns, of the "
        "others by what replay measures. *Not measurable*: nothing is claimed.",
        "- **Measured**: the change that `wherry ab` saw, libc against the drop-in in turns, "
        f"{_span(min(rounds) * 2, max(rounds) * 2)} runs of each, with a 95 % interval, ± the noise of the same runs. "
        "Of twenty programs whose two sides are equal about one is called different by chance.",
    ):
        lines += _wrapped(item, "  ")
    lines.append("")
    lines += [
        f"- {label}: {text}"
        for label, text in machine.heading(first["machine"])
        if label != "Caches"
    ]
    lines += ["", "## With the default plan", "", *_table(results, DEFAULT), ""]
    lines += _sentences(results, DEFAULT)
    if any(TUNED in own["measured"] for own in results.values()):
        lines += ["", "## With the plan that `wherry tune` made", "", *_table(results, TUNED), ""]
        lines += _sentences(results, TUNED)
    lines.append("")
    if left_out:
        listed = "; ".join(f"{name} ({why})" for name, why in left_out.items())
        lines += [*_wrapped(f"Left out: {listed}."), ""]
    tuned = (
        " and the time of `wherry tune`"
        if any(TUNED in o["measured"] for o in results.values())
        else ""
    )
    lines += _wrapped(
        f"It took {minutes:.0f} minutes{tuned}. `tools/programs --work DIR` keeps each recording and each run file."
    )
    lines.append("")
    return "\n".join(lines)
