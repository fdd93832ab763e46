"""Grants of look-ups in the image, and the ledger of what was asked of the world in the journal.

A grant of a look-up is a capability as one of effects is. Every mission of its user may use it without naming it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias, cast

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from batos.agency.records import effect_records
from batos.agency.records.effect_records import GRANTED_AT, NONCE
from batos.image import roots
from batos.image.ids import iso
from batos.image.ownership import is_guest
from batos.image.roots import JournalRoot, Root
from batos.objects.method import Primitive
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.effect_documents import QueryDocument
from batos.protocol.errors import Refused

#: The kinds of look-ups: memory, pages, files of a folder, three kinds of services, and APIs that a text describes.
LookUpKind: TypeAlias = Literal["search", "fetch", "folder", "kiwix", "searxng", "wikipedia", "api"]

#: The selectors that a capability of a kind answers, and the kernel's function behind each.
SELECTORS: Final[Mapping[LookUpKind, tuple[str, ...]]] = {
    "search": ("search_", "fetch_"),
    "fetch": ("fetch_", "search_", "list_"),
    "folder": ("search_", "read_", "list_"),
    "kiwix": ("search_", "fetch_"),
    "searxng": ("search_", "fetch_"),
    "wikipedia": ("search_", "fetch_"),
    "api": (),  # the object answers that the mind makes of the description
}
PRIMITIVES: Final[Mapping[str, str]] = {
    "search_": "look_up.search", "fetch_": "look_up.fetch", "read_": "look_up.fetch", "list_": "look_up.list",
}  # fmt: skip
#: Stands for every host of the public internet: there is nothing to search.
ANY: Final = "any"
_NOTHING: Final = (ANY, "search_")
_MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """The terms of a grant: which hosts, paths and ports, how many calls a minute and a day, until when, and for whom.

    0 calls and an empty `until` (ISO 8601 UTC) are no bound; `book` is a book of a Kiwix library.
    """

    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    rate: int = 0
    budget: int = 0
    until: str = ""
    guests: bool = False
    book: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the terms as plain data, without those that bound nothing."""
        told = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {name: value for name, value in told.items() if value}


def add_look_up(
    root: Root, name: str, kind: LookUpKind, target: str, terms: GrantTerms, told: tuple[str, str]
) -> UvmObject:
    """Make a capability of this name; `told` are whose it is, and when it is granted. Raises: Refused: it is taken."""
    effect_records.check_free(root, name, is_made=kind == "api")
    user, at = told
    slots: dict[str, Any] = {
        "name": name, "kind": kind, "target": target, "sink": "reads", "user": user, GRANTED_AT: at,
        NONCE: secrets.token_hex(8), "terms": PersistentMapping(terms.as_dict()),
        **{selector: Primitive(PRIMITIVES[selector]) for selector in SELECTORS[kind] if (target, selector) != _NOTHING},
    }  # fmt: skip
    root[roots.GRANTS][name] = made = UvmObject(slots)
    return made


def is_look_up(capability: UvmObject) -> bool:
    """Test if a capability is of a look-up."""
    return own_slots(capability).get("kind") in SELECTORS


def kind_of(capability: UvmObject) -> LookUpKind:
    """Return the kind of a look-up's capability."""
    return cast("LookUpKind", own_slots(capability)["kind"])


def selectors_of(capability: UvmObject) -> list[str]:
    """Return the selectors that a capability answers, the usual one first."""
    return [each for each in SELECTORS[kind_of(capability)] if each in own_slots(capability)]


def terms_of(capability: UvmObject) -> GrantTerms:
    """Return the terms of a capability."""
    kept = own_slots(capability).get("terms") or {}
    names = {each.name for each in fields(GrantTerms)}
    told: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in kept.items() if name in names
    }
    return GrantTerms(**told)


def is_usable(capability: UvmObject, user: str, *, unattended: bool = False) -> bool:
    """Test if missions of a user may look up by a capability; `unattended`: those that nobody watches."""
    slots = own_slots(capability)
    if not is_look_up(capability) or (unattended and not slots.get("unattended")):
        return False
    return slots["user"] == user or (is_guest(user) and terms_of(capability).guests)


def list_usable(root: Root, user: str, *, unattended: bool = False) -> list[UvmObject]:
    """Return the capabilities by which missions of a user may look up, by name."""
    every = effect_records.list_all_capabilities(root)
    return [each for each in every if is_usable(each, user, unattended=unattended)]


# -- the ledger: what was asked of the world, written before it is sent


def check_end(name: str, terms: GrantTerms, now: datetime) -> None:
    """Raise Refused where a grant has ended."""
    if terms.until and iso(now) >= terms.until:
        remedy = "Revoke it and grant it anew, if it is still wanted."
        raise Refused(f"the grant {name!r} ended at {terms.until}", field="until", remedy=remedy)


def enter(
    root: JournalRoot, grant: tuple[str, str], terms: GrantTerms, query: Mapping[str, str], now: datetime
) -> None:
    """Write a query down, within a change of the journal; `grant` is the name of one and its nonce.

    Raises: Refused: the grant has expired, or its calls of this minute or this day are used up.
    """
    name, nonce = grant
    check_end(name, terms, now)
    if "queries" not in root:
        root["queries"] = OOBTree()
    ledger = root["queries"]
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for most, since, field, each in (
        (terms.rate, now - _MINUTE, "rate", "minute"),
        (terms.budget, midnight, "budget", "day (UTC)"),
    ):
        if most and sum(made[NONCE] == nonce for made in ledger.values(iso(since))) >= most:
            remedy = f"Wait, or revoke {name} and add it with another --{field}."
            what = f"the grant {name!r} allows {most} calls a {each}, and they are used up"
            raise Refused(what, field=field, remedy=remedy)
    at, last = iso(now), ledger.maxKey() if ledger else ""
    number = int(last[-6:]) + 1 if last.startswith(at) else 0
    ledger[f"{at} {number:06}"] = PersistentMapping({**query, "grant": name, NONCE: nonce, "at": at})


def list_queries(
    root: JournalRoot, most: int, grant: str | None = None, user: str | None = None
) -> list[QueryDocument]:
    """Return what was asked of the world, the newest first; optionally by a grant's nonce, or of a user's missions."""
    ledger: OOBTree[str, Any] = root.get("queries") or OOBTree()
    found: list[QueryDocument] = []
    for key in reversed(list(ledger.keys())):
        each = ledger[key]
        if grant in (None, each[NONCE]) and user in (None, each["user"]):
            found.append(cast("QueryDocument", {name: value for name, value in each.items() if name != NONCE}))
            if len(found) >= most:
                break
    return found


def count_today(root: JournalRoot, grant: str, now: datetime) -> int:
    """Return how many calls were made by a grant today (UTC)."""
    ledger: OOBTree[str, Any] = root.get("queries") or OOBTree()
    return sum(each[NONCE] == grant for each in ledger.values(iso(now)[:10]))
