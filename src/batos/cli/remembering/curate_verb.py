"""The verb that folds memories into summaries, and brings back what a summary stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from batos.cli.declared import ask_once, take, tell
from batos.cli.doors.choosing import open_door
from batos.cli.shared_options import given_options
from batos.cli.verb_options import VerbCall, run
from batos.protocol.errors import UsageError
from batos.terminal.console import count_text
from batos.verbs.correction_verbs import CURATE

#: A line is told after so many regions.
_TOLD_REGIONS = 20


@take(CURATE)
def curate(called: VerbCall, given: dict[str, object]) -> int:
    """Fold memories, and tell how far that is."""
    if "undo" in given:
        if others := given_options("dry_run", "cold_days", "limit", "rule"):
            other = others[0].replace("cold-days", "cold-after")
            raise UsageError(f"--undo goes with no {other}", field="undo", remedy="Give it alone.")
        del given["limit"]
    folded: list[int] = []

    def on_event(_event: str, told: Mapping[str, object]) -> None:
        folded.append(cast("int", told["documents"]))
        if told["written_by"] == "model" or len(folded) % _TOLD_REGIONS == 0:
            called.note(f"{count_text(sum(folded), 'document')} in {count_text(len(folded), 'region')} so far")

    return tell(called, CURATE, run(ask_once(open_door(called), CURATE, given, on_event)))
