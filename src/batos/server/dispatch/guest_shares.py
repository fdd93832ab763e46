"""The share that a guest has of what all clients have together; a process without a server needs no more of guests."""

from __future__ import annotations


def is_guest(user: str | None) -> bool:
    """Tell whether a user of a request is a guest, as `limit_guest` names it.

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
