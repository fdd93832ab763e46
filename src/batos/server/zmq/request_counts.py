"""The requests that a server has under way, and their bytes: of all clients, and of each guest."""

from __future__ import annotations

from collections import Counter

from batos.protocol.errors import Busy
from batos.server.dispatch.guest_rights import guest
from batos.server.dispatch.guest_shares import guest_share


class RequestCounts:
    """Counts requests and their bytes. A guest has a share of both, over however many connections it asks."""

    def __init__(self, total: int, size: int) -> None:
        self._total, self._size = total, size
        self.under_way = 0
        self._bytes = 0
        self._of: Counter[str] = Counter()
        self._bytes_of: Counter[str] = Counter()

    def objection(self, came_in: str, size: int) -> Busy | None:
        """Find a reason to refuse a request of a client, as the gate names it; None if there is none."""
        if self.under_way >= self._total or self._bytes + size > self._size:
            return busy("too many requests are under way")
        user = guest(came_in)
        if user is None:
            return None
        if self._of[user] >= guest_share(self._total) or self._bytes_of[user] + size > guest_share(self._size):
            return busy(f"too many requests of the {user} are under way")
        return None

    def add(self, came_in: str, size: int) -> None:
        """Count a request that begins."""
        self._change(came_in, 1, size)

    def remove(self, came_in: str, size: int) -> None:
        """Give back the room of a request that has ended."""
        self._change(came_in, -1, -size)

    def _change(self, came_in: str, requests: int, size: int) -> None:
        self.under_way += requests
        self._bytes += size
        user = guest(came_in)
        if user is not None:
            self._of[user] += requests
            self._bytes_of[user] += size
            if not self._of[user]:
                del self._of[user], self._bytes_of[user]


def busy(why: str) -> Busy:
    """Return the refusal of a request for want of room."""
    return Busy(why, remedy="Wait for one of them, then ask again.")
