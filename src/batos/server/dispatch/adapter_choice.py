"""The choice of a persona's adapter: it is found by name, compared with its base, and recorded in the image."""

from __future__ import annotations

import asyncio
import difflib

from batos.config import Settings
from batos.genesis import adapter_check, offline
from batos.genesis.adapters import compatibility, repository
from batos.genesis.adapters.folder import in_use
from batos.genesis.adapters.inventory import NONE, Adapter, AdapterInventory
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import PILLARS, Codex
from batos.protocol.errors import NotFound, OllamaError
from batos.protocol.server_documents import AdapterChoice
from batos.uvm import UVM


async def choose(uvm: UVM, persona: str, name: str) -> AdapterChoice:
    """Choose an adapter, or `none` for the bare base; return what it was changed to.

    NotFound: no such persona or adapter. AdapterError: it would not load.
    """
    settings, persona = uvm.settings, find_persona(persona)
    # Reading files takes longer than a server's loop may be held.
    inventory = await asyncio.to_thread(offline.read_inventory, settings)
    codex = await asyncio.to_thread(current_codex, settings)
    adapter = None if name.casefold() == NONE else find_adapter(inventory, persona, name)
    notes = [] if adapter is None else await _fits(uvm, codex, adapter)
    label = None if adapter is None else adapter.name
    changed = await uvm.image.shared.apply(lambda root: repository.choose(root, persona, label))
    with uvm.image.snapshot() as root:
        used = in_use(inventory, repository.choices(root))
    cost = adapter_check.reload_cost(used, codex, settings.profile)
    told = [*notes, *([f"The price: {cost}."] if cost else [])]
    return {"persona": persona, "adapter": label, "changed": changed, "notes": told}


def current_codex(settings: Settings) -> Codex:
    """Return the codex as the next genesis finds it."""
    return codices.standing(settings.home / "codex")[0].sound()


def find_persona(named: str) -> str:
    """Find a persona by its name in any case. Raises: NotFound: there is none; the remedy names a near one."""
    if named.upper() in PILLARS:
        return named.upper()
    near = difflib.get_close_matches(named.upper(), PILLARS, 1)
    remedy = f"Did you mean {near[0]}?" if near else f"The personas are {', '.join(PILLARS)}."
    raise NotFound(f"there is no persona {named!r}", field="persona", remedy=remedy)


def find_adapter(inventory: AdapterInventory, persona: str, name: str) -> Adapter:
    """Find an adapter by its name. Raises: AdapterError: it has faults. NotFound: there is none."""
    adapter = inventory.find(persona, name)
    if adapter is not None:
        return adapter
    faults = [each for each in inventory.faults if each.persona == persona and each.name.casefold() == name.casefold()]
    if faults:
        raise adapter_check.refusal(faults)
    raise no_such_adapter(inventory, persona, name)


def no_such_adapter(inventory: AdapterInventory, persona: str, name: str) -> NotFound:
    """Make the error that says which adapters a persona has instead."""
    known = [each.name for each in inventory.adapters_of(persona)]
    near = difflib.get_close_matches(name, known, 1)
    remedy = f"There are: {', '.join(known)}." if known else f"Put one into adapters/{persona.lower()}/NAME/."
    if near:
        remedy = f"Did you mean {near[0]!r}?"
    return NotFound(f"{persona} has no adapter {name!r}", field="name", remedy=remedy)


async def _fits(uvm: UVM, codex: Codex, adapter: Adapter) -> list[str]:
    """Refuse what would not load; where Ollama cannot say, the next mission's check will."""
    base = codex.model_for(adapter.persona, uvm.settings.profile)
    try:
        faults = await adapter_check.unfit([(adapter, base)], uvm.bridge)
    except OllamaError as error:
        return [f"Not checked against {base}: {error.message}."]
    if faults:
        raise adapter_check.refusal(faults)
    return list(compatibility.doubts(adapter, base))
