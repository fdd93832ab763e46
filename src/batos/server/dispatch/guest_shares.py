"""The share that a guest has of what all clients have together, also of the few places for copies of the mind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from batos.protocol.errors import Busy

#: Copies of the image that are open at once.
MOST_OPEN: Final = 2
#: Seconds that a guest's question waits for its place: a mission may hold one for an hour.
PATIENCE: Final = 30.0


def is_guest(user: str | None) -> bool:
    """Test if a user of a request is a guest, as `limit_guest` names it.

    >>> is_guest("key laptop"), is_guest("ada"), is_guest(None)
    (True, False, False)
    """
    return user is not None and user.startswith("key ")


def guest_share(total: int) -> int:
    """Return how much of what all clients have together one guest may take: a quarter, so that none keeps others out.

    >>> guest_share(4_096), guest_share(2)
    (1024, 1)
    """
    return max(1, total // 4)


class CopyPlaces:
    """Gives questions a place each, in the order in which they come; all guests together have all places but one."""

    def __init__(self, most: int = MOST_OPEN, seconds: float = PATIENCE) -> None:
        self._seconds = seconds
        self._all, self._guests = asyncio.Semaphore(most), asyncio.Semaphore(max(1, most - 1))

    @asynccontextmanager
    async def place(self, user: str | None) -> AsyncIterator[None]:
        """Hold a place for a question of a user (None: the home's).

        A question of the home waits until there is one. Raises: Busy: there was none in time for a guest's.
        """
        guest = is_guest(user)
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self._seconds if guest else None):
                    if guest:
                        await held.enter_async_context(self._guests)
                    await held.enter_async_context(self._all)
            except TimeoutError:
                raise Busy(
                    "other questions to copies of the mind (of the past, dreams, replays) are being answered",
                    remedy="Ask again when one of them has ended.",
                ) from None
            yield
