"""Promotion of a dream: its mission, slots and contributions become part of the mind in one commit, or nothing does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ZODB.utils import z64

from batos.errors import BatosError, Refused
from batos.event_payloads import MISSION_DONE, MISSION_STATUS, MissionDone, MissionStatus
from batos.events import Events
from batos.history import dreams
from batos.image import roots
from batos.image.ids import tid_text
from batos.image.image import LivingImage
from batos.image.organisation import changed_objects
from batos.image.publisher import Publisher
from batos.image.roots import Root
from batos.image.transactions import MissionTransaction
from batos.methods.execution.write_buffer import DELETED, BufferedWrite, WriteBuffer
from batos.objects.prototype import UvmObject


async def promote(image: LivingImage, publisher: Publisher, events: Events, dream: Mapping[str, Any]) -> None:
    """Make a dream part of the mind.

    Its mission is committed with its answer and the slots that it changed, after the checks of every mission's commit;
    the publisher then folds its contributions in, as it does after a crash.

    Raises: Refused: the dream is not open, or a slot was changed meanwhile; nothing is written.
    """
    mission = dream["mission"]
    if dream["state"] != "open":
        raise Refused(f"{mission} is {dream['state']}", field="dream", remedy="`batos dream list` lists open ones.")

    def change(root: Root) -> BatosError | None:
        # A refusal is returned and not raised, so that it fails nobody else's part of the same commit.
        refusal = _find_refusal(image, root, dream)
        if refusal is None:
            _write(image, root, dream)
        return refusal

    async with image.publishing.here():
        refusal = await image.shared.apply(change)
        if refusal is not None:
            raise refusal
        await publisher.fold(mission)
    await image.journal_writer.apply(lambda root: root[dreams.DREAMS][mission].update(state="promoted"))
    with image.snapshot() as root:
        tid = tid_text(roots.mission_record(root, mission).thought._p_serial)
    events.emit(MISSION_DONE, MissionDone(mission=mission, tid=tid, conversation=dream["brief"].get("conversation")))
    events.emit(MISSION_STATUS, MissionStatus(mission=mission, status="done", reason=None))


async def drop(image: LivingImage, dream: Mapping[str, Any]) -> None:
    """Throw a dream away; its calls stay in the journal. Raises: Refused: it is promoted."""
    if dream["state"] == "promoted":
        raise Refused(f"{dream['mission']} is promoted", field="dream", remedy="`batos undo` takes a mission back.")

    def change(root: Any) -> None:
        root[dreams.DREAMS][dream["mission"]].update(
            state="dropped", files={}, reads=(), thought={"provenance": {"methods": []}}
        )

    await image.journal_writer.apply(change)


def _find_refusal(image: LivingImage, root: Root, dream: Mapping[str, Any]) -> BatosError | None:
    mission = dream["mission"]
    if roots.find_record(root, mission) is not None:
        return Refused(f"{mission} is part of the mind already", field="dream", remedy="`batos show` has it.")
    conflicts = dreams.conflicts_in(root, dream)
    if conflicts:
        return Refused(
            f"changed since the dream began: {', '.join(conflicts)}",
            field="dream",
            remedy=f"See `batos dream diff {mission}`, then dream it again.",
        )
    return None


def _write(image: LivingImage, root: Root, dream: Mapping[str, Any]) -> None:
    """Write the mission as one whose thought is committed and not published yet, and the slots that it changed."""
    mission, at = dream["mission"], dream["accepted_at"]
    image.insert(root, dict(dream["brief"]), at, dream["files"])
    record = roots.mission_record(root, mission)
    roots.move_tally(root, mission, record.status.word, "running")
    record.status.become("running", at)
    for slot, value in dream["thought"].items():
        setattr(record.thought, slot, value)
    buffer = WriteBuffer(user=dream["user"])
    for each in dream["writes"]:
        holder = dreams.find_holder(root, each["oid"])
        if holder is not None:
            value = dreams.live_value(root, each["value"]) if each["has"] else DELETED
            buffer.write(holder, {each["slot"]: BufferedWrite(value, each["trust"])})
    buffer.merge_down()
    checked = _WrittenThought(root, mission, record.thought)
    for voter in image.voters:
        voter(cast("MissionTransaction", checked))


class _WrittenThought:
    """A thought that is about to be committed by the writer, as the voters of a mission's commit look at it."""

    def __init__(self, root: Root, mission: str, thought: UvmObject) -> None:
        self.root, self.mission, self.thought = root, mission, thought
        self._connection = roots.connection_of(root)

    def changed_objects(self) -> tuple[Any, ...]:
        """Return the objects that would be committed."""
        return changed_objects(self._connection)

    def guard(self, read: Any) -> None:
        """Do nothing: the writer's commit is the only one under way."""

    def committed_slots(self, changed: UvmObject) -> Mapping[str, Any] | None:
        """Return the committed slots of an object; None: it is new."""
        connection: Any = self._connection
        return None if changed._p_serial == z64 else connection.oldstate(changed, changed._p_serial)
