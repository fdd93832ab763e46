"""A pack that was cut off: the file that it was about to replace is put back, before the storage opens it."""

from __future__ import annotations

from pathlib import Path

import structlog
from zc.lockfile import LockFile

_log = structlog.get_logger("batos.image")


def is_put_aside(file: Path) -> bool:
    """Test if a pack has put a file aside, and nothing into its place yet.

    A former file alone is no sign of that: a person may have named it so.
    """
    return not file.exists() and all(Path(f"{file}{suffix}").exists() for suffix in (".old", ".pack"))


def settle(path: str) -> bool:
    """Put a file back that a pack had put aside, and drop the half of its successor.

    ZODB writes the new file beside the old one, puts the old one aside and the new one into its place, and removes
    blobs and the old one last. Returns whether it had come as far as that last part, which the caller has to do then.

    Raises: LockError: another process has the file.
    """
    file, former, packed = Path(path), Path(f"{path}.old"), Path(f"{path}.pack")
    if not (former.exists() or packed.exists()):
        return False
    lock = LockFile(f"{path}.lock")  # whoever packs just now has no file for a moment
    try:
        was_replaced = file.exists() and former.exists() and not packed.exists()
        if is_put_aside(file):
            former.rename(file)
            _log.warning("image.pack_undone", file=path)
        if file.exists():
            packed.unlink(missing_ok=True)
    finally:
        lock.close()
    return was_replaced
