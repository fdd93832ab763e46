"""The codex and the adapters of a home, and genesis with these alone, without holding the image."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import time_ns
from typing import TypeVar

from batos.config import Settings
from batos.genesis import adapter_check, persona_models
from batos.genesis.adapters import repository
from batos.genesis.adapters.folder import discover
from batos.genesis.adapters.inventory import AdapterInventory, Digests, FileMark, mark
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.genesis.daemon_listing import DaemonModels, GenesisDaemon
from batos.genesis.plan import Plan, compare
from batos.image.readable import is_there, open_read_only
from batos.image.roots import Root
from batos.protocol.errors import ImageError

#: A file may change twice within one tick of its clock: one that changed so lately is looked at again.
SETTLED_NS = 100_000_000
#: Folders within folders that are looked into: an adapter's, in its persona's. A link may lead back up, without end.
DEEPEST = 2


@dataclass(frozen=True, slots=True)
class HomeContents:
    """The contents of the files, and their marks when they were read."""

    stamp: Stamp
    codex: Codex
    inventory: AdapterInventory


class HomeFiles:
    """Reads the folders of the codex and of the adapters."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folders = settings.home / "codex", settings.place / "adapters"
        self._last: HomeContents | None = None

    def recall(self) -> HomeContents | None:
        """Return what was read last; None if a file has changed since.

        A look at ten files takes less time than the way to a thread and back; reading them may take long.
        """
        last = self._last
        return last if last is not None and stamp(*self._folders).covers(last.stamp) else None

    def read(self) -> HomeContents:
        """Read both folders; missing files of the codex are copied from the shipped ones.

        Raises: CodexError: a file is wrong. The contents that were read before are not used any more.
        """
        codex, adapters = self._folders
        self._last = None
        codices.install(codex)
        seen = stamp(codex, adapters)
        self._last = HomeContents(seen, codices.load(codex), self.inventory())
        return self._last

    def inventory(self) -> AdapterInventory:
        """Read the folder of the adapters."""
        digests = Digests(self._settings.digests)
        found = discover(self._folders[1], digests)
        digests.save()
        return found

    def forget(self) -> None:
        """Forget the contents and the digests of files, because one has changed without a mark of it."""
        self._last = None
        self._settings.digests.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Stamp:
    """The mark of every file and folder below some folders, by path. Equal stamps: nothing changed.

    `settled` is false where something changed so lately that it may have changed again without a trace.
    """

    entries: tuple[tuple[str, FileMark], ...]
    settled: bool

    def covers(self, other: Stamp | None) -> bool:
        """Test if the files read at the other stamp are still the same."""
        return other is not None and other.settled and self.entries == other.entries


def stamp(*folders: Path) -> Stamp:
    """Look at folders; one that is not there has no entry."""
    entries = tuple(sorted(entry for folder in folders for entry in _below(folder)))
    newest = max((max(each.mtime_ns, each.ctime_ns) for _, each in entries), default=0)
    return Stamp(entries, newest < time_ns() - SETTLED_NS)


def _below(folder: Path, deep: int = DEEPEST) -> Iterator[tuple[str, FileMark]]:
    try:
        yield str(folder), mark(folder)
        found = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError:
        return
    for each in found:
        try:
            if deep > 0 and each.is_dir():
                yield from _below(Path(each.path), deep - 1)
            else:
                yield each.path, mark(Path(each.path))
        except OSError:  # a link to nowhere or to itself
            continue


T = TypeVar("T")


def read_inventory(settings: Settings) -> AdapterInventory:
    """Read the adapters folder by its files alone."""
    return discover(settings.place / "adapters", Digests(settings.digests))


async def check_inventory(
    settings: Settings, codex: Codex, listed: DaemonModels, daemon: GenesisDaemon
) -> AdapterInventory:
    """Read the adapters folder, with the adapters that fit no base among its faults; one request for each base."""
    inventory = await asyncio.to_thread(read_inventory, settings)
    return await adapter_check.check_inventory(inventory, codex, settings.profile, listed, daemon)


def make_plan(settings: Settings, codex: Codex, listed: DaemonModels, inventory: AdapterInventory) -> Plan:
    """Return the plan by codex, adapters and the image's choices, if the image can be read. Nothing is changed."""
    return read_offline(settings, lambda root: compare_with(settings, codex, listed, inventory, root))


def compare_with(
    settings: Settings, codex: Codex, listed: DaemonModels, inventory: AdapterInventory, root: Root | None
) -> Plan:
    """Return the plan by an image's root, or by None if there is no image."""
    known = None if root is None else persona_models.read_record(root)
    chosen = {} if root is None else repository.choices(root)
    return compare(codex, settings.profile, listed, inventory, chosen, known)


def read_offline(settings: Settings, reader: Callable[[Root | None], T]) -> T:
    """Return the reader's result for the image's root as of its last commit, or for None if it cannot be read."""
    if is_there(settings.image_uri):
        try:
            with open_read_only(settings.image_uri, settings.journal) as faces, faces.root() as root:
                return reader(root)
        except ImageError:  # whoever needs the image says so
            pass
    return reader(None)
