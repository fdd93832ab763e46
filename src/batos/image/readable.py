"""An open image as it is read, by its owner or beside it: its root as of now, and missions by their ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from ZODB.DB import DB

from batos.image import ownership, roots
from batos.image.evolution import evolving
from batos.image.records import MissionRecord
from batos.image.roots import Root
from batos.image.storage import blobs_of
from batos.image.transactions import snapshot
from batos.protocol.errors import NewFormat
from batos.protocol.server_documents import StoredSizes


class ReadableImage:
    """The two databases of an image, and where the image is."""

    def __init__(self, uri: str, db: DB, journal_db: DB) -> None:
        self.uri = uri
        self.db: DB = db
        self.journal_db: DB = journal_db

    def snapshot(self) -> AbstractContextManager[Root]:
        """Yield the root as of now, for reading only; that of an older version in the present form."""
        return present_snapshot(self.db)

    def find(self, root: Root, mission: str) -> MissionRecord:
        """Return a mission's three objects; raises NotFound."""
        found = roots.find_record(root, mission)
        if found is None:
            raise ownership.no_mission(mission)
        return found

    def sizes(self) -> StoredSizes:
        """Return the bytes of both databases, and of the blobs beside them."""
        blobs = _size_of(blobs_of(self.uri))
        return {"bytes": self.db.getSize(), "journal_bytes": self.journal_db.getSize(), "blob_bytes": blobs}

    def unfolded_missions(self) -> list[str]:
        """List the missions that are accepted and neither folded in nor ended."""
        with self.snapshot() as root:
            return list(root[roots.UNFOLDED])


def _size_of(folder: Path | None) -> int:
    """Return the bytes of the blobs in a folder."""
    files = folder.rglob("*.blob") if folder is not None and folder.is_dir() else ()
    return sum(each.stat().st_size for each in files)


@contextmanager
def present_snapshot(db: DB) -> Iterator[Root]:
    """Open the current root for reading; one that an older version wrote is shown in the present form.

    Raises: NewFormat: a newer version has written it. ImageDamaged: an object cannot be read.
    """
    with snapshot(db) as root:
        if not is_complete(root):
            evolving.show_in_present_form(root)
        yield root


def is_complete(root: Root) -> bool:
    """Test if every tree of records is there, in the present form.

    Raises: NewFormat: a newer version has written the image.
    """
    whole = all(name in root for name in roots.RECORDS)
    check_format(root.get(roots.GENESIS, {}), "image")
    return whole and not evolving.pending(root)


def check_format(kept: Mapping[str, Any], what: str) -> None:
    """Raise NewFormat if a database was written by a version whose format this one does not know."""
    number = int(kept.get("format", roots.FIRST_FORMAT))
    if number > roots.FORMAT:
        raise NewFormat(what, number, roots.FORMAT, str(kept.get("version", "")))
