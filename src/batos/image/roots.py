"""The keys of the image's root: prototype objects by the seeds' names, and the trees of records."""

from __future__ import annotations

from typing import Any

from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree, OOTreeSet
from persistent.mapping import PersistentMapping

from batos.objects.prototype import UvmObject

#: The prototype objects, in the order they are made.
OBJECTS = (
    "genesis_obj",
    "traits_obj",
    "pLLM_obj",
    "memory_manager_obj",
    "orchestrator_obj",
    "knowledge_catalog_obj",
    "robin_prototype_obj",
    "brick_prototype_obj",
    "babs_prototype_obj",
    "alfred_prototype_obj",
)

#: mission id -> (Brief, Status, thought)
MISSIONS = "missions"
#: ids of missions whose contributions are not folded in yet
UNFOLDED = "unfolded"
#: sha256 -> Attachment
ATTACHMENTS = "attachments"
#: conversation id -> UvmObject with a slot `turns` (IOBTree: position -> mission id)
CONVERSATIONS = "conversations"
#: counters that the publisher keeps
STATISTICS = "statistics"
#: what genesis found and made: codex digest, texts, models, format version
GENESIS = "genesis"

#: the id that an image and its journal share: in `genesis` of the one, in the root of the other
PAIR = "pair"

RECORDS = (MISSIONS, UNFOLDED, ATTACHMENTS, CONVERSATIONS, STATISTICS, GENESIS)

FORMAT = 1


def prepare(root: Any) -> bool:
    """Make the record trees that are missing; says whether any was."""
    kinds = {UNFOLDED: OOTreeSet, STATISTICS: PersistentMapping, GENESIS: PersistentMapping}
    missing = [name for name in RECORDS if name not in root]
    for name in missing:
        root[name] = kinds.get(name, OOBTree)()
    if "format" not in root[GENESIS]:
        root[GENESIS]["format"] = FORMAT
    return bool(missing)


def conversation(root: Any, name: str, user: str) -> UvmObject:
    """The conversation of that name, begun for the user if it is not there yet; its turns are numbered from 1."""
    known = root[CONVERSATIONS]
    if name not in known:
        parents = (root["traits_obj"],) if "traits_obj" in root else ()
        known[name] = UvmObject({"name": name, "user": user, "turns": IOBTree()}, parents)
    found: UvmObject = known[name]
    return found
