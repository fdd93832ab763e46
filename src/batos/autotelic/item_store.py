"""Makes gold items of what is new in memory, and of answers that people judged: a few memories in each commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Final

from batos.autotelic import item_makers
from batos.autotelic.heartbeat import Allowance, Duty, GoOn
from batos.autotelic.item_makers import MISSIONS, ItemSource, QuestionWriter, StatedFact
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.memory.indexes.postings import word_of
from batos.memory.records import memory_claims, memory_records, memory_segments, memory_wordings
from batos.memory.search.chunk_search import ChunkSearch
from batos.objects.prototype import UvmObject, own_slots
from batos.records import gold_items, outcomes
from batos.records.gold_items import ASKED, READ, GoldItem, ItemSplit
from batos.records.memory_lineage import EDITS

#: Memories that one commit is about at most.
AT_ONCE: Final = 32
#: Missions of one beat at most, by which a model writes questions.
CALLS: Final = 180
#: The standing of a statement that gave way to another value.
SUPERSEDED: Final = "superseded"
#: The kinds of memories that have words of their own: no summary, and no answer of a model.
_KINDS: Final = frozenset({"document", "turn", "fact"})


@dataclass(slots=True)
class MadeItems:
    """Items that were made, by the memory that they stand under; ids of items that are right no more, likewise.

    `behind` is the number of the chunk up to which memories were looked at for a mark.
    """

    mark: str
    behind: int = 0
    fresh: dict[str, list[GoldItem]] = field(default_factory=dict)
    gone: dict[str, set[str]] = field(default_factory=dict)

    def keep(self, root: Root) -> int:
        """Write them, in one change; return how many are new, of memories that are there still."""
        many = 0
        for memory in {**self.fresh, **self.gone}:
            before = gold_items.items_under(root, memory)
            gone, known = self.gone.get(memory, set[str]()), {each.id for each in before}
            fresh = [each for each in self.fresh.get(memory, ()) if each.id not in known]
            fresh = fresh if gold_items.is_current(root, memory) else []
            gold_items.put_items(root, memory, (*(each for each in before if each.id not in gone), *fresh))
            many += len(fresh)
        for user in {each.user for several in self.fresh.values() for each in several}:
            gold_items.cap_items(root, user)
        gold_items.note_number(root, self.mark, self.behind)
        return many


class ItemStore:
    """Makes the items of one image. A process that is killed has made those of whole memories, and goes on there."""

    def __init__(
        self, image: LivingImage, search: ChunkSearch, clock: Callable[[], datetime], user: str | None = None
    ) -> None:
        """Make a store; a model is asked about the memories of `user` alone, whose items trials use (None: all)."""
        self._user = user
        self._image = image
        self._search = search
        self._clock = clock

    async def refresh(self, go_on: GoOn = lambda: True) -> int:
        """Make the items that need no model, of memories that are new and of answers; return how many are new."""
        many = 0
        while go_on() and (made := await asyncio.to_thread(self._read_memories, go_on)).behind:
            many += await self._image.shared.apply(made.keep)
        if go_on():
            many += await self._image.shared.apply((await asyncio.to_thread(self._read_verdicts)).keep)
        return many

    def _read_memories(self, go_on: GoOn) -> MadeItems:
        made, at = MadeItems(READ), iso(self._clock())
        with self._image.snapshot() as root:
            often = _count_stems(root, self._search)
            for first, row in islice(memory_records.ranges_of(root, gold_items.number_of(root, READ)), AT_ONCE):
                if made.behind and not go_on():
                    break
                made.behind = first + 1
                source = read_source(root, row.document, at)
                if source is not None:
                    superseding = item_makers.make_superseding(source, list(_list_given_up(root, source)))
                    made.fresh[source.name] = [
                        *item_makers.make_retrieval(source, often), *item_makers.make_headings(source), *superseding,
                    ]  # fmt: skip
                    _find_gone(root, source, made.gone)
        return made

    def _read_verdicts(self) -> MadeItems:
        """Return the items of judged answers that are new, and those whose answer is judged otherwise by now."""
        made, at = MadeItems(READ), iso(self._clock())
        with self._image.snapshot() as root:
            for mission in root.get(roots.OUTCOMES) or ():
                for name in _answers_of(root, mission):
                    item = _approved_item(root, mission, name, at)
                    made.fresh[name] = [item] if item is not None else []
                    wanted = {each.id for each in made.fresh[name]}
                    made.gone[name] = {each.id for each in gold_items.items_under(root, name)} - wanted
        return made

    async def ask(self, writer: QuestionWriter, allowance: Allowance | None = None) -> int:
        """Ask a model for questions about memories that it was not asked about; return how many items are new.

        A memory that is not done when it has to end is asked about again: its missions are found and not paid again.
        """
        many, left, missions = 0, CALLS, writer.missions
        allowance = allowance or Allowance()
        go_on = allowance.may_ask
        while go_on() and left >= MISSIONS * item_makers.MOST["A"]:
            made, asked = await asyncio.to_thread(self._find_unasked)
            for source, fact in asked:
                before = missions.calls, missions.tokens
                written = await writer.write(source, fact)
                allowance.spend(missions.calls - before[0], missions.tokens - before[1])
                left -= written.missions
                if missions.is_given_up or not go_on():
                    return many
                if written.item is not None:
                    made.fresh.setdefault(source.name, []).append(written.item)
            if not made.behind or not await asyncio.to_thread(self._add_unanswerable, made, go_on):
                break
            many += await self._image.shared.apply(made.keep)
        return many

    def _find_unasked(self) -> tuple[MadeItems, list[tuple[ItemSource, StatedFact]]]:
        """Return what to ask about the next memory that was read and not asked about."""
        made, at = MadeItems(ASKED), iso(self._clock())
        with self._image.snapshot() as root:
            begin, end = (gold_items.number_of(root, each) for each in (ASKED, READ))
            for first, row in memory_records.ranges_of(root, begin, end - 1):
                made.behind = first + 1
                source = read_source(root, row.document, at)
                if source is None or self._user not in (None, source.user):
                    continue
                asked = [(source, fact) for fact in islice(item_makers.facts_of(source), item_makers.MOST["A"])]
                if asked:
                    return made, asked
        return made, []

    def _add_unanswerable(self, made: MadeItems, go_on: GoOn) -> bool:
        """Add an N for each A whose span no other memory of its user has; return False if it had to end."""
        for name, items in made.fresh.items():
            left = {each.gold[0] for each in items}
            with self._image.snapshot() as root:
                for row in memory_records.all_ranges(root) if left else ():
                    if not go_on():
                        return False
                    if row.user == items[0].user and row.document != name:
                        left -= item_makers.find_held(_text_of(root, root[roots.DOCUMENTS][row.document]), left)
            items += [item_makers.make_unanswerable(each) for each in items if each.gold[0] in left]
        return True


def refreshing(store: ItemStore, writer: QuestionWriter | None, clock: Callable[[], datetime]) -> Duty:
    """Return the duty to make items of what is new, and to have a model write some where one answers.

    Questions that a beat leaves are asked for on another day, also where nothing changed.
    """

    def mark(root: Root) -> str:
        newest = max((act[1] for acts in (root.get(roots.OUTCOMES) or {}).values() for act in acts), default="")
        return f"{memory_segments.change_of(root)} {newest} {iso(clock())[:10]}"

    async def work(allowance: Allowance) -> str:
        made = await store.refresh(allowance.go_on)
        if writer is not None and allowance.may_ask() and await writer.missions.can_ask():
            made += await store.ask(writer, allowance)
        return f"{made} questions with known answers made" if made else ""

    return Duty("items", mark, work)


# -- what the image has


def read_source(root: Root, name: str, at: str) -> ItemSource | None:
    """Return a memory as items are made of it; None if it is not recalled as it is, or is no evidence."""
    document: UvmObject | None = root[roots.DOCUMENTS].get(name)
    if document is None or not gold_items.is_current(root, name):
        return None
    slots = own_slots(document)
    if slots["kind"] not in _KINDS or not slots["is_evidence"]:
        return None
    pieces, length, void = list[str](), 0, list[tuple[int, int]]()
    for chunk in memory_records.chunks_of(root, document):
        start, part = own_slots(chunk)["start"], own_slots(chunk)["text"]
        pieces += ["\n" * (start - length), part]
        length = max(start, length) + len(part)
        void += [(start + each.start, start + each.end) for each in memory_claims.marks_of(chunk)]
    return ItemSource(
        name, slots["user"], slots["title"], "".join(pieces), _split_of(root, document), at, tuple(void), slots["key"]
    )


def _text_of(root: Root, document: UvmObject) -> str:
    return "\n".join(own_slots(each)["text"] for each in memory_records.chunks_of(root, document))


def _split_of(root: Root, document: UvmObject) -> ItemSplit:
    """Return the use of the items of a memory: one of all versions of a file, and of all mails of a mailbox.

    An answer has that of the memory that it cites.
    """
    slots, seen = own_slots(document), set[str]()
    while (mission := slots["mission"]) and mission not in seen:
        seen.add(mission)
        cited = sorted(each for each in memory_wordings.list_cited(root, mission) if each in root[roots.DOCUMENTS])
        if not cited:
            return gold_items.split_of(mission)
        slots = own_slots(root[roots.DOCUMENTS][cited[0]])
    return gold_items.split_of(slots["source"].partition("#")[0] or slots["sha256"])


def _count_stems(root: Root, search: ChunkSearch) -> Callable[[str], int]:
    """Return what counts the parts of memories that have a stem."""
    segments = search.word_segments(root)

    @cache
    def count(stem: str) -> int:
        return sum(end - begin for begin, end in (each.run(word_of(stem)) for each in segments))

    return count


def _list_marked(root: Root, source: ItemSource) -> Iterator[tuple[str, UvmObject]]:
    """Yield the memories in which one marked something, with their names."""
    for name in own_slots(root[roots.DOCUMENTS][source.name]).get("marked_in", ()):
        if name in root[roots.DOCUMENTS]:
            yield name, root[roots.DOCUMENTS][name]


def _list_given_up(root: Root, source: ItemSource) -> Iterator[str]:
    """Yield the statements in whose place those of a memory are."""
    for _, document in _list_marked(root, source):
        for chunk in memory_records.chunks_of(root, document):
            marks = (each for each in memory_claims.marks_of(chunk) if each.by == source.name)
            yield from (
                own_slots(chunk)["text"][each.start : each.end] for each in marks if each.standing == SUPERSEDED
            )


def _find_gone(root: Root, source: ItemSource, gone: dict[str, set[str]]) -> None:
    """Note the items that are right no more since a memory is there: it gave up their gold, or has what none had."""
    for name, _ in _list_marked(root, source):
        other = read_source(root, name, source.at)
        if other is not None:
            held = item_makers.held_text(other)
            lost = {
                each.id for each in gold_items.items_under(root, name) if not all(gold in held for gold in each.gold)
            }
            gone.setdefault(name, set()).update(lost)
    unanswerable = list(gold_items.list_unanswerable(root, source.user))
    held_spans = item_makers.find_held(source.text, {span for _, _, span in unanswerable})
    for name, item, span in unanswerable:
        if not span or span in held_spans:
            gone.setdefault(name, set()).add(item)


def _answers_of(root: Root, mission: str) -> list[str]:
    """Return what is remembered as a mission's answer, as far as it is recalled."""
    found = (own_slots(each) for each in memory_records.documents_of_mission(root, mission))
    return [each["name"] for each in found if each["kind"] == "mission" and each["standing"] == "current"]


def _approved_item(root: Root, mission: str, name: str, at: str) -> GoldItem | None:
    """Return the item of an answer that a person approved, or wrote; None of a question that does not stand alone."""
    document, brief = root[roots.DOCUMENTS][name], roots.mission_record(root, mission).brief.value
    talk = root[roots.CONVERSATIONS].get(brief.get("conversation") or "")
    turns = () if talk is None else own_slots(talk)["turns"].values()
    verdicts = [each["value"] for each in outcomes.list_outcomes(root, mission) if each["weight"] == outcomes.EXPLICIT]
    is_good = EDITS in own_slots(document) or (bool(verdicts) and min(verdicts) > 0)
    if not is_good or brief.get("attachments") or next(iter(turns), mission) != mission:
        return None
    text = _text_of(root, document)
    source = ItemSource(mission, brief["user"], "", text, _split_of(root, document), at)
    return item_makers.make_approved(source, brief["text"])
