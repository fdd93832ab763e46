"""Withdrawals: methods and wishes for tools that go with what they were made for, and can come back as they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from batos.image import roots
from batos.image.records import SLOT_TRUST, Lineage
from batos.image.roots import Root
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots
from batos.records import methods, tool_declarations


class Withdrawal(NamedTuple):
    """When methods go, who wants it, and the reason that stands in their history.

    The reason is a kind and an origin with " with " between them: "retracted with d-1", "undone with m-1".
    """

    at: str
    by: str
    reason: str

    @property
    def kind(self) -> str:
        """Return the kind of the reason, with which a withdrawal may bring back what another one took out."""
        return self.reason.partition(" with ")[0]


def retire_all(root: Root, found: Iterable[tuple[str, int]], why: Withdrawal) -> Iterator[tuple[str, int, bool]]:
    """Retire revisions by the keys of their lineages, also those that are not active; yield whether each one was.

    Nobody rolls back to one without seeing why it went. A revision that is retired already is left as it is.
    """
    for key, revision in found:
        lineage: Lineage = root[roots.METHODS][key]
        is_active = lineage.active == revision
        if revision in lineage.retired and not is_active:
            continue
        if not is_active:
            lineage.retired = {**lineage.retired, revision: {"at": why.at, "reason": why.reason}}
        elif lineage.holder is root.get(roots.TOOLS):
            _withdraw_made_tool(root, lineage, why)
        else:
            methods.retire(lineage, why.reason, why.at, why.by)
        yield key, revision, is_active


def _withdraw_made_tool(root: Root, lineage: Lineage, why: Withdrawal) -> None:
    """Take a tool away with its wish, which came of what is withdrawn: the wish alone would be interpreted."""
    revision, wish = lineage.active, lineage.intent
    methods.redeclare(root, lineage.holder, lineage.selector, None, why.at)
    lineage.retired = {**lineage.retired, revision: {"at": why.at, "reason": why.reason}}
    lineage.barred = None if wish is None else {"intent": methods.digest_of(wish), "coders": None, "reason": why.reason}


def bring_back(
    root: Root, found: Iterable[Sequence[Any]], tools: Iterable[tuple[str, Intent, str]], why: Withdrawal
) -> list[str]:
    """Bring back what was withdrawn, for whoever set it aside; return the names of what stays out.

    `found` are (key of the lineage, revision, whether it was active) and, where the withdrawal let another revision be
    active in its place, that one; `tools` as `withdraw_wishes` yields them. Something else may have taken their place.
    """
    wishes = [selector for selector, wish, trust in tools if not _declare_again(root, selector, wish, trust)]
    left = [each[0] for each in found if not _reinstate(root, why, *each)]
    lineages = root[roots.METHODS]
    return [methods.name_of(root, lineages[key]) if key in lineages else key for key in left] + wishes


def _reinstate(root: Root, why: Withdrawal, key: str, revision: int, was_active: bool, former: int = 0) -> bool:
    """Bring back a revision that was withdrawn for a reason of this kind; it is active only if nothing else is now.

    Returns whether it came back: one that went for another reason meanwhile, or whose lineage is gone, stays out.
    """
    lineage: Lineage | None = root[roots.METHODS].get(key)
    retired = None if lineage is None else lineage.retired.get(revision)
    if lineage is None or retired is None or Withdrawal("", "", retired["reason"]).kind != why.kind:
        return False
    if was_active and retired["reason"] == why.reason and lineage.active == former != 0:
        methods.restore(root, lineage, revision, why.at, why.by)
    elif was_active and not lineage.active:
        if lineage.intent is None:
            methods.redeclare(root, lineage.holder, lineage.selector, _last_wish(lineage), why.at)
        methods.restore(root, lineage, revision, why.at, why.by)
    else:
        lineage.retired = {number: told for number, told in lineage.retired.items() if number != revision}
    return True


def _last_wish(lineage: Lineage) -> Intent | None:
    """Return the intent that the slot had before it was withdrawn."""
    entries = (lineage.history[number] for number in sorted(lineage.history, reverse=True))
    return next((each["former_intent"] for each in entries if each.get("former_intent") is not None), None)


def withdraw_wishes(root: Root, selectors: Iterable[str]) -> Iterator[tuple[str, Intent, str]]:
    """Take away the wishes for tools that nothing was made of; yield each with the trust class of its slot."""
    holder: UvmObject | None = root.get(roots.TOOLS)
    for selector in selectors:
        wish = None if holder is None else own_slots(holder).get(selector)
        if holder is None or not isinstance(wish, Intent):
            continue
        trust = (own_slots(holder).get(SLOT_TRUST) or {}).get(selector, "")
        tool_declarations.forget(root, selector, methods.digest_of(wish))
        if selector not in own_slots(holder):
            yield selector, wish, trust


def _declare_again(root: Root, selector: str, wish: Intent, trust: str) -> bool:
    """Declare a tool again that was withdrawn; False if something else has its name by now.

    A tool that was made of the same wish meanwhile stays as it is.
    """
    holder = root[roots.TOOLS]
    if not tool_declarations.is_free(holder, selector, wish):
        return False
    if isinstance(own_slots(holder).get(selector), Method):
        return True
    setattr(holder, selector, wish)
    if trust:
        setattr(holder, SLOT_TRUST, {**(own_slots(holder).get(SLOT_TRUST) or {}), selector: trust})
    return True
