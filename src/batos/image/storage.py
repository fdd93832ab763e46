"""A storage URI opens a database: file, memory, zeo or postgres; an erasure knows the bytes that stay in one."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

import zodburi
from transaction.interfaces import TransientError
from zc.lockfile import LockError
from ZODB.DB import DB
from ZODB.interfaces import IBlobStorage
from ZODB.MappingStorage import MappingStorage

from batos.image.classes import OPENING, REMEDY, class_factory
from batos.image.database import LoadableDB, ReaderLimit
from batos.image.filestorage import SoundFileStorage, disk_full, files_of, is_full
from batos.image.nodes.storage_servers import count_sessions, not_there, resolve_postgres, resolve_zeo, vacuum_postgres
from batos.notation import mask_passwords
from batos.protocol.errors import BatosError, ConfigError, ImageBusy, ImageDamaged, ImageError

#: Opens the storage that a URI names; an argument, so that a test can count or break what it does.
StorageFactory: TypeAlias = Callable[[], Any]

#: Objects that the caches of all missions hold together.
_CACHED_OBJECTS = 40_000
#: Bytes of their records, as stored, that they hold together: a thought is a hundred times as large as a status. Loaded
#: they take some four times as much.
CACHED_BYTES = 16 * 2**20

#: Connections beside those of missions: the writers', and those of readers; and where several nodes have the storage,
#: those that look at it and write what is shared.
_BESIDE, _BESIDE_SHARED = 4, 8
#: Of these, those of reading threads; the others are of the two writers, of the lease, of a change of the publisher,
#: and of the event loop.
_READERS = 3
#: Connections of missions to a journal on a server: they read it one after another.
_READING = 2

_FILE_KEYWORDS = ("blobstorage_dir", "quota")
#: The keywords that name folders with data: of blobs, and of caches.
_FOLDERS = ("blobstorage_dir", "blob_dir", "cache_local_dir")


def journal_uri(image: str, journal: str) -> str:
    """Return the journal's URI: the given one, else one derived from the image's URI (CONTRACT, "URIs").

    Raises: ConfigError: the image's storage needs a journal URI of its own.
    """
    if journal:
        return _normal(journal)
    image = _normal(image)
    _check_scheme(image)
    scheme = image.partition("://")[0]
    if scheme == "memory":
        return "memory://journal"
    path = file_of(image)
    if path is not None:
        return f"file://{path.with_name('journal.fs')}"
    if scheme == "zeo":
        parts = urlsplit(image)
        query = dict(parse_qsl(parts.query)) | {"storage": "journal"}
        return parts._replace(query=urlencode(query)).geturl()
    raise ConfigError(
        f"an image at {scheme}:// needs a journal of its own",
        field="journal",
        remedy="Set --journal or BATOS_JOURNAL to a second database.",
    )


def _normal(uri: str) -> str:
    return uri.replace("postgresql://", "postgres://", 1)


def open_database(
    uri: str, *, connections: int, factory: StorageFactory | None = None, readers: int = _READERS
) -> LoadableDB:
    """Open `uri` for `connections` at once; raises ConfigError, ImageBusy, ImageDamaged or DiskFull, with a remedy.

    `readers` is how many threads may read at once beside these, where each has a session of PostgreSQL.
    """
    uri = _normal(uri)
    pool = connections + (_BESIDE_SHARED if is_shared(uri) else _BESIDE)
    named, keywords = _resolve(uri, pool)
    # zodburi always names a pool of 7 and a cache of 10,000, so a default would never count.
    keywords["pool_size"] = pool
    keywords["cache_size"] = max(1_000, _CACHED_OBJECTS // connections)
    keywords["cache_size_bytes"] = max(2**20, CACHED_BYTES // keywords["pool_size"])
    path = file_of(uri)
    try:
        if path is not None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        storage = (factory or named)()
    except LockError as error:
        raise ImageBusy(str(path), owner(path)) from error
    except BatosError:
        raise
    except (OSError, *OPENING) as error:
        raise _opening_error(uri, path, error) from error
    try:
        made = _make_database(storage, keywords)
        made.place = mask_passwords(uri) if is_shared(uri) else ""
        made.readers = ReaderLimit(readers) if uri.startswith("postgres:") else None
        return made
    except BaseException as error:
        storage.close()
        if isinstance(error, (OSError, *OPENING)) and not isinstance(error, BatosError):
            raise _opening_error(uri, path, error) from error
        raise


def _make_database(storage: object, keywords: Mapping[str, object]) -> LoadableDB:
    """Make the database of a storage; where another node makes the root of a new one just now, that one's is used."""
    try:
        return LoadableDB(storage, class_factory=class_factory, **keywords)
    except TransientError:
        return LoadableDB(storage, class_factory=class_factory, **keywords)


def _resolve(uri: str, pool: int) -> tuple[StorageFactory, dict[str, Any]]:
    """Return the function that opens the storage, and the keyword arguments of its database.

    Raises: ConfigError: the URI is not valid, or its storage is not installed.
    """
    _check_scheme(uri)
    path = file_of(uri)
    if path is not None:
        return _file_factory(uri, path), {}
    scheme, _, rest = uri.partition("://")
    if scheme == "memory" and "?" not in rest:
        return lambda: MappingStorage(rest), {}
    try:
        if scheme == "zeo":
            return resolve_zeo(uri)
        if scheme == "postgres":
            return resolve_postgres(uri, pool)
        return zodburi.resolve_uri(uri)
    except (KeyError, ValueError, TypeError) as error:
        raise _not_a_uri(uri, str(error.args[0] if error.args else error)) from error


def _file_factory(uri: str, path: Path) -> StorageFactory:
    given = dict(parse_qsl(uri.partition("?")[2], keep_blank_values=True))
    unknown = sorted(set(given) - set(_FILE_KEYWORDS))
    if unknown:
        raise _not_a_uri(uri, f"unknown keyword {unknown[0]!r}; a file has {' and '.join(_FILE_KEYWORDS)}")
    if not path.name:
        raise _not_a_uri(uri, "it names no file")
    try:
        quota = int(given["quota"]) if "quota" in given else None
    except ValueError as error:
        raise _not_a_uri(uri, f"quota is a number of bytes, not {given['quota']!r}") from error
    return lambda: SoundFileStorage(str(path), quota=quota, blob_dir=given.get("blobstorage_dir"))


def _not_a_uri(uri: str, why: str) -> ConfigError:
    return ConfigError(
        f"{mask_passwords(uri)} is not a storage URI: {mask_passwords(why)}",
        field="image",
        remedy="Use file:///path/name.fs?blobstorage_dir=/path/blobs, memory://, zeo://host:port or postgres://...",
    )


def _check_scheme(uri: str) -> None:
    """Raise ConfigError if `uri` is the path of a file, or anything else without a scheme."""
    if "://" not in uri:
        path = Path(uri).absolute()
        raise ConfigError(
            f"{uri} is not a storage URI: it has no scheme such as file://",
            field="image",
            remedy=f"For that file: file://{path}?blobstorage_dir={path.with_name('blobs')}. For its home: --home DIR.",
        )


def _opening_error(uri: str, path: Path | None, error: Exception) -> ImageError:
    if is_full(error):
        return disk_full(error, path)
    if isinstance(error, OSError):
        return ImageDamaged(
            f"{mask_passwords(uri)} cannot be opened: {error.strerror or error}",
            remedy="Check the path and its permissions.",
        )
    if path is None:
        return not_there(uri, error)
    return ImageDamaged(f"{mask_passwords(uri)} does not open ({type(error).__name__}: {error})", remedy=REMEDY)


def file_of(uri: str) -> Path | None:
    """Return the path of a file:// URI, or None for other URIs."""
    scheme, _, rest = uri.partition("://")
    return Path(rest.partition("?")[0]) if scheme == "file" else None


def is_shared(uri: str) -> bool:
    """Test if several processes can have a storage open at once."""
    return _normal(uri).partition("://")[0] in ("zeo", "postgres")


def sessions_of(image: str, journal: str, missions: int) -> tuple[int, int]:
    """Return the sessions that a node may need of its server, and those that all may have (0: as many as wanted)."""
    needed = missions + _BESIDE_SHARED, _READING + _BESIDE_SHARED
    return count_sessions(_normal(image), journal_uri(image, journal), needed)


def open_journal(uri: str, *, connections: int, factory: StorageFactory | None = None) -> LoadableDB:
    """Open the journal at `uri` beside an image for so many missions; raises what `open_database` raises."""
    reading = _READING if is_shared(uri) else connections
    return open_database(uri, connections=reading, factory=factory, readers=_READING + _READERS)


def blobs_of(uri: str) -> Path | None:
    """Return the folder of a file:// URI's blobs, None where it has none."""
    given = dict(parse_qsl(uri.partition("?")[2]))
    return Path(given["blobstorage_dir"]) if file_of(uri) is not None and "blobstorage_dir" in given else None


@contextmanager
def removing_new_files(*uris: str) -> Iterator[None]:
    """Remove files and folders of blobs that were not there before, if an error ends the work with these storages.

    The storages have to be closed by then. Where another process has one of them the files are its own.
    """
    files = [each for uri in uris if (path := file_of(uri)) is not None for each in files_of(path)]
    new = [path for path in (*files, *filter(None, map(blobs_of, uris))) if not path.exists()]
    try:
        yield
    except ImageBusy:
        raise
    except BaseException:
        for path in new:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        raise


def keeps_blobs(opened: object) -> bool:
    """Test if an open storage keeps blobs; a client of ZEO needs a folder of its own for those of its server."""
    return bool(IBlobStorage.providedBy(opened)) and getattr(opened, "blob_dir", "") is not None


def data_places(uri: str) -> list[Path]:
    """Return the files and folders of this machine in which a storage, or the cache of one on a server, has data."""
    given = dict(parse_qsl(uri.partition("?")[2]))
    files = [file_of(uri), Path(given["var"], f"{given.get('client', '')}.zec") if "var" in given else None]
    return [*(each for each in files if each is not None), *(Path(given[each]) for each in _FOLDERS if each in given)]


def owner(path: Path | None) -> str:
    """Describe the process that holds the lock of a file storage, as far as this machine can tell."""
    try:
        pid = int(Path(f"{path}.lock").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return "another process"
    if pid == os.getpid() and (pid := _locker(path)) == 0:
        # Its lock file was deleted, and this process wrote the new one.
        return "another process"
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return f"process {pid}"
    typed = [Path(word.decode(errors="replace")).name for word in words if word]
    # A script is run by its interpreter, which nobody typed; a question is its asker's.
    command = " ".join(typed[typed.index("batos") :][:2] if "batos" in typed else typed[:4])
    return f"process {pid} ({command})" if command else f"process {pid}"


def holder(path: Path) -> str:
    """Describe the process that has a file storage open for writing, "" if none.

    Where the kernel does not list locks, the function tries to take one.
    """
    if _locker(path):
        return owner(path)
    if Path("/proc/locks").exists():
        return ""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return owner(path)
    except OSError:
        return ""
    return ""


def held_since(path: Path) -> float:
    """Return when a file storage was last opened for writing, in seconds since 1970; 0 if this machine cannot tell."""
    try:
        return Path(f"{path}.lock").stat().st_mtime
    except OSError:
        return 0.0


def _locker(path: Path | None) -> int:
    """Return the id of the process that locked the file, as the kernel lists it; 0 if the kernel does not say."""
    try:
        number = Path(path or "").stat().st_ino
        locks = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(rf"FLOCK +\w+ +WRITE +(\d+) +\w+:\w+:{number} ", locks)
    return int(found[1]) if found else 0


def pack_times(uri: str) -> int:
    """Return how often a storage is packed until nothing beside it has what went.

    A ZEO server may keep the former file beside the new one, as its configuration says; the next pack removes it.
    """
    return 2 if uri.startswith("zeo:") else 1


def free_space(db: DB, uri: str) -> str:
    """Clear the caches of this process, and let PostgreSQL rewrite its files; return why it could not, or ""."""
    storage: Any = db.storage
    scheme = uri.partition(":")[0]
    if scheme not in ("zeo", "postgres", "postgresql"):
        return ""
    _clear_blobs(storage)
    if scheme == "zeo":
        storage._cache.clear()
        return ""
    # Sessions that wait for the next commit have tables of their own, with what a commit that failed left there.
    storage._store_connection_pool.drop_all()
    storage._cache.clear()
    try:
        vacuum_postgres(uri)
    except ImageError as error:
        return str(error)
    return ""


def _clear_blobs(storage: object) -> None:
    """Remove the copies of blobs that a client keeps in a folder of its own; they come again when they are read."""
    folder = blob_folder(storage)
    if folder is None or _is_shared(storage):
        return
    for path in folder.rglob("*.blob"):
        path.unlink(missing_ok=True)


def blob_folder(storage: object) -> Path | None:
    """Return the folder in which a storage, or a client of one, has blobs; None: it has none."""
    folder = getattr(getattr(storage, "blobhelper", storage), "blob_dir", None)
    return Path(folder) if folder else None


def _is_shared(storage: object) -> bool:
    """Test if the folder of blobs is the server's own."""
    options = getattr(getattr(storage, "blobhelper", None), "options", storage)
    return bool(getattr(options, "shared_blob_dir", False))
