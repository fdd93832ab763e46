"""Guests, who came in by a key of their own: their rights, and their share of what all clients have together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from batos.client.addresses import OWN
from batos.image.ownership import is_guest
from batos.protocol.errors import Busy, Refused
from batos.verbs.all_verbs import VERBS


def guest(came_in: str) -> str | None:
    """Return the user that a client is, by the name of its key; None for the home itself, which may name any user.

    `came_in` is the client as the gate names it: "token ...", or "key NAME ...". The home's own key is no guest's.

    >>> guest("key laptop 0a1b"), guest("key home 0a1b"), guest("token 0a1b")
    ('key laptop', None, None)
    """
    kind, _, rest = came_in.partition(" ")
    name = rest.rpartition(" ")[0]
    return None if kind != "key" or name == OWN else f"key {name}"


def limit_guest(verb: str, args: Mapping[str, object], came_in: str) -> Mapping[str, Any]:
    """Limit a request to what this client may ask: a guest asks as the user of its key, whatever user it names.

    Refused for what only the home itself may.
    """
    user = guest(came_in)
    if user is None:
        return args
    declared = VERBS.get(verb)
    fields = {} if declared is None else declared.args.model_fields
    is_harmless = verb == "genesis" and args.get("plan") is True
    governs = declared is not None and declared.governs and not is_harmless
    if governs or ("cascade" in fields and args.get("cascade")):
        raise Refused(
            f"{verb} is only for the home, and the {user} is a guest's",
            field="verb",
            remedy="Run the verb where the home is: `batos` there, or `docker compose exec batos batos ...`.",
        )
    if "user" not in fields:
        return args
    # A guest answers for its own missions; methods and answers that the home has retracted stay out; words are
    # erased wherever they stand, and so by no guest.
    meant = {**args, "user": user, **{name: True for name in ("mine", "alone") if name in fields}}
    if verb == "undo":
        meant["keep"] = ["methods", *(each for each in _list(args.get("keep")) if each != "methods")]
    if isinstance(brief := args.get("brief"), Mapping):  # what is none is the shape's to refuse
        meant["brief"] = {**brief, "user": user}
    return meant


def _list(given: object) -> list[Any]:
    """Return what is given as a list; what is none is the shape's to refuse."""
    return list(given) if isinstance(given, list | tuple) else [given] if given else []


#: Copies of the image that are open at once.
MOST_OPEN: Final = 2
#: Seconds that a guest's question waits for its place: a mission may hold one for an hour.
PATIENCE: Final = 30.0


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
