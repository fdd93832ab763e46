"""The verbs that only read, over an image that is opened for reading: its last commit, also beside its owner."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, closing, contextmanager
from datetime import datetime
from typing import cast

from ZODB.DB import DB

from batos.autotelic import rates as rates_of_mind
from batos.client.pending import OnAcknowledged, OnEvent, nobody
from batos.config import Settings
from batos.genesis import daemon_listing
from batos.image import node_lines, roots, storage
from batos.image.ids import utc_now
from batos.image.readable import ReadableImage, ReadOnlyPair, check_is_there, is_complete, open_read_only
from batos.image.roots import Root
from batos.inference.journal import Entries
from batos.inference.ollama.opening import bridge
from batos.methods.lifecycle.method_reports import MethodReader
from batos.missions import counters
from batos.missions.readings import Doing, Readings
from batos.protocol.errors import BatosError, ImageError, NoServer, NotFound
from batos.protocol.image_documents import ProgressLine
from batos.protocol.motion_documents import RatesDocument
from batos.protocol.server_documents import MindStatus, StatusDocument
from batos.server.dispatch.handling import answer, bind
from batos.server.dispatch.reads import Reader
from batos.verbs.server_verbs import STATUS, StatusArgs


class Looking:
    """Answers the verbs that only read; `holder` is the process that has the image open, "" if none has."""

    def __init__(self, settings: Settings, faces: ReadOnlyPair) -> None:
        self.holder = faces.holder
        self._faces = faces
        self._image = ReadableImage(settings.image_uri, faces.image, faces.journal)
        self._of = readings = Readings(settings, self._image, Entries(faces.journal), MethodReader(self._image))
        self._reader = Reader(readings)
        self._verbs = {**self._reader.verbs(), **dict((bind(STATUS, self._status),))}

    @property
    def readings(self) -> Readings:
        """Return what reads the image."""
        return self._of

    async def handle(
        self, verb: str, args: Mapping[str, object], on_event: OnEvent = nobody, on_ack: OnAcknowledged = nobody
    ) -> dict[str, object]:
        """Run a verb that only reads and give its result; NoServer for anything else."""
        return await answer(self._verbs, verb, args, on_event, on_ack)

    def is_whole(self) -> bool:
        """Test if there is a mind in the image, in the present form. Raises: ImageError: it cannot be read."""
        with self._faces.root() as root:
            return is_complete(root)

    async def runs(self, mission: str) -> bool:
        """Test if the image's holder runs a mission: one that began before it opened the image was left by another."""
        return bool(self.holder) and await self._reader.read(self._is_holders, mission)

    def _is_holders(self, mission: str) -> bool:
        file = storage.file_of(self._image.uri)
        since = storage.held_since(file) if file is not None else 0.0
        with self._image.snapshot() as root:
            status = self._image.find(root, mission)[1]
        return status.word == "running" and datetime.fromisoformat(status.at).timestamp() >= since

    async def _status(self, given: StatusArgs, *_told: object) -> StatusDocument:
        found = await _add_daemon(self._of.settings, await self._reader.read(self.read_mind, given.user))
        if given.rates:
            found["rates"] = await self._reader.read(self._read_rates, given.user)
        return found

    def _read_rates(self, user: str | None) -> RatesDocument:
        with self._image.snapshot() as root:
            sources = (self._of.journal, counters.read_counters(root))
            return rates_of_mind.describe(root, sources, self._of.clock(), user)

    def read_mind(self, user: str | None = None) -> MindStatus:
        """Return the status of the mind as of its last commit; that of an empty one, with an error, where none is."""
        settings = self._of.settings
        with self._faces.root() as root:
            there = is_complete(root)
            if not there:
                roots.prepare(root)  # what a snapshot is given is thrown away
            is_shared = storage.is_shared(settings.image_uri)
            doing = Doing(
                counters.read_counters(root),
                _list_running(root),
                {"waiting": len(root[roots.WISHES]), "making": None},
                nodes=node_lines.list_nodes(root, settings.lease, utc_now()) if is_shared else (),
                holder=self.holder,
            )
            found = self._of.status(root, doing, user)
        if not there:
            found["image"]["error"] = no_mind().as_dict()
        return found


@contextmanager
def open_looking(settings: Settings) -> Iterator[Looking]:
    """Open the image as it was committed last, for reading: nothing is changed, and nothing is made.

    Raises: NotFound: there is no image. ImageError: it cannot be read.
    """
    check_is_there(settings.image_uri)
    with open_read_only(settings.image_uri, settings.journal) as faces:
        faces.pair()
        yield Looking(settings, faces)


async def read_status(settings: Settings, *, rates: bool = False) -> StatusDocument:
    """Return what a server would tell, with `server` None; an image that cannot be read is told under its `error`."""
    async with AsyncExitStack() as stack:
        try:
            # Opening may scan a file: not on the loop.
            looking = await asyncio.to_thread(stack.enter_context, open_looking(settings))
            return cast("StatusDocument", await looking.handle("status", {"rates": rates}))
        except BatosError as error:
            with closing(DB(None)) as empty:
                found = Looking(settings, ReadOnlyPair(empty, empty)).read_mind()
            told = no_mind() if isinstance(error, NotFound) else error
            found["image"] = {"uri": found["image"]["uri"], "error": told.as_dict()}
            return await _add_daemon(settings, found)


async def _add_daemon(settings: Settings, found: MindStatus) -> StatusDocument:
    error = found["image"]["error"]
    first = [NoServer("no server runs").as_dict(), *([error] if error else [])]
    async with bridge(settings) as daemon:
        standing = await daemon_listing.add_standing(found, daemon, first)
    return cast("StatusDocument", {"server": None, "genesis": None, "heartbeat": None, **standing})


def no_mind() -> ImageError:
    """Return the error of an image in which there is no mind yet."""
    return ImageError("there is no mind in it yet", remedy="Run `batos genesis`.")


def _list_running(root: Root) -> list[ProgressLine]:
    """List the missions that began to run and have not ended; only a living process knows more of them."""
    begun = ((name, roots.mission_record(root, name).status) for name in root[roots.UNFOLDED])
    return [
        {
            "id": name,
            "state": "",
            "personas": [],
            "effort": "",
            "since": status.at,
            "attempt": status.attempts,
            "calls": 0,
        }
        for name, status in begun
        if status.word == "running"
    ]
