"""Hands texts to the verb `remember` in batches, each a commit, and keeps what became of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from batos.cli.doors.door import Door
from batos.cli.remembering.memory_files import MANY, FoundFile, SkippedFile, TextToSend
from batos.cli.render.remember_progress import RememberProgress
from batos.protocol.brief import AttachmentRef, File
from batos.protocol.errors import Busy

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
