"""The keys of the image's root: prototype objects by the seeds' names, and the trees of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping
from itertools import islice
from typing import Any, Final, TypeAlias, TypedDict, cast

import structlog
from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree, OOTreeSet
from persistent.mapping import PersistentMapping
from ZODB.Connection import Connection

from batos.image.records import Approval, Attachment, Brief, Chronicle, Lineage, MissionRecord, Status
from batos.objects.prototype import Reparenting, UvmObject, label, own_slots, parents_of, reference, reparent
from batos.protocol.mission_documents import WishDocument
from batos.version import __version__

_log = structlog.get_logger("batos.image")

#: The prototype objects, in the order they are made.
OBJECTS: Final = (
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

#: the object that holds what was made to be used again: see records/tools.py
TOOLS: Final = "tools_obj"

#: mission id -> (Brief, Status, thought)
MISSIONS: Final = "missions"
#: ids of missions whose contributions are not folded in yet
UNFOLDED: Final = "unfolded"
#: ids of missions that wait for a worker: their status is `queued`
QUEUED: Final = "queued"
#: sha256 -> Attachment
ATTACHMENTS: Final = "attachments"
#: conversation id -> UvmObject with the slots `turns` (IOBTree: position -> mission id) and `view` (what stands for the
#: older ones in prompts)
CONVERSATIONS: Final = "conversations"
#: counters that the publisher keeps
STATISTICS: Final = "statistics"
#: what genesis found and made: codex digest, texts, models, format version
GENESIS: Final = "genesis"
#: how many missions have each status
TALLY: Final = "tally"
#: user, NUL, idempotency key -> mission id
REPEATS: Final = "repeats"
#: what was counted and sampled, by day and in all: see missions/counters.py
COUNTERS: Final = "counters"
#: what the router learnt of the codex: see routing/training.py
ROUTER: Final = "router"
#: holder's reference, blank, selector -> Lineage: every revision of a slot's method, and its ledger
METHODS: Final = "methods"
#: approval id -> Approval: every question to a person about a method, and its answer
APPROVALS: Final = "approvals"
#: ids of approvals that nobody has answered
AWAITED: Final = "awaited"
#: slot as it was, blank, digest of the source -> id of the newest approval of that: see records/approvals.py
ASKED: Final = "asked"
#: holder's reference, blank, selector (of a forged tool: blank, intent) -> a method to be made: records/tools.py
WISHES: Final = "wishes"
#: document id -> UvmObject: what is remembered (memory/records/memory_records.py)
DOCUMENTS: Final = "documents"
#: chunks of the documents, and the segments of the indexes over them (memory/records/memory_records.py)
MEMORIES: Final = "memories"
#: ids of answered missions that are not remembered yet (missions/followups.py)
UNREMEMBERED: Final = "unremembered"
#: mission id -> what people did with its answer (records/outcomes.py)
OUTCOMES: Final = "outcomes"
#: mission id -> the parts of the entropy metric that its answer has (autotelic/entropy.py)
ENTROPY: Final = "entropy"
#: whether the mind wakes by itself, and what it did and spent (autotelic/heartbeat.py)
HEARTBEAT: Final = "heartbeat"
#: questions with known answers, under the memories that they were made from (records/gold_items.py)
ITEMS: Final = "items"
#: name of a slot -> the values that it had since it was first redefined (records/redefinitions.py)
REDEFINITIONS: Final = "redefinitions"
#: trial id -> PersistentMapping: a change that was tried on known questions (autotelic/trials.py)
TRIALS: Final = "trials"
#: schedule id -> PersistentMapping: what is done at a time (agency/records/schedule_records.py)
SCHEDULES: Final = "schedules"
#: entry id -> what a schedule brought (agency/records/schedule_records.py)
INBOX: Final = "inbox"
#: when a round of the sealed questions began -> PersistentMapping: their worth (autotelic/trial_asking.py)
SEALED: Final = "sealed"

#: mission id -> all that its undo took out, so that it can come back (history/undone_missions.py)
UNDONE: Final = "undone"
#: grant's name -> UvmObject: the capabilities that missions may be given (agency/records/effect_records.py)
GRANTS: Final = "grants"
#: effect id -> PersistentMapping: every effect that was staged, and its outcome (agency/records/effect_records.py)
EFFECTS: Final = "effects"
#: lineage, blank, fingerprint -> effect id: what is never done twice
FIRED: Final = "fired"
#: ids of effects that wait for their release, or were begun
STAGED: Final = "staged"
#: the digest of the newest line about an effect, and how many there are (agency/records/effect_records.py)
EFFECT_LOG: Final = "effect_log"
#: number -> a line about the outcome of an effect
EFFECT_LINES: Final = "effect_lines"

#: fence -> {name, ended, beat, claims, sessions}: the nodes of an image on a server (image/nodes)
NODES: Final = "nodes"
#: {fence, wanted}: the node that publishes, and the one that asks for it; 0: none
PUBLISHER: Final = "publisher"

#: the erasure that is under way, or was cut off; empty: none (records/redaction.py)
ERASURE: Final = "erasure"

#: fence -> ids of suspected missions that wait in that process (image/nodes/claims.py)
SUSPECTED: Final = "suspected"

#: the id that an image and its journal share: in `genesis` of the one, in the root of the other
PAIR: Final = "pair"

RECORDS: Final = (
    MISSIONS, UNFOLDED, QUEUED, ATTACHMENTS, CONVERSATIONS, STATISTICS, GENESIS, TALLY, REPEATS, COUNTERS, ROUTER,
    METHODS, APPROVALS, AWAITED, ASKED, WISHES, DOCUMENTS, MEMORIES, UNREMEMBERED, UNDONE, GRANTS, EFFECTS, FIRED,
    STAGED, EFFECT_LOG, EFFECT_LINES, OUTCOMES, ENTROPY, HEARTBEAT, ITEMS, REDEFINITIONS, TRIALS, SCHEDULES, INBOX,
    SEALED,
)  # fmt: skip

#: The trees among the records of memories: by numbers, and by words.
_MEMORY_TREES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("chunks", "ranges", "segments", "present", "touched", "folded", "stale", "recalls"), IOBTree),
    **dict.fromkeys(("sources", "digests", "embedded", "archives"), OOBTree),
}

#: The kinds of what stands under the keys of the root; of other records OOBTree.
_KINDS: Final[Mapping[str, type]] = {
    **dict.fromkeys(OBJECTS, UvmObject),
    **dict.fromkeys(RECORDS, OOBTree),
    **dict.fromkeys((UNFOLDED, QUEUED, AWAITED, UNREMEMBERED, STAGED), OOTreeSet),
    **dict.fromkeys((MISSIONS, CONVERSATIONS, DOCUMENTS), Chronicle),
    **dict.fromkeys((EFFECT_LINES, NODES), IOBTree),
    **dict.fromkeys((STATISTICS, GENESIS, TALLY, COUNTERS, ROUTER, MEMORIES, EFFECT_LOG), PersistentMapping),
    **dict.fromkeys((PUBLISHER, ERASURE, SUSPECTED, HEARTBEAT, ITEMS), PersistentMapping),
}

#: Queued missions that a node looks at.
_AMONG: Final = 256

#: the slot of the orchestrator that holds what conversations delegate to
CONVERSATION: Final = "conversation_obj"

#: The number of the form that records have; each change of it has a step in image/evolving.py.
FORMAT: Final = 4
#: The format of an image that names none.
FIRST_FORMAT: Final = 1


class Root(TypedDict, total=False):
    """The root of an image: what stands under each key. ZODB's own mapping of the root is used as it is.

    A type checker reads this table wherever a key is written out or one of the constants above; `named_objects` is for
    keys that are only known when the program runs.
    """

    genesis_obj: UvmObject
    traits_obj: UvmObject
    pLLM_obj: UvmObject
    orchestrator_obj: UvmObject
    knowledge_catalog_obj: UvmObject
    tools_obj: UvmObject
    robin_prototype_obj: UvmObject
    brick_prototype_obj: UvmObject
    babs_prototype_obj: UvmObject
    alfred_prototype_obj: UvmObject
    missions: OOBTree[str, tuple[Brief, Status, UvmObject]]
    unfolded: OOTreeSet[str]
    queued: OOTreeSet[str]
    attachments: OOBTree[str, Attachment]
    conversations: OOBTree[str, UvmObject]
    statistics: PersistentMapping[str, Any]
    genesis: PersistentMapping[str, Any]
    tally: PersistentMapping[str, int]
    repeats: OOBTree[str, str]
    counters: PersistentMapping[str, Any]
    router: PersistentMapping[str, Any]
    methods: OOBTree[str, Lineage]
    approvals: OOBTree[str, Approval]
    awaited: OOTreeSet[str]
    asked: OOBTree[str, str]
    wishes: OOBTree[str, WishDocument]
    documents: OOBTree[str, UvmObject]
    memories: PersistentMapping[str, Any]
    unremembered: OOTreeSet[str]
    undone: OOBTree[str, PersistentMapping[str, Any]]
    grants: OOBTree[str, UvmObject]
    effects: OOBTree[str, PersistentMapping[str, Any]]
    fired: OOBTree[str, str]
    staged: OOTreeSet[str]
    effect_log: PersistentMapping[str, Any]
    effect_lines: IOBTree[Mapping[str, object]]
    outcomes: OOBTree[str, tuple[tuple[str, ...], ...]]
    entropy: OOBTree[str, tuple[float | None, ...]]
    heartbeat: PersistentMapping[str, Any]
    items: PersistentMapping[str, Any]
    redefinitions: OOBTree[str, tuple[tuple[Any, ...], ...]]
    trials: OOBTree[str, PersistentMapping[str, Any]]
    schedules: OOBTree[str, PersistentMapping[str, Any]]
    inbox: OOBTree[str, Any]
    sealed: OOBTree[str, PersistentMapping[str, Any]]
    nodes: IOBTree[PersistentMapping[str, Any]]
    publisher: PersistentMapping[str, int]
    erasure: PersistentMapping[str, Any]
    suspected: PersistentMapping[str, tuple[str, ...]]


class JournalRoot(TypedDict, total=False):
    """The root of a journal's database.

    `missions` has each mission's `MissionLog`, `head` is the digest of the newest record, `erased` the mark of the
    newest erasure (inference/erasure_mark.py), `pair` the id of its image, `queries` what was asked of the world.
    """

    missions: OOBTree[str, Any]
    head: str
    erased: str
    pair: str
    dreams: OOBTree[str, Any]
    queries: OOBTree[str, Any]


#: The root of either database.
AnyRoot: TypeAlias = Root | JournalRoot


def root_of(connection: Connection) -> Root:
    """Return the root of the image that a connection is to."""
    return cast("Root", connection.root())


def connection_of(root: AnyRoot) -> Connection:
    """Return the connection that a root was read through."""
    connection: Connection = cast("Any", root)._p_jar
    return connection


def as_mapping(root: AnyRoot) -> PersistentMapping[str, Any]:
    """Return a root as the object that it is, for keys that are only known when the program runs."""
    return cast("PersistentMapping[str, Any]", root)


def method_key(holder: UvmObject, selector: str) -> str:
    """Return the key of a slot's lineage in the root's `methods`."""
    return f"{reference(holder)} {selector}"


def named_objects(root: Root) -> MutableMapping[str, UvmObject]:
    """Return the root as a mapping from the names of its prototype objects; a record's key is not to be asked for."""
    return cast("MutableMapping[str, UvmObject]", root)


def mission_record(root: Root, mission: str) -> MissionRecord:
    """Return what the image keeps of a mission. Raises: KeyError: there is no such mission."""
    return MissionRecord(*root[MISSIONS][mission])


def find_record(root: Root, mission: str) -> MissionRecord | None:
    """Return what the image keeps of a mission; None: there is no such mission."""
    # Not by KeyError: an object that the database has lost is one too.
    found = root[MISSIONS].get(mission)
    return None if found is None else MissionRecord(*found)


def records_of(root: Root) -> Iterator[tuple[str, MissionRecord]]:
    """Yield every mission's id and record, the oldest first."""
    for name, found in root[MISSIONS].items():
        yield name, MissionRecord(*found)


def list_oldest_queued(root: Root) -> Iterator[tuple[str, MissionRecord]]:
    """Yield the ids and records of the oldest missions that wait for a worker: those among which a node chooses."""
    for name in islice(root[QUEUED], _AMONG):
        yield name, mission_record(root, name)


def prepare(root: Root) -> bool:
    """Make the record trees that are missing; says whether any was."""
    missing = [name for name in RECORDS if name not in root]
    for name in missing:
        cast("MutableMapping[str, object]", root)[name] = _KINDS[name]()
    if TALLY in missing:
        root[TALLY].update(count_by_status(root))
    if QUEUED in missing:
        root[QUEUED].update(name for name in root[UNFOLDED] if mission_record(root, name).status.word == "queued")
    if MEMORIES in missing:
        root[MEMORIES].update({"next_chunk": 1, "next_segment": 1, "change": 0, "touched_from": 0})
    absent = [name for name in _MEMORY_TREES if name not in root[MEMORIES]]
    if absent:  # an update with nothing would be a write all the same
        root[MEMORIES].update({name: _MEMORY_TREES[name]() for name in absent})
    if GENESIS in missing:
        root[GENESIS].update({"format": FORMAT, "version": __version__})
    return bool(missing or absent)


def find_wrong_kinds(root: Root) -> Iterator[tuple[str, str, str]]:
    """Yield each key under which something else stands than the image keeps there, its kind, and the right kind."""
    for name, wanted in _KINDS.items():
        found: Any = cast("Mapping[str, object]", root).get(name, wanted)
        if found is not wanted and not isinstance(found, wanted):
            yield name, type(found).__name__, wanted.__name__


def name_of_object(root: Root, obj: UvmObject) -> str:
    """Return the name that people use for an object: its root name, else its declared name, else its reference."""
    name = own_slots(obj).get("name")
    if isinstance(name, str) and TOOLS in root and own_slots(root[TOOLS]).get(name) is obj:
        return name
    return next((name for name in OBJECTS if root.get(name) is obj), reference(obj))


def count_by_status(root: Root) -> dict[str, int]:
    """Count the missions of each status by reading every mission."""
    return dict(Counter(record.status.word for _, record in records_of(root)))


def move_tally(root: Root, mission: str, before: str | None, after: str) -> None:
    """Count a mission that was accepted (`before` is None) or whose status changed, and list it if it is queued now."""
    if before == "queued" != after:
        root[QUEUED].discard(mission)
    if after == "queued" != before:
        root[QUEUED].insert(mission)
    tally = root[TALLY]
    if before is not None:
        tally[before] -= 1
    tally[after] = tally.get(after, 0) + 1


def waiting_count(root: Root) -> int:
    """Return the number of missions that take a place in the queue."""
    tally = root[TALLY]
    return sum(tally.get(word, 0) for word in ("queued", "waiting"))


def repeat_key(user: str, key: str) -> str:
    """Return the key under which a user's idempotency key is stored. Neither may contain a control character."""
    return f"{user}\0{key}"


def conversation(root: Root, name: str, user: str) -> UvmObject:
    """Return a user's conversation by id, and make it if it does not exist. Its turns are numbered from 1."""
    known, parents = root[CONVERSATIONS], _behaviour(root)
    if name not in known:
        known[name] = UvmObject({"name": name, "user": user, "turns": IOBTree(), "view": ()}, parents)
    found: UvmObject = known[name]
    if [each._p_oid for each in parents_of(found)] != [each._p_oid for each in parents]:
        # Begun before genesis, or by a version in which conversations understood nothing of their own.
        reparent(found, parents, by="the image", reason="what conversations delegate to", audit=log_reparenting)
    return found


def log_reparenting(change: Reparenting) -> None:
    """Write down, as a line of the log, that an object delegates to others than before, who made it so and why."""
    before, after = ([reference(each) for each in parents] for parents in (change.before, change.after))
    _log.info(
        "object.reparented", object=label(change.object), before=before, after=after, by=change.by, why=change.reason
    )


def _behaviour(root: Root) -> tuple[UvmObject, ...]:
    """Return the objects that a conversation delegates to, as far as genesis has made them."""
    prototype = own_slots(root["orchestrator_obj"]).get(CONVERSATION) if "orchestrator_obj" in root else None
    if prototype is not None:
        return (prototype,)
    return (root["traits_obj"],) if "traits_obj" in root else ()
