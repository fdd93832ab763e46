"""Promotion of a dream: its mission, slots and contributions become part of the mind in one commit, or nothing does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from ZODB.utils import z64

from batos.approvals.desk import Approvals
from batos.events import Events
from batos.history import dreams, mission_traces
from batos.image import roots
from batos.image.guards import changed_objects
from batos.image.ids import iso, tid_text
from batos.image.image import LivingImage
from batos.image.roots import JournalRoot, Root
from batos.image.transactions import MissionTransaction
from batos.image.writer import Publisher
from batos.methods.generation.generator import MethodGenerator
from batos.methods.lifecycle.lifecycle import MethodLifecycle
from batos.objects.prototype import UvmObject
from batos.protocol.errors import Refused
from batos.protocol.event_payloads import MISSION_DONE, MISSION_STATUS, MissionDone, MissionStatus
from batos.protocol.memory_documents import Dream
from batos.records.approval_subjects import Candidate


@dataclass(frozen=True, slots=True)
class PromotionParts:
    """The parts of the UVM that make a dream part of the mind."""

    image: LivingImage
    publisher: Publisher
    events: Events
    clock: Callable[[], datetime]
    approvals: Approvals
    lifecycle: MethodLifecycle
    generator: MethodGenerator


async def promote(parts: PromotionParts, dream: Dream) -> None:
    """Make a dream part of the mind.

    Its mission is committed with its answer, the slots that it changed and the methods that it made, after the checks
    of every mission's commit and of every installation; a person is asked about methods that need a yes. The publisher
    then folds its contributions in, as it does after a crash.

    Raises: Refused: the dream is not open, a slot was changed meanwhile, or a method may not come in; nothing is
    written. NotFound: it was erased meanwhile.
    """
    image, events, mission = parts.image, parts.events, dream["mission"]
    if dream["state"] != "open":
        raise Refused(f"{mission} is {dream['state']}", field="dream", remedy="`batos dream list` lists open ones.")

    def change(root: Root) -> None:
        at = iso(parts.clock())
        _check_promotable(root, dream, at)
        _write(image, root, dream, at)
        asked[:] = [parts.approvals.ask_in(root, Candidate.from_dict(each)) for each in dream.get("asks", ())]

    asked: list[Callable[[], None]] = []
    async with image.publishing.here():
        await asyncio.to_thread(dreams.read, image, mission)  # an erasure at another node may have dropped it
        await image.shared.apply(change)
        await parts.publisher.fold(mission)
    for tell in asked:
        tell()
    await _settle_methods(parts, dream)
    await image.journal_writer.apply(lambda root: root[dreams.DREAMS][mission].update(state="promoted"))
    with image.snapshot() as root:
        tid = tid_text(roots.mission_record(root, mission).thought._p_serial)
    conversation = dream["brief"].get("conversation")
    events.emit(MISSION_DONE, MissionDone(mission=mission, tid=tid, conversation=conversation))
    events.emit(MISSION_STATUS, MissionStatus(mission=mission, status="done", reason=None))
    image.signals.answered.give(mission, conversation)


async def drop(image: LivingImage, dream: Dream) -> None:
    """Throw a dream away; its calls stay in the journal. Raises: Refused: it is promoted."""
    if dream["state"] == "promoted":
        raise Refused(f"{dream['mission']} is promoted", field="dream", remedy="`batos undo` takes a mission back.")

    def change(root: JournalRoot) -> None:
        bare: dict[str, object] = {"provenance": {"methods": []}}
        root[dreams.DREAMS][dream["mission"]].update(
            state="dropped", files={}, reads=(), made=(), asks=(), thought=bare
        )

    await image.journal_writer.apply(change)


async def _settle_methods(parts: PromotionParts, dream: Dream) -> None:
    """Tell of methods that came with a dream, keep the limit of active ones, and end their generations."""
    for each in dream.get("made", ()):
        candidate = Candidate.from_dict(each["candidate"])
        await parts.generator.close_redefinition(candidate)
        await parts.lifecycle.settle(roots.TOOLS if candidate.methods else candidate.holder, candidate.selector)


def _check_promotable(root: Root, dream: Dream, at: str) -> None:
    mission = dream["mission"]
    if roots.find_record(root, mission) is not None:
        raise Refused(f"{mission} is part of the mind already", field="dream", remedy="`batos show` has it.")
    conflicts = dreams.conflicts_in(root, dream)
    if conflicts:
        raise Refused(
            f"changed since the dream began: {', '.join(conflicts)}",
            field="dream",
            remedy=f"See `batos dream diff {mission}`, then dream it again.",
        )
    dreams.check_installable(root, dream, at)


def _write(image: LivingImage, root: Root, dream: Dream, now: str) -> None:
    """Write the mission as one whose thought is committed and not published yet, and all that it changed.

    Methods are installed after the voters were asked: to them a thought makes no behaviour, here as anywhere.
    """
    mission, at = dream["mission"], dream["accepted_at"]
    image.insert(root, dict(dream["brief"]), at, dream["files"])
    record = roots.mission_record(root, mission)
    roots.move_tally(root, mission, record.status.word, "running")
    record.status.become("running", at)
    # Once more: a dream that came with a stranger's mind may have some.
    thought = dreams.without_effects(dream["thought"])
    for slot, value in thought.items():
        setattr(record.thought, slot, value)
    mission_traces.give_slots(root, dream["user"], dream["writes"])
    checked = _WrittenThought(root, mission, record.thought)
    for voter in image.voters:
        voter(cast("MissionTransaction", checked))
    renamed = dreams.install_methods(root, dream, now)
    if renamed:
        for slot, value in thought.items():
            setattr(record.thought, slot, dreams.rename(value, renamed))
        mission_traces.give_slots(root, dream["user"], [dreams.rename(each, renamed) for each in dream["writes"]])


class _WrittenThought:
    """A thought that is about to be committed by the writer, as the voters of a mission's commit look at it."""

    def __init__(self, root: Root, mission: str, thought: UvmObject) -> None:
        self.root, self.mission, self.thought = root, mission, thought
        self._connection = roots.connection_of(root)

    def changed_objects(self) -> tuple[Any, ...]:
        """Return the objects that would be committed."""
        return changed_objects(self._connection)

    def guard(self, read: object) -> None:
        """Do nothing: the writer's commit is the only one under way."""

    def committed_slots(self, changed: UvmObject) -> Mapping[str, object] | None:
        """Return the committed slots of an object; None: it is new."""
        connection: Any = self._connection
        return None if changed._p_serial == z64 else connection.oldstate(changed, changed._p_serial)
