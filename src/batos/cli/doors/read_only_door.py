"""The door for verbs that only read: it reads the image from the disk, also while another process has it open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar

from batos.cli.doors.idle_door import IdleDoor
from batos.client.wire.pending import OnAcknowledged, OnEvent
from batos.config import Settings
from batos.image import storage
from batos.image.readable import ReadableImage, is_complete
from batos.image.views.read_only import ReadOnlyPair, check_is_there, open_read_only
from batos.inference.journal import Entries
from batos.methods.lifecycle.method_readings import MethodReader
from batos.missions.readings import Readings
from batos.protocol.brief import File
from batos.protocol.errors import BatosError, NoServer
from batos.server.dispatch.reads import Reader
from batos.verbs.registry import read_args

T = TypeVar("T")


def _ignore(*_told: object) -> None:
    """Do nothing with an event: nothing happens here."""


class ReadOnlyDoor(IdleDoor):
    """A door to an image that is only read."""

    served = False

    def __init__(self, looked: Readings, holder: str, since: float) -> None:
        """Look at an image; `holder` is the process that has it open, `since` when it opened it; "" and 0 if none."""
        self.holder = holder
        self._since = since
        self._looked = looked
        self._reader = Reader(looked)
        self._verbs = self._reader.verbs()

    async def call(
        self,
        verb: str,
        args: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> dict[str, Any]:
        """Run a verb that only reads; NoServer for anything else."""
        given = read_args(verb, args or {})
        if verb not in self._verbs:
            raise NoServer(f"no server runs, and {verb} does more than read the image")
        return dict(await self._verbs[verb](given, on_event or _ignore, on_acknowledged or _ignore))

    async def attach(self, files: Sequence[File]) -> list[dict[str, Any]]:
        """Refuse: no file can be handed over here."""
        raise NoServer("no server runs, and files can only be sent to a server")

    async def attends(self, mission: str) -> bool:
        """Say whether the image's holder runs it; a mission begun before the holder opened it was left by another."""
        return bool(self.holder) and await self._reader.read(self._runs, mission)

    def _runs(self, mission: str) -> bool:
        image = self._looked.image
        with image.snapshot() as root:
            status = image.find(root, mission)[1]
        return status.word == "running" and datetime.fromisoformat(status.at).timestamp() >= self._since

    async def begin(self, mission: str) -> None:
        """Refuse: no mission runs while the image is only looked at."""
        raise NoServer(f"no server runs, and {mission} can only be read")


@asynccontextmanager
async def open_read_only_door(
    settings: Settings, otherwise: AbstractAsyncContextManager[T]
) -> AsyncIterator[ReadOnlyDoor | T]:
    """Open the image as it was committed last, for reading; where the one on a disk is not whole, open the other door.

    An image that cannot be read is left to the other door as well, which mends what a crash left, or says what is
    wrong. Raises: NotFound: there is no image, and whoever only reads makes none.
    """
    check_is_there(settings.image_uri)
    async with AsyncExitStack() as stack:
        # Opening may scan a file: not on the loop.
        faces = await asyncio.to_thread(_open_image, stack, settings)
        if faces is None:
            yield await stack.enter_async_context(otherwise)
            return
        image = ReadableImage(settings.image_uri, faces.image, faces.journal)
        looked = Readings(settings, image, Entries(faces.journal), MethodReader(image))
        file = storage.file_of(settings.image_uri)
        since = storage.held_since(file) if file is not None and faces.holder else 0.0
        yield ReadOnlyDoor(looked, faces.holder, since)


def _open_image(stack: AsyncExitStack, settings: Settings) -> ReadOnlyPair | None:
    """Open the image, if it is a whole one on a disk."""
    if storage.file_of(settings.image_uri) is None:
        return None
    with ExitStack() as opening:
        try:
            faces = opening.enter_context(open_read_only(settings.image_uri, settings.journal))
            faces.pair()
            with faces.root() as root:
                if not is_complete(root):
                    return None
        except BatosError:
            return None
        stack.push(opening.pop_all())
        return faces
