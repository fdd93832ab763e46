"""The copies of a database in the folder of a backup, which ZODB's own `repozo` makes, and their way back into a file.

A `.dat` file beside a full copy lists it and each later addition with its size and MD5. repozo puts a file into place
before it writes the line: a copy that was cut off in between has no line, and nothing is added to it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from ZODB.FileStorage import FileStorage
from ZODB.scripts import repozo

from batos.image.ids import tid_text
from batos.protocol.errors import BatosError, Busy

#: The file in a folder of backups that is locked while one is made.
_LOCK: Final = "backup.lock"
#: Errors of a file system that has no locks.
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_COPIES: Final = (".fs", ".deltafs")


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Keep other processes from making a backup in a folder meanwhile. Raises: Busy: one does."""
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        what = f"another backup is being made in {folder}"
        raise Busy(what, field="folder", remedy="Wait for its end, or name another folder.") from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            os.close(descriptor)
            raise
    try:
        yield
    finally:
        os.close(descriptor)


def copy_database(file: Path, folder: Path, *, full: bool) -> str:
    """Copy what a folder lacks of a database, or all of it; return the time by which repozo names this state."""
    before = {each.name for each in folder.iterdir()}
    while any(name.startswith(time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime())) for name in before):
        time.sleep(0.1)  # repozo names its files by the second
    everything = full or not _is_whole(folder)
    repozo.do_backup(_options("-B", folder, "-f", str(file), *(["-F"] if everything else [])))
    sync_files(folder, {each.name for each in folder.iterdir()} - before)
    return max(each.name for each in _list_copies(folder)).partition(".")[0]


def _options(mode: str, folder: Path, *more: str) -> Any:
    return repozo.parseargs([mode, "-r", str(folder), *more])


def _list_copies(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if each.suffix in _COPIES]


def _is_whole(folder: Path) -> bool:
    """Test if the newest full copy and each addition to it stand in their list with their size."""
    files = _find_copies(folder)
    listed = _read_list(files)
    return all(each.stat().st_size == listed.get(each.name, (-1, ""))[0] for each in files)


def _find_copies(folder: Path, *until: str) -> list[Path]:
    """Return a full copy and its additions, of which the newest state is made, or that of a time (`-D`, stamp)."""
    return [Path(each) for each in repozo.find_files(_options("-R", folder, *until))]


def _read_list(files: list[Path]) -> dict[str, tuple[int, str]]:
    """Return size and MD5 of each copy that the list of a full one has; a line that was cut off is none."""
    path = files[0].with_suffix(".dat") if files else None
    text = path.read_text(encoding="utf-8", errors="replace") if path and path.exists() else ""
    found = {}
    for line in text.split("\n")[:-1]:
        with suppress(ValueError):
            name, start, end, digest = line.rsplit(maxsplit=3)  # the path may have blanks
            found[Path(name).name] = int(end) - int(start), digest
    return found


def recover_database(folder: Path, stamp: str, target: Path) -> None:
    """Write the state that repozo names by a time to a file. Raises: BatosError: the copies of it are damaged."""
    files = _find_copies(folder, "-D", stamp)
    listed = _read_list(files)
    with target.open("wb") as out:
        wrong = [each.name for each in files if repozo.concat([str(each)], out) != listed.get(each.name)]
    if wrong or not files:
        what = f"the backup in {folder.parent} is damaged: {', '.join(wrong) or 'it has no copy of ' + stamp}"
        raise BatosError(what, remedy="Restore an earlier one: `batos restore DIR --at WHEN`.")


def sync_files(folder: Path, names: set[str]) -> None:
    """Bring files of a folder and the folder itself to the disk."""
    for name in (*sorted(names), "."):
        descriptor = os.open(folder / name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def last_copied_commit(folder: Path) -> str:
    """Return the last commit in the copies of a database; an addition may be empty."""
    newest = max((each for each in _list_copies(folder) if each.stat().st_size), key=lambda each: each.name)
    return _commit_before(newest, newest.stat().st_size)


def last_commit(file: Path) -> str:
    """Return the last commit in a database's file, which another process may be writing."""
    with closing(FileStorage(str(file), read_only=True)) as opened:
        end = opened.getSize()  # a commit that is half written is behind it
    return _commit_before(file, end)


def _commit_before(path: Path, end: int) -> str:
    """Return the commit that ends at a place of a file; behind each one stands its length."""
    with path.open("rb") as file:
        behind = file.seek(end - 8)
        length = int.from_bytes(file.read(8), "big")
        file.seek(behind - length)
        return tid_text(file.read(8))
