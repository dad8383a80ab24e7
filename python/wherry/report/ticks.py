"""Pictures of runs whose times are ticks of a counter: glibc's benchtests tell no clock that could make them times."""

from __future__ import annotations

from wherry.report.picture import FORMAT, RATE, TIME, Picture

IN_TICKS = {TIME: "ticks per call", RATE: "bytes per tick"}
_KINDS = {"time": "ticks", "rate": "tickrate"}


def are(run: dict) -> bool:
    return (run.get("source") or {}).get("unit") == "ticks"


def renamed(picture: Picture) -> Picture:
    """The same picture with ticks wherever it would say a time."""
    for view in picture.views:
        view.name = IN_TICKS.get(view.name, view.name)
        _rename(view.spec)
    picture.tips = [(key, name, _kind(kind)) for key, name, kind in picture.tips]
    return picture


def _kind(kind: str) -> str:
    form, *more = kind.split(" ")
    return " ".join([_KINDS.get(form, form), *more])


def _rename(part: object) -> None:
    if isinstance(part, list):
        for item in part:
            _rename(item)
    if not isinstance(part, dict):
        return
    if part.get("title") in IN_TICKS:
        if part.pop("labelExpr", None):
            part["format"] = FORMAT
        part["title"] = IN_TICKS[part["title"]]
    for key, value in part.items():
        if key != "data":
            _rename(value)
