"""The states of objects as JSON, and objects of such states: any object that a database of ours may hold, and no other.

Values that JSON has no form for are objects with one key that begins with a dollar sign: `$ref` (an object by its oid),
`$tuple`, `$dict` (pairs; for keys that are no plain text), `$set`, `$frozenset`, `$bytes` (base64), `$primitive` (a
function of the kernel by its name) and `$float` (one that is not finite).
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from BTrees.Length import Length
from persistent import Persistent
from ZODB.blob import Blob
from ZODB.broken import Broken
from ZODB.Connection import Connection
from ZODB.utils import u64

from batos.image.classes import ALLOWED
from batos.image.ids import oid_text
from batos.objects.method import Primitive
from batos.protocol.errors import BriefError

#: The deepest nesting of a value.
_DEEPEST: Final = 200


def kind_of(obj: Persistent) -> str:
    """Return the class of an object, by module and name."""
    return f"{type(obj).__module__}.{type(obj).__name__}"


def class_of(kind: str) -> type[Persistent]:
    """Return the class of a kind. Raises: BriefError: it is none that an image may hold."""
    module, _, name = kind.rpartition(".")
    if (module, name) not in ALLOWED or module == "builtins" or (module, name) == ("batos.objects.method", "Primitive"):
        raise BriefError(f"{kind[:80]!r} is no kind of object", field="kind", remedy="Export the mind again.")
    found: type[Persistent] = getattr(__import__(module, fromlist=[name]), name)
    return found


def add_with_oid(connection: Connection, obj: Persistent, oid: bytes) -> None:
    """Add a new object to a connection under an oid of ours, where ZODB would choose one."""
    usual = connection.new_oid
    connection.new_oid = lambda: oid  # type: ignore[method-assign]
    try:
        connection.add(obj)
    finally:
        connection.new_oid = usual  # type: ignore[method-assign]


def pass_over(connection: Connection, taken: Collection[bytes]) -> None:
    """Let no object that ZODB adds by itself, as a node of a large tree, get an oid that is taken: until the commit."""
    usual = connection.new_oid

    def free() -> bytes:
        while (oid := usual()) in taken:
            pass
        return oid

    def restore(_: bool) -> None:
        connection.new_oid = usual  # type: ignore[method-assign]

    connection.new_oid = free  # type: ignore[method-assign]
    connection.transaction_manager.get().addAfterCommitHook(restore)


def keep_added(connection: Connection, oids: Collection[int]) -> None:
    """Keep of the objects that were added, and are not committed yet, those that have these oids."""
    for oid, obj in list(connection._added.items()):
        if u64(oid) not in oids:
            del connection._added[oid]
            obj._p_changed = False  # ZODB commits no object that is unchanged, whatever was said of it before


# -- writing


def state_of(obj: Persistent) -> Any:
    """Return the state of an object as JSON can hold it: of a tree its entries, of any other its fields."""
    if isinstance(obj, Broken):
        raise BriefError(
            f"{oid_text(obj._p_oid or b'')} is of an unknown class", field="kind", remedy="`batos verify`."
        )
    if isinstance(obj, Blob):
        return {}
    if isinstance(obj, Length):
        return {"value": int(obj.value)}
    if _is_tree(obj):
        entries: Any = obj
        return (
            [encode(list(each)) for each in entries.items()] if hasattr(obj, "items") else encode(list(entries.keys()))
        )
    obj._p_activate()
    return encode(obj.__getstate__())


def _is_tree(obj: object) -> bool:
    return any(each.__module__.startswith("BTrees.") for each in type(obj).__mro__) and not isinstance(obj, Length)


def encode(value: object, depth: int = 0) -> Any:
    """Return a value as JSON can hold it."""
    if depth > _DEEPEST:
        raise BriefError("a value is nested too deep", field="slots", remedy="`batos verify` names what is wrong.")
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, Persistent):
        return {"$ref": oid_text(value._p_oid or b"")}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, Primitive):
        return {"$primitive": value.name}
    return _encode_container(value, depth + 1)


def _encode_container(value: object, depth: int) -> Any:
    if type(value) is list:
        return [encode(each, depth) for each in value]
    if type(value) is tuple or (isinstance(value, tuple) and hasattr(value, "_fields")):
        return {"$tuple": [encode(each, depth) for each in value]}
    if isinstance(value, frozenset | set):
        name = "$frozenset" if isinstance(value, frozenset) else "$set"
        return {name: sorted((encode(each, depth) for each in value), key=json.dumps)}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: encode(each, depth) for key, each in value.items()}
        return {"$dict": [[encode(key, depth), encode(each, depth)] for key, each in value.items()]}
    what = f"a value of the type {type(value).__name__} has no form in JSON"
    raise BriefError(what, field="slots", remedy="Please report this.")


# -- reading

#: Finds an object by its oid as text. Raises: BriefError: there is none.
FindObject = Callable[[str], Persistent]


def set_state(obj: Persistent, state: Any, find: FindObject) -> None:
    """Give an object its state. Raises: BriefError: it is none of this kind."""
    if isinstance(obj, Blob):
        return
    if isinstance(obj, Length):
        obj.__setstate__(int(state["value"]))
    elif _is_tree(obj):
        tree: Any = obj
        entries = [decode(each, find) for each in state]
        tree.update([tuple(each) for each in entries] if hasattr(obj, "items") else entries)
    else:
        fields = decode(state, find)
        if not isinstance(fields, dict | tuple):
            raise BriefError("the state of an object is no object", field="slots", remedy="Export the mind again.")
        obj.__setstate__(fields)


def decode(value: object, find: FindObject, depth: int = 0) -> Any:
    """Return the value that `encode` made JSON of. Raises: BriefError: it is none."""
    if depth > _DEEPEST:
        raise BriefError("a value is nested too deep", field="slots", remedy="Export the mind again.")
    if isinstance(value, list):
        return [decode(each, find, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (name := next(iter(value))).startswith("$"):
        return _decode_marked(name, value[name], find, depth + 1)
    return {str(key): decode(each, find, depth + 1) for key, each in value.items()}


def _decode_marked(name: str, told: Any, find: FindObject, depth: int) -> Any:
    if name == "$ref":
        return find(str(told))
    if name == "$bytes":
        return base64.b64decode(str(told), validate=True)
    if name == "$primitive":
        return Primitive(str(told))
    if name == "$float":
        return float(told)
    makers: dict[str, Callable[[Any], Any]] = {"$tuple": tuple, "$set": set, "$frozenset": frozenset, "$dict": dict}
    if name not in makers or not isinstance(told, list):
        raise BriefError(f"{name[:40]!r} marks no value", field="slots", remedy="Export the mind again.")
    return makers[name](decode(each, find, depth) for each in told)
