"""Ownership: the users whose words an object or a slot holds, so that no other user reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from batos.image import roots
from batos.image.records import MissionRecord
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.errors import NotFound

#: The slot in which an object keeps whose its slots are: {slot: {"user": whose it is now, "others": {user: [value]}}},
#: [] for a user without any. Values under "" are everybody's: they are older than any user's write to the slot.
SLOT_USERS: Final = "slot_users"

#: The door of missions that the mind asks itself.
DOOR: Final = "kernel"

#: The door of what clients ask for themselves, such as a title: it is nobody's question either.
CHORE: Final = "chore"
#: The doors of missions that no person asked.
NOBODYS_DOORS: Final = frozenset({DOOR, CHORE})

#: A user that nobody is: who asks as this one sees what is of no user's words.
NOBODY: Final = "\0"


class _Absent:
    """Stands for a slot that a user does not have."""


ABSENT: Final = _Absent()


def owner(root: Root, obj: UvmObject) -> str | None:
    """Return the user whose words an object is made of (a conversation, a thought, a document); None if no user's."""
    slots = own_slots(obj)
    if slots.keys() >= {"document", "number", "text"}:  # a chunk
        slots = own_slots(slots["document"])
    if slots.keys() >= {"user", "turns", "view"} or slots.keys() >= {"user", "scope", "chunks"}:
        return str(slots["user"])
    if "granted_at" in slots:  # a capability; one for guests too is everybody's to see
        return None if (slots.get("terms") or {}).get("guests") else str(slots["user"])
    mission = slots.get("mission")
    found = roots.find_record(root, mission) if isinstance(mission, str) and roots.MISSIONS in root else None
    return None if found is None else str(found.brief.value["user"])


def door_of(record: MissionRecord) -> str:
    """Return the door through which a mission came; "" if that was not noted."""
    return str(record.brief.value.get("origin", {}).get("door", ""))


def is_own_work(record: MissionRecord) -> bool:
    """Test if the mind asked a mission itself: it is nobody's last question."""
    return door_of(record) == DOOR


def is_of_people(record: MissionRecord) -> bool:
    """Test if a person asked a mission: neither the mind itself nor a client for its own use."""
    return door_of(record) not in NOBODYS_DOORS


def is_guest(user: str | None) -> bool:
    """Test if a user of a request is a guest, as a server names one.

    >>> is_guest("key laptop"), is_guest("ada"), is_guest(None)
    (True, False, False)
    """
    return user is not None and user.startswith("key ")


def is_asked_by(root: Root, missions: Iterable[str], user: str) -> bool:
    """Test if all of these missions are this user's."""
    found = (roots.find_record(root, name) for name in missions)
    return all(record is not None and record.brief.value["user"] == user for record in found)


def no_mission(name: str, user: str | None = None, field: str = "mission") -> NotFound:
    """Make the error for a mission that is not there, or is another user's: who asks is not told which."""
    of = "" if user is None else f" of {user}'s"
    return NotFound(f"there is no mission {name!r}{of}", field=field, remedy="`batos missions` lists them.")


def has_sent(root: Root, sha256: str, user: str) -> bool:
    """Test if a mission of this user's has a file of this digest."""
    briefs = (record.brief.value for _, record in roots.records_of(root))
    mine = (brief for brief in briefs if brief["user"] == user)
    return any(each["sha256"] == sha256 for brief in mine for each in brief["attachments"])


def check(root: Root, obj: UvmObject, user: str) -> None:
    """Raise NotFound for an object that is made of another user's words."""
    whose = owner(root, obj)
    if whose is not None and whose != user:
        what = "is another user's conversation" if "turns" in own_slots(obj) else "is made of another user's words"
        raise NotFound(
            f"{reference(obj)} {what}",
            field="object",
            remedy="`batos missions --mine` lists your missions.",
        )


def slot_for(slots: Mapping[str, Any], slot: str, user: str) -> Any:
    """Return an object's own slot as a user sees it, or ABSENT; with no user ("") as it stands."""
    kept = (slots.get(SLOT_USERS) or {}).get(slot)
    if not user or kept is None or kept["user"] == user:
        return slots.get(slot, ABSENT)
    others = kept["others"]
    found = others.get(user, others.get("", ()))
    return found[0] if found else ABSENT


def owners_after(slots: Mapping[str, Any], slot: str, user: str) -> dict[str, object]:
    """Return whose the slots of an object are once this user's mission has written one; others keep what they had."""
    users = dict(slots.get(SLOT_USERS) or {})
    if not user:
        return users
    kept = users.get(slot, {"user": "", "others": {}})
    others = dict(kept["others"])
    if kept["user"] != user:
        others[kept["user"]] = [slots[slot]] if slot in slots else []
    others.pop(user, None)
    return {**users, slot: {"user": user, "others": others}}


def slots_for(slots: Mapping[str, Any], user: str) -> dict[str, object]:
    """Return an object's own slots as a user may see them, without the record of whose they are."""
    found = {slot: slot_for(slots, slot, user) for slot in slots.keys() | (slots.get(SLOT_USERS) or {}).keys()}
    return {slot: value for slot, value in found.items() if value is not ABSENT and slot != SLOT_USERS}
