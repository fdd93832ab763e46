"""The reasons for a sentence, a mission, a slot or a memory: the path of what it came from, as a tree."""

from __future__ import annotations

from typing import Final

from batos.agency.lookup import by_name
from batos.history import why_sentences
from batos.history.why_memories import explain_memory
from batos.history.why_missions import explain_mission
from batos.history.why_nodes import Asking
from batos.history.why_slots import explain_slot
from batos.image import naming
from batos.image.roots import Root
from batos.memory.records import memory_records
from batos.missions.readings import Readings
from batos.protocol.errors import NotFound
from batos.protocol.image_documents import WhyNode

_REMEDY: Final = "Name a mission, OBJECT.SLOT or a memory (d-...), or quote a sentence of one of your answers."


def explain(readings: Readings, named: str, user: str | None = None) -> WhyNode:
    """Return what something came from. `user` sees nothing of the missions of others; None sees all.

    Raises: NotFound: nothing is named so, and no answer says so.
    """
    with readings.image.snapshot() as root:
        asking = Asking(root, readings.journal, user)
        if naming.back(named) is not None or named.startswith("m-"):
            return explain_mission(asking, readings.resolve_mission(named, user))
        if named.startswith("d-") and " " not in named:
            return explain_memory(asking, memory_records.find_document(root, named, user))
        if " " not in named and _is_slot(root, named, user):
            return explain_slot(asking, named)
        found = why_sentences.find_sentence(asking, named, user or readings.settings.asker)
        if found is None:
            what = f"no answer of yours says {named!r}, and nothing is named so"
            raise NotFound(what, field="what", remedy=_REMEDY)
        return why_sentences.explain_sentence(asking, found)


def _is_slot(root: Root, named: str, user: str | None) -> bool:
    holder, dot, slot = named.rpartition(".")
    return bool(dot and slot) and by_name(root, holder, user) is not None
