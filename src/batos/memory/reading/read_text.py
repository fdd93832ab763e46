"""The texts that a file holds, as they pass from the process that reads it, and the file's format by its beginning."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, Final, Literal, TypeAlias

from batos.protocol.file_kinds import no_text

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


#: `plain` is UTF-8 text; `other_text` is text in another encoding; what an `archive` is stands inside of it.
Format: TypeAlias = Literal[
    "plain", "other_text", "html", "pdf", "mail", "mbox", "chats", "llm_logs", "archive", "notebook", "cards"
]

#: First bytes of a file that tell its format.
HEAD: Final = 4_096
_SURE: Final[tuple[tuple[bytes, Format], ...]] = (
    (b"%PDF-", "pdf"),
    (b"SQLite format 3\0", "llm_logs"),
    (b"\xff\xfe", "other_text"),
    (b"\xfe\xff", "other_text"),
    (b"\xd0\xcf\x11\xe0", "archive"),
)
#: A comment that was read is never read in another way: tried in all ways, forty of them would take years.
_HTML: Final = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
_MBOX: Final = re.compile(rb"\AFrom \S+ .*\d{4}.*\r?\n[A-Za-z-]+:")
_MAIL: Final = re.compile(rb"\A(?:[A-Za-z][A-Za-z0-9-]*:[^\n]*\n(?:[ \t][^\n]*\n)*){3}")
#: Bytes that no text has; NUL may stand in one that was written when the power failed.
_CONTROLS: Final = re.compile(rb"[\x01-\x08\x0e-\x19\x1c-\x1f]")
_NULS: Final = re.compile(rb"\0+")
#: Bytes of text for each run of NUL bytes, at least.
_TEXT_A_HOLE: Final = 16
#: Lines that are data in base64, and no words: capitals and small letters stand in each.
_DATA_LINE: Final = r"^[ \t]*+(?=[A-Z0-9+/]*[a-z])(?=[a-z0-9+/]*[A-Z])[A-Za-z0-9+/]{60,76}\r?\n"
WRAPPED: Final = rf"(?:{_DATA_LINE}){{6,}}+(?:[ \t]*[A-Za-z0-9+/]+={{0,2}}$)?"
_HAS_WRAPPED: Final = re.compile(WRAPPED.encode(), re.MULTILINE)
#: Characters between words, and those of a word at most in a text, on average.
_GAP: Final = re.compile(r"[ \t\n\r\f\v\xa0\ufeff\u00ad\u200b-\u200f\u3000-\u3002]")
_WORD: Final = 40
_CARDS: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*BEGIN:V(?:CARD|CALENDAR)\s", re.IGNORECASE)
_NOTEBOOK: Final = re.compile(rb"\A\s*\{.*\"cell_type\"\s*:", re.DOTALL)
#: Endings by which a file is told where its first bytes are those of many kinds.
_ENDINGS: Final[dict[str, Format]] = {
    ".html": "html", ".htm": "html", ".xhtml": "html", ".eml": "mail", ".mht": "mail", ".mhtml": "mail",
    ".mbox": "mbox", ".mbx": "mbox", ".jsonl": "chats", ".json": "chats", ".ndjson": "chats", ".ipynb": "notebook",
}  # fmt: skip


def format_of(name: str, head: bytes) -> Format | str:
    """Return a file's format by its name and its first bytes; a reason with a blank in it where it is no text.

    >>> format_of("a.pdf", b"%PDF-1.4"), format_of("notes.md", b"# The lamp"), format_of("x.png", b"\\x89PNG")
    ('pdf', 'plain', 'it is a picture, not a text: `tesseract x.png -`')
    """
    ending = PurePath(name).suffix.lower()
    sure = next((each for mark, each in _SURE if head.startswith(mark)), None)
    if sure is not None:
        return sure
    if head.startswith((b"PK\3\4", b"PK\5\6")):
        return "chats" if ending == ".zip" else "archive"
    if (known := no_text(name, head)) is not None:
        return f"it is {known[0]}, not a text" + (f": `{known[1]}`" if known[1] else "")
    looks = "notebook" if _NOTEBOOK.match(head) else _ENDINGS.get(ending) or _looks_like(head, ending)
    if looks is None and b"\0" in head:
        is_text = bool(wide_name(head)) or (has_few_nuls(head) and not _CONTROLS.search(head))
        return "other_text" if is_text else "it has NUL bytes: it is no text"
    return looks or "plain"


def text_format(data: bytes) -> Format:
    """Return how UTF-8 text is read: as it is, or by the reader that leaves out data in base64."""
    return "other_text" if b";base64," in data or _HAS_WRAPPED.search(data) else "plain"


def has_few_nuls(data: bytes) -> bool:
    """Test if NUL bytes stand in as few places as in a text that was being written when the power failed."""
    return sum(1 for _ in _NULS.finditer(data)) * _TEXT_A_HOLE <= len(data) - data.count(0)


def _looks_like(head: bytes, ending: str) -> Format | None:
    if _CARDS.match(head):
        return "cards"
    if _MBOX.match(head):
        return "mbox"
    if _HTML.match(head):
        return "html"
    is_mail = ending in {"", ".txt"} and _MAIL.match(head) and b"\nSubject:" in head and b"\nFrom:" in b"\n" + head
    return "mail" if is_mail else None


def wide_name(data: bytes) -> str:
    """Return the name of UTF-16 where bytes without a mark are a text in it, of any script; else "".

    Read with its bytes the wrong way round, or where there is no text, it has characters that are none, or no blanks.

    >>> wide_name("Oil, Öl, масло".encode("utf-16-be")), wide_name(b"oil")
    ('utf-16-be', '')
    """
    sample = data[:HEAD]
    for name in ("utf-16-le", "utf-16-be") if b"\0" in sample else ():
        try:
            text = codecs.getincrementaldecoder(name)().decode(sample)
        except UnicodeError:
            continue
        gaps = len(_GAP.findall(text))
        if gaps * _WORD >= len(text) and all(each.isprintable() for each in _GAP.sub("", text)):
            return name
    return ""


#: The longest source.
_SOURCE: Final = 4_096


def source_of(path: Path) -> str:
    """Return the source of a file, also of one that is not there: its absolute path as text.

    Raises: OSError, RuntimeError, ValueError: there can be no such file.
    """
    return shorten_source(os.fsencode(path.resolve()).decode("utf-8", "replace"))


def shorten_source(source: str) -> str:
    """Return a source; of one that is too long a digest stands for the end."""
    if len(source) <= _SOURCE:
        return source
    digest = hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()
    return f"{source[: _SOURCE - len(digest) - 1]}~{digest}"
