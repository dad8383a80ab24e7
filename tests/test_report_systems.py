"""The pages of `switch`, `network`, `stripes`, `latency` and `loaded` in headless Chromium: every picture has its
marks, names what was counted, fits the page, and tells its bars apart by colour."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_report_browser import Opened, driver, write
from wherry import runfile
from wherry.report import look, page
from wherry.switching.words import LIVE

__all__ = ["driver"]
# Of each experiment: options beside --quick, titles that its axes have whatever stands first there.
CASES = {
    "switch": (
        ("--turns", "50"),
        {"time per round trip", "time per copy", "time per 2048 additions", "time per first use"},
    ),
    "network": (
        (),
        {
            "size of one message, bytes",
            "size of one frame, bytes",
            "time per frame",
            "10^6 bit/s",
        },
    ),
    "stripes": (("--disks", "3,9"), {"size of one block, bytes", "GB/s"}),
    "latency": (("--size", "4K,16K,256K,1M"), {"working set, bytes", "time per load"}),
    "loaded": (("--size", "4K,16K,64K"), {"working set, bytes", "time per load"}),
}
# Figures of a page, at least.
FEWEST = {"latency": 1, "loaded": 1}
# Mails have figures of the others.
UNPUBLISHED = ("latency", "loaded")
# Titles of all upright and level axes of a figure.
TITLES = """
return [...document.querySelectorAll(`#${arguments[0]} .role-axis-title text`)].map((t) => t.textContent);
"""
# Texts whose box leaves the drawing, and labels of one axis that lie on each other. Labels with no room are left out of
# a drawing by making them transparent: what nobody sees is neither.
CROWDED = """
const found = [], drawing = document.querySelector(`#${arguments[0]} svg`).getBoundingClientRect();
const seen = (text) => text.textContent.trim() && getComputedStyle(text).opacity > 0;
for (const text of document.querySelectorAll(`#${arguments[0]} svg text`)) {
  const box = text.getBoundingClientRect();
  if (seen(text) && (box.left < drawing.left - 1 || box.right > drawing.right + 1))
    found.push(`cut: ${text.textContent}`);
}
for (const axis of document.querySelectorAll(`#${arguments[0]} .role-axis-label`)) {
  const boxes = [...axis.querySelectorAll("text")]
    .filter(seen)
    .map((t) => [t.getBoundingClientRect(), t.textContent]);
  boxes.forEach(([a, name], i) => boxes.slice(i + 1).forEach(([b, other]) => {
    if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
      found.push(`on each other: ${name} and ${other}`);
  }));
}
return found;
"""
# Of the bars of a figure the colours, and of its series how many are shown in it.
COLOURS = """
const bars = [...document.querySelectorAll(`#${arguments[0]} .mark-rect.role-mark path`)];
return [new Set(bars.map((b) => b.getAttribute("fill"))).size,
        JSON.parse(document.getElementById("figures").textContent).pictures[arguments[0]].series.length];
"""


@pytest.fixture(scope="module", params=CASES)
def case(request, wherry_run: Path, tmp_path_factory) -> tuple[str, Path]:
    """A name and its page, of a run as short as it can be."""
    name, directory = request.param, tmp_path_factory.mktemp("page")
    words = ("--quick", "--processes", "1", "--rounds", "2", *CASES[name][0])
    done = subprocess.run(
        [*(sys.executable, "-m", "wherry", "bench", name), *words, "--save", directory / "r.json"],
        env={**os.environ, "WHERRY_RUN": str(wherry_run)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return name, write(directory, runfile.read(directory / "r.json"))


def test_pages_of_systems(driver, case):
    name, path = case
    titles = set()
    for width, shade in ((1280, "light"), (400, "dark")):
        opened = Opened(driver, path, width, shade)
        figures = opened.figures()
        assert (
            len(figures) >= FEWEST.get(name, 4)
            and opened("return document.body.scrollWidth") <= width
        )
        for figure in figures:
            assert opened.marks(figure) > 2, figure
            titles |= set(opened(TITLES, figure))
            assert opened(CROWDED, figure) == [], (figure, width)
            bars, series = opened(COLOURS, figure)
            assert bars in (0, series), f"{series} bars of {bars} colours in {figure}"
        assert opened.logged() == [] and opened.requests() == [path.as_uri()]
    assert CASES[name][1] <= titles and "time per call" not in titles, titles
    text = opened("return document.getElementById('main').textContent")
    # Of the network that is a matter of the stack, which is not everywhere.
    published = name not in UNPUBLISHED and (name != "network" or "TCP in user space, lwip" in text)
    assert ("Then and now: " in text) == published
    for words in ("0 B", "undefined", "NaN", "None,"):
        assert words not in text, words


def test_routines_of_one_picture_differ_in_colour():
    """Those of a page have more names than there are colours."""
    names = [f"r{i}" for i in range(15)]

    def colours(*pictures: list[str]) -> int:
        styles = look.styles([names], pictures)
        assert len({(s.light, tuple(s.dash), s.shape) for s in styles.values()}) == len(names) + 2
        return len({styles[name].light for name in together})

    step = len(look.OTHERS)
    together = [names[0], names[step], names[2 * step]]
    assert colours() == 1 and colours(together) == 3


def test_every_shape_is_in_the_key_of_a_page():
    names = [f"r{i}" for i in range(len(look.SHAPES))]
    for name, style in look.styles([["libc", *names]]).items():
        key = page._swatch(style)
        assert key.count("<path") + key.count("<circle") == 2, (name, style.shape)


def test_states_of_every_cpu_have_a_colour_each():
    """AMX tiles too, which few machines have: one bar each, and beside them the row in which nothing is in use."""
    styles = look.styles([LIVE], [LIVE])
    assert len({styles[name].light for name in LIVE}) == len(LIVE)
