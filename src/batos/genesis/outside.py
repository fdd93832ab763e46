"""Genesis seen from outside: adapters and plan without holding the image, which may be open elsewhere or absent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from batos.config import Settings
from batos.errors import ImageError
from batos.genesis import adaptercheck, ledger
from batos.genesis.adapters import repository
from batos.genesis.adapters.digests import Digests
from batos.genesis.adapters.folder import discover
from batos.genesis.adapters.shelf import Shelf
from batos.genesis.codex import Codex
from batos.genesis.daemon import Listed
from batos.genesis.plan import Plan, compare
from batos.image.looking import exists, looking

T = TypeVar("T")


def laid(settings: Settings) -> Shelf:
    """What the adapters folder holds, by its files alone."""
    return discover(settings.place / "adapters", Digests(settings.digests))


async def held(settings: Settings, codex: Codex, listed: Listed, daemon: adaptercheck.Shows) -> Shelf:
    """What the adapters folder holds, with what fits no base among its faults; one request for each base."""
    shelf = await asyncio.to_thread(laid, settings)
    return await adaptercheck.held(shelf, codex, settings.profile, listed, daemon)


def planned(settings: Settings, codex: Codex, listed: Listed, shelf: Shelf) -> Plan:
    """The plan by codex, adapters and what the image chose, if it can be read; nothing is changed."""
    return read(settings, lambda root: compared(settings, codex, listed, shelf, root))


def compared(settings: Settings, codex: Codex, listed: Listed, shelf: Shelf, root: Any) -> Plan:
    """The plan by an image's root; None where there is none."""
    known = None if root is None else ledger.known(root)
    chosen = {} if root is None else repository.choices(root)
    return compare(codex, settings.profile, listed, shelf, chosen, known)


def read(settings: Settings, reader: Callable[[Any], T]) -> T:
    """What a reader makes of the image's root as of its last commit, of None where it is not there or unreadable."""
    if exists(settings.image_uri):
        try:
            with looking(settings.image_uri, settings.journal) as faces, faces.root() as root:
                return reader(root)
        except ImageError:  # whoever needs the image says so
            pass
    return reader(None)
