"""The texts on corrections of what is remembered: what was edited, retracted, restored, pinned."""

from __future__ import annotations

from collections.abc import Sequence

from batos.protocol.memory_documents import EditedPage, MemoryLine, PinnedPage, RestoredPage, RetractedPage
from batos.terminal.console import count_text
from batos.terminal.layout import plain


def edited_text(found: EditedPage) -> str:
    """Tell the id of the new text, and that of the older one."""
    line = found["edited"]
    return f"Edited: {plain(line['title'])} ({line['document']}). The older text is history: {found['before']}."


def retracted_text(found: RetractedPage) -> str:
    """Tell what is no longer recalled or used."""
    lines = [*_each("Retracted", found["retracted"]), *_behaviour("Out of use", found)]
    counts = [(found["answers"], "answer"), (found["pins"], "pin")]
    gone = ", ".join(count_text(number, what) for number, what in counts if number)
    return "\n".join([*lines, *([f"Also out of recall: {gone}."] if gone else [])]) or "Nothing was to be retracted."


def restored_text(found: RestoredPage) -> str:
    """Tell what is recalled or used again."""
    return "\n".join([*_each("Recalled again", found["restored"]), *_behaviour("In use again", found)])


def pinned_text(found: PinnedPage) -> str:
    """Tell which memories are pinned, or no longer are."""
    return "\n".join(_each("Pinned" if found["pinned"] else "No longer pinned", found["memories"]))


def _each(what: str, lines: Sequence[MemoryLine]) -> list[str]:
    return [f"{what}: {plain(each['title'])} ({each['document']})." for each in lines]


def _behaviour(what: str, found: RetractedPage | RestoredPage) -> list[str]:
    names = [*found["methods"], *(f"tools.{each}" for each in found["tools"])]
    return [f"{what}: {plain(each)}." for each in names]
