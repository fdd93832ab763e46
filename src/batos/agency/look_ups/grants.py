"""Grants of look-ups: what a person may grant, and how doors show it."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import replace
from datetime import datetime
from typing import Final

from batos.agency.look_ups.web_addresses import is_public, parse_address
from batos.agency.records import effect_records, look_up_records
from batos.agency.records.look_up_records import ANY, GrantTerms, LookUpKind
from batos.image.roots import JournalRoot
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.effect_documents import GrantDocument
from batos.protocol.errors import BriefError, Refused

#: Stands for all that the user has given to remember.
MEMORY: Final = "memory"
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}")
#: The kinds that have something to go through, and what each term is for.
_ONLY: Final = {
    "hosts": ("fetch",), "paths": ("fetch",), "ports": ("fetch",), "book": ("kiwix",),
    "rate": ("fetch", "kiwix", "searxng", "wikipedia", "api"),
    "budget": ("fetch", "kiwix", "searxng", "wikipedia", "api"),
}  # fmt: skip


def check_look_up(
    kind: LookUpKind, target: str, terms: GrantTerms, check_folder: Callable[[str], str], ports: Container[int]
) -> tuple[str, GrantTerms]:
    """Return target and terms of a grant as they are kept. `ports` are those that the mind and its models listen at.

    Raises: BriefError: the target is none of this kind, or a term is not for it. Refused: it is a place of the mind.
    """
    for name, kinds in _ONLY.items():
        if getattr(terms, name) and kind not in kinds:
            raise BriefError(f"--{name} is for {', '.join(kinds)}", field=f"args.{name}", remedy="Leave it out.")
    if kind == "folder":
        return check_folder(target), terms
    if kind == "search":
        if target != MEMORY:
            raise BriefError(f"{target!r} is nothing to search", field="args.target", remedy=f"Say: search {MEMORY}.")
        return target, terms
    hosts = tuple(_check_host(each) for each in terms.hosts)
    paths = tuple(each if each.startswith("/") else f"/{each}" for each in terms.paths)
    terms = replace(terms, hosts=hosts, paths=paths)
    return (target if (kind, target) == ("fetch", ANY) else _check_address(kind, target, ports)), terms


def _check_address(kind: LookUpKind, target: str, ports: Container[int]) -> str:
    """Return the address of a site or a service. Raises: BriefError, Refused."""
    if kind == "wikipedia" and _LANGUAGE.fullmatch(target):
        return f"https://{target}.wikipedia.org/"
    try:
        found = parse_address(target if "://" in target else f"https://{target}")
    except Refused as error:
        raise BriefError(error.message, field="args.target", remedy=error.remedy) from error
    is_here = found.host == "localhost" or (found.is_literal and not is_public(found.host))
    if is_here and kind in ("fetch", "wikipedia"):
        remedy = "A service of this machine is granted as what it is: kiwix, searxng."
        raise BriefError(f"{found.host} is not of the public internet", field="args.target", remedy=remedy)
    if kind == "api" and found.scheme != "https" and not is_here:
        raise BriefError(f"{target!r} is public and not https", field="args.target", remedy="Write https://.")
    if is_here and found.port in ports:
        what = f"port {found.port} is one of this mind, or of its models"
        raise Refused(what, field="args.target", remedy="Name the port of the service.")
    return str(found)


def _check_host(text: str) -> str:
    star, name = ("*.", text[2:]) if text.startswith("*.") else ("", text)
    try:
        return star + parse_address(f"https://{name}/").host
    except Refused as error:
        raise BriefError(
            error.message, field="args.hosts", remedy="Name hosts like example.org or *.example.org"
        ) from error


def name_of_look_up(kind: LookUpKind, target: str) -> str:
    """Return the name of a grant that was given none: made of its kind, its host, or the name of its folder."""
    if kind in ("search", "kiwix", "searxng"):
        return "my_memory" if kind == "search" else kind
    told = target.rstrip("/").rpartition("/")[2] if kind == "folder" or target == ANY else parse_address(target).host
    named = re.sub(r"[^a-z0-9]+", "_", told.removeprefix("www.").lower()).strip("_")
    named = "web" if target == ANY else named
    return (named if named[:1].isalpha() else f"{kind}_{named}".strip("_"))[:63]


def look_up_document(capability: UvmObject) -> GrantDocument:
    """Return a grant of a look-up for doors."""
    slots, selectors = own_slots(capability), look_up_records.selectors_of(capability)
    return {
        "name": slots["name"], "kind": slots["kind"], "target": slots["target"], "sink": slots["sink"],
        "user": slots["user"], "granted_at": slots["granted_at"], "oid": reference(capability),
        "selector": next(iter(selectors), ""), "selectors": selectors, "host": "",
        "calls": [*slots.get("calls", ())],
        "terms": look_up_records.terms_of(capability).as_dict(), "unattended": bool(slots.get("unattended")),
    }  # fmt: skip


def add_usage(told: GrantDocument, capability: UvmObject, journal: JournalRoot, now: datetime) -> GrantDocument:
    """Return the document of a grant with its calls of today, and the newest things that were asked by it."""
    grant = effect_records.nonce_of(capability)
    queries = look_up_records.list_queries(journal, 20, grant)
    return {**told, "today": look_up_records.count_today(journal, grant, now), "queries": queries}
