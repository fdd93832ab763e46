"""Calls of tools that change something, as effects in the image: what was called, and what came of it or is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from persistent.mapping import PersistentMapping

from batos.agency.records import effect_records
from batos.image import roots
from batos.image.roots import Root

#: The operation of an effect that is a call of a tool; in the place of a grant it has the kind of the tool.
OPERATION: Final = "tool.call"
_NOTHING: Final = {"before": None, "outcome": None, "staged_at": "", "at": "", "oid": "", "nonce": "", "attempts": 1}


def name_of(mission: str, call: str) -> str:
    """Return the id of the effect that a call of a mission is."""
    return f"e-{mission.removeprefix('m-')}-{call.removeprefix('x-')[:12]}"


def stands(root: Root, mission: str, call: str, state: str) -> bool:
    """Test if a call is recorded in a state, or as a person settled it."""
    effect = root[roots.EFFECTS].get(name_of(mission, call))
    return effect is not None and (effect["state"] == state or "settled_by" in (effect["outcome"] or {}))


def record(
    root: Root, mission: str, call: str, facts: Mapping[str, Any], state: Literal["released", "unknown"], at: str
) -> str:
    """Write what came of a call: `facts` are `kind`, `tool`, `arguments`, `path`, and `reason`. Return its effect's id.

    A call that is `unknown` becomes `released` where its program could be asked after all.
    """
    effects, name = root[roots.EFFECTS], name_of(mission, call)
    if name not in effects:
        payload = {"tool": facts["tool"], "arguments": dict(facts["arguments"])}
        fingerprint = effect_records.fingerprint_of(facts["kind"], OPERATION, payload)
        effects[name] = PersistentMapping(
            {
                **_NOTHING, "grant": f"{facts['kind']} tool", "operation": OPERATION, "payload": payload,
                "fingerprint": fingerprint, "asked_by": facts["path"], "number": 0, "effect": name,
                "mission": mission, "lineage": effect_records.lineage_of(root, mission), "key": call, "state": "",
            }
        )  # fmt: skip
    effect_records.become(root, effects[name], state, at, {"reason": facts["reason"]})
    return name
