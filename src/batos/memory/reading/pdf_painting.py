"""Looks at what is painted on a page of a PDF, in which order and colours, to tell which words nobody can see."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from pypdfium2 import PdfPage, raw

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
