"""The lease of an image that several nodes can reach: one of them works on it, and no commit of another gets in."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

import structlog
import transaction
from persistent.mapping import PersistentMapping
from transaction.interfaces import NoTransaction
from ZODB.POSException import ConflictError

from batos.errors import ImageBusy, ImageError, InternalError
from batos.image.database import LoadableDB

T = TypeVar("T")

_log = structlog.get_logger("batos.image")

#: The root's key of the claim: {node, fence, beat}. The beat is an object of its own, so that to renew the lease
#: conflicts with no commit.
_KEY: Final = "lease"
#: Renewals in the time of a lease.
_RENEWALS: Final = 10 / 3
#: Looks at a lease that another holds, in its time.
_LOOKS: Final = 20
_ATTEMPTS: Final = 5


def node_name() -> str:
    """Return a name of this process that a person can find it by."""
    return f"{socket.gethostname()}, process {os.getpid()}"


class ImageLease:
    """A node's lease of an image.

    Each taking has a number of its own, the fence. Each commit of this process reads the claim as current: a process
    that slept while another took the lease commits nothing. A lease counts as left when its beat has not changed for
    its time, measured by who watches, so that no two clocks are compared.
    """

    def __init__(self, db: LoadableDB, seconds: float, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._db, self._seconds, self._clock = db, seconds, clock
        #: Unlike any other process's, also of this machine's next one with the same id.
        self._node = f"{name} {secrets.token_hex(4)}"
        self._fence = 0
        self._closing, self._thread = threading.Event(), cast("threading.Thread | None", None)
        #: The beat that was seen last, and since when.
        self._seen: tuple[int, int, float] | None = None

    def try_take(self) -> str:
        """Take the lease if nobody has it; return the node that has it, "" if that is this one now."""
        return self._attempt(self._try_take)

    def _try_take(self, connection: Any) -> str:
        root = connection.root()
        claim = root.get(_KEY)
        if claim is None:
            claim = root[_KEY] = PersistentMapping({"node": "", "fence": 0, "beat": PersistentMapping(count=0)})
        if claim["node"] and not self._is_left(claim["fence"], claim["beat"]["count"]):
            return str(claim["node"])
        claim["node"], claim["fence"] = self._node, claim["fence"] + 1
        self._fence = claim["fence"]
        return ""

    def _is_left(self, fence: int, beat: int) -> bool:
        now = self._clock()
        if self._seen is None or self._seen[:2] != (fence, beat):
            self._seen = fence, beat, now
        return now - self._seen[2] >= self._seconds

    def guard(self, connection: Any) -> None:
        """Let a commit of this connection fail unless this node has the lease at that moment.

        Raises: ImageError: another node has taken it.
        """
        if not connection.leasing:
            self._hold(connection)

    def _hold(self, connection: Any) -> Any:
        claim = connection.root()[_KEY]
        if (claim["node"], claim["fence"]) != (self._node, self._fence):
            raise lease_error(str(claim["node"]))
        connection.readCurrent(claim)
        return claim

    def renew(self) -> None:
        """Say that this node lives. Raises: ImageError: another has taken the lease."""

        def beat(connection: Any) -> None:
            self._hold(connection)["beat"]["count"] += 1

        self._attempt(beat)

    def give_back(self) -> None:
        """Let the next node take the lease at once."""

        def leave(connection: Any) -> None:
            self._hold(connection)["node"] = ""

        self._attempt(leave)

    def _attempt(self, change: Callable[[Any], T]) -> T:
        """Commit a change of a connection; one that meets another commit is made again."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._commit(change)
            except ConflictError:
                if attempt == _ATTEMPTS:
                    raise
        raise InternalError("no attempt was made")

    def _commit(self, change: Callable[[Any], T]) -> T:
        manager = transaction.TransactionManager(explicit=True)
        connection: Any = self._db.open(manager)
        connection.leasing = True
        try:
            with manager:
                return change(connection)
        finally:
            # `with` leaves a commit that failed open.
            with suppress(NoTransaction):
                manager.abort()
            connection.leasing = False
            connection.close()

    async def take(self, *, standby: bool) -> None:
        """Take the lease, waiting for its time; a standby waits until its holder leaves or dies.

        Raises: ImageBusy: its holder lives.
        """
        began, told = self._clock(), ""
        while holder := await asyncio.to_thread(self.try_take):
            if not standby and self._clock() - began > self._seconds + 1:
                raise ImageBusy(
                    "on its server", f"the node {holder}", remedy="Stop it, or wait for it with `standby = true`."
                )
            if holder != told:
                _log.info("image.waiting", holder=holder)
                told = holder
            await asyncio.sleep(self._seconds / _LOOKS)
        self._db.fence = self

    def keep(self, failed: Callable[[ImageError], None]) -> None:
        """Keep the lease renewed from now on, in a thread of its own; `failed` is called when it is lost."""
        self._thread = threading.Thread(target=self._work, args=(failed,), name="batos-lease", daemon=True)
        self._thread.start()

    def _work(self, failed: Callable[[ImageError], None]) -> None:
        while not self._closing.wait(self._seconds / _RENEWALS):
            try:
                self.renew()
            except ImageError as error:
                _log.error("image.lease_lost", reason=str(error))
                failed(error)
                return
            except Exception as error:  # of the server or the network: the next renewal tries again
                _log.warning("image.lease_not_renewed", reason=str(error))

    def close(self) -> None:
        """Stop renewing, and give the lease back if it is still this node's."""
        self._closing.set()
        if self._thread is None:
            return
        self._thread.join()
        try:
            self.give_back()
        except Exception as error:  # lost, or no server: it ends by itself
            _log.warning("image.lease_not_given_back", reason=str(error))


def lease_error(holder: str) -> ImageError:
    """Make the error for a lease that another node has taken."""
    return ImageError(
        f"the lease of the image is no longer this node's: {holder or 'nobody'} has it",
        remedy="Nothing is written here any more. Start this node again; with `standby = true` it waits for its turn.",
    )
