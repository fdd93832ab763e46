"""An open image as it is read, by its owner or beside it: its root as of now, and missions by their ids."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from ZODB.DB import DB

from batos.errors import ImageError
from batos.image import ownership, roots
from batos.image.records import MissionRecord
from batos.image.roots import Root
from batos.image.storage import blobs_of
from batos.image.transactions import snapshot


class ReadableImage:
    """The two databases of an image, and where the image is."""

    def __init__(self, uri: str, db: DB, journal_db: DB) -> None:
        self.uri = uri
        self.db: DB = db
        self.journal_db: DB = journal_db

    def snapshot(self) -> AbstractContextManager[Root]:
        """Yield the root as of now, for reading only."""
        return snapshot(self.db)

    def find(self, root: Root, mission: str) -> MissionRecord:
        """Return a mission's three objects; raises NotFound."""
        found = roots.find_record(root, mission)
        if found is None:
            raise ownership.no_mission(mission)
        return found

    def sizes(self) -> dict[str, int]:
        """Return the bytes of both databases, and of the blobs beside them."""
        sizes = {"bytes": self.db.getSize(), "journal_bytes": self.journal_db.getSize()}
        return {**sizes, "blob_bytes": _size_of(blobs_of(self.uri))}

    def unfolded_missions(self) -> list[str]:
        """List the missions that are accepted and neither folded in nor ended."""
        with self.snapshot() as root:
            return list(root[roots.UNFOLDED])


def _size_of(folder: Path | None) -> int:
    """Return the bytes of the blobs in a folder."""
    files = folder.rglob("*.blob") if folder is not None and folder.is_dir() else ()
    return sum(each.stat().st_size for each in files)


def is_complete(root: Root) -> bool:
    """Tell whether every tree of records is there; raises ImageError if a newer version has written the image."""
    whole = all(name in root for name in roots.RECORDS)
    version = root[roots.GENESIS].get("format", roots.FORMAT) if whole else roots.FORMAT
    if version > roots.FORMAT:
        raise ImageError(
            f"the image has format {version} and this version of BAT OS knows {roots.FORMAT}",
            remedy="Use the version that wrote it, or a newer one.",
        )
    return whole
