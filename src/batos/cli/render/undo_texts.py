"""The texts on missions that were undone, or would be, and on those that came back."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten

from batos.protocol.undo_documents import RedonePage, UndoLine, UndonePage
from batos.terminal.console import count_text
from batos.terminal.layout import plain

#: Characters of a question, and entries of a kind, that are shown.
_LINE, _SHOWN = 60, 5


def undone_text(told: UndonePage) -> str:
    """List what an undo took out, mission by mission, and how it is brought back."""
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


def redone_text(told: RedonePage) -> str:
    """Tell which missions are back, and what stays as somebody changed it."""
    lines = [f"{count_text(len(told['redone']), 'mission')} back: {', '.join(told['redone'])}."]
    lines += [f"left as it is  {plain(each)}" for each in told["left"]]
    return "\n".join(lines)
