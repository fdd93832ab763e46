"""The verbs that undo missions and bring them back."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten
from typing import Final, Literal

from pydantic import Field

from batos.protocol.strict_model import Asker, Name, StrictModel
from batos.protocol.undo_documents import RedonePage, UndoLine, UndonePage
from batos.terminal.console import count_text
from batos.terminal.layout import plain
from batos.verbs.wire_verb import WireVerb

#: Characters of a question, and entries of a kind, that are shown.
_LINE, _SHOWN = 60, 5


class UndoArgs(StrictModel):
    """Take a mission out of the mind with all that it left there: answer, memories, turn, methods, slots.

    MISSION is your `last` if none is named. Later missions that do not build on it stay. If some do, the undo is
    refused, and lists them. `batos redo` brings all of it back. Its calls stay in the journal, so that nothing is paid
    for twice.
    """

    mission: Name = Field(default="last", description="The mission's id or its beginning; `last`, `last-1`.")
    dry_run: bool = Field(default=False, description="Only tell what would go, with all that builds on it.")
    cascade: bool = Field(default=False, description="Take later missions out too that build on it; else refused.")
    keep: list[Literal["methods", "memories", "slots"]] = Field(
        default=[], max_length=3, description="Kinds of traces that stay."
    )
    yes: bool = Field(default=False, description="Taken as elsewhere: an undo asks nothing, as redo takes it back.")
    user: Asker = Field(default=None, description="The owner of the mission; absent: any owner.")


def undone_text(told: UndonePage) -> str:
    """Write what an undo took out, mission by mission, and how it is brought back."""
    lines = [line for each in told["undone"] for line in _mission_lines(each)]
    if told["kept"]:
        lines.append(f"kept     {', '.join(told['kept'])}")
    if told["dry_run"]:
        more = " --cascade" if len(told["undone"]) > 1 else ""
        lines.append(f"Nothing is changed. `batos undo {told['mission']}{more}` takes this out.")
    else:
        lines.append(f"`batos redo {told['mission']}` brings it back{_together(told)}.")
        lines.append(f"asked    {plain(told['prompt'])}")
    return "\n".join(lines)


def _together(told: UndonePage) -> str:
    return "; with --cascade all of these" if len(told["undone"]) > 1 else ""


def _mission_lines(line: UndoLine) -> Iterator[str]:
    text = shorten(plain(line["text"]), _LINE, placeholder="…") if line["text"] else "a mission of another user"
    yield f"{line['mission']}  {text}"
    if line["because"]:
        yield f"  because  {plain(line['because'])}"
    yield "  answer   goes" + (f", with turn {line['turn']} of its conversation" if line["turn"] else "")
    kinds = {
        "memories": line["memories"], "methods": line["methods"], "tools": line["tools"],
        "slots": line["slots"], "approvals": line["approvals"],
    }  # fmt: skip
    for kind, entries in kinds.items():
        if entries:
            shown = ", ".join(plain(each) for each in entries[:_SHOWN])
            more = f" and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
            yield f"  {kind.ljust(8)} {shown}{more}"
    for each in line["effects"]:
        yield f"  stays    {plain(each)}: what happened in the world is not taken back"


class RedoArgs(StrictModel):
    """Bring an undone mission back as it was.

    Without MISSION that of your newest undo. Whatever was changed since stays changed, and is named.
    """

    mission: Name | None = Field(default=None, description="The mission's id or its beginning; absent: the newest one.")
    cascade: bool = Field(default=False, description="Bring back all missions that were undone with it.")
    user: Asker = Field(default=None, description="The owner of the mission; absent: any owner.")


def redone_text(told: RedonePage) -> str:
    """Write which missions are back, and what stays as somebody changed it."""
    lines = [f"{count_text(len(told['redone']), 'mission')} back: {', '.join(told['redone'])}."]
    lines += [f"left as it is  {plain(each)}" for each in told["left"]]
    return "\n".join(lines)


UNDO: Final = WireVerb(
    "undo", UndoArgs, "undo [MISSION]", undone_text,
    examples=("batos undo --dry-run", "batos undo m-01M82CY0 --cascade", "batos undo --keep-methods"),
)  # fmt: skip
REDO: Final = WireVerb(
    "redo", RedoArgs, "redo [MISSION]", redone_text, examples=("batos redo", "batos redo m-01M82CY0 --cascade")
)
