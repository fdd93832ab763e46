"""The status if no server runs: this process reads the image from the disk and asks Ollama."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from batos.config import Settings
from batos.genesis import standing
from batos.image import node_lines, roots, storage
from batos.image.ids import utc_now
from batos.image.readable import ReadableImage, is_complete
from batos.image.roots import Root
from batos.image.views.read_only import ReadOnlyPair, is_there, open_read_only
from batos.inference.ollama.opening import bridge
from batos.missions import counters, reports
from batos.notation import mask_passwords
from batos.protocol.errors import BatosError, ImageError, NoServer
from batos.protocol.image_documents import ProgressLine

#: The content of an image without a genesis, under the keys of `missions.reports.screen`.
_NOTHING: Mapping[str, Any] = {
    "approvals": {"waiting": 0},
    "running": [],
    "missions": {},
    "counters": {},
    "days": {},
    "vram": [],
    "failures": [],
    "models": {},
    "forms": {},
    "learning": {"waiting": 0, "making": None},
    "jobs": [],
    "nodes": [],
    "erasure": None,
}


async def status_document(settings: Settings) -> dict[str, Any]:
    """Return what a server would tell, with `server` None; `holder` is the process that has the image open, or "".

    An image that cannot be read is told under its `error`. Nothing is changed, and nothing is made that is not there.
    """
    # Opening may scan a file: not on the loop.
    seen = await asyncio.to_thread(_read_image, settings)
    async with bridge(settings) as daemon:
        said = await standing.ask_standing(daemon, seen["models"])
    error = seen["image"]["error"]
    reasons = [NoServer("no server runs").as_dict(), *([error] if error else []), *standing.reasons(said, None)]
    ollama = {"host": mask_passwords(settings.ollama_host), **said}
    return {"server": None, "genesis": None, **seen, "ollama": ollama, "ready": False, "reasons": reasons}


def _read_image(settings: Settings) -> dict[str, Any]:
    image: dict[str, Any] = {"uri": mask_passwords(settings.image_uri), "error": None}
    nothing = {**_NOTHING, "queue": {"waiting": 0, "limit": settings.queue}, "holder": ""}
    if not is_there(settings.image_uri):
        return {**nothing, "image": {**image, "error": _none().as_dict()}}
    try:
        with open_read_only(settings.image_uri, settings.journal) as faces:
            return _read(settings, faces, image)
    except BatosError as error:
        return {**nothing, "image": {**image, "error": error.as_dict()}}


def _read(settings: Settings, faces: ReadOnlyPair, image: Mapping[str, Any]) -> dict[str, Any]:
    whole = ReadableImage(settings.image_uri, faces.image, faces.journal)
    seen: dict[str, Any] = {"holder": faces.holder, "image": {**image, **whole.sizes()}}
    faces.pair()
    with faces.root() as root:
        if not is_complete(root):
            queue = {"waiting": 0, "limit": settings.queue}
            return {**_NOTHING, "queue": queue, **seen, "image": {**seen["image"], "error": _none().as_dict()}}
        screen = reports.screen(root, counters.read_counters(root), _running(root), settings.queue)
        is_shared = storage.is_shared(settings.image_uri)
        nodes = node_lines.list_nodes(root, settings.lease, utc_now()) if is_shared else []
        learning = {"waiting": len(root[roots.WISHES]), "making": None}
        return {**screen, "learning": learning, "jobs": [], "nodes": nodes, **seen}


def _none() -> ImageError:
    return ImageError("there is no mind in it yet", remedy="Run `batos genesis`.")


def _running(root: Root) -> list[ProgressLine]:
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
