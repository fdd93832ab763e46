"""Descriptions of methods as plain data for all doors, and as one user may see them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from batos.agency.lookup import find_object
from batos.image import ownership, roots
from batos.image.readable import ReadableImage
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.methods.execution import scoring
from batos.objects.method import Intent, Method
from batos.objects.mirror import as_json
from batos.objects.prototype import UvmObject, delegation, lookup, own_slots, reference
from batos.protocol.errors import NotFound
from batos.protocol.lent_tools import ToolLine
from batos.protocol.method_documents import (
    AccountDocument,
    ChangeReason,
    MethodDocument,
    MethodHead,
    MethodHistory,
    MethodLine,
    MethodProvenance,
    RevisionLine,
    SlotChange,
    no_use,
)
from batos.records import methods
from batos.records.tools import count_wishes

#: The name of everybody else.
SOMEBODY: Final = "another user"
#: The parts of a provenance that a person's yes adds.
_ANSWER: Final = ("approval", "approved_by", "approved_at")
#: The part of a reason that names a mission, a memory or an approval.
_NAMED: Final = re.compile(r"(?<=^undone) with .*|(?<=^retracted) with .*|, approved as .*", re.DOTALL)
#: Those who change methods and are no user; a generation is another.
_NOBODY: Final = frozenset({"genesis", "the ledger"})


def provenance_for(root: Root, provenance: Mapping[str, object], user: str | None) -> MethodProvenance:
    """Return the origin of a method without missions and people that are not this user's; None sees all."""
    found: dict[str, Any] = dict(provenance)
    if user is None:
        return cast("MethodProvenance", found)
    found["missions"] = [each for each in found.get("missions", ()) if ownership.is_asked_by(root, [each], user)]
    hidden = {name for name in _ANSWER if found.get("approved_by") != user}
    if not ownership.is_asked_by(root, [found.get("mission", "")], user):
        hidden.add("mission")
    if found.get("by") != user:
        hidden.add("by")
    return cast("MethodProvenance", {name: value for name, value in found.items() if name not in hidden})


def document_for(root: Root, document: MethodDocument, user: str | None) -> MethodDocument:
    """Return all of a method without missions, people and origins that are not this user's; None sees all."""
    if user is None:
        return document
    retired = document["retired"]
    return {
        **document,
        "provenance": provenance_for(root, document["provenance"], user),
        "retired": None if retired is None else {**retired, "reason": _reason(retired["reason"])},
        "barred": None if document["barred"] is None else _reason(document["barred"]),
    }


def lines_for(lines: list[MethodLine], user: str | None) -> list[MethodLine]:
    """Return a list of methods whose reasons name nothing of others; None sees all."""
    if user is None:
        return lines
    return [{**each, "reason": None if each["reason"] is None else _reason(each["reason"])} for each in lines]


def history_for(lineage: Lineage, history: MethodHistory, user: str | None) -> MethodHistory:
    """Return a history without people and origins that are not this user's; None sees all."""
    if user is None:
        return history
    revisions: list[RevisionLine] = [
        {
            **each,
            "came": change_for(lineage, each["came"], user),
            "went": None if each["went"] is None else change_for(lineage, each["went"], user),
        }
        for each in history["revisions"]
    ]
    changes: list[SlotChange] = [{**each, **change_for(lineage, each, user)} for each in history["changes"]]
    return {**history, "revisions": revisions, "changes": changes}


def change_for(lineage: Lineage, change: Mapping[str, Any], user: str | None) -> ChangeReason:
    """Return who made a change of a slot and why, without a person and an origin that are not this user's."""
    made = (str(each.provenance["generation"]) for each in lineage.revisions.values())
    if user is None:
        return {"at": change["at"], "by": change["by"], "reason": change["reason"]}
    by = change["by"] if change["by"] in {user, *_NOBODY, *made} else SOMEBODY
    return {"at": change["at"], "by": by, "reason": _reason(change["reason"])}


def _reason(reason: str) -> str:
    return _NAMED.sub("", reason)


_LIST = "`batos method list` lists them."


def find_lineage(root: Root, name: str) -> Lineage:
    """Return the lineage of `OBJECT.SELECTOR`, the object's own or an inherited one. The name is split at its last dot.

    Raises: NotFound: there is none.
    """
    holder, selector = _split(root, name)
    for each in delegation(holder):
        lineage = methods.lineage_of(root, each, selector)
        if lineage is not None:
            return lineage
        if selector in own_slots(each):
            break
    raise _no_lineage_error(root, holder, name)


def locate(root: Root, name: str) -> tuple[str, str]:
    """Return the reference of the holder of `OBJECT.SELECTOR`, and the selector.

    Raises: NotFound: there is no such slot, or it holds neither an intent nor a method.
    """
    holder, selector = _split(root, name)
    there = lookup(holder, selector)
    if there is None:
        raise _no_lineage_error(root, holder, name)
    if not isinstance(there.value, Intent | Method):
        raise NotFound(f"{name} is no declared intent", field="method", remedy="Only an intent becomes a method.")
    return reference(there.holder), selector


def _split(root: Root, name: str) -> tuple[UvmObject, str]:
    """Return the object and the selector of a name.

    Raises: NotFound: the name has no dot, or there is no such object.
    """
    holder, dot, selector = name.rpartition(".")
    if not dot or not selector:
        raise NotFound(
            f"{name!r} names no method",
            field="method",
            remedy=f"Name OBJECT.SELECTOR, as robin_prototype_obj.sage_facet_ is one. {_LIST}",
        )
    return find_object(root, holder, ownership.NOBODY), selector


def _no_lineage_error(root: Root, holder: UvmObject, name: str) -> NotFound:
    """Return the NotFound error for a slot without a lineage, with the nearest name as a hint."""
    holders, (known_as, _, selector) = list(delegation(holder)), name.rpartition(".")
    if any(selector in own_slots(each) for each in holders):
        remedy = f"If it is a declared intent, `batos method redefine {name} --wish TEXT` makes a method."
        return NotFound(f"nothing was ever made for {name}", field="method", remedy=remedy)
    slots = {slot for each in holders for slot, value in own_slots(each).items() if isinstance(value, Intent | Method)}
    near = difflib.get_close_matches(selector, sorted(slots), 1, 0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    return NotFound(f"{known_as} has no method {selector!r}{hint}", field="method", remedy=_LIST)


def list_methods(root: Root, holder: UvmObject | None) -> list[MethodLine]:
    """Return a line for each slot that ever had a method, of one object or of all (None), sorted by name."""
    lineages = root[roots.METHODS].values() if holder is None else methods.lineages_of(root, holder)
    return sorted((_line(root, each) for each in lineages), key=lambda line: line["method"])


def _line(root: Root, lineage: Lineage) -> MethodLine:
    """Return the line of one lineage: its state, and the ledger of its active or last revision."""
    number = lineage.active or _last(lineage)
    retired = lineage.retired.get(number)
    return {
        **_head(root, lineage),
        "revisions": len(lineage.revisions),
        **_account(lineage, number),
        "reason": None if retired is None else retired["reason"],
    }


def _head(root: Root, lineage: Lineage) -> MethodHead:
    """Return the fields that name a method and its state."""
    return {
        "method": methods.name_of(root, lineage),
        "object": roots.name_of_object(root, lineage.holder),
        "selector": lineage.selector,
        "kind": lineage.kind,
        "state": _state(lineage),
        "active": lineage.active,
    }


def tools(root: Root) -> list[ToolLine]:
    """Return the tools that can be called now, with purpose and signature, sorted by name."""
    found: list[ToolLine] = []
    for lineage in root[roots.METHODS].values():
        if lineage.kind == "tool" and lineage.active:
            method = lineage.revisions[lineage.active]
            found.append(
                {
                    "tool": methods.name_of(root, lineage),
                    "object": roots.name_of_object(root, lineage.holder),
                    "selector": lineage.selector,
                    "what": method.intent,
                    "signature": "" if lineage.intent is None else lineage.intent.signature,
                    "revision": lineage.active,
                    "made_at": method.provenance["at"],
                    "calls": _account(lineage, lineage.active)["calls"],
                    "by": method.provenance.get("by") or method.provenance.get("model", ""),
                }
            )
    return sorted(found, key=lambda line: line["tool"])


def describe(root: Root, lineage: Lineage, revision: int | None = None) -> MethodDocument:
    """Return all that is known of one revision: the named one, otherwise the active one, otherwise the last active one.

    Raises: NotFound: there is no such revision.
    """
    number = revision if revision is not None else lineage.active or _last(lineage)
    if number not in lineage.revisions:
        raise NotFound(
            f"{methods.name_of(root, lineage)} has no revision {number}",
            field="revision",
            remedy=f"It has 1 to {len(lineage.revisions)}; `batos method history` lists them.",
        )
    method = lineage.revisions[number]
    return {
        **_head(root, lineage),
        "revision": number,
        "revisions": len(lineage.revisions),
        "source": method.source,
        "intent": method.intent,
        "verdict": as_json(method.verdict),
        "checks": as_json(method.checks),
        "provenance": as_json(method.provenance),
        "ledger": _account(lineage, number),
        "retired": lineage.retired.get(number),
        "barred": lineage.barred["reason"] if lineage.barred else None,
    }


def history(root: Root, lineage: Lineage) -> MethodHistory:
    """Return every revision, and every change of the slot, oldest first."""
    changes = [_change(number, entry) for number, entry in lineage.history.items()]
    return {
        "method": methods.name_of(root, lineage),
        "kind": lineage.kind,
        "state": _state(lineage),
        "active": lineage.active,
        "revisions": [_revision(lineage, number, changes) for number in lineage.revisions],
        "changes": changes,
    }


def _change(number: int, entry: Mapping[str, Any]) -> SlotChange:
    """Return one change of the slot as plain data."""
    return {
        "number": number,
        "event": entry["event"],
        "at": entry["at"],
        "by": entry["by"],
        "reason": entry["reason"],
        "revision": entry["revision"],
        "former": entry["former"],
        "new_intent": "former_intent" in entry,
    }


def _revision(lineage: Lineage, number: int, changes: list[SlotChange]) -> RevisionLine:
    """Return one revision with the changes that made it active and inactive, and its ledger."""
    method = lineage.revisions[number]
    came = next(each for each in changes if each["event"] == "installed" and each["revision"] == number)
    went = next(_deactivations(number, changes), None)
    return {
        "revision": number,
        "active": number == lineage.active,
        "digest": method.provenance["digest"],
        "model": method.provenance["model"],
        "came": {"at": came["at"], "by": came["by"], "reason": came["reason"]},
        "went": went if number != lineage.active else None,
        **_account(lineage, number),
    }


def _deactivations(number: int, changes: list[SlotChange]) -> Iterator[ChangeReason]:
    """Yield the changes that made the revision inactive, newest first."""
    for each in reversed(changes):
        if each["former"] == number:
            replaced = each["event"] == "installed"
            reason = f"revision {each['revision']} took its place" if replaced else each["reason"]
            yield {"at": each["at"], "by": each["by"], "reason": reason}


def _account(lineage: Lineage, number: int) -> AccountDocument:
    """Return the ledger of a revision: the counts, and the difference from its control if there is one."""
    totals = lineage.totals.get(number) or no_use()
    method, control = totals["method"], totals["control"]
    checks = len(lineage.revisions[number].checks) if number else 0
    return {
        "calls": method["calls"] + control["calls"],
        "chosen": method["calls"],
        "control": control["calls"],
        "checks": checks,
        "faults": method["faults"],
        "gate_faults": method["gate_faults"],
        "bad": method["bad"],
        "undone": method.get("undone", 0) + control.get("undone", 0),
        "seconds": round(method["seconds"], 3),
        "tokens": method["tokens"],
        **scoring.contribution(method, scoring.control(lineage, number)),
    }


def _state(lineage: Lineage) -> str:
    """Return `active`, `retired`, `intent` (a person restored or redeclared the intent) or `undeclared`."""
    if lineage.active:
        return "active"
    if lineage.intent is None:
        return "undeclared"
    return "retired" if lineage.history[lineage.history.maxKey()]["event"] == "retired" else "intent"


def _last(lineage: Lineage) -> int:
    """Return the number of the revision that was active last; 0 if none ever was."""
    newest_first = (each["former"] for _, each in reversed(list(lineage.history.items())))
    return next((number for number in newest_first if number), 0)


class MethodReader:
    """Reads the methods of one image; each call takes a snapshot of its own.

    A `user` is shown no mission and no person that is not theirs; None sees all.
    """

    def __init__(self, image: ReadableImage) -> None:
        self._image = image

    def slot(self, name: str) -> tuple[str, str]:
        """Return the holder's reference and the selector of `OBJECT.SELECTOR`.

        Raises: NotFound: there is no such slot.
        """
        with self._image.snapshot() as root:
            return locate(root, name)

    def list_methods(self, name: str | None = None, user: str | None = None) -> list[MethodLine]:
        """List a line for each slot that ever had a method, of all objects or of one."""
        with self._image.snapshot() as root:
            holder = None if name is None else find_object(root, name, ownership.NOBODY)
            return lines_for(list_methods(root, holder), user)

    def count_wishes(self, name: str | None = None) -> int:
        """Count the methods that are still to be made, of all objects or of one. Raises: NotFound: no such object."""
        with self._image.snapshot() as root:
            return count_wishes(root, None if name is None else find_object(root, name, ownership.NOBODY))

    def tools(self) -> list[ToolLine]:
        """List the tools that can be called now."""
        with self._image.snapshot() as root:
            return tools(root)

    def describe(self, name: str, revision: int | None = None, user: str | None = None) -> MethodDocument:
        """Return the description of `OBJECT.SELECTOR`, with its active or the named revision. Raises: NotFound."""
        with self._image.snapshot() as root:
            found = describe(root, find_lineage(root, name), revision)
            return document_for(root, found, user)

    def history(self, name: str, user: str | None = None) -> MethodHistory:
        """Return every revision and change of `OBJECT.SELECTOR`, with reasons. Raises: NotFound."""
        with self._image.snapshot() as root:
            lineage = find_lineage(root, name)
            return history_for(lineage, history(root, lineage), user)
