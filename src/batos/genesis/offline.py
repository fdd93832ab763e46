"""Genesis without holding the image, which may be open elsewhere or absent: adapters and plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from batos.config import Settings
from batos.genesis import adapter_check, register
from batos.genesis.adapters import repository
from batos.genesis.adapters.digests import Digests
from batos.genesis.adapters.folder import discover
from batos.genesis.adapters.inventory import AdapterInventory
from batos.genesis.codex.codex import Codex
from batos.genesis.daemon_listing import DaemonModels
from batos.genesis.plan import Plan, compare
from batos.image.roots import Root
from batos.image.views.read_only import is_there, open_read_only
from batos.protocol.errors import ImageError

T = TypeVar("T")


def read_inventory(settings: Settings) -> AdapterInventory:
    """Read the adapters folder by its files alone."""
    return discover(settings.place / "adapters", Digests(settings.digests))


async def check_inventory(
    settings: Settings, codex: Codex, listed: DaemonModels, daemon: adapter_check.Shows
) -> AdapterInventory:
    """Read the adapters folder, with the adapters that fit no base among its faults; one request for each base."""
    inventory = await asyncio.to_thread(read_inventory, settings)
    return await adapter_check.check_inventory(inventory, codex, settings.profile, listed, daemon)


def make_plan(settings: Settings, codex: Codex, listed: DaemonModels, inventory: AdapterInventory) -> Plan:
    """Return the plan by codex, adapters and the image's choices, if the image can be read. Nothing is changed."""
    return read(settings, lambda root: compare_with(settings, codex, listed, inventory, root))


def compare_with(
    settings: Settings, codex: Codex, listed: DaemonModels, inventory: AdapterInventory, root: Root | None
) -> Plan:
    """Return the plan by an image's root, or by None if there is no image."""
    known = None if root is None else register.read_record(root)
    chosen = {} if root is None else repository.choices(root)
    return compare(codex, settings.profile, listed, inventory, chosen, known)


def read(settings: Settings, reader: Callable[[Root | None], T]) -> T:
    """Return the reader's result for the image's root as of its last commit, or for None if it cannot be read."""
    if is_there(settings.image_uri):
        try:
            with open_read_only(settings.image_uri, settings.journal) as faces, faces.root() as root:
                return reader(root)
        except ImageError:  # whoever needs the image says so
            pass
    return reader(None)
