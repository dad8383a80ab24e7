"""A time as people write it: 90s, 10m, 1h30m."""

from __future__ import annotations

import re

import click

_PARTS = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", re.ASCII)


class Duration(click.ParamType):
    name = "time"

    def convert(self, value, param, ctx) -> float:
        if isinstance(value, int | float):
            return float(value)
        match = _PARTS.fullmatch(value.strip())
        if not match or not any(match.groups()):
            self.fail(f"'{value}' is no time; write 90s, 10m or 1h30m", param, ctx)
        hours, minutes, rest = (float(part or 0) for part in match.groups())
        seconds = hours * 3600 + minutes * 60 + rest
        if not 0 < seconds <= 1e6:
            self.fail(f"'{value}' is out of range; give 0.1s to 11 days", param, ctx)
        return seconds
