"""Folders that schedules watch: what is new or changed is remembered or asked about, and what went is forgotten."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final

from batos.agency.records.schedule_records import FileLook, ScheduleData
from batos.agency.schedules import ChangedFiles, RememberedPart
from batos.image.roots import Root
from batos.memory.document_store import DocumentStore
from batos.memory.reading.file_texts import FileTexts, ReadingLimits
from batos.memory.reading.folder_files import FileReader
from batos.memory.reading.read_text import shorten_source, source_of
from batos.memory.records import memory_places, memory_records
from batos.protocol.brief import ATTACHMENTS_LIMIT, DEFAULT_SCOPE, File, as_file
from batos.protocol.errors import BatosError, Refused
from batos.server.dispatch.sent_files import OwnedPlace, SentFiles, sent_text
from batos.uvm import UVM
from batos.verbs.memory_verbs import RememberedFile

#: The most files of a folder that is watched.
MOST: Final = 20_000
#: Texts that are remembered together, and files of one look: other schedules wait meanwhile.
_TOGETHER, _IN_A_LOOK = 32, 256


class WatchedFolders:
    """Looks at the folders of schedules, and remembers or reads what changed in them."""

    def __init__(self, uvm: UVM, files: SentFiles) -> None:
        self._uvm, self._files, self._in_a_look = uvm, files, _IN_A_LOOK
        #: The files that the last look found in a folder, by schedule; and those that are done with.
        self._last: dict[str, FileLook] = {}
        self._done: dict[str, FileLook] = {}
        #: The places of memories that the last look missed: a file may be moved.
        self._missed: dict[str, set[str]] = {}

    async def remember(self, schedule: ScheduleData) -> RememberedPart:
        """Remember some of what is new or changed; forget what went when nothing is left.

        Raises: Refused: the folder is not there, or is empty where it was not: nothing is forgotten for that.
        """
        name, folder = schedule["id"], Path(schedule["folder"])
        owned = OwnedPlace(schedule["user"], DEFAULT_SCOPE)
        found = await self._look(name, folder)
        changed = _differing(found, self._done.get(name, {}))
        now, is_more = changed[: self._in_a_look], len(changed) > self._in_a_look
        new = replaced = 0
        with FileTexts(self._limits()) as texts:
            reader = self._reader(texts)
            some = _texts_of(reader, now)
            while batch := await texts.in_thread(partial(_take, some)):
                told = await self._store.remember([sent_text(*each, owned) for each in batch])
                states = [line["state"] for line in told["remembered"]]
                new, replaced = new + states.count("new"), replaced + states.count("replaced")
        self._done.setdefault(name, {}).update((path, found[path]) for path in now)
        gone = [] if is_more else await self._list_gone(name, folder, schedule["user"])
        if gone:
            await self._forget(gone)
        if new or replaced:
            self._uvm.backfill.job.wake()
        counts = {"remembered": new, "replaced": replaced, "forgotten": len(gone)}
        return RememberedPart(", ".join(f"{count} {what}" for what, count in counts.items() if count), is_more)

    async def list_changed(self, schedule: ScheduleData) -> ChangedFiles:
        """Return the files that are new or changed since the last mission about the folder.

        At the first look everything is as it was. Raises: Refused: the folder is not there.
        """
        name, folder, seen = schedule["id"], Path(schedule["rule"][-1]), schedule["seen"]
        found = await self._look(name, folder)
        if seen is None:
            return ChangedFiles([], self._last[name])
        paths = _differing(found, seen)[:ATTACHMENTS_LIMIT]
        files = [each for each in [await self._attach(folder, path) for path in paths] if each is not None]
        kept = {path: look for path, look in seen.items() if path in self._last[name]}
        return ChangedFiles(files, {**kept, **{path: found[path] for path in paths}})

    @property
    def _store(self) -> DocumentStore:
        return self._uvm.document_store

    def _limits(self) -> ReadingLimits:
        return ReadingLimits(self._uvm.settings.attachment_bytes)

    def _reader(self, texts: FileTexts) -> FileReader:
        return FileReader(self._uvm.settings.attachment_bytes, texts)

    async def _look(self, name: str, folder: Path) -> FileLook:
        """Return the files that are as they were at the look before, with their sizes and times.

        Raises: Refused: the folder is not there, or has too many files.
        """
        with FileTexts(self._limits()) as texts:
            now = await asyncio.to_thread(_list_files, self._reader(texts), folder)
        before, self._last[name] = self._last.get(name, {}), now
        return {path: look for path, look in now.items() if before.get(path) == look}

    async def _list_gone(self, name: str, folder: Path, user: str) -> list[tuple[str, str]]:
        """Return the memories, each with its place, whose files two looks have missed: a file may be moved."""
        missing = await asyncio.to_thread(self._missing, folder, user, self._last[name])
        before, self._missed[name] = self._missed.get(name, set()), {place for _, place in missing}
        return [each for each in missing if each[1] in before]

    def _missing(self, folder: Path, user: str, now: FileLook) -> list[tuple[str, str]]:
        """Return the memories of files below a folder that are not there any more, each with its place.

        Raises: Refused: no file is left of several, as where a disk is not mounted.
        """
        below = f"{source_of(folder)}{os.sep}"
        with self._uvm.image.snapshot() as root:
            kept = list(memory_places.list_below(root, below, user, DEFAULT_SCOPE))
        gone = [(name, place) for place, name in kept if not any(map(_is_there, _files_of(place)))]
        if gone:  # a name that is no UTF-8 is another one in its place
            named = {shorten_source(os.fsencode(path).decode("utf-8", "replace")) for path in now}
            gone = [each for each in gone if named.isdisjoint(_files_of(each[1]))]
        if len(gone) > 1 and len(gone) == len(kept) and not now:
            what = f"{folder} has none of its {len(gone)} files any more; nothing was forgotten"
            raise Refused(what, field="folder", remedy="If that is meant, `batos forget` them; else mount it.")
        return gone

    async def _forget(self, gone: Sequence[tuple[str, str]]) -> None:
        """Forget memories whose files went; one that stands at another place too is left there."""

        def change(root: Root) -> None:
            for name, place in gone:
                if memory_places.places_of(root, name):
                    memory_records.leave_place(root, name, place)
                else:
                    self._store.forget_exactly(root, [name])

        async with self._store.exclusively():
            await self._uvm.image.shared.apply(change)

    async def _attach(self, folder: Path, path: str) -> File | None:
        """Return a file as a mission takes it; None: it has no text, or is gone."""
        try:
            limit = self._uvm.settings.attachment_bytes
            data = await asyncio.to_thread(_read, path, limit + 1)
            return await self._files.as_text(as_file(str(Path(path).relative_to(folder)), data, limit), limit)
        except (OSError, BatosError):  # what cannot be read now is not asked about
            return None


def _list_files(reader: FileReader, folder: Path) -> FileLook:
    """Return a folder's files by their paths. Raises: Refused: it is not there, or has too many."""
    try:
        is_there = folder.is_dir()
    except OSError:  # a mount whose server does not answer
        is_there = False
    if not is_there:
        remedy = "Mount or make it, then `batos schedule resume`."
        raise Refused(f"the folder {folder} is not there", field="folder", remedy=remedy)
    found: FileLook = {}
    for path in islice(reader.walk(folder), MOST + 1):
        try:
            about = path.stat()
        except OSError:  # it went meanwhile
            continue
        if stat.S_ISREG(about.st_mode):  # a pipe would be waited for
            found[str(path)] = (about.st_size, about.st_mtime_ns)
    if len(found) > MOST:
        remedy = "Watch a folder below it, or name what is not to be read in a .batosignore."
        raise Refused(f"{folder} has more than {MOST:,} files", field="folder", remedy=remedy)
    return found


def _differing(found: FileLook, before: FileLook) -> list[str]:
    return [path for path, look in found.items() if before.get(path) != look]


def _read(path: str, most: int) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(most)


def _take(some: Iterator[tuple[RememberedFile, bytes]]) -> list[tuple[RememberedFile, bytes]]:
    return list(islice(some, _TOGETHER))


def _texts_of(reader: FileReader, paths: Sequence[str]) -> Iterator[tuple[RememberedFile, bytes]]:
    """Yield the texts of some files, as they are sent to be remembered."""
    for path in paths:
        for text in chain.from_iterable(map(reader.read, reader.find(Path(path)))):
            sha256 = hashlib.sha256(text.data).hexdigest()
            yield RememberedFile(sha256=sha256, **text.about), text.data  # type: ignore[arg-type]  # as `remember` sends it


def _files_of(place: str) -> list[str]:
    """Return the files that a place may be of: a text of a file with several stands behind a `#`, and names have it."""
    return [place, *(place[: each.start()] for each in re.finditer("#", place))]


def _is_there(path: str) -> bool:
    """Test if a file is there; one that may not be looked at is."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - many, and most are no paths yet
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError:
        return True
