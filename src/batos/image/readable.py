"""An open image as it is read, by its owner or beside it, paired with its journal by one random id."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ZODB.DB import DB

from batos.image import evolving, ownership, roots
from batos.image.records import MissionRecord
from batos.image.roots import Root
from batos.image.storage import blobs_of
from batos.image.transactions import snapshot
from batos.protocol.errors import ImageDamaged, NewFormat
from batos.protocol.server_documents import StoredSizes
from batos.version import __version__


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


@dataclass(frozen=True, slots=True)
class PairingSide:
    """The image's or the journal's part of the pairing: the id (None if there is none yet), and if it holds any
    mission.
    """

    where: str
    pair: str | None
    holds_missions: bool
    format: int = roots.FORMAT


def image_side(db: DB) -> PairingSide:
    """Read the image's id and if it was used."""
    with snapshot(db) as root:
        pair = root[roots.GENESIS].get(roots.PAIR) if roots.GENESIS in root else None
        return PairingSide(_place(db), pair, bool(root.get(roots.MISSIONS)))


def journal_side(db: DB) -> PairingSide:
    """Read the journal's id and if it was used. Raises NewFormat if a newer version has written it."""
    with snapshot(db) as root:
        check_format(root, "journal")
        number = int(root.get("format", roots.FIRST_FORMAT))
        return PairingSide(_place(db), root.get(roots.PAIR), bool(root.get(roots.MISSIONS)), number)


def _place(db: DB) -> str:
    # A client of PostgreSQL takes its whole address for its name, with the password.
    return getattr(db, "place", "") or str(db.storage.getName())


def agree_on_id(image: PairingSide, journal: PairingSide) -> str:
    """Return the id that both sides have or are to get.

    The journal gets its id before the image. So a journal with an id and no use may stand beside an image without one
    (the process died in between). An image with an id never stands beside a journal without one, unless both are
    unused.

    Raises: ImageDamaged: they do not belong together; the error says which file to bring back.
    """
    if image.pair == journal.pair:
        return image.pair or secrets.token_hex(16)
    if image.pair is None and journal.holds_missions:
        raise _no_pair(image, f"the journal {journal.where} has missions and the image {image.where} is another or new")
    if journal.pair is None and (image.holds_missions or journal.holds_missions):
        what = f"the image {image.where} has missions and the journal {journal.where} is another or new"
        raise _no_pair(journal, what, " If an import was cut off, remove both and import again.")
    if image.pair is not None and journal.pair is not None:
        raise _no_pair(journal, f"the image {image.where} and the journal {journal.where} are not of one home")
    return image.pair or journal.pair or ""


def _no_pair(missing: PairingSide, why: str, more: str = "") -> ImageDamaged:
    remedy = f"Bring back the {missing.where} that belongs to it, from the same backup; nothing was changed."
    return ImageDamaged(why, remedy=remedy + more)


def sign_journal(root: MutableMapping[str, Any], pair: str) -> None:
    """Give a journal its id, and the format that it has in this version: no older one opens it any more."""
    root.update({roots.PAIR: pair, "format": roots.FORMAT, "version": __version__})


def sign_image(root: Root, pair: str) -> None:
    """Make the record trees that an image lacks, and give it its id."""
    roots.prepare(root)
    root[roots.GENESIS][roots.PAIR] = pair
