"""The folder that holds everything: its place, its owner, small files written whole, and what a full disk means."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from batos.protocol.errors import ConfigError, DiskFull

#: The variable by which a person trusts a home whose owner or rights say nothing.
TRUSTED: Final = "BATOS_TRUST_HOME"
_NO_OWNERS: Final = f"Where the file system has no such rights, and only you reach it: {TRUSTED}=1."
#: The folder of the package that runs.
PACKAGE: Final = Path(__file__).resolve().parent


def find_home(environ: Mapping[str, str], named: str | Path | None, package: Path = PACKAGE) -> tuple[Path, str]:
    """Return the home, and where that came from: `named` (the flag), the environment, or a default.

    Raises: ConfigError: the home is below that of a user whom this machine does not know.
    """
    if named:
        return Path(named).absolute(), "flag"
    if environ.get("BATOS_HOME"):
        return _expand_path(environ["BATOS_HOME"], "BATOS_HOME").absolute(), "BATOS_HOME"
    try:
        checkout = checkout_folder(Path.cwd(), package)
    except OSError:  # a shell may stand in a folder that is gone
        checkout = None
    if checkout is not None:
        return checkout / ".batos", "default (in a checkout)"
    return _expand_path(environ.get("XDG_DATA_HOME") or "~/.local/share", "XDG_DATA_HOME") / "batos", "default"


def _expand_path(path: str, variable: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(
            f"home (from {variable}): {path!r} names the home of a user whom this machine does not know",
            field="home",
            remedy="Name a folder with --home or BATOS_HOME.",
        ) from error


def checkout_folder(here: Path, package: Path = PACKAGE) -> Path | None:
    """Return the folder at or above `here` that is the checkout of the package; None outside of that.

    A folder that only says it is one, in a pyproject.toml of ours, is none: anybody may have put that there.
    """
    for folder in (here, *here.parents):
        project = folder / "pyproject.toml"
        if project.is_file():
            is_ours = package.is_relative_to(folder.resolve()) and _project_name(project) == "batos"
            return folder if is_ours else None
    return None


def _project_name(project: Path) -> str:
    try:
        found = tomllib.loads(project.read_text(encoding="utf-8")).get("project")
    except (OSError, ValueError, RecursionError):
        return ""
    return str(found.get("name", "")) if isinstance(found, dict) else ""


def check_own(home: Path, environ: Mapping[str, str], user: int | None = None) -> None:
    """Raise ConfigError for a home that belongs to another user than `user` or root, or that others may write.

    Without `user` it is the user of this process. Whoever writes in a home decides where prompts go, and what is done
    in the name of the user who runs this. A file system that knows no owners can be trusted by the environment.
    """
    if environ.get(TRUSTED) == "1":
        return
    try:
        found = home.stat()
    except (OSError, ValueError):  # it is made later, or cannot be: whoever makes it says why
        return
    user = os.geteuid() if user is None else user
    if found.st_uid not in (0, user):
        raise ConfigError(
            f"the home {home} belongs to the user {found.st_uid}, not to {user}, who runs this",
            field="home",
            remedy=f"Run this as its owner, or name a folder of your own with --home or BATOS_HOME. {_NO_OWNERS}",
        )
    if stat.S_ISDIR(found.st_mode) and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(
            f"others may write in the home {home}",
            field="home",
            remedy=f"See that all in it is yours, then take their right: chmod go-w {home}. {_NO_OWNERS}",
        )


def unit_name(home: Path) -> str:
    """Return the name of a home's server among the units of systemd or launchd."""
    return f"batos-{hashlib.sha256(os.fsencode(home)).hexdigest()[:8]}"


def starts_with_machine(home: Path, environ: Mapping[str, str]) -> bool:
    """Test if something starts a home's server after a restart of the machine: a unit of its user, or a container's."""
    config = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    units = (
        config / "systemd" / "user" / f"{unit_name(home)}.service",
        Path.home() / "Library" / "LaunchAgents" / f"org.{unit_name(home)}.plist",
    )
    return any(each.exists() for each in (*units, Path("/.dockerenv"), Path("/run/.containerenv")))


_NO_ROOM = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})

#: The end of each remedy: nothing has to be repaired.
SAFE = "then start again; nothing committed was lost."


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and then those that led to it, each once."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def no_room(error: BaseException) -> bool:
    """Return True if this error, or one that led to it, says that a disk, a quota or a limit is full."""
    return any(_says_full(each) for each in causes(error))


def disk_full(error: BaseException, path: Path | None, needed: int | None = None) -> DiskFull:
    """Return the error for a write to `path` that did not fit: the bytes it needs, the bytes free, the remedy."""
    first = next((each for each in causes(error) if _says_full(each)), error)
    if isinstance(first, DiskFull):
        return first
    reason = getattr(first, "strerror", None) or str(first)
    return disk_full_error(reason, path, needed, _remedy(first, path, needed))


def disk_full_error(reason: str, path: Path | None, needed: int | None, remedy: str) -> DiskFull:
    """Return the error for a write that did not fit, for a reason that the system gave."""
    size = "" if needed is None else f" for {needed:,} bytes"
    free = _free(path)
    left = "" if free is None else f"; its disk has {free:,} bytes free"
    return DiskFull(f"no room{size} in {path or 'the database'} ({reason}{left})", remedy=remedy)


def _says_full(error: BaseException) -> bool:
    return isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in _NO_ROOM)


def _remedy(error: BaseException, path: Path | None, needed: int | None) -> str:
    amount = "some space" if needed is None else f"{needed:,} bytes at the least, and better much more"
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return f"Raise the limit on the size of files (ulimit -f): this needs {amount}; {SAFE}"
    return f"Free {amount}, {f'on the disk of {path.parent}' if path else 'where the database is'}, {SAFE}"


def _free(path: Path | None) -> int | None:
    if path is None:
        return None
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize


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
