"""The texts of files that were sent to be remembered: slices of what is text, and what is read from the others."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final, NamedTuple, TypeAlias

from batos.memory.known_texts import GivenContent, Incoming
from batos.memory.reading.file_texts import FileTexts, ReadingLimits
from batos.memory.reading.read_text import (
    HEAD,
    ReadText,
    UnreadPart,
    bound_phrases,
    digest_of,
    format_of,
    moment_of,
    one_line,
    text_format,
)
from batos.protocol.brief import AttachmentRef, File
from batos.protocol.errors import BriefError
from batos.protocol.memory_documents import UnreadLine
from batos.verbs.memory_verbs import RememberedFile

#: Returns the bytes of a file that a user sent before, or that the image has.
Content: TypeAlias = Callable[[AttachmentRef, str | None], Awaitable[bytes]]
#: Removes files that were sent and are needed no more: by their digests, for their sender.
ForgetFiles: TypeAlias = Callable[[Iterable[str], str], Awaitable[None]]

#: All files of a request have at most so many times the length of one text: spans of one file may overlap.
_TOGETHER: Final = 8
#: The parts of a file that could not be read of which each has a line.
_MOST_UNREAD: Final = 200
#: Files that are read at once in processes of their own.
_READERS: Final = 2


class OwnedPlace(NamedTuple):
    """The owner of memories and their scope."""

    user: str
    scope: str


@dataclass(frozen=True, slots=True)
class SentTexts:
    """The texts of files that were sent, and a line for each part of the files that could not be read."""

    texts: list[Incoming] = field(default_factory=list)
    unread: list[UnreadLine] = field(default_factory=list)

    def add_unread(self, file: RememberedFile, parts: Sequence[UnreadPart]) -> None:
        """Add the parts of a file that could not be read: the first of many, and how many more there are."""
        named = file.source or file.name
        shown, left = parts[:_MOST_UNREAD], len(parts[_MOST_UNREAD:])
        for each in (*shown, *([UnreadPart("", f"{left:,} more of its parts cannot be read")] if left else ())):
            self.unread.append({"source": f"{named}#{each.place}" if each.place else named, "reason": each.reason})


@dataclass(frozen=True, slots=True)
class SentFiles:
    """Finds the files that requests name; one that gives no text for so many seconds is left unread."""

    content: Content
    forget: ForgetFiles
    seconds: int = ReadingLimits(0).seconds
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_READERS))

    async def texts(
        self, files: Sequence[RememberedFile], sender: str | None, owned: OwnedPlace, limit: int
    ) -> SentTexts:
        """Return the texts of files, each of at most `limit` bytes, and what of the files could not be read.

        Raises: BriefError: one of the files was not sent, or has no text, or all are too long together.
        """
        sent: dict[str, bytes] = {}
        room = _Room(_TOGETHER * limit)
        for file in files:
            if file.sha256 not in sent:
                ref = AttachmentRef(name=file.name, media_type=file.media_type, sha256=file.sha256)
                sent[file.sha256] = await self.content(ref, sender)
            room.take(_length(file, sent[file.sha256], limit))
        found = SentTexts()
        for texts, file in zip(await asyncio.to_thread(_slices, files, sent, owned), files, strict=True):
            if texts is not None:
                found.texts.append(texts)
            else:
                read, unread = await self._read(file.name, sent[file.sha256], limit)
                room.take(sum(len(each.text) for each in read))
                found.texts.extend(_found_text(file, each, owned) for each in read)
                found.add_unread(file, unread)
        return found

    async def as_text(self, file: File, limit: int) -> File:
        """Return a file as a mission takes it: a plain text as it is, of another one its texts one below the other.

        Raises: BriefError: it has no text that can be read, or one of more than `limit` bytes.
        """
        if _is_plain(file.ref.name, file.data):
            return file
        read, unread = await self._read(file.ref.name, file.data, limit, "attachments")
        data = _below_each_other(read).encode("utf-8", "replace")
        if len(data) > limit:
            what = f"the text of {file.ref.name} has more than {limit:,} bytes"
            raise BriefError(what, field="attachments", remedy="Remember the file, and ask without it.")
        phrases = [phrase for each in read for phrase in each.left_out]
        phrases += [f"{each.place}: {each.reason}" if each.place else each.reason for each in unread]
        ref = AttachmentRef(
            name=file.ref.name, media_type="text/markdown", sha256=hashlib.sha256(data).hexdigest(),
            left_out=bound_phrases(list(dict.fromkeys(phrases))),
        )  # fmt: skip
        return File(ref, data)

    async def _read(
        self, name: str, data: bytes, limit: int, field_: str = "args.files"
    ) -> tuple[list[ReadText], list[UnreadPart]]:
        """Read a file in a process of its own; return its texts, and what could not be read.

        Raises: BriefError: it has no text that can be read.
        """
        format_ = format_of(name, data[:HEAD])
        format_ = "other_text" if format_ == "plain" else format_
        async with self._turns:
            with FileTexts(ReadingLimits(limit, seconds=self.seconds)) as texts:
                found, unread = await texts.in_thread(lambda: texts.read_bytes(name, data, format_))
        if not found:
            what = f"{name} cannot be read: {unread[0].reason}"
            raise BriefError(what, field=field_, remedy="Convert it to UTF-8 text.")
        return found, unread


@dataclass(slots=True)
class _Room:
    """The room that the files of a request have together, in bytes."""

    size: int
    _left: int = field(init=False)

    def __post_init__(self) -> None:
        self._left = self.size

    def take(self, length: int) -> None:
        """Take some of the room. Raises: BriefError: there is not so much left."""
        self._left -= length
        if self._left < 0:
            what = f"the files have more than {self.size:,} bytes together"
            raise BriefError(what, field="args.files", remedy="Send them in several requests.")


def _length(file: RememberedFile, data: bytes, limit: int) -> int:
    """Return the bytes that are taken of a file; of a whole one no more than one text may have."""
    return min(len(data), limit) if file.span is None else len(range(*slice(*file.span).indices(len(data))))


def contents_of(files: Sequence[RememberedFile], owned: OwnedPlace) -> list[GivenContent]:
    """Return what tells whether files are known."""
    return [GivenContent(*owned, each.source, each.original or each.sha256) for each in files]


def _slices(files: Sequence[RememberedFile], sent: dict[str, bytes], owned: OwnedPlace) -> list[Incoming | None]:
    """Return the texts of files that are plain text, and None for the others."""
    found: list[Incoming | None] = []
    for file in files:
        data = sent[file.sha256]
        if file.span is not None:
            found.append(sent_text(file, data[slice(*file.span)], owned))
        else:
            found.append(sent_text(file, data, owned) if _is_plain(file.name, data) else None)
    return found


def _is_plain(name: str, data: bytes) -> bool:
    return format_of(name, data[:HEAD]) == text_format(data) == "plain" and _decode(data) is not None


def _decode(data: bytes) -> str | None:
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None


def sent_text(file: RememberedFile, data: bytes, owned: OwnedPlace) -> Incoming:
    """Return a text that was sent as UTF-8. Raises: BriefError: it is none."""
    text = _decode(data)
    if text is None or not text.strip():
        why = "is not a text file" if text is None else "is empty"
        raise BriefError(f"{file.name} {why}", field="args.files", remedy="Send UTF-8 text.")
    digest = file.original or (file.sha256 if file.span is None else hashlib.sha256(data).hexdigest())
    return Incoming(
        *owned, file.source, file.title or title_of(file.name, text), file.media_type, text, digest, "external",
        file.kind, moment_of(file.said_at), file.speaker, file.conversation, left_out=tuple(file.left_out),
    )  # fmt: skip


def _below_each_other(read: Sequence[ReadText]) -> str:
    """Return the texts of a file as one; each of several, such as mails, behind a line that says whose it is."""
    if len(read) == 1:
        return read[0].text
    heads = (", ".join(filter(None, (each.speaker or each.title, each.said_at[:10]))) for each in read)
    return "\n\n".join(
        f"## {head}\n\n{each.text}" if head else each.text for head, each in zip(heads, read, strict=True)
    )


def _found_text(file: RememberedFile, read: ReadText, owned: OwnedPlace) -> Incoming:
    source = f"{file.source}#{read.place}" if file.source and read.place else file.source
    digest = digest_of(read) if read.place else file.original or file.sha256
    title = (file.title if not read.place else None) or read.title or title_of(file.name, read.text)
    return Incoming(
        *owned, source, title, read.media_type, read.text, digest, "external",
        read.kind, read.said_at, read.speaker, read.conversation, left_out=read.left_out,
    )  # fmt: skip


# -- gives documents their titles


_HEADING = re.compile(r"\A\s*#[^\S\n]+([^\n]+)")


def title_of(name: str, text: str) -> str:
    r"""Return a document's title: its first line where that is a heading, else its file's name without the ending.

    A title is short, since it is searched with each part of its document.

    >>> title_of("lamp.md", "# The lamp\n\nIt burns.")
    'The lamp'
    >>> title_of("notes/lamp.txt", "It burns.")
    'lamp'
    """
    heading = _HEADING.match(text)
    return (one_line(heading[1]) if heading else "") or PurePath(name).stem or name
