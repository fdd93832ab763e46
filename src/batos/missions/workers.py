"""The workers of one process: so many missions at once, and all that can be said to one from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from batos.concurrency.alarms import Alarms, timed_out
from batos.concurrency.commit_thread import finish_despite_cancel
from batos.errors import ApprovalNeeded, BatosError, OllamaBusy, OllamaError, OllamaUnreachable, Refused
from batos.events import Events
from batos.image.image import LivingImage
from batos.image.records import StatusWord
from batos.minds.stopping import StopRequest, cancelled
from batos.missions.queue import Queue, QueueEntry
from batos.objects.prototype import own_slots

_log = structlog.get_logger("batos.workers")

#: Seconds between two looks whether the daemon is back.
PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
#: What may still come to an end.
OPEN: Final[frozenset[StatusWord]] = frozenset({"queued", "running", "waiting", "paused", "parked"})


@dataclass(frozen=True, slots=True)
class MissionOutcome:
    """How a mission left the workers: what it is now, and the error that it came with, if one did."""

    word: StatusWord
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class WorkerDeps:
    """What workers need to do their work.

    `perform` runs one mission to its end, and raises why it ended otherwise; `answers` says whether Ollama does, and
    `awaits` whether a mission that waits for a person still does.
    """

    perform: Callable[[str, StopRequest], Awaitable[None]]
    answers: Callable[[], Awaitable[bool]]
    at_once: int
    events: Events
    pauses: Sequence[float] = PAUSES
    awaits: Callable[[str], bool] = lambda mission: True


@dataclass(slots=True, eq=False)
class _Run:
    """A mission at a worker; a task that is cancelled before it began would never run at all."""

    place: QueueEntry
    hold: StopRequest
    left: asyncio.Future[None]
    task: asyncio.Task[None] | None = None
    begun: bool = False

    def break_off(self) -> None:
        """End it now, wherever it is."""
        if self.begun and self.task is not None:
            self.task.cancel()


class Workers:
    """Missions wait here for their turn, run, and are waited for; every method is called on the loop.

    A worker never raises: what its mission ends with is that mission's alone.
    """

    def __init__(self, image: LivingImage, group: asyncio.TaskGroup, trade: WorkerDeps, clock: Callable[[], datetime]):
        self._image = image
        self._group = group
        self._trade = trade
        self._queue = Queue()
        self._running: dict[str, _Run] = {}
        #: Missions that wait for the daemon.
        self._patient: dict[str, QueueEntry] = {}
        #: Missions whose status is being changed by somebody here, until it is.
        self._settling: dict[str, asyncio.Future[None]] = {}
        self._ends: dict[str, asyncio.Future[MissionOutcome]] = {}
        self.alarms = Alarms(clock, self._ring)
        self._looking: asyncio.Task[None] | None = None
        self._looks = 0
        self.stopping = False
        #: Told when nothing runs or waits for its turn any more.
        self.rested: Callable[[], None] = lambda: None

    # -- what there is

    def has(self, mission: str) -> bool:
        """Whether a mission is on its way here: it waits for its turn or the daemon, runs, or is being settled."""
        return any(mission in kept for kept in (self._running, self._queue, self._patient, self._settling))

    def rests(self) -> bool:
        """Tell whether no mission runs or waits for its turn."""
        return not (self._running or len(self._queue) or self.stopping)

    @property
    def running(self) -> tuple[str, ...]:
        """The missions that run, in the order they began."""
        return tuple(self._running)

    def __len__(self) -> int:
        """How many wait for their turn here."""
        return len(self._queue)

    # -- beginning

    def begin(self, place: QueueEntry) -> None:
        """Let a mission wait for its turn; one that is here already, or comes while all stops, is left as it is."""
        if self.stopping or self.has(place.mission):
            return
        if self.watch_deadline(place):
            self._queue.put(place)
            self._go_on()
        else:
            self._ring(place.mission)

    def watch_deadline(self, place: QueueEntry) -> bool:
        """End the mission when its deadline passes, whether it runs, waits or stands still; False: it has passed."""
        if place.deadline is None:
            return True
        if self.alarms.passed(place.deadline):
            return False
        self.alarms.set(place.mission, place.deadline)
        return True

    def _go_on(self) -> None:
        while not self.stopping and len(self._running) < self._trade.at_once:
            place = self._queue.first()
            if place is None or (self._running and (place.alone or self._runs_alone())):
                return
            self._queue.drop(place.mission)
            hold = StopRequest(self._patience if place.patient else _waits_its_turn, alone=place.alone)
            run = _Run(place, hold, asyncio.get_running_loop().create_future())
            self._running[place.mission] = run
            run.task = self._group.create_task(self._work(run), name=place.mission)

    def _runs_alone(self) -> bool:
        return any(run.place.alone for run in self._running.values())

    async def _work(self, run: _Run) -> None:
        run.begun, mission = True, run.place.mission
        error: BaseException | None = None
        try:
            run.hold()
            await self._trade.perform(mission, run.hold)
        except (Exception, asyncio.CancelledError) as failure:  # whatever it is, it ends this mission and no other
            error = failure
        settling = asyncio.ensure_future(self._outcome_of(run, error))
        with suppress(asyncio.CancelledError):  # said too late: who said it waits for what is being written down
            await finish_despite_cancel(settling)
        ending = settling.result()
        del self._running[mission]
        if ending.word == "done":
            self._looks = 0  # the daemon is well again: the next time it is away is another
        if ending.word != "waiting" or self.stopping:
            self._tell(mission, ending)
        elif not isinstance(ending.error, ApprovalNeeded):
            self._wait_for_ollama(run.place)
        elif self._trade.awaits(mission):
            self._tell(mission, ending)  # it is nobody's here until it is woken
        else:  # answered while it was on its way out
            self._patient[mission] = run.place
            self._group.create_task(self._queue_again(run.place))
        run.left.set_result(None)
        self._go_on()
        if self.rests():
            self.rested()

    async def _outcome_of(self, run: _Run, error: BaseException | None) -> MissionOutcome:
        """What the mission is now; who failed before it began, or could not write that it did, has no status yet."""
        if error is None:
            return MissionOutcome("done")
        mission = run.place.mission
        try:
            word, answered = self._found(mission)
            # Committed, it is not failed, whatever kept its answer from being folded in.
            if word in ("queued", "running") and not answered:
                word, reason = await run.hold.outcome(error)
                await self._move(mission, word, reason, ("queued", "running"))
                return MissionOutcome(word, reason if isinstance(error, asyncio.CancelledError) else error)
        except Exception as unwritten:  # an image that cannot be written must not end the workers
            _log.warning("mission.unsettled", mission=mission, reason=str(unwritten))
            return MissionOutcome("failed", error)
        if isinstance(error, asyncio.CancelledError):
            error = run.hold.reason or cancelled()
        return MissionOutcome(word, error)

    def _found(self, mission: str) -> tuple[StatusWord, bool]:
        """What the mission is, and whether its answer is committed."""
        with self._image.snapshot() as root:
            _, status, thought = self._image.find(root, mission)
            return status.word, "answer" in own_slots(thought)

    async def _move(
        self, mission: str, word: StatusWord, reason: BatosError | None, only: Collection[StatusWord]
    ) -> None:
        await self._image.move(mission, word, reason, only)
        if word in ("failed", "cancelled") and reason is not None:
            self._trade.events.emit("mission.failed", mission=mission, status=word, reason=reason.as_dict())

    # -- waiting for an end

    def end(self, mission: str) -> asyncio.Future[MissionOutcome]:
        """Done when the mission next leaves the workers, or is settled while it stands still. Wait, never cancel it."""
        if mission not in self._ends:
            self._ends[mission] = asyncio.get_running_loop().create_future()
        return self._ends[mission]

    def _tell(self, mission: str, ending: MissionOutcome) -> None:
        if ending.word not in OPEN:
            self.alarms.drop(mission)
        future = self._ends.pop(mission, None)
        if future is not None:
            future.set_result(ending)

    # -- what is said from outside

    async def wait_settled(self, mission: str) -> None:
        """Wait while somebody changes the status of a mission that does not run."""
        while mission in self._settling:
            await asyncio.wait({self._settling[mission]})

    async def stop_as(self, mission: str, word: StatusWord, reason: BatosError, *, force: bool) -> None:
        """Bring a mission that has not ended to a stand, as `word`; returns when it is, or has ended another way.

        Who runs is broken off with `force`, else before it next pays. A commit under way is never torn.
        Refused: it has ended.
        """
        while mission in self._running or mission in self._settling:
            run = self._running.get(mission)
            if run is None:
                await self.wait_settled(mission)
                continue
            if run.hold.request_stop(word, reason, force=force) and force:
                run.break_off()
            await asyncio.wait({run.left})
            now = self._found(mission)[0]
            if now != "waiting" and not (force and now in OPEN):
                return
        place, patient = self._queue.drop(mission), self._patient.pop(mission, None)
        try:
            await self._settle(mission, word, reason, OPEN)
        except Refused:  # it has ended
            raise
        except BaseException:
            self._put_back(mission, place, patient)
            raise
        self._tell(mission, MissionOutcome(word, reason))

    def _put_back(self, mission: str, place: QueueEntry | None, patient: QueueEntry | None) -> None:
        """What could not be written down is not so: the mission waits on for what it waited for.

        Who was cancelled while it was written has said so all the same.
        """
        word = self._found(mission)[0]
        if word not in ("queued", "waiting"):
            self._tell(mission, MissionOutcome(word))
        elif patient is not None and not self.stopping:
            self._wait_for_ollama(patient)
        elif place is not None and not self.stopping:
            self._queue.put(place)
            self._go_on()

    def release(self, mission: str) -> bool:
        """Let a running mission that is to pause go on; says whether it does: it may be on its way out."""
        run = self._running.get(mission)
        if run is None or run.hold.held or run.hold.word not in (None, "paused"):
            return False
        run.hold.release()
        return True

    async def _settle(
        self, mission: str, word: StatusWord, reason: BatosError | None, only: Collection[StatusWord]
    ) -> None:
        """Change the status of a mission that does not run; meanwhile nobody else begins or changes it."""
        settling = self._settling[mission] = asyncio.get_running_loop().create_future()
        try:
            await self._move(mission, word, reason, only)
        finally:
            del self._settling[mission]
            settling.set_result(None)

    def _ring(self, mission: str) -> None:
        self._group.create_task(self.expire(mission))

    async def expire(self, mission: str) -> None:
        """End a mission whose deadline has passed, unless it has ended."""
        try:
            with self._image.snapshot() as root:
                deadline = self._image.find(root, mission)[0].value["deadline"]
            await self.stop_as(mission, "failed", timed_out(mission, deadline), force=True)
        except Refused:
            _log.debug("mission.ended in time", mission=mission)
        except Exception as error:  # no reason to end the workers
            _log.warning("mission.unsettled", mission=mission, reason=str(error))

    async def stop(self) -> None:
        """Send what runs back to the queue and begin nothing more; returns when all has settled.

        What was paid for is in the journal, and a commit under way is waited for. A second call waits for the same.
        """
        self.stopping = True
        self.alarms.clear()
        if self._looking is not None:
            self._looking.cancel()
        for place in (*self._queue.clear(), *self._patient.values()):
            self._tell(place.mission, MissionOutcome("queued"))
        self._patient.clear()
        for run in self._running.values():
            if run.hold.word == "paused":
                run.hold.forced = True
            elif not run.hold.request_stop("queued", _server_stopped(), force=True):
                continue
            run.break_off()
        while self._running or self._settling:
            await asyncio.wait({*self._settling.values(), *(run.left for run in self._running.values())})
        for mission in tuple(self._ends):
            self._tell(mission, MissionOutcome("queued"))

    # -- waiting for the daemon

    async def _patience(self, error: OllamaError) -> bool:
        if isinstance(error, OllamaUnreachable | OllamaBusy):
            return True
        return error.retry and not await self._trade.answers()

    def _wait_for_ollama(self, place: QueueEntry) -> None:
        self._patient[place.mission] = place
        if self._looking is None or self._looking.done():
            self._looking = self._group.create_task(self._look())

    async def _look(self) -> None:
        """Look from time to time whether the daemon answers, less and less often; then those who wait begin again."""
        while self._patient:
            pauses = self._trade.pauses
            await asyncio.sleep(pauses[min(self._looks, len(pauses) - 1)])
            self._looks += 1
            if await self._trade.answers():
                await asyncio.gather(*(self._queue_again(place) for place in tuple(self._patient.values())))

    async def _queue_again(self, place: QueueEntry) -> None:
        mission = place.mission
        if mission not in self._patient:
            return  # somebody brought it to a stand since
        try:
            await self._settle(mission, "queued", None, {"waiting"})
        except Refused:  # it was ended meanwhile
            self._patient.pop(mission, None)
        except Exception as error:  # the image cannot be written: it waits on, and so do the others
            _log.warning("mission.unsettled", mission=mission, reason=str(error))
        else:
            if self._patient.pop(mission, None) is not None:
                self.begin(place)


def _server_stopped() -> BatosError:
    return BatosError("the server stopped before it had an answer", remedy="It runs again when the server does.")


async def _waits_its_turn(error: OllamaError) -> bool:
    """Tell whether a mission that asked for no patience waits: for its turn, where the daemon's own queue was full."""
    return isinstance(error, OllamaBusy)
