"""A fleet's report as one self-contained page: no script, and every text out of a run file escaped."""

from __future__ import annotations

import math

from wherry import outputs
from wherry.fleet import words
from wherry.fleet.summary import Curve, Report
from wherry.report.hypertext import escape, paragraph
from wherry.report.hypertext import table as _table

WIDTH, HEIGHT, EDGE = 640, 260, 48
_COLOURS = ("#1f6fb2", "#c2571a")
_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;
background:#fff}table{border-collapse:collapse;font-size:.9rem}th,td{padding:.2rem .6rem;text-align:left;
border-bottom:1px solid #ddd;overflow-wrap:anywhere}.scrolls{overflow-x:auto}.unseen{position:absolute;left:-9999px}
svg{max-width:100%;height:auto}@media (prefers-color-scheme:dark){body{color:#e6e6e6;background:#16181b}
th,td{border-color:#3a3d42}svg text{fill:#e6e6e6}}"""


def _svg(curves: list[Curve]) -> str:
    """Median and the band that holds nine of ten hosts, both axes logarithmic."""
    points = [p for curve in curves for p in curve.points]
    if not points:
        return ""
    xs = [math.log(p[0]) for p in points]
    ys = [math.log(v) for p in points for v in p[1:]]
    x0, x1, y0, y1 = min(xs), max(xs), min(ys), max(ys)

    def at(size: float, ns: float) -> str:
        x = EDGE + (math.log(size) - x0) / (x1 - x0 or 1) * (WIDTH - 2 * EDGE)
        y = HEIGHT - EDGE - (math.log(ns) - y0) / (y1 - y0 or 1) * (HEIGHT - 2 * EDGE)
        return f"{x:.1f},{y:.1f}"

    parts = []
    for curve, colour in zip(curves, _COLOURS, strict=False):
        band = [at(p[0], p[3]) for p in curve.points] + [at(p[0], p[2]) for p in curve.points[::-1]]
        line = " ".join(at(p[0], p[1]) for p in curve.points)
        parts.append(f'<polygon points="{" ".join(band)}" fill="{colour}" opacity=".2"/>')
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, _, y = at(curve.points[-1][0], curve.points[-1][1]).partition(",")
        parts.append(
            f'<text x="{float(x) + 4:.0f}" y="{y}" fill="{colour}" font-size="12">{escape(curve.routine, 20)}</text>'
        )
    first, last = math.exp(x0), math.exp(x1)
    labels = [
        (EDGE, HEIGHT - EDGE + 16, words.size_in_words(first)),
        (WIDTH - EDGE - 30, HEIGHT - EDGE + 16, words.size_in_words(last)),
        (2, HEIGHT - EDGE, f"{math.exp(y0):.3g} ns"),
        (2, EDGE, f"{math.exp(y1):.3g} ns"),
    ]
    parts += [f'<text x="{x}" y="{y}" font-size="12">{escape(t)}</text>' for x, y, t in labels]
    title = escape(f"{curves[0].what}: time of one call by size")
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">{"".join(parts)}</svg>'


def _of(lines: list[list[str]], heads: tuple[str, ...], caption: str) -> str:
    return _table(heads, lines, caption)


def page(report: Report) -> str:
    parts = ["<h1>The fleet</h1>", *(paragraph(line) for line in words.summary(report))]
    parts.append("<h2>Hosts that differ from their own model</h2>")
    if report.findings:
        rows = [[f.host.name, f.kind, f.group.title, f.words] for f in report.findings]
        parts.append(_of(rows, ("host", "what", "group", "how it differs"), "hosts that differ"))
    elif any(own.judged for own in report.groups):
        parts.append(paragraph("None that could be told from chance."))
    else:
        parts.append(paragraph("Not told: no group has the five hosts that tell what is usual."))
    if report.changes:
        rows = [
            [c.title, str(c.hosts), f"{c.ratio:.3f}", words.interval(c), c.verdict]
            for c in report.changes
        ]
        heads = ("what", "hosts", "time after / before, ×", "interval, ×", "verdict")
        parts += ["<h2>Before and after</h2>", _of(rows, heads, "before and after")]
    parts.append("<h2>By CPU model, hypervisor and C library</h2>")
    for own in report.groups:
        parts.append(f"<h3>{escape(own.group.title)}</h3>")
        plans = ", ".join(f"{plan} ({share:.0%})" for plan, share in own.plans[:4])
        floor = "-" if own.floor is None else words.percent(own.floor)
        scatter = "-" if own.scatter is None else words.percent(own.scatter)
        text = f"{words.plural(len(own.group.hosts), 'host')}; noise floor {floor}; scatter {scatter}; plan {plans}."
        parts += [paragraph(text), _svg(own.curves)]
    if report.unfit:
        rows = [list(pair) for pair in report.unfit]
        parts += ["<h2>Left out</h2>", _of(rows, ("file", "why"), "files that were left out")]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>The fleet</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'{outputs.PAGE_MARK}<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )
