"""The page: one file that opens from disk, needs no network, and tells all of one or several runs."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources

from wherry import bootcache, dimensions, machine, outputs, shellwords, version
from wherry.clock import Clock, clock_of
from wherry.compare import apart
from wherry.errors import FailedError
from wherry.problems import grouped
from wherry.report import drawing, hypertext, look, pictures, words
from wherry.report.hypertext import escape, paragraph
from wherry.report.picture import Picture, packed
from wherry.report.words import attempt
from wherry.tables import Block

# What the page's own script takes from the drawing library.
_TAKEN = "window.wherryDrawing = vegaEmbed;"


@dataclass(frozen=True)
class Run:
    """A run and what it is called where there are several."""

    run: dict
    file: str
    letter: str = ""

    def label(self) -> str:
        own = self.run["machine"]
        told = [text for text in (own["host"], own["cpu"]["model"]) if text] or [self.file]
        text = ", ".join([*told, self.run["started"][:10]])
        return f"{self.letter}: {text}" if self.letter else text


class _Page:
    def __init__(self, runs: Sequence[Run]):
        self.runs = runs
        self.drawn: dict[str, dict] = {}
        self.found = {
            (i, e["name"]): attempt(lambda r=r, e=e: pictures.of(r.run, e["name"]), [])
            for i, r in enumerate(runs)
            for e in r.run["experiments"]
        }
        sections: dict[str, list[str]] = {}
        for (_, name), found in self.found.items():
            own = [n for picture in found if not picture.own_look for n in picture.series]
            sections.setdefault(name, []).extend(own)
        self.styles = look.styles(
            [list(dict.fromkeys(own)) for own in sections.values()],
            [p.series for found in self.found.values() for p in found if not p.own_look],
        )

    # ---- pictures -----------------------------------------------------------------------------------------------

    def picture(self, own: Picture) -> str:
        number = f"p{len(self.drawn) + 1}"
        styles = look.styles([own.series]) if own.own_look else self.styles
        for view in own.views:
            look.dress(view.spec, own.series, styles)
        self.drawn[number] = {
            "title": own.title,
            "columns": packed(own.columns),
            "views": [{"name": v.name, "spec": v.spec} for v in own.views],
            "series": own.series,
            "light": [styles[name].light for name in own.series],
            "dark": [styles[name].dark for name in own.series],
            "tips": own.tips,
            "layout": vars(own.layout),
            "one": own.one,
            "heavy": own.heavy,
        }
        choice = ""
        if len(own.views) > 1:
            choice = "".join(
                f'<label><input type="radio" name="{number}" value="{i}"{" checked" if i == 0 else ""}>'
                f"<span>{escape(view.name)}</span></label>"
                for i, view in enumerate(own.views)
            )
            choice = f'<fieldset class="views"><legend class="unseen">Quantity</legend>{choice}</fieldset>'
        return (
            f'<figure id="{number}"><figcaption>{escape(own.title)}</figcaption>{choice}'
            f'<div class="drawing" role="img" aria-label="{escape(own.alt, 2000)}"></div>'
            f'<p class="note">{escape(own.how, 600)}</p>'
            '<details class="figures"><summary>Figures of this picture as a table</summary>'
            '<div class="rows"></div></details></figure>'
        )

    def toggles(self, series: Sequence[str]) -> str:
        boxes = []
        for name in series:
            style = self.styles.get(name) or look.styles([series])[name]
            boxes.append(
                f'<label><input type="checkbox" checked value="{escape(name)}">'
                f"{_swatch(style)}<span><bdi>{escape(name)}</bdi></span></label>"
            )
        return (
            '<fieldset class="toggles"><legend>Show</legend>'
            '<button type="button" class="all">all</button><button type="button" class="none">none</button>'
            f"{''.join(boxes)}</fieldset>"
        )

    # ---- sections -------------------------------------------------------------------------------------------------

    def beside(self, parts: Sequence[str]) -> str:
        """One part for each run, under its label where there are several. An empty one is of a run that lacks it."""
        if len(self.runs) == 1:
            return parts[0]
        there = [(run, part) for run, part in zip(self.runs, parts, strict=True) if part]
        columns = "".join(
            f'<div class="run"><h3>{escape(run.label())}</h3>{part}</div>' for run, part in there
        )
        return f'<div class="runs" style="--runs:{len(there)}">{columns}</div>'

    def experiment(self, name: str) -> str:
        there = [any(e["name"] == name for e in r.run["experiments"]) for r in self.runs]
        found = [self.found.get((i, name), []) for i in range(len(self.runs))]
        _share_scales(found)

        def each(make: Callable[[dict], str]) -> str:
            return self.beside(
                [make(r.run) if has else "" for r, has in zip(self.runs, there, strict=True)]
            )

        # Those that share their toggles together, in the order in which the first of each comes.
        order = dict.fromkeys(picture.own_look for own in found for picture in own)
        groups = [
            self.group([[p for p in own if p.own_look is apart] for own in found])
            for apart in order
        ]
        drawn = "".join(groups) or paragraph("Nothing of it can be drawn.", "note")
        return (
            f'<section id="{_anchor(name)}"><h2>{escape(name)}</h2>{paragraph(words.shows(name))}'
            f"{each(lambda run: paragraph(words.method(run, name), 'note'))}{drawn}"
            f'<details class="tables"><summary>Tables</summary>{each(lambda run: _tables(run, name))}</details>'
            "</section>"
        )

    def group(self, found: Sequence[Sequence[Picture]]) -> str:
        """Pictures that share their toggles; those of several runs with one key stand side by side."""
        series = [name for own in found for picture in own for name in picture.series]
        if not series:
            return ""
        keys = dict.fromkeys(picture.key for own in found for picture in own)
        rows = [
            self.beside(["".join(self.picture(p) for p in own if p.key == key) for own in found])
            for key in keys
        ]
        return (
            f'<div class="group">{self.toggles(dimensions.in_order(series))}{"".join(rows)}</div>'
        )

    def summary(self) -> str:
        parts = []
        for own in self.runs:
            lines = []
            for e in own.run["experiments"]:
                name = e["name"]
                said = attempt(lambda run=own.run, name=name: words.summary(run, name), [])
                said = said or ["No verdict: nothing was compared."]
                lines.append(
                    f'<li><a href="#{_anchor(name)}">{escape(name)}</a> {"".join(map(paragraph, said))}</li>'
                )
            cut = "" if not own.run["interrupted"] else paragraph("The run was interrupted.", "bad")
            bad = sum(p["kind"] != "skip" for p in own.run["problems"])
            if bad:
                cut += f'<p class="bad">{bad} problem{"s" if bad != 1 else ""}: <a href="#problems">see below</a>.</p>'
            parts.append(
                f'{cut}<ul class="summary">{"".join(lines)}</ul>{paragraph(words.uncontrolled(own.run))}'
            )
        common = "".join(
            paragraph(attempt(lambda b=b: _in_common(self.runs[0], b), "")) for b in self.runs[1:]
        )
        return f'<section id="summary"><h2>Summary</h2>{common}{self.beside(parts)}</section>'

    def machines(self) -> str:
        return f'<section id="machine"><h2>Machine</h2>{self.beside([_machine(r) for r in self.runs])}</section>'

    def methods(self) -> str:
        parts = [_method(r) for r in self.runs]
        kinds = {_kind(own.run) for own in self.runs}
        how = "".join(text for kind, text in _HOW.items() if kind in kinds)
        return f'<section id="method"><h2>Noise floor and method</h2>{how}{self.beside(parts)}</section>'

    def problems(self) -> str:
        parts = []
        for own in self.runs:
            lines = [
                f"<li{'' if kind == 'skip' else ' class=bad'}>{escape(line, 600)}</li>"
                for kind, line in grouped(own.run)
            ]
            parts.append(
                f"<ul>{''.join(lines)}</ul>"
                if lines
                else paragraph(
                    "Not known: another tool measured; what its file tells of failures is under Method."
                    if own.run.get("source")
                    else "None: nothing was skipped, wrong or crashed."
                )
            )
        return f'<section id="problems"><h2>Problems</h2>{self.beside(parts)}</section>'

    def html(self) -> str:
        names = list(dict.fromkeys(e["name"] for r in self.runs for e in r.run["experiments"]))
        body = [
            self.summary(),
            *(self.experiment(name) for name in names),
            self.machines(),
            self.methods(),
            self.problems(),
        ]
        links = [("summary", "Summary"), *((_anchor(n), n) for n in names)]
        links += [("machine", "Machine"), ("method", "Method"), ("problems", "Problems")]
        nav = "".join(f'<a href="#{anchor}">{escape(text, 40)}</a>' for anchor, text in links)
        return _whole(
            [r.label() for r in self.runs],
            nav,
            "".join(body),
            {
                "look": {"light": look.config(False), "dark": look.config(True)},
                "pictures": self.drawn,
            },
        )


def page(runs: Sequence[Run]) -> str:
    return _Page(runs).html()


# ---- parts ----------------------------------------------------------------------------------------------------------


def _anchor(name: str) -> str:
    return "x-" + "".join(c if c.isascii() and c.isalnum() else "-" for c in name)[:60]


def _swatch(style: look.Style) -> str:
    """A piece of the line, drawn as in the picture; the page's shade chooses the colour."""
    dash = ",".join(map(str, style.dash)) if style.dash != [1, 0] else "none"
    shapes = {
        "circle": '<circle cx="16" cy="6" r="4"/>',
        "square": '<path d="M12.5 2.5h7v7h-7z"/>',
        "triangle-up": '<path d="M16 1.5l4.5 8h-9z"/>',
        "triangle-down": '<path d="M16 10.5l4.5-8h-9z"/>',
        "triangle-right": '<path d="M20.5 6l-8-4.5v9z"/>',
        "triangle-left": '<path d="M11.5 6l8-4.5v9z"/>',
        "diamond": '<path d="M16 1l5 5-5 5-5-5z"/>',
        "cross": '<path d="M14.5 1.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z"/>',
        look.SALTIRE: '<path d="M12 4l2-2 2 2 2-2 2 2-2 2 2 2-2 2-2-2-2 2-2-2 2-2z"/>',
    }
    return (
        f'<svg class="swatch" width="32" height="12" aria-hidden="true" style="--on-light:{style.light};'
        f'--on-dark:{style.dark}"><path class="line" d="M1 6h30" stroke-dasharray="{dash}"/>'
        f"{shapes.get(style.shape, '')}</svg>"
    )


def _in_common(a: Run, b: Run) -> str:
    return apart.in_common((a.letter, b.letter), (a.file, b.file), (a.run, b.run))


def _share_scales(found: Sequence[Sequence[Picture]]) -> None:
    """Runs side by side are seen on one scale."""
    if len(found) < 2:
        return
    views: dict[tuple[str, str, str], list[tuple[dict, tuple[float, float]]]] = {}
    for own in found:
        for picture in own:
            for view in picture.views:
                for name, scale in view.scales.items():
                    views.setdefault((picture.key, view.name, name), []).append(
                        (scale, view.extents[name])
                    )
    for shared in views.values():
        low, high = min(e[0] for _, e in shared), max(e[1] for _, e in shared)
        for scale, _ in shared:
            scale["domain"] = [low, high]


def _tables(run: dict, name: str) -> str:
    blocks = words.blocks(run, name)
    if blocks is None:
        return paragraph(
            "This Wherry has no tables for it; the figures are below the pictures.", "note"
        )
    then = words.then_and_now(run, name)
    if then:
        blocks = [*blocks, Block("Then and now"), *then]
    return "".join(hypertext.block(own) for own in blocks)


def _machine(own: Run) -> str:
    record = own.run["machine"]
    heading = [("File", own.file), ("Host", record["host"] or "not told")]
    heading += attempt(lambda: machine.heading(record)[:-1], [("CPU", record["cpu"]["model"])])
    clock = attempt(lambda: clock_of(own.run), Clock(None, False))
    if clock.measured:
        heading.append(("Clock under load", clock.measured_in_words()))
    left = record["uncontrolled"]
    parts = [hypertext.pairs(heading)]
    if left:
        rows = [(item["what"], item["why"], item["do"]) for item in left]
        parts.append("<h3>What was not controlled</h3>")
        parts.append(
            hypertext.table(
                ["what", "why it matters", "what could be done"], rows, "What was not controlled"
            )
        )
    else:
        parts.append(paragraph("Nothing is known that was not controlled."))
    return "".join(parts)


_HOW_ROUTINES = (
    "<p>Wherry measures all routines of a row interleaved: each round times every one of them once, in shuffled "
    "order, with one number of calls. A figure is the median over the rounds of all processes; a comparison is the "
    "median of the ratios within rounds, with a 95 % interval that resamples whole processes. The noise floor is what "
    "a routine differs from itself; a difference inside it is a tie, and a larger one that may be chance is undecided. "
    "Rounds in which the thread migrated, was descheduled or lost time to the hypervisor, or beside which the clock "
    "was slow, are thrown away and counted. Every routine was verified before and after: a wrong one has no figure.</p>"
)
_HOW_PROGRAMS = (
    "<p>Wherry runs a program under two environments in turns, A B B A or B A A B in each round. A figure is the "
    "median of a side's runs; a comparison is the median of the ratios of the rounds, with a 95 % interval. The noise "
    "floor is what a side differs from itself in these runs; a difference inside it is a tie. Times are those of the "
    "program and all that it starts.</p>"
)
_HOW_IMPORTED = (
    "<p>Figures that were imported are another tool's: a figure is the median of what its file gives. How it measured, "
    "how far a routine differs from itself there, and whether the bytes were right, is not known here.</p>"
)
# By what was measured.
_HOW = {"routines": _HOW_ROUTINES, "programs": _HOW_PROGRAMS, "imported": _HOW_IMPORTED}


def _kind(run: dict) -> str:
    if run.get("source"):
        return "imported"
    return "programs" if words.of_programs(run) else "routines"


def _method(own: Run) -> str:
    run, method = own.run, own.run["method"]
    rows = [(e["name"], words.method(run, e["name"])) for e in run["experiments"]]
    settings = [
        ("Measured", f"{run['started']} to {run['finished']}"),
        ("Wherry", run["wherry"]),
        ("Command", shellwords.line(method.get("command", ()))),
        ("Seed", method["seed"]),
        (
            "Pinned to",
            attempt(lambda: _pinned(run), "not told"),
        ),
        ("Peers", ", ".join(method["peers"]) or "none"),
        (
            "Verified",
            "briefly, before measuring" if method.get("verified") else "each row, before and after",
        ),
    ]
    if method["quick"]:
        settings.append(("Quick", "the short form of the experiments"))
    if words.of_programs(run):
        settings = [pair for pair in settings if pair[0] not in ("Pinned to", "Peers", "Verified")]
    rows = rows or [("none", "")]
    source = run.get("source")
    if source:
        settings = [
            ("Imported from", f"{source['tool']}, {source['file']}"),
            ("How", "as that tool measures; what it does not tell is left out"),
            *(("Note", note) for note in source.get("notes", ())),
        ]
    told = hypertext.table(["experiment", "how it was measured"], rows, "Noise floor by experiment")
    return hypertext.pairs(settings) + told


def _pinned(run: dict) -> str:
    cpus = sorted({cpu for e in run["experiments"] for cpu in e.get("cpus") or ()})
    pin = run["method"].get("pin")
    if len(cpus) > 1 and all("cpu" in row for row in run["rows"]):
        return f"CPUs {', '.join(map(str, cpus))}, each row to one of them"
    if pin is not None:
        return f"CPU {pin}"
    return "the CPU it started on" + (f": CPU {cpus[0]}" if len(cpus) == 1 else "")


def _read(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


@functools.cache
def library() -> str:
    """The drawing library as the installed package holds it; to bundle it takes two seconds, so that it is kept."""
    try:
        import vl_convert
    except ModuleNotFoundError:
        raise FailedError(
            "the package vl-convert-python is missing; install it, or set up again: make bench"
        ) from None

    def made() -> dict:
        with drawing.engine():
            return {"script": vl_convert.javascript_bundle(_TAKEN)}

    known = hashlib.sha256(f"{vl_convert.__version__}\n{_TAKEN}".encode()).hexdigest()
    own = bootcache.kept(
        bootcache.path("drawing"),
        known,
        lambda found: isinstance(found, dict) and isinstance(found.get("script"), str),
        made,
        fresh=False,
    )
    return f"(() => {{{own['script']}}})();"


def _script(text: str) -> tuple[str, str]:
    """(element, what the page's policy calls it): only scripts of this sum run in the page."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script")
    text = text.replace("<!--", "<\\!--")
    total = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"<script>{text}</script>", f"'sha256-{total}'"


def _whole(labels: Sequence[str], nav: str, body: str, figures: dict) -> str:
    scripts = [_script(library()), _script(_read("page.js"))]
    # No request of any kind, no script but ours, and no code made from text.
    policy = (
        f"default-src 'none'; script-src {' '.join(name for _, name in scripts)}; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    title, below = labels[0], ""
    if len(labels) > 1:
        title = f"{len(labels)} runs side by side"
        below = "".join(f"<li>{escape(label)}</li>" for label in labels)
        below = f'<ul class="labels">{below}</ul>'
    stamp = escape(f"Wherry {version()}")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'{outputs.PAGE_MARK}\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>Wherry: {escape(title, 200)}</title>\n<style>\n{_read('page.css')}</style>\n"
        # What a script would draw, fill or answer is not there to be seen empty or to be pressed in vain.
        "<noscript><style>#shade, .group { display: none; }</style></noscript>\n</head>\n<body>\n"
        '<a class="skip" href="#main">To the report</a>\n'
        f'<header><div><p class="name">Wherry report</p><h1>{escape(title, 600)}</h1>{below}</div>'
        '<button type="button" id="shade">Dark</button></header>\n'
        f'<nav aria-label="Sections">{nav}</nav>\n<main id="main">\n'
        "<noscript><p>The pictures, and the figures below each, need JavaScript and are left out; the tables are here "
        "without it.</p></noscript>\n"
        f"{body}\n</main>\n<footer><p>{stamp}. This page is one file and asks no network.</p></footer>\n"
        '<div id="tip" hidden></div>\n'
        f'<script type="application/json" id="figures">{hypertext.script_json(figures)}</script>\n'
        f"{scripts[0][0]}\n{scripts[1][0]}\n</body>\n</html>\n"
    )
