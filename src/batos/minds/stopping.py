"""Requests from outside to a running mission: stop, wait again or end; and the status that follows from them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from batos.image.records import StatusWord
from batos.protocol.errors import ApprovalNeeded, BatosError, InternalError, OllamaError, Refused

#: The stronger request wins: a mission that is cancelled while the server stops is cancelled.
_STRENGTH: Final[dict[StatusWord, int]] = {"paused": 1, "queued": 2, "failed": 3, "cancelled": 4}


class Stopped(Exception):
    """Raised before the next paid call once the mission was asked to stop. Not a BatosError, so that no part handles it
    as its own failure.
    """


@dataclass(slots=True)
class StopRequest:
    """A request to stop a mission, or none. Checked before each paid call and at each state of the outer cycle.

    `waits_for_ollama` decides for an error of Ollama if the mission waits until the daemon is back, instead of failing.
    """

    waits_for_ollama: Callable[[OllamaError], Awaitable[bool]] | None = None
    word: StatusWord | None = None
    reason: BatosError | None = None
    #: Its task was cancelled for it: whatever is raised on the way out, this is why.
    is_forced: bool = False
    #: True once the mission was told and is ending.
    has_stopped: bool = False
    #: True if the mission runs with no other beside it.
    runs_alone: bool = False
    #: True if the mission's status says already that it runs: it was accepted for a worker that was free.
    is_running: bool = False

    def check(self) -> None:
        """Return if the mission may continue. Raises: Stopped: the mission was asked to stop."""
        if self.word is not None:
            self.has_stopped = True
            raise Stopped(self.word)

    def request_stop(self, word: StatusWord, reason: BatosError, *, force: bool) -> bool:
        """Record the request to stop with this status, and return True, unless a stronger one was made before."""
        if self.word is not None and _STRENGTH[self.word] >= _STRENGTH[word]:
            return False
        self.word, self.reason, self.is_forced = word, reason, force
        return True

    def force(self) -> None:
        """Note that the mission's task is cancelled for a request that was made before."""
        self.is_forced = True

    def withdraw(self) -> None:
        """Withdraw the request: the mission may continue."""
        self.word, self.reason = None, None

    async def outcome(self, error: BaseException) -> tuple[StatusWord, BatosError]:
        """Return the status, and the reason for it, of a mission that ended with this error."""
        told = self.is_forced or isinstance(error, Stopped | asyncio.CancelledError)
        if told and self.word is not None and self.reason is not None:
            return self.word, self.reason
        if isinstance(error, Stopped):  # released when it had stopped already
            return "paused", paused_error()
        if isinstance(error, asyncio.CancelledError):
            return "cancelled", cancelled_error()
        if isinstance(error, ApprovalNeeded):
            return "waiting", error
        if isinstance(error, OllamaError) and self.waits_for_ollama is not None and await self.waits_for_ollama(error):
            return "waiting", error
        return "failed", as_batos_error(error)


def cancelled_error() -> BatosError:
    """Return the reason of a cancelled mission."""
    return BatosError("the mission was cancelled", remedy="Ask again; what was paid for is in the journal.")


def paused_error() -> BatosError:
    """Return the reason of a paused mission."""
    return BatosError("the mission was paused", remedy="`batos resume` goes on; what was paid for is in the journal.")


def ended_error(mission: str, status: str) -> Refused:
    """Return the error for a verb that a mission with this last status no longer takes."""
    return Refused(
        f"{mission} has ended with status {status}",
        field="mission",
        remedy=f"`batos retry {mission}` asks it again, and pays for no call twice.",
    )


def as_batos_error(error: BaseException) -> BatosError:
    """Return the error itself if it is of our tree, else an InternalError."""
    return error if isinstance(error, BatosError) else InternalError(f"{type(error).__name__}: {error}")
