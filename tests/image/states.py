"""Every state that folders are in while an image in one of them is written: what a killed process would leave."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batos.image.filestorage import SoundFileStorage


@dataclass(slots=True)
class States:
    """Copies folders of one parent at every moment at which a file may have been written, each state once.

    Copied are files as the system has them: what a process has buffered itself is lost with it.
    """

    tops: tuple[Path, ...]
    into: Path
    found: list[Path] = field(default_factory=list)
    _seen: set[frozenset[tuple[str, int, int]]] = field(default_factory=set)

    def note(self, torn: tuple[Path, int] | None = None) -> None:
        """Keep the state, unless it is known; `torn` names a file that is kept with so many bytes only."""
        stats = [(str(path), path.stat()) for top in self.tops for path in top.rglob("*") if path.is_file()]
        state = frozenset((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
        if torn is None and state in self._seen:
            return
        folder = self.into / str(len(self.found))
        self.found.append(folder)
        for top in self.tops:
            shutil.copytree(top, folder / top.name)
        if torn is None:
            self._seen.add(state)
        else:
            path, size = torn
            os.truncate(folder / path.parent.name / path.name, size)

    def storage(self, home: Path, name: str) -> Callable[[], SoundFileStorage]:
        """A factory of a storage that notes the state before and after each write, and one write half done."""
        states = self

        class Storage(SoundFileStorage):
            def tpc_vote(self, transaction: Any) -> Any:
                states.note()
                voted = super().tpc_vote(transaction)
                self._file.flush()
                path = Path(self._file_name)
                states.note((path, (self._pos + path.stat().st_size) // 2))
                states.note()
                return voted

            def _finish(self, tid: bytes, *also: Any) -> None:
                super()._finish(tid, *also)
                states.note()

        def synced(descriptor: int) -> None:
            os.fsync(descriptor)
            states.note()

        return lambda: Storage(str(home / f"{name}.fs"), blob_dir=str(home / "blobs"), sync=synced)
