"""Work that follows an answer: contributions are folded in, conversations compacted, and missions remembered."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import structlog

from batos.agency.records import api_records
from batos.concurrency.jobs import Job
from batos.conversations import compaction, conversations
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.records import MissionRecord, least_trust
from batos.image.roots import Root
from batos.image.writer import Applier
from batos.memory import regions
from batos.memory.document_store import Change, DocumentStore
from batos.memory.exchanges import MEMORABLE, documents_of, is_carried, is_memorable, statements_of
from batos.memory.records import memories_set_aside, memory_places, memory_records, memory_standings, memory_wordings
from batos.memory.records.memory_records import NewDocument
from batos.memory.segmentation import line_of
from batos.minds.stopping import as_batos_error
from batos.missions.missions import Missions
from batos.objects.prototype import own_slots
from batos.protocol.brief import MissionBrief
from batos.protocol.errors import BatosError
from batos.records import tool_declarations, tools

_log = structlog.get_logger("batos")


class FollowUps:
    """Starts compactions that answered turns make due. The turn is done whatever happens to them."""

    def __init__(self, image: LivingImage, missions: Missions) -> None:
        self._image = image
        self._missions = missions
        self.job = Job("compactions", self._work, ends_itself=True)
        #: The newest answered turn of each conversation that is to be looked at.
        self._turns: dict[str, str] = {}
        image.signals.answered.call(self._follow)
        #: Serialises the checks: two turns that end together make one compaction due, not two.
        self._looking = asyncio.Lock()
        #: Compactions begun here that have not ended, by conversation: the image shows one only once it runs.
        self._begun: dict[str, str] = {}

    def keep(self) -> None:
        """See to each answered turn of a conversation from now on; for a process that stays to work."""
        self.job.start()

    def _follow(self, mission: str, conversation: str | None) -> None:
        if self.job.is_started and conversation is not None:
            self._turns[conversation] = mission
            self.job.wake()

    async def _work(self) -> None:
        """Start the compactions that are due; a turn of which one cannot be started yet stays to be looked at."""
        failed: BatosError | None = None
        for conversation, mission in tuple(self._turns.items()):
            try:
                await self.begin(mission)
            except Exception as error:  # no reason to leave the other conversations
                failed = _log_failure(mission, error)
                if failed.retry:
                    continue
            if self._turns[conversation] == mission:
                del self._turns[conversation]
        if failed is not None and self._turns:
            raise failed

    async def begin(self, mission: str) -> str | None:
        """Start the compaction that the answered mission made due; return its id, None if none is due.

        The compaction has the lowest priority. A compaction that was left behind is resumed.

        Raises: Busy: no more missions may wait; the compaction is due again after the next turn.
        """
        async with self._looking:
            found = await asyncio.to_thread(self._due, mission)
            if found is None:
                return None
            if not isinstance(found, str):
                conversation = found["message"]["receiver"]
                found = self._begun[conversation] = await self._missions.submit(found)
            await self._missions.resume(found)
            return found

    def _due(self, mission: str) -> dict[str, Any] | str | None:
        """Return the brief of a compaction that is due, the id of one that was begun, or None."""
        with self._image.snapshot() as root:
            words = {each: roots.mission_record(root, each).status.word for each in self._begun.values()}
            self._begun = {name: each for name, each in self._begun.items() if words[each] in compaction.UNENDED}
            found = compaction.due(root, mission)
            return self._begun.get(found["message"]["receiver"], found) if isinstance(found, dict) else found

    async def start_due(self, mission: str) -> str | None:
        """Start a due compaction as `begin` does, but log any error and return None: the next turn tries again."""
        try:
            return await self.begin(mission)
        except Exception as error:  # no reason to fail the answered turn or the process
            _log_failure(mission, error)
            return None


def _log_failure(mission: str, error: Exception) -> BatosError:
    """Log why the compaction that an answered turn made due is not begun; return the reason."""
    reason = as_batos_error(error)
    _log.warning("compaction.not_begun", mission=mission, reason=reason.as_dict())
    return reason


# -- what the publisher folds in of an answered mission


def fold_statistics(root: Root, mission: str, payload: Any) -> None:
    """Add a mission's calls, and the measured tokens of its prompts, to the statistics."""
    kept = root[roots.STATISTICS]
    missions = dict(kept.get("missions", {}))
    missions[payload["persona"]] = missions.get(payload["persona"], 0) + 1
    kept["missions"] = missions
    kept["calls"] = kept.get("calls", 0) + payload["calls"]
    measured = dict(kept.get("measured", {}))
    for model, (size, tokens) in payload["measured"].items():
        before = measured.get(model, (0, 0))
        measured[model] = (before[0] + size, before[1] + tokens)
    kept["measured"] = measured


def fold_turn(root: Root, mission: str, payload: Any) -> None:
    """Append the mission to its conversation as the newest turn, unless the conversation belongs to another user."""
    user = roots.mission_record(root, mission).brief.value["user"]
    conversation = roots.conversation(root, payload["conversation"], user)
    if conversation.user == user:
        conversation.turns[conversations.next_position(conversation)] = mission


def fold_memorable(root: Root, mission: str, payload: object) -> None:
    """Note that the mission is to be remembered: it is written with others, in a commit of the catalogue's."""
    root[roots.UNREMEMBERED].insert(mission)


APPLIERS: Mapping[str, Applier] = {
    "statistics": fold_statistics,
    "turn": fold_turn,
    MEMORABLE: fold_memorable,
    tool_declarations.KIND: tool_declarations.fold,
    tools.WISH_KIND: tools.fold_wishes,
    tools.SETTLED_KIND: tool_declarations.settle,
    api_records.KIND: api_records.fold,
}


#: Seconds after an answer in which others may come that are written with it.
PAUSE: Final = 0.5
#: The most seconds that a question waits until its person's statements before it are remembered.
PATIENCE: Final = 1.0
#: Missions of one commit.
BATCH: Final = 64
#: Measures an answered mission as the image is; returns the change that keeps the measure.
Measure: TypeAlias = Callable[[Root, str, MissionRecord], Change]


class _Batch(NamedTuple):
    """Missions to be remembered: their documents, how many were shown each memory, and changes by what was measured."""

    missions: list[str]
    documents: list[NewDocument]
    recalled: Counter[str]
    measured: list[Change]


class MissionMemory:
    """Writes the memories of missions that are done. Those that still wait stand in the image (roots.UNREMEMBERED)."""

    def __init__(
        self,
        image: LivingImage,
        store: DocumentStore,
        clock: Callable[[], datetime],
        measure: Measure | None = None,
    ) -> None:
        self._image = image
        self._store = store
        self._clock = clock
        self._measure = measure
        self._writing = asyncio.Lock()
        self.job = Job(
            "memories", self.write, lambda: image.publishing.is_here, PAUSE, ends_itself=True, runs_last=True
        )
        image.signals.answered.call(lambda *_mission: self.job.wake())
        image.signals.published.call(self.job.wake)

    async def write(self) -> None:
        """Remember all missions that wait, at the node that publishes."""
        async with self._writing:
            while self._image.refusing is None and self._image.publishing.is_here:
                batch = await asyncio.to_thread(self._read_batch)
                if not batch.missions:
                    return
                await self._store.add(batch.documents, partial(self._note, batch=batch))
                self._image.signals.remembered.give()

    def _note(self, root: Root, batch: _Batch) -> None:
        """Do all that belongs to the commit of a batch beside its documents."""
        for mission in batch.missions:
            root[roots.UNREMEMBERED].discard(mission)
            self._follow_corrections(root, mission)
        self._join_equal_questions(root, batch.documents)
        regions.count_recalls(root, batch.recalled, iso(self._clock()))
        for keep in batch.measured:
            keep(root)

    async def catch_up_for(self, mission: str) -> None:
        """Remember what the user of a mission that is about to run stated just before."""
        await self._catch_up(lambda root: str(roots.mission_record(root, mission).brief.value["user"]))

    async def catch_up(self, user: str) -> None:
        """Remember what a user stated just before, so that a question right after it finds it; PATIENCE at most."""
        await self._catch_up(lambda _root: user)

    async def _catch_up(self, user_in: Callable[[Root], str]) -> None:
        if self.job.is_due and await asyncio.to_thread(self._has_stated, user_in):
            await asyncio.wait({asyncio.ensure_future(self.job.finish())}, timeout=PATIENCE)

    def _has_stated(self, user_in: Callable[[Root], str]) -> bool:
        """Test if a mission of the user waits here that holds a statement."""
        with self._image.snapshot() as root:
            user = user_in(root)
            waiting = [roots.find_record(root, each) for each in islice(root[roots.UNREMEMBERED], BATCH)]
            stored = [each.brief.value for each in waiting if each is not None]
        briefs = [MissionBrief.from_document(each) for each in stored if each["user"] == user]
        return any(is_memorable(each) and any(statements_of(each.text)) for each in briefs)

    def _read_batch(self) -> _Batch:
        """Read the first missions that wait."""
        now, made, recalled, measured = self._clock(), list[NewDocument](), Counter[str](), list[Change]()
        with self._image.snapshot() as root:
            missions = list(islice(root[roots.UNREMEMBERED], BATCH))
            for mission in missions:
                record = roots.find_record(root, mission)
                if record is not None and record.status.word == "done":
                    thought = own_slots(record.thought)
                    made.extend(documents_of(mission, record.brief, thought, now))
                    recalled.update(set(regions.shown_memories(thought.get("provenance", {}))))
                    brief = MissionBrief.from_document(record.brief.value)
                    if self._measure is not None and (is_memorable(brief) or tools.sender_in(record)):
                        measured.append(self._measure(root, mission, record))
            documents = _drop_known(root, made)
        return _Batch(missions, documents, recalled, measured)

    def _follow_corrections(self, root: Root, mission: str) -> None:
        """Do with what was just remembered as a person did meanwhile: with its mission, or with what it was made from.

        Of a mission that is undone nothing is remembered; what was retracted or forgotten takes its answer along.
        """
        record = roots.find_record(root, mission)
        if record is not None and record.status.word == "undone":
            made = memory_records.documents_of_mission(root, mission)
            self._store.forget_exactly(root, [own_slots(each)["name"] for each in made])
            return
        if memory_wordings.cites_what_is_gone(root, mission):
            answer = memory_places.names_with_source(root, mission)
            memory_records.forget(root, list(answer))
        memories_set_aside.retract_later(root, mission)

    def _join_equal_questions(self, root: Root, documents: Iterable[NewDocument]) -> None:
        """Keep one answer to a question that was asked again: the newest, unless documents carry an older one alone."""
        for document in documents:
            if document.kind != "mission" or document.name not in root[roots.DOCUMENTS]:
                continue
            asked = f"asked/{hashlib.sha256(line_of(document.title).encode()).hexdigest()[:16]}"
            former = memory_places.find_by_source(root, document.user, document.scope, asked)
            kept = document.name
            if former is not None:
                slots = own_slots(root[roots.DOCUMENTS][former])
                if memory_standings.is_pinned(root, former) or slots["standing"] != "current":
                    continue
                provenance = own_slots(roots.mission_record(root, document.mission).thought)["provenance"]
                stays = slots.get("is_evidence", True) and not is_carried(provenance)
                kept, gone = (former, document.name) if stays else (document.name, former)
                self._store.forget_exactly(root, [gone])
            memory_records.add_places(root, [(kept, asked)])


def _drop_known(root: Root, made: Iterable[NewDocument]) -> list[NewDocument]:
    """Return the documents that are to be remembered: of a text that methods gave, the first one or a better one.

    A text of a person may stand in the place of the same text that a model is responsible for. The other way round,
    and between equals, the text is known.
    """
    left: dict[tuple[str, str, str], NewDocument] = {}
    for document in made:
        key = document.user, document.scope, document.source
        if document.kind != "document":
            left[key] = document
            continue
        other = left.get(key)
        name = memory_places.find_by_source(root, *key)
        known = None if name is None else own_slots(root[roots.DOCUMENTS][name])
        is_known = other is not None and not _is_better(document, other.trust, is_evidence=other.is_evidence)
        if known is not None:
            is_evidence = known.get("is_evidence", True) and known["standing"] != "retracted"
            is_known = is_known or not _is_better(document, known["trust"], is_evidence=is_evidence)
        if not is_known:
            left[key] = document
    return list(left.values())


def _is_better(document: NewDocument, trust: str, *, is_evidence: bool) -> bool:
    """Test if a text is trusted more than the same text that nothing is answered from."""
    return not is_evidence and least_trust(document.trust, trust) != document.trust
