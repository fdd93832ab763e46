"""The mind in this process: the image is opened here, behind the dispatcher that a server has too, or only read."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress

from batos.cli.doors.door import Door, Opened
from batos.config import Settings
from batos.events import Events
from batos.image import storage
from batos.image.readable import check_is_there
from batos.protocol.errors import BatosError
from batos.server.dispatch import erasing
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.looking import Looking, open_looking
from batos.server.dispatch.uploads import Uploads, sweep
from batos.uvm import Seams, open_uvm


@asynccontextmanager
async def open_here(settings: Settings, seams: Seams | None = None) -> AsyncIterator[Door]:
    """Open the settings' image and yield the door to it; missions that run when it is closed go back to the queue."""
    async with open_uvm(settings, Events(log=True), seams) as uvm:
        await asyncio.to_thread(sweep, settings.home)
        if uvm.image.publishing.is_here:  # another node may be at it
            await erasing.finish_one(uvm)
        # A folder of its own: a server of the same home has one too.
        uploads = Uploads(settings.home / f"uploads-{os.getpid()}", settings.attachment_bytes)
        dispatcher = Dispatcher(uvm, uploads, works=False)
        try:
            yield Door(dispatcher.handle, uvm=uvm)
        finally:
            await dispatcher.wait_until_settled()
            await uploads.close()


@asynccontextmanager
async def open_to_read(settings: Settings, otherwise: Opened) -> AsyncIterator[Door]:
    """Open the image for reading, also while another process has it open; `otherwise` where it is not a whole file.

    That also mends what a crash left, or says what is wrong. Raises: NotFound: there is no image, and whoever only
    reads makes none.
    """
    check_is_there(settings.image_uri)
    async with AsyncExitStack() as stack:
        # Opening may scan a file: not on the loop.
        looking = await asyncio.to_thread(_look, stack, settings)
        if looking is None:
            yield await stack.enter_async_context(otherwise)
        else:
            yield Door(looking.handle, holder=looking.holder, runs=looking.runs)


def _look(stack: AsyncExitStack, settings: Settings) -> Looking | None:
    """Open the image for reading, if it is a whole one on a disk."""
    if storage.file_of(settings.image_uri) is None:
        return None
    with ExitStack() as opening, suppress(BatosError):
        looking = opening.enter_context(open_looking(settings))
        if looking.is_whole():
            stack.push(opening.pop_all())
            return looking
    return None
