"""Erasure: words go from the image with its history, from the journal, from blobs, indexes and logs; digests stay."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import structlog

from batos.care import erased_records, erasure_plan, words_left
from batos.care.erased_records import ErasedRecords, erase_records
from batos.care.erasure_plan import ErasurePlan, FindWords, find_missing, kind_of, plan_erasure, slot_lines
from batos.care.packing import Packer
from batos.concurrency.threads import LongWork
from batos.events import Events
from batos.image import roots, storage
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.past import newest_commit
from batos.image.roots import JournalRoot, Root
from batos.image.transactions import snapshot
from batos.inference import erasure_mark
from batos.inference.journal import Journal
from batos.memory.document_store import DocumentStore
from batos.protocol.errors import BatosError, NoServer, NotFound
from batos.protocol.event_payloads import MISSION_STATUS, MissionStatus
from batos.protocol.server_documents import ErasedPage, RemainingPlace
from batos.records import redaction
from batos.records.erased_words import ErasedWords, passages_of
from batos.records.redaction import Lines

_log = structlog.get_logger("batos.image")

#: The phases of an erasure: what would go, what has the words, the journal, the image, logs and history, what is left.
PLAN, SEARCH, JOURNAL, IMAGE, HISTORY, CHECK = "plan", "search", "journal", "image", "history", "check"


async def _leave_none() -> None:
    """End nothing: no copy is open."""


@dataclass(frozen=True, slots=True)
class ErasureParts:
    """The parts that an erasure works on; `home` has the logs, `journal_uri` is where the journal's database is.

    Meanwhile `resting` lets no method be made here, and `leave_copies` ends what thinks here about the mind as it was.
    """

    image: LivingImage
    journal: Journal
    store: DocumentStore
    packer: Packer
    events: Events
    clock: Callable[[], datetime]
    home: Path
    journal_uri: str
    resting: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    leave_copies: Callable[[], Awaitable[None]] = _leave_none


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """A request: an id, a source, an object, a slot or words; whose things go (None: everybody's), and who asks.

    `as_words` takes the target for words, `alone` takes it for none.
    """

    target: str
    user: str | None
    by: str
    cascade: bool = False
    as_words: bool = False
    alone: bool = False

    def plan(self, root: Root, find: FindWords = ErasedWords, *, is_trial: bool = False) -> ErasurePlan:
        """Return the plan, within a snapshot or a change; a trial only tells it, also while missions run.

        Raises: as `plan_erasure`. Refused: a mission has not ended.
        """
        kind = kind_of(root, self.target, self.user, as_words=self.as_words)
        if kind == "words" and self.alone:
            raise find_missing(self.target)
        plan = plan_erasure(root, self.target, kind, self.user, find, cascade=self.cascade)
        plan.is_guests = self.alone
        if not is_trial:
            erasure_plan.refuse_open(root)
        return plan


class _Remainder(NamedTuple):
    """The remainder of an erasure that was cut off; without a request its records are erased."""

    request: ErasureRequest | None
    lines: Lines
    about: Mapping[str, str]


class Erasure:
    """Erases what requests name. Every search tells `work` how far it is, and ends when that is told to stop."""

    def __init__(self, parts: ErasureParts) -> None:
        self._parts = parts
        self._erasing = asyncio.Lock()

    async def plan(self, request: ErasureRequest, work: LongWork) -> ErasedPage:
        """Return what an erasure would take out, with all that builds on it; nothing is changed. Raises: as `erase`."""
        self._expect(work)
        return await asyncio.to_thread(self._planned_page, request, work)

    def _expect(self, work: LongWork) -> None:
        sizes = self._parts.image.sizes()
        image, journal, blobs = sizes["bytes"], sizes["journal_bytes"], sizes["blob_bytes"]
        work.expect(
            {
                PLAN: image + blobs, SEARCH: image, JOURNAL: 2 * journal, IMAGE: image,
                HISTORY: 3 * (image + journal), CHECK: image + journal + blobs,
            }
        )  # fmt: skip

    def _planned_page(self, request: ErasureRequest, work: LongWork) -> ErasedPage:
        with self._parts.image.snapshot() as root:
            plan = self._plan(root, replace(request, cascade=True), work, is_trial=True)
            return {**_page(root, plan, dry_run=True), "left": erasure_plan.list_waiting(root)}

    def _plan(self, root: Root, request: ErasureRequest, work: LongWork, *, is_trial: bool = False) -> ErasurePlan:
        """Return the plan of a request; of a dream, or of a question to the past, if the image has no such mission."""
        try:
            return request.plan(root, partial(ErasedWords, heed=work.step), is_trial=is_trial)
        except NotFound:
            found = erased_records.find_own_log(self._parts.image, self._parts.journal, request.target, request.user)
            if found is None:
                raise
            name, text = found
            words = ErasedWords(passages_of(text), work.step)
            return ErasurePlan(name, "mission", request.user, words, logs={name: "only the journal knows it"})

    async def erase(self, request: ErasureRequest, work: LongWork) -> ErasedPage:
        """Erase what a request names, everywhere; then cut the history, and look whether any of it is left.

        Raises: NotFound: nothing has it. Refused: a mission has not ended, or, without `cascade`, others build on it.
        NoServer: the work was told to stop; what was begun is finished by `finish`.
        """
        async with self._erasing, self._parts.image.publishing.here():  # one node at a time
            left = self._read_left()
            try:
                if left is not None and left.request != request:  # the same again is done below
                    await self._finish_left(work)
            except NoServer:
                raise
            except BatosError as error:  # the one that is asked for now takes its place
                _log.warning("erasure.not_finished", reason=error.as_dict())
            try:
                return await self._erase(request, work)
            except NotFound:
                if left is None:
                    raise
                return await asyncio.to_thread(self._make_empty_page, request, work)

    def _make_empty_page(self, request: ErasureRequest, work: LongWork) -> ErasedPage:
        """Return the page of a request that was cut off, when all that was left of it has gone just now."""
        with self._parts.image.snapshot() as root:
            words = ErasedWords([request.target], work.step)
            plan = ErasurePlan(request.target, "words", request.user, words, everywhere=True)
            page = _page(root, plan, dry_run=False)
        page["found"] = self._find_left(plan)
        page["left"] = self._list_left(ErasedRecords(), "", page["found"])
        return page

    async def finish(self, work: LongWork) -> bool:
        """Finish an erasure that was cut off, whichever process began it; return whether nothing is left of one.

        Raises: Refused: a mission has not ended, or, of one that had erased nothing of the image yet, as `erase`.
        NoServer: the work was told to stop.
        """
        if self._read_left() is None and not self._is_marked():
            return True
        # A node that is at it gives the part away at its end.
        async with self._erasing, self._parts.image.publishing.here():
            await self._finish_left(work)
        return self._read_left() is None

    def _read_left(self) -> _Remainder | None:
        with self._parts.image.snapshot() as root:
            kept = redaction.read_erasure(root)
            if kept is None:
                return None
            request = redaction.request_of(kept)
            return _Remainder(
                None if request is None else ErasureRequest(**request),
                redaction.lines_of(kept),
                {"at": kept["at"], "stage": kept["stage"]},
            )

    async def _finish_left(self, work: LongWork) -> None:
        left = self._read_left()
        if left is None:
            await self._lift_mark()
            return
        _log.warning("erasure.continued", **left.about)
        if left.request is not None:
            with suppress(NotFound):  # a dream is gone with the first commit: history is left
                await self._erase(left.request, work)
                return
        self._expect(work)
        await self._cut(left.lines, work)

    async def _erase(self, request: ErasureRequest, work: LongWork) -> ErasedPage:
        parts = self._parts
        self._expect(work)
        await parts.journal.drain()
        async with parts.resting(), parts.store.exclusively():
            plan, page, holding = await asyncio.to_thread(self._look, request, work)
            lines, at = _lines_of(plan), iso(parts.clock())
            work.owe()
            await parts.image.shared.apply(
                partial(redaction.begin_erasure, request=asdict(request), lines=lines, at=at)
            )
            work.begin(JOURNAL)
            page["calls"] = await self._erase_calls(plan)
            await parts.leave_copies()  # of what they write from here on the journal keeps no words
            work.begin(IMAGE)
            done = await self._erase_records(request, plan, holding, work)
        self._tell(done)
        page["lines"], left, held_by = await self._cut(_lines_of(plan), work)
        page |= {  # type: ignore[typeddict-item]
            name: value for name, value in asdict(done).items() if name in ("methods", "files", "objects")
        }
        page["memories"] = done.memories
        work.begin(CHECK)
        page["found"] = await asyncio.to_thread(self._find_left, plan)
        page["left"] = [*left, *self._list_left(done, held_by, page["found"])]
        return page

    async def _cut(self, told: Lines, work: LongWork) -> tuple[int, list[RemainingPlace], str]:
        """Take lines out of logs, and cut history; return how many lines, what was not freed, and who held history."""
        parts = self._parts
        work.begin(HISTORY)
        words, about = ErasedWords(told.words, work.step), list(told.about)
        await parts.image.journal_writer.apply(erasure_mark.begin)  # it is there, but for what was cut off before
        lines = await asyncio.to_thread(words_left.erase_lines, parts.home, words, about)
        await parts.image.shared.apply(redaction.note_history)
        packed = await parts.packer.pack_to_now(storage.pack_times(parts.image.uri), work)
        unfreed = await work.ask_server(self._free_space)
        if not packed["held_by"]:
            await parts.image.shared.apply(redaction.end_erasure)
        await self._lift_mark()
        return lines, unfreed, packed["held_by"]

    def _look(self, request: ErasureRequest, work: LongWork) -> tuple[ErasurePlan, ErasedPage, list[bytes]]:
        """Return the plan, the page of it, and the objects that have words that are erased everywhere."""
        with self._parts.image.snapshot() as root:
            work.begin(PLAN)
            plan = self._plan(root, request, work)
            work.begin(SEARCH)
            found, note = redaction.find_holding(root, plan.words), redaction.oids_of(root)
            holding = [each for each in found if each not in note] if plan.everywhere else []
            page = _page(root, plan, dry_run=False)
        if plan.everywhere and plan.is_empty and not holding and not self._find_left(plan):
            raise find_missing(request.target)
        return plan, page, holding

    async def _erase_calls(self, plan: ErasurePlan) -> int:
        """Erase the calls and dreams of missions that go, and what quotes them; return how many calls."""
        spared = await asyncio.to_thread(self._list_spared, plan)
        at = iso(self._parts.clock())

        def change(root: JournalRoot) -> int:
            erasure_mark.begin(root)
            missions = {*plan.missions, *plan.logs}
            logs = erased_records.find_logs(root, missions) | plan.generations
            logs |= erased_records.find_asked_by(root, plan.clients)
            left = spared | erased_records.list_others(root, plan.owned)
            left |= erased_records.list_generations(root) if plan.is_guests else set()
            count = erased_records.erase_calls(root, logs, plan.words, left)
            erased_records.drop_dreams(root, missions, plan.words, plan.owned)
            if plan.everywhere:
                erased_records.redact_rest(root, plan.words, left, at)
            return count

        count: int = await self._parts.image.journal_writer.apply(change)
        return count

    def _list_spared(self, plan: ErasurePlan) -> set[str]:
        """Return the missions whose calls stay: those of other users, or with the same words of their own."""
        with self._parts.image.snapshot() as root:
            records = [each for each in roots.records_of(root) if each[0] not in plan.missions]
            return {
                name
                for name, record in records
                if plan.owned not in (None, record.brief.value["user"])
                or (not plan.everywhere and plan.words.are_in_value(record.brief.value))
            }

    async def _erase_records(
        self, request: ErasureRequest, planned: ErasurePlan, holding: list[bytes], work: LongWork
    ) -> ErasedRecords:
        """Erase the records of the image; the same commit notes what is to be done after it.

        Raises: Refused: a mission was accepted meanwhile, or one builds on what goes; no record is erased then.
        """
        told = request.by, iso(self._parts.clock())

        def change(root: Root) -> ErasedRecords | BatosError:
            plan, done = planned, ErasedRecords()
            if not planned.logs:
                try:
                    plan = request.plan(root, partial(ErasedWords, heed=work.step))
                except NoServer:  # the note stays, and the next process goes on by it
                    raise
                except BatosError as error:  # returned, so that the end of the note is committed
                    redaction.end_erasure(root)
                    return error
            lines = _lines_of(plan)  # before what it counts by is gone
            if not planned.logs:
                done = erase_records(root, plan, self._parts.store, holding, told)
            redaction.note_lines(root, lines)
            return done

        done = await self._parts.image.shared.apply(change)
        if isinstance(done, BatosError):
            await self._lift_mark()
            raise done
        return done

    def _is_marked(self) -> bool:
        with snapshot(self._parts.image.journal_db) as root:
            return erasure_mark.is_under_way(root)

    async def _lift_mark(self) -> None:
        """Let the journal keep words again of what is read of the image from here on."""
        newest = await asyncio.to_thread(newest_commit, self._parts.image.db)
        await self._parts.image.journal_writer.apply(partial(erasure_mark.end, newest=newest))

    def _tell(self, done: ErasedRecords) -> None:
        with self._parts.image.snapshot() as root:
            words = {name: roots.mission_record(root, name).status.word for name in done.missions}
        for mission, word in words.items():
            self._parts.events.emit(MISSION_STATUS, MissionStatus(mission=mission, status=word, reason=None))

    # -- what is left

    def _find_left(self, plan: ErasurePlan) -> list[str]:
        """Return where a scan of both databases, of blobs and of the home still finds the words."""
        if not plan.words:
            return []
        image, home = self._parts.image, self._parts.home
        found = [f"image {each}" for each in words_left.find_in_records(image.db, plan.words)]
        found += [f"journal {each}" for each in words_left.find_in_records(image.journal_db, plan.words)]
        found += [f"blob {each.name}" for each in words_left.find_blobs(image, plan.words)]
        return found + [str(each.relative_to(home)) for each in words_left.find_in_files(home, plan.words)]

    def _free_space(self) -> list[RemainingPlace]:
        """Free what storages on servers keep beside a pack; return those that could not."""
        image = self._parts.image
        told = (
            storage.free_space(db, uri)
            for db, uri in ((image.db, image.uri), (image.journal_db, self._parts.journal_uri))
        )
        remedy = "Run VACUUM FULL in both databases as their owner."
        return [RemainingPlace(place="PostgreSQL's tables", what=why, remedy=remedy) for why in told if why]

    def _list_left(self, done: ErasedRecords, held_by: str, found: list[str]) -> list[RemainingPlace]:
        left: list[RemainingPlace] = []
        if found:
            what = f"{len(found)} records or files have words of it, which others may have said as well"
            left.append(
                RemainingPlace(place="this home", what=what, remedy='`batos forget "WORDS" --erase` takes words out.')
            )
        if held_by:
            what = f"{held_by} was accepted meanwhile, and history from then on was kept for it"
            left.append(RemainingPlace(place="history", what=what, remedy="Wait for it, then run the verb again."))
        for effect in done.effects:
            what = "it happened, and what it wrote is there still"
            left.append(RemainingPlace(place=f"effect {effect}", what=what, remedy="Take it out there by hand."))
        return [*left, *words_left.list_unreachable(self._parts.image.uri)]


def _lines_of(plan: ErasurePlan) -> Lines:
    """Return the words, and the missions, of the lines that go from logs and from what was typed."""
    return Lines(() if plan.is_guests else plan.words.texts, (*plan.missions, *plan.logs))


def _page(root: Root, plan: ErasurePlan, *, dry_run: bool) -> ErasedPage:
    return {
        "target": plan.target, "kind": plan.kind, "dry_run": dry_run, "missions": plan.missions | plan.logs,
        "memories": [f"{name} {title}" for name, title in plan.memories.items()],
        "conversations": list(plan.conversations), "slots": slot_lines(root, plan), "methods": [], "files": 0,
        "calls": 0, "objects": 0, "lines": 0, "found": [], "left": [],
    }  # fmt: skip
