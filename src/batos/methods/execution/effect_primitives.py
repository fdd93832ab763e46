"""The messages by which a method, or a person's message, acts on the world: a capability is found, an effect staged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from batos.agency.payloads import payload_of
from batos.agency.records import capabilities, staged_effects
from batos.minds.context import MindContext
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.errors import ObjectError

#: The kernel's functions that stage effects.
OPERATIONS: Final = frozenset(primitive for _, primitive in capabilities.SELECTORS.values())
#: The most effects of one mission.
MOST_EFFECTS: Final = 64

#: The answers of a message to a capability: it happens after the commit, or it happened in this lineage before.
STAGED, REPEATED = "staged", "repeated"


def find_capability(context: MindContext, args: Sequence[Any]) -> UvmObject:
    """Return a capability by the name of its grant.

    Raises: ObjectError: the mission's brief does not name the grant, or it is revoked.
    """
    name = args[0] if len(args) == 1 else None
    if not isinstance(name, str):
        raise ObjectError("`capability_` takes the name of a grant")
    found = capabilities.find(context.mission.root, name, context.mission.brief.user)
    if name not in (context.mission.brief.grants or ()) or found is None:
        raise _not_granted_error(name)
    return found


def stage(
    context: MindContext, capability: UvmObject, operation: str, args: Sequence[Any], staged: list[dict[str, Any]]
) -> str:
    """Add an effect to those that this run stages, and return `staged`, or `repeated` for one that its lineage had.

    The effect happens once the mission is committed, and not at all if it is not.

    Raises: ObjectError: the brief does not name the grant, an argument is wrong, or there are too many effects.
    """
    if not capabilities.is_capability(capability):
        raise ObjectError(f"{reference(capability)} is no capability")
    name = own_slots(capability)["name"]
    if reference(find_capability(context, [name])) != reference(capability):
        raise _not_granted_error(name)
    payload = dict(payload_of(operation, args))
    fingerprint = staged_effects.fingerprint_of(reference(capability), operation, payload)
    if any(each["fingerprint"] == fingerprint for each in (*context.trace.effects, *staged)):
        return REPEATED
    if len(context.trace.effects) + len(staged) >= MOST_EFFECTS:
        raise ObjectError(f"a mission has at most {MOST_EFFECTS} effects on the world")
    if staged_effects.find_equal(context.mission.root, context.mission.id, fingerprint) is not None:
        return REPEATED
    effect = {"grant": name, "oid": reference(capability), "operation": operation, "payload": payload}
    staged.append({**effect, capabilities.NONCE: capabilities.nonce_of(capability), "fingerprint": fingerprint})
    return STAGED


def _not_granted_error(name: str) -> ObjectError:
    return ObjectError(
        f"this mission holds no capability {name[:64]!r}",
        remedy="`batos grants list` lists grants; name one with --grant.",
    )
