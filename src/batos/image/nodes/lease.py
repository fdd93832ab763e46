"""The lease of a node, which runs on a machine, on an image that several can reach."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

import structlog
import transaction
from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOTreeSet
from persistent.mapping import PersistentMapping
from transaction.interfaces import NoTransaction, TransientError

from batos.image import roots
from batos.image.database import LoadableDB
from batos.image.nodes import claims
from batos.image.writer import back_off
from batos.protocol.errors import ConfigError, ImageError, InternalError, message_of

#: The file of a Linux machine's id; the system asks that nobody is told the id itself.
_ID_FILE: Final = Path("/etc/machine-id")
#: The content of the file during the very first start of a machine.
_NO_ID: Final = ("", "uninitialized")


class HostIdentity(NamedTuple):
    """Names a machine: two are told apart by `id`, and a person knows it by `name`."""

    id: str
    name: str


def this_host(id_file: Path = _ID_FILE, name: str = "") -> HostIdentity:
    """Return this machine: its id is a digest of the system's, where that can be read, else of its name."""
    name, known = name or socket.gethostname(), ""
    with suppress(OSError, UnicodeDecodeError):
        known = id_file.read_text(encoding="ascii").strip()
    whole = f"name {name}" if known in _NO_ID else f"id {known}"
    return HostIdentity(hashlib.sha256(f"batos {whole}".encode()).hexdigest()[:16], name)


T = TypeVar("T")

_log = structlog.get_logger("batos.image")

#: Renewals in the time of a lease.
_RENEWALS: Final = 10 / 3
#: Looks at the other nodes in the time of a lease, and the seconds between two at most.
_LOOKS: Final = 20
_LONGEST_LOOK: Final = 0.2
#: The looks at least that find a node silent before it counts as dead, however long the pauses between them are.
_SILENT_LOOKS: Final = 4
_ATTEMPTS: Final = 20
#: Ended nodes that stay on record, so that whoever sleeps long finds that its own has ended.
_KEPT: Final = 100


class NotPublisher(ImageError):
    """A change of what the publisher alone writes came while another node was the publisher."""


def read_clock() -> float:
    """Return the seconds of a clock that goes on while this process is stopped, and while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def node_name() -> str:
    """Return a name of this process that a person can find it by."""
    return f"{socket.gethostname()}, process {os.getpid()}"


class NodeLease:
    """A node's lease on an image, and its part in who publishes.

    A node has a record of its own with a number, the fence, that no other ever gets. Each commit of the process reads
    the record as current. A node counts as dead when its beat has not changed for the time of the lease, measured by
    who watches, so that no two clocks are compared; its record is then marked as ended, and a process that slept
    commits nothing from there on.

    A single node publishes: a record of its own says which. Each commit of what the publisher writes reads it as
    current. Another may ask for it, and gets it once nothing holds it here.
    """

    def __init__(
        self,
        db: LoadableDB,
        seconds: float,
        name: str,
        sessions: tuple[int, int] = (0, 0),
        host: HostIdentity | None = None,
        clock: Callable[[], float] = read_clock,
    ) -> None:
        """Create it. `sessions` are those that this node may need, and those that all nodes may have (0: no limit);
        `host` is the machine that it is on.
        """
        self._db, self._seconds, self._clock, self._sessions = db, seconds, clock, sessions
        #: Unlike any other process's, also of this machine's next one with the same id.
        self._node = f"{name} {secrets.token_hex(4)}"
        self.fence, self.host = 0, host or this_host()
        self._closing, self._thread = threading.Event(), cast("threading.Thread | None", None)
        #: The beat of each other node that was seen last, and since when.
        self._seen: dict[int, tuple[int, float]] = {}
        #: When this node looked at the others last.
        self._looked = clock()
        #: The error, once another node has ended the lease.
        self.lost: ImageError | None = None
        #: When the newest renewal began that got in.
        self._renewed = clock()
        #: Held while this node looks who publishes, or changes it.
        self._looking = threading.Lock()
        #: Held while the two below are read or changed.
        self._holding = threading.Lock()
        self.publishes, self._holders = False, 0
        #: Another node asked for the part when this one looked last, and something here held it.
        self.is_wanted = False

    @property
    def seconds(self) -> float:
        """Return the time after which a silent node counts as dead."""
        return self._seconds

    # -- coming and leaving

    def join(self) -> None:
        """Register as a node of the image, and its publisher if it has none. Raises: ConfigError: too few sessions."""

        def change(connection: Any) -> bool | ConfigError:
            root = connection.root()
            if roots.NODES not in root:
                root[roots.NODES] = IOBTree()
                root[roots.PUBLISHER] = PersistentMapping(fence=0, wanted=0)
            nodes, publisher = root[roots.NODES], root[roots.PUBLISHER]
            self._end_silent(nodes)
            if refusal := self._find_refusal(nodes):
                return refusal
            self.fence = (nodes.maxKey() if nodes else 0) + 1
            record: Any = PersistentMapping(name=self._node, ended=False, sessions=self._sessions[0])
            record["machine"] = self.host.id
            record["beat"], record["claims"] = PersistentMapping(count=0), OOTreeSet()
            nodes[self.fence] = record
            for fence in list(nodes)[:-_KEPT]:
                if nodes[fence]["ended"] and not nodes[fence]["claims"]:
                    del nodes[fence]
            if _is_free(nodes, publisher):
                publisher["fence"] = self.fence
            return bool(publisher["fence"] == self.fence)

        first = began = self._clock()
        while isinstance(joined := self._attempt(change), ConfigError):
            if began - first > self._seconds + 1:
                raise joined
            time.sleep(min(self._seconds / _LOOKS, _LONGEST_LOOK))  # those that have the sessions may be dead
            began = self._clock()
        self.publishes, self._renewed, self._db.fence = joined, began, self

    def _find_refusal(self, nodes: Any) -> ConfigError | None:
        needed, limit = self._sessions
        others = sum(each["sessions"] for each in nodes.values() if not each["ended"])
        if limit and others + needed > limit:
            return ConfigError(
                f"the server has {limit} sessions; {others} may be needed by other nodes, and {needed} here",
                field="missions",
                remedy="Lower --missions (a session for each), or raise the server's max_connections.",
            )
        return None

    def leave(self) -> None:
        """End the lease, so that others take up at once what is left."""

        def change(connection: Any) -> None:
            self._hold(connection)["ended"] = True
            publisher = connection.root()[roots.PUBLISHER]
            if publisher["fence"] == self.fence:
                publisher["fence"] = 0

        self._attempt(change)

    # -- the fence

    def guard(self, connection: Any) -> None:
        """Let a commit of this connection fail unless this node has its lease at that moment.

        Raises: ImageError: another node has ended it. NotPublisher: the commit is the publisher's, and another is it.
        """
        if connection.leasing:
            return
        self._hold(connection)
        if connection.publishing:
            publisher = connection.root()[roots.PUBLISHER]
            if publisher["fence"] != self.fence:
                raise NotPublisher("another node publishes", remedy="Try again.")
            connection.readCurrent(publisher)

    def _hold(self, connection: Any) -> Any:
        record = connection.root()[roots.NODES].get(self.fence)
        if record is None or record["ended"]:
            raise _lease_error()
        connection.readCurrent(record)
        return record

    def check_fresh(self) -> None:
        """Check that no other node can have ended this one's lease by now. Raises: ImageError: one may have."""
        if self._clock() - self._renewed >= self._seconds:
            raise _lease_error()

    def renew(self) -> None:
        """Say that this node lives. Raises: ImageError: another node has ended the lease."""
        began = self._clock()

        def beat(connection: object) -> None:
            self._hold(connection)["beat"]["count"] += 1

        self._attempt(beat)
        self._renewed = began

    # -- watching the others

    def look(self) -> None:
        """End the leases of nodes that are silent, become the publisher if there is none, and give that to who asks.

        Raises: ImageError: another node has ended this one's lease.
        """

        def change(connection: Any) -> bool:
            root = connection.root()
            nodes, publisher = root[roots.NODES], root[roots.PUBLISHER]
            self._hold(connection)
            self._end_silent(nodes)
            if _is_free(nodes, publisher):
                publisher["fence"] = self.fence
            elif publisher["fence"] == self.fence and publisher["wanted"]:
                wanted = publisher["wanted"]
                if claims.has_ended(nodes, wanted):
                    publisher["wanted"] = 0
                elif self._let_go():
                    publisher["fence"], publisher["wanted"] = wanted, 0
            self.is_wanted = bool(publisher["fence"] == self.fence and publisher["wanted"])
            return bool(publisher["fence"] == self.fence)

        with self._looking:
            self.publishes = self._attempt(change)

    def _end_silent(self, nodes: Any) -> None:
        """End the leases of nodes that were silent while this one looked at them.

        Whatever held this node up (a lock of the server, a machine that slept) may have held up the others too: of a
        pause between two looks only a part counts against them.
        """
        gap = self._clock() - self._looked
        if (held_up := gap - self._seconds / _SILENT_LOOKS) > 0:
            self._seen = {fence: (beat, since + held_up) for fence, (beat, since) in self._seen.items()}
        self._looked += gap
        for fence, record in nodes.items():
            if fence != self.fence and not record["ended"] and self._is_silent(fence, record["beat"]["count"]):
                record["ended"] = True
                _log.warning("image.node_ended", node=record["name"], missions=len(record["claims"]))

    def _is_silent(self, fence: int, beat: int) -> bool:
        now = self._clock()
        if fence not in self._seen or self._seen[fence][0] != beat:
            self._seen[fence] = beat, now
        return now - self._seen[fence][1] >= self._seconds

    def _let_go(self) -> bool:
        """Stop publishing, unless something here needs that just now."""
        with self._holding:
            if not self._holders:
                self.publishes = False
            return not self.publishes

    # -- publishing

    def hold(self) -> bool:
        """Give the part of the publisher to no other node until `release`; return whether this node has it."""
        with self._holding:
            self._holders += 1
            return self.publishes

    def release(self) -> None:
        """Let other nodes have the part of the publisher, as far as this holder is concerned."""
        with self._holding:
            self._holders -= 1

    def try_publish(self) -> bool:
        """Take the part of the publisher if nobody has it, else ask for it; return whether this node has it."""

        def change(connection: Any) -> bool:
            root = connection.root()
            nodes, publisher = root[roots.NODES], root[roots.PUBLISHER]
            self._hold(connection)
            if _is_free(nodes, publisher):
                publisher["fence"] = self.fence
            elif publisher["fence"] != self.fence and (
                not publisher["wanted"] or claims.has_ended(nodes, publisher["wanted"])
            ):
                publisher["wanted"] = self.fence
            return bool(publisher["fence"] == self.fence)

        with self._looking:
            self.publishes = self._attempt(change)
            return self.publishes

    # -- committing

    def _attempt(self, change: Callable[[Any], T]) -> T:
        """Commit a change of a connection; one that meets another commit is made again."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._commit(change)
            except TransientError:
                if attempt == _ATTEMPTS:
                    raise
                back_off(attempt)
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

    # -- the thread

    def keep(self, failed: Callable[[ImageError], None]) -> None:
        """Keep the lease renewed and the others watched from now on, in a thread of its own.

        `failed` is called when the lease is lost.
        """
        self._thread = threading.Thread(target=self._work, args=(failed,), name="batos-lease", daemon=True)
        self._thread.start()

    def _work(self, failed: Callable[[ImageError], None]) -> None:
        due = self._clock() + self._seconds / _RENEWALS
        while not self._closing.wait(min(self._seconds / _LOOKS, _LONGEST_LOOK)):
            try:
                if self._clock() >= due:
                    due = self._clock() + self._seconds / _RENEWALS
                    self.renew()
                self.look()
            except ImageError as error:
                self.publishes, self.lost = False, error
                _log.error("image.lease_lost", reason=message_of(error))
                failed(error)
                return
            except Exception as error:  # of the server or the network: the next one tries again
                _log.warning("image.lease_not_renewed", reason=message_of(error))

    def close(self) -> None:
        """Stop renewing, and leave if the lease is still this node's."""
        self._closing.set()
        if self._thread is None:
            return
        self._thread.join()
        self.publishes = False
        try:
            self.leave()
        except Exception as error:  # lost, or no server: it ends by itself
            _log.warning("image.lease_not_given_back", reason=message_of(error))


def _is_free(nodes: Any, publisher: Any) -> bool:
    return claims.has_ended(nodes, publisher["fence"])


def _lease_error() -> ImageError:
    """Make the error for a lease that another node has ended."""
    return ImageError(
        "the lease of this node on the image has ended, and others do its work",
        remedy="Nothing is written here any more. Start this node again.",
    )
