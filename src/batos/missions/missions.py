"""What doors ask of missions: accepted, begun, waited for, cancelled, paused, resumed, found again after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import structlog

from batos.brief import File
from batos.concurrency.commit_thread import finish_despite_cancel
from batos.conversations import conversations
from batos.errors import BatosError, NotFound, Refused
from batos.image import keeping
from batos.image.image import LivingImage
from batos.image.records import StatusWord
from batos.image.roots import Root
from batos.minds.stopping import cancelled, paused
from batos.missions import acceptance
from batos.missions.queue import QueueEntry
from batos.missions.recovery import AFRESH, Recovery, Seen, yielding_every
from batos.missions.workers import OPEN, Workers

_log = structlog.get_logger("batos")

#: What waits to be begun.
_WAITING: Final[frozenset[StatusWord]] = frozenset({"queued", "waiting"})
#: What will come to something by itself, here or where it runs.
_UNDER_WAY: Final[frozenset[StatusWord]] = frozenset({"queued", "running"})
#: What goes on when somebody says so.
_STANDING: Final[frozenset[StatusWord]] = frozenset({"paused", "parked"})
#: Ends of a run that are nobody's failure.
_PEACEFUL: Final[frozenset[StatusWord]] = frozenset({"done", "queued", "paused", "waiting"})
#: Missions that are settled in one commit.
_TOGETHER: Final = 100


class Missions:
    """The missions of one image and the workers of one process; `limit` is how many may wait."""

    def __init__(
        self, image: LivingImage, workers: Workers, recovery: Recovery, limit: int, clock: Callable[[], datetime]
    ) -> None:
        self._image = image
        self._workers = workers
        self._recovery = recovery
        self._limit = limit
        self._clock = clock
        #: The places of missions that were left behind, until they begin: not each of their briefs is read again.
        self._places: dict[str, QueueEntry] = {}

    # -- accepting and running

    async def submit(self, brief: Mapping[str, Any], files: Sequence[File] = ()) -> str:
        """Validate and accept a brief that names its user; durable when the id is returned. Busy: no more may wait."""
        asked = {**brief, "attachments": [file.ref.model_dump() for file in files]}
        with self._image.snapshot() as root:
            value = acceptance.resolve_brief(root, asked, self._clock())
            first = acceptance.find_repeat(root, value, asked)
            value = acceptance.with_kept_files(root, value) if first is None else value
        if first is not None:
            return first
        mission = await self._image.accept(value, {file.ref.sha256: file.data for file in files}, self._limit)
        if "idempotency_key" in value:
            with self._image.snapshot() as root:  # another may have come first while this one was written
                acceptance.find_repeat(root, value, asked)
        return mission

    async def drop_files(self, conversation: str, names: Sequence[str], user: str) -> None:
        """Leave files of a conversation out of its next questions; NotFound, and no change, if one is not there."""

        def change(root: Root) -> BatosError | None:
            try:
                found = conversations.mine(root, conversations.named(root, conversation, user), user)
            except BatosError as error:  # not raised there: it would fail what shares the commit
                return error
            unknown = keeping.drop(found, names)
            known = ", ".join(each["name"] for each in keeping.kept(found)) or "none"
            what = f"the conversation has no file {unknown[0]!r}; it has {known}" if unknown else ""
            return NotFound(what, field="names", remedy="/files lists them.") if unknown else None

        error = await self._image.writer.apply(change)
        if error is not None:
            raise error

    def begin(self, mission: str) -> bool:
        """Hand an accepted mission to the workers; says whether they have it: one that is done they need not.

        One that waits for a person is left to wait. Refused: it has ended another way, or stands still until it is
        resumed.
        """
        if self._workers.has(mission):
            return True
        place = self._places.pop(mission, None) or _place_of(self._recovery.look(mission))
        return place is not None and self._hand_over(place)

    def _hand_over(self, place: QueueEntry) -> bool:
        self._workers.begin(place)
        return not self._workers.stopping

    async def ended(self, mission: str) -> None:
        """Wait until a mission has ended or stands still; one that was committed before is folded in first.

        Raises the image's error if that cannot be done: the answer is safe, and the mission not yet done.
        """
        while True:
            word = self._word(mission)
            here = self._workers.has(mission)
            if not here and (word not in _UNDER_WAY or self._workers.stopping):
                return
            if not here and await self._recovery.publish(mission):
                return
            end = self._workers.end(mission)
            await asyncio.wait({end})
            if end.result().word not in OPEN:  # also when the image could not be told
                return

    async def run(self, mission: str) -> None:
        """Begin a mission and wait until it has ended or stands still; raises why it failed. Whoever leaves cancels it.

        One that was committed before is only folded in.
        Refused: it runs just now, or has ended another way than done.
        """
        if self._workers.has(mission):
            raise Refused(f"{mission} is running already", field="mission", remedy="Wait for its end.")
        seen = self._recovery.look(mission)
        if seen.answered:
            await self._recovery.publish(mission)
            return
        self._places.pop(mission, None)
        try:
            place = _place_of(seen)
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
        with suppress(Refused):  # it has ended
            await self._workers.stop_as(mission, "cancelled", cancelled(), force=True)

    # -- steering

    async def cancel(self, mission: str) -> None:
        """End a mission at once; if its commit went through it is done all the same. Refused: it had ended before."""
        await self._open(mission)
        self._places.pop(mission, None)
        await self._workers.stop_as(mission, "cancelled", cancelled(), force=True)

    async def pause(self, mission: str) -> None:
        """Let a mission stand still when the calls under way are paid and journaled. Refused: it has ended."""
        if await self._open(mission) in _STANDING:
            return
        self._places.pop(mission, None)
        await self._workers.stop_as(mission, "paused", paused(), force=False)

    async def resume(self, mission: str) -> None:
        """Let a mission that stands still, or whose process is gone, go on. Refused: it has ended."""
        await self._workers.wait_settled(mission)
        word = await self._open(mission)
        if self._workers.release(mission):
            return
        while self._workers.has(mission) and word == "running":  # it is about to stand still
            await self.ended(mission)
            word = await self._open(mission)
        if word in _STANDING:
            with suppress(Refused):  # it stands still no more: whether it may begin is looked at below
                await self._image.move(mission, "queued", None, _STANDING, **AFRESH)
        self.begin(mission)

    async def wake(self, missions: Sequence[str]) -> list[str]:
        """Queue again those that waited for a person who has answered; the ids of those that now wait to be begun.

        One that cannot be settled is left as it is and logged: it goes on when it is resumed, or after a restart.
        """
        each, woken = list(dict.fromkeys(missions)), list[str]()
        for first in range(0, len(each), _TOGETHER):
            batch = each[first : first + _TOGETHER]
            found = await asyncio.gather(*map(self._woken, batch))
            woken += [mission for mission, queued in zip(batch, found, strict=True) if queued]
        return woken

    async def _woken(self, mission: str) -> bool:
        if self._workers.has(mission):  # on its way, or being settled: it sees the answer by itself
            return False
        try:
            seen = self._recovery.look(mission)
            if seen.word != "waiting" or seen.awaits:
                return False
            await self._image.move(mission, "queued", None, {"waiting"})
        except Refused:  # somebody brought it to a stand since
            return False
        except BatosError as error:  # no reason to leave the others
            _log.warning("mission.unsettled", mission=mission, reason=error.as_dict())
            return False
        self._places[mission] = seen.place
        return True

    async def _open(self, mission: str) -> StatusWord:
        """The status of a mission that has not ended; one whose process is gone is settled first. Else Refused."""
        word = self._word(mission)
        if word == "running" and not self._workers.has(mission):
            await self._recovery.one(mission)
            word = self._word(mission)
        if word not in OPEN:
            raise _has_ended(mission, word)
        return word

    def _word(self, mission: str) -> StatusWord:
        with self._image.snapshot() as root:
            return self._image.find(root, mission)[1].word

    # -- after a crash

    async def recover(self) -> list[str]:
        """Settle what an earlier process left behind; the ids of the missions that wait to be begun."""
        left = await self._recovery.all(self._workers.has)
        known = (*left.waiting, *left.standing)
        late = [place.mission async for place in yielding_every(known) if not self._workers.watch_deadline(place)]
        for first in range(0, len(late), _TOGETHER):
            await asyncio.gather(*(self._workers.expire(mission) for mission in late[first : first + _TOGETHER]))
        ended = frozenset(late)
        self._places = {
            place.mission: place async for place in yielding_every(left.waiting) if place.mission not in ended
        }
        return list(self._places)


def _place_of(seen: Seen) -> QueueEntry | None:
    """The place of a mission that is to be begun; None: it is done, or waits for a person. Refused: it is neither."""
    if seen.word == "done" or seen.awaits:
        return None
    if seen.word not in _WAITING:
        raise _not_begun(seen.place.mission, seen.word)
    return seen.place


def _not_begun(mission: str, word: StatusWord) -> Refused:
    if word not in OPEN:
        return _has_ended(mission, word)
    gone = "If its process has ended, `batos resume` runs it again."
    return Refused(
        f"{mission} is {word} and does not wait to be run",
        field="mission",
        remedy=gone if word == "running" else "`batos resume` lets it go on.",
    )


def _has_ended(mission: str, word: StatusWord) -> Refused:
    return Refused(
        f"{mission} has ended: it is {word}",
        field="mission",
        remedy=f"Ask again with `--ancestor {mission}`: what was paid for is not paid again.",
    )
