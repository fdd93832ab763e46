"""Slots that no method may write: an object's identity, the codex's declarations, and the trust records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from batos.guardian.policy import SHIPPED
from batos.image.ownership import SLOT_USERS
from batos.image.records import DIGESTS, SLOT_TRUST
from batos.objects.method import Behaviour
from batos.objects.prototype import UvmObject, is_reserved, own_slots

#: Slots by which an object is known of which no method writes any: a mission, a capability, a conversation. The policy
#: names one of each, so that no method writes it where it is not yet.
WHOLE: Final = (frozenset({"mission"}), frozenset({"granted_at"}), frozenset({"user", "turns", "view"}))


def protected_slots(receiver: UvmObject) -> frozenset[str]:
    """Return the slots of an object that only the codex and the kernel write.

    These are, for what genesis made, all that it declares there; for a mission, a conversation or a capability,
    everything; for any other (a clone, a tool), the kernel's slots.
    """
    return _protected_among(own_slots(receiver))


def _protected_among(slots: Mapping[str, Any]) -> frozenset[str]:
    kernels = SHIPPED.kernel_slots
    if any(slots.keys() >= each for each in WHOLE):
        return kernels.union(slots)
    if DIGESTS not in slots:
        return kernels
    return kernels.union(slots[DIGESTS], (slot for slot in slots if slot.endswith("_obj")))


def protected_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """List the slots of one object that were changed and that no method may change.

    The record of less trusted slots is the kernel's: it may change for the slots that changed.
    """
    changed = {slot for slot in before.keys() | after.keys() if _has_changed(before, after, slot)}
    kept, new = before.get(SLOT_TRUST) or {}, after.get(SLOT_TRUST) or {}
    changed_for = {slot for slot in changed if slot != SLOT_USERS} | _user_changes(before, after)
    untold = {slot for slot in kept.keys() | new.keys() if kept.get(slot) != new.get(slot)} - changed_for
    taken = changed & (_protected_among(before) | _protected_among(after))
    taken.discard(SLOT_USERS)
    if not untold:
        taken.discard(SLOT_TRUST)
    return sorted(taken | {slot for slot in changed if _is_kernels(slot, before.get(slot))})


def _user_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """Return the slots whose users differ from before."""
    kept, new = before.get(SLOT_USERS) or {}, after.get(SLOT_USERS) or {}
    return {slot for slot in kept.keys() | new.keys() if kept.get(slot) != new.get(slot)}


def _has_changed(before: Mapping[str, object], after: Mapping[str, object], slot: str) -> bool:
    if (slot in before) is not (slot in after):
        return True
    former, value = before[slot], after[slot]
    return former is not value and (type(former) is not type(value) or former != value)


def _is_kernels(slot: str, former: object) -> bool:
    return isinstance(former, Behaviour) or is_reserved(slot) or bool(SHIPPED.protected_pattern.search(slot))
