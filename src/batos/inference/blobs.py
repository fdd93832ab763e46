"""Files on their way to the daemon: measured and read in threads, because they are gigabytes."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from batos.errors import UsageError

_CHUNK = 1 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def checked_digest(digest: str) -> str:
    """The digest, if it is `sha256:` and 64 hex digits: with a dash instead of the colon the daemon refuses uploads."""
    if not _DIGEST.fullmatch(digest):
        raise UsageError(f"{digest!r} is no digest of the form sha256:<64 hex digits>", field="digest")
    return digest


def measure(path: Path) -> tuple[str, int]:
    """Digest and size in bytes of a file."""
    with path.open("rb") as file:
        hashed = hashlib.file_digest(file, "sha256")
        return f"sha256:{hashed.hexdigest()}", file.tell()


async def chunks(path: Path, on_chunk: Callable[[], None]) -> AsyncIterator[bytes]:
    """The file's bytes, a mebibyte at a time; `on_chunk` is called before each."""
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            on_chunk()
            yield chunk
    finally:
        file.close()
