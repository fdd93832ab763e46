"""The sink that appends to files below a folder, and writes new ones there."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

from batos.agency.payloads import path_parts
from batos.agency.records.effect_records import EffectData, SinkClass
from batos.agency.sinks import Check, EffectDelayed, EffectRefused, Outcome, check_nothing
from batos.protocol.errors import ObjectError, Refused

#: Errors after which a later attempt may go well.
_PASSING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
#: Bytes behind the place of an append that are searched for it, since other programs append too.
_SEARCHED: Final = 16 * 2**20

#: Raises Refused for a folder in which nothing may be written here.
Guard: TypeAlias = Callable[[Path], None]


def guard_nothing(folder: Path) -> None:
    """Let a folder be opened."""


class _FolderMissingError(FileNotFoundError):
    """A folder of a path is not there, perhaps only now: what stands in it cannot be known."""


class _LeftoverError(Exception):
    """An append that failed and may have left something in the file."""


class FileSink:
    """Appends texts to regular files below a folder, and writes whole new ones there, never over one that is there.

    No link is followed below the folder, and nothing is created but files.
    """

    sink: SinkClass = "queryable"

    def __init__(self, folder: Path, guard: Guard = guard_nothing) -> None:
        """Create it. `guard` is asked each time before the folder is opened."""
        self._folder, self._guard = folder, guard

    def prepare(self, effect: EffectData) -> dict[str, object]:
        """Return the size of the file, behind which what is appended stands, and what tells it from another.

        A new file is not there yet, or has the beginning that an earlier attempt at the same effect left.

        Raises: EffectRefused, EffectDelayed.
        """
        try:
            with self._open(effect, os.O_RDONLY) as file:
                found = os.fstat(file)
                if _is_whole(effect):
                    _refuse_other(effect, _read_from(file, _data(effect)), is_begun=effect["before"] is not None)
                    return {"size": 0}
                return {"size": found.st_size, **_identity(found)}
        except FileNotFoundError:
            return {"size": 0}

    def release(self, effect: EffectData, check: Check = check_nothing) -> Outcome:
        """Append the text, or write it as a new file, and see that it is on the disk.

        Raises: EffectRefused, EffectDelayed: nothing of it stands there. After any other error something may.
        """
        data = _data(effect)
        try:
            if _is_whole(effect):
                check()  # before there is a file
                self._write_new(effect, data)
            else:
                with self._open(effect, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
                    begun = os.fstat(file).st_size
                    check()
                    _append(file, data, begun)
        except FileNotFoundError as error:
            what = f"{effect['payload']['path']}: a folder of this path is not there"
            raise EffectRefused(what, remedy="Make the folder, then ask again.") from error
        return {"bytes": len(data)}

    def _write_new(self, effect: EffectData, data: bytes) -> None:
        """Write a file that is not there yet, or the rest of one that an earlier attempt began."""
        is_first = effect.get("attempts", 1) <= 1
        with self._open(effect, os.O_RDWR | os.O_APPEND | os.O_CREAT | (os.O_EXCL if is_first else 0)) as file:
            found = _read_from(file, data)
            _refuse_other(effect, found, is_begun=True)
            _append(file, data[len(found) :], len(found))

    def find(self, effect: EffectData) -> Outcome | None:
        """Return what came of an effect: the text stands behind the size that was noted, or is the whole new file.

        None: it surely does not.

        Of a text that was cut in the middle the rest is appended.

        Raises: EffectDelayed: folder or file cannot be opened now, or the file is not the one whose size was noted.
        """
        data, before = _data(effect), effect["before"] or {}
        size = int(before.get("size", 0))
        try:
            with self._open(effect, os.O_RDWR | os.O_APPEND) as file:
                now = os.fstat(file)
                if any(before.get(name, value) != value for name, value in _identity(now).items()):
                    raise _unreadable(effect, "it is another file than it was")
                if now.st_size < size:
                    raise _unreadable(effect, "it is shorter than it was")
                found = os.pread(file, _SEARCHED + len(data), size)
                if found == data if _is_whole(effect) else data in found:
                    return {"bytes": len(data), "found": True}
                if _is_whole(effect) and not data.startswith(found):
                    raise _unreadable(effect, "it has another text than it was given")
                if (found or _is_whole(effect)) and data.startswith(found):
                    _append(file, data[len(found) :], size + len(found))
                    return {"bytes": len(data), "completed": len(data) - len(found)}
        except _FolderMissingError as error:
            raise _unreadable(effect, "its folder is not there") from error
        except FileNotFoundError as error:
            if size:
                raise _unreadable(effect, "it is not there any more") from error
        except EffectRefused as error:
            raise EffectDelayed(error.message, remedy=error.remedy) from error
        return None

    @contextmanager
    def _open(self, effect: EffectData, flags: int) -> Iterator[int]:
        """Open the effect's file, folder by folder without following a link.

        Raises: FileNotFoundError: it, or a folder, is not there. EffectRefused, EffectDelayed: it cannot be opened, or
        what was done with it failed and left nothing.
        """
        path = effect["payload"]["path"]
        held: list[int] = []
        try:
            *folders, name = path_parts(path)
            self._guard(self._folder)
            held.append(os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
            for each in folders:
                held.append(os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held[-1]))
            # Not blocking: a pipe in the place of a file would wait for its reader for ever.
            held.append(os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644, dir_fd=held[-1]))
            _refuse_strange(path, os.fstat(held[-1]))
            if flags & os.O_CREAT:  # before anything is written: an error after that would say that nothing was
                os.fsync(held[-2])
            yield held[-1]
        except ObjectError as error:
            raise EffectRefused(error.message, remedy="Name a file below the granted folder.") from error
        except Refused as error:
            raise EffectRefused(error.message, remedy=error.remedy) from error
        except FileNotFoundError as error:
            if len(held) <= len(folders):  # none was opened but folders, and not all of them
                raise _FolderMissingError(*error.args) from error
            raise
        except FileExistsError as error:
            raise _there_already(effect) from error
        except OSError as error:
            kind = EffectDelayed if error.errno in _PASSING else EffectRefused
            remedy = "Make room, or see to the file's permissions."
            raise kind(f"{path} cannot be written: {error.strerror}", remedy=remedy) from error
        finally:
            for file in held:
                os.close(file)


def _refuse_strange(path: str, found: os.stat_result) -> None:
    """Raise EffectRefused for what is no plain file of its own: a pipe, a program, or a file with a second name."""
    why = "no regular file" if not stat.S_ISREG(found.st_mode) else "a program" if found.st_mode & 0o111 else ""
    why = why or ("a file with a second name, which may stand in another folder" if found.st_nlink > 1 else "")
    if why:
        raise EffectRefused(f"{path} is {why}", remedy="Name another file.")


def _is_whole(effect: EffectData) -> bool:
    """Test if an effect writes a whole new file."""
    return effect["operation"] == "effect.write"


def _read_from(file: int, data: bytes) -> bytes:
    """Return the beginning of a file, a byte more than the data may have."""
    return os.pread(file, len(data) + 1, 0)


def _refuse_other(effect: EffectData, found: bytes, *, is_begun: bool) -> None:
    """Raise EffectRefused for a file that is there already, unless an earlier attempt may have left it so."""
    if not is_begun or not _data(effect).startswith(found):
        raise _there_already(effect)


def _there_already(effect: EffectData) -> EffectRefused:
    what = f"{effect['payload']['path']} is there already, and no file is written over"
    return EffectRefused(what, remedy="Name a new file, or append to this one.")


def _unreadable(effect: EffectData, why: str) -> EffectDelayed:
    what = f"{effect['payload']['path']} cannot be read back: {why}"
    return EffectDelayed(what, remedy="Bring back the folder, or the file, as it was.")


def _identity(found: os.stat_result) -> dict[str, int]:
    """Return what tells a file from another one under its name: a log that was rotated may have grown again."""
    return {"device": found.st_dev, "inode": found.st_ino}


def _data(effect: EffectData) -> bytes:
    return str(effect["payload"]["text"]).encode()


def _append(file: int, data: bytes, size: int) -> None:
    """Append all bytes and see that they are on the disk.

    Raises: OSError: nothing of them stands there. _LeftoverError: something may, and is found there, whole or cut.
    """
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    except OSError as error:
        if written := len(data) - len(left):
            _take_back(file, written, size, error)
        raise


def _take_back(file: int, written: int, size: int, why: OSError) -> None:
    """Cut off what was appended behind a size. Raises: _LeftoverError: another program appended too, or it fails."""
    with suppress(OSError):
        if os.fstat(file).st_size == size + written:
            os.ftruncate(file, size)
            return
    raise _LeftoverError(f"an append failed and was not taken back: {why.strerror}") from why
