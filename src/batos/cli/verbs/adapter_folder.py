"""The adapters in the folder: they are listed, compared with their bases, and converted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batos.cli.verb_options import VerbCall, run
from batos.config import Settings
from batos.genesis import adapter_check, home_files
from batos.genesis.adapters import gguf_lora, repository
from batos.genesis.adapters.folder import in_use
from batos.genesis.adapters.inventory import Adapter, AdapterFault, AdapterInventory
from batos.genesis.codex.codex import Codex
from batos.genesis.daemon_listing import look
from batos.image.roots import Root
from batos.inference.ollama import opening
from batos.inference.ollama.bridge import ModelCard
from batos.protocol.errors import OllamaError
from batos.server.dispatch import background_genesis
from batos.terminal.console import size
from batos.terminal.layout import table

# -- list


def tell_all(called: VerbCall) -> int:
    """Run the verb `adapters list`."""
    rows, faults = _list_rows(called)
    if called.console.as_json:
        called.console.document({"adapters": rows, "faults": [fault.as_dict() for fault in faults]})
        return 0
    shown = [
        [row["persona"], row["name"], row["kind"], str(row["rank"]), size(row["size"]), row["base"], row["state"]]
        for row in rows
    ]
    shown += [[fault.persona, fault.name, "", "", "", "", f"refused: {fault.what}"] for fault in faults]
    heads = ("persona", "adapter", "kind", "rank", "size", "base", "state")
    called.console.write(table(shown, heads) if shown else _none(called.settings))
    if faults:
        called.console.say("`batos adapters check` says what to do.", dim=True)
    return 0


def _none(settings: Settings) -> str:
    folder = settings.place / "adapters"
    return f"There are no adapters: one of ROBIN goes into {folder / 'robin' / 'NAME'} (`batos help adapters`)."


def _list_rows(called: VerbCall) -> tuple[list[dict[str, Any]], Sequence[AdapterFault]]:
    settings = called.settings
    codex = background_genesis.current_codex(settings)
    inventory, _ = run(_check_bases(settings, codex, home_files.read_inventory(settings)))
    choices, proxies = home_files.read_offline(settings, _read_choices)
    used = in_use(inventory, choices)
    rows = []
    for adapter in inventory.adapters:
        proxy = proxies.get(adapter.label, {})
        made = proxy.get("model") if proxy.get("digest") == adapter.digest else None
        state = "not yet made" if made is None else "ready"
        if used.get(adapter.persona) is adapter:
            state = "in use" if made is not None else "in use once it is made"
        base = codex.model_for(adapter.persona, settings.profile)
        rows.append({**_adapter_document(adapter), "base": base, "state": state, "model": made})
    return rows, inventory.faults


async def _check_bases(
    settings: Settings, codex: Codex, inventory: AdapterInventory
) -> tuple[AdapterInventory, list[str]]:
    """Hold the adapters against their bases where Ollama can be asked for them; return too what could not be asked."""
    if not inventory.adapters:
        return inventory, []
    async with opening.bridge(settings) as bridge:
        try:
            listed = await look(bridge)
            found = await adapter_check.check_inventory(inventory, codex, settings.profile, listed, bridge)
        except OllamaError as error:
            return inventory, [f"whether they fit their bases: {error.message}"]
    bases = dict.fromkeys(codex.model_for(each.persona, settings.profile) for each in inventory.adapters)
    absent = [base for base in bases if listed.row(base) is None]
    return found, [f"whether they fit {base}: Ollama does not have it yet" for base in absent]


def _read_choices(root: Root | None) -> tuple[Mapping[str, str | None], Mapping[str, Mapping[str, object]]]:
    """Return what the image knows: the choices, and the proxies by label."""
    return ({}, {}) if root is None else (repository.choices(root), repository.proxies(root))


def _adapter_document(adapter: Adapter) -> dict[str, object]:
    return {
        "persona": adapter.persona,
        "name": adapter.name,
        "kind": adapter.kind,
        "rank": adapter.rank,
        "alpha": adapter.alpha,
        "size": adapter.size,
        "digest": adapter.digest,
        "architecture": adapter.architecture,
        "trained_on": adapter.base,
    }


# -- check


def check(called: VerbCall, which: str) -> int:
    """Run the verb `adapters check`; `which` is PERSONA, PERSONA/NAME, or empty for all."""
    settings = called.settings
    codex = background_genesis.current_codex(settings)
    found, unchecked = run(_check_bases(settings, codex, _select(home_files.read_inventory(settings), which)))
    doubts = {
        adapter.label: adapter_check.doubts(adapter, codex.model_for(adapter.persona, settings.profile))
        for adapter in found.adapters
    }
    _tell_check(called, found, doubts, unchecked)
    return 1 if found.faults else 0


def _select(inventory: AdapterInventory, which: str) -> AdapterInventory:
    """Return the adapters that are meant. Raises: NotFound: there are none; the remedy names near ones."""
    if not which:
        return inventory
    named, _, name = which.partition("/")
    persona = background_genesis.find_persona(named)
    adapters = tuple(
        each for each in inventory.adapters_of(persona) if not name or each.name.casefold() == name.casefold()
    )
    faults = tuple(each for each in inventory.faults
                   if each.persona == persona and (not name or each.name.casefold() == name.casefold()))  # fmt: skip
    if name and not adapters and not faults:
        raise background_genesis.no_such_adapter(inventory, persona, name)
    return AdapterInventory(adapters, faults)


def _tell_check(
    called: VerbCall, found: AdapterInventory, doubts: Mapping[str, Sequence[str]], unchecked: Sequence[str]
) -> None:
    console = called.console
    if console.as_json:
        adapters = [{**_adapter_document(each), "doubts": list(doubts[each.label])} for each in found.adapters]
        faults = [fault.as_dict() for fault in found.faults]
        console.document({"ok": not faults, "adapters": adapters, "faults": faults, "unchecked": list(unchecked)})
        return
    for adapter in found.adapters:
        said = f"rank {adapter.rank}, {size(adapter.size)}, {len(adapter.pairs)} matrices"
        console.write(f"  ok     {adapter.label}: {adapter.kind}, {said}")
        for doubt in doubts[adapter.label]:
            console.write(f"         {doubt}")
    for fault in found.faults:
        console.write(f"  WRONG  {fault}", warn=True)
        console.write(f"         {fault.remedy}")
    for what in unchecked:
        console.write(f"  not checked: {what}")
    if not found.adapters and not found.faults:
        console.write(_none(called.settings))


# -- convert


def convert(called: VerbCall, which: str) -> int:
    """Run the verb `adapters convert`; `which` is PERSONA/NAME."""
    named, _, name = which.partition("/")
    persona = background_genesis.find_persona(named)
    adapter = background_genesis.find_adapter(home_files.read_inventory(called.settings), persona, name)
    base = background_genesis.current_codex(called.settings).model_for(persona, called.settings.profile)
    card = run(_card(called.settings, base))
    faults = [fault for fault in adapter_check.misfits(adapter, card) if fault.where != adapter_check.ARCHITECTURE]
    if faults:
        raise adapter_check.refusal(faults)
    folder = next(iter(adapter.files.values())).parent
    target = folder.with_name(f"{folder.name}-gguf") / "adapter.gguf"
    gguf_lora.convert(adapter, card.info, target)
    if called.console.as_json:
        called.console.document({"persona": persona, "name": target.parent.name, "file": str(target)})
    else:
        called.console.write(f"{target} is written for {base}.")
        called.console.say(f"Use it: `batos adapters use {persona} {target.parent.name}`.", dim=True)
    return 0


async def _card(settings: Settings, base: str) -> ModelCard:
    async with opening.bridge(settings) as bridge:
        return await bridge.show(base, verbose=True)
