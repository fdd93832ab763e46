"""An open image as it is read, by its owner or beside it: its root as of now, and missions by their ids."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ZODB.DB import DB

from batos.errors import ImageError
from batos.image import roots, whose
from batos.image.records import Brief, Status
from batos.image.transactions import snapshot
from batos.objects.prototype import UvmObject


class ReadableImage:
    """The two databases of an image, and where the image is."""

    def __init__(self, uri: str, db: DB, journal_db: DB) -> None:
        self.uri = uri
        self.db: DB = db
        self.journal_db: DB = journal_db

    def snapshot(self) -> AbstractContextManager[Any]:
        """Yield the root as of now, for reading only."""
        return snapshot(self.db)

    def find(self, root: Any, mission: str) -> tuple[Brief, Status, UvmObject]:
        """Return a mission's three objects; raises NotFound."""
        # Not by KeyError: an object that the database has lost is one too.
        found: tuple[Brief, Status, UvmObject] | None = root[roots.MISSIONS].get(mission)
        if found is None:
            raise whose.no_mission(mission)
        return found

    def sizes(self) -> dict[str, int]:
        """Return the bytes of both databases; blobs are beside them."""
        return {"bytes": self.db.getSize(), "journal_bytes": self.journal_db.getSize()}

    def unfolded(self) -> list[str]:
        """List the missions that are accepted and neither folded in nor ended."""
        with self.snapshot() as root:
            return list(root[roots.UNFOLDED])


def complete(root: Any) -> bool:
    """Tell whether every tree of records is there; raises ImageError if a newer version has written the image."""
    whole = all(name in root for name in roots.RECORDS)
    version = root[roots.GENESIS].get("format", roots.FORMAT) if whole else roots.FORMAT
    if version > roots.FORMAT:
        raise ImageError(
            f"the image has format {version} and this version of BAT OS knows {roots.FORMAT}",
            remedy="Use the version that wrote it, or a newer one.",
        )
    return whole
