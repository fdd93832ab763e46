"""Find an object of the image by the names that people use: of the root, of a tool, of a mission, or its oid."""

from __future__ import annotations

import difflib

from ZODB.POSException import POSKeyError

from batos.agency.records import effect_records
from batos.image import ids, ownership, roots
from batos.image.roots import Root
from batos.memory.records import memory_records
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import NotFound
from batos.records import tools


def find_object(root: Root, name: str, user: str | None = None) -> UvmObject:
    """Return an object by root name, declared name, mission, conversation or oid.

    Raises: NotFound: there is no such object, it is declared and was not made yet, or it is made of the words of
    another than `user`, where one is named: who asks is not told which.
    """
    found = by_name(root, name, user)
    if found is None:
        if tools.absent(root, name) is not None:
            raise _absent(name)
        short = {each.removesuffix("_obj").removesuffix("_prototype"): each for each in roots.OBJECTS}
        if not any(each in root for each in roots.OBJECTS):
            raise NotFound("the image is still empty", field="object", remedy="Run `batos genesis` first.")
        near = difflib.get_close_matches(name.lower().removesuffix("_obj").removesuffix("_prototype"), short, 1)
        raise NotFound(
            f"there is no object {name!r}{f'; did you mean {short[near[0]]}?' if near else ''}",
            field="object",
            remedy="Name a root object (`batos inspect` lists them), a mission or conversation of yours, or oid:0x2a; "
            "add .SLOT for one slot.",
        )
    return found


def _absent(name: str) -> NotFound:
    return NotFound(
        f"{name} is declared and does not exist yet",
        field="object",
        remedy=f"`batos send {name} SELECTOR ARGUMENTS` makes it; `batos inspect {name}` shows its messages.",
    )


def by_name(root: Root, name: str, user: str | None = None) -> UvmObject | None:
    """Return an object by any of its names; None where there is no such object, or it is another user's than `user`.

    Raises: BriefError: the beginning of a mission's or conversation's id fits several (of this user's).
    """
    found: object
    if name in roots.OBJECTS:
        found = roots.named_objects(root).get(name)
    elif name.startswith("m-"):
        own = None if user is None else lambda each: ownership.is_asked_by(root, [each], user)
        record = roots.find_record(root, ids.complete_id(root[roots.MISSIONS], name, own))
        found = None if record is None else record.thought
    elif name.startswith("c-"):
        conversations = root[roots.CONVERSATIONS]
        own = None if user is None else lambda each: ownership.owner(root, conversations[each]) == user
        found = conversations.get(ids.complete_id(conversations, name, own))
    elif name.startswith("oid:0x"):
        found = _by_oid(root, name)
    else:
        granted = None if tools.absent(root, name) is not None else effect_records.find_capability(root, name)
        found = tools.find_tool(root, name) or granted
    if not isinstance(found, UvmObject) or _is_forgotten(root, found):
        return None
    return found if user is None or ownership.owner(root, found) in (None, user) else None


def _is_forgotten(root: Root, found: UvmObject) -> bool:
    """Test if an object is a memory, or a part of one, that no index has any more.

    The object stays in the storage until a pack, and is reached by its number alone.
    """
    slots = own_slots(found)
    if slots.keys() >= {"document", "number", "text"}:
        return memory_records.find_chunk(root, slots["number"]) is not found
    is_document = slots.keys() >= {"user", "scope", "chunks"}
    return is_document and root[roots.DOCUMENTS].get(slots["name"]) is not found


def _by_oid(root: Root, name: str) -> object:
    try:
        oid = int(name.removeprefix("oid:"), 16).to_bytes(8, "big")
        return roots.connection_of(root).get(oid)
    except (ValueError, OverflowError, POSKeyError):
        return None  # no such number, or nothing by it
