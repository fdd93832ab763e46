"""Ids and times as CONTRACT writes them: ULIDs, ISO 8601 in UTC, transaction ids."""

from __future__ import annotations

import os
from datetime import UTC, datetime

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _ulid(now: datetime, entropy: bytes | None = None) -> str:
    """Return a ULID: 48 bits of milliseconds, then 80 random bits, as 26 characters that sort by time."""
    milliseconds = int(now.timestamp() * 1000)
    value = (milliseconds << 80) | int.from_bytes(entropy or os.urandom(10), "big")
    return base32(value)


def base32(value: int) -> str:
    """Return the 26 characters of a number of 130 bits, in the alphabet of a ULID."""
    return "".join(_CROCKFORD[(value >> shift) & 31] for shift in range(125, -1, -5))


def mission_id(now: datetime, newest: str = "") -> str:
    """Return a new mission's id. The id sorts after `newest`, even in the same millisecond or if the clock was set
    back.
    """
    found = f"m-{_ulid(now)}"
    return found if found > newest else _next(newest)


def _next(name: str) -> str:
    """Return the next id: the same prefix with the number plus one."""
    head, digits = name[:2], list(name[2:])
    for place in reversed(range(len(digits))):
        following = _CROCKFORD.index(digits[place]) + 1
        digits[place] = _CROCKFORD[following % 32]
        if following < 32:
            break
    return head + "".join(digits)


def begun_at(name: str) -> datetime:
    """Return the time when a mission or conversation began, as its id tells.

    Raises: ValueError: the text is no such id.
    """
    milliseconds = 0
    for digit in name[2:12]:
        milliseconds = milliseconds << 5 | _CROCKFORD.index(digit)
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def conversation_id(now: datetime) -> str:
    """Return a new conversation's id."""
    return f"c-{_ulid(now)}"


def document_id(now: datetime) -> str:
    """Return a new document's id."""
    return f"d-{_ulid(now)}"


def approval_id(now: datetime) -> str:
    """Return a new approval's id."""
    return f"a-{_ulid(now)}"


def utc_now() -> datetime:
    """Return the current time in UTC: the default of every `clock` argument."""
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """Format a moment as ISO 8601 in UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def tid_text(serial: bytes) -> str:
    """Format a commit's id (`tid:0x...`) from the `_p_serial` of an object that the commit wrote."""
    return f"tid:0x{int.from_bytes(serial, 'big'):016x}"


def serial_of(text: str) -> bytes:
    """Return the eight bytes of a commit's or an object's id (`tid:0x...`, `oid:0x2a`).

    Raises: ValueError: the text is no such id. OverflowError: its number is too big.
    """
    return int(text.partition("0x")[2], 16).to_bytes(8, "big")


def oid_text(oid: bytes) -> str:
    """Format an object's id (`oid:0x2a`)."""
    return f"oid:{int.from_bytes(oid, 'big'):#x}"
