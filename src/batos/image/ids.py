"""Ids and times as CONTRACT writes them, and missions, conversations and approvals as people name them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from batos.protocol.errors import BriefError

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _ulid(now: datetime, entropy: bytes | None = None) -> str:
    """Return a ULID: 48 bits of milliseconds, then 80 random bits, as 26 characters that sort by time."""
    milliseconds = int(now.timestamp() * 1000)
    value = (milliseconds << 80) | int.from_bytes(entropy or os.urandom(10), "big")
    return base32(value)


def base32(value: int) -> str:
    """Return the 26 characters of a number of 130 bits, in the alphabet of a ULID."""
    return "".join(_CROCKFORD[(value >> shift) & 31] for shift in range(125, -1, -5))


def _id_after(kind: str, now: datetime, newest: str) -> str:
    """Return a new id that sorts after `newest`, even in the same millisecond or if the clock was set back."""
    found = f"{kind}-{_ulid(now)}"
    return found if found > newest else _next(newest)


def mission_id(now: datetime, newest: str = "") -> str:
    """Return a new mission's id, which sorts after `newest`."""
    return _id_after("m", now, newest)


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


def trial_id(now: datetime, newest: str = "") -> str:
    """Return a new trial's id, which sorts after `newest`."""
    return _id_after("t", now, newest)


def schedule_id(now: datetime, newest: str = "") -> str:
    """Return a new schedule's id, which sorts after `newest`."""
    return _id_after("s", now, newest)


def entry_id(now: datetime, newest: str = "") -> str:
    """Return the id of a new entry of the inbox, which sorts after `newest`."""
    return _id_after("i", now, newest)


def is_trial(name: str) -> bool:
    """Test if a name is that of a trial, or its beginning."""
    return name.casefold().startswith("t-")


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


_BACK: Final = re.compile(r"last(?:-([0-9]{1,6}))?", re.IGNORECASE)
_BEGINNING: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{1,26}")
#: Ids begin with the first letter of their kind.
_KINDS: Final = {
    "t": "trial", "m": "mission", "c": "conversation", "a": "approval", "s": "schedule", "i": "entry",
}  # fmt: skip
#: Ids that are named where a beginning is that of several.
_SHOWN: Final = 3


def back(name: str) -> int | None:
    """Count how many are between the newest and the one that is meant; None for what does not count from the newest.

    >>> back("last"), back("last-2"), back("m-01M8")
    (0, 2, None)
    """
    found = _BACK.fullmatch(name)
    return int(found[1] or 0) if found else None


def newest_first(tree: Any) -> Iterator[str]:
    """Yield the keys of a tree of records, newest first: they have one length and sort by time; no other is loaded."""
    upper: str | None = None
    while True:
        try:
            name: str = tree.maxKey() if upper is None else tree.maxKey(upper)
        except ValueError:  # nothing is below
            return
        yield name
        # Below `name` and above every shorter step down: its last character made smaller, then the largest there is.
        upper = f"{name[:-1]}{chr(ord(name[-1]) - 1)}\U0010ffff"


def find_id(tree: object, name: str, own: Callable[[str], bool] | None = None) -> str:
    """Return the id of a tree that is meant: by counting back from the newest, or by its beginning, as `complete_id`.

    The name as it is where there is none.
    """
    before = back(name)
    if before is None:
        return complete_id(tree, name, own)
    return next(islice(filter(own or bool, newest_first(tree)), before, None), name)


def complete_id(tree: object, name: str, own: Callable[[str], bool] | None = None) -> str:
    """Return the one id of a tree that begins so, in capitals or not; the name as it is where none does.

    With `own` only the ids that it accepts count: nobody is told of others.
    BriefError: it is the beginning of several, which are named, the newest first.
    """
    head, _, digits = name.rpartition("-")
    wanted = f"{head}-{digits.upper()}"
    if head not in _KINDS or not _BEGINNING.fullmatch(digits.upper()):
        return name
    found = list(islice(_between(tree, wanted, own), 2))
    if len(found) < 2:
        return str(found[0]) if found else name
    every = list(_between(tree, wanted, own))
    shown = ", ".join(reversed(every[-_SHOWN:]))
    more = f" and {len(every) - _SHOWN:,} more" if len(every) > _SHOWN else ""
    kind = _KINDS[head]
    raise BriefError(
        f"{name} is the beginning of {len(every):,} {kind}s: {shown}{more}",
        field=kind,
        remedy="Give more of its id; `last` is your newest, `last-1` the one before.",
    )


def _between(tree: Any, wanted: str, own: Callable[[str], bool] | None) -> Iterator[str]:
    found = tree.keys(wanted, f"{wanted}\U0010ffff")
    return iter(found) if own is None else filter(own, found)
