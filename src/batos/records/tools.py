"""Generated tools and objects: `tools_obj` holds tools by selector and objects by name, each in a slot.

An object that is declared and does not exist yet is an Intent of kind `prototype` in the slot of its name.
docs/tools.md describes the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from batos.image import roots
from batos.image.roots import Root
from batos.objects.method import Behaviour, Intent
from batos.objects.prototype import UvmObject, own_slots

#: The slots of a made object that say what it is.
NAME: Final = "name"
API: Final = "api"

#: Told of an intent before its slot changes (None: it goes); the revision of its method that is retired for it, or 0.
ApiMethod: TypeAlias = Callable[[UvmObject, str, Intent | None], int]


def absent(root: Root, name: str) -> Intent | None:
    """Return the intent that declares an object of that name, or None if none is declared or the object exists."""
    found = _slots(root).get(name)
    return found if isinstance(found, Intent) and found.kind == "prototype" else None


def find_tool(root: Root, name: str) -> UvmObject | None:
    """Return the generated object of that name, or None."""
    found = _slots(root).get(name)
    return found if isinstance(found, UvmObject) and own_slots(found).get(NAME) == name else None


def names(root: Root) -> dict[str, UvmObject | None]:
    """Return every declared object by name, with None for those that do not exist yet."""
    found = {name: find_tool(root, name) for name in _slots(root)}
    return {name: obj for name, obj in found.items() if obj is not None or absent(root, name) is not None}


def make(root: Root, name: str, api: str, intents: Mapping[str, Intent]) -> UvmObject:
    """Put an object with these intents in the place of its declaration; it thinks and recalls as any object does."""
    slots = {NAME: name, API: api, **intents}
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
        if name not in apis:
            _retire_methods(obj, declared)
            delattr(root[roots.TOOLS], name)
            changes.append(f"{roots.TOOLS}.{name} removed")
    return changes


def _retire_methods(obj: UvmObject | None, declared: ApiMethod) -> None:
    if obj is not None:
        for selector, value in own_slots(obj).items():
            if isinstance(value, Behaviour):
                declared(obj, selector, None)


def _slots(root: Root) -> Mapping[str, object]:
    holder = root.get(roots.TOOLS)
    return own_slots(holder) if holder is not None else {}
