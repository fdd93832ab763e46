"""Heads of HTTP/1.1 by hand where they are of the plainest kind; whatever is not is left to h11."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus

HEADER_BYTES = 32 * 1024
_PLAIN = re.compile(
    rb"(GET|HEAD|POST|DELETE) (/[!-~]*) HTTP/1\.1\r\n"
    rb"((?:[-!#$%&'*+.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*\r\n)+)\r\n"
)
_NOT_PLAIN = ("transfer-encoding", "expect", "upgrade")
_LENGTH_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Head:
    """A request's head; `length` is that of its body, `size` the head's own bytes."""

    method: str
    path: str
    headers: dict[str, str]
    length: int
    size: int


def plain(data: bytes) -> Head | None:
    """The head that the data begins with, or None for one that is not whole, not well formed or not of this kind.

    Of this kind: each header once, a host, a length in digits or no body, and a connection that stays open.
    """
    found = _PLAIN.match(data)
    if found is None or found.end() > HEADER_BYTES:
        return None
    method, target, block = found.groups()
    headers: dict[str, str] = {}
    for line in block.decode("latin-1").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        name = name.lower()
        if name in headers:
            return None
        headers[name] = value.strip(" \t")
    if "host" not in headers or headers.get("connection", "keep-alive").lower() != "keep-alive":
        return None
    length = headers.get("content-length", "0")
    digits = length.isascii() and length.isdigit() and len(length) <= _LENGTH_DIGITS
    if not digits or any(name in headers for name in _NOT_PLAIN):
        return None
    path = target.decode("ascii").partition("?")[0]
    return Head(method.decode("ascii"), path, headers, int(length), found.end())


def reply(status: int, headers: Sequence[tuple[str, str]]) -> bytes:
    """The head of a reply."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    return b"HTTP/1.1 %d %b\r\n%b\r\n" % (status, reason(status), lines.encode("latin-1"))


@lru_cache(maxsize=64)
def reason(status: int) -> bytes:
    """The words of a status, or none for one that has none."""
    known = {code.value: code.phrase.encode() for code in HTTPStatus}
    return known.get(status, b"")
