"""A recorded mix as a page, or as a picture: how large its calls are, by calls and by bytes, who made them, and what
there is to gain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from wherry import outputs
from wherry.errors import FailedError, WherryError
from wherry.recording import host, summary, unseen
from wherry.recordings import Recording, command_in_words
from wherry.report import drawing, hypertext, look, mixtimes, still
from wherry.units import percent, plural, size_in_words

# A step of the curve each; more cannot be told apart.
MOST_POINTS = 600
CALLERS = 15
_AXIS = (
    "datum.value < 1 ? '0' : datum.value >= 1073741824 ? datum.value / 1073741824 + 'G' : "
    "datum.value >= 1048576 ? datum.value / 1048576 + 'M' : "
    "datum.value >= 1024 ? datum.value / 1024 + 'K' : datum.value"
)
BY = ("calls", "bytes")


def _right(recording: Recording) -> float:
    """Where curves end: so far behind the largest size that its step can be seen."""
    return 1.5 * max(
        (rows[-1][1] for op in recording.ops if (rows := recording.sizes(op))), default=1
    )


def _points(recording: Recording, op: str) -> list[dict]:
    """From nothing at the least size on, and on to the right when all are counted."""
    points: list[dict] = []
    right = max(_right(recording), 1)
    for by, column in (("calls", 2), ("bytes", 3)):
        rows = recording.sizes(op)
        same = {"op": op, "by": by}
        if rows:
            points.append({**same, "size": rows[0][1] or 0.5, "share": 0})
        whole = sum(row[column] for row in rows)
        running, last = 0, -1.0
        for number, row in enumerate(rows):
            running += row[column]
            share = running / whole if whole else 0
            if share - last < 1 / MOST_POINTS and number + 1 < len(rows):
                continue
            last = share
            points.append({**same, "size": row[1] or 0.5, "share": share})
        if rows:
            points.append({**same, "size": right, "share": points[-1]["share"]})
    return points


def _ticks(least: float, most: float) -> list[float]:
    """Powers of two, twelve at most; in less than three octaves what lies halfway too, so that there is one always."""
    first, last = math.floor(math.log2(least)), math.ceil(math.log2(most))
    if last - first > 3:
        return [2.0**k for k in range(first, last + 1, -(-(last - first) // 12))]
    halves = [n * 2.0**k for k in range(first, last + 1) for n in (1, 1.5)]
    return [tick for tick in halves if least <= tick <= most]


def spec(recording: Recording) -> dict:
    ops = list(recording.ops)
    colours = [own[0] for own in (look.WHERRY, *look.OTHERS)]
    points = [point for op in ops for point in _points(recording, op)]
    sizes = [point["size"] for point in points] or [1]
    names = {"title": None, "legend": {"orient": "top", "symbolType": "stroke"}}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {
            "text": f"{recording.name}: share of calls and of bytes in calls of so much at most",
            "subtitle": _subtitle(recording.document),
            "fontSize": 16,
            "subtitleFontSize": 12,
            "offset": 14,
        },
        "config": look.config(dark=False, still=True),
        "width": still.WIDTH - 80,
        "height": 320,
        "data": {"values": points},
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
        "encoding": {
            "x": {
                "field": "size",
                "type": "quantitative",
                "scale": {"type": "log", "base": 2, "nice": False},
                "title": "size of one call, bytes",
                "axis": {"labelExpr": _AXIS, "values": _ticks(min(sizes), max(sizes))},
            },
            "y": {
                "field": "share",
                "type": "quantitative",
                "scale": {"domain": [0, 1]},
                "title": "share up to this size",
                "axis": {"format": "%", "tickCount": 5},
            },
            "color": {
                "field": "op",
                "type": "nominal",
                "sort": ops,
                "scale": {"domain": ops, "range": colours[: len(ops)]},
            }
            | names,
            "strokeDash": {
                "field": "by",
                "type": "nominal",
                "sort": list(BY),
                "scale": {"domain": list(BY), "range": [[1, 0], [5, 4]]},
            }
            | names,
        },
    }


def _subtitle(document: Mapping) -> str:
    calls = sum(part["calls"] for part in document["ops"].values())
    size = sum(part["bytes"] for part in document["ops"].values())
    return f"{plural(calls, 'call')}, {size_in_words(size)}, {document.get('created', '')[:10]}"


def picture(recording: Recording, path: Path) -> bytes:
    import vl_convert

    if not recording.ops:
        raise WherryError(f"the mix {recording.name} holds no call; there is nothing to draw")
    try:
        with drawing.engine():
            if path.suffix.lower() == ".svg":
                return vl_convert.vegalite_to_svg(spec(recording)).encode()
            return vl_convert.vegalite_to_png(spec(recording), scale=still.SCALE)
    except ValueError as error:
        line = " ".join(str(error).split())[:160]
        raise FailedError(f"the mix {recording.name} could not be drawn: {line}") from None


def _ops(recording: Recording) -> str:
    heads = ["op", "calls", "bytes", "mean", "median", "p90", "p99", "largest", "called as"]
    rows = []
    for op in recording.ops:
        part = recording.document["ops"][op]
        points = [summary.percentile(part["sizes"], part["calls"], p) for p in (50, 90, 99)]
        rows.append(
            [
                op,
                f"{part['calls']:,}",
                size_in_words(part["bytes"]),
                size_in_words(part["bytes"] / part["calls"]),
                *(size_in_words(point) for point in points),
                summary.largest(part["sizes"], size_in_words),
                ", ".join(part.get("functions", ())),
            ]
        )
    return hypertext.table(heads, rows, "What was called")


def _callers(document: Mapping) -> str:
    rows = [
        [summary.caller(row), row["op"], size_in_words(row["bytes"]), f"{row['calls']:,}"]
        for row in document.get("callers", ())[:CALLERS]
    ]
    heads = ["from", "op", "bytes", "calls"]
    note = "Estimated from a sample: one call in 61, and all of 16 KiB and more."
    table = hypertext.table(heads, rows, "Who called")
    return f"<h2>Who called</h2>{hypertext.paragraph(note, 'note')}{table}" if rows else ""


def _threads(document: Mapping) -> str:
    rows = [
        [summary.thread(row), size_in_words(row["bytes"]), f"{row['calls']:,}"]
        for row in summary.busiest(document.get("threads", ()))
    ]
    table = hypertext.table(["thread", "bytes", "calls"], rows, "By thread")
    return f"<h2>By thread</h2>{table}" if rows else ""


def _places(recording: Recording) -> str:
    rows = []
    for op in recording.ops:
        places = recording.document["ops"][op].get("places", ())
        whole = sum(row[5] for row in places)
        if not whole:
            continue

        def share(wanted, places=places, whole=whole) -> str:
            return percent(sum(row[5] for row in places if wanted(row)) / whole)

        rows.append(
            [
                op,
                share(lambda row: row[1] == 64) if op != "set" else "",
                share(lambda row: row[2] == 64),
                share(lambda row: row[1] >= 8 and row[2] >= 8),
                share(lambda row: row[3] == "alias") if op != "set" else "",
                share(lambda row: row[4] != "none") if op != "set" else "",
            ]
        )
    heads = [
        "op",
        "source at 64 B",
        "destination at 64 B",
        "both at 8 B",
        "64–1536 B ahead",
        "overlap",
    ]
    return f"<h2>Where</h2>{hypertext.table(heads, rows, 'Where in memory')}" if rows else ""


def page(recording: Recording) -> str:
    from wherry.report.page import _read

    document = recording.document
    run, how = document.get("run") or {}, document.get("how") or {}
    pairs = [("command", command_in_words(how)), ("note", how.get("note", ""))]
    pairs += [
        ("programs", ", ".join(how.get("programs", ()))),
        ("recorded", document.get("created", "")),
    ]
    pairs += host.words(document.get("machine") or {})
    if run:
        times = (
            f"{run['elapsed_s']:.3g} s, user {run['user_s']:.3g} s, system {run['system_s']:.3g} s"
        )
        if run.get("collected"):
            times += ", read while it went on"
        if run.get("recovered"):
            times = "times not known, as it was recovered"
        runs = f"; {run['runs']:,} runs" if run.get("runs", 1) > 1 else ""
        processes = plural(run["processes"], "process", "processes")
        pairs.append(("run", f"{times}; {processes}, {plural(run['threads'], 'thread')}{runs}"))
    pairs += [
        ("not recorded", summary.unrecorded_in_words(row)) for row in run.get("unrecorded", ())[:20]
    ]
    ceiling = document.get("ceiling")
    said = "Ceiling: " + summary.ceiling_in_words(ceiling) + "." if ceiling else ""
    drawn = picture(recording, Path("x.svg")).decode() if recording.ops else ""
    body = [
        f"<h1>{hypertext.escape(recording.name)}: what it copies</h1>",
        hypertext.paragraph(said),
        hypertext.pairs((key, value) for key, value in pairs if value),
        f'<figure class="mix" role="img" aria-label="sizes by calls and by bytes">{drawn}</figure>',
        "<h2>What was called</h2>",
        _ops(recording) if recording.ops else hypertext.paragraph("No call was recorded."),
        mixtimes.tried(document),
        mixtimes.taken(recording),
        _places(recording),
        _callers(document),
        _threads(document),
        hypertext.paragraph(
            f"Not seen: {unseen.in_words((document.get('run') or {}).get('unseen'))}.", "note"
        ),
    ]
    # A range of sizes is one word; what a function was called as, in a last column, may be many.
    own = ".mix{background:#fff;margin:1em 0;padding:.5em}.mix svg{max-width:100%;height:auto}"
    own += "td:not(:last-child){white-space:nowrap}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'{outputs.PAGE_MARK}<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{hypertext.escape(recording.name)}: what it copies</title>"
        f"<style>{_read('page.css')}{own}</style></head><body><main>{''.join(body)}</main></body></html>\n"
    )
