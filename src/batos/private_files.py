"""Write small files whole or not at all, and read those that only their owner may have written."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from batos.disk_full import disk_full, no_room

#: Bytes of the longest file that `read` reads.
LONGEST: Final = 65_536


def write(path: Path, text: str, *, new: bool = False) -> bool:
    """Write a text in UTF-8 to a file for its owner alone, whole or not at all, and return True.

    With `new` a file that is there already stays as it is, and False is returned. Raises: DiskFull: there is no room
    for it. OSError: the file cannot be written.
    """
    try:
        return _written(path, text, 0o600, new=new)
    except OSError as error:
        if no_room(error):
            raise disk_full(error, path) from error
        raise


def write_shared(path: Path, text: str) -> None:
    """Write a text in UTF-8 to a file that everybody may read whom the umask allows, whole or not at all.

    Raises: OSError: the file cannot be written.
    """
    _written(path, text, 0o666, new=False)


def _written(path: Path, text: str, mode: int, *, new: bool) -> bool:
    beside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if new:
            os.link(beside, path)
        else:
            beside.replace(path)
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    return True


def read(path: Path) -> bytes:
    """Return the content of a small file that belongs to this user or to root.

    Raises: OSError: there is no file, none that is regular, a longer one than `LONGEST`, or a stranger's.
    """
    # A pipe is not waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LONGEST:
            raise OSError(errno.EINVAL, "it is not a small file", str(path))
        if found.st_uid not in {0, os.geteuid()}:
            raise PermissionError(errno.EPERM, f"it belongs to the user {found.st_uid}", str(path))
        return file.read(LONGEST)
