"""The export of the whole mind to JSON lines, and its import into an empty home.

The first line is a header; each further one is an object: `db` (image or journal), `oid`, `kind` (its class) and
`slots` (its state). Blobs are files, named by the SHA-256 of their content. Objects keep their oids, since names of
methods and records of origins have them; so an export of what was imported is the same, byte for byte.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

from persistent import Persistent
from ZODB.blob import Blob, FilesystemHelper
from ZODB.DB import DB
from ZODB.utils import load_current, p64, u64, z64

from batos.care.foreign_minds import check_plain, disarm
from batos.image import evolving, object_states, roots
from batos.image.ids import iso, oid_text, serial_of, utc_now
from batos.image.image import LivingImage
from batos.image.readable import ReadOnlyPair
from batos.image.roots import AnyRoot, Root, connection_of
from batos.image.storage import keeps_blobs
from batos.image.transactions import snapshot
from batos.protocol.errors import BatosError, BriefError, OldFormat, Refused, UsageError
from batos.protocol.server_documents import DisarmingReport

#: The files of an export.
LINES: Final = "mind.jsonl"
BLOBS: Final = "blobs"
FORMAT, VERSION = "batos-image", 1
#: Objects after which those that are loaded are let go.
_HELD: Final = 2_000
_AGAIN: Final = "Export the mind again."
#: Keys of the image's root that belong to the processes and nodes that worked on it.
_NOT_MOVED: Final = (roots.ERASURE, roots.NODES, roots.PUBLISHER, roots.SUSPECTED)
_BLOBS_FOLDER: Final = (
    "Name one: `?blobstorage_dir=/path` behind a file's address, `?blob_dir=/path` behind a server's."
)
_WHOLE: Final = "The export was cut off, or not copied whole. " + _AGAIN
#: Oids of objects are below this: a database counts on from the highest one, and has to be able to.
_OIDS: Final = p64(1 << 62)


# -- export


def export_mind(pair: ReadOnlyPair, folder: Path) -> dict[str, int]:
    """Write image, journal and blobs to a folder that is empty; return how many objects and blobs there are.

    Raises: UsageError: the folder is not empty, or cannot be written. OldFormat: the image is of an older version.
    """
    with snapshot(pair.image) as root:
        if evolving.pending(root):
            raise OldFormat(evolving.format_of(root), roots.FORMAT)
    with empty_folder(folder):
        (folder / BLOBS).mkdir()
        beside = folder / f".{LINES}"
        counts = {"image": 0, "journal": 0, "blobs": 0}
        with beside.open("w", encoding="utf-8") as file:
            file.write(_line({"format": FORMAT, "version": VERSION}))
            for name, db in (("image", pair.image), ("journal", pair.journal)):
                with snapshot(db) as root:
                    for line in _lines(root, name, pair, folder / BLOBS, counts):
                        file.write(_line(line))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(folder / LINES)
    return counts


@contextmanager
def empty_folder(folder: Path) -> Iterator[None]:
    """Make the folder of an export, which only its owner reads, and let it be filled.

    Raises: UsageError: the folder is not empty, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty", field="folder", remedy="Name an empty folder.")
        yield
    except OSError as error:
        what = f"the export cannot be written: {error}"
        raise UsageError(what, field="folder", remedy="Make room, or name another folder.") from error


def _line(value: object) -> str:
    return json.dumps(value, sort_keys=False, separators=(",", ":")) + "\n"


def _lines(
    root: AnyRoot, name: str, pair: ReadOnlyPair, blobs: Path, counts: dict[str, int]
) -> Iterator[dict[str, object]]:
    connection = connection_of(root)
    for number, oid in enumerate(sorted(_reachable(root)), 1):
        obj = connection.get(p64(oid))
        line = {"db": name, "oid": oid_text(p64(oid)), "kind": object_states.kind_of(obj)}
        if isinstance(obj, Blob):
            line["sha256"] = _copy_blob(obj, pair, blobs)
            counts["blobs"] += 1
        counts[name] += 1
        yield {**line, "slots": object_states.state_of(obj)}
        if number % _HELD == 0:
            connection.cacheMinimize()


def _reachable(root: AnyRoot) -> set[int]:
    """Return the oids of all objects that can be reached; the nodes of a tree are no objects of their own here."""
    connection = connection_of(root)
    found, left = {u64(z64)}, [u64(z64)]
    while left:
        obj = connection.get(p64(left.pop()))
        for each in _references(object_states.state_of(obj)):
            oid = int(each.partition("0x")[2], 16)
            if oid not in found:
                found.add(oid)
                left.append(oid)
        if len(found) % _HELD == 0:
            connection.cacheMinimize()
    return found


def _references(value: object) -> Iterator[str]:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, list):
            left += each
        elif isinstance(each, dict):
            if each.keys() == {"$ref"}:
                yield each["$ref"]
            else:
                left += each.values()


def _copy_blob(blob: Blob, pair: ReadOnlyPair, folder: Path) -> str:
    beside = folder / ".part"
    with _open_blob(blob, pair) as source, beside.open("wb") as target:
        shutil.copyfileobj(source, target)
    digest = _sha256(beside)
    beside.replace(folder / digest)
    return digest


def _open_blob(blob: Blob, pair: ReadOnlyPair) -> IO[bytes]:
    """Open a blob for reading; a file storage is opened without its blobs, so theirs are read where they lie."""
    if pair.blobs is not None:
        oid: bytes = blob._p_oid or z64
        _, serial = load_current(pair.image.storage, oid)
        return Path(FilesystemHelper(str(pair.blobs)).getBlobFilename(oid, serial)).open("rb")
    if not keeps_blobs(pair.image.storage):
        what = "the image has blobs, and no folder of them"
        raise BatosError(what, remedy=_BLOBS_FOLDER)
    return blob.open("r")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -- import


def read_lines(folder: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of an export with the numbers of their lines.

    Raises: BriefError: the file is none of an export, or a line is damaged; the error names it.
    """
    try:
        file = (folder / LINES).open("rb")  # text is decoded line by line, so that a fault has its number
    except OSError as error:
        what = f"{folder} has no {LINES}: {error.strerror}"
        raise BriefError(what, field="folder", remedy="Name the folder of an export.") from error
    with file:
        for number, text in enumerate(file, 1):
            try:
                line = json.loads(text)
                if number == 1 and (line["format"], line["version"]) != (FORMAT, VERSION):
                    what = f"{folder / LINES} is of another format or version"
                    raise BriefError(what, field="version", remedy="Import it with the version that wrote it.")
                if number > 1:
                    texts = {name: str(line[name]) for name in ("db", "oid", "kind")}
                    yield number, {**texts, **{name: line[name] for name in ("slots", "sha256") if name in line}}
            except BriefError:
                raise
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                what = f"line {number} of {LINES} is damaged: {type(error).__name__} {error}"[:200]
                raise BriefError(what, field=f"line {number}", remedy=_AGAIN) from error


async def import_mind(
    image: LivingImage, folder: Path, clock: Callable[[], datetime] = utc_now
) -> tuple[dict[str, int], DisarmingReport]:
    """Make the objects of an export in an image and journal that are empty; all of them, or none.

    The mind is disarmed by the same commit. Returns how many objects and blobs there are, and what that took back.

    Raises: Refused: there is a mind already, or the guardian refuses a method of the export. BriefError: the export is
    damaged; the error names the line.
    """
    await asyncio.to_thread(check_plain, folder)
    with image.snapshot() as root:
        _check_empty(root)
    with snapshot(image.journal_db) as root:
        if "missions" in root:
            what = "the home has a journal without an image"
            raise Refused(what, field="home", remedy="Remove what an interrupted import left, or name an empty home.")
    counts = {"image": 0, "journal": 0, "blobs": 0}
    # Each is made and thrown away first, so that neither is written if there is a fault in the other.
    for name, db in (("journal", image.journal_db), ("image", image.db)):
        await asyncio.to_thread(_try, db, name, folder)
    at = iso(clock())

    def change(root: Root) -> DisarmingReport:
        _check_empty(root)  # a node of the same server may have made one meanwhile
        _fill(root, "image", folder, counts)
        return _disarm(root, at)

    # The image first: the guardian may refuse a method of it, and then nothing at all is written. An image that was
    # not prepared has no nodes, and so no publisher who alone could write it.
    disarmed = await image.writer.apply(change)
    await image.journal_writer.apply(lambda root: _fill(root, "journal", folder, counts))
    return counts, disarmed


def _check_empty(root: Root) -> None:
    if roots.MISSIONS in root:
        what = "there is a mind in this home already"
        raise Refused(what, field="home", remedy="Name an empty home: --home DIR.")


def _try(db: DB, name: str, folder: Path) -> None:
    """Make the objects of a database and throw them away. Raises: BriefError: there are none, or they are damaged."""
    with snapshot(db) as root:
        _fill(root, name, folder, counts := {"image": 0, "journal": 0, "blobs": 0}, is_kept=False)
        if not root:
            raise BriefError(f"{LINES} has nothing of the {name}", field="folder", remedy=_WHOLE)
        if counts["blobs"] and not keeps_blobs(db.storage):
            what = "the export has blobs, and the image has no folder of them"
            raise Refused(what, field="image", remedy=_BLOBS_FOLDER)
        if name == "image":
            for key, found, wanted in roots.find_wrong_kinds(root):
                what = f"{key} of the image is a {found}, and no {wanted}"
                raise BriefError(what, field="slots", remedy=_AGAIN)


def _disarm(root: Root, at: str) -> DisarmingReport:
    try:
        # An erasure that was cut off is whose it was: its note could name anything of the mind that it comes to. The
        # nodes of a server do not come with a mind either.
        left_behind, done = [roots.as_mapping(root).pop(name, None) for name in _NOT_MOVED], disarm(root, at)
        if done["grants"] or any(each is not None for each in left_behind):
            object_states.keep_added(connection_of(root), _reachable(root))
        return done
    except Exception as error:  # hostile trees may raise anything
        what = f"the grants or effects of the export are damaged: {type(error).__name__} {error}"[:200]
        raise BriefError(what, field="slots", remedy=_AGAIN) from error


def _fill(root: AnyRoot, name: str, folder: Path, counts: dict[str, int], *, is_kept: bool = True) -> None:
    """Make the objects of a database; blobs are only looked at if the objects are not kept."""
    whole = roots.as_mapping(root)
    whole.clear()
    objects: dict[str, Persistent] = {oid_text(z64): whole}
    for number, line in read_lines(folder):
        if line["db"] == name and line["oid"] not in objects:
            kind = object_states.class_of(str(line["kind"]))
            objects[line["oid"]] = made = kind.__new__(kind) if kind is not Blob else Blob()
            object_states.add_with_oid(connection_of(root), made, _oid_of(line["oid"], number))
    if is_kept:
        object_states.pass_over(connection_of(root), {_oid_of(oid, 0) for oid in objects})

    def find(oid: str) -> Persistent:
        if oid not in objects:
            raise BriefError(f"{oid[:40]} is referred to and not there", field="oid", remedy=_AGAIN)
        return objects[oid]

    for number, line in read_lines(folder):
        if line["db"] == name:
            if "sha256" in line:
                _check_blob(str(line["sha256"]), folder / BLOBS)
                counts["blobs"] += 1
            if is_kept or "sha256" not in line:
                _set_state(objects[line["oid"]], line, number, find, folder)
            counts[name] += 1


def _oid_of(text: object, number: int) -> bytes:
    try:
        oid = serial_of(str(text))
        if oid < _OIDS:
            return oid
        raise ValueError("it is too high")
    except (ValueError, OverflowError) as error:
        raise BriefError(f"line {number}: {str(text)[:40]!r} is no oid", field="oid", remedy=_AGAIN) from error


def _set_state(obj: Any, line: dict[str, Any], number: int, find: object_states.FindObject, folder: Path) -> None:
    try:
        if isinstance(obj, Blob):
            _fill_blob(obj, folder / BLOBS / str(line["sha256"]))
        elif line["oid"] == oid_text(z64):
            obj.update(object_states.decode(line["slots"], find)["data"])
        else:
            object_states.set_state(obj, line["slots"], find)
    except BatosError:
        raise
    except Exception as error:  # a hostile state may raise anything
        what = f"line {number} of {LINES} is no state of a {line['kind']}: {error}"[:200]
        raise BriefError(what, field=f"line {number}", remedy=_AGAIN) from error


def _check_blob(digest: str, folder: Path) -> None:
    path = folder / digest
    if not digest.isalnum() or not path.is_file() or _sha256(path) != digest:
        raise BriefError(f"the blob {digest[:64]} is missing or changed", field="blobs", remedy=_AGAIN)


def _fill_blob(blob: Blob, path: Path) -> None:
    with path.open("rb") as source, blob.open("w") as target:
        shutil.copyfileobj(source, target)
