"""Backups of a home, also beside a running server, and their restoration; ZODB's own `repozo` copies the databases.

The image is copied first, and the journal after it. Both are append-only, and every commit has the time in its id. The
journal of a restored pair ends with the image's last commit, or with the last one that the journal had before the image
was copied: both are of one moment, whatever was written meanwhile.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ZODB.FileStorage import FileIterator

from batos.care.database_copies import (
    copy_database,
    hold_folder,
    last_commit,
    last_copied_commit,
    recover_database,
    sync_files,
)
from batos.care.disarming import disarm_file
from batos.care.plain_folders import check_plain, has_harmless_settings
from batos.config import CONFIG_FILE
from batos.image.ids import iso, serial_of, utc_now
from batos.image.views.past import moment_of
from batos.protocol.care_documents import RestorationReport
from batos.protocol.errors import NotFound, Refused, UsageError

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

    Raises: UsageError: the folder cannot be written, or is in the home. NotFound: the home has no image in a file.
    Busy: another backup is being made there.
    """
    image, journal = (home / name for name in _DATABASES.values())
    if not image.exists() or not journal.exists():
        raise NotFound(f"{home} has no image in a file", field="image", remedy="`batos genesis` makes one.")
    if not beside and folder.resolve().is_relative_to(home.resolve()):
        raise UsageError(f"{folder} is in the home", field="folder", remedy="Name a folder elsewhere, on another disk.")
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
