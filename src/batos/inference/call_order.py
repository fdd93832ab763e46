"""Order of a mission's calls: a limited number at a time, next the one that shares most of its prompt with the last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Messages: TypeAlias = Sequence[Mapping[str, str]]

#: As many as a daemon may ever be told to answer at once: nobody waits.
ALL: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class _WaitingCall:
    messages: Messages
    came: asyncio.Future[None]


@dataclass(slots=True)
class CallOrder:
    """The order of one mission's calls on a runner that answers `many` at once.

    A runner reads of a prompt only what comes after its longest common beginning with one that its cache holds. So of
    the calls that wait the next is the one that has most in common with the call sent last; among equals the first
    that came. A mission's calls are few and each is made once, so none waits for ever.
    """

    many: int = ALL
    _going: int = 0
    _last: Messages = ()
    _waiting: list[_WaitingCall] = field(default_factory=list)

    @asynccontextmanager
    async def turn(self, messages: Messages) -> AsyncIterator[None]:
        """Wait for a place among the `many` calls that may run, and hold it while inside."""
        await self._begin(messages)
        try:
            yield
        finally:
            self._going -= 1
            self._next()

    async def _begin(self, messages: Messages) -> None:
        if self._going < self.many and not self._waiting:
            self._go(messages)
            return
        waiting = _WaitingCall(messages, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            await waiting.came
        except asyncio.CancelledError:
            if waiting.came.cancelled():
                # Nobody gave it a turn; it may have been passed over already.
                self._waiting = [each for each in self._waiting if each is not waiting]
            else:
                self._going -= 1
                self._next()
            raise

    def _next(self) -> None:
        while self._going < self.many:
            self._waiting = [each for each in self._waiting if not each.came.done()]
            if not self._waiting:
                return
            chosen = max(self._waiting, key=lambda each: common(each.messages, self._last))
            self._waiting.remove(chosen)
            self._go(chosen.messages)
            chosen.came.set_result(None)

    def _go(self, messages: Messages) -> None:
        self._going += 1
        self._last = messages


def common(one: Messages, other: Messages) -> int:
    """Return the number of characters that two prompts share from their beginning, without the marks between
    messages.
    """
    shared = 0
    for mine, yours in zip(one, other, strict=False):
        if mine == yours:
            shared += len(mine["content"])
            continue
        if mine["role"] == yours["role"]:
            shared += _alike(mine["content"], yours["content"])
        break
    return shared


def _alike(one: str, other: str) -> int:
    """Return the length of the longest common beginning, found by halving because slices compare at the speed of
    memory.
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
