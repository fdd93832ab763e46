"""ZODB's file storage, made to survive a full disk, a quota, a crash, a damaged file, and what other programs do."""

from __future__ import annotations

import fcntl
import io
import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from zc.lockfile import LockError
from ZODB.blob import LAYOUT_MARKER
from ZODB.FileStorage.FileStorage import FileStorage, FileStorageQuotaError, TempFormatter
from ZODB.FileStorage.format import CorruptedError, DataHeader
from ZODB.FileStorage.fspack import FileStoragePacker
from ZODB.utils import z64

from batos import home_folder
from batos.image import unclean_close
from batos.image.unclean_close import read_index, settle_tail
from batos.protocol.errors import DiskFull, ImageDamaged


def is_full(error: BaseException) -> bool:
    """Return True if this error, or one that led to it, says that a disk, a limit or the storage's quota is full."""
    return _quota(error) is not None or home_folder.no_room(error)


def disk_full(error: BaseException, path: Path | None, needed: int | None = None) -> DiskFull:
    """Return the error for a commit to `path` that did not fit: the bytes it needs, the bytes free, the remedy."""
    quota = _quota(error)
    if quota is None:
        return home_folder.disk_full(error, path, needed)
    return home_folder.disk_full_error(
        str(quota), path, needed, f"Raise `quota` in the image's URI, {home_folder.SAFE}"
    )


def _quota(error: BaseException) -> FileStorageQuotaError | None:
    return next((each for each in home_folder.causes(error) if isinstance(each, FileStorageQuotaError)), None)


#: Files that FileStorage opens beside its own, some of them for writing.
_BESIDE = (".lock", ".tmp", ".index", ".index.index_tmp", ".pack", ".old")

#: Makes what a descriptor names durable, as os.fsync does; an argument, so that a test can lose what was not synced.
Sync: TypeAlias = Callable[[int], None]


def fsync(descriptor: int) -> None:
    """Make what a descriptor names durable."""
    os.fsync(descriptor)


#: The most headers of records that are remembered.
_REMEMBERED = 4096

#: The file in the folder of blobs in which a pack notes those that are to go.
_REMOVED = ".removed"

#: Where the first transaction of a file begins, and where in a transaction its status stands.
BEGIN, _STATUS_AT = 4, 16


class SoundFileStorage(FileStorage):
    """A FileStorage for which a full disk is an error like any other, and which loses nothing in silence.

    The file itself is locked as well as the file beside it, the index is read without unpickling it, and what stands
    behind the last commit that the index knows is looked at before anything is cut off (`tail.settle`).

    FileStorage's own buffers keep what could not be written, so the truncation after a failed write fails as the
    write did: half a transaction stays in the file, every later commit fails, and so does close, which keeps the lock.
    Here the buffer is thrown away and the file cut back to its last commit; what a commit gathers before its vote
    waits in memory and not in a second file. (The private names used are those of ZODB 6; tests fill the disk.)

    ZODB renames or copies a blob into its place and syncs nothing of it. Here its content, its name and each folder
    above it are on the disk before the vote, so no commit that survives names a blob that does not. `sync` is the seam.

    ZODB syncs a commit while it holds the locks of all readers. Here the commit is finished on the disk first, while
    others go on reading what was there before; then, in a moment, they see it.
    """

    #: True until a store has read the header of the record that it replaces; never where files are only read.
    _storing = False
    #: Called at each record of a pack with its bytes; whatever it raises ends the pack, and the file stays.
    _heed: Callable[[int], object] = staticmethod(lambda size: None)

    def __init__(self, path: str, *, quota: int | None = None, blob_dir: str | None = None, sync: Sync = fsync) -> None:
        check_beside(path)
        was_packed = unclean_close.settle_pack(path)
        self._made = not Path(path).exists()
        self._held = -1
        self._sync = sync
        #: The error of the sync that is to be raised in the finish under way.
        self._unsynced: BaseException | None = None
        #: Headers of the records that were committed last, by their place in the file that goes with them.
        self._headers: dict[int, DataHeader] = {}
        self._headers_of: object = None
        try:
            super().__init__(path, quota=quota, blob_dir=blob_dir)
        except BaseException:
            self._let_go()
            raise
        finally:
            Path(f"{path}.tmp").unlink(missing_ok=True)
        # No copy of what was packed away stays beside the file: it is meant to be gone.
        self.pack_keep_old = False
        self._tfile.close()
        self._clear_temp()
        if self._made:
            self._file.flush()
            # A commit syncs the file; only this makes sure that the file is found again.
            _sync_path(Path(path).absolute().parent, sync)
        if blob_dir is not None:
            self._settle_blobs(Path(blob_dir).absolute())
            if was_packed and (Path(blob_dir) / _REMOVED).exists():
                self._remove_blob_files_tagged_for_removal_during_pack()
                Path(f"{path}.old").unlink()

    def _settle_blobs(self, top: Path) -> None:
        """Remove what a killed process was writing, and make the folder of the blobs one that is found again."""
        for left in (top / "tmp").iterdir():
            if not left.is_dir():
                left.unlink()
        for path in (top / LAYOUT_MARKER, top, top.parent):
            _sync_path(path, self._sync)

    def _blob_storeblob(self, oid: bytes, serial: bytes, blobfilename: str) -> None:
        """Put a blob into its place and sync it there: the content first, then each folder that may be new."""
        super()._blob_storeblob(oid, serial, blobfilename)
        blob, top = Path(self.fshelper.getBlobFilename(oid, serial)), Path(self.fshelper.base_dir)
        _sync_path(blob, self._sync)
        for folder in blob.parents:
            _sync_path(folder, self._sync)
            if folder == top:
                return

    def _restore_index(self) -> tuple[Any, int, bytes] | None:
        """Return index, position and last transaction id to begin with. ZODB calls this after opening and before
        reading the file.

        Raises: LockError: another process has the file. ImageDamaged: the file is not what was written.
        """
        self._hold()
        path = Path(self._file_name)
        known = self._read_known_index(path)
        _, start, last = known or (None, BEGIN, z64)
        settle_tail(self._file, path, start, last)
        return known

    def _read_known_index(self, path: Path) -> tuple[Any, int, bytes] | None:
        found = read_index(Path(f"{path}.index"))
        if found is None:
            return None
        position, index = found
        size = path.stat().st_size
        if position > size and not self._made:
            raise ImageDamaged(
                f"{path} has {size:,} bytes, and {position:,} when it was closed: its end is missing",
                remedy=f"Restore its last backup. If this file is that backup, remove {path}.index.",
            )
        try:
            last = self._sane(index, position)
        except (CorruptedError, ValueError, struct.error):
            return None
        return (index, position, last) if last else None

    def _hold(self) -> None:
        """Lock the file itself: the lock file can be deleted, and then made again by another process."""
        held = os.open(self._file_name, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(held)
            raise LockError(f"{self._file_name} is locked") from error
        self._release()
        self._held = held

    def _release(self) -> None:
        held, self._held = self._held, -1
        if held >= 0:
            os.close(held)

    @contextmanager
    def heeding(self, heed: Callable[[int], object]) -> Iterator[None]:
        """Call this at each record of a pack, with the bytes that are done: each three times."""
        self._heed = heed
        try:
            yield
        finally:
            del self._heed

    def pack(self, t: float, referencesf: Callable[..., Any], gc: bool | None = None) -> None:
        """Pack; the file is another one afterwards, unless there was nothing to take away."""
        # A crash between the two renames would leave an index that knows of more than there is.
        self._clear_index()
        super().pack(t, referencesf, gc)
        if not os.path.samestat(Path(self._file_name).stat(), os.fstat(self._held)):
            self._hold()

    @staticmethod
    def packer(storage: SoundFileStorage, referencesf: Callable[..., Any], stop: bytes, gc: bool) -> Any:
        """Write the packed file, and sync it: ZODB puts it into the place of the other one and syncs nothing."""
        packer = _HeedfulPacker(storage, referencesf, stop, gc, storage._heed)
        try:
            position = packer.pack()
        finally:
            packer.close()
        if position is None:
            return None
        try:
            _sync_path(Path(f"{storage._file_name}.pack"), storage._sync)
        except BaseException:
            storage._commit_lock.release()  # which the packer took, and gives to who puts the file into its place
            raise
        return position, packer.index

    def _clear_temp(self) -> None:
        """Empty the buffer that gathers a transaction's records. ZODB calls this before and after each transaction."""
        self._tindex.clear()
        self._tfile = io.BytesIO()
        self._tfmt = TempFormatter(self._tfile)

    def store(self, oid: bytes, oldserial: bytes, data: bytes, version: str, transaction: object) -> None:
        """Take a record. ZODB reads the header of the one that it replaces, to see whose that is; most are known here.

        Each read of the file would let another thread go on first, so that a commit waited for the loop many times.
        """
        with self._lock:
            self._storing = True
            try:
                super().store(oid, oldserial, data, version, transaction)
            finally:
                self._storing = False

    def _read_data_header(self, pos: int, oid: bytes | None = None, _file: object = None) -> Any:
        if _file is None and self._storing:  # the lock is held: a reader without it has a file of its own
            self._storing = False
            # Packed or cut back, it is another file, where other records stand.
            known = self._headers.get(pos) if self._headers_of is self._file else None
            if known is not None and known.oid == oid:
                return known
        return super()._read_data_header(pos, oid, _file)

    def tpc_vote(self, transaction: object) -> Any:
        """Write the transaction; raises DiskFull, naming the bytes that it needs, when they do not fit."""
        size = self._thl + self._tfile.tell() + 8
        try:
            return super().tpc_vote(transaction)
        except BaseException as error:
            with self._lock:
                if transaction is self._transaction:
                    self._cut_back()
            if is_full(error):
                raise disk_full(error, Path(self._file_name), size) from error
            raise

    def tpc_finish(self, transaction: object, f: Callable[[bytes], object] | None = None) -> Any:
        """Make the transaction durable while others read, then let them see it; `f` is called with its id before that.

        Closes the storage if that fails, since nobody knows then what is on the disk.
        """
        with self._lock:
            ours = transaction is self._transaction
        try:
            if ours:
                self._finish_on_disk()
        except BaseException as error:  # raised where ZODB expects it, which also gives the commit's lock back
            self._unsynced = error
        return super().tpc_finish(transaction, f)

    def _finish_on_disk(self) -> None:
        """Mark the transaction as finished, and sync it. No other can be written: the lock of the commit is held."""
        with self._lock:
            self._file.seek(self._pos + _STATUS_AT)
            self._file.write(self._tstatus.encode())
            self._file.flush()
        self._sync(self._file.fileno())

    def _finish(self, tid: bytes, *_: bytes) -> None:
        try:
            self._finish_finish(tid)
        except BaseException:
            self.close()
            raise

    def _finish_finish(self, tid: bytes) -> None:
        """Let others see the transaction; ZODB calls this under the locks of all readers."""
        if self._unsynced is not None:
            raise self._unsynced
        self._pos, self._ltid = self._nextpos, tid
        self._index.update(self._tindex)
        if self._headers_of is not self._file:
            self._headers_of, self._headers = self._file, {}
        self._headers.update((place, DataHeader(oid, tid, 0, 0, 0, 1)) for oid, place in self._tindex.items())
        while len(self._headers) > _REMEMBERED:
            del self._headers[next(iter(self._headers))]
        self._blob_tpc_finish()

    def _cut_back(self) -> None:
        """Forget what is buffered and cut the file back to its last commit."""
        self._file.raw.close()
        os.truncate(self._file_name, self._pos)
        self._file = Path(self._file_name).open("r+b")  # noqa: SIM115 - closed with the storage
        # The buffers of readers may hold bytes that were cut off.
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
        self._release()

    def _let_go(self) -> None:
        """Give back what an opening that failed has taken: an error that is kept would keep the lock."""
        for name in ("_file", "_files", "_tfile", "_lock_file"):
            part = getattr(self, name, None)
            if part is not None:
                part.close()
        self._release()


class _HeedfulPacker(FileStoragePacker):
    """Writes a packed file; at each record it says how many bytes it has read."""

    def __init__(
        self,
        storage: SoundFileStorage,
        referencesf: Callable[..., Any],
        stop: bytes,
        gc: bool,
        heed: Callable[[int], object],
    ) -> None:
        super().__init__(storage, referencesf, stop, gc)
        self._heed = heed
        # The search for what can be reached reads the same file, before it is copied.
        self.gc._read_data_header = self._read_data_header

    def _read_data_header(self, pos: int, oid: bytes | None = None) -> Any:
        header = super()._read_data_header(pos, oid)
        self._heed(header.recordlen())
        return header


def files_of(path: Path) -> list[Path]:
    """Return a file and those that FileStorage opens beside it."""
    return [path, *(Path(f"{path}{suffix}") for suffix in _BESIDE)]


def check_beside(path: str) -> None:
    """Raise ImageDamaged if what will be opened beside the file is no plain file: a link would lead a write astray."""
    for suffix in _BESIDE:
        beside = Path(path + suffix)
        try:
            plain = stat.S_ISREG(beside.lstat().st_mode)
        except OSError:
            continue
        if not plain:
            raise ImageDamaged(f"{beside} is no plain file", remedy=f"Inspect it, then remove {beside}.")


def _sync_path(path: Path, sync: Sync) -> None:
    """Make the content of a file durable, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
