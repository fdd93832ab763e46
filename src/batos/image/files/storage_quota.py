"""Tell that a database has no room: its disk is full, or the quota that its URI sets is reached."""

from __future__ import annotations

from pathlib import Path

from ZODB.FileStorage.FileStorage import FileStorageQuotaError

from batos import disk_full as disks
from batos.protocol.errors import DiskFull


def is_full(error: BaseException) -> bool:
    """Return True if this error, or one that led to it, says that a disk, a limit or the storage's quota is full."""
    return _quota(error) is not None or disks.no_room(error)


def disk_full(error: BaseException, path: Path | None, needed: int | None = None) -> DiskFull:
    """Return the error for a commit to `path` that did not fit: the bytes it needs, the bytes free, the remedy."""
    quota = _quota(error)
    if quota is None:
        return disks.disk_full(error, path, needed)
    return disks.disk_full_error(str(quota), path, needed, f"Raise `quota` in the image's URI, {disks.SAFE}")


def _quota(error: BaseException) -> FileStorageQuotaError | None:
    return next((each for each in disks.causes(error) if isinstance(each, FileStorageQuotaError)), None)
