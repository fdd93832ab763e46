"""The documents of methods as one user may see them: methods belong to all, the missions behind them to somebody."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from batos.image import ownership
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.protocol.method_documents import (
    ChangeReason,
    MethodDocument,
    MethodHistory,
    MethodLine,
    MethodProvenance,
    RevisionLine,
    SlotChange,
)

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
