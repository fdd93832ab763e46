"""Copies of the mind, in which the past, dreams and replays are asked, and the replays of missions."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias, cast

from batos.events import Events
from batos.genesis.past_reconciler import PastMind
from batos.history import as_of
from batos.history.as_of import Moment, PastReadings
from batos.image import roots
from batos.image.ids import tid_text
from batos.image.image import LivingImage
from batos.image.past import first_writing, moment_of, newest_commit
from batos.image.readable import ReadableImage
from batos.image.records import StatusWord
from batos.image.roots import Root
from batos.inference.erasure_mark import erased_error
from batos.inference.journal import Entries, Journal
from batos.memory.segmentation import sentence_spans
from batos.methods.generation.generations import Generations
from batos.missions.mission_events import EventRelay
from batos.missions.missions import Missions
from batos.missions.readings import Readings
from batos.objects.prototype import own_slots
from batos.protocol.brief import File
from batos.protocol.errors import BriefError, Refused, TimedOut, WordsErased
from batos.protocol.mission_documents import MissionDocument, ProvenanceDocument, ReplayDocument
from batos.verbs.mission_verbs import MissionArgs, WaitArgs

#: Seconds between two looks whether another node erases something.
_PAUSE: Final = 0.5
_ENDED: Final = frozenset({"done", "failed", "cancelled", "parked", "undone"})


@dataclass(frozen=True, slots=True)
class MindCopy:
    """A copy of the mind that is open: what thinks in it, and what it has written so far."""

    image: LivingImage
    journal: Journal
    events: Events
    missions: Missions
    readings: Readings
    generations: Generations


#: Keeps what a mission of a copy of the mind would change.
KeepDream: TypeAlias = Callable[[MindCopy, str, Moment], Awaitable[None]]
#: Opens a copy right after a commit, with the events of that copy; None: the mind of then.
OpenCopy: TypeAlias = Callable[[bytes, Events, PastMind | None], AbstractAsyncContextManager[MindCopy]]


@dataclass(frozen=True, slots=True)
class CopyParts:
    """The parts of the mind of today that its copies need.

    `place` gives a user's question one of the few places for copies; `keeping` lets no pack take away what is read as
    of a moment. `asked` is called for each question of a person.
    """

    image: LivingImage
    journal: Journal
    past: PastReadings
    open: OpenCopy
    place: Callable[[str | None], AbstractAsyncContextManager[None]]
    keeping: Callable[[datetime], AbstractAsyncContextManager[None]]
    find_moment: Callable[[str, str | None], Awaitable[Moment]]
    find_question: Callable[[MissionArgs], Awaitable[MissionDocument | None]]
    asked: Callable[[], None]


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """A question to a moment (None: the newest commit), with its files; `user` if only theirs is to be found."""

    as_of: str | None
    brief: Mapping[str, Any]
    files: Sequence[File] = ()
    user: str | None = None
    #: The mind that the copy is to be, where it is not that of then.
    mind: PastMind | None = None
    #: Prepares the copy before it is asked.
    prepare: Callable[[MindCopy], Awaitable[None]] | None = None
    #: Asked by the mind itself: nothing gives way to it.
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class _RunningQuestion:
    """A question that is being answered: the copy of the mind that answers it, and whoever asks it there."""

    copy: MindCopy
    asking: asyncio.Task[Any]


class PastQuestions:
    """Asks the mind as it was."""

    def __init__(self, today: CopyParts) -> None:
        self._today = today
        self._running: dict[str, _RunningQuestion] = {}
        self._asking: set[asyncio.Future[Any]] = set()
        #: Questions that an erasure ended.
        self._left: set[asyncio.Future[Any]] = set()

    async def ask(self, question: PastQuestion, told: EventRelay, then: KeepDream | None = None) -> MissionDocument:
        """Ask a question of a moment, and return the mission's document. Its end is waited for: it is kept nowhere.

        With `then` it is a dream, and `then` is called with the copy of the mind, the mission and its moment when that
        is done.

        Raises: BriefError: nobody waits for the end. PackedAway, NotFound: as of a moment that cannot be asked.
        WordsErased: something was erased meanwhile; nothing is kept of the answer. Busy: too many such questions are
        being answered.
        """
        if not told.follow:
            raise BriefError(
                "a question about the past is waited for", field="args.follow", remedy="Send follow: true."
            )
        if not question.is_own:
            self._today.asked()
        asking = asyncio.ensure_future(self._ask(question, told, then))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        try:
            return await asking
        except asyncio.CancelledError:
            if asking in self._left and not _is_cancelled():
                raise erased_error() from None
            raise
        finally:
            self._left.discard(asking)
            asking.cancel()
            await asyncio.wait({asking})  # the copy is closed before the image is

    async def _ask(self, question: PastQuestion, told: EventRelay, then: KeepDream | None) -> MissionDocument:
        if question.as_of is None:
            moment = Moment(await asyncio.to_thread(newest_commit, self._today.image.db))
        else:
            moment = await self._today.find_moment(question.as_of, question.user)
        journal = self._today.journal.as_of(moment.tid)
        await asyncio.to_thread(journal.check_words)
        watching = asyncio.create_task(self._watch(journal, asyncio.current_task()))
        try:
            async with self._today.keeping(moment_of(moment.tid)):
                return await self._ask_copy(question, moment, told, then)
        finally:  # a copy whose history was cut fails in many ways
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await asyncio.to_thread(journal.check_words)

    async def _watch(self, journal: Journal, asking: asyncio.Task[Any] | None) -> None:
        """End a question when another node erases something: the sessions of its copy are in the way of that."""
        while self._today.image.lease is not None and asking is not None:
            await asyncio.sleep(_PAUSE)
            try:
                await asyncio.to_thread(journal.check_words)
            except WordsErased:
                asking.cancel()
                return

    async def _ask_copy(
        self, question: PastQuestion, moment: Moment, told: EventRelay, then: KeepDream | None
    ) -> MissionDocument:
        events, asking = Events(), cast("asyncio.Task[Any]", asyncio.current_task())
        async with (
            self._today.place(question.user),
            self._today.open(moment.tid, events, question.mind) as copy,
        ):
            if question.prepare is not None:
                await question.prepare(copy)
            told.listen(events)
            try:
                mission = await copy.missions.submit(question.brief, question.files)
                self._running[mission] = _RunningQuestion(copy, asking)
                self._today.past.running[mission] = copy.readings
                said = MissionDocument(as_of=moment.as_dict())
                if then is not None:
                    said["dream"] = True
                begun: MissionDocument = {**await asyncio.to_thread(copy.readings.mission, mission), **said}
                await as_of.keep_question(copy.journal, as_of.begun_report(begun))
                await asyncio.to_thread(copy.journal.check_words)  # else a call may stand in a log that is nobody's
                told.acknowledge(mission)
                await copy.missions.begin(mission)
                ended = as_of.ended_report({**await copy.missions.wait_for_end(mission), **said})
                if ended["status"] not in _ENDED:
                    await copy.missions.cancel(mission)
                    ended = as_of.unended_report(ended)
                if then is not None and ended["status"] == "done":
                    await then(copy, mission, moment)
                await as_of.keep_question(copy.journal, ended)
                return ended
            finally:
                told.leave()
                for name in [name for name, each in self._running.items() if each.copy is copy]:
                    del self._running[name], self._today.past.running[name]

    async def aclose(self) -> None:
        """Leave every question that is being asked; the journal says that it was not answered."""
        for each in self._asking:
            each.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)

    async def leave(self) -> None:
        """End every question that is being asked, as an erasure has to; who asks is told so."""
        leaving = tuple(self._asking)
        self._left.update(leaving)
        for each in leaving:
            each.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)

    async def wait(self, given: WaitArgs, told: EventRelay) -> MissionDocument | None:
        """Wait for the end of a question to the past, and return its document; None: this user asked none of this name.

        Raises: TimedOut: it has not ended in time. WordsErased: nothing is kept of it. Any error that ended it.
        """
        found, running = await self._find(given)
        if found is None or running is None:
            return found
        told.listen(running.copy.events)
        told.acknowledge(found["id"])
        try:
            await asyncio.wait({running.asking}, timeout=given.seconds)
        finally:
            told.leave()
        if not running.asking.done():
            raise not_ended_error(found["id"], given.seconds)
        if not running.asking.cancelled():
            await running.asking
        ended = await self._today.find_question(given)
        if ended is None:
            raise erased_error()
        return ended

    async def cancel(self, given: MissionArgs) -> MissionDocument | None:
        """Cancel a question to the past; None: this user asks none of this name now."""
        found, running = await self._find(given)
        return None if found is None or running is None else await running.copy.missions.cancel(found["id"])

    async def _find(self, given: MissionArgs) -> tuple[MissionDocument | None, _RunningQuestion | None]:
        """Return the document of the question that is meant, and its copy of the mind if it is being answered now."""
        found = await self._today.find_question(given)
        return found, None if found is None else self._running.get(found["id"])


def not_ended_error(mission: str, seconds: float | None) -> TimedOut:
    """Return the error for whoever waited for a mission as long as he wanted to."""
    return TimedOut(
        f"{mission} has not ended after {seconds or 0:g} s", remedy="The mission continues: wait for it again."
    )


def _is_cancelled() -> bool:
    """Test if whoever asks was cancelled himself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


#: Fields of a brief that each mission has of its own.
_ITS_OWN: Final = frozenset({"id", "deadline", "idempotency_key", "attachments", "budget"})
_REPLAY_ENDED: Final[frozenset[StatusWord]] = frozenset({"done", "failed", "cancelled", "parked", "undone"})


def find_snapshot(image: ReadableImage, mission: str) -> str:
    """Return the commit as of which a mission saw the mind; of one without an answer, that of its acceptance.

    Raises: NotFound: there is none. Refused: it has not ended.
    """
    with image.snapshot() as root:
        record = image.find(root, mission)
        if record.status.word not in _REPLAY_ENDED:
            raise Refused(
                f"{mission} has not ended: it is {record.status.word}",
                field="mission",
                remedy=f"Replay it when it has ended: `batos show {mission}` says how far it is.",
            )
        provenance = own_slots(record.thought).get("provenance") or {}
        return str(provenance.get("read_at") or tid_text(first_writing(root, record.status).tid))


def replay_brief(brief: Mapping[str, object], mission: str) -> dict[str, object]:
    """Return the brief that asks a mission again; calls that it paid for are served where they are the same."""
    kept = {name: value for name, value in brief.items() if name not in _ITS_OWN}
    return {**kept, "ancestor": mission}


async def end_original(copy: LivingImage, before: MissionDocument, files: Sequence[File]) -> None:
    """End the mission in the copy, where it is about to run: who asks again does not wait for it.

    A dream that was promoted since is not in the mind that it saw. Its brief is put there, for the replay to name.
    """
    mission = before["id"]

    def change(root: Root) -> None:
        if roots.find_record(root, mission) is None:
            contents = {file.ref.sha256: file.data for file in files}
            copy.insert(root, dict(before["brief"]), before["accepted_at"], contents)
        status = roots.mission_record(root, mission).status
        if status.word not in _REPLAY_ENDED:
            status.become("cancelled", status.at)
        root[roots.UNFOLDED].discard(mission)

    await copy.writer.apply(change)


def compare(before: MissionDocument, after: MissionDocument, journal: Entries) -> ReplayDocument:
    """Return what is otherwise in a replay of a mission: calls by their steps, answer by sentences, and its grounds."""
    old, new = before.get("provenance") or ProvenanceDocument(), after.get("provenance") or ProvenanceDocument()
    paths = {each.key: each.path for each in journal.sound([before["id"], after["id"]])}
    keys, others = list(old.get("journal", ())), list(new.get("journal", ()))
    return {
        "of": before["id"],
        "mission": after["id"],
        "same": [paths.get(key, key) for key in others if key in keys],
        "made": [paths.get(key, key) for key in others if key not in keys],
        "gone": [paths.get(key, key) for key in keys if key not in others],
        "erased": journal.count_erased([before["id"]]),
        "models": [sorted(old.get("models", ())), sorted(new.get("models", ()))],
        "personas": [_personas(before), _personas(after)],
        "carried": [_count_carried(old), _count_carried(new)],
        "methods": _lines_of(_methods(old), _methods(new)),
        "recalled": _lines_of(_names(old), _names(new)),
        "written": _lines_of(_slots(old), _slots(new)),
        "answer": _lines_of(_sentences(before), _sentences(after)),
    }


def _personas(told: MissionDocument) -> list[str]:
    route = told.get("route")
    return list(route["personas"]) if route else []


def _count_carried(provenance: ProvenanceDocument) -> int:
    return sum(each["state"] == "carried" for each in provenance.get("sentences", ()))


def _names(provenance: ProvenanceDocument) -> list[str]:
    """List what was recalled, by name."""
    found = provenance.get("recalled", ())
    return [str(each.get("memory") or each.get("mission") or each.get("name") or each.get("turns")) for each in found]


def _methods(provenance: ProvenanceDocument) -> list[str]:
    """List what answered messages: a revision of a method, or an intent that was interpreted."""
    return sorted(map(_method_line, provenance.get("methods", ())))


def _method_line(ran: Mapping[str, object]) -> str:
    revision = str(ran.get("revision", ""))
    how = f"revision {revision}" if revision.isdigit() else "interpreted"
    return f"{ran['holder']}.{ran['selector']} {how}"


def _slots(provenance: ProvenanceDocument) -> list[str]:
    return [f"{each['oid']}.{each['slot']}" for each in provenance.get("written", ())]


def _sentences(told: MissionDocument) -> list[str]:
    answer = str(told.get("answer", ""))
    return [answer[start:end] for start, end in sentence_spans(answer)]


def _lines_of(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the lines that differ, each after a minus or a plus; none if nothing differs."""
    found = difflib.ndiff(before, after)
    return [line for line in found if line.startswith(("- ", "+ "))]
