"""The codex and the adapters of a home as they were read last, and read again only if a file has changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from batos.config import Settings
from batos.genesis import file_stamps
from batos.genesis.adapters.digests import Digests
from batos.genesis.adapters.folder import discover
from batos.genesis.adapters.inventory import AdapterInventory
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.genesis.file_stamps import Stamp


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
        self._last: HomeContents | None = None

    def recall(self) -> HomeContents | None:
        """Return what was read last; None if a file has changed since.

        A look at ten files takes less time than the way to a thread and back; reading them may take long.
        """
        last = self._last
        return last if last is not None and file_stamps.stamp(*self._folders).covers(last.stamp) else None

    def read(self) -> HomeContents:
        """Read both folders; missing files of the codex are copied from the shipped ones.

        Raises: CodexError: a file is wrong. The contents that were read before are not used any more.
        """
        codex, adapters = self._folders
        self._last = None
        codices.install(codex)
        seen = file_stamps.stamp(codex, adapters)
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

    @property
    def _folders(self) -> tuple[Path, Path]:
        return self._settings.home / "codex", self._settings.place / "adapters"
