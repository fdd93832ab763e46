"""Files on their way to the daemon: measured, read in threads and sent in pieces, because they are gigabytes."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from batos.inference.ollama import failures
from batos.inference.ollama.failures import DaemonPeer
from batos.protocol.errors import UsageError

_CHUNK = 1 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def checked_digest(digest: str) -> str:
    """Return the digest if it is `sha256:` and 64 hex digits: the daemon refuses uploads with a dash instead of the
    colon.

    Raises: UsageError: the digest has another form.
    """
    if not _DIGEST.fullmatch(digest):
        raise UsageError(f"{digest!r} is no digest of the form sha256:<64 hex digits>", field="digest")
    return digest


@dataclass(frozen=True, slots=True)
class MeasuredFile:
    """A file with its digest and its size in bytes."""

    path: Path
    digest: str
    size: int


def measure(path: Path, digest: str | None = None) -> MeasuredFile:
    """Return digest and size of a file. The file is read only if its digest is not given."""
    with path.open("rb") as file:
        if digest is not None:
            return MeasuredFile(path, checked_digest(digest), os.fstat(file.fileno()).st_size)
        hashed = hashlib.file_digest(file, "sha256")
        return MeasuredFile(path, f"sha256:{hashed.hexdigest()}", file.tell())


async def send(http: httpx.AsyncClient, peer: DaemonPeer, file: MeasuredFile, on_bytes: Callable[[int], None]) -> None:
    """Upload a file that the daemon does not have; any other failure than of reading is an OllamaError."""
    content, length = chunks(file, on_bytes), {"Content-Length": str(file.size)}
    try:
        response = await http.post(f"/api/blobs/{file.digest}", content=content, headers=length)
    except (httpx.HTTPError, httpx.StreamError) as raw:
        raise failures.translate(raw, peer) from raw
    if response.status_code not in (200, 201):
        raise failures.refusal(response.text, response.status_code)


async def chunks(measured: MeasuredFile, on_bytes: Callable[[int], None]) -> AsyncIterator[bytes]:
    """Yield the file's bytes, a mebibyte at a time; `on_bytes` gets the number of bytes sent before each piece, and at
    the end.

    No more bytes are read than were measured: if the file grew, the daemon notices by the digest.

    Raises: UsageError: the file became shorter.
    """
    sent = 0
    file = await asyncio.to_thread(measured.path.open, "rb")
    try:
        while sent < measured.size:
            on_bytes(sent)
            chunk = await asyncio.to_thread(file.read, min(_CHUNK, measured.size - sent))
            if not chunk:
                remedy = "Let it be written to its end, then try again."
                raise UsageError(f"{measured.path} changed while it was sent to Ollama", remedy=remedy, field="digest")
            sent += len(chunk)
            yield chunk
        on_bytes(sent)
    finally:
        file.close()
