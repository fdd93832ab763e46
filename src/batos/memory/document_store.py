"""The catalogue: remembers documents, each commit a batch of them, and forgets them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from batos.image import roots
from batos.image.ids import document_id, iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.memory import freed_memory
from batos.memory.claims.restatements import ClaimOutcome, hear
from batos.memory.indexes import kinds
from batos.memory.indexes.postings import Entry, words_beside
from batos.memory.known_texts import GivenContent, Incoming, SortedTexts, remembered_line
from batos.memory.passages import document_chunks
from batos.memory.records import (
    memories_set_aside,
    memory_places,
    memory_records,
    memory_segments,
    memory_standings,
    memory_wordings,
)
from batos.memory.records.memory_records import NewDocument
from batos.memory.records.memory_segments import NewSegment, SegmentRow
from batos.memory.search.recollection import line_of
from batos.memory.segmentation import page_ends
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import BriefError, NotFound
from batos.protocol.memory_documents import EditedPage, ForgottenPage, MemoryLine, RememberedLine, RememberedPage
from batos.records import memory_lineage, outcomes
from batos.records.outcomes import NotedAct

#: Segments of about one size that are made one: so many, each at most so many times as long as the shortest of them.
MERGED, TIER = 8, 8
#: Bytes from which on a segment is not merged with others: ZODB warns of records of 16 MiB, and a merge is in memory.
SEALED: Final = 4 * 2**20
#: Bytes of text after which free memory is given back: what threads cut and merge leaves its memory scattered.
FREED_EVERY: Final = 8 * 2**20
#: The places that still hold the bytes of a document that was forgotten.
STILL_HELD: Final = (
    "The present image no longer has it. Until the database is packed its history does, and so do the answers and the"
    " journal entries of missions that used it. `batos forget --erase` erases these too."
)

#: A change of the image.
Change: TypeAlias = Callable[[Root], None]

#: The fields that an edit leaves as they were, beside whose the memory is and where it came from.
_KEPT_BY_EDIT: Final = ("kind", "said_at", "mission", "persona", "conversation", "speaker", "is_evidence")


class DocumentStore:
    """Keeps what an image remembers. All changes go through the image's writer, a batch of documents in one commit."""

    def __init__(self, image: LivingImage, clock: Callable[[], datetime]) -> None:
        self._image = image
        self._clock = clock
        self._writing = asyncio.Lock()
        #: Bytes of text that were written since free memory was given back.
        self._written = 0

    async def remember(self, given: Sequence[Incoming]) -> RememberedPage:
        """Remember texts, and return what became of each.

        A text that its user has in the same scope already is not stored again. A text from the source of an older one
        takes its place, in the same commit, unless the older one came from somewhere else too.
        """
        async with self.exclusively():
            found = await asyncio.to_thread(self._sort_out, given)
            lines, fresh = found.lines, found.fresh
            if fresh:
                gone, outcomes = await self._write(list(fresh.values()), copies=found.copies)
                for number, document in fresh.items():
                    lines[number] = _new_line(document, gone, outcomes)
                await self._merge()
            else:
                await self._add_places(found)
        return {"remembered": [lines[number] for number in sorted(lines)]}

    async def recognise(self, given: Sequence[GivenContent | Incoming]) -> RememberedPage:
        """Return a line for each content that is known, and note that it came from its source too."""
        async with self.exclusively():
            found = await asyncio.to_thread(self._sort_out, given)
            await self._add_places(found)
        return {"remembered": list(found.lines.values())}

    async def _add_places(self, found: SortedTexts) -> None:
        if found.copies:
            await self._image.shared.apply(lambda root: _add_places(root, found.copies))

    def _sort_out(self, given: Sequence[GivenContent | Incoming]) -> SortedTexts:
        """Tell contents that are known from those that are not; of these the texts are cut."""
        found = SortedTexts()
        now = self._clock()
        with self._image.snapshot() as root:
            for number, each in enumerate(given):
                if not found.take_known(root, number, each) and isinstance(each, Incoming):
                    found.take_new(number, _cut(each, document_id(now), iso(now)))
        return found

    async def add(self, documents: Sequence[NewDocument], also: Change = lambda root: None) -> None:
        """Add documents that are cut already, in one commit; one from the source of an older one takes its place.

        `also` is another change of the same commit.
        """
        async with self.exclusively():
            if documents:
                await self._write(documents, also)
                await self._merge()
            else:
                await self._image.shared.apply(also)

    async def _write(
        self,
        documents: Sequence[NewDocument],
        also: Change = lambda root: None,
        copies: Sequence[tuple[str, str]] = (),
    ) -> tuple[set[str], Mapping[str, ClaimOutcome]]:
        """Write new documents, and return whose place they took, and what they claimed."""
        count = sum(each.numbers for each in documents)
        first = await self._image.shared.apply(lambda root: memory_records.reserve(root, count))
        segments = await asyncio.to_thread(_segments_of, documents, first)

        def change(root: Root) -> tuple[set[str], Mapping[str, ClaimOutcome]]:
            before = {
                each.place
                for each in documents
                if memory_places.find_by_source(root, each.user, each.scope, each.place) is not None
            }
            memories_set_aside.unfold_places(root, documents, copies)
            memory_records.add_places(root, copies)
            memory_records.add(root, documents, first, segments)
            memory_records.add_places(root, copies)  # of documents that are there only now
            outcomes = hear(root, documents)
            also(root)
            return before, outcomes

        report = await self._image.shared.apply(change)
        self._written += sum(each.size for each in documents)
        if self._written >= FREED_EVERY:
            self._written = 0
            await asyncio.to_thread(freed_memory.give_back)
        return report

    @asynccontextmanager
    async def exclusively(self) -> AsyncIterator[None]:
        """Keep all other changes of what is remembered waiting, also those of other nodes."""
        async with self._writing, self._image.publishing.here():
            yield

    async def merge(self) -> None:
        """Make one segment of several of about the same length, as long as there are enough of them."""
        async with self.exclusively():
            await self._merge()

    async def _merge(self) -> None:
        while True:
            several = await asyncio.to_thread(self._alike)
            if not several:
                return
            merged = await asyncio.to_thread(_merge_rows, several)
            numbers = [number for number, _, _ in several]

            def change(root: Root, numbers: list[int] = numbers, merged: NewSegment = merged) -> None:
                memory_segments.replace_segments(root, numbers, merged)

            await self._image.shared.apply(change)

    def _alike(self) -> list[tuple[int, SegmentRow, bytes]]:
        """Return segments of one kind, and about the same, that are to be merged, with their data."""
        with self._image.snapshot() as root:
            alike: dict[tuple[str, str], list[tuple[int, int, SegmentRow]]] = {}
            for number, row in memory_segments.segments_of(root):
                if row.size < SEALED:
                    alike.setdefault((row.kind, row.about), []).append((row.size, number, row))
            for rows in alike.values():
                rows.sort()
                for at in range(len(rows) - MERGED + 1):
                    run = rows[at : at + MERGED]
                    if run[-1][0] <= TIER * run[0][0]:
                        return sorted((number, row, _bytes_of(row)) for _, number, row in run)
        return []

    async def edit(self, named: str, text: str, user: str | None = None) -> EditedPage:
        """Give a memory another text. The older one stays as marked history; the class of its text is kept.

        Raises: NotFound: there is none, or it is another user's. BriefError: it has this text, or it cannot be edited.
        """
        async with self.exclusively():
            with self._image.snapshot() as root:
                before = dict(own_slots(memory_records.find_document(root, named, user)))
            check_editable(before, text)
            document = _edited_document(before, text, self._clock())
            first = await self._image.shared.apply(lambda root: memory_records.reserve(root, document.numbers))
            segments = await asyncio.to_thread(_segments_of, [document], first)

            def change(root: Root) -> EditedPage:
                if before["name"] not in root[roots.DOCUMENTS]:
                    raise NotFound(f"{named} was forgotten meanwhile", field="name")
                check_editable(own_slots(root[roots.DOCUMENTS][before["name"]]), text)  # or retracted by somebody else
                memories_set_aside.unfold_covering(root, [before["name"]])
                memory_standings.set_standing(root, before["name"], "edited")
                if before["kind"] == "mission":
                    outcomes.note(root, before["mission"], NotedAct("edited", document.at, before["user"]))
                memory_records.add(root, [document], first, segments)
                made = root[roots.DOCUMENTS][document.name]
                setattr(made, memory_lineage.EDITS, (before["name"],))
                hear(root, [document])
                if memory_standings.unpin(root, before["name"]):
                    memory_standings.pin(root, document.name, document.at)
                return {"edited": line_of(made), "before": before["name"]}

            edited = await self._image.shared.apply(change)
            await self._merge()
        return edited

    async def forget(self, named: Sequence[str], user: str | None = None) -> ForgottenPage:
        """Take documents out of the present image: all that are named, or none; and the answers that quote them.

        Turns of conversations and methods that hold their words go too, with what is remembered of those turns.
        The wordings go too that a memory had before it was edited. A summary of one goes too, and what else it stood
        for comes back; what a summary stands for goes with it.

        Raises: NotFound: one of them is not there, or is another user's.
        """
        async with self.exclusively():
            others = await asyncio.to_thread(self._going_with, named, user)

            def change(root: Root) -> ForgottenPage:
                found = [each for name in named for each in memory_records.find_documents(root, name, user)]
                found += [root[roots.DOCUMENTS][name] for name in others if name in root[roots.DOCUMENTS]]
                missions, retired = memory_wordings.take_out(root, found, user or "", iso(self._clock()))
                names = {own_slots(each)["name"]: each for each in found}
                for mission in missions:
                    of_turn = memory_records.documents_of_mission(root, mission, user)
                    names |= {own_slots(each)["name"]: each for each in of_turn}
                lines = forget_all(root, list(names.values()))
                return {"forgotten": lines, "turns": [*missions], "methods": [*retired], "note": STILL_HELD}

            return await self._image.shared.apply(change)

    def forget_in(self, root: Root, names: Sequence[str]) -> None:
        """Forget documents within a change of the image, with what goes with them; inside `exclusively`."""
        several = dict.fromkeys((*names, *going_with(root, names)))
        forget_all(root, [root[roots.DOCUMENTS][name] for name in several])

    @staticmethod
    def forget_exactly(root: Root, names: Sequence[str]) -> None:
        """Forget these documents within a change of the image; a summary of one goes, and its other texts come back."""
        documents = root[roots.DOCUMENTS]
        forget_all(root, [documents[name] for name in dict.fromkeys(names) if name in documents])

    def _going_with(self, named: Sequence[str], user: str | None) -> list[str]:
        """Return the names of the older wordings of the documents that are named, and of the answers that quote one."""
        with self._image.snapshot() as root, suppress(NotFound):
            found = [each for name in named for each in memory_records.find_documents(root, name, user)]
            return going_with(root, [own_slots(each)["name"] for each in found])
        return []


def _add_places(root: Root, copies: Sequence[tuple[str, str]]) -> None:
    memories_set_aside.unfold_places(root, (), copies)
    memory_records.add_places(root, copies)


def check_editable(before: Mapping[str, object], text: str) -> None:
    """Check that a memory can be given this text. Raises: BriefError: it cannot."""
    if before["kind"] == "summary":  # what a person wrote over it would quote memories that are forgotten later
        undo = f"`batos curate --undo {before['name']}` brings back what it stands for: edit the memory itself."
        remedy = (
            undo
            if before.get(memories_set_aside.STANDS_FOR)
            else f"`batos memories delete {before['name']}`, then remember it."
        )
        raise BriefError(f"{before['title']!r} is a summary: it is not edited", field="args.document", remedy=remedy)
    is_recalled = before["standing"] in memory_standings.RECALLED
    if before["kind"] == "fact" or not is_recalled or not text.strip():
        why = "a fact" if before["kind"] == "fact" else "left without a word" if is_recalled else "history"
        remedy = "Remember the fact again by its key; `batos memories restore` brings history back."
        raise BriefError(f"{before['title']!r} is {why}: it is not edited", field="args.document", remedy=remedy)
    if hashlib.sha256(text.encode()).hexdigest() == before["sha256"]:
        raise BriefError("the text is as it was", field="args.text", remedy="Give another text.")


def _edited_document(before: Mapping[str, Any], text: str, now: datetime) -> NewDocument:
    """Return a memory with another text: all else is as it was, also how far it is trusted."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    given = Incoming(
        before["user"], before["scope"], before["source"], before["title"], before["media_type"], text, digest,
        before["trust"],
    )  # fmt: skip
    kept = {name: before[name] for name in _KEPT_BY_EDIT} | {"left_out": before.get("left_out", ())}
    return replace(_cut(given, document_id(now), iso(now)), **kept)


def _cut(given: Incoming, name: str, at: str) -> NewDocument:
    """Return a text as a document in chunks. Nothing was said later than it is remembered, whatever a file tells."""
    chunks = document_chunks(given.title, given.text)
    return NewDocument(
        name, given.user, given.scope, given.source, given.title, given.media_type, given.sha256,
        len(given.text.encode()), given.trust, at, chunks, given.kind, min(given.said_at, at),
        conversation=given.conversation, speaker=given.speaker,
        key=given.key, supersedes=given.supersedes, depends_on=given.depends_on,
        left_out=given.left_out, pages=page_ends(given.text),
    )  # fmt: skip


def _segments_of(documents: Sequence[NewDocument], first: int) -> dict[str, bytes]:
    entries: list[Entry] = []
    for document in documents:
        beside = words_beside(document.source, document.said_at)
        for number, chunk in enumerate(document.chunks, start=first):
            entries.append(Entry(number, document.title, chunk.text, chunk.heading, number == first, beside))
        first += document.numbers
    return kinds.build_each(entries)


def _bytes_of(row: SegmentRow) -> bytes:
    """Return the bytes of a segment, which its connection does not keep beside."""
    data = row.segment.data
    row.segment._p_deactivate()
    return data


def _merge_rows(several: Sequence[tuple[int, SegmentRow, bytes]]) -> NewSegment:
    rows = [row for _, row, _ in several]
    data = kinds.merge(rows[0].kind, [each for _, _, each in several])
    first, last = min(row.first for row in rows), max(row.last for row in rows)
    return NewSegment(rows[0].kind, data, first, last, rows[0].about)


def _new_line(document: NewDocument, gone: set[str], outcomes: Mapping[str, ClaimOutcome]) -> RememberedLine:
    outcome = outcomes.get(document.name, ClaimOutcome())
    state: Literal["replaced", "new"] = "replaced" if document.place in gone else "new"
    line = remembered_line(document.name, document.title, document.source, len(document.chunks), state)
    left_out = [*document.left_out]
    return {**line, "superseded": outcome.superseded, "flagged": outcome.flagged, "left_out": left_out}


# -- takes documents out of the image, with what cannot stay without them


def going_with(root: Root, given: Sequence[str]) -> list[str]:
    """Return the names of the older wordings of documents, and of the remembered answers that quote one of all these.

    Summaries above a document, and the memories below one, count as quoted too, and so do the answers that are found.
    The texts that a person once made of such a summary by edits go too.
    """
    names, searched = list(dict.fromkeys(given)), set[str]()
    while True:
        names += memory_wordings.history_of(root, names)
        below = [each for name in names for each in memories_set_aside.list_below(root, name)]
        above = memories_set_aside.list_above(root, [*names, *below])
        edited = memory_wordings.edited_summaries(root, above)
        names += [each for each in edited if each not in names]
        quoted = {*names, *below, *above}
        if quoted <= searched:
            return [each for each in names if each not in given]
        answers = list(memory_wordings.answers_quoting(root, quoted))
        searched = {*quoted, *answers}
        names += [each for each in answers if each not in names]


def forget_all(root: Root, found: Sequence[UvmObject]) -> list[MemoryLine]:
    """Take documents out of an image, with the summaries of any of them and what these stand for, and return the lines.

    All else that a summary stood for comes back.
    """
    lines = _lines_of_all(root, found)
    memories_set_aside.unfold_all(root, lines)
    left = [name for name in lines if name in root[roots.DOCUMENTS]]  # a summary goes as it is unfolded
    memory_records.forget(root, left)
    return list(lines.values())


def _lines_of_all(root: Root, found: Sequence[UvmObject]) -> dict[str, MemoryLine]:
    """Return the lines of documents, of what these stand for, and of the summaries of any of them, by name."""
    lines = {own_slots(each)["name"]: line_of(each) for each in found}
    below = [each for name in list(lines) for each in memories_set_aside.list_below(root, name)]
    above = memories_set_aside.list_above(root, [*lines, *below])
    return lines | {name: line_of(root[roots.DOCUMENTS][name]) for name in (*below, *above)}
