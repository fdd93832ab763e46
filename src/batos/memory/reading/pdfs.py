"""Read the text of a PDF as a person sees it, and name what of it is no text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import pypdfium2
from pypdfium2 import PdfiumError, raw

from batos.memory.reading.pdf_pages import ENDS, PageText, read_page
from batos.memory.reading.read_text import Emit, NotReadable, ReadText, one_line

#: Titles that a program gave, and nobody else.
_NO_TITLE: Final = re.compile(
    r"\A(?:untitled|\(anonymous\)|Microsoft PageWord - |.*\.(?:docx?|dvi|tex|indd|pdf)\Z)", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"\d{1,6}")
#: Stands between two pages: the sign by which the number of a page is found again, and an empty line.
PAGE_END: Final = "\f\n\n"
#: The share of a page above and below that a head or a foot stands in, and its lines.
_EDGE: Final = 0.13
_EDGE_LINES: Final = 2
#: Words that are laid out in a file at most; further pages are taken as they were printed.
_LAID_OUT: Final = 500_000


def read(path: Path, emit: Emit) -> None:
    """Read a file as one text, its pages apart by `PAGE_END`."""
    try:
        with pypdfium2.PdfDocument(path) as document:
            about = document.get_metadata_dict()
            document.init_forms()
            pages: list[PageText | None] = []
            left = _LAID_OUT
            for number in range(len(document)):
                pages.append(page := read_page(document, number, left))
                left -= page.laid_out if page is not None else 0
            attached = [one_line(name) for name in _attachment_names(document)]
            is_xfa = document.get_formtype() == raw.FORMTYPE_XFA_FULL
    except PdfiumError as error:
        locked = "assword" in str(error)
        raise NotReadable("it is locked with a password" if locked else "it is a damaged PDF") from None
    if all(page is None for page in pages):
        raise NotReadable("it is a damaged PDF: none of its pages can be read")
    left_out = tuple(_phrases(pages, attached, is_xfa))
    shown = {number: "\n".join(page.lines) for number, page in _without_edges(pages)}
    text = PAGE_END.join(shown.get(number, "") for number in range(len(pages)))
    if not text.strip():
        raise NotReadable("it has pages without text, as a scan has: `ocrmypdf` adds the text")
    title = one_line(about.get("Title") or "")
    emit(ReadText(text, "" if _NO_TITLE.match(title) else title, "application/pdf", left_out=left_out))


def _attachment_names(document: pypdfium2.PdfDocument) -> Iterator[str]:
    for number in range(document.count_attachments()):
        try:
            yield document.get_attachment(number).get_name()
        except PdfiumError:
            yield "without a name"


def _phrases(pages: Sequence[PageText | None], attached: Sequence[str], is_xfa: bool) -> Iterator[str]:
    """Yield a phrase for each part of a document that its text lacks."""
    whole = {number: page for number, page in enumerate(pages, 1) if page is not None}
    empty = [number for number, page in whole.items() if not any(page.lines) and not page.blank]
    for numbers, verb, what, remedy in (
        (empty, "have", "no text, as a scan has", ": `ocrmypdf` adds it"),
        ([number for number in whole if whole[number].pictured], "have", "little text beside a picture", ""),
        ([number for number in whole if whole[number].blank], "are", "blank", ""),
        ([number for number, page in enumerate(pages, 1) if page is None], "are", "broken", ""),
        ([number for number in whole if whole[number].hidden], "have", "words that nobody sees", ""),
        ([number for number in whole if whole[number].uncertain], "have", "columns in an uncertain order", ""),
    ):
        if numbers:
            verb = verb if len(numbers) > 1 else {"have": "has", "are": "is"}[verb]
            shown = ", ".join(map(str, numbers[:20])) + (", ..." if len(numbers) > 20 else "")
            yield f"{len(numbers)} of {len(pages)} pages {verb} {what} ({shown}){remedy}"
    comments = sum(page.comments for page in whole.values())
    if comments:
        yield f"{comments} comment{'s' * (comments > 1)} of readers"
    if attached:
        yield f"{len(attached)} attached file{'s' * (len(attached) > 1)} ({one_line(', '.join(attached))})"
    if is_xfa:
        yield "the fields of its form, which are of the kind XFA"


def _without_edges(pages: Sequence[PageText | None]) -> Iterator[tuple[int, PageText]]:
    """Yield the pages with their numbers from 0; a repeated head stands on the first alone, a foot on the last."""
    whole = {number: page for number, page in enumerate(pages) if page is not None}
    groups: defaultdict[tuple[int, str], list[tuple[int, int, bool]]] = defaultdict(list)
    for number, page in whole.items():
        for line, height, is_apart in _margins(page):
            groups[round(500 * height), _NUMBER.sub("#", page.lines[line])].append((number, line, is_apart))
    dropped: defaultdict[int, set[int]] = defaultdict(set)
    for (height, words), places in groups.items():
        lines = [(number, whole[number].lines[line]) for number, line, _ in places]
        if sum(is_apart for *_, is_apart in places) < max(2, min(3, len(pages) - 1)) or not _counts_pages(lines):
            continue
        kept = 0 if height > 0 else len(places) - 1
        is_said = any(each.isalpha() for each in words)
        for place, (number, line, _) in enumerate(places):
            if place != kept or not is_said:
                dropped[number].add(line)
    for number, page in whole.items():
        page.drop(dropped[number])
        yield number, page


def _counts_pages(lines: Sequence[tuple[int, str]]) -> bool:
    """Test if the numbers in lines, which differ in them alone, are the same or go with the numbers of pages."""
    found = [[(int(each), int(each) - number) for each in _NUMBER.findall(line)] for number, line in lines]
    return all(min(len(set(kind)) for kind in zip(*column, strict=True)) == 1 for column in zip(*found, strict=True))


def _margins(page: PageText) -> Iterator[tuple[int, float, bool]]:
    """Yield the lines in the margins of a page, above (positive) and below, and if they stand apart from the text.

    At most two of each kind count, and none that is larger than the text.
    """
    for sign, inward in ((1, page.places), (-1, page.places[::-1])):
        steps = [abs(a[1] + a[2] - b[1] - b[2]) / 2 for a, b in pairwise(inward[:ENDS])]
        outer = [each for each in inward[:_EDGE_LINES] if sign * (each[1] - 0.5) >= 0.5 - _EDGE]
        apart = 0
        for count in range(1, min(len(outer), len(steps)) + 1):
            height = inward[count][2] - inward[count][1]
            pitch = steps[count] if len(steps) > count else height
            if (
                max(top - bottom for _, bottom, top in outer[:count]) <= 1.05 * height
                and steps[count - 1] >= 1.25 * pitch
            ):
                apart = count
        yield from ((line, sign * bottom, at < apart) for at, (line, bottom, _) in enumerate(outer))
