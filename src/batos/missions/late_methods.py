"""Methods made when the answer is out: what missions interpreted for want of one, one after the other, while all rests.

What is to be made stands in the image (image/wishes.py), so that another process goes on with it. A question that comes
ends what is being made at once: what the coder has answered by then is in the journal, and is not asked again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Final, Protocol

import structlog

from batos.concurrency.commit_thread import finish_despite_cancel
from batos.config import Settings
from batos.errors import AnswerError, BatosError, ModelMissing, NotFound, OllamaError
from batos.events import Events
from batos.image import forged, methods, roots, wishes
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.minds.stopping import as_ours
from batos.mission_documents import CostDocument, LateReport, LearntDocument, WishDocument
from batos.missions.workers import Workers

_log = structlog.get_logger("batos")

#: Tokens in which a small method is written.
METHOD_TOKENS: Final = 300

#: Outcomes after which a wish still stands: it is tried again later.
_LATER: Final = frozenset({"budget"})
#: Outcomes of which there is a method, or will be when a person says yes.
_MADE: Final = frozenset({"installed", "made", "asked"})
#: The most seconds between two tries of what Ollama cannot answer for: each may load a model, and is in the journal.
_LONGEST: Final = 3_600.0


class Makes(Protocol):
    """Makes a method: the jit."""

    async def fulfil(self, wish: WishDocument, *, installs: bool) -> LearntDocument:
        """Fulfil a wish, and tell what came of it: {receiver, selector, outcome, ...}; raises what Ollama raises."""
        ...


class LearningParts(Protocol):
    """Has all that learning works with: the UVM."""

    @property
    def settings(self) -> Settings: ...
    @property
    def image(self) -> LivingImage: ...
    @property
    def jit(self) -> Makes: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def events(self) -> Events: ...
    @property
    def clock(self) -> Callable[[], datetime]: ...
    async def ready(self) -> object:
        """Look what models there are; raises what Ollama raises."""


def writing_seconds(cost: CostDocument) -> float:
    """Estimate the seconds of one method, by what a mission's own calls took; it is no less than one of those."""
    if not (cost["calls"] and cost["answer_tokens"]):
        return math.inf  # nothing was measured
    seconds, answered = cost["seconds"], cost["answer_tokens"]
    return max(seconds / cost["calls"], METHOD_TOKENS * seconds / answered)


class LateMethods:
    """Makes what is to be made, unless somebody asks something; every method is called on the loop."""

    def __init__(self, parts: LearningParts, group: asyncio.TaskGroup, pause: float) -> None:
        """Wait `pause` seconds before what cannot be made now is tried again; twice as many each time Ollama fails."""
        self._parts = parts
        self._group = group
        self._pause = self._patience = pause
        self._wake = asyncio.Event()
        self._making: dict[str, Any] | None = None
        self._task: asyncio.Task[LearntDocument] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._leave = parts.events.subscribe(self._hear)
        parts.workers.rested = self._wake.set

    # -- what is heard

    def _hear(self, event: str, keys: Mapping[str, Any]) -> None:
        if event == "mission.accepted" or (event == "mission.status" and keys["status"] == "running"):
            self._yield()

    def _yield(self) -> None:
        if self._task is not None:
            self._task.cancel()

    # -- working

    def keep(self) -> None:
        """Begin to make all wishes whenever no mission runs: for a process that is there to work."""
        if self._keeping is None:
            self._wake.set()
            self._keeping = self._group.create_task(self._keep())

    async def _keep(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.some()
            except Exception as error:  # no reason to end the process that works
                _log.warning("method.not_made", reason=as_ours(error).as_dict())
                self._wake_later()

    def _wake_later(self) -> None:
        asyncio.get_running_loop().call_later(self._pause, self._wake.set)

    async def some(self, most: Callable[[], bool] = lambda: True) -> LateReport:
        """Make one method after the other, while `most` lets it and nobody asks anything: {made [what came], left}.

        One that Ollama cannot answer for is left, and is tried again after a while by who keeps at it.
        """
        told: list[LearntDocument] = []
        left: set[str] = set()
        may = self._parts.settings.install != "never"
        while may and self._task is None and self._parts.workers.rests() and most():
            wish = self._next(left)
            if wish is None:
                break
            left.add(wishes.name_of(wish))
            more, outcome = await self._one(wish)
            if outcome is not None:
                told.append(outcome)
            if not more:
                break
        with self._parts.image.snapshot() as root:
            return {"made": told, "left": len(root[roots.WISHES])}

    def wished(self) -> list[WishDocument]:
        """List all wishes, each with the mission that was the first to do without."""
        with self._parts.image.snapshot() as root:
            return wishes.listed(root)

    async def briefly(self, seconds: float, call: float, unless: Coroutine[Any, Any, None] | None = None) -> LateReport:
        """Do the same in a process that is about to end: within so many seconds, where a call takes about `call`.

        None is begun that would not fit, and what is not done in time, or before `unless` returns, is left to the next
        process.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        alarm = loop.call_at(end, self._yield)
        over = asyncio.ensure_future(unless) if unless is not None else loop.create_future()
        over.add_done_callback(lambda told: None if told.cancelled() else self._yield())
        try:
            return await self.some(lambda: loop.time() + call < end and not over.done())
        finally:
            alarm.cancel()
            over.cancel()
            await asyncio.wait({over})

    def _next(self, left: set[str]) -> WishDocument | None:
        """Return the first wish that was not tried this time."""
        with self._parts.image.snapshot() as root:
            return next((each for each in wishes.listed(root) if wishes.name_of(each) not in left), None)

    async def _one(self, wish: WishDocument) -> tuple[bool, LearntDocument | None]:
        """Make one; return whether the next may be begun, and the outcome, or None of a method that was left.

        A question or the want of Ollama stops all; an answer of the coder that is none says nothing about the others.
        """
        self._making = {"object": wish["holder"], "selector": wish["selector"], "since": iso(self._parts.clock())}
        self._task = asyncio.ensure_future(self._made(wish))
        try:
            await asyncio.wait({self._task})
        except asyncio.CancelledError:
            self._task.cancel()
            await finish_despite_cancel(asyncio.ensure_future(asyncio.wait({self._task})))
            raise
        finally:
            task, self._task, self._making = self._task, None, None
        if task.cancelled():
            self._wake_later()  # who came may never run, and then nobody says that all rests again
            return False, None
        error = task.exception()
        if error is not None:
            _log.warning("method.not_made", selector=wish["selector"], reason=as_ours(error).as_dict())
            asyncio.get_running_loop().call_later(self._patience, self._wake.set)
            self._patience = min(2 * self._patience, _LONGEST)
            return isinstance(error, AnswerError), None
        self._patience = self._pause
        return True, task.result()

    async def _made(self, wish: WishDocument) -> LearntDocument:
        await self._parts.ready()
        try:
            installs = self._parts.settings.install != "ask" and not wish.get("asks")
            told = await self._parts.jit.fulfil(wish, installs=installs)
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
            self._wake_later()
        else:
            await self._parts.image.writer.apply(partial(_drop_wish, wish, told["outcome"]))
        return told

    # -- telling

    def snapshot(self, root: Root) -> dict[str, Any]:
        """Show what waits to be made, and what is being made: {waiting, making {object, selector, since} or None}."""
        making = None
        if self._making is not None:
            making = dict(self._making)
            with suppress(NotFound):  # an object that is gone since has no other name
                making["object"] = roots.named(root, methods.holder_named(root, making["object"]))
        return {"waiting": len(root[roots.WISHES]), "making": making}

    async def aclose(self) -> None:
        """End what is being made; it is gone on with by the next process."""
        self._leave()
        ending = [task for task in (self._keeping, self._task) if task is not None]
        for task in ending:
            task.cancel()
        if ending:  # whatever they end in: it is no reason to end the process otherwise
            await asyncio.wait(ending)


def _drop_wish(wish: WishDocument, outcome: str, root: Root) -> None:
    """Drop a wish of which something came or will come no more; a forged tool that was not made is forgotten."""
    wishes.drop(root, [wish])
    if wish.get("forged") and outcome not in _MADE:
        forged.forget(root, wish["selector"], wish["intent"])
