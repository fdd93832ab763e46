"""The keys of the image's root: prototype objects by the seeds' names, and the trees of records."""

from __future__ import annotations

from collections import Counter
from typing import Any

import structlog
from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree, OOTreeSet
from persistent.mapping import PersistentMapping

from batos.objects.prototype import Reparenting, UvmObject, label, own_slots, parents_of, reference, reparent

_log = structlog.get_logger("batos.image")

#: The prototype objects, in the order they are made.
OBJECTS = (
    "genesis_obj",
    "traits_obj",
    "pLLM_obj",
    "orchestrator_obj",
    "knowledge_catalog_obj",
    "tools_obj",
    "robin_prototype_obj",
    "brick_prototype_obj",
    "babs_prototype_obj",
    "alfred_prototype_obj",
)

#: the object that holds what was made to be used again: see image/tools.py
TOOLS = "tools_obj"

#: mission id -> (Brief, Status, thought)
MISSIONS = "missions"
#: ids of missions whose contributions are not folded in yet
UNFOLDED = "unfolded"
#: sha256 -> Attachment
ATTACHMENTS = "attachments"
#: conversation id -> UvmObject with the slots `turns` (IOBTree: position -> mission id) and `view` (what stands for the
#: older ones in prompts)
CONVERSATIONS = "conversations"
#: counters that the publisher keeps
STATISTICS = "statistics"
#: what genesis found and made: codex digest, texts, models, format version
GENESIS = "genesis"
#: how many missions have each status
TALLY = "tally"
#: user, NUL, idempotency key -> mission id
REPEATS = "repeats"
#: what was counted and sampled, by day and in all: see cognition/working/counters.py
COUNTERS = "counters"
#: what the router learnt of the codex: see cognition/routing/learning.py
ROUTER = "router"
#: holder's reference, blank, selector -> Lineage: every revision of a slot's method, and its ledger
METHODS = "methods"
#: approval id -> Approval: every question to a person about a method, and its answer
APPROVALS = "approvals"
#: ids of approvals that nobody has answered
AWAITED = "awaited"
#: slot as it was, blank, digest of the source -> id of the newest approval of that: see image/approvals.py
ASKED = "asked"
#: holder's reference, blank, selector -> a method that is to be made: see image/wishes.py
WISHES = "wishes"

#: the id that an image and its journal share: in `genesis` of the one, in the root of the other
PAIR = "pair"

RECORDS = (
    MISSIONS,
    UNFOLDED,
    ATTACHMENTS,
    CONVERSATIONS,
    STATISTICS,
    GENESIS,
    TALLY,
    REPEATS,
    COUNTERS,
    ROUTER,
    METHODS,
    APPROVALS,
    AWAITED,
    ASKED,
    WISHES,
)

#: the slot of the orchestrator that holds what conversations delegate to
CONVERSATION = "conversation_obj"

FORMAT = 1


def prepare(root: Any) -> bool:
    """Make the record trees that are missing; says whether any was."""
    mappings = dict.fromkeys((STATISTICS, GENESIS, TALLY, COUNTERS, ROUTER), PersistentMapping)
    kinds = {UNFOLDED: OOTreeSet, AWAITED: OOTreeSet, **mappings}
    missing = [name for name in RECORDS if name not in root]
    for name in missing:
        root[name] = kinds.get(name, OOBTree)()
    if TALLY in missing:
        root[TALLY].update(scanned(root))
    if "format" not in root[GENESIS]:
        root[GENESIS]["format"] = FORMAT
    return bool(missing)


def named(root: Any, obj: UvmObject) -> str:
    """Return the name that people use for an object: its root name, else its declared name, else its reference."""
    name = own_slots(obj).get("name")
    if isinstance(name, str) and TOOLS in root and own_slots(root[TOOLS]).get(name) is obj:
        return name
    return next((name for name in OBJECTS if root.get(name) is obj), reference(obj))


def scanned(root: Any) -> dict[str, int]:
    """Count the missions of each status by reading every mission."""
    return dict(Counter(status.word for _, status, _ in root[MISSIONS].values()))


def tallied(root: Any, before: str | None, after: str) -> None:
    """Count a mission that was accepted (`before` is None) or whose status changed."""
    tally = root[TALLY]
    if before is not None:
        tally[before] -= 1
    tally[after] = tally.get(after, 0) + 1


def waiting(root: Any) -> int:
    """Return the number of missions that take a place in the queue."""
    tally = root[TALLY]
    return sum(tally.get(word, 0) for word in ("queued", "waiting"))


def repeat_key(user: str, key: str) -> str:
    """Return the key under which a user's idempotency key is stored. Neither may contain a control character."""
    return f"{user}\0{key}"


def conversation(root: Any, name: str, user: str) -> UvmObject:
    """Return a user's conversation by id, and make it if it does not exist. Its turns are numbered from 1."""
    known, parents = root[CONVERSATIONS], _behaviour(root)
    if name not in known:
        known[name] = UvmObject({"name": name, "user": user, "turns": IOBTree(), "view": ()}, parents)
    found: UvmObject = known[name]
    if [each._p_oid for each in parents_of(found)] != [each._p_oid for each in parents]:
        # Begun before genesis, or by a version in which conversations understood nothing of their own.
        reparent(found, parents, by="the image", reason="what conversations delegate to", audit=told)
    return found


def told(change: Reparenting) -> None:
    """Write down, as a line of the log, that an object delegates to others than before, who made it so and why."""
    before, after = ([reference(each) for each in parents] for parents in (change.before, change.after))
    _log.info(
        "object.reparented", object=label(change.object), before=before, after=after, by=change.by, why=change.reason
    )


def _behaviour(root: Any) -> tuple[UvmObject, ...]:
    """Return the objects that a conversation delegates to, as far as genesis has made them."""
    prototype = own_slots(root["orchestrator_obj"]).get(CONVERSATION) if "orchestrator_obj" in root else None
    if prototype is not None:
        return (prototype,)
    return (root["traits_obj"],) if "traits_obj" in root else ()
