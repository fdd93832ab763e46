"""Missions that make methods after the answer, for intents that others interpreted for want of a method.

The wishes are stored in the image (records/tools.py), so that another process can continue. Each gets a mission of its
own (methods/generation/growth.py) while no other runs. A new question puts that mission back at once; the coder's
answers so far are in the journal and are not paid for again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

import structlog

from batos.concurrency.jobs import Job
from batos.concurrency.threads import finish_despite_cancel
from batos.config import Settings
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.records import OPEN, UNDER_WAY
from batos.image.roots import Root
from batos.methods.generation import growth
from batos.methods.generation.generator import MethodGenerator
from batos.minds.stopping import as_batos_error
from batos.missions.missions import Missions
from batos.missions.workers import Workers
from batos.protocol.errors import AnswerError, BatosError, ModelMissing, NotFound, OllamaError, Refused
from batos.protocol.method_documents import LateReport
from batos.protocol.mission_documents import (
    CostDocument,
    LearntDocument,
    MissionDocument,
    ProvenanceDocument,
    WishDocument,
)  # fmt: skip
from batos.protocol.server_documents import LearningStatus, MakingLine
from batos.protocol.wire_messages import error_of
from batos.records import methods, tool_declarations, tools

_log = structlog.get_logger("batos")

#: The tokens of a small method.
METHOD_TOKENS: Final = 300

#: The reason of a mission that makes a method when something else goes first.
_GIVES_WAY: Final = BatosError("something else went first", remedy="It goes on when no mission runs.")
#: The reason of a mission whose wish is gone.
_FORSAKEN: Final = Refused("what wished for it is undone", remedy="`batos redo` brings that back, and the wish.")
#: The most seconds between two attempts while Ollama fails: each may load a model, and fills the journal. After so many
#: a run is left, and goes on later from the journal.
_LONGEST: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class LearningParts:
    """The parts of the UVM that late methods are made with; `ready` checks the models, and raises errors of Ollama."""

    settings: Settings
    image: LivingImage
    generator: MethodGenerator
    missions: Missions
    workers: Workers
    clock: Callable[[], datetime]
    ready: Callable[[], Awaitable[object]]


def writing_seconds(cost: CostDocument) -> float:
    """Estimate the seconds of making one method from the cost of a mission's own calls.

    The estimate is at least the time of one call.
    """
    if not (cost["calls"] and cost["answer_tokens"]):
        return math.inf  # no call was measured
    seconds, answered = cost["seconds"], cost["answer_tokens"]
    return max(seconds / cost["calls"], METHOD_TOKENS * seconds / answered)


class LateMethods:
    """Makes the methods of stored wishes while no question is asked. Every method is called on the event loop."""

    def __init__(self, parts: LearningParts, pause: float) -> None:
        """Create it. `pause` is the seconds before a failed wish is tried again, doubled each time Ollama fails."""
        self._parts = parts
        self._pause = pause
        self.job = Job(
            "methods", self._work, lambda: parts.image.publishing.is_here, budget=_LONGEST, retry=(pause, _LONGEST)
        )
        #: The reason why the last wish could not be made, if it is to be tried again.
        self._failure: BaseException | None = None
        self._making: MakingLine | None = None
        #: The number of those who ask that no method be made now.
        self._resting = 0
        #: The mission for which a method is being made.
        self._sender = ""
        self._task: asyncio.Task[LearntDocument | None] | None = None
        parts.workers.rested.call(self._go_on)
        signals = parts.image.signals
        signals.undone.call(self._forsake)
        signals.asked.call(self._heed)
        signals.begun.call(self._heed)

    def _go_on(self) -> None:
        """Look for wishes now that no mission runs, unless it is a mission of this that has just ended."""
        if self._task is None:
            self.job.wake()

    def _forsake(self, mission: str) -> None:
        """Leave what is made for a mission that was undone."""
        if mission == self._sender:
            self._yield()
        self.job.wake()

    def _heed(self, mission: str) -> None:
        """Leave what is made for a mission that came or begins, but for one that makes a method."""
        if self._task is not None and not self._parts.missions.recovery.look(mission).is_wish:
            self._yield()

    def _yield(self) -> None:
        """Put the mission back that makes a method now."""
        if self._task is not None:
            self._task.cancel()

    # -- working

    def keep(self) -> None:
        """Make all wishes whenever no mission runs, in the background; for a process that stays to work."""
        self.job.wake()
        self.job.start()

    async def _work(self) -> None:
        await self._make_some(lambda: True)
        if self._failure is not None:
            raise self._failure

    @asynccontextmanager
    async def resting(self) -> AsyncIterator[None]:
        """Make no method meanwhile: one that is being made is left first."""
        self._resting += 1
        try:
            if self._task is not None:
                self._task.cancel()
                await asyncio.wait({self._task})
            yield
        finally:
            self._resting -= 1
            self.job.wake()

    async def some(self, most: Callable[[], bool] = lambda: True) -> LateReport:
        """Make wishes in order while `most` returns True and no question comes: return {made [results], left}.

        A wish that Ollama cannot answer for is left, and the job tries it again later.
        """
        told = await self._make_some(most)
        if self._failure is not None:
            self.job.wake(self._pause)
        return told

    async def _make_some(self, most: Callable[[], bool]) -> LateReport:
        self._failure = None
        told: list[LearntDocument] = []
        left: set[str] = set()
        # A single node makes them; at the others the wishes wait.
        may = self._parts.settings.install != "never" and self._parts.image.publishing.is_here
        if may and not self._resting:
            await self._cancel_forsaken()
        while may and not self._resting and self._task is None and self._parts.workers.is_idle() and most():
            wish = next((each for each in self.list_wishes() if tools.name_of_wish(each) not in left), None)
            if wish is None:
                break
            if self._parts.generator.generations.limit.refusal(0):  # those of the hour are used up
                self.job.wake(self._pause)
                break
            left.add(tools.name_of_wish(wish))
            more, outcome = await self._one(wish)
            if outcome is not None:
                told.append(outcome)
            if not more:
                break
        with self._parts.image.snapshot() as root:
            return {"made": told, "left": len(root[roots.WISHES])}

    def list_wishes(self) -> list[WishDocument]:
        """List all wishes, each with the mission that was the first to do without."""
        with self._parts.image.snapshot() as root:
            return tools.list_wishes(root)

    async def briefly(self, seconds: float, call: float) -> LateReport:
        """Make wishes as `some` does, for at most `seconds`, before the process ends.

        No generation is started that would not fit: `call` is the estimated time of one. A generation that is not done
        in time is left for the next process.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        alarm = loop.call_at(end, self._yield)
        try:
            return await self.some(lambda: loop.time() + call < end)
        finally:
            alarm.cancel()

    async def learn_after(self, mission: str, cost: CostDocument) -> LateReport:
        """Make wishes within the setting `learn_seconds`, if one fits into that at the pace of an answered mission.

        `new` is how many of those that are left that mission was the first to do without.
        """
        told = await self.briefly(self._parts.settings.learn_seconds, writing_seconds(cost))
        return {**told, "new": sum(each["mission"] == mission for each in self.list_wishes())}

    async def _one(self, wish: WishDocument) -> tuple[bool, LearntDocument | None]:
        """Fulfil one wish. Return True if the next may follow, and the result; None if there is no result.

        A question, or a failure of Ollama, ends the series. An unusable answer of the coder does not: it says nothing
        about the other wishes.
        """
        self._making = {"object": wish["holder"], "selector": wish["selector"], "since": iso(self._parts.clock())}
        self._sender = wish["mission"]
        self._task = asyncio.ensure_future(self._make(wish))
        try:
            await asyncio.wait({self._task})
        except asyncio.CancelledError:
            self._task.cancel()
            await finish_despite_cancel(asyncio.ensure_future(asyncio.wait({self._task})))
            raise
        finally:
            task, self._task, self._making = self._task, None, None
        if task.cancelled():
            self.job.wake(self._pause)  # the new mission may never run, and then nothing would wake this
            return False, None
        error = task.exception()
        if error is not None:
            _log.warning("method.not_made", selector=wish["selector"], reason=as_batos_error(error).as_dict())
            self._failure = error
            return isinstance(error, AnswerError), None
        return True, task.result()

    async def _make(self, wish: WishDocument) -> LearntDocument | None:
        """Run the mission of a wish to its end, and return what came of it; None if it stands still.

        A wish is dropped unless it is to be tried again. Raises: what another try may not meet, errors of Ollama.
        """
        parts = self._parts
        try:
            await parts.ready()
        except BatosError as error:  # for any other reason the mission fails by itself
            if _passes(error):
                raise
        mission = await self._accept(wish)
        seen = parts.missions.recovery.look(mission)
        if seen.is_elsewhere:
            return None  # its node ends it, or leaves it to this one
        try:
            if seen.word in UNDER_WAY or seen.word == "waiting":
                with suppress(Refused):  # it was committed, and is only to be published
                    await parts.missions.resume(mission)
            found = await parts.missions.wait_for_end(mission)
        except asyncio.CancelledError:
            await finish_despite_cancel(asyncio.ensure_future(self._put_back(mission)))
            raise
        if found["status"] in OPEN:
            return None
        told = _outcome_of(found)
        if found["status"] == "failed":
            failure = error_of(found["reason"])
            if _passes(failure) or told["outcome"] == "budget":
                raise failure
        payload = wish, told["outcome"]
        await parts.image.shared.apply(partial(tool_declarations.settle, mission=mission, payload=payload))
        return told

    async def _accept(self, wish: WishDocument) -> str:
        """Return the mission of a wish, accepted now or by an earlier process; after one that ended in vain the next.

        A mission that a person has cancelled is the last.
        """
        before = ""
        while True:
            with self._parts.image.snapshot() as root:
                brief = growth.brief_of(root, wish, before)
            mission = await self._parts.missions.submit(brief)
            with self._parts.image.snapshot() as root:
                status = roots.mission_record(root, mission).status
                was_forsaken = status.reason is not None and status.reason["code"] == _FORSAKEN.code
            if status.word in OPEN or (status.word == "cancelled" and not was_forsaken):
                return mission
            before = mission

    async def _put_back(self, mission: str) -> None:
        """Let the mission wait again, unless it has ended; nothing of it is lost."""
        with suppress(Refused):
            await self._parts.workers.stop_as(mission, "queued", _GIVES_WAY, force=True)

    async def _cancel_forsaken(self) -> None:
        """Cancel missions that wait to make what nobody wishes for any more."""
        with self._parts.image.snapshot() as root:
            wished = {each["mission"] for each in tools.list_wishes(root)}
            queued = [(name, tools.sender_in(record)) for name, record in roots.list_oldest_queued(root)]
        for name, sender in queued:
            if sender and sender not in wished:
                with suppress(Refused):
                    await self._parts.workers.stop_as(name, "cancelled", _FORSAKEN, force=True)

    # -- telling

    def snapshot(self, root: Root) -> LearningStatus:
        """Return {waiting, making {object, selector, since} or None}: the number of wishes, and the one being made."""
        making = None
        if self._making is not None:
            making = self._making.copy()
            with suppress(NotFound):  # an object that was deleted since has no name
                making["object"] = roots.name_of_object(root, methods.find_holder(root, making["object"]))
        return {"waiting": len(root[roots.WISHES]), "making": making}

    async def aclose(self) -> None:
        """Cancel the running generation; the next process continues with it."""
        await self.job.stop()
        if self._task is not None:  # it is made for who asked for it, beside the job
            self._task.cancel()
            await asyncio.wait({self._task})  # its error does not matter at the end


def _passes(error: BatosError) -> bool:
    """Test if an error tells nothing of the wish: the same may be made later."""
    return error.retry or (isinstance(error, OllamaError) and not isinstance(error, ModelMissing))


def _outcome_of(found: MissionDocument) -> LearntDocument:
    """Return what came of a mission that fulfilled a wish, with its own cost."""
    message, cost = found["brief"]["message"], found["cost"]
    told = LearntDocument(receiver=message["receiver"], selector=message["selector"], outcome="", calls=0, tokens=0)
    for known in found.get("provenance", ProvenanceDocument()).get("generated", ()):
        told.update(known)
    told["outcome"] = told["outcome"] or ("gone" if found["status"] == "done" else "failed")
    told["calls"], told["tokens"] = cost["calls"], cost["prompt_tokens"] + cost["answer_tokens"]
    if "reason" in found:
        told["failure"] = found["reason"]
    return {**told, "mission": found["id"]}
