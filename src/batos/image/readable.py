"""An open image as it is read, by its owner or beside it, whether or not another process has it open."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from persistent.timestamp import TimeStamp
from ZODB.blob import FilesystemHelper
from ZODB.DB import DB
from ZODB.FileStorage.FileStorage import FileStorage
from ZODB.utils import load_current, z64

from batos.image import evolving, ownership, roots, storage, unclean_close
from batos.image.classes import OPENING, REMEDY, as_damage, class_factory
from batos.image.database import LoadableDB
from batos.image.filestorage import BEGIN, SoundFileStorage, check_beside
from batos.image.records import Attachment, MissionRecord, missing_file_error
from batos.image.roots import Root
from batos.image.storage import blobs_of
from batos.image.transactions import snapshot
from batos.protocol.errors import BatosError, ImageDamaged, NewFormat, NotFound
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
    """The image's or the journal's part of the pairing: the id, if there is one, and if it holds any mission."""

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


#: Objects that are kept in memory while one looks.
_CACHED = 2_000


class _TruncatedFile:
    """A file that ends before it does: what stands behind its last commit is not there."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        self._file = file
        self._end = end

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go there; the end is ours."""
        return self._file.seek(self._end + offset if whence == 2 else offset, 0 if whence == 2 else whence)

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, and none beyond the end that was set."""
        left = max(0, self._end - self._file.tell())
        return self._file.read(left if size < 0 else min(size, left))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class _ReadFileStorage(SoundFileStorage):
    """A file storage opened for reading: no lock, no index written, nothing cut off.

    `unfinished` counts the bytes of a commit behind the last one. Where another process is writing such a commit is no
    sign of a crash; else ImageDamaged if it is no crash's doing.
    """

    def __init__(self, path: str, *, held: bool) -> None:
        self._made = False
        self._held = -1
        self._strict = not held
        self.unfinished = 0
        check_beside(path)
        try:
            FileStorage.__init__(self, path, read_only=True)
        except BaseException:
            self._let_go()
            raise

    def _restore_index(self) -> tuple[Any, int, bytes] | None:
        path = Path(self._file_name)
        known = self._read_known_index(path)
        _, start, last = known or (None, BEGIN, z64)
        end = unclean_close.end_of_commits(path, start, last, strict=self._strict)
        self.unfinished = path.stat().st_size - end if self._strict else 0
        self._file = _TruncatedFile(self._file, end)  # type: ignore[assignment]  # all of a file that is used here
        return known


@dataclass(frozen=True, slots=True)
class ReadOnlyPair:
    """The two databases of an image as they are on disk. Sizes in bytes; `holder` says who has them open, "" nobody."""

    image: DB
    journal: DB
    holder: str = ""
    #: Of each file: the bytes of an unfinished commit at its end.
    unfinished: tuple[tuple[Path, int], ...] = ()
    #: Of each file: whether its index can be read; a file without one is left out.
    indexes: tuple[tuple[Path, bool], ...] = ()
    #: The folder of the image's blobs, where it has one.
    blobs: Path | None = None

    @contextmanager
    def root(self) -> Iterator[Root]:
        """Open the image's current root for reading; that of an older version in the present form.

        Raises: NewFormat: a newer version has written it. ImageDamaged: the database cannot be read.
        """
        try:
            with present_snapshot(self.image) as root:
                yield root
        except Exception as error:  # a damaged file may raise anything
            damage = as_damage(error)
            if damage is not None:
                raise damage from error
            raise

    def pair(self) -> str:
        """Return the id that image and journal share, "" if neither was ever used.

        Raises: ImageDamaged: they do not belong together.
        """
        image, journal = image_side(self.image), journal_side(self.journal)
        agreed = agree_on_id(image, journal)
        return "" if image.pair is journal.pair is None else agreed

    def check_attachment(self, attachment: Attachment) -> None:
        """Read a file that came with a brief; ImageDamaged, naming it, if it is not what was attached.

        A file storage is opened for reading without its blobs, so theirs are read where they lie.
        """
        if attachment.blob is None or self.blobs is None:
            attachment.read()
            return
        oid = attachment.blob._p_oid or z64
        _, serial = load_current(self.image.storage, oid)
        path = Path(FilesystemHelper(str(self.blobs)).getBlobFilename(oid, serial))
        try:
            content = path.read_bytes()
        except OSError as error:
            raise missing_file_error(attachment.sha256, f"cannot be read: {path}: {error.strerror or error}") from error
        attachment.check_content(content)

    def last_at(self) -> float:
        """Return the time of the last commit in seconds since 1970; 0 if there is none."""
        tid: bytes = self.image.lastTransaction() or z64
        return 0.0 if tid == z64 else float(TimeStamp(tid).timeTime())


def is_there(uri: str) -> bool:
    """Test if there is a database to read; of storages other than files only opening tells: True."""
    path = storage.file_of(uri)
    return path is None or path.exists() or unclean_close.is_put_aside(path)


def check_is_there(uri: str) -> None:
    """Raise NotFound if there is no database to read."""
    if not is_there(uri):
        path = storage.file_of(uri)
        remedy = "`batos genesis` makes one; `--home DIR` names another home, `batos restore` brings a backup back."
        raise NotFound(f"there is no image yet: {path} is missing", field="image", remedy=remedy)


@contextmanager
def open_read_only(image: str, journal: str) -> Iterator[ReadOnlyPair]:
    """Open both databases for reading. Raises what opening them would, but never ImageBusy: others are not minded."""
    uris = (image, storage.journal_uri(image, journal))
    files = [path for uri in uris if (path := storage.file_of(uri)) is not None]
    holders = [holder for path in files if path.exists() and (holder := storage.holder(path))]
    with ExitStack() as stack:
        faces = [stack.enter_context(_open_for_reading(uri, held=bool(holders))) for uri in uris]
        beside = [(path, Path(f"{path}.index")) for path in files]
        yield ReadOnlyPair(
            image=faces[0],
            journal=faces[1],
            holder=holders[0] if holders else "",
            unfinished=tuple(filter(None, map(_unfinished_bytes, faces))),
            blobs=storage.blobs_of(image),
            indexes=tuple(
                (path, unclean_close.read_index(index) is not None) for path, index in beside if index.exists()
            ),
        )


@contextmanager
def _open_for_reading(uri: str, *, held: bool) -> Iterator[DB]:
    path = storage.file_of(uri)
    database = storage.open_database(uri, connections=1) if path is None else _read(path, held=held)
    try:
        yield database
    finally:
        database.close()


def _read(path: Path, *, held: bool) -> DB:
    if not held and unclean_close.is_put_aside(path):
        what = f"a pack of {path} was cut off, and its former file stands beside its place"
        raise ImageDamaged(what, remedy="`batos serve`, or the next question, puts it back: nothing is lost.")
    try:
        opened = _ReadFileStorage(str(path), held=held)
        with ExitStack() as until_whole:
            until_whole.callback(opened.close)  # a database whose first commit has not come has no root to open
            database = LoadableDB(opened, class_factory=class_factory, cache_size=_CACHED)
            until_whole.pop_all()
        return database
    except BatosError:
        raise
    except OSError as error:
        remedy = "Bring back the file from its last backup, or check the path and its permissions."
        raise ImageDamaged(f"{path} cannot be opened: {error.strerror or error}", remedy=remedy) from error
    except OPENING as error:
        raise ImageDamaged(f"{path} does not open ({type(error).__name__}: {error})", remedy=REMEDY) from error


def _unfinished_bytes(database: DB) -> tuple[Path, int] | None:
    found = database.storage
    rest = found.unfinished if isinstance(found, _ReadFileStorage) else 0
    return (Path(found.getName()), rest) if rest else None
