"""Missions and objects as CONTRACT shows them: plain data for every door."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ZODB.POSException import POSKeyError

from batos.errors import NotFound
from batos.image import roots
from batos.image.ids import oid_text, tid_text
from batos.image.records import Brief, Status
from batos.inference.journal import Record
from batos.objects.mirror import Mirror
from batos.objects.prototype import UvmObject, lookup, own_slots

_ANSWERED = ("answer", "voices", "route", "cost", "states", "provenance")


def mission_report(name: str, brief: Brief, status: Status, thought: UvmObject) -> dict[str, Any]:
    """One mission whole."""
    slots = own_slots(thought)
    shown: dict[str, Any] = {
        "id": name,
        "status": status.word,
        "brief": dict(brief.value),
        "accepted_at": brief.accepted_at,
        "trust": {"brief": brief.trust},
        "states": [],
    }
    if status.reason is not None:
        shown["reason"] = status.reason
    if status.report is not None:
        shown.update({key: value for key, value in status.report.items() if value is not None})
    shown.update({key: slots[key] for key in _ANSWERED if key in slots})
    if "answer" in slots:
        shown["trust"] |= {"answer": slots["trust"], "lineage": slots["lineage_trust"]}
        shown["tid"] = tid_text(thought._p_serial)
    return shown


def mission_line(name: str, brief: Brief, status: Status) -> dict[str, Any]:
    """One mission in a list."""
    text = " ".join(str(brief.value["text"]).split())
    return {
        "id": name,
        "status": status.word,
        "at": status.at,
        "accepted_at": brief.accepted_at,
        "user": brief.value["user"],
        "text": text if len(text) <= 80 else f"{text[:79]}…",
    }


def newest(root: Any, most: int) -> Iterator[tuple[str, tuple[Brief, Status, UvmObject]]]:
    """Missions, newest first; ids sort by time."""
    missions = root[roots.MISSIONS]
    upper: str | None = None
    for _ in range(most):
        try:
            name = missions.maxKey() if upper is None else missions.maxKey(upper)
        except ValueError:
            return
        yield name, missions[name]
        # The largest string below `name` among ids of one length: its last character made smaller.
        upper = name[:-1] + chr(ord(name[-1]) - 1) + "~"


def prompts_report(records: list[Record]) -> list[dict[str, Any]]:
    """Every call of a mission with the exact prompt that was sent."""
    return [
        {
            "path": record.path,
            "model": record.model,
            "digest": record.digest,
            "state": record.state,
            "messages": list(record.request["messages"]),
            "format": record.request.get("format"),
            "options": record.request.get("options"),
            "response": record.response,
            "tokens": dict(record.tokens),
            "started": record.started,
            "ended": record.ended,
            "key": record.key,
        }
        for record in records
    ]


def inspect_object(root: Any, reference: str) -> dict[str, Any]:
    """An object by root name or oid, or one of its slots (`OBJECT.SLOT`, split at the last dot); raises NotFound."""
    found = _by_name(root, reference)
    if found is not None:
        return {"object": reference, **Mirror(found).describe()}
    name, dot, slot = reference.rpartition(".")
    holder = _by_name(root, name) if dot else None
    if holder is None:
        raise NotFound(
            f"there is no object {reference!r}",
            field="object",
            remedy="Name a root object such as robin_prototype_obj, a mission, or oid:0x2a; add .SLOT for one slot.",
        )
    where = lookup(holder, slot)
    if where is None:
        raise NotFound(f"{name} has no slot {slot!r}", field="object", remedy=f"`batos inspect {name}` lists them.")
    described = Mirror(where.holder).describe()["slots"][slot]
    return {"object": name, "slot": slot, "holder": _named(root, where.holder), "value": described}


def _by_name(root: Any, name: str) -> UvmObject | None:
    if name in roots.OBJECTS:
        return root.get(name)  # type: ignore[no-any-return]  # the root has no types
    if name.startswith("m-"):
        mission = root[roots.MISSIONS].get(name)
        return mission[2] if mission else None
    if name.startswith("c-"):
        return root[roots.CONVERSATIONS].get(name)  # type: ignore[no-any-return]  # the root has no types
    if name.startswith("oid:"):
        return _by_oid(root, name)
    return None


def _by_oid(root: Any, name: str) -> UvmObject | None:
    try:
        oid = int(name.removeprefix("oid:"), 16).to_bytes(8, "big")
        found = root._p_jar.get(oid)
    except (ValueError, OverflowError, POSKeyError):
        return None
    return found if isinstance(found, UvmObject) else None


def _named(root: Any, obj: UvmObject) -> str:
    for name in roots.OBJECTS:
        if root.get(name) is obj:
            return name
    return oid_text(obj._p_oid)
