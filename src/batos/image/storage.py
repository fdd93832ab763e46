"""A storage URI opens a database: file, memory, zeo or postgres; one owner, an allow-list of classes, sized pools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

import zodburi
from zc.lockfile import LockError
from ZODB.DB import DB
from ZODB.FileStorage.FileStorage import FileStorageError
from ZODB.POSException import StorageSystemError

from batos.errors import ConfigError, ImageBusy, ImageDamaged
from batos.image.classes import class_factory

#: Opens the storage that a URI names; an argument, so that a test can count or break what it does.
StorageFactory: TypeAlias = Callable[[], Any]

#: Objects that the caches of all missions hold together.
CACHED_OBJECTS = 40_000


def journal_uri(image: str, journal: str) -> str:
    """The journal's URI: as given, or derived from the image's (CONTRACT, "URIs")."""
    if journal:
        return _normal(journal)
    image = _normal(image)
    scheme, _, rest = image.partition("://")
    if scheme == "memory":
        return "memory://journal"
    if scheme == "file":
        path = Path(rest.partition("?")[0])
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


def open_database(uri: str, *, connections: int, factory: StorageFactory | None = None) -> DB:
    """Open `uri` for `connections` at once; raises ConfigError, ImageBusy or ImageDamaged, each with a remedy."""
    uri = _normal(uri)
    _make_folder(uri)
    try:
        resolved, keywords = zodburi.resolve_uri(uri)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{uri} is not a storage URI: {error}", field="image") from error
    # resolve_uri always names a pool of 7 and a cache of 10,000, so a default would never count.
    keywords["pool_size"] = connections + 4
    keywords["cache_size"] = max(1_000, CACHED_OBJECTS // connections)
    try:
        return DB((factory or resolved)(), class_factory=class_factory, **keywords)
    except LockError as error:
        path = file_of(uri)
        raise ImageBusy(str(path), owner(path)) from error
    except (FileStorageError, StorageSystemError) as error:
        raise ImageDamaged(f"{uri} does not open: {error}") from error
    except OSError as error:
        raise ImageDamaged(
            f"{uri} cannot be opened: {error.strerror}", remedy="Check the path and its permissions."
        ) from error


def file_of(uri: str) -> Path | None:
    """The file of a file:// URI, else None."""
    scheme, _, rest = uri.partition("://")
    return Path(rest.partition("?")[0]) if scheme == "file" else None


def _make_folder(uri: str) -> None:
    path = file_of(uri)
    if path is not None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def owner(path: Path | None) -> str:
    """Which process holds the lock of a file storage, as far as this machine can tell."""
    try:
        pid = int(Path(f"{path}.lock").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return "another process"
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return f"process {pid}"
    command = " ".join([Path(word.decode(errors="replace")).name for word in words if word][:4])
    return f"process {pid} ({command})" if command else f"process {pid}"
