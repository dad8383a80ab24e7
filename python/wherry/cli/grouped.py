"""Commands that have commands of their own."""

from __future__ import annotations

import click


class Group(click.Group):
    """Its help has the whole first sentence of each command, where click would cut it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, self.get_command(ctx, name).get_short_help_str(limit=300))
                    for name in self.list_commands(ctx)
                ]
            )
