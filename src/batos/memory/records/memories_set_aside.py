"""Memories that are set aside: folded into a summary that stands for them, or retracted with all that they caused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records import memory_archives, memory_places, memory_records, memory_standings
from batos.memory.records.memory_archives import PART_SLOTS, ArchivedPart, Parts
from batos.memory.records.memory_claims import ClaimMark
from batos.memory.records.memory_records import NewDocument
from batos.memory.records.memory_segments import NewSegment, count_change, find_tree, make_tree
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import NotFound
from batos.records import memory_lineage
from batos.records.memory_lineage import MemoryEffects, Withdrawal

#: The place of the memory that marked a span, in a mark (memory/records/memory_claims.py).
_BY: Final = ClaimMark._fields.index("by")
#: The slot of a summary that names the memories that it stands for.
STANDS_FOR: Final = "of"
#: Its slot of what the rule measured: the moment since when nobody recalled them ("" of those that say the same), and
#: for each of them when it was last used, or how far it says the same as the first.
FOLDED_FOR: Final = "folded_for"


@dataclass(frozen=True, slots=True)
class FoldedRegion:
    """A summary with its indexes, and the memories that it stands for: their parts, and what indexes these.

    `first` is the number of the summary's first part. `about` are further slots of the summary: who wrote it, and why.
    """

    summary: NewDocument
    first: int
    segments: Mapping[str, bytes]
    parts: Parts
    archived: Sequence[NewSegment]
    about: Mapping[str, Any] = field(default_factory=dict)


def fold(root: Root, region: FoldedRegion) -> bool:
    """Put a summary in the place of its memories; False if one of these is gone, or no longer as it was."""
    if any(foldable_parts(root, name) != list(parts) for name, parts in region.parts.items()):
        return False
    memory_records.add(root, [region.summary], region.first, region.segments)
    summary = root[roots.DOCUMENTS][region.summary.name]
    for name, value in {STANDS_FOR: tuple(region.parts), **region.about}.items():
        setattr(summary, name, value)
    count_change(root, memory_archives.put_away(root, region.summary.name, region.parts, region.archived))
    return True


def foldable_parts(root: Root, name: str) -> list[ArchivedPart] | None:
    """Return the parts of a memory that may be folded; None for one that may not, or is not there.

    A memory is left alone if it is pinned or not current, if it is a fact, if another statement gave way to one of its
    own or the other way round, or if a part has more than a text.
    """
    document = root[roots.DOCUMENTS].get(name)
    if document is None or name in pinned_names(root):
        return None
    slots = own_slots(document)
    if slots["standing"] != "current" or slots["kind"] == "fact" or slots.get("marked_in"):
        return None
    parts = [own_slots(each) for each in memory_records.chunks_of(root, document)]
    if any(each.keys() - PART_SLOTS or any(mark[_BY] for mark in each.get("marks", ())) for each in parts):
        return None
    return [ArchivedPart(**{name: value for name, value in each.items() if name != "document"}) for each in parts]


def pinned_names(root: Root) -> frozenset[str]:
    """Return the names of the memories that a person has pinned."""
    return frozenset(key.rpartition("\0")[2] for key in find_tree(root, "pins"))


def unfold(root: Root, names: Iterable[str]) -> list[str]:
    """Bring the memories of summaries back as they were, and remove the summaries; return the names of the memories.

    A summary that is folded itself comes back first.
    """
    back: list[str] = []
    left = dict.fromkeys(names)
    while left:
        outer = [name for name in left if not list_above(root, [name])]
        left.update(dict.fromkeys(list_above(root, left)))
        left = {name: None for name in left if name not in outer}
        if outer:
            back += memory_archives.bring_back(root, outer)
            memory_records.forget(root, outer)
    back = [name for name in back if name in root[roots.DOCUMENTS]]
    count_change(root, [(first, first) for first in (_first(root, each) for each in back)])
    return back


def unfold_covering(root: Root, names: Iterable[str]) -> None:
    """Bring back what the summaries stand for that stand for one of some memories; those of nothing are left."""
    known = (root[roots.DOCUMENTS][name] for name in names if name in root[roots.DOCUMENTS])
    above = dict.fromkeys(filter(None, map(memory_archives.summary_of, known)))
    if above:
        unfold(root, above)


def unfold_places(root: Root, documents: Iterable[NewDocument], copies: Iterable[tuple[str, str]]) -> None:
    """Bring back what is folded and came from places that new documents, and copies of documents, come from."""
    taken = [memory_places.find_by_source(root, each.user, each.scope, each.place) for each in documents]
    for name, place in copies:
        if name in root[roots.DOCUMENTS]:
            slots = own_slots(root[roots.DOCUMENTS][name])
            before = memory_places.find_by_source(root, slots["user"], slots["scope"], place)
            taken.append(None if before == name else before)
    unfold_covering(root, filter(None, taken))


def unfold_all(root: Root, names: Collection[str]) -> None:
    """Bring back what stands under summaries among some memories, and what is covered by one; the summaries go."""
    unfold_covering(root, names)
    left = [name for name in names if memory_archives.is_summary(root, name)]
    if left:
        unfold(root, left)


def find_summary(root: Root, named: str, user: str | None) -> str:
    """Return the name of a summary that stands for others. Raises: NotFound: there is none of this name."""
    found = memory_records.find_document(root, named, user)
    name: str = own_slots(found)["name"]
    if not memory_archives.is_summary(root, name):
        above = memory_archives.summary_of(found)
        remedy = f"It is summarised in {above}: undo that." if above else "`batos memories` lists them by their type."
        raise NotFound(f"{named!r} is no summary of others", field="args.undo", remedy=remedy)
    return name


def list_below(root: Root, name: str) -> list[str]:
    """Return the names of all memories that a summary stands for, also through other summaries."""
    found = []
    for each in own_slots(root[roots.DOCUMENTS][name]).get(STANDS_FOR, ()):
        found += [each, *list_below(root, each)]
    return found


def list_above(root: Root, names: Collection[str]) -> list[str]:
    """Return the names of all summaries that stand for one of some memories, also through other summaries."""
    found: dict[str, None] = {}
    for name in names:
        above = memory_archives.summary_of(root[roots.DOCUMENTS][name])
        while above:
            found[above] = None
            above = memory_archives.summary_of(root[roots.DOCUMENTS][above])
    return list(found)


def _first(root: Root, name: str) -> int:
    document: UvmObject = root[roots.DOCUMENTS][name]
    return int(own_slots(document)["chunks"][0])


#: The name of the tree among the records of memories; an image in which nothing was retracted has none.
_RETRACTIONS: Final = "retractions"
#: The standings of memories that a recall or a question about the past may find.
_RECALLED: Final = frozenset({"current", "summarised", "superseded"})
#: The fields of a retraction that name what it took out.
_KINDS: Final = ("memories", "missions", "methods", "tools")
#: The slot of a thought whose answer is not recalled.
RETRACTED: Final = "retracted"
#: Its value where the question is not recalled either, since both are forgotten.
WHOLE: Final = "whole"
#: The slot of a conversation that counts how often its summaries were dropped, since its turns had changed.
_DROPS: Final = "view_drops"


@dataclass(frozen=True, slots=True)
class Retraction:
    """The outcome of a retraction: what it took out, by kind, so that exactly that can come back.

    `memories` and `pins` are names, `missions` ids, `methods` (key of the lineage, revision, whether it was active),
    `tools` (selector, intent, trust class of the slot) that were declared and not yet made. `also` names what it would
    have taken out if another retraction had not done so before: it stays out when that one is undone.
    """

    at: str
    by: str
    origins: tuple[str, ...]
    memories: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    missions: tuple[str, ...] = ()
    methods: tuple[tuple[str, int, bool], ...] = ()
    tools: tuple[tuple[str, Intent, str], ...] = ()
    is_cascade: bool = False
    also: tuple[Any, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Test if it took nothing out."""
        return not (self.memories or self.pins or self.missions or self.methods or self.tools or self.also)

    @property
    def withdrawal(self) -> Withdrawal:
        """Return what the history of the retired methods says of it."""
        return Withdrawal(self.at, self.by, f"retracted with {self.origins[0]}")


def retract(root: Root, origins: Sequence[str], told: tuple[str, str], *, cascade: bool) -> Retraction:
    """Take memories out of recall and pins, and with `cascade` all that they caused, out of methods too.

    A summary goes with what it stands for; of a summary that quotes one of them the other memories come back. `told`
    are who wants it, and when.
    """
    by, at = told
    below = [each for name in origins for each in list_below(root, name)]
    meant = list(dict.fromkeys((*origins, *below)))
    caused = memory_lineage.find_caused(root, meant) if cascade else MemoryEffects()
    unfold_covering(root, _list_quoted(root, (*meant, *caused.memories), origins))
    there = [each for each in dict.fromkeys((*meant, *caused.memories)) if each in root[roots.DOCUMENTS]]
    names = [each for each in there if memory_standings.standing_of(root, each) in _RECALLED]
    taken = {_name_of(each) for other in _list_all(root) for kind in _KINDS for each in getattr(other, kind)}
    bare = Retraction(at, by, tuple(origins))
    done = Retraction(
        at,
        by,
        bare.origins,
        memories=tuple(names),
        pins=tuple(each for each in there if memory_standings.unpin(root, each)),
        missions=tuple(each for each in caused.missions if mark_turn(root, each)),
        methods=tuple(memory_lineage.retire_all(root, caused.methods, bare.withdrawal)),
        tools=tuple(memory_lineage.withdraw_wishes(root, caused.tools)),
        is_cascade=cascade,
        also=tuple(each for each in (*there, *caused.missions, *caused.methods, *caused.tools) if each in taken),
    )
    for name in names:
        memory_standings.set_standing(root, name, "retracted")
    drop_views(root, done.missions)
    if not done.is_empty:
        _record(root, done)
    return done


def retract_later(root: Root, mission: str) -> None:
    """Take out what is remembered of a mission only now, if a cascade took its answer out, or what it was shown."""
    record = roots.find_record(root, mission)
    if record is None:
        return
    shown = {each.get("memory") for each in own_slots(record.thought).get("provenance", {}).get("recalled", ())}
    for done in _list_all(root):
        late = done.is_cascade and not shown.isdisjoint(done.memories) and mark_turn(root, mission)
        if late or mission in done.missions:
            found = memory_records.documents_of_mission(root, mission, record.brief.value["user"])
            made = [own_slots(each)["name"] for each in found]
            names = [each for each in made if memory_standings.standing_of(root, each) in _RECALLED]
            missions = (*done.missions, mission) if late else done.missions
            _record(root, replace(done, memories=(*done.memories, *names), missions=missions))
            for name in names:
                memory_standings.set_standing(root, name, "retracted")


def names_from_source(root: Root, source: str, user: str) -> list[str]:
    """Return the names of all of a user's documents that came from there, whatever their standing.

    Of a mailbox, or a file of chats, these are its mails and messages.
    """
    names = [each.document for each in memory_records.all_ranges(root) if each.source == source]
    documents = root[roots.DOCUMENTS]
    found = dict.fromkeys(
        (*names, *memory_places.names_at(root, source), *memory_places.messages_of(root, source, user))
    )
    return [each for each in found if each in documents and own_slots(documents[each])["user"] == user]


def find_retractions(root: Root, name: str) -> list[Retraction]:
    """Return the retractions that began with a memory and still stand, the newest first."""
    return [each for each in reversed(_list_all(root)) if name in each.origins]


def restore(root: Root, done: Retraction, by: str, at: str) -> None:
    """Undo a retraction: what it took out comes back, unless somebody has put something else in its place since.

    Another retraction that would have taken it out as well keeps it out.
    """
    del find_tree(root, _RETRACTIONS)[_key(done)]
    done = _hand_over(root, done)
    documents = root[roots.DOCUMENTS]
    for name in done.memories:
        is_out = name in documents and memory_standings.standing_of(root, name) == "retracted"
        if is_out and not memory_standings.is_place_taken(root, name):
            memory_standings.recall_again(root, name)
    for name in done.pins:
        if name in documents:
            memory_standings.pin(root, name, at)
    for mission in done.missions:
        thought = roots.mission_record(root, mission).thought
        if own_slots(thought).get(RETRACTED) is True:
            delattr(thought, RETRACTED)
    drop_views(root, done.missions)
    memory_lineage.bring_back(root, done.methods, done.tools, Withdrawal(at, by, done.withdrawal.reason))


def _list_quoted(root: Root, names: Iterable[str], origins: Sequence[str]) -> list[str]:
    """Return those of some memories that stand in a summary which is not retracted itself."""
    above = ((each, memory_archives.summary_of(root[roots.DOCUMENTS][each])) for each in names)
    return [each for each, summary in above if summary and set(origins).isdisjoint(list_above(root, [each]))]


def _record(root: Root, done: Retraction) -> None:
    make_tree(root, _RETRACTIONS)[_key(done)] = {name: getattr(done, name) for name in Retraction.__slots__}


def _key(done: Retraction) -> str:
    return f"{done.at} {done.origins[0]}"


# -- several retractions


def _list_all(root: Root) -> list[Retraction]:
    return [Retraction(**each) for each in find_tree(root, _RETRACTIONS).values()]


def _name_of(taken: Any) -> Any:
    """Return what `also` has of something that was taken out: a name, a method's key and revision, a selector."""
    return taken if isinstance(taken, str) else taken[:2] if isinstance(taken[1], int) else taken[0]


def _hand_over(root: Root, done: Retraction) -> Retraction:
    """Leave to other retractions what they would have taken out too; return what is left."""
    left = done
    for other in _list_all(root):
        heir, wanted = other, set(other.also)
        for kind in (*_KINDS, "pins"):
            passed = tuple(each for each in getattr(left, kind) if _name_of(each) in wanted)
            stay = tuple(each for each in getattr(left, kind) if each not in passed)
            changed: dict[str, Any] = {kind: (*getattr(heir, kind), *passed)}
            rest: dict[str, Any] = {kind: stay}
            heir, left = replace(heir, **changed), replace(left, **rest)
        if heir != other:
            given = {_name_of(each) for kind in _KINDS for each in getattr(heir, kind)}
            _record(root, replace(heir, also=tuple(each for each in other.also if each not in given)))
    return left


# -- answers


def mark_turn(root: Root, mission: str, mark: bool | str = True) -> bool:
    """Mark a mission's answer, or with WHOLE its question too, so that no conversation recalls it.

    Return False if it is marked so already, or wholly.
    """
    thought = roots.mission_record(root, mission).thought
    if own_slots(thought).get(RETRACTED) in (mark, WHOLE):
        return False
    setattr(thought, RETRACTED, mark)
    return True


def drop_views(root: Root, missions: Iterable[str]) -> None:
    """Drop the summaries of conversations in which these missions are turns."""
    for mission in missions:
        name = roots.mission_record(root, mission).brief.value.get("conversation") or ""
        conversation = root[roots.CONVERSATIONS].get(name)
        if conversation is not None:
            drop_view(conversation)


def drop_view(conversation: UvmObject) -> None:
    """Drop the summaries of a conversation, of which a turn went, came back or changed; they are made anew.

    Whoever read the turns before sees it by the count: a compaction that is under way, a later attempt of a mission.
    """
    setattr(conversation, _DROPS, count_drops(conversation) + 1)
    if own_slots(conversation).get("view"):
        conversation.view = ()


def count_drops(conversation: UvmObject) -> int:
    """Return how often the summaries of a conversation were dropped because its turns had changed."""
    return int(own_slots(conversation).get(_DROPS, 0))
