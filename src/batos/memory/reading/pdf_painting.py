"""The words of a printed page, how those of a line are joined, and by what is painted, which of them nobody can see."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, Final, NamedTuple, TypeAlias

from pypdfium2 import PdfPage, raw

#: A smaller share of the height of its neighbour is what a raised or lowered word has, and by so much it is moved.
_SMALL: Final = 0.87
_MOVED: Final = 0.1
_RAISED: Final = re.compile(r"[+\u2212\u2013-]?\d+")
#: These have a power, also where a note has the same number.
_HAS_POWER: Final = re.compile(r"10|[cdkm]?m|\W*\w?")
#: The beginning of a note.
NOTE: Final = re.compile(r"[\[(]?(\d{1,3}|[*†‡§])")


class PageWord(NamedTuple):
    """A word and its box, y upward; `joined` where no blank stands before it."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str
    joined: bool = False


def note_marks(words: Sequence[PageWord]) -> frozenset[str]:
    """Return the marks of notes: numbers that begin a line in small letters on the lower half of a page."""
    usual = median(word.y1 - word.y0 for word in words)
    middle = (max(word.y1 for word in words) + min(word.y0 for word in words)) / 2
    return frozenset(
        word.text.strip("[].()")
        for before, word in pairwise([words[0], *words])
        if word.y1 < middle and word.y1 - word.y0 <= 0.92 * usual and word.x0 < before.x0 and NOTE.match(word.text)
    )


def is_raised(word: PageWord, base: PageWord) -> bool:
    """Test if a word stands above the line of one that is larger, or far above that of one that is not."""
    height, above = base.y1 - base.y0, (word.y0 + word.y1 - base.y0 - base.y1) / 2
    least = _MOVED if word.y1 - word.y0 <= _SMALL * height else 3 * _MOVED
    return least * height <= above < height and _RAISED.fullmatch(word.text) is not None


def join_words(words: Sequence[PageWord], marks: frozenset[str]) -> str:
    """Join the words of a line: what is raised is a power or the mark of a note, and no digit of a number."""
    out: list[str] = []
    base, noted = words[0] if words else PageWord(0, 0, 0, 0, ""), False
    for at, word in enumerate(words):
        if at == 0:
            base = words[1] if len(words) > 1 and is_raised(word, words[1]) else word
            noted = base is not word
            out.append(f"[{word.text}]" if noted else word.text)
        elif is_raised(word, base) and word.x0 - words[at - 1].x1 < 0.5 * (base.y1 - base.y0):
            noted = word.text in marks and not _HAS_POWER.fullmatch(base.text)
            out.append(f" [{word.text}]" if noted else f"^{word.text}")
        else:
            last = words[at - 1]
            height = max(last.y1 - last.y0, word.y1 - word.y0)
            moved = min(last.y1 - last.y0, word.y1 - word.y0) <= _SMALL * height
            close = word.joined or (moved and word.x0 - last.x1 < 0.12 * height)
            out.append(word.text if close and not (noted and word.text[:1].isalnum()) else f" {word.text}")
            base, noted = base if moved and word.y1 - word.y0 < height else word, False
    return "".join(out)


#: Colours that differ by less are the same to the eye (of 255), as is what is less opaque than that.
_ALIKE: Final = 25
#: Segments of a path that is a line, and less than its height.
_LINE: Final = 3
#: The largest fills of a page are looked at, so many of them, and so many colours.
_MOST_FILLS: Final = 400
_DEEPEST: Final = 12
_WHITE: Final = (255, 255, 255)
#: A box on a page: left, bottom, right, top, y upward.
Box: TypeAlias = tuple[float, float, float, float]
_Color: TypeAlias = tuple[int, int, int]
_Ask: TypeAlias = Callable[..., Any]


class _Style(NamedTuple):
    """The way of a text onto a page: after how many others, if unpainted or too small, its colour (None: several)."""

    at: int
    unseen: bool
    tiny: bool
    color: _Color | None


class _Fill(NamedTuple):
    """A picture or a filled shape: after how many others it was painted, where, and in which colour (None: many)."""

    at: int
    box: Box
    color: _Color | None
    covers: bool


@dataclass(slots=True)
class Painting:
    """All that was painted on a page."""

    styles: dict[int, _Style] = field(default_factory=dict)
    fills: list[_Fill] = field(default_factory=list)
    #: Lines across a part of the page, and the sides of frames: how high they are, and from where to where they go.
    rules: list[tuple[float, float, float]] = field(default_factory=list)
    pictured: float = 0.0
    count: int = 0
    #: Something may be unseen.
    suspect: bool = False
    _grounds: set[_Color | None] = field(default_factory=lambda: {_WHITE})
    _channels: Any = field(default_factory=lambda: [ctypes.c_uint() for _ in range(4)])
    _filled: Any = field(default_factory=ctypes.c_int)
    _stroked: Any = field(default_factory=ctypes.c_int)

    def take(self, thing: Any, kind: int, box: Box) -> None:
        """Take the next thing that is painted."""
        self.count += 1
        color, opaque = self._color(thing)
        if kind == raw.FPDF_PAGEOBJ_TEXT:
            unseen = raw.FPDFTextObj_GetTextRenderMode(thing) == raw.FPDF_TEXTRENDERMODE_INVISIBLE or not opaque
            tiny = box[3] - box[1] < 1
            self.styles[ctypes.addressof(thing.contents)] = _Style(self.count, unseen, tiny, color)
            many = len(self._grounds) > _MOST_FILLS
            alike = many or any(_are_alike(color, each) for each in self._grounds)
            self.suspect = self.suspect or unseen or tiny or alike
        elif kind in {raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_SHADING}:
            self.fills.append(_Fill(self.count, box, None, False))
            self.pictured += area_of(box) if kind == raw.FPDF_PAGEOBJ_IMAGE else 0.0
        elif kind == raw.FPDF_PAGEOBJ_PATH and opaque:
            raw.FPDFPath_GetDrawMode(thing, self._filled, self._stroked)
            parts = raw.FPDFPath_CountSegments(thing)
            is_frame = parts > _LINE and self._filled.value == raw.FPDF_FILLMODE_NONE
            if len(self.rules) < _MOST_FILLS and (is_frame or box[3] - box[1] < _LINE):
                self.rules += [(y, box[0], box[2]) for y in ((box[1], box[3]) if is_frame else box[1:2])]
            if self._filled.value == raw.FPDF_FILLMODE_NONE:  # a line may be as broad as a field of a table
                self.fills += [_Fill(self.count, box, None, False)] if parts <= _LINE else []
                return
            covers = 4 <= parts <= 6 and not raw.FPDFPageObj_HasTransparency(thing)
            self.fills.append(_Fill(self.count, box, color, covers))
            self._grounds.add(color)
            self.suspect = self.suspect or bool(covers and self.styles)

    def _color(self, thing: Any) -> tuple[_Color | None, bool]:
        """Return the colour of what is filled (None: it has many), and if anything of it can be seen."""
        red, green, blue, alpha = self._channels
        if not raw.FPDFPageObj_GetFillColor(thing, red, green, blue, alpha):
            return None, True
        return (red.value, green.value, blue.value), alpha.value >= _ALIKE

    def hides(self, box: Box, thing: int, sheet: Box, is_scan: bool) -> bool:
        """Test if nobody can see a word: it is off the page, too small, transparent, of its ground's colour, covered.

        The text that was found in a scan lies unseen on the picture.
        """
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        if not (sheet[0] <= x <= sheet[2] and sheet[1] <= y <= sheet[3]):
            return True
        style = self.styles.get(thing) if self.suspect else None
        if style is None or (style.unseen and is_scan):
            return False
        around = [fill for fill in self.fills if _is_within((x, y, x, y), fill.box)]
        below = [fill.color for fill in around if fill.at < style.at]
        over = any(fill.covers and fill.at > style.at and _is_within(box, fill.box) for fill in around)
        tiny = style.tiny and min(box[3] - box[1], box[2] - box[0]) < 1
        return style.unseen or tiny or over or _are_alike(style.color, below[-1] if below else _WHITE)


def paint_of(sheet: PdfPage) -> Painting:
    """Return what is painted on a page, in that order, and what stands in its forms."""
    found = Painting()
    _take_all(found, raw.FPDFPage_CountObjects, raw.FPDFPage_GetObject, sheet.raw, ())
    found.fills = sorted(sorted(found.fills, key=lambda fill: -area_of(fill.box))[:_MOST_FILLS])
    return found


def _take_all(found: Painting, count: _Ask, get: _Ask, holder: Any, matrices: tuple[Any, ...]) -> None:
    left, bottom, right, top = bounds = [ctypes.c_float() for _ in range(4)]
    for at in range(count(holder)):
        thing = get(holder, at)
        kind = raw.FPDFPageObj_GetType(thing)
        if kind == raw.FPDF_PAGEOBJ_FORM and len(matrices) < _DEEPEST:
            matrix = raw.FS_MATRIX()
            raw.FPDFPageObj_GetMatrix(thing, matrix)
            _take_all(found, raw.FPDFFormObj_CountObjects, raw.FPDFFormObj_GetObject, thing, (matrix, *matrices))
        elif raw.FPDFPageObj_GetBounds(thing, *bounds):
            box = left.value, bottom.value, right.value, top.value
            for matrix in matrices:
                box = _move(box, matrix)
            found.take(thing, kind, box)


def _move(box: Box, by: Any) -> Box:
    corners = [(by.a * x + by.c * y + by.e, by.b * x + by.d * y + by.f) for x in box[::2] for y in box[1::2]]
    xs, ys = zip(*corners, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def area_of(box: Box) -> float:
    """Return the area of a box."""
    return (box[2] - box[0]) * (box[3] - box[1])


def _is_within(box: Box, other: Box) -> bool:
    return other[0] <= box[0] and other[1] <= box[1] and box[2] <= other[2] and box[3] <= other[3]


def _are_alike(one: _Color | None, other: _Color | None) -> bool:
    return one is not None and other is not None and max(abs(a - b) for a, b in zip(one, other, strict=True)) < _ALIKE
