"""The bytes that a server's storage, and this process's copies of it, still have after a pack: they are freed here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ZODB.DB import DB

from batos.image.nodes.storage_servers import vacuum_postgres
from batos.protocol.errors import ImageError


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
