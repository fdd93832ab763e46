"""The verb `remember`: files, folders, stdin and texts become documents of the image, in batches."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import click

from batos.cli import standard_input
from batos.cli.command_line import file_names, given_name, given_names
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Door, Opened
from batos.cli.render.memory_texts import RememberProgress, remembered_text
from batos.cli.typed_names import exists
from batos.cli.verb_options import VerbCall, run, with_server
from batos.memory.reading.file_texts import FileTexts, ReadingLimits
from batos.memory.reading.folder_files import MANY, FileReader, FoundFile, SkippedFile, TextToSend, count
from batos.protocol.brief import AttachmentRef, File
from batos.protocol.errors import BriefError, Busy, UsageError
from batos.verbs.schedule_verbs import added_text

#: Texts in one commit, bytes of them, and bytes of what is told of them: a message has room for 1 MiB.
TEXTS: Final = 128
_BYTES: Final = 4 * 2**20
TOLD: Final = 300_000
#: Bytes before the texts of a batch, by which it is no other one: another client may send the same texts.
_MARK: Final = 16
#: Lines that are kept for the document at the end; the events of --json have all.
KEPT: Final = 1_000
#: Times that a server without room is asked again.
_TRIES: Final = 120


class MemorySender:
    """Sends texts to be remembered. `about` says whose they are, and in which scope.

    Where a server has no room, it is asked again after a `pause`, in seconds.
    """

    def __init__(self, way: Door, about: Mapping[str, object], progress: RememberProgress, *, pause: float = 1) -> None:
        self._pause = pause
        self._way = way
        self._about = about
        self._progress = progress
        self._pending: list[TextToSend] = []
        self._size = self._told = 0
        self._files: list[int] = []
        self._most = _BYTES
        self._lines: list[dict[str, object]] = []
        self._skipped: list[dict[str, object]] = []
        self.counts: Counter[str] = Counter()

    async def limit(self) -> int:
        """Return how many bytes a text may have where it is sent to; a batch has no more either."""
        limits = (await self._way.call("hello"))["limits"]
        most = int(limits["attachment_bytes"]) - _MARK
        self._most = min(_BYTES, most)
        return most

    async def pick_unknown(self, batch: Sequence[FoundFile]) -> list[FoundFile]:
        """Return the files of a batch whose content is not known; tell of the others."""
        asked = {
            each.source: {"name": "file", "media_type": "text/plain", "sha256": each.sha256, "source": each.source}
            for each in batch
            if each.format not in MANY
        }
        if not asked:
            return list(batch)
        told = await self._call("remember", {"files": list(asked.values()), "check": True, **self._about})
        self.take(told)
        known = {line["source"] for line in told["remembered"]}
        done = [each.size for each in batch if each.source in known]
        self._progress.advance(len(done), sum(done))
        return [each for each in batch if each.source not in known]

    async def send(self, text: TextToSend) -> None:
        """Take a text, and send what has come together when it is enough for a commit."""
        told = len(json.dumps(text.about))
        full = len(self._pending) == TEXTS or self._told + told > TOLD or self._size + len(text.data) > self._most
        if self._pending and full:
            await self.flush()
        self._pending.append(text)
        self._size += len(text.data)
        self._told += told

    def count_file(self, size: int) -> None:
        """Count a file whose texts were all taken; it is told of with the next commit."""
        self._files.append(size)

    async def flush(self) -> None:
        """Send what has come together: one file with all texts, and what is told of each."""
        pending, self._pending = self._pending, []
        self._size = self._told = 0
        if pending:
            file = await asyncio.to_thread(_pack, pending)
            await self._attach(file)
            files, start = [], _MARK
            for each in pending:
                end = start + len(each.data)
                files.append({**each.about, "sha256": file.ref.sha256, "span": [start, end]})
                start = end
            self.take(await self._call("remember", {"files": files, **self._about}))
        files_done, self._files = self._files, []
        self._progress.advance(len(files_done), sum(files_done))

    async def send_text(self, text: str, own: Mapping[str, object]) -> dict[str, object]:
        """Send a text that somebody typed, with the source and title that were chosen for it; return its fate."""
        told = await self._call("remember", {"text": text, **self._about, **own})
        self.take(told)
        return told

    async def send_whole(self, name: str, data: bytes, own: Mapping[str, object]) -> None:
        """Send a file as it is, which is read where it is sent to. Raises: BriefError: it has no text."""
        digest = hashlib.sha256(data).hexdigest()
        ref = AttachmentRef(name=name, media_type="text/plain", sha256=digest)
        await self._attach(File(ref, data))
        self.take(await self._call("remember", {"files": [{**ref.model_dump(), **own}], **self._about}))

    def take(self, told: Mapping[str, Any]) -> None:
        """Keep what became of texts."""
        for line in told["remembered"]:
            self.counts[line["state"]] += 1
            self.counts["parts"] += line["chunks"] if line["state"] != "known" else 0
            if len(self._lines) < KEPT:
                self._lines.append(line)
            self._progress.tell_document(line)
        for line in told.get("unread", ()):
            self.skip(SkippedFile(line["source"], line["reason"], is_text=True))

    def skip(self, skipped: SkippedFile) -> None:
        """Keep what was skipped."""
        self.counts["skipped"] += 1
        self.counts["failed"] += skipped.is_text
        line = {"source": skipped.source, "reason": skipped.reason, "failed": skipped.is_text}
        if len(self._skipped) < KEPT:
            self._skipped.append(line)
        self._progress.tell_skipped(line)
        if skipped.size:
            self._progress.advance(1, skipped.size)

    def document(self, left_out: Mapping[str, int]) -> dict[str, Any]:
        """Return the verb's result: of long lists the beginning, and how many more there are."""
        names = ("new", "replaced", "known", "parts", "skipped", "failed")
        remembered = sum(self.counts[name] for name in names[:3])
        return {
            "remembered": self._lines,
            "skipped": sorted(self._skipped, key=lambda each: not each["failed"]),
            "counts": {name: self.counts[name] for name in names},
            "left_out": dict(left_out),
            "more": {
                "remembered": remembered - len(self._lines),
                "skipped": self.counts["skipped"] - len(self._skipped),
            },
        }

    async def _attach(self, file: File) -> None:
        for _ in range(_TRIES):
            try:
                await self._way.attach([file])
                return
            except Busy:
                await asyncio.sleep(self._pause)
        await self._way.attach([file])

    async def _call(self, verb: str, args: Mapping[str, object]) -> dict[str, Any]:
        for _ in range(_TRIES):
            try:
                return await self._way.call(verb, args)
            except Busy:
                await asyncio.sleep(self._pause)
        return await self._way.call(verb, args)


def _pack(texts: Sequence[TextToSend]) -> File:
    data = os.urandom(_MARK) + b"".join(each.data for each in texts)
    digest = hashlib.sha256(data).hexdigest()
    return File(AttachmentRef(name="texts", media_type="text/plain", sha256=digest), data)


#: Bytes of files that are looked at together, and texts of a file that are taken from its reader together.
_LOOKED_AT: Final = 4 * 2**20
_TAKEN: Final = 16


@click.command()
@click.argument("what", metavar="FILE|FOLDER|-|TEXT", nargs=-1, required=True, shell_complete=file_names)
@click.option("--scope", type=given_name, help="The scope that it belongs to; the default is `default`.")
@click.option("--source", type=given_name, help="Where it came from; the default is the file's path.")
@click.option("--title", type=given_name, help="Its title; the default is its first heading, or its name.")
@click.option("--key", type=given_name, help="TEXT is a fact: the value of this key, instead of its older one.")
@click.option("--supersedes", metavar="KEY|ID", type=given_name, help="Another fact that this one takes the place of.")
@click.option("--depends-on", metavar="KEY,..", type=given_names, help="Facts without which this one does not hold.")
@click.option("--all", "every", is_flag=True, help="Also files that are hidden, or that .gitignore leaves out.")
@click.option("--watch", is_flag=True, help="Remember a FOLDER from now on as it changes; `batos schedule` lists it.")
@with_server
def remember(called: VerbCall, what: tuple[str, ...], every: bool, watch: bool, **options: object) -> int:
    """Remember files, the files of a folder, stdin (`-`), or a TEXT of several words.

    Text, Markdown, source code, HTML, PDF, mails, mailboxes, and chat logs are read. Later questions are answered from
    them by themselves. A content that is known is not stored again. A file that changed takes the place of its older
    content. Files that cannot be read are skipped and listed, and the exit code is then 1; a folder's files that are no
    text are skipped too, and the exit code is 1 if there is nothing else. After an interruption run the same command
    again: it continues.

    With --key the TEXT is a fact. The older value of its key, and another fact that --supersedes names, are superseded
    by it, stay as history, and are only recalled with that mark. Facts that depend on them are marked too.
    """
    given = {name: value for name, value in options.items() if value}
    about = {"owner": called.settings.asker, **({"scope": given.pop("scope")} if "scope" in given else {})}
    if given and (len(what) > 1 or (exists(what[0]) and Path(what[0]).is_dir())):
        named = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{named} are for one thing", field=next(iter(given)), remedy="Remember one at a time.")
    if watch and (every or about.keys() > {"owner"} or not all(map(os.path.isdir, what))):
        raise UsageError("--watch is for folders alone", field="watch", remedy="Leave --scope and --all out.")
    if "key" not in given and given.keys() & {"supersedes", "depends_on"}:
        raise UsageError("only a fact supersedes or depends on others", field="key", remedy="Name its key: --key K.")
    progress = RememberProgress(called.console, quiet=called.quiet)
    for each in what if "key" not in given else ():
        _check(each)
    work = _remember_fact if "key" in given else _remember
    told = run(work(open_door(called), _Order(called, what, given, every, watch), about, progress))
    called.answer(told, _remembered_text)
    counts = told["counts"]
    nothing = counts["skipped"] and not counts["new"] + counts["replaced"] + counts["known"]
    return 1 if counts["failed"] or nothing else 0


@dataclass(frozen=True, slots=True)
class _Order:
    """The things that somebody wants remembered, with the source and title that were chosen."""

    called: VerbCall
    what: Sequence[str]
    own: Mapping[str, object]
    every: bool
    watch: bool

    @property
    def paths(self) -> list[Path]:
        """Return the files and folders among them."""
        return [Path(each) for each in self.what if each != "-" and exists(each)]


def _check(each: str) -> None:
    """Refuse what is neither a file nor a text, before anything is remembered."""
    if each != "-" and not exists(each) and len(each.split()) < 2:
        raise UsageError(
            f"there is no file {each!r}",
            field="what",
            remedy="Check the path. A text that is to be remembered has several words, in quotes.",
        )


async def _remember_fact(
    opened: Opened, wanted: _Order, about: Mapping[str, object], progress: RememberProgress
) -> dict[str, Any]:
    """Remember a fact, and tell what gave way to it; `-` reads its value."""
    value = wanted.what[0]
    if value == "-":
        limit = wanted.called.settings.attachment_bytes
        data = standard_input.read_stdin(limit, "what", wanted.called.note)
        value = standard_input.decode(data, "what", "fact").strip()
    async with opened as way:
        sender = MemorySender(way, about, progress)
        told = await sender.send_text(value, wanted.own)
        vectors = await _embed(way, progress)
    return {**sender.document({}), "vectors": vectors, "not_found": told.get("not_found", [])}


async def _remember(
    opened: Opened, wanted: _Order, about: Mapping[str, object], progress: RememberProgress
) -> dict[str, Any]:
    """Remember all that was named; return the verb's result."""
    async with opened as way:
        sender = MemorySender(way, about, progress)
        limit = await sender.limit()
        with FileTexts(ReadingLimits(limit)) as texts:
            reader = FileReader(limit, texts, sender.skip, wanted.every, wanted.own)
            try:
                await _send_all(wanted, reader, sender, progress)
            except asyncio.CancelledError:
                progress.tell_interruption()
                raise
        any_left = sender.counts["new"] + sender.counts["replaced"] + sender.counts["known"] > 0
        vectors = await _embed(way, progress) if any_left else None
        watching = [await way.call("schedule_add", _watching(each, about)) for each in wanted.paths if wanted.watch]
    told = sender.document(reader.left_out)
    return {
        **told, **({} if vectors is None else {"vectors": vectors}), **({"watching": watching} if watching else {}),
    }  # fmt: skip


def _watching(folder: Path, about: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of the verb by which a folder is remembered as it changes."""
    return {"when": f"on file {folder.resolve()}", "remember": True, "user": about["owner"]}


def _remembered_text(told: Mapping[str, Any]) -> str:
    return "\n".join([remembered_text(told), *map(added_text, told.get("watching", ()))])


async def _send_all(wanted: _Order, reader: FileReader, sender: MemorySender, progress: RememberProgress) -> None:
    """Send all texts, first those that were typed."""
    for each in wanted.what:
        if each == "-":
            data = standard_input.read_stdin(reader.limit + 1, "what", wanted.called.note)
            if len(data) > reader.limit:
                raise BriefError(f"stdin has more than {reader.limit:,} bytes", remedy="Give its parts as files.")
            await sender.send_whole(standard_input.NAME, data, wanted.own)
        elif not exists(each):
            await sender.send_text(each, wanted.own)
    if not wanted.paths:
        return
    counter = FileReader(reader.limit, reader.texts, every=wanted.every)
    counts = [await asyncio.to_thread(count, counter, path) for path in wanted.paths]
    progress.expect(sum(files for files, _ in counts), sum(size for _, size in counts))
    batches = _batches(chain.from_iterable(map(reader.find, wanted.paths)))
    while batch := await reader.texts.in_thread(lambda: next(batches, None)):
        for found in await sender.pick_unknown(batch):
            await _send_file(found, reader, sender)
    await sender.flush()


async def _send_file(found: FoundFile, reader: FileReader, sender: MemorySender) -> None:
    """Send the texts of a file, which are read in a thread: the loop is the image's too."""
    texts = reader.read(found)
    while some := await reader.texts.in_thread(lambda: _take(texts)):
        for each in some:
            await sender.send(each)
    sender.count_file(found.size)


def _take(texts: Iterator[TextToSend]) -> list[TextToSend]:
    """Take some of the texts of a file: none at its end, and a long one alone."""
    some: list[TextToSend] = []
    for each in islice(texts, _TAKEN):
        some.append(each)
        if len(each.data) > _LOOKED_AT:
            break
    return some


def _batches(found: Iterator[FoundFile]) -> Iterator[list[FoundFile]]:
    """Yield files in batches whose digests are compared together."""
    batch: list[FoundFile] = []
    size = told = 0
    for each in found:
        batch.append(each)
        size += len(each.text or "")
        told += len(each.source.encode()) + 200
        if len(batch) == TEXTS or size > _LOOKED_AT or told > TOLD:
            yield batch
            batch, size, told = [], 0, 0
    if batch:
        yield batch


async def _embed(way: Door, progress: RememberProgress) -> dict[str, object]:
    """Wait until the new parts have vectors, or until it is known why not; tell how far it is."""

    def on_event(_event: str, told: Mapping[str, Any]) -> None:
        progress.tell_missing(told["missing"])

    return await way.call("embed_memories", on_event=on_event)
