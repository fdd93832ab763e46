"""The workers of one process: run a limited number of missions at once, and stop them on request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime

import structlog

from batos.concurrency.jobs import Alarms, Signal, timeout_error
from batos.concurrency.threads import finish_despite_cancel
from batos.image.image import LivingImage
from batos.image.records import OPEN, StatusWord
from batos.minds.stopping import StopRequest
from batos.missions import worker_runs
from batos.missions.worker_runs import (
    MissionOutcome,
    Outcomes,
    Queue,
    QueueEntry,
    Run,
    WorkerDeps,
    server_stop_reason,
    waits_its_turn,
)
from batos.protocol.errors import ApprovalNeeded, BatosError, OllamaBusy, OllamaError, OllamaUnreachable, Refused

_log = structlog.get_logger("batos.workers")


class Workers:
    """The missions that wait or run in this process. Every method is called on the event loop.

    A worker never raises: an error of its mission ends that mission alone.
    """

    def __init__(self, image: LivingImage, group: asyncio.TaskGroup, deps: WorkerDeps, clock: Callable[[], datetime]):
        self._image = image
        self._group = group
        self._deps = deps
        self._outcomes = Outcomes(image, deps.events)
        self._queue = Queue()
        self._suspicion = worker_runs.SuspicionNote(image, group)
        self._running: dict[str, Run] = {}
        #: The runs of missions that are being accepted; they are among `_settling` too.
        self._reserved: dict[str, Run] = {}
        #: Missions that wait for the daemon.
        self._patient: dict[str, QueueEntry] = {}
        #: Missions whose status is being changed here.
        self._settling: dict[str, asyncio.Future[None]] = {}
        self._ends: dict[str, asyncio.Future[MissionOutcome]] = {}
        self.alarms = Alarms(clock, self._ring)
        self._looking: asyncio.Task[None] | None = None
        self._looks = 0
        self._quiet: asyncio.Task[None] | None = None  # then a mission that runs alone may begin
        self.stopping = False
        self.rested: Signal[[]] = Signal()  # no mission runs or waits for its turn any more

    # -- what there is

    def has(self, mission: str) -> bool:
        """Test if a mission waits here for its turn or for the daemon, runs, or has its status changed just now."""
        return any(mission in kept for kept in (self._running, self._queue, self._patient, self._settling))

    def is_idle(self) -> bool:
        """Test if no mission runs or waits for its turn."""
        return not (self._running or self._reserved or len(self._queue) or self.stopping)

    @property
    def running(self) -> tuple[str, ...]:
        """Return the running missions in the order of their start."""
        return tuple(self._running)

    def __len__(self) -> int:
        """Return the number of missions that wait for their turn."""
        return len(self._queue)

    def free_workers(self) -> int:
        """Return the number of missions that could start now, beside those that wait here for their turn."""
        if self.stopping or self._runs_alone():
            return 0
        return max(0, self._deps.at_once - len(self._running) - len(self._reserved) - self._queue.count_ready())

    # -- beginning

    def begin(self, place: QueueEntry) -> None:
        """Queue a mission for a worker, unless it is here already or the workers stop."""
        if self.stopping or self.has(place.mission):
            return
        if self.watch_deadline(place):
            self._queue.put(place)
            self._suspicion.see(place)
            self._go_on()
        else:
            self._ring(place.mission)

    def watch_deadline(self, place: QueueEntry) -> bool:
        """Set an alarm that ends the mission at its deadline; return False if the deadline has passed.

        The mission is ended even if it waits or is paused.
        """
        if place.deadline is None:
            return True
        if self.alarms.has_passed(place.deadline):
            return False
        self.alarms.set(place.mission, place.deadline)
        return True

    def reserve(self, place: QueueEntry) -> bool:
        """Reserve a worker for a mission that is being accepted; return False if none is free or another is next.

        `begin_reserved` or `free` must follow.
        """
        busy = self.stopping or self._queue.first() is not None or self._runs_alone()
        if busy or len(self._running) + len(self._reserved) >= self._deps.at_once:
            return False
        run = self._reserved[place.mission] = self._run_of(place, self._deps.prepare(place.mission))
        self._settling[place.mission] = run.accepted
        return True

    def begin_reserved(self, mission: str, leaving: BatosError | None = None) -> None:
        """Start a mission for which a worker was reserved: it is stored as one that runs.

        With `leaving`, the reason, or if the workers stop, the mission is put back into the queue instead.
        """
        run = self._release(mission)
        leaving = server_stop_reason() if self.stopping else leaving
        if leaving is not None:
            run.stop_request.request_stop("queued", leaving, force=True)
        self._start(run)
        if not self.watch_deadline(run.place):
            self._ring(mission)

    def free(self, mission: str) -> None:
        """Give back the worker that was reserved for a mission that was not accepted."""
        self._release(mission).give_up()
        self._after_one()

    def _release(self, mission: str) -> Run:
        """Return a mission's reserved run, which is no longer reserved."""
        run = self._reserved.pop(mission)
        del self._settling[mission]
        run.accepted.set_result(None)
        return run

    def _go_on(self) -> None:
        """Start queued missions while there are free workers."""
        while not self.stopping and len(self._running) + len(self._reserved) < self._deps.at_once:
            place = self._queue.first()
            here = self._running or self._reserved
            if place is None or (here and (place.runs_alone or self._runs_alone())):
                break
            self._queue.drop(place.mission)
            self._start(self._run_of(place))
        if not (self.stopping or self._running or self._reserved or self._quiet) and self._queue.holds_back():
            self._quiet = self._group.create_task(self._live_a_while())

    async def _live_a_while(self) -> None:
        """Begin what runs alone after some quiet seconds."""
        await asyncio.sleep(self._deps.quiet)
        self._queue.see_life()
        self._go_on()

    def _after_one(self) -> None:
        """Start what waits for the worker that has become free, and tell if none works any more."""
        self._go_on()
        if self.is_idle():
            self.rested.give()

    def _run_of(self, place: QueueEntry, give_up: Callable[[], None] | None = None) -> Run:
        """Return a run for a mission; with `give_up`, for one that is stored as one that runs."""
        loop, patience = asyncio.get_running_loop(), self._patience if place.waits_for_ollama else waits_its_turn
        stop_request = StopRequest(patience, runs_alone=place.runs_alone, is_running=give_up is not None)
        return Run(place, stop_request, loop.create_future(), loop.create_future(), give_up or worker_runs.nothing)

    def _start(self, run: Run) -> None:
        """Start a run in a task of its own."""
        self._running[run.place.mission] = run
        run.start(self._group, self._work)

    def _runs_alone(self) -> bool:
        """Test if a mission runs that tolerates no other beside it."""
        return any(run.place.runs_alone for run in self._running.values())

    async def _work(self, run: Run) -> None:
        """Run one mission, and pass on its outcome: to its waiters, to the wait for Ollama, or back to the queue."""
        mission = run.begin()
        error: BaseException | None = None
        try:
            run.stop_request.check()
            await self._deps.perform(mission, run.stop_request)
        except (Exception, asyncio.CancelledError) as failure:  # any error ends this mission and no other
            error = failure
        run.give_up()
        settling = asyncio.ensure_future(self._outcomes.find(run, error))
        with suppress(asyncio.CancelledError):  # too late: the canceller waits until the status is written
            await finish_despite_cancel(settling)
        ending = settling.result()
        del self._running[mission]
        if ending.word == "done":
            self._looks = 0  # the daemon works: the pauses start anew
        if ending.word not in OPEN:
            self._queue.see_end()
        if ending.is_elsewhere:
            pass  # who waits for its end is told by then
        elif ending.word != "waiting" or self.stopping:
            self._tell(mission, ending)
        elif not isinstance(ending.error, ApprovalNeeded):
            self._wait_for_ollama(run.place)
        elif self._outcomes.awaits_person(mission):
            self._tell(mission, ending)  # the mission leaves the workers until it is woken
        else:  # the person answered while the mission was stopping
            self._patient[mission] = run.place
            self._group.create_task(self._queue_again(run.place))
        run.left.set_result(None)
        self._after_one()

    # -- waiting for an end

    def end(self, mission: str) -> asyncio.Future[MissionOutcome]:
        """Return a future for the mission's next outcome: when it leaves the workers, or is stopped while it waits.

        Never cancel it.
        """
        if mission not in self._ends:
            self._ends[mission] = asyncio.get_running_loop().create_future()
        return self._ends[mission]

    def waited_missions(self) -> tuple[str, ...]:
        """Return the missions that are waited for and wait for their turn, or are not here at all."""
        return tuple({*self._ends, *self._queue.missions()} - {*self._running, *self._settling, *self._patient})

    def tell_elsewhere(self, mission: str, ending: MissionOutcome | None) -> None:
        """Take a mission out of the queue that another node has begun; with its outcome, tell who waits for it."""
        if mission not in self._running and mission not in self._settling:
            self._queue.drop(mission)
            if ending is not None:
                self._tell(mission, ending)
            self._after_one()

    def _tell(self, mission: str, ending: MissionOutcome) -> None:
        """Resolve the future of a mission with its outcome."""
        if ending.word not in OPEN:
            self.alarms.drop(mission)
        future = self._ends.pop(mission, None)
        if future is not None:
            future.set_result(ending)

    # -- what is said from outside

    async def wait_settled(self, mission: str) -> None:
        """Wait while the status of a mission that does not run is being changed."""
        while mission in self._settling:
            await asyncio.wait({self._settling[mission]})

    async def stop_as(self, mission: str, word: StatusWord, reason: BatosError, *, force: bool) -> None:
        """Stop a mission that has not ended, with the status `word`; return when it has stopped or ended otherwise.

        A running mission is cancelled with `force`, otherwise stopped before its next paid call. A commit under way is
        completed.

        Raises: Refused: the mission has ended.
        """
        while mission in self._running or mission in self._settling:
            run = self._running.get(mission)
            if run is None:
                await self.wait_settled(mission)
                continue
            if run.stop_request.request_stop(word, reason, force=force) and force:
                run.break_off()
            await asyncio.wait({run.left})
            now = worker_runs.look(self._image, mission).word
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
        """Restore the wait of a mission whose new status could not be written.

        If this call was cancelled but the status was written, the outcome is passed on.
        """
        word = worker_runs.look(self._image, mission).word
        if word not in ("queued", "waiting"):
            self._tell(mission, MissionOutcome(word))
        elif patient is not None and not self.stopping:
            self._wait_for_ollama(patient)
        elif place is not None and not self.stopping:
            self._queue.put(place)
            self._go_on()

    def release(self, mission: str) -> bool:
        """Withdraw the request to pause a running mission; return False if there is none to withdraw.

        A mission that is already stopping cannot be released.
        """
        run = self._running.get(mission)
        if run is None or run.stop_request.has_stopped or run.stop_request.word not in (None, "paused"):
            return False
        run.stop_request.withdraw()
        return True

    async def _settle(
        self, mission: str, word: StatusWord, reason: BatosError | None, only: Collection[StatusWord]
    ) -> None:
        """Change the status of a mission that does not run; until then no other call starts or changes the mission."""
        settling = self._settling[mission] = asyncio.get_running_loop().create_future()
        try:
            await self._outcomes.move(mission, word, reason, only)
        finally:
            del self._settling[mission]
            settling.set_result(None)

    def _ring(self, mission: str) -> None:
        """Start ending a mission whose deadline has passed."""
        self._group.create_task(self.expire(mission))

    async def expire(self, mission: str) -> None:
        """End a mission whose deadline has passed, unless it has ended."""
        try:
            with self._image.snapshot() as root:
                deadline = self._image.find(root, mission)[0].value["deadline"]
            await self.stop_as(mission, "failed", timeout_error(mission, deadline), force=True)
        except Refused:
            _log.debug("mission.ended in time", mission=mission)
        except Exception as error:  # no reason to end the workers
            _log.warning("mission.unsettled", mission=mission, reason=str(error))

    async def stop(self) -> None:
        """Return all missions to the queue, start nothing more, and wait until all have stopped.

        Paid answers are in the journal, and a commit under way is completed. A second call waits for the same end.
        """
        self.stopping = True
        self.alarms.clear()
        for timer in (self._quiet, self._looking):
            if timer is not None:
                timer.cancel()
        for place in (*self._queue.clear(), *self._patient.values()):
            self._tell(place.mission, MissionOutcome("queued"))
        self._patient.clear()
        for run in self._running.values():
            if run.stop_request.word == "paused":
                run.stop_request.force()
            elif not run.stop_request.request_stop("queued", server_stop_reason(), force=True):
                continue
            run.break_off()
        while self._running or self._settling:
            await asyncio.wait({*self._settling.values(), *(run.left for run in self._running.values())})
        for mission in tuple(self._ends):
            self._tell(mission, MissionOutcome("queued"))
        await self._suspicion.aclose()

    # -- waiting for the daemon

    async def _patience(self, error: OllamaError) -> bool:
        """Test if a mission waits after this error of Ollama, because the daemon cannot be reached or is busy."""
        if isinstance(error, OllamaUnreachable | OllamaBusy):
            return True
        return error.retry and not await self._deps.answers()

    def _wait_for_ollama(self, place: QueueEntry) -> None:
        """Keep a mission until the daemon answers again."""
        self._patient[place.mission] = place
        if self._looking is None or self._looking.done():
            self._looking = self._group.create_task(self._look())

    async def _look(self) -> None:
        """Ask the daemon at growing intervals until it answers, then queue the missions that wait for it."""
        while self._patient:
            pauses = self._deps.pauses
            await asyncio.sleep(pauses[min(self._looks, len(pauses) - 1)])
            self._looks += 1
            if await self._deps.answers():
                await asyncio.gather(*(self._queue_again(place) for place in tuple(self._patient.values())))

    async def _queue_again(self, place: QueueEntry) -> None:
        """Queue a waiting mission again, unless it was stopped meanwhile."""
        mission = place.mission
        if mission not in self._patient:
            return  # it was stopped meanwhile
        try:
            await self._settle(mission, "queued", None, {"waiting"})
        except Refused:  # the mission ended meanwhile
            self._patient.pop(mission, None)
        except Exception as error:  # the image cannot be written: the mission waits on, like the others
            _log.warning("mission.unsettled", mission=mission, reason=str(error))
        else:
            if self._patient.pop(mission, None) is not None:
                self.begin(place)
