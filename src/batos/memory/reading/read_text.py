"""The texts that a file holds, as they pass from the process that reads it to the one that asked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

#: A text of its own, or a part of a conversation.
ReadKind: TypeAlias = Literal["document", "turn"]
#: Characters of a title at most.
TITLE: Final = 200
#: Phrases on what a text lacks at most.
PHRASES: Final = 12
_HALF: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ReadText:
    """A text of a file. `place` tells it from the file's others: "" where the file is one text.

    `said_at` is ISO 8601 in UTC, and like `speaker` and `conversation` "" where the file does not tell. An empty title
    is left to whoever remembers it. `left_out` has a phrase for each part of the file that the text lacks, such as
    "2 of 3 pages have no text (2, 3)".
    """

    text: str
    title: str = ""
    media_type: str = "text/plain"
    place: str = ""
    kind: ReadKind = "document"
    said_at: str = ""
    speaker: str = ""
    conversation: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnreadPart:
    """A text, or with the place "" the rest of a file, that could not be read, and the reason.

    Where it is no text at all nothing is lost.
    """

    place: str
    reason: str
    is_text: bool = True


Read: TypeAlias = ReadText | UnreadPart
#: Takes what was read, one by one.
Emit: TypeAlias = Callable[[Read], None]


def digest_of(read: ReadText) -> str:
    """Return the SHA-256 of a text and all that is told of it: two turns with the same words are two."""
    about = (read.place, read.kind, read.said_at, read.speaker, read.conversation, read.text)
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


class NotReadable(Exception):
    """A file is not what its kind says; the reason is the message."""


class NoText(NotReadable):
    """A file has no text that anybody could read."""


def as_line(read: Read) -> bytes:
    """Return what was read as a line of JSON."""
    what = "text" if isinstance(read, ReadText) else "unread"
    return json.dumps({what: asdict(read)}).encode() + b"\n"


def from_line(line: bytes) -> Read | str | None:
    """Return what a line holds: what was read, or how reading ended ("": well); None where the line is none."""
    try:
        said: Any = json.loads(line)
        if "end" in said:
            return str(said["end"])
        if "text" in said:
            left_out = bound_phrases([str(each) for each in said["text"].pop("left_out", ())])
            told = {name: str(value) for name, value in said["text"].items()}
            kind: ReadKind = "turn" if told.pop("kind", "") == "turn" else "document"
            return ReadText(**told, kind=kind, left_out=left_out)
        unread = said["unread"]
        return UnreadPart(str(unread["place"]), str(unread["reason"]), bool(unread["is_text"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # a process that was ended in the middle of a line


def bound_phrases(phrases: Sequence[str]) -> tuple[str, ...]:
    """Return phrases, each in one line, with a count in the place of those that are too many."""
    shown = tuple(one_line(each) for each in phrases[:PHRASES])
    return shown if len(phrases) <= PHRASES else (*shown[:-1], f"{len(phrases) - PHRASES + 1:,} other parts")


def one_line(text: object) -> str:
    """Return a text as one line that fits a title, without control characters.

    >>> one_line(" The\\n lamp ")
    'The lamp'
    """
    shown = "".join(each if each.isprintable() else " " for each in str(text)[: 4 * TITLE])
    return " ".join(shown.split())[:TITLE].strip()


def clean(text: str) -> str:
    """Return a text without NUL characters and halves of surrogate pairs, its lines ended by a newline alone."""
    whole = text.encode("utf-8", "replace").decode("utf-8") if _HALF.search(text) else text
    return whole.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").removeprefix("\ufeff")


def moment_of(value: object) -> str:
    """Return a moment in UTC of seconds or milliseconds since 1970 or of ISO 8601; "" where it is none.

    >>> moment_of(1700000000), moment_of("2024-05-01 10:00:00"), moment_of("yesterday")
    ('2023-11-14T22:13:20.000Z', '2024-05-01T10:00:00.000Z', '')
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            found = datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC)
        elif isinstance(value, datetime):
            found = value
        elif isinstance(value, str) and value[:4].isdigit():
            found = datetime.fromisoformat(value)
        else:
            return ""
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return found.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return ""
