"""Files on their way to a mind: only the bytes that it lacks are sent, in pieces."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from batos.protocol.brief import File
from batos.protocol.errors import BriefError, Busy
from batos.protocol.wire_messages import PIECE_BYTES


class Asks(Protocol):
    """Asks one thing of a mind and returns its result."""

    async def __call__(self, verb: str, args: Mapping[str, object], /) -> dict[str, object]:
        """Ask it."""
        ...


async def send_files(ask: Asks, files: Sequence[File]) -> list[dict[str, object]]:
    """Hand over the bytes of files that the mind lacks; return the references that a brief carries."""
    for file in files:
        for tries in range(3):
            if await _sent(ask, file, again=tries > 0):
                break
        else:
            raise BriefError(f"{file.ref.name} did not arrive whole", field="attachments", remedy="Send it again.")
    return [file.ref.model_dump() for file in files]


async def _sent(ask: Asks, file: File, *, again: bool) -> bool:
    """Send the part of a file that the mind lacks, or `again` all of it; return True if that completes it."""
    told = await _piece(ask, file, 0, b"")
    at = 0 if again else int(told["have"])
    while "size" not in told and at < len(file.data):
        piece = file.data[at : at + PIECE_BYTES]
        try:
            told = await _piece(ask, file, at, piece)
        except BriefError as error:
            if error.field == "attachments" and "agree" in error.message:
                return False
            raise
        at += len(piece)
    return "size" in told


async def _piece(ask: Asks, file: File, offset: int, piece: bytes) -> dict[str, Any]:
    args = {"sha256": file.ref.sha256, "offset": offset, "data": base64.b64encode(piece).decode()}
    for pause in (0.1, 0.5, 2.0):
        try:
            return await ask("attach", args)
        except Busy:
            await asyncio.sleep(pause)
    return await ask("attach", args)
