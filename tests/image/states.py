"""Every state that folders are in while an image in one of them is written: what a killed process would leave."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from batos.image.filestorage import SoundFileStorage

_State: TypeAlias = frozenset[tuple[str, int, int]]


@dataclass(slots=True)
class States:
    """Copies folders of one parent at every moment at which a file may have been written, each state once.

    Copied are files as the system has them: what a process has buffered itself is lost with it.
    """

    tops: tuple[Path, ...]
    into: Path
    found: list[Path] = field(default_factory=list)
    _seen: set[_State] = field(default_factory=set)

    def note(self, torn: tuple[Path, int] | None = None) -> None:
        """Keep the state, unless it is known; `torn` names a file that is kept with so many bytes only."""
        folder = self.into / str(len(self.found))
        state = self._copy(folder, known=self._seen if torn is None else set())
        if state is None:
            return
        self.found.append(folder)
        if torn is None:
            self._seen.add(state)
        else:
            path, size = torn
            os.truncate(folder / path.parent.name / path.name, size)

    def _copy(self, folder: Path, known: Set[_State]) -> _State | None:
        """Copy the folders as they are at one moment; None where that state is known.

        What others write while it is copied would make a state that never was: it is copied again then.
        """
        while True:
            with suppress(FileNotFoundError, shutil.Error):
                before = self._state()
                if before in known:
                    return None
                for top in self.tops:
                    shutil.copytree(top, folder / top.name)
                if self._state() == before:
                    return before
            shutil.rmtree(folder, ignore_errors=True)

    def _state(self) -> _State:
        stats = [(str(path), path.stat()) for top in self.tops for path in top.rglob("*") if path.is_file()]
        return frozenset((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)

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
