"""The capabilities of the image: objects through which missions act on the world, each granted by a person."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from batos.image import roots
from batos.image.nodes.hosts import HostIdentity
from batos.image.roots import Root
from batos.objects.method import Primitive
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.errors import NotFound, Refused
from batos.records import tools

#: The kind of target: files under a folder, or an address of this machine.
GrantKind: TypeAlias = Literal["file", "http"]
#: The class of a target says how an effect whose record is missing is settled: it is done again with its key, which the
#: target knows; it is read back; or a person is asked.
SinkClass: TypeAlias = Literal["keyed", "queryable", "blind"]

#: The selector that a capability of a kind answers, and the kernel's function behind it.
SELECTORS: Final[dict[GrantKind, tuple[str, str]]] = {
    "file": ("append_", "effect.append"),
    "http": ("post_", "effect.post"),
}
#: The slot that marks a capability: nobody but the kernel writes any slot of it.
GRANTED_AT: Final = "granted_at"

#: The slot of a capability, and the field of an effect that was staged by it, that nobody knows before the grant.
NONCE: Final = "nonce"

_LIST: Final = "`batos grants list` lists them."


def add(root: Root, name: str, kind: GrantKind, target: str, sink: SinkClass, told: tuple[str, str]) -> UvmObject:
    """Make a capability of this name; `told` are whose it is, and when it is granted.

    Raises: Refused: an object has this name already.
    """
    if name in root[roots.GRANTS] or name in roots.OBJECTS or tools.find_tool(root, name) or tools.absent(root, name):
        raise Refused(f"there is an object {name!r} already", field="name", remedy=f"Choose another name. {_LIST}")
    user, at = told
    selector, primitive = SELECTORS[kind]
    slots: dict[str, Any] = {
        "name": name, "kind": kind, "target": target, "sink": sink, "user": user, GRANTED_AT: at,
        NONCE: secrets.token_hex(8), selector: Primitive(primitive),
    }  # fmt: skip
    root[roots.GRANTS][name] = made = UvmObject(slots)
    return made


def bind(capability: UvmObject, host: HostIdentity) -> None:
    """Let what is done by a capability happen on one machine alone: its folder, or its program, is there."""
    capability.machine, capability.host = host


def find_of(root: Root, effect: Mapping[str, object]) -> UvmObject | None:
    """Return the capability by which an effect was staged; None: it is revoked, or the effect was not staged by it.

    Whatever was forged before the grant may have its name and its number, which can be guessed, but not its nonce.
    """
    found = find(root, str(effect["grant"]))
    if found is None or reference(found) != effect["oid"] or nonce_of(found) != effect.get(NONCE, ""):
        return None
    return found


def nonce_of(capability: UvmObject) -> str:
    """Return the nonce of a capability; one of an older version has none."""
    return str(own_slots(capability).get(NONCE, ""))


def machine_of(capability: UvmObject | None) -> str | None:
    """Return the id of the machine on which a capability acts; None: on that of the node that publishes."""
    return None if capability is None else own_slots(capability).get("machine")


def revoke(root: Root, name: str, user: str | None = None) -> UvmObject:
    """Take a capability away and return it. Raises: NotFound: there is none of this name (of this user's)."""
    found = find(root, name, user)
    if found is None:
        raise NotFound(f"there is no grant {name!r}", field="name", remedy=_LIST)
    del root[roots.GRANTS][name]
    return found


def find(root: Root, name: str, user: str | None = None) -> UvmObject | None:
    """Return a capability by its name; None: there is none, or it is another user's."""
    found: UvmObject | None = root[roots.GRANTS].get(name) if roots.GRANTS in root else None
    return None if found is None or user not in (None, own_slots(found)["user"]) else found


def list_all(root: Root, user: str | None = None) -> Iterator[UvmObject]:
    """Yield the capabilities (of a user's) by name."""
    for each in root[roots.GRANTS].values() if roots.GRANTS in root else ():
        if user in (None, own_slots(each)["user"]):
            yield each


def is_capability(obj: UvmObject) -> bool:
    """Test if an object is a capability, also one that was revoked."""
    return GRANTED_AT in own_slots(obj)
