"""The `lora_repository`: a small proxy object in the image for each adapter, and the adapter of each persona."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from batos.genesis.adapters.inventory import NONE, Adapter, AdapterInventory
from batos.genesis.codex.codex import PILLARS
from batos.genesis.codex.declarations import prototype_name
from batos.image.roots import Root, named_objects
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import NotFound

#: The slot of a persona's prototype that names the adapter it thinks with, or NONE.
CHOICE = "adapter"
#: The slot of `pLLM_obj` that holds the proxies: a BTree from `ROBIN/warm` to a UvmObject.
REPOSITORY = "lora_repository"
#: The fields of an adapter that its proxy has too.
_TOLD = ("persona", "name", "kind", "digest", "base", "architecture", "rank", "alpha", "size")


def choice_of(root: Root, persona: str) -> str | None:
    """Return the name of the adapter chosen for a persona, NONE for its bare base, None if nobody chose."""
    prototype = named_objects(root).get(prototype_name(persona))
    found = own_slots(prototype).get(CHOICE) if prototype is not None else None
    return found if isinstance(found, str) else None


def choices(root: Root) -> dict[str, str | None]:
    """Return the choice for each persona."""
    return {persona: choice_of(root, persona) for persona in PILLARS}


def choose(root: Root, persona: str, name: str | None) -> bool:
    """Write down which adapter a persona thinks with, None for its bare base; whether that changed anything.

    NotFound: the image has no such persona yet.
    """
    if prototype_name(persona) not in root:
        raise NotFound(f"the image has no {persona} yet", field="persona", remedy="Run `batos genesis` first.")
    wanted = NONE if name is None else name
    if choice_of(root, persona) == wanted:
        return False
    setattr(named_objects(root)[prototype_name(persona)], CHOICE, wanted)
    return True


def record(root: Root, inventory: AdapterInventory, made: Mapping[str, str], used: Iterable[Adapter]) -> list[str]:
    """Bring the proxies to what the inventory holds; answers what changed, one line each.

    `made` is the model of each adapter by its label, as far as there is one; `used` are those that personas think
    with, which become their choice where nobody chose. A proxy whose adapter is gone stays, marked as not present:
    it still says which model of earlier missions held which adapter.
    """
    changes: list[str] = []
    repository = own_slots(root["pLLM_obj"])[REPOSITORY]
    taken = {adapter.label for adapter in used}
    for adapter in inventory.adapters:
        slots = {name: getattr(adapter, name) for name in _TOLD}
        slots |= {"present": True, "used": adapter.label in taken}
        if adapter.label in made:  # its model is left out while none is made of it
            slots["model"] = made[adapter.label]
        changes += _write(repository, adapter.label, slots)
    present = {adapter.label for adapter in inventory.adapters}
    for label in [label for label in repository if label not in present]:
        changes += _write(repository, label, {"present": False, "used": False})
    for adapter in inventory.adapters:
        if adapter.label in taken and choice_of(root, adapter.persona) is None:
            choose(root, adapter.persona, adapter.name)
            changes.append(f"{prototype_name(adapter.persona)}.{CHOICE} made")
    return changes


def proxies(root: Root) -> dict[str, dict[str, Any]]:
    """Return the slots of each proxy by its label."""
    model = root.get("pLLM_obj")
    repository = own_slots(model).get(REPOSITORY) if model is not None else None
    return {label: dict(own_slots(proxy)) for label, proxy in (repository or {}).items()}


def _write(repository: Any, label: str, slots: Mapping[str, object]) -> list[str]:
    proxy = repository.get(label)
    if proxy is None:
        repository[label] = UvmObject(slots)
        return [f"{REPOSITORY}[{label}] made"]
    known = own_slots(proxy)
    differing = [slot for slot, value in slots.items() if slot not in known or known[slot] != value]
    for slot in differing:
        setattr(proxy, slot, slots[slot])
    return [f"{REPOSITORY}[{label}] changed"] if differing else []
