"""A plan of genesis by codex and adapters alone, as one that asks the daemon itself makes it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from batos.genesis.adapters.inventory import AdapterInventory
from batos.genesis.codex.codex import Codex
from batos.genesis.daemon_listing import GenesisDaemon, look
from batos.genesis.persona_models import GenesisRecord
from batos.genesis.plan import Plan, compare


async def plan(
    codex: Codex,
    profile: str,
    daemon: GenesisDaemon,
    inventory: AdapterInventory = AdapterInventory(),  # noqa: B008  # a frozen value
    chosen: Mapping[str, str | None] = MappingProxyType({}),
    known: GenesisRecord | None = None,
) -> Plan:
    """Compare codex and adapters with what Ollama lists and, where it is given, what the image knows: two requests.

    `chosen` says which adapter a persona uses (`in_use`). Without `known` every model that is listed is
    believed to be what its name says; with it a model must have the digest that was written down when it was made.
    """
    return compare(codex, profile, await look(daemon), inventory, chosen, known)
