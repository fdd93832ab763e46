"""Generated tools and objects by their names, and wishes for methods that are to be made.

An object that is declared and does not exist yet is an Intent of kind `prototype` in the slot of its name.
docs/tools.md describes the whole.

A wish is plain data, a `WishDocument`. docs/generation.md tells who makes it, and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from batos.image import roots
from batos.image.ownership import DOOR
from batos.image.records import MissionRecord
from batos.image.roots import Root
from batos.objects.method import Behaviour, Intent, Method, Primitive
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.mission_documents import LearntDocument, WishDocument

#: The slots of a made object that say what it is.
NAME: Final = "name"
API: Final = "api"

#: The beginnings of the selectors of a described operation's two methods, and the kernel's function that calls it.
REQUEST: Final = "request_of_"
READING: Final = "reading_of_"
CALL: Final = "api.call"
#: The slot of a grant that declares its object itself: the description.
DECLARES: Final = "declares"

#: Told of an intent before its slot changes (None: it goes); the revision of its method that is retired for it, or 0.
ApiMethod: TypeAlias = Callable[[UvmObject, str, Intent | None], int]


def absent(root: Root, name: str) -> Intent | None:
    """Return the intent that declares an object of that name, or None if none is declared or the object exists."""
    found = _slots(root).get(name)
    return found if isinstance(found, Intent) and found.kind == "prototype" else None


def is_described(selectors: Iterable[str]) -> bool:
    """Test if these are the selectors of an API's methods: two for each of its operations."""
    return any(each.startswith(REQUEST) for each in selectors)


def find_tool(root: Root, name: str) -> UvmObject | None:
    """Return the generated object of that name, or None."""
    found = _slots(root).get(name)
    return found if isinstance(found, UvmObject) and own_slots(found).get(NAME) == name else None


def find_wisher(root: Root, name: str) -> str:
    """Return the persona of the first mission that the methods of a made object are of; "" where none is known."""
    found = find_tool(root, name)
    made = [each for each in own_slots(found).values() if isinstance(each, Method)] if found is not None else []
    missions = sorted({mission for each in made for mission in each.provenance.get("missions", ())})
    records = (roots.find_record(root, each) for each in missions)
    routes = (own_slots(each.thought).get("route") or {} for each in records if each is not None)
    return next((str(personas[0]) for each in routes if (personas := each.get("personas"))), "")


def names(root: Root) -> dict[str, UvmObject | None]:
    """Return every declared object by name, with None for those that do not exist yet."""
    found = {name: find_tool(root, name) for name in _slots(root)}
    return {name: obj for name, obj in found.items() if obj is not None or absent(root, name) is not None}


def make(root: Root, name: str, api: str, intents: Mapping[str, Intent]) -> UvmObject:
    """Put an object with these intents in the place of its declaration; it thinks and recalls as any object does."""
    calls = {each.removeprefix(REQUEST): Primitive(CALL) for each in intents if each.startswith(REQUEST)}
    slots = {NAME: name, API: api, **calls, **intents}
    obj = UvmObject(slots, parents=(root["pLLM_obj"], root["traits_obj"]))
    setattr(root[roots.TOOLS], name, obj)
    if root[roots.TOOLS]._p_jar is not None:
        root[roots.TOOLS]._p_jar.add(obj)  # what is kept about its methods goes by its reference
    return obj


def declare(root: Root, apis: Mapping[str, str], declared: ApiMethod) -> list[str]:
    """Bring the declared objects in line with the codex, given as name to API. Return a line for each change.

    A generated object stays as long as its API does. If the API changes, or the name disappears, the methods of the old
    object are retired and the object stays readable by its reference. A changed one is generated anew at the next
    message.
    """
    changes = []
    for name, api in apis.items():
        intent, obj = absent(root, name), find_tool(root, name)
        known = own_slots(obj).get(API) if obj is not None else intent.text if intent is not None else None
        if known == api:
            continue
        _retire_methods(obj, declared)
        wish = Intent(text=api, name=name, may_learn=True, kind="prototype")
        setattr(root[roots.TOOLS], name, wish)
        changes.append(f"{roots.TOOLS}.{name} {'made' if known is None else 'changed'}")
    for name, obj in names(root).items():
        if name not in apis and not _is_granted(root, name):
            _retire_methods(obj, declared)
            delattr(root[roots.TOOLS], name)
            changes.append(f"{roots.TOOLS}.{name} removed")
    return changes


def _is_granted(root: Root, name: str) -> bool:
    """Test if a grant declares this object, with a description of its own."""
    granted = root[roots.GRANTS].get(name) if roots.GRANTS in root else None
    return granted is not None and bool(own_slots(granted).get(DECLARES))


def _retire_methods(obj: UvmObject | None, declared: ApiMethod) -> None:
    if obj is not None:
        for selector, value in own_slots(obj).items():
            if isinstance(value, Behaviour):
                declared(obj, selector, None)


def _slots(root: Root) -> Mapping[str, object]:
    holder = root.get(roots.TOOLS)
    return own_slots(holder) if holder is not None else {}


#: The kind of contribution that a wish is.
WISH_KIND = "wish"
#: The form in which a mission asks for a method, under the key `wish`.
LATER = "later"


#: The kind of contribution by which a mission that fulfils a wish settles it: (wish, outcome).
SETTLED_KIND = "settled"
#: The client of missions that fulfil a wish, before the mission that wished.
_CLIENT: Final = "wish"


def client_of(sender: str) -> str:
    """Return the client of the missions that fulfil a mission's wishes."""
    return f"{_CLIENT} {sender}"


def sender_of(door: str, client: str) -> str:
    """Return the mission whose wish a mission of this origin fulfils; "" of any other origin.

    >>> sender_of("kernel", "wish m-1"), sender_of("api", "wish m-1"), sender_of("kernel", "compaction")
    ('m-1', '', '')
    """
    kind, _, sender = client.partition(" ")
    return sender if door == DOOR and kind == _CLIENT else ""


def sender_in(record: MissionRecord) -> str:
    """Return the mission whose wish a mission fulfils; "" of any other mission."""
    origin = record.brief.value.get("origin") or {}
    return sender_of(origin.get("door", ""), origin.get("client", ""))


def rests(record: MissionRecord) -> bool:
    """Test if a mission waits to fulfil a wish: it reads nothing of the mind before it begins."""
    return record.status.word == "queued" and bool(sender_in(record))


def wishes_in(told: Iterable[LearntDocument]) -> list[WishDocument]:
    """Return the wishes among the reports of a mission's attempts to generate."""
    return [each["wish"].copy() for each in told if each["outcome"] == LATER]


def name_of_wish(wish: WishDocument) -> str:
    """Return the key of a wish: the slot without a method; with the intent where missions may forge different tools."""
    return f"{_slot_of(wish)} {wish['intent']}" if wish.get("forged") else _slot_of(wish)


def _slot_of(wish: WishDocument) -> str:
    return f"{wish['holder']} {wish['selector']}"


def fold_wishes(root: Root, mission: str, payload: WishDocument) -> None:
    """Keep a committed mission's wish, unless another's for the same slot and intent stands already."""
    kept = root[roots.WISHES]
    before = kept.get(name_of_wish(payload))
    if before is None or before["intent"] != payload["intent"]:
        kept[name_of_wish(payload)] = {**payload, "mission": mission}


def list_wishes(root: Root) -> list[WishDocument]:
    """List every wish, those of the first mission on top."""
    wishes = [each.copy() for each in root[roots.WISHES].values()]
    return sorted(wishes, key=lambda each: (each["mission"], name_of_wish(each)))


def count_wishes(root: Root, holder: UvmObject | None = None) -> int:
    """Count the wishes: all of them, or those for slots of one object."""
    kept = root[roots.WISHES]
    if holder is None:
        return len(kept)
    return sum(each["holder"] == reference(holder) for each in kept.values())


def drop_wish(root: Root, done: Sequence[WishDocument]) -> None:
    """Keep these no longer; one that was made anew for another intent stays."""
    kept = root[roots.WISHES]
    for wish in done:
        # Version 0.1.0 kept a forged tool's wish by its slot alone.
        for name in {name_of_wish(wish), _slot_of(wish)}:
            there = kept.get(name)
            if there is not None and there["intent"] == wish["intent"]:
                del kept[name]
