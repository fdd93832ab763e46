"""A disk that loses at a power cut all that was not synced, and an image storage on it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batos.image.filestorage import SoundFileStorage


@dataclass
class LosingDisk:
    """Notes what each file held, and which names each folder had, when it was last synced."""

    home: Path
    _contents: dict[int, bytes] = field(default_factory=dict)
    _names: dict[int, dict[str, int]] = field(default_factory=dict)

    def sync(self, descriptor: int) -> None:
        """Note what is durable from now on."""
        path, status = Path(f"/proc/self/fd/{descriptor}").readlink(), os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            self._names[status.st_ino] = {each.name: each.lstat().st_ino for each in path.iterdir()}
        else:
            self._contents[status.st_ino] = path.read_bytes()

    def cut(self, after: Path) -> None:
        """Write to `after` what would be found after a power cut; of the image itself, its last commit."""
        after.mkdir()
        self._restore(self.home, after, {each.name: each.stat().st_ino for each in self.home.glob("*.fs")})

    def _restore(self, folder: Path, after: Path, also: dict[str, int]) -> None:
        for name, number in {**self._names.get(folder.stat().st_ino, {}), **also}.items():
            here = folder / name
            if here.is_dir():
                (after / name).mkdir()
                self._restore(here, after / name, {})
            elif name in also:
                (after / name).write_bytes(here.read_bytes())
            else:
                (after / name).write_bytes(self._contents.get(number, b""))

    def cut_whole(self, after: Path, *databases: str) -> None:
        """Write to `after` what would be found after a power cut; of every file only what was synced."""
        after.mkdir()
        self._restore(self.home, after, {})
        for name in databases:  # a database whose folder was never synced is not found
            number = (self.home / name).stat().st_ino
            if (after / name).exists():
                (after / name).write_bytes(self._contents.get(number, b""))


@dataclass
class Losing:
    """Opens an image on such a disk; the power is cut in the moment in which a commit with a blob became durable."""

    home: Path
    after: Path
    #: Where each blob was written before it was put into its place.
    written: list[Path] = field(default_factory=list)

    def __call__(self) -> SoundFileStorage:
        """Open the storage."""
        watched, disk = self, LosingDisk(self.home)

        class Storage(SoundFileStorage):
            def _blob_storeblob(self, oid: bytes, serial: bytes, blobfilename: str) -> None:
                watched.written.append(Path(blobfilename))
                super()._blob_storeblob(oid, serial, blobfilename)

            def _finish(self, tid: bytes, *also: Any) -> None:
                super()._finish(tid, *also)
                if watched.written and not watched.after.exists():
                    disk.cut(watched.after)

        return Storage(str(self.home / "live_image.fs"), blob_dir=str(self.home / "blobs"), sync=disk.sync)
