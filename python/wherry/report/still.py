"""PNG and SVG of an experiment, for a mail or a paper: every picture of it in one, under a title that says where the
figures come from."""

from __future__ import annotations

import itertools
from pathlib import Path

from wherry import dimensions, outputs
from wherry.errors import FailedError, WherryError
from wherry.report import drawing, look, pictures
from wherry.report.picture import Picture, sized
from wherry.report.words import ABSURD
from wherry.units import percent, plural

FORMATS = (".png", ".svg")
WIDTH = 900
# Four panels of heat maps beside each other.
WIDE = 1180
# Of a PNG: pixels for each of the picture's own, so that it can be printed.
SCALE = 2


def check(path: str) -> Path:
    """Before an hour of measuring: a picture of a kind that can be drawn."""
    found = Path(path)
    if found.suffix.lower() not in FORMATS:
        raise WherryError(f"--plot {path}: give a name that ends in .png or .svg")
    if found.is_dir():
        raise WherryError(f"--plot {path}: it is a directory; give a file name")
    drawing.check_room()
    return found


def paths(path: Path, experiments: list[str]) -> dict[str, Path]:
    """One file for each experiment; their names stand before the ending when there are several. Those of another tool's
    run may be paths themselves."""
    if len(experiments) == 1:
        return {experiments[0]: path}
    found: dict[str, Path] = {}
    for name in experiments:
        stem = f"{path.stem}-{outputs.plain_name(name)}"
        ends = itertools.chain([""], (f"~{number}" for number in itertools.count(2)))
        own = (path.with_name(f"{stem}{end}{path.suffix}") for end in ends)
        found[name] = next(target for target in own if target not in found.values())
    return found


def title(run: dict, experiment: str) -> dict:
    machine, own = run["machine"], next(e for e in run["experiments"] if e["name"] == experiment)
    floor = own["noise_floor"]
    noise = "noise floor not measured" if floor is None else f"noise floor {percent(floor)}"
    where = [
        dimensions.clean(machine["cpu"]["model"] or "CPU not told"),
        dimensions.clean(machine["libc"] or "libc not told"),
        dimensions.clean(machine["kernel"] or ""),
        "virtual machine" if machine["virtualisation"]["virtual"] else "",
    ]
    how = [
        run["started"][:10],
        noise,
        f"{plural(own['processes'], 'process', 'processes')} × {plural(own['rounds'], 'round')}",
        f"Wherry {dimensions.clean(run['wherry'])}",
        "" if own["complete"] else "interrupted",
    ]
    return {
        "text": dimensions.clean(experiment),
        "subtitle": [", ".join(filter(None, where)), ", ".join(filter(None, how))],
        "fontSize": 18,
        "subtitleFontSize": 12,
        "subtitlePadding": 6,
        "offset": 18,
    }


def spec(run: dict, experiment: str) -> dict:
    """All pictures of an experiment below each other, with legends and colours for white paper."""
    found = pictures.of(run, experiment)
    if not found:
        raise WherryError(f"experiment {experiment} has nothing to draw in this run")
    series = list(dict.fromkeys(name for picture in found for name in picture.series))
    own = [p.series for p in found if not p.own_look]
    styles = look.styles([[n for names in own for n in names]], own)
    # With shared offsets bars would leave room for routines of other pictures.
    apart = dict.fromkeys(("color", "shape", "strokeDash", "yOffset"), "independent")
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": title(run, experiment),
        "config": look.config(dark=False, still=True) | {"concat": {"spacing": 34}},
        "params": [{"name": "shown", "value": series}],
        "vconcat": [_drawn(picture, styles) for picture in found],
        "resolve": {"scale": apart},
    }


def _drawn(picture: Picture, styles: dict[str, look.Style]) -> dict:
    width = WIDE if picture.layout.square else WIDTH
    found = sized(picture.views[0].spec, picture.layout, width)
    own = look.styles([picture.series]) if picture.own_look else styles
    lines = any("strokeDash" in layer.get("encoding", ()) for layer in _layers(found))
    look.dress(found, picture.series, own if lines else look.with_ticks(own), colours=True)
    keys = list(picture.columns)
    found["data"] = {
        "values": [
            dict(zip(keys, values, strict=True))
            for values in zip(*picture.columns.values(), strict=True)
        ]
    }
    found["title"] = {"text": picture.title, "frame": "group"}
    return found


def _layers(spec: dict) -> list[dict]:
    return spec.get("spec", spec).get("layer", [])


def draw(run: dict, experiment: str, path: Path) -> bytes:
    import vl_convert

    try:
        document = spec(run, experiment)
        with drawing.engine():
            if path.suffix.lower() == ".svg":
                return vl_convert.vegalite_to_svg(document).encode()
            return vl_convert.vegalite_to_png(document, scale=SCALE)
    except ABSURD as error:
        line = " ".join(str(error).split())[:160]
        raise FailedError(f"experiment {experiment} could not be drawn: {line}") from None
