"""The missions of an image: accepting, starting, waiting for, cancelling, pausing, resuming and recovering them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import structlog

from batos.concurrency.threads import finish_despite_cancel
from batos.conversations import conversations
from batos.image import attached_files, roots
from batos.image.image import LivingImage
from batos.image.nodes import claims
from batos.image.records import OPEN, UNDER_WAY, StatusWord
from batos.image.roots import Root
from batos.image.writer import PAUSE, Noted
from batos.minds.stopping import cancelled_error, ended_error, paused_error
from batos.missions import acceptance, messages
from batos.missions.readings import Readings
from batos.missions.recovery import AFRESH, Recovery, yielding_every
from batos.missions.worker_runs import QueueEntry, SeenMission, new_entry
from batos.missions.workers import Workers
from batos.protocol.brief import File
from batos.protocol.errors import BatosError, BriefError, NotFound, Refused
from batos.protocol.image_documents import ConversationPage
from batos.protocol.mission_documents import MissionDocument

_log = structlog.get_logger("batos")

#: Statuses of missions that wait to be started.
_WAITING: Final[frozenset[StatusWord]] = frozenset({"queued", "waiting"})
#: Statuses of missions that continue only on request.
_STANDING: Final[frozenset[StatusWord]] = frozenset({"paused", "parked"})
#: Statuses after a run that did not fail.
_PEACEFUL: Final[frozenset[StatusWord]] = frozenset({"done", "queued", "paused", "waiting"})
#: The reason of a mission whose asker left while it was being accepted.
_LEFT: Final = BatosError("its asker left before it was begun", remedy="`batos resume` runs it.")
#: The number of missions whose status is changed in one commit.
_TOGETHER: Final = 100
#: Times of a lease for which a node may take to stop a mission; one that pauses it pays for its calls first.
_PATIENCE: Final[Mapping[str, int]] = {"cancelled": 3, "paused": 30}


class Missions:
    """The missions of one image and the workers of one process."""

    def __init__(self, image: LivingImage, workers: Workers, recovery: Recovery, readings: Readings) -> None:
        self._image = image
        self._workers = workers
        self.recovery = recovery
        self._readings = readings
        self._settings = readings.settings
        self._clock = readings.clock
        #: The queue entries of missions that wait to be begun, so that their briefs are not read again.
        self._places: dict[str, QueueEntry] = {}

    # -- accepting and running

    async def submit(
        self,
        brief: Mapping[str, object],
        files: Sequence[File] = (),
        *,
        begin: bool = False,
        noted: Noted | None = None,
    ) -> str:
        """Validate and store a brief, and return the mission's id once it is durable.

        With `begin`, a brief without an idempotency key is begun at once if a worker is free: one commit stores the
        mission as one that runs. Every other mission is not begun.
        The user and the effort are those of the settings unless the brief names others. A brief with the idempotency
        key of an earlier one returns that mission. `noted` writes in the commit that stores the brief.

        Raises: BriefError, NotFound, Refused: as `acceptance.resolve_brief`. MessageNotUnderstood, ObjectError: as
        `messages.check`. Busy: no more missions may wait.
        """
        if strange := next((file.ref.name for file in files if not file.is_text), ""):
            raise BriefError(
                f"{strange} is not UTF-8 text",
                field="attachments",
                remedy="Convert it, or ask by a client: its server reads PDF, HTML, mail and more.",
            )
        chosen = self._settings.effort
        usual = {} if chosen == "auto" or "message" in brief else {"effort": chosen}
        attached = [file.ref.model_dump() for file in files]
        asked = {"user": self._settings.asker, **usual, **brief, "attachments": attached}
        with self._image.snapshot() as root:
            parsed = acceptance.resolve_brief(root, asked, self._clock())
            first = acceptance.find_repeat(root, parsed, asked)
            parsed = acceptance.with_kept_files(root, parsed) if first is None else parsed
            if first is None:
                messages.check(root, parsed)
        if first is not None and noted is None:
            return first
        document, content = parsed.as_document(), {file.ref.sha256: file.data for file in files}
        if begin and parsed.idempotency_key is None:
            return await self._accept_and_begin(document, content)
        mission = await self._image.accept(document, content, self._settings.queue, noted=noted)
        if parsed.idempotency_key is not None:
            with self._image.snapshot() as root:  # another with this key may have been stored meanwhile
                acceptance.find_repeat(root, parsed, asked)
        else:
            self._places[mission] = new_entry(mission, document)
        return mission

    async def _accept_and_begin(self, document: Mapping[str, object], content: Mapping[str, bytes]) -> str:
        """Store a brief and return the mission's id; begin the mission, or keep its queue entry if no worker is free.

        When this call is cancelled and the mission is stored all the same, the mission waits in the queue.
        """
        reserved: list[str] = []

        def reserve(mission: str) -> bool:
            if self._workers.reserve(new_entry(mission, document)):
                reserved.append(mission)
            return bool(reserved)

        try:
            mission = await self._image.accept(document, content, self._settings.queue, reserve)
        except BaseException as error:
            # After a cancellation without a cause the commit went through; it may have refused the mission.
            committed = isinstance(error, asyncio.CancelledError) and error.__cause__ is None
            for each in reserved:
                if committed and self._is_stored(each):
                    self._workers.begin_reserved(each, _LEFT)
                else:
                    self._workers.free(each)
            raise
        if reserved:
            self._workers.begin_reserved(mission)
        else:
            self._places[mission] = new_entry(mission, document)
        return mission

    def _is_stored(self, mission: str) -> bool:
        """Test if there is such a mission."""
        with self._image.snapshot() as root:
            return roots.find_record(root, mission) is not None

    async def drop_files(self, conversation: str, names: Sequence[str], user: str | None = None) -> ConversationPage:
        """Leave files of a conversation out of its next questions, and return its newest turn with those that are left.

        Raises: NotFound: there is no such conversation, or a file is not there; nothing is changed.
        """
        owner = user or self._settings.asker

        def change(root: Root) -> None:
            found = conversations.own_conversation(root, conversations.resolve_name(root, conversation, owner), owner)
            unknown = attached_files.drop_from_conversation(found, names)
            if unknown:
                known = ", ".join(each["name"] for each in attached_files.files_of(found)) or "none"
                what = f"the conversation has no file {unknown[0]!r}; it has {known}"
                raise NotFound(what, field="names", remedy="/files lists them.")

        await self._image.writer.apply(change)
        return self._readings.turns(conversation, -1, 1, user)

    async def begin(self, mission: str) -> None:
        """Hand an accepted mission to the workers; a mission that they have, or that is done, is left as it is.

        Raises: Refused: the mission has ended without an answer, or is paused or parked.
        """
        self.enqueue(mission)
        await asyncio.sleep(0)  # a caller that begins ten thousand in a row lets other tasks run

    def enqueue(self, mission: str) -> bool:
        """Hand an accepted mission to the workers, and return True if they have it; False if it needs no worker.

        A mission that waits for a person is left to wait.

        Raises: Refused: the mission has ended without an answer, or is paused or parked.
        """
        if self._workers.has(mission):
            return True
        place = self._places.pop(mission, None) or _place_of(self.recovery.look(mission))
        return place is not None and self._hand_over(place)

    def _hand_over(self, place: QueueEntry) -> bool:
        """Give a queue entry to the workers; return False if they are stopping."""
        self._workers.begin(place)
        return not self._workers.stopping

    async def wait_for_end(self, mission: str) -> MissionDocument:
        """Wait until a mission has ended or is paused, and return its report.

        The error of a mission that failed is not raised. An answer that is committed but not folded in is folded in
        first.

        Raises the image's error if that fails: the answer is safe, but the mission is not yet done.
        """
        await self._wait_for_end(mission)
        return self._readings.mission(mission)

    async def _wait_for_end(self, mission: str) -> None:
        while True:
            word = self.recovery.look(mission).word
            here = self._workers.has(mission)
            if not here and (word not in UNDER_WAY or self._workers.stopping):
                return
            if not here and not self.recovery.look(mission).is_elsewhere and await self.recovery.publish(mission):
                return
            end = self._workers.end(mission)
            await asyncio.wait({end})
            if end.result().word not in OPEN:  # even if the image could not be written
                return

    async def ask(self, brief: Mapping[str, object], files: Sequence[File] = ()) -> MissionDocument:
        """Submit a mission, run it, and return its report. Raises: what `submit` and `run` raise."""
        keyed = brief.get("idempotency_key") is not None
        mission = await self.submit(brief, files, begin=True)
        await self._run(mission, begun=not keyed and self._workers.has(mission))
        return self._readings.mission(mission)

    async def run(self, mission: str) -> MissionDocument:
        """Start a mission, wait until it has ended or is paused, and return its report.

        Cancelling this call cancels the mission. A mission that was committed before is only folded in. The error of a
        mission that failed is raised.

        Raises: Refused: the mission runs already, or has ended without an answer.
        """
        await self._run(mission)
        return self._readings.mission(mission)

    async def _run(self, mission: str, *, begun: bool = False) -> None:
        if not begun and self._workers.has(mission):
            raise Refused(f"{mission} is running already", field="mission", remedy="Wait for its end.")
        place = self._places.pop(mission, None)
        if not begun and place is None and await self.recovery.publish(mission):
            return
        try:
            if not begun:
                place = place or _place_of(self.recovery.look(mission))
                if place is None or not self._hand_over(place):
                    return
            end = self._workers.end(mission)
            await asyncio.wait({end})
        except asyncio.CancelledError:
            await finish_despite_cancel(asyncio.ensure_future(self._give_up(mission)))
            raise
        ending = end.result()
        if ending.error is not None and ending.word not in _PEACEFUL:
            raise ending.error

    async def _give_up(self, mission: str) -> None:
        """Cancel a mission unless it has ended."""
        with suppress(Refused):  # it has ended
            await self._workers.stop_as(mission, "cancelled", cancelled_error(), force=True)

    # -- steering

    async def cancel(self, mission: str) -> MissionDocument:
        """Cancel a mission at once, and return its report. If its commit has gone through, the mission is done.

        Raises: Refused: it had ended before. Busy: it runs at another node, which does not stop it.
        """
        await self._require_open(mission)
        self._places.pop(mission, None)
        if not await self._stop_elsewhere(mission, "cancelled"):
            await self._workers.stop_as(mission, "cancelled", cancelled_error(), force=True)
        return self._readings.mission(mission)

    async def pause(self, mission: str) -> MissionDocument:
        """Pause a mission after its running calls are paid for and journaled, and return its report.

        Raises: Refused: the mission has ended. Busy: it runs at another node, which does not stop it.
        """
        if await self._require_open(mission) not in _STANDING:
            self._places.pop(mission, None)
            if not await self._stop_elsewhere(mission, "paused"):
                await self._workers.stop_as(mission, "paused", paused_error(), force=False)
        return self._readings.mission(mission)

    async def _stop_elsewhere(self, mission: str, word: StatusWord) -> bool:
        """Ask the node that runs a mission to stop it, and wait until it has, or raise Busy; False if no other does."""
        fence, lease = self._image.fence, self._image.lease

        def ask(root: Root) -> str:
            return claims.ask_to_stop(root, self._image.find(root, mission).status, fence, word)

        seen = self.recovery.look(mission)
        if lease is None or not seen.is_elsewhere or not (node := await self._image.writer.apply(ask)):
            return False
        seconds, clock = _PATIENCE[word] * lease.seconds, asyncio.get_running_loop().time
        end = clock() + seconds
        while self.recovery.look(mission).is_elsewhere:
            if clock() > end:
                raise claims.unheeded_error(mission, node, seconds)
            await asyncio.sleep(PAUSE)
        # Where its node died first, it is to be stopped here.
        return self.recovery.look(mission).word not in UNDER_WAY

    async def resume(self, mission: str) -> MissionDocument:
        """Continue a mission that is paused or parked, or whose process has ended, and return its report.

        Raises: Refused: the mission has ended.
        """
        await self._resume(mission)
        return self._readings.mission(mission)

    async def _resume(self, mission: str) -> None:
        await self._workers.wait_settled(mission)
        word = await self._require_open(mission)
        if self._workers.release(mission):
            return
        while self._workers.has(mission) and word == "running":  # it is about to stand still
            await self._wait_for_end(mission)
            word = await self._require_open(mission)
        if word in _STANDING:
            with suppress(Refused):  # its status has changed: `begin` below checks it
                await self._image.move(mission, "queued", None, _STANDING, **AFRESH)
        self.enqueue(mission)

    async def wake(self, missions: Sequence[str]) -> list[str]:
        """Queue missions again whose person has answered, and return the ids of those that now wait for a worker.

        A mission whose status cannot be changed is logged and left: a resume or a restart continues it.
        """
        each, woken = list(dict.fromkeys(missions)), list[str]()
        for first in range(0, len(each), _TOGETHER):
            batch = each[first : first + _TOGETHER]
            found = await asyncio.gather(*map(self._wake_one, batch))
            woken += [mission for mission, queued in zip(batch, found, strict=True) if queued]
        return woken

    async def _wake_one(self, mission: str) -> bool:
        """Queue one mission again, and return True if it waits for a worker now."""
        if self._workers.has(mission):  # it is being stopped, and will see the answer by itself
            return False
        try:
            seen = self.recovery.look(mission)
            if seen.word != "waiting" or seen.awaits:
                return False
            await self._image.move(mission, "queued", None, {"waiting"})
        except Refused:  # it was stopped meanwhile
            return False
        except BatosError as error:  # no reason to leave the others
            _log.warning("mission.unsettled", mission=mission, reason=error.as_dict())
            return False
        self._places[mission] = seen.place
        return True

    async def _require_open(self, mission: str) -> StatusWord:
        """Return the status of a mission that has not ended, after recovering one whose process has ended.

        Raises: Refused.
        """
        word = self.recovery.look(mission).word
        if word == "running" and not self._workers.has(mission):
            await self.recovery.one(mission)
            word = self.recovery.look(mission).word
        if word not in OPEN:
            raise ended_error(mission, word)
        return word

    # -- after a crash

    async def recover(self) -> list[str]:
        """Settle missions that an earlier process left behind, and return the ids of those that wait for a worker.

        A committed mission is folded in, one that was not is queued again. A mission that cannot be settled is logged
        and left; a deadline that has passed ends its mission.
        """
        left = await self.recovery.all(self._workers.has)
        known = (*left.waiting, *left.standing)
        late = [place.mission async for place in yielding_every(known) if not self._workers.watch_deadline(place)]
        for first in range(0, len(late), _TOGETHER):
            await asyncio.gather(*(self._workers.expire(mission) for mission in late[first : first + _TOGETHER]))
        ended = frozenset(late)
        self._places = {
            place.mission: place async for place in yielding_every(left.waiting) if place.mission not in ended
        }
        return list(self._places)


def _place_of(seen: SeenMission) -> QueueEntry | None:
    """Return the queue entry of a mission to start; None if it is done, waits for a person, or another node runs it.

    Raises: Refused: as `begin`.
    """
    if seen.word == "done" or seen.awaits or seen.is_elsewhere:
        return None
    if seen.word not in _WAITING:
        raise _start_refusal(seen.place.mission, seen.word)
    return seen.place


def _start_refusal(mission: str, word: StatusWord) -> Refused:
    """Return the error for a mission that cannot be started."""
    if word not in OPEN:
        return ended_error(mission, word)
    gone = "If its process has ended, `batos resume` runs it again."
    return Refused(
        f"{mission} is {word} and does not wait to be run",
        field="mission",
        remedy=gone if word == "running" else "`batos resume` lets it go on.",
    )
