"""Takes documents out of the image, with what cannot stay without them."""

from __future__ import annotations

from collections.abc import Sequence

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records import memory_folding, memory_quotes, memory_records, memory_wordings
from batos.memory.search.recollection import line_of
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.memory_documents import MemoryLine


def going_with(root: Root, given: Sequence[str]) -> list[str]:
    """Return the names of the older wordings of documents, and of the remembered answers that quote one of all these.

    Summaries above a document, and the memories below one, count as quoted too, and so do the answers that are found.
    The texts that a person once made of such a summary by edits go too.
    """
    names, searched = list(dict.fromkeys(given)), set[str]()
    while True:
        names += memory_wordings.history_of(root, names)
        below = [each for name in names for each in memory_folding.list_below(root, name)]
        above = memory_folding.list_above(root, [*names, *below])
        edited = memory_wordings.edited_summaries(root, above)
        names += [each for each in edited if each not in names]
        quoted = {*names, *below, *above}
        if quoted <= searched:
            return [each for each in names if each not in given]
        answers = list(memory_quotes.answers_quoting(root, quoted))
        searched = {*quoted, *answers}
        names += [each for each in answers if each not in names]


def forget_all(root: Root, found: Sequence[UvmObject]) -> list[MemoryLine]:
    """Take documents out of an image, with the summaries of any of them and what these stand for, and return the lines.

    All else that a summary stood for comes back.
    """
    lines = _lines_of_all(root, found)
    memory_folding.unfold_all(root, lines)
    left = [name for name in lines if name in root[roots.DOCUMENTS]]  # a summary goes as it is unfolded
    memory_records.forget(root, left)
    return list(lines.values())


def _lines_of_all(root: Root, found: Sequence[UvmObject]) -> dict[str, MemoryLine]:
    """Return the lines of documents, of what these stand for, and of the summaries of any of them, by name."""
    lines = {own_slots(each)["name"]: line_of(each) for each in found}
    below = [each for name in list(lines) for each in memory_folding.list_below(root, name)]
    above = memory_folding.list_above(root, [*lines, *below])
    return lines | {name: line_of(root[roots.DOCUMENTS][name]) for name in (*below, *above)}
