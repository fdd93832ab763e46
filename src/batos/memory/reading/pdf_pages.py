"""Read a page of a PDF: the words that are seen on it, where they stand, and what else is painted there."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import pi
from statistics import mode
from typing import Any, Final

from pypdfium2 import PdfDocument, PdfiumError, PdfPage, PdfTextPage, raw

from batos.memory.reading.pdf_layout import WIDE, Rules, arrange
from batos.memory.reading.pdf_painting import Box, PageWord, area_of, paint_of
from batos.memory.reading.read_text import clean

#: The hyphen at the end of a line, which pdfium keeps as a character that is none.
_HYPHEN: Final = re.compile("[\ufffe\x02](?:\r?\n)?")
_TOKEN: Final = re.compile("[^\\s\ufffe\x02]+[\ufffe\x02]?")
_RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
#: Letters of a word, over all the words of a page, at most.
_LONGEST: Final = 40
#: More words than a page has: they are taken as they were painted.
_MOST_WORDS: Final = 20_000
#: Pictures on such a share of a page make it a scan.
_SCAN: Final = 0.5
#: So many lines at each end of a page are looked at for its head and foot.
ENDS: Final = 4
#: Characters beside such a picture that are little.
_LITTLE: Final = 100
#: Of a quarter: words that are turned by less stand straight.
_STRAIGHT: Final = 0.05
#: A digit whose foot is so far up is a raised form of it.
_RAISED: Final = 0.45
_LAST_DIGIT: Final = re.compile(r"\S(\d)(?!\d)")
#: A character is at least so high.
_LOW: Final = 0.1
#: So many lines of a page are looked at for gaps within what was painted at once.
_SAMPLED: Final = 6
_UNSEEN_FLAGS: Final = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW


@dataclass(slots=True)
class PageText:
    """A page's lines, where the first and last ones stand on it (of 1), and what they lack."""

    lines: list[str] = field(default_factory=list)
    places: list[tuple[int, float, float]] = field(default_factory=list)
    laid_out: int = 0
    hidden: int = 0
    comments: int = 0
    pictured: bool = False
    blank: bool = False
    uncertain: bool = False

    def drop(self, numbers: set[int]) -> None:
        """Take lines out, unless nothing would be left."""
        self.lines = [line for at, line in enumerate(self.lines) if at not in numbers] or self.lines


def read_page(document: PdfDocument, number: int, words: int) -> PageText | None:
    """Return a page; None where it is broken, which leaves the others. At most so many words are laid out anew."""
    try:
        page = document[number]
        try:
            return _Reader(document, page, page.get_textpage(), min(words, _MOST_WORDS)).page()
        finally:
            page.close()
    except PdfiumError:
        return None


@dataclass(slots=True)
class _Reader:
    """Reads a page: as pdfium has it where that is in order, else word by word."""

    document: PdfDocument
    sheet: PdfPage
    printed: PdfTextPage
    most: int
    text: str = ""
    _box: Any = field(default_factory=raw.FS_RECTF)
    _bounds: Any = field(default_factory=lambda: [ctypes.c_double() for _ in range(4)])

    def page(self) -> PageText:
        """Return the page."""
        self.text, found = self.printed.get_text_range(), PageText()
        count = self.printed.count_chars()
        sheet, painted = self.sheet.get_bbox(), paint_of(self.sheet)
        fields, found.comments = self._fields()
        is_scan = painted.pictured >= _SCAN * max(1.0, area_of(sheet))
        found.lines = clean(_HYPHEN.sub("", self.text)).strip().split("\n")
        found.places = self._places(found.lines)
        if len(self.text) != count:  # its places are not those of the characters
            codes = (raw.FPDFText_GetUnicode(self.printed.raw, at) for at in range(count))
            self.text = "".join(chr(code) if code < sys.maxunicode else "\ufffd" for code in codes)
        if fields or painted.suspect or not self._is_plain(sheet):
            found.uncertain = count > self.most * _LONGEST
            hides = partial(painted.hides, sheet=sheet, is_scan=is_scan)
            words = self._read_words(hides, found) if not found.uncertain else []
            self._lay_out([*words, *fields], found, bool(fields or found.hidden), painted.rules)
        low, high = sheet[1], max(1.0, sheet[3] - sheet[1])
        found.places = [(line, (y0 - low) / high, (y1 - low) / high) for line, y0, y1 in found.places]
        chars = sum(map(len, found.lines))
        found.blank = not (chars or painted.count)
        found.pictured = is_scan and 0 < chars < _LITTLE
        return found

    def _places(self, lines: Sequence[str]) -> list[tuple[int, float, float]]:
        """Return where the first and last lines of a page stand that is taken as it is printed."""
        spans = list(re.finditer(r"\S(?:[^\r\n]*\S)?", self.text))
        found = []
        for at in sorted({*range(len(spans))[:ENDS], *range(len(spans))[-ENDS:]}):
            line = at if at < ENDS else at - len(spans) + len(lines)
            if 0 <= line < len(lines) and lines[line].strip() == spans[at][0]:
                box = self._char(spans[at].start())
                found.append((line, box[1], box[3]))
        return found

    def _char(self, at: int) -> Box:
        """Return the box of a character, as high as its letters can be; a raised digit is as high as it is."""
        box, (left, right, bottom, top) = self._box, self._bounds
        loose = bool(raw.FPDFText_GetLooseCharBox(self.printed.raw, at, box)) and box.top - box.bottom > _LOW
        if not loose or self.text[at : at + 1].isdigit():
            raw.FPDFText_GetCharBox(self.printed.raw, at, left, right, bottom, top)
            if not loose or bottom.value - box.bottom > _RAISED * (box.top - box.bottom):
                return left.value, bottom.value, right.value, max(top.value, bottom.value + _LOW)
        return box.left, box.bottom, box.right, box.top

    def _is_plain(self, sheet: Box) -> bool:
        """Test if the order of a page is beyond doubt: each line is below the last one, and has no gaps in it."""
        left, top, right, bottom = self._bounds
        last: Box = (0.0, 0.0, 0.0, 0.0)
        for number in range(raw.FPDFText_CountRects(self.printed.raw, 0, -1)):
            raw.FPDFText_GetRect(self.printed.raw, number, left, top, right, bottom)
            box = left.value, bottom.value, right.value, top.value
            height, before = box[3] - box[1], last[3] - last[1]
            beside = number and min(box[3], last[3]) - max(box[1], last[1]) > 0.3 * min(height, before)
            if beside:
                gap, moved = box[0] - last[2], abs(box[1] + box[3] - last[1] - last[3]) / 2
                small = min(height, before) < 0.8 * max(height, before)
                if moved > (0.12 if small else 0.35) * max(height, before) or not -0.5 * height < gap < WIDE * max(
                    height, before
                ):
                    return False
            elif number and box[1] > last[1]:
                return False
            if not (sheet[0] <= box[2] and box[0] <= sheet[2] and sheet[1] <= box[3] and box[1] <= sheet[3]):
                return False
            last = box
        ends = ((self._char(found.start()), self._char(found.start(1))) for found in _LAST_DIGIT.finditer(self.text))
        if any(abs(before[1] - digit[1]) > _LOW for before, digit in ends):
            return False
        lines = [each.span() for each in re.finditer(r"[^\r\n]+", self.text)]
        some = (
            [word.span() for word in _TOKEN.finditer(self.text, *line)] for line in lines[:: 1 + len(lines) // _SAMPLED]
        )
        return not any(map(self._has_gap, some))

    def _has_gap(self, line: Sequence[tuple[int, int]]) -> bool:
        """Test if words of a line, which have these places in the text, are far apart."""
        left, right, low, high = self._bounds
        end = height = 0.0
        for number, (first, stop) in enumerate(line):
            raw.FPDFText_GetCharBox(self.printed.raw, first, left, right, low, high)
            height = max(height, high.value - low.value)
            if number and left.value - end > WIDE * 1.3 * height:
                return True
            raw.FPDFText_GetCharBox(self.printed.raw, stop - 1, left, right, low, high)
            end = right.value
        return False

    def _read_words(self, hides: Callable[[Box, int], bool], found: PageText) -> list[tuple[int, PageWord]]:
        """Return the words that are seen, each with the quarters of a turn by which it is printed (-1: another)."""
        words: list[tuple[int, PageWord]] = []
        for token in _TOKEN.finditer(self.text):
            turned = raw.FPDFText_GetCharAngle(self.printed.raw, token.start()) / (pi / 2)
            quarter = round(turned) % 4 if abs(turned - round(turned)) < _STRAIGHT else -1
            for first, stop in self._parts(token.start(), token.end()):
                a, b = self._char(first), self._char(stop - 1)
                box = min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])
                if hides(box, self._object(first)):
                    found.hidden += 1
                    continue
                said = (
                    self.text[first:stop].replace("\ufffe", "-").replace("\x02", "-").encode("utf-16", "surrogatepass")
                )
                words.append((quarter, PageWord(*box, said.decode("utf-16", "replace"), first > token.start())))
        return words

    def _parts(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a word that were painted in sizes or heights that differ."""
        has_digit = _LAST_DIGIT.search(self.text, first, stop)
        if not has_digit and self._object(first) == self._object(stop - 1):
            yield first, stop
            return
        begin = first
        for at in range(first + 1, stop):
            if has_digit or self._object(at) != self._object(at - 1):
                old, new = self._char(at - 1), self._char(at)
                if abs(old[1] - new[1]) + abs(old[3] - new[3]) > 0.1 * (old[3] - old[1]):
                    yield begin, at
                    begin = at
        yield begin, stop

    def _object(self, at: int) -> int:
        found = raw.FPDFText_GetTextObject(self.printed.raw, at)
        return ctypes.addressof(found.contents) if found else 0

    def _lay_out(self, seen: Sequence[tuple[int, PageWord]], found: PageText, changed: bool, rules: Rules) -> None:
        """Put words into the order in which they are read, unless they are in it."""
        if found.uncertain or len(seen) > self.most:
            found.uncertain = True
            return
        if not seen:
            found.lines = [""]
            return
        found.laid_out = len(seen)
        usual = mode(quarter for quarter, _ in seen)
        to_left = sum(bool(_RIGHT_TO_LEFT.search(word.text)) for _, word in seen) > len(seen) / 2
        words = [_upright(word, usual, to_left) for quarter, word in seen if quarter == usual]
        is_level = usual == 0 and not to_left
        arranged = arrange(words, not changed and len(words) == len(seen), rules if is_level else ())
        if not arranged.lines:
            return
        others = [word.text for quarter, word in seen if quarter != usual]
        found.lines = clean("\n".join([*arranged.lines, *([" ".join(others)] if others else [])])).split("\n")
        found.uncertain = arranged.is_uncertain
        found.places = [(at, *place) for at, place in enumerate(arranged.heights)] if usual == 0 else []

    def _fields(self) -> tuple[list[tuple[int, PageWord]], int]:
        """Return what stands in the fields of forms and in boxes of text, and how many comments a page has."""
        words: list[tuple[int, PageWord]] = []
        comments = 0
        for number in range(raw.FPDFPage_GetAnnotCount(self.sheet.raw)):
            annotation = raw.FPDFPage_GetAnnot(self.sheet.raw, number)
            kind, said = raw.FPDFAnnot_GetSubtype(annotation), ""
            shown = not raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN_FLAGS
            if shown and kind == raw.FPDF_ANNOT_WIDGET:
                said = self._value(annotation)
            elif shown and kind == raw.FPDF_ANNOT_FREETEXT:
                said = _string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
            elif shown and kind not in {raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP}:
                comments += bool(_string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents").strip())
            if said.strip() and raw.FPDFAnnot_GetRect(annotation, self._box):
                words += _field_words(said.splitlines(), self._box)
            raw.FPDFPage_CloseAnnot(annotation)
        return words, comments

    def _value(self, annotation: Any) -> str:
        """Return what was written or chosen in a field of a form."""
        form = self.document.formenv.raw if self.document.formenv is not None else None
        kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
        if kind in {raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON}:
            return "[x]" if raw.FPDFAnnot_IsChecked(form, annotation) else "[ ]"
        written = kind not in {raw.FPDF_FORMFIELD_PUSHBUTTON, raw.FPDF_FORMFIELD_SIGNATURE}
        return _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation) if written else ""


def _upright(word: PageWord, quarter: int, to_left: bool) -> PageWord:
    """Turn a word that is printed by so many quarters to the right; a page read from the right is mirrored."""
    x0, y0, x1, y1, text, joined = word
    turned = [(x0, y0, x1, y1), (-y1, x0, -y0, x1), (-x1, -y1, -x0, -y0), (y0, -x1, y1, -x0)][max(0, quarter)]
    return (
        PageWord(-turned[2], turned[1], -turned[0], turned[3], text, joined)
        if to_left
        else PageWord(*turned, text, joined)
    )


def _field_words(lines: Sequence[str], box: Any) -> list[tuple[int, PageWord]]:
    """Return the lines of a field as words below each other in its box."""
    height = min(12.0, (box.top - box.bottom) / len(lines))
    top = (box.bottom + box.top + height * len(lines)) / 2
    places = [(box.left, top - height * at, box.right, top - height * at + height) for at in range(1, len(lines) + 1)]
    return [(0, PageWord(*place, line.strip())) for place, line in zip(places, lines, strict=True) if line.strip()]


def _string(ask: Any, *about: Any) -> str:
    """Return a text that pdfium writes into a buffer as UTF-16."""
    size = ask(*about, None, 0)
    buffer = ctypes.create_string_buffer(size + 2)
    ask(*about, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw[: max(0, size - 2)].decode("utf-16-le", "replace")
