"""ZODB's file storage, made to survive a write that does not fit: a failed commit leaves everything as it was."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from ZODB.FileStorage.FileStorage import FileStorage, TempFormatter

from batos.image.room import disk_full, no_room


class SoundFileStorage(FileStorage):
    """A FileStorage for which a full disk is an error like any other.

    FileStorage's own buffers keep what could not be written, so the truncation after a failed write fails as the
    write did: half a transaction stays in the file, every later commit fails, and so does close, which keeps the lock.
    Here the buffer is thrown away and the file cut back to its last commit; what a commit gathers before its vote
    waits in memory and not in a second file. (The private names used are those of ZODB 6; tests fill the disk.)
    """

    def __init__(self, path: str, *, quota: int | None = None, blob_dir: str | None = None) -> None:
        made = not Path(path).exists()
        try:
            super().__init__(path, quota=quota, blob_dir=blob_dir)
        except BaseException:
            self._let_go()
            raise
        self._tfile.close()
        Path(f"{path}.tmp").unlink(missing_ok=True)
        self._clear_temp()
        if made:
            self._file.flush()
            # A commit syncs the file; only this makes sure that the file is found again.
            sync_folder(Path(path).absolute().parent)

    def _clear_temp(self) -> None:
        """Called before and after each transaction: what it gathers goes here."""
        self._tindex.clear()
        self._tfile = io.BytesIO()
        self._tfmt = TempFormatter(self._tfile)

    def tpc_vote(self, transaction: Any) -> Any:
        """Write the transaction; raises DiskFull, naming the bytes that it needs, when they do not fit."""
        size = self._thl + self._tfile.tell() + 8
        try:
            return super().tpc_vote(transaction)
        except BaseException as error:
            with self._lock:
                if transaction is self._transaction:
                    self._cut_back()
            if no_room(error):
                raise disk_full(error, Path(self._file_name), size) from error
            raise

    def _cut_back(self) -> None:
        """Forget what is buffered and cut the file back to its last commit."""
        self._file.raw.close()
        os.truncate(self._file_name, self._pos)
        self._file = Path(self._file_name).open("r+b")  # noqa: SIM115 - closed with the storage
        # What readers have buffered may be of what was cut off.
        self._files.flush()

    def _abort(self) -> None:
        voted = self._nextpos
        super()._abort()
        if not voted:
            # FileStorage takes blobs back only after a vote, but they are in place before it.
            self._blob_tpc_abort()

    def close(self) -> None:
        """Close, also after a write that failed; closing twice is harmless."""
        if not self._file.closed:
            try:
                self._file.flush()
            except OSError:  # what could not be written is part of no commit
                self._file.raw.close()
        super().close()

    def _let_go(self) -> None:
        """Give back what an opening that failed has taken: an error that is kept would keep the lock."""
        for name in ("_file", "_files", "_tfile", "_lock_file"):
            part = getattr(self, name, None)
            if part is not None:
                part.close()


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
