"""The files that bench/reading.py reads, of all formats, and long ones for its memory."""

from __future__ import annotations

from collections.abc import Iterator

import reading_books_side
import reading_boxes_side
import reading_chats_side
import reading_lines_side
import reading_mails_side
import reading_notebooks_side
import reading_pages_side
import reading_pdf_side
import reading_sheets_side
import reading_texts_side
import reading_word_side
import reading_writer_side
from reading_case_side import GivenFile
from reading_sheets_side import Cell

_PARTS = (
    reading_texts_side,
    reading_pages_side,
    reading_books_side,
    reading_pdf_side,
    reading_word_side,
    reading_writer_side,
    reading_sheets_side,
    reading_notebooks_side,
    reading_mails_side,
    reading_boxes_side,
    reading_chats_side,
    reading_lines_side,
)


def given_files() -> Iterator[GivenFile]:
    """Yield all files, format by format, always the same bytes."""
    for each in _PARTS:
        yield from each.files()


def long_files() -> Iterator[GivenFile]:
    """Yield a file of some megabytes for formats that are met at such sizes; packed ones are shorter."""
    row = "The keeper of the long pier wrote line {} on a calm day, and owed {} crowns to the yard."
    lines = [row.format(number, number * 7 % 1000) for number in range(80_000)]
    page = f"<html><body>{''.join(f'<p>{line}</p>' for line in lines)}</body></html>"
    table = [line.replace(" on ", ",").replace(", and ", ",") for line in lines]
    sheet: list[list[Cell]] = [[line, number] for number, line in enumerate(lines)]
    mails = ["\n".join(lines[at : at + 40]) for at in range(0, len(lines), 40)]
    pages = [reading_pdf_side.lines(lines[at : at + 40]) for at in range(0, 20_000, 40)]
    letter = "".join(map(reading_word_side.paragraph, lines[:40_000]))
    long = {
        "markdown.md": "\n\n".join(lines).encode(),
        "text.txt": "\n".join(lines).replace("owed", "öwed").encode("cp1252"),
        "html.html": page.encode(),
        "csv.csv": "\n".join(table).encode(),
        "docx.docx": reading_word_side.docx(letter),
        "xlsx.xlsx": reading_sheets_side.xlsx({"Long": sheet}),
        "mbox.mbox": b"".join(reading_boxes_side.entry(each, number) for number, each in enumerate(mails)),
        "pdf.pdf": reading_pdf_side.pdf(pages),
    }
    for name, data in long.items():
        yield GivenFile(f"long-{name}", name.partition(".")[0], data)
