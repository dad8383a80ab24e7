"""A mix out of what was recorded: saved, and told of."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from wherry.errors import EXIT_FAILED, FailedError
from wherry.recording import leftovers, telling

if TYPE_CHECKING:
    from wherry.recording.merge import Merger
    from wherry.recording.running import Ran


def name_of(target: Path) -> str:
    from wherry import outputs

    return outputs.plain_name(target.name.removesuffix(".json").removesuffix(".mix"))


def save(document: dict, target: Path, home: Path, merger: Merger, ran: Ran, quiet: bool) -> bool:
    """Saves the mix and tells of it. False: it is not where it was to be."""
    from wherry.recording import summary, writing

    places = [Path(tempfile.gettempdir()), home.parent]
    place, why = writing.save(target, document, places)
    if not quiet:
        with telling.unheard():
            summary.show(document, place, merger, ran)
    if why:
        from wherry import shellwords

        telling.say(f"{why}; the mix is in {shellwords.path(str(place))} instead")
    return not why


def recover(home: Path, output: str | None, note: str, quiet: bool) -> int:
    found = leftovers.read(home)
    from wherry import outputs
    from wherry.recording import running, writing
    from wherry.recording.merge import Merger

    target = Path(output) if output else found.output
    outputs.check(target, outputs.MIX)
    merger = Merger()
    for part in leftovers.parts(home):
        merger.add(part)
    if not merger.processes:
        raise FailedError(f"{home}: no process left anything that could be saved; rm -r removes it")
    if found.merged:
        telling.say(
            f"what {found.merged:,} processes left that had ended before was in the memory of the wherry record that "
            "was killed, and is lost"
        )
    ran = running.Ran(None, 0, 0.0, 0.0, 0.0, {}, 0)
    document = writing.document(
        name=name_of(target),
        command=found.command,
        note=note or found.note,
        ran=ran,
        merger=merger,
        unrecorded=running.refused_unseen(merger.refused, home),
        ceilings=False,
    )
    saved = save(document, target, home, merger, ran, quiet)
    shutil.rmtree(home, ignore_errors=True)
    return 0 if saved else EXIT_FAILED
