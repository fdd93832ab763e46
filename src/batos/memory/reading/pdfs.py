"""Read the text of a PDF, page by page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pypdfium2
from pypdfium2 import PdfiumError

from batos.memory.reading.read_text import Emit, NotReadable, ReadText, clean, one_line

#: The hyphen at the end of a line, which pdfium keeps as a character that is none.
_HYPHEN: Final = re.compile("[\ufffe\x02](?:\r?\n)?")
#: Titles that a program gave, and nobody else.
_NO_TITLE: Final = re.compile(r"\A(?:untitled|Microsoft Word - |.*\.(?:docx?|dvi|tex|indd|pdf)\Z)", re.IGNORECASE)


def read(path: Path, emit: Emit) -> None:
    """Read a file as one text, its pages apart by an empty line."""
    try:
        with pypdfium2.PdfDocument(path) as document:
            about = document.get_metadata_dict()
            pages = [_page_text(document, number) for number in range(len(document))]
    except PdfiumError as error:
        locked = "assword" in str(error)
        raise NotReadable("it is locked with a password" if locked else "it is a damaged PDF") from None
    if all(page is None for page in pages):
        raise NotReadable("it is a damaged PDF: none of its pages can be read")
    text = "\n\n".join(filter(None, pages))
    if not text.strip():
        raise NotReadable("it has pages without text, as a scan has: `ocrmypdf` adds the text")
    title = one_line(about.get("Title") or "")
    emit(ReadText(text, "" if _NO_TITLE.match(title) else title, "application/pdf"))


def _page_text(document: pypdfium2.PdfDocument, number: int) -> str | None:
    """Return the text of a page; None where it is broken, which leaves the others."""
    try:
        page = document[number]
        try:
            return clean(_HYPHEN.sub("", page.get_textpage().get_text_range())).strip()
        finally:
            page.close()
    except PdfiumError:
        return None
