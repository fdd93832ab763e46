"""Guards of what is written: the organisation of the image, invariants of every record, and protected slots."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ZODB.Connection import Connection
from ZODB.utils import z64

from batos.guardian.policy import SHIPPED
from batos.image import roots
from batos.image.ownership import SLOT_USERS
from batos.image.records import DIGESTS, SLOT_TRUST, Lineage
from batos.image.roots import Root, named_objects, root_of
from batos.objects.method import Behaviour, Intent, Method
from batos.objects.prototype import UvmObject, delegation, is_reserved, label, own_slots, parents_of, reference
from batos.protocol.errors import Refused

#: The slots that say who an object of the organisation is, by its name in the root.
IDENTITY: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(roots.OBJECTS, ()),
    "orchestrator_obj": ("charter", "house_rules"),
    **{name: ("name", "core_identity", "core_method") for name in roots.OBJECTS if name.endswith("_prototype_obj")},
}

#: The key in the root's `genesis` under which genesis keeps the digest of each object's identity and parents.
IDENTITIES: Final = "organisation"

#: Keys that must stay in the root of the image, or of its journal, once committed: all but the tally, which is
#: counted anew if it is missing.
_LASTING: Final = (*IDENTITY, *(name for name in roots.RECORDS if name != roots.TALLY), roots.PAIR)

#: Records that stay the same object: only the router's record is replaced when it learns.
_SAME: Final = tuple(name for name in roots.RECORDS if name != roots.ROUTER)

_REMEDY: Final = "Nothing was written. Change who a persona is in the codex, then run `batos genesis`."


def changed_objects(connection: Connection) -> tuple[Any, ...]:
    """Return the objects that a connection would commit: those that were changed, and those that got an identity.

    There is no public way to ask: ZODB's connection keeps what has registered with it.
    """
    return (*connection._registered_objects, *connection._added.values())


def identities(root: Root) -> dict[str, str]:
    """Return the digest of who each object of the organisation is, and of its parents; one that is missing has none."""
    known = named_objects(root)
    objects = {name: known[name] for name in IDENTITY if isinstance(known.get(name), UvmObject)}
    names = {id(each): name for name, each in objects.items()}
    return {name: _digest(each, IDENTITY[name], names) for name, each in objects.items()}


def uphold(connection: Connection, changed: Iterable[object], *, thought: bool) -> None:
    """Refuse a commit after which the organisation would not be the one that genesis last recorded.

    Genesis writes identities and their record in one commit; a thought may do neither. Nothing is compared unless the
    root, what genesis recorded, or an object of the organisation is among the changed.
    """
    root = root_of(connection)
    held = named_objects(root)
    watched = {id(root), *(id(held[name]) for name in (roots.GENESIS, *IDENTITY) if name in held)}
    if not any(id(each) in watched for each in changed):
        return
    before = _last_commit(connection, root)
    lost = [name for name in _LASTING if name in before and name not in root]
    if lost:
        raise Refused(f"a commit was to take {', '.join(lost)} out of the root", remedy=_REMEDY)
    others = [name for name in _SAME if name in before and name in root and held[name] is not before[name]]
    if others:
        raise Refused(f"a commit was to put something else in the place of {', '.join(others)}", remedy=_REMEDY)
    if roots.GENESIS in root:
        known = _last_commit(connection, before[roots.GENESIS]) if roots.GENESIS in before else {}
        _uphold_identities(root, known, thought)


def _uphold_identities(root: Root, known: Mapping[str, object], thought: bool) -> None:
    kept = root[roots.GENESIS]
    lost = [key for key in (roots.PAIR, IDENTITIES) if key in known and key not in kept]
    if lost or (thought and kept.get(IDENTITIES) != known.get(IDENTITIES)):
        what = f"a commit was to change {lost[0] if lost else IDENTITIES} of what genesis recorded"
        raise Refused(what, remedy=_REMEDY)
    if IDENTITIES not in kept:
        return  # no genesis yet: who the personas are is not said
    found, recorded = identities(root), kept[IDENTITIES]
    wrong = [name for name in IDENTITY if name not in found or found[name] != recorded.get(name)]
    if wrong:
        what = (
            f"a commit would leave {', '.join(wrong)} with another identity or other parents than genesis gave, or none"
        )
        raise Refused(what, remedy=_REMEDY)


def _last_commit(connection: Connection, mapping: Any) -> Mapping[str, object]:
    """Return a mapping as it was committed last; one that is new had nothing."""
    mapping._p_activate()  # what is not loaded has no serial
    if mapping._p_serial == z64:
        return {}
    if not mapping._p_changed:
        return dict(mapping)
    at, names = getattr(connection, "names", (z64, {}))  # a connection of another database has none
    if mapping._p_oid == z64 and mapping._p_serial == at:  # the journal's root is written with every call
        return names
    found: Mapping[str, object] = connection.oldstate(mapping, mapping._p_serial)["data"]
    return found


def _digest(obj: UvmObject, slots: tuple[str, ...], names: Mapping[int, str]) -> str:
    own = own_slots(obj)
    parents = [names.get(id(each)) or reference(each) for each in parents_of(obj)]
    written = json.dumps([parents, *(own.get(slot) for slot in slots)], ensure_ascii=False, default=str)
    return hashlib.sha256(written.encode()).hexdigest()


_REPORT: Final = "Nothing was written. Please report this."


def check_written(value: object, *, thought: bool) -> None:
    """Check a record that a commit is about to write; `thought`: the commit is a mission's.

    Raises Refused: a method whose source is not the one that the guardian passed, a method of class `external` that
    nobody approved, any method or intent of a thought, a slot that holds another method than its lineage says is
    active, an object that would be its own ancestor.
    """
    if isinstance(value, Method | Intent):
        _check_behaviour(value, thought)
    elif isinstance(value, Lineage):
        _check_slot(value)
    elif isinstance(value, UvmObject):
        if any(each is value for one in parents_of(value) for each in delegation(one)):
            raise Refused(f"{label(value)} would become its own ancestor", field="parents", remedy=_REPORT)
        _check_methods(value)


def _check_methods(holder: UvmObject) -> None:
    """Compare every method in the slots of an object with its lineage: a commit may write the holder alone."""
    selectors = [slot for slot, value in own_slots(holder).items() if isinstance(value, Method)]
    root = root_of(holder._p_jar) if selectors and holder._p_jar is not None else Root()
    if roots.METHODS in root:
        for lineage in filter(None, (root[roots.METHODS].get(roots.method_key(holder, each)) for each in selectors)):
            _check_slot(lineage)


def _check_slot(lineage: Lineage) -> None:
    if not lineage.is_sound():
        what = f"{label(lineage.holder)}.{lineage.selector} would hold another method than the one that is active there"
        raise Refused(what, field=lineage.selector, remedy=_REPORT)


def lacks_approval(provenance: Mapping[str, object]) -> bool:
    """Test if a method of this provenance comes from outside and nobody approved it."""
    return provenance.get("trust") == "external" and not provenance.get("approval")


def _check_behaviour(value: Method | Intent, thought: bool) -> None:
    if thought:
        what = "a method" if isinstance(value, Method) else "an intent"
        raise Refused(f"a thought was to make {what} by itself", remedy=_REPORT)
    if isinstance(value, Method):
        source = hashlib.sha256(value.source.encode("utf-8", "surrogatepass")).hexdigest()
        if value.verdict.get("accepted") is not True or value.verdict.get("digest") != source:
            what = (
                f"the source of the method {value.selector!r} ({reference(value)}) is not one that the guardian passed"
            )
            raise Refused(what, field=value.selector, remedy="Nothing was written. Generate the method again.")
        if lacks_approval(value.provenance):
            what = f"the method {value.selector!r} ({reference(value)}) comes from outside, and nobody approved it"
            raise Refused(what, field=value.selector, remedy="Nothing was written. `batos approvals` lists what waits.")


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
