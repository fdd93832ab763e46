"""The programs that wait for missions which use functions of theirs: which ones are there, and what they answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from batos.client.pending import OnEvent
from batos.protocol.lent_tools import CallReply, LentCallDocument


@dataclass(frozen=True, slots=True)
class CallerTimes:
    """Seconds: for a program that is away to come back, between two requests for one call, for a person to decide."""

    patience: float = 30.0
    again: float = 5.0
    deciding: float = 600.0


class Callers:
    """The programs that wait, by their secret names. A call is asked for until it is answered: a program makes it once.

    A program takes a new name for each question, so that a name stands for one table of calls that were made.
    """

    def __init__(self, times: CallerTimes | None = None) -> None:
        self.times = times or CallerTimes()
        self._programs: dict[str, list[OnEvent]] = {}
        self._waiting: dict[str, tuple[str, asyncio.Future[CallReply]]] = {}
        self._came = asyncio.Event()

    @contextmanager
    def attach(self, caller: str | None, tell: OnEvent) -> Iterator[None]:
        """Let a program make calls meanwhile, over its last connection; None is no program."""
        if caller is None:
            yield
            return
        self._programs.setdefault(caller, []).append(tell)
        self._came.set()
        self._came = asyncio.Event()
        try:
            yield
        finally:
            self._programs[caller].remove(tell)
            if not self._programs[caller]:
                del self._programs[caller]

    async def is_there(self, caller: str) -> bool:
        """Test if a program waits, or comes back in time."""
        try:
            async with asyncio.timeout(self.times.patience):
                while caller not in self._programs:
                    await self._came.wait()
        except TimeoutError:
            return False
        return True

    async def ask(self, caller: str, call: LentCallDocument, seconds: float) -> CallReply | None:
        """Return what a program answers to a call; None if it does not within the time, or stays away."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[CallReply] = loop.create_future()
        self._waiting[call["call"]], end = (caller, answer), loop.time() + seconds
        try:
            while not answer.done() and loop.time() < end and await self.is_there(caller):
                self._programs[caller][-1]("mission.tool_call", dict(call))
                await asyncio.wait({answer}, timeout=min(self.times.again, max(end - loop.time(), 0.0)))
            return answer.result() if answer.done() else None
        finally:
            del self._waiting[call["call"]]

    def answer(self, caller: str, call: str, reply: CallReply) -> bool:
        """Take a program's answer to a call; False: nobody waits for it, or it is another program's call."""
        whose, answer = self._waiting.get(call, ("", None))
        if answer is None or whose != caller or answer.done():
            return False
        answer.set_result(reply)
        return True
