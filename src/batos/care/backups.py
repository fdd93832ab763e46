"""Backups of a home, also beside a running server, and their restoration; ZODB's own `repozo` copies the databases.

A `.dat` file beside a full copy lists it and each later addition with its size and MD5. repozo puts a file into place
before it writes the line: a copy that was cut off in between has no line, and nothing is added to it.

The image is copied first, and the journal after it. Both are append-only, and every commit has the time in its id. The
journal of a restored pair ends with the image's last commit, or with the last one that the journal had before the image
was copied: both are of one moment, whatever was written meanwhile.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ZODB.FileStorage import FileIterator, FileStorage
from ZODB.scripts import repozo

from batos.care.foreign_minds import check_plain, disarm_file, has_harmless_settings
from batos.config import CONFIG_FILE
from batos.image.ids import iso, serial_of, tid_text, utc_now
from batos.image.past import moment_of
from batos.protocol.errors import BatosError, Busy, NotFound, Refused, UsageError
from batos.protocol.server_documents import RestorationReport

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


#: The list of a folder's backups, a line of JSON for each.
_LIST: Final = "backups.jsonl"
#: Files and folders of a home that a mind needs beside its databases. Keys and tokens are no part of it.
_BESIDE: Final = (CONFIG_FILE, "codex", "modelfiles")
#: The databases: the folder of a backup, and the file of a home.
_DATABASES: Final = {"image": "live_image.fs", "journal": "journal.fs"}
#: A commit, and a time by which repozo names a state.
_TID: Final = re.compile(r"tid:0x[0-9a-f]{1,16}")
_STAMP: Final = re.compile(r"\d{4}(-\d\d){5}")
#: The folder in a home in which a restoration is made ready.
_READY: Final = ".restoring"
#: The end of the name that a file or folder gets which is in the way of a restored one.
_ASIDE: Final = ".before-restore"
#: The end of the name that a backup's settings get in the home if they are not taken over.
_UNUSED: Final = ".from-backup"


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup: when it was made, the last commit of image or journal, and how repozo names its two parts."""

    at: str
    tid: str
    image: str
    journal: str
    bytes: int

    def as_dict(self) -> dict[str, Any]:
        """Return the backup as plain data."""
        return {name: getattr(self, name) for name in Backup.__slots__}


def list_backups(folder: Path) -> list[Backup]:
    """Return the backups of a folder, the oldest first; a last line that was cut off is none."""
    found: list[Backup] = []
    path = folder / _LIST
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            backup = Backup(**json.loads(line))
        except (ValueError, TypeError, RecursionError):
            continue
        if _is_sound(backup):
            found.append(backup)
    return found


def _is_sound(backup: Backup) -> bool:
    """Test if the fields of a line of the list are what they should be: anybody may have written it."""
    try:
        datetime.fromisoformat(backup.at).astimezone(UTC)
        stamps = _TID.fullmatch(backup.tid), _STAMP.fullmatch(backup.image), _STAMP.fullmatch(backup.journal)
    except (ValueError, TypeError, OverflowError):
        return False
    return all(stamps) and type(backup.bytes) is int


def make_backup(home: Path, folder: Path, *, full: bool, clock: Callable[[], datetime], beside: bool = False) -> Backup:
    """Copy what was committed since the last backup in a folder, or with `full` all; return the backup.

    With `beside` the folder may be in the home, as one that only an upgrade is undone with.

    Raises: UsageError: the folder cannot be written, is in the home, or has no name in UTF-8. NotFound: the home has no
    image in a file.
    Busy: another backup is being made there.
    """
    image, journal = (home / name for name in _DATABASES.values())
    if not image.exists() or not journal.exists():
        raise NotFound(f"{home} has no image in a file", field="image", remedy="`batos genesis` makes one.")
    if not beside and folder.resolve().is_relative_to(home.resolve()):
        raise UsageError(f"{folder} is in the home", field="folder", remedy="Name a folder elsewhere, on another disk.")
    _check_name(folder.absolute())
    try:
        for name in (*_DATABASES, "blobs", "home"):
            (folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        with hold_folder(folder):
            made = _copy_home(home, folder, full=full, at=iso(clock()))
            _append_line(folder / _LIST, json.dumps(made.as_dict()))
    except OSError as error:
        what = f"the backup cannot be written: {error}"
        raise UsageError(what, field="folder", remedy="Make room, or name another folder.") from error
    return made


def _check_name(folder: Path) -> None:
    """Test if the lists beside the copies, which are UTF-8, can name a folder. Raises: UsageError: they cannot."""
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(folder).decode(errors="replace")
        raise UsageError(f"{shown} is no name in UTF-8", field="folder", remedy="Name another folder.") from error


def _copy_home(home: Path, folder: Path, *, full: bool, at: str) -> Backup:
    """Copy databases, blobs, codex and settings, and return what the list is to tell of them."""
    # The image is copied after this, so that it has every mission of which the journal has anything by now.
    journaled = last_commit(home / _DATABASES["journal"])
    stamps = {name: copy_database(home / file, folder / name, full=full) for name, file in _DATABASES.items()}
    size = _copy_blobs(home / "blobs", folder / "blobs")
    for name in _BESIDE:
        _copy_beside(home / name, folder / "home" / name)
    last = max(journaled, last_copied_commit(folder / "image"), key=serial_of)
    return Backup(at, last, stamps["image"], stamps["journal"], size)


def _copy_blobs(source: Path, target: Path) -> int:
    """Copy the blobs that a backup lacks, and return their bytes; a blob is never changed."""
    size = 0
    for path in sorted(source.rglob("*.blob")) if source.is_dir() else ():
        there = target / path.relative_to(source)
        if not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            beside = there.with_suffix(".part")
            shutil.copyfile(path, beside)
            beside.replace(there)
            size += there.stat().st_size
    for name in (".layout",):
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
    return size


def _copy_beside(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file():
        shutil.copyfile(source, target)


def _append_line(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


# -- restoring


def find_backup(folder: Path, at: datetime | None) -> Backup:
    """Return the newest backup of a folder, or the newest that was made until a moment. Raises: NotFound."""
    found = [each for each in list_backups(folder) if at is None or datetime.fromisoformat(each.at) <= at]
    if not found:
        when = "" if at is None else f" from {iso(at.astimezone(UTC))} or before"
        raise NotFound(f"{folder} has no backup{when}", field="folder", remedy="`batos backup --list DIR` lists them.")
    return found[-1]


def restore_backup(
    folder: Path, home: Path, backup: Backup, clock: Callable[[], datetime] = utc_now
) -> RestorationReport:
    """Bring a backup back into a home that has no image; all of it is there at the end, or nothing.

    A restoration that was cut off is done again. Nothing of the home is removed: a folder or file that is in the way
    gets another name.

    The mind in it is disarmed: what it was about to do may have happened since. Returns what that took back, and the
    new names of what was in the way. Settings that name a place are put beside those of the home, and are not used: a
    backup may be a stranger's.

    Raises: Refused: the home has an image. UsageError: the backup cannot be read, or the home not be written.
    BriefError: there is a link in the backup.
    """
    check_plain(folder)
    ready = home / _READY
    # Beside what a restoration has made ready, a journal is what it had put in its place.
    if (home / _DATABASES["image"]).exists() or ((home / _DATABASES["journal"]).exists() and not ready.exists()):
        what = f"{home} has an image already"
        raise Refused(what, field="home", remedy="Name an empty home (`--home DIR`), or move the image away.")
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        ready.mkdir(mode=0o700, exist_ok=True)
        _empty(ready)
        for name, file in _DATABASES.items():
            stamp = backup.image if name == "image" else backup.journal
            recover_database(folder / name, stamp, ready / file)
        _cut_after(ready / _DATABASES["journal"], backup.tid)
        disarmed = disarm_file(ready / _DATABASES["image"], iso(clock()))
        unused = [] if has_harmless_settings(folder / "home" / CONFIG_FILE) else [f"{CONFIG_FILE}{_UNUSED}"]
        _copy_beside(folder / "blobs", ready / "blobs")
        for name in _BESIDE:
            _copy_beside(folder / "home" / name, ready / (unused[0] if unused and name == CONFIG_FILE else name))
        aside = _settle(ready, home)
    except OSError as error:
        what = f"the backup cannot be restored: {error}"
        raise UsageError(what, field="folder", remedy="See that the folder is whole; make room.") from error
    return {**disarmed, "aside": aside, "unused": unused}


def _empty(folder: Path) -> None:
    """Remove all that a folder has, and leave the folder."""
    for each in folder.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink()


def _cut_after(path: Path, tid: str) -> None:
    """Cut a database after the last commit that is not newer than one."""
    last, end = serial_of(tid), 4
    with closing(FileIterator(str(path))) as commits:
        for commit in commits:
            if commit.tid > last:
                break
            end = commit._tend + 8
    os.truncate(path, end)


def _settle(ready: Path, home: Path) -> list[str]:
    """Put what is ready in its place, and return the names that what was in the way has now.

    The image comes last, since a home without one is restored again.
    """
    aside = []
    for each in sorted(ready.iterdir(), key=lambda path: path.name == _DATABASES["image"]):
        target = home / each.name
        if target.exists():
            aside.append(_set_aside(target))
        Path(f"{target}.index").unlink(missing_ok=True)  # of another file: the database would not open with it
        each.replace(target)
    sync_files(home, set())
    ready.rmdir()
    return aside


def _set_aside(path: Path) -> str:
    """Give a file or folder of the home another name, and return that; it may be all that its owner has."""
    names = itertools.chain(
        [f"{path.name}{_ASIDE}"], (f"{path.name}{_ASIDE}-{number}" for number in itertools.count(2))
    )
    free = next(name for name in names if not os.path.lexists(path.with_name(name)))
    path.rename(path.with_name(free))
    return free


def moment_text(backup: Backup) -> str:
    """Return the moment of a backup's last commit in ISO 8601."""
    return iso(moment_of(serial_of(backup.tid)))
