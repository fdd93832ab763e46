"""The organisation of the image, which no commit may undo: its objects, their identities and their delegation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ZODB.Connection import Connection
from ZODB.utils import z64

from batos.image import roots
from batos.image.roots import Root, named_objects, root_of
from batos.objects.prototype import UvmObject, own_slots, parents_of, reference
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
