"""Requests from outside to a running mission: stop, wait again or end; and the status that follows from them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from batos.errors import ApprovalNeeded, BatosError, InternalError, OllamaError
from batos.image.records import StatusWord

#: The stronger request wins: a mission that is cancelled while the server stops is cancelled.
_STRENGTH: Final[dict[StatusWord, int]] = {"paused": 1, "queued": 2, "failed": 3, "cancelled": 4}


class Held(Exception):
    """A mission was told to stand still, and would have paid for more. No error: no part of it may make good for it."""


@dataclass(slots=True)
class Hold:
    """Asked before each paid call and at each state of the outer cycle; raises Held once the mission is to stop there.

    `patient` says of an error of Ollama's whether the mission waits until the daemon is back instead of failing.
    """

    patient: Callable[[OllamaError], Awaitable[bool]] | None = None
    word: StatusWord | None = None
    reason: BatosError | None = None
    #: Its task was cancelled for it: whatever is raised on the way out, this is why.
    forced: bool = False
    #: True once the mission was told and is ending.
    held: bool = False
    #: True if the mission runs with no other beside it.
    alone: bool = False

    def __call__(self) -> None:
        """Go on, or raise Held."""
        if self.word is not None:
            self.held = True
            raise Held(self.word)

    def order(self, word: StatusWord, reason: BatosError, *, force: bool) -> bool:
        """Say that it is to stop and as what; says whether nothing stronger was said before."""
        if self.word is not None and _STRENGTH[self.word] >= _STRENGTH[word]:
            return False
        self.word, self.reason, self.forced = word, reason, force
        return True

    @property
    def marks(self) -> Mapping[str, Any]:
        """Return unusual facts about how the mission runs, for its status."""
        return {"alone": True} if self.alone else {}

    def release(self) -> None:
        """Withdraw the request: the mission may continue."""
        self.word, self.reason = None, None

    async def outcome(self, error: BaseException) -> tuple[StatusWord, BatosError]:
        """Return the status, and the reason for it, of a mission that ended with this error."""
        told = self.forced or isinstance(error, Held | asyncio.CancelledError)
        if told and self.word is not None and self.reason is not None:
            return self.word, self.reason
        if isinstance(error, Held):  # released when it had stopped already
            return "paused", paused()
        if isinstance(error, asyncio.CancelledError):
            return "cancelled", cancelled()
        if isinstance(error, ApprovalNeeded):
            return "waiting", error
        if isinstance(error, OllamaError) and self.patient is not None and await self.patient(error):
            return "waiting", error
        return "failed", as_ours(error)


def cancelled() -> BatosError:
    """Return the reason of a cancelled mission."""
    return BatosError("the mission was cancelled", remedy="Ask again; what was paid for is in the journal.")


def paused() -> BatosError:
    """Return the reason of a paused mission."""
    return BatosError("the mission was paused", remedy="`batos resume` goes on; what was paid for is in the journal.")


def as_ours(error: BaseException) -> BatosError:
    """Return the error itself if it is of our tree, else an InternalError."""
    return error if isinstance(error, BatosError) else InternalError(f"{type(error).__name__}: {error}")
