"""Files that are not plain text, recognised by their first bytes: each kind, and the command that converts it."""

from __future__ import annotations

import shlex
from typing import Final

#: First bytes -> what such a file is, and the command that writes its text to stdout, "" where none is usual.
_KINDS: Final[tuple[tuple[bytes, str, str], ...]] = (
    (b"%PDF-", "a PDF", "pdftotext {name} -"),
    (b"%!PS", "a PostScript file", "ps2ascii {name}"),
    (b"{\\rtf", "a rich text file", "pandoc -t plain {name}"),
    (b"\xd0\xcf\x11\xe0", "an office document of the old kind", "antiword {name}"),
    (b"\x1f\x8b", "packed with gzip", "gzip -dc {name}"),
    (b"\xfd7zXZ\0", "packed with xz", "xz -dc {name}"),
    (b"(\xb5/\xfd", "packed with zstd", "zstd -dc {name}"),
    (b"BZh", "packed with bzip2", "bzip2 -dc {name}"),
    (b"\x89PNG", "a picture", "tesseract {name} -"),
    (b"\xff\xd8\xff", "a picture", "tesseract {name} -"),
    (b"GIF8", "a picture", ""),
    (b"\x7fELF", "a program", ""),
    (b"SQLite format 3\0", "a database", "sqlite3 {name} .dump"),
    (b"\xff\xfe", "in UTF-16, not in UTF-8", "iconv -f UTF-16 -t UTF-8 {name}"),
    (b"\xfe\xff", "in UTF-16, not in UTF-8", "iconv -f UTF-16 -t UTF-8 {name}"),
)
#: Names in a zip archive that is a document, which `batos remember` reads.
_ZIPPED: Final = (b"word/document", b"xl/workbook.xml", b"mimetypeapplication/")


def no_text(name: str, data: bytes) -> tuple[str, str] | None:
    """Tell what a file is that is no text, and the command that makes it one ("": none); None where it may be one.

    >>> no_text("a b.pdf", b"%PDF-1.4")
    ('a PDF', "pdftotext 'a b.pdf' -")
    """
    if data.startswith(b"PK\3\4"):
        command = "" if b"xl/workbook" in data or b".spreadsheet" in data else f"pandoc -t plain {shlex.quote(name)}"
        return ("an office document", command) if any(each in data for each in _ZIPPED) else ("a zip archive", "")
    for first, what, command in _KINDS:
        if data.startswith(first):
            return what, command.format(name=shlex.quote(name))
    return None


def can_be_remembered(data: bytes) -> bool:
    """Test if `batos remember` makes a text of such a file by itself.

    >>> can_be_remembered(b"%PDF-1.4"), can_be_remembered(b"GIF89a")
    (True, False)
    """
    return data.startswith((b"%PDF-", b"\xff\xfe", b"\xfe\xff")) or "an office document" in (no_text("", data) or ())
