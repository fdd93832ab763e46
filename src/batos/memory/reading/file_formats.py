"""Tell the format of a file by its first bytes and its name."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Final, Literal, TypeAlias

from batos import file_kinds

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
_CARDS: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*BEGIN:V(?:CARD|CALENDAR)\s", re.IGNORECASE)
_NOTEBOOK: Final = re.compile(rb"\A\s*\{.*\"cell_type\"\s*:", re.DOTALL)
#: Endings by which a file is told where its first bytes are those of many kinds.
_ENDINGS: Final[dict[str, Format]] = {
    ".html": "html", ".htm": "html", ".xhtml": "html", ".eml": "mail", ".mbox": "mbox", ".mbx": "mbox",
    ".jsonl": "chats", ".json": "chats", ".ndjson": "chats", ".ipynb": "notebook",
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
    if (known := file_kinds.no_text(name, head)) is not None:
        return f"it is {known[0]}, not a text" + (f": `{known[1]}`" if known[1] else "")
    looks = "notebook" if _NOTEBOOK.match(head) else _ENDINGS.get(ending) or _looks_like(head, ending)
    if looks is None and b"\0" in head:
        is_text = _is_wide(head) or (has_few_nuls(head) and not _CONTROLS.search(head))
        return "other_text" if is_text else "it has NUL bytes: it is no text"
    return looks or "plain"


def text_format(data: bytes) -> Format:
    """Return how UTF-8 text is read: as it is, or by the reader that leaves out data in base64."""
    return "other_text" if b";base64," in data else "plain"


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


def _is_wide(head: bytes) -> bool:
    """Test if every second byte is NUL, as in UTF-16 of Latin letters."""
    return len(head) > 3 and (not any(head[1::2]) or not any(head[0 : len(head) - 1 : 2]))
