"""Missions, conversations and approvals as people name them: an id, its beginning, `last`, `last-1` before that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from batos.protocol.errors import BriefError

_BACK: Final = re.compile(r"last(?:-([0-9]{1,6}))?", re.IGNORECASE)
_BEGINNING: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{1,26}")
#: Ids begin with the first letter of their kind.
_KINDS: Final = {"m": "mission", "c": "conversation", "a": "approval"}
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
