"""Methods that are made after the answer, for intents that missions interpreted for want of a method.

The wishes are stored in the image (records/tools.py), so that another process can continue. Methods are made one after
the other while no mission runs. A new question cancels the running generation at once; the coder's answers so far are
in the journal and are not paid for again.
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
from batos.image.roots import Root
from batos.methods.generation.generator import MethodGenerator
from batos.minds.stopping import as_batos_error
from batos.missions.workers import Workers
from batos.protocol.errors import AnswerError, BatosError, ModelMissing, NotFound, OllamaError
from batos.protocol.method_documents import LateReport
from batos.protocol.mission_documents import CostDocument, LearntDocument, WishDocument
from batos.protocol.server_documents import LearningStatus, MakingLine
from batos.records import methods, tool_declarations, tools

_log = structlog.get_logger("batos")

#: The tokens of a small method.
METHOD_TOKENS: Final = 300

#: Outcomes after which a wish is kept and tried again later.
_LATER: Final = frozenset({"budget"})
#: Outcomes with a method, or with one that waits for a person's approval.
_MADE: Final = frozenset({"installed", "made", "asked"})
#: The most seconds between two attempts while Ollama fails: each may load a model, and fills the journal. After so many
#: a run is left, and goes on later from the journal.
_LONGEST: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class LearningParts:
    """The parts of the UVM that late methods are made with; `ready` checks the models, and raises errors of Ollama."""

    settings: Settings
    image: LivingImage
    generator: MethodGenerator
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
            "methods", self._work, lambda: parts.image.publishing.is_here, budget=_LONGEST,
            give_way=self._yield, retry=(pause, _LONGEST),
        )  # fmt: skip
        #: The reason why the last wish could not be made, if it is to be tried again.
        self._failure: BaseException | None = None
        self._making: MakingLine | None = None
        #: The number of those who ask that no method be made now.
        self._resting = 0
        #: The mission that the running generation is for.
        self._for = ""
        self._task: asyncio.Task[LearntDocument] | None = None
        parts.workers.rested.call(self.job.wake)
        parts.image.signals.undone.call(self._forsake)

    def _forsake(self, mission: str) -> None:
        """Cancel the running generation if it is for a mission that was undone."""
        if mission == self._for:
            self._yield()

    def _yield(self) -> None:
        """Cancel the running generation."""
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
        while may and not self._resting and self._task is None and self._parts.workers.is_idle() and most():
            wish = self._next(left)
            if wish is None:
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

    def _next(self, left: set[str]) -> WishDocument | None:
        """Return the first wish that was not tried this time."""
        with self._parts.image.snapshot() as root:
            return next((each for each in tools.list_wishes(root) if tools.name_of_wish(each) not in left), None)

    async def _one(self, wish: WishDocument) -> tuple[bool, LearntDocument | None]:
        """Make one wish. Return True if the next may follow, and the result; None if there is no result.

        A question, or a failure of Ollama, ends the series. An unusable answer of the coder does not: it says nothing
        about the other wishes.
        """
        self._making = {"object": wish["holder"], "selector": wish["selector"], "since": iso(self._parts.clock())}
        self._for = wish["mission"]
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

    async def _make(self, wish: WishDocument) -> LearntDocument:
        """Make the method of a wish, and drop the wish from the image unless it is to be tried again."""
        await self._parts.ready()
        try:
            installs = self._parts.settings.install != "ask" and not wish.get("asks")
            told = await self._parts.generator.fulfil(wish, installs=installs)
        except BatosError as error:
            if error.retry or (isinstance(error, OllamaError) and not isinstance(error, ModelMissing)):
                raise
            told = LearntDocument(
                receiver=wish["holder"],
                selector=wish["selector"],
                calls=0,
                tokens=0,
                outcome="failed",
                failure=error.as_dict(),
            )
        if told["outcome"] in _LATER:
            self.job.wake(self._pause)
        else:
            await self._parts.image.shared.apply(partial(_drop_wish, wish, told["outcome"]))
        return told

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


def _drop_wish(wish: WishDocument, outcome: str, root: Root) -> None:
    """Drop a wish that has its outcome. A forged tool that was not made is forgotten too."""
    tools.drop_wish(root, [wish])
    if wish.get("forged") and outcome not in _MADE:
        tool_declarations.forget(root, wish["selector"], wish["intent"])
