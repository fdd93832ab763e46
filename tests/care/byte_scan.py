"""A scan of bytes for a secret that knows nothing of the package: it opens streams of zlib, and base64, anywhere."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

_STREAM = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{32,}")


def has(data: bytes, secret: bytes, depth: int = 0) -> bool:
    """Tell whether bytes have a secret: as they are, compressed, in base64, or one within the other."""
    if secret in data:
        return True
    return depth < 4 and any(has(inner, secret, depth + 1) for inner in opened(data))


def opened(data: bytes) -> Iterator[bytes]:
    """What the streams of zlib and the runs of base64 in some bytes hold."""
    for found in _STREAM.finditer(data):
        try:
            inner = zlib.decompressobj().decompress(data[found.start() :])
        except zlib.error:
            continue
        if inner:
            yield inner
    for found in _BASE64.finditer(data):
        for begin in range(4):
            run = found[0][begin:].translate(bytes.maketrans(b"-_", b"+/"))
            try:
                yield base64.b64decode(run[: len(run) // 4 * 4])
            except binascii.Error:
                continue


def files_with(folder: Path, secret: bytes) -> set[str]:
    """The files below a folder that have a secret, by their paths in it."""
    return {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and has(path.read_bytes(), secret)
    }
