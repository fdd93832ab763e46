"""Reads XLSX and ODS: each sheet that is seen as a heading and tables, its numbers as a person sees them."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from batos.memory.reading.read_text import Emit, NotReadable, ReadText, clean, one_line
from batos.memory.reading.zipped_documents import XmlEvent, ZippedDocument, inner_events, name_left_out, skip, whole

#: The cells of a row that have something, by their columns.
Row: TypeAlias = dict[int, str]
#: All that is written of a workbook, in characters; the columns of a sheet, and the cells that are repeated.
_MOST: Final = 4 * 2**20
_COLUMNS: Final = 16_384
#: Of a form for numbers: what only keeps a place, or names a colour; words; and the digits.
_SPACING: Final = re.compile(r"_.|\*.|\[(?![hms]+\]|\$)[^\]]*\]", re.IGNORECASE)
_ESCAPED: Final = re.compile("_x(00[0-9A-Fa-f]{2})_")
_MERGE: Final = re.compile(rb'mergeCell [^>]{0,50}?ref="([A-Z]{1,3})(\d{1,7}):[A-Z]{1,3}(\d{1,7})"')
_CURRENCY: Final = re.compile(r"\[\$([^\]-]*)[^\]]*\]")
_WORDS: Final = re.compile(r'"([^"]*)"|\\(.)|([€$£¥ ])')
_DIGITS: Final = re.compile(r"([0#?,]+)(?:\.([0#?]*))?")
#: The forms that every program knows by number: those of dates, of times, and of others.
_DATES: Final = frozenset({14, 15, 16, 17, 22, 27, 30, 36, 50, 57})
_TIMES: Final = frozenset({18, 19, 20, 21, 45, 46, 47})
_FORMS: Final = {1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 37: "#,##0", 39: "#,##0.00"}
_NUMBER: Final = re.compile(r"[-\d.,:/ %€$£]+")


def read_xlsx(path: Path, emit: Emit) -> None:
    """Read a workbook of Excel as one text."""
    _Xlsx(ZippedDocument(path)).read(emit)


def read_ods(path: Path, emit: Emit) -> None:
    """Read a workbook of LibreOffice as one text."""
    _Ods(ZippedDocument(path)).read(emit)


@dataclass(slots=True)
class _Workbook:
    """Writes sheets as Markdown, as far as there is room, and counts what is left out."""

    left_out: Counter[str] = field(default_factory=Counter)
    hidden: list[str] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    cuts: list[str] = field(default_factory=list)
    _room: int = _MOST
    _merged: dict[int, tuple[int, str]] = field(default_factory=dict)

    def add(self, name: str, rows: Iterator[Row]) -> None:
        """Write a sheet under its name, if it has any cells."""
        lines: list[str] = []
        self._merged.clear()
        for table in _tables(self._cut(name, rows)):
            lines += ["", *table]
        if lines:
            self._lines += ["", f"## {one_line(name)}", *lines]

    def _cut(self, name: str, rows: Iterator[Row]) -> Iterator[Row]:
        for number, row in enumerate(rows):
            self._room -= sum(len(each) + 3 for each in row.values()) + 1
            if self._room < 0:
                self.cuts.append(f"what stands behind the first {number} rows of {one_line(name)}: it is too large")
                return
            yield row

    def fill(self, at: int, row: Row, ends: Mapping[int, int]) -> None:
        """Add to a row the words of cells above that reach down to it; `ends` are the last rows of its own ones."""
        for column, (last, text) in list(self._merged.items()):
            if at > last:
                del self._merged[column]
            elif row:
                row.setdefault(column, text)
        self._merged |= {column: (last, row[column]) for column, last in ends.items() if column in row and last > at}

    def emit(self, emit: Emit) -> None:
        """Hand the text on."""
        hidden = f"{len(self.hidden)} hidden sheet{'s' * (len(self.hidden) > 1)} ({one_line(', '.join(self.hidden))})"
        left_out = (*[hidden] * bool(self.hidden), *name_left_out(self.left_out), *self.cuts)
        text = clean("\n".join(self._lines)).strip()
        if not text:
            raise NotReadable("the workbook has no cells" + f"; left out: {', '.join(left_out)}" * bool(left_out))
        emit(ReadText(text, "", "text/markdown", left_out=left_out))


def _tables(rows: Iterator[Row]) -> Iterator[list[str]]:
    """Yield the tables of a sheet as lines: an empty row ends one where the next row has one cell, or no numbers."""
    block: list[Row] = []
    is_apart = False
    for row in rows:
        if block and row and is_apart and (len(row) == 1 or not any(map(_NUMBER.fullmatch, row.values()))):
            yield _lines(block)
            block = []
        block += [row] if row else []
        is_apart = not row
    if block:
        yield _lines(block)


def _lines(block: Sequence[Row]) -> list[str]:
    """Return rows as lines: those above the first one with several cells as they are, the others as a table."""
    at = next((number for number, row in enumerate(block) if len(row) > 1), len(block))
    above = [text for row in block[:at] for text in row.values()]
    columns = sorted({column for row in block[at:] for column in row})
    return [*above, *[""] * bool(above and columns), *_table(columns, block[at:])]


def _table(columns: Sequence[int], rows: Sequence[Row]) -> Iterator[str]:
    for number, row in enumerate(rows):
        cells = (" ".join(row.get(column, "").split()).replace("|", "\\|") for column in columns)
        yield f"| {' | '.join(cells)} |"
        if not number:
            yield "|" + "---|" * len(columns)


class _Xlsx:
    """Reads the parts of a workbook of Excel."""

    def __init__(self, archive: ZippedDocument) -> None:
        self._archive = archive
        self._strings: list[str] = []
        self._forms: list[str] = []
        self._workbook = _Workbook()
        self._since = datetime(1899, 12, 30)  # noqa: DTZ001 - a sheet knows no zone

    def read(self, emit: Emit) -> None:
        """Read texts and forms first, then the sheets."""
        archive, main = self._archive, self._archive.main_part("xl/workbook.xml")
        parts = {own: (kind, name) for own, kind, name in archive.list_related(main) if archive.has(name)}
        for kind, name in parts.values():
            if kind == "sharedStrings":
                events = archive.events(name)
                self._strings += [_text(events) for event in events if event[:2] == ("<", "x:si")]
            elif kind == "styles":
                self._take_forms(archive.events(name))
        for _, name, about in archive.events(main):
            if name == "x:workbookPr" and about.get("date1904") in {"1", "true"}:
                self._since = datetime(1904, 1, 1)  # noqa: DTZ001
            elif name == "x:sheet" and about:
                self._add_sheet(about, *parts.get(about.get("relationships:id", ""), ("", "")))
        for folder, what in (
            ("xl/media/", "picture"),
            ("xl/charts/chart", "chart"),
            ("xl/embeddings/", "embedded file"),
        ):
            self._workbook.left_out[what] += archive.count(folder)
        for name in filter(re.compile("xl/drawings/drawing.*xml").fullmatch, archive.names):
            boxes = (each for each in archive.events(name) if each[:2] == ("<", "spreadsheetDrawing:txBody"))
            self._workbook.left_out["text frame"] += sum(1 for _ in boxes)
        self._workbook.emit(emit)

    def _add_sheet(self, about: Mapping[str, str], kind: str, part: str) -> None:
        left_out = self._workbook.left_out
        if about.get("state", "visible") != "visible":
            self._workbook.hidden.append(about.get("name", ""))
        elif kind == "worksheet":
            merges = _merges(self._archive.pieces(part))
            self._workbook.add(about.get("name", ""), self._rows(self._archive.events(part), merges))
            for _, related, name in self._archive.list_related(part):
                if related == "comments" and self._archive.has(name):
                    left_out["comment"] += sum(each[:2] == ("<", "x:comment") for each in self._archive.events(name))
        elif kind != "chartsheet":
            left_out["missing sheet"] += 1

    def _take_forms(self, events: Iterator[XmlEvent]) -> None:
        own = dict(_FORMS)
        own |= dict.fromkeys(_DATES, "yyyy-mm-dd") | dict.fromkeys(_TIMES, "hh:mm:ss") | {22: "yyyy-mm-dd hh:mm"}
        for event in events:
            if event[:2] == ("<", "x:numFmt"):
                own[whole(event.about.get("numFmtId"))] = event.about.get("formatCode", "")
            elif event[:2] == ("<", "x:cellXfs"):
                for kind, name, about in inner_events(events):
                    if (kind, name) == ("<", "x:xf"):
                        self._forms.append(own.get(whole(about.get("numFmtId")), ""))

    def _rows(self, events: Iterator[XmlEvent], merges: Mapping[tuple[int, int], int]) -> Iterator[Row]:
        left_out, hidden = self._workbook.left_out, set[int]()
        at = 0
        for kind, name, about in events:
            if kind != "<":
                continue
            if name == "x:col" and about.get("hidden") in {"1", "true"}:
                hidden |= set(range(whole(about.get("min"), 1), min(whole(about.get("max"), 1), _COLUMNS) + 1))
            elif name == "x:row":
                if whole(about.get("r"), at + 1) > at + 1:
                    yield {}
                at = whole(about.get("r"), at + 1)
                row = dict(self._cells(inner_events(events)))
                ends = {column: merges[at, column] for column in row if (at, column) in merges}
                self._workbook.fill(at, row, ends)
                if about.get("hidden") in {"1", "true"}:
                    left_out["hidden row"] += bool(row)
                    continue
                left_out["cell of a hidden column"] += len(hidden & row.keys())
                yield {column: text for column, text in row.items() if column not in hidden}

    def _cells(self, events: Iterator[XmlEvent]) -> Iterator[tuple[int, str]]:
        column = 0
        for kind, name, about in events:
            if kind == "<" and name == "x:c":
                column = _column(about.get("r", "")) or column + 1
                if text := self._cell(about, inner_events(events)).strip():
                    yield column, text

    def _cell(self, about: Mapping[str, str], events: Iterator[XmlEvent]) -> str:
        kind, text, is_formula = about.get("t", "n"), "", False
        for begin, name, _ in events:
            if begin == "<" and name == "x:is":
                text = _text(events)
            elif begin == "<" and name == "x:v":
                text = "".join(each.name for each in inner_events(events) if not each.kind)
            elif begin == "<" and name == "x:f":
                is_formula = not skip(events, "x:none")
        self._workbook.left_out["formula without a value"] += is_formula and not text
        if kind == "s":
            return self._strings[int(text)] if text.isdecimal() and int(text) < len(self._strings) else ""
        if kind == "b":
            return "TRUE" if text == "1" else "FALSE"
        form = whole(about.get("s"))
        return _show(text, self._forms[form] if form < len(self._forms) else "", self._since) if kind == "n" else text


def _merges(pieces: Iterator[bytes]) -> dict[tuple[int, int], int]:
    """Return the first row and column of merged cells with their last row: a sheet has them behind its cells."""
    found, held = {}, b""
    for piece in pieces:
        held = held[-100:] + piece
        for column, first, last in _MERGE.findall(held):
            found[int(first), _column(column.decode())] = int(last)
    return found


def _text(events: Iterator[XmlEvent]) -> str:
    """Return the words of a cell without the signs that tell how to speak them."""
    words: list[str] = []
    inner = inner_events(events)
    for kind, name, _ in inner:
        if kind == "<" and name == "x:rPh":
            skip(inner)
        elif not kind:
            words.append(name)
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), "".join(words)).strip()


def _column(place: str) -> int:
    """Return the number of a column.

    >>> _column("A1"), _column("AB12"), _column("")
    (1, 28, 0)
    """
    number = 0
    for letter in place[:3]:
        number = number * 26 + ord(letter) - 64 if "A" <= letter <= "Z" else number
    return number


class _Form(NamedTuple):
    """A form for numbers: words around the number, its digits at least, and those of its fraction."""

    kind: str
    before: str = ""
    after: str = ""
    whole: int = 1
    least: int = 0
    most: int = 0


@lru_cache(maxsize=1_000)
def _form(code: str) -> _Form:
    """Return what a form shows, as far as it is a date, a time, a share or a number; of any other the kind is ""."""
    code = _CURRENCY.sub(r'"\1"', _SPACING.sub("", code.partition(";")[0][:200]))
    seen = _WORDS.sub("", code)
    for kind, letters in (("date", "yd"), ("time", "hs"), ("date", "m")):
        if any(each in seen.casefold() for each in letters):
            return _Form(kind)
    digits = _DIGITS.search(seen)
    if digits is None or "/" in seen or "E" in seen.upper() or "@" in seen:
        return _Form("")
    before, *_, after = re.split(r"[0#?]+(?:[.,0#? ]*[0#?])?", code, maxsplit=1)
    before, after = ("".join(map("".join, _WORDS.findall(each))) for each in (before, after))
    kind = "percent" if "%" in seen else "number"
    return _Form(kind, before, after, digits[1].count("0"), (digits[2] or "").count("0"), len(digits[2] or ""))


def _show(text: str, code: str, since: datetime) -> str:
    """Return a number as its form shows it, but dates in ISO 8601, and no marks of thousands.

    >>> [_show(text, code, datetime(1899, 12, 30)) for text, code in (("0.125", "0.0%"), ("45000", "dd.mm.yy"))]
    ['12.5%', '2023-03-15']
    """
    try:
        number, form = float(text), _form(code)
        if form.kind in {"date", "time"}:
            moment = since + timedelta(seconds=round(number * 86_400))
            day, time = moment.date().isoformat(), moment.time().isoformat("seconds").removesuffix(":00")
            if "[h" in code.casefold():
                minutes, second = divmod(round(number * 86_400), 60)
                return f"{minutes // 60}:{minutes % 60:02}:{second:02}"
            has_time = any(each in code.casefold() for each in "hs") and number % 1
            return time if form.kind == "time" and number < 1 else f"{day} {time}" if has_time else day
        if not form.kind or abs(number) >= 1e15:
            return f"{number:.{15 if number.is_integer() else 11}g}"
        share = form.kind == "percent"
        digits, _, fraction = f"{abs(number) * (100 if share else 1):.{form.most}f}".partition(".")
        fraction = fraction[: form.least] + fraction[form.least :].rstrip("0")
        sign = "-" * (number < 0 and bool((digits + fraction).strip("0")))
        shown = digits.zfill(form.whole) + "." * bool(fraction) + fraction + "%" * share
        return f"{sign}{form.before}{shown}{form.after}"
    except (ValueError, OverflowError):
        return text


class _Ods:
    """Reads the content of a workbook of LibreOffice, whose cells hold what they show."""

    def __init__(self, archive: ZippedDocument) -> None:
        self._archive = archive
        self._workbook = _Workbook()
        self._hidden: set[str] = set()
        self._ends: dict[int, int] = {}

    def read(self, emit: Emit) -> None:
        """Read the sheets that are seen."""
        self._archive.raise_if_locked()
        events = self._archive.events("content.xml")
        style = ""
        for kind, name, about in events:
            if kind != "<":
                continue
            style = about.get("style:name", style) if name == "style:style" else style
            if name == "style:table-properties" and about.get("table:display") == "false":
                self._hidden.add(style)
            elif name == "table:table" and about.get("table:style-name") in self._hidden:
                self._workbook.hidden.append(about.get("table:name", ""))
                skip(events)
            elif name == "table:table":
                self._workbook.add(about.get("table:name", ""), rows := self._rows(inner_events(events)))
                deque(rows, maxlen=0)
        self._workbook.left_out["picture"] += self._archive.count("pictures/")
        self._workbook.emit(emit)

    def _rows(self, events: Iterator[XmlEvent]) -> Iterator[Row]:
        left_out, hidden, column, at = self._workbook.left_out, set[int](), 0, 0
        for kind, name, about in events:
            if kind == "<" and name == "table:table-column":
                width = min(whole(about.get("table:number-columns-repeated"), 1), _COLUMNS)
                if about.get("table:visibility", "visible") != "visible":
                    hidden |= set(range(column, column + width))
                column += width
            elif kind == "<" and name == "table:table-row":
                self._ends.clear()
                row = dict(self._cells(inner_events(events)))
                repeated = whole(about.get("table:number-rows-repeated"), 1)
                self._workbook.fill(at, row, {column: at + count - 1 for column, count in self._ends.items()})
                at += repeated
                if about.get("table:visibility", "visible") != "visible":
                    left_out["hidden row"] += bool(row)
                    continue
                left_out["cell of a hidden column"] += len(hidden & row.keys())
                row = {column: text for column, text in row.items() if column not in hidden}
                yield from repeat(row, repeated if row else 1)
            elif kind == "<" and name == "table:shapes":
                left_out["text frame"] += skip(events, "drawing:text-box")

    def _cells(self, events: Iterator[XmlEvent]) -> Iterator[tuple[int, str]]:
        column = 0
        for kind, name, about in events:
            if kind == "<" and name in {"table:table-cell", "table:covered-table-cell"}:
                width = whole(about.get("table:number-columns-repeated"), 1)
                self._ends[column] = whole(about.get("table:number-rows-spanned"), 1)
                text = self._cell(inner_events(events)).strip()
                if about.get("office:value-type") == "date":
                    text = about.get("office:date-value", text).replace("T", " ").removesuffix(" 00:00:00")
                for at in range(column, min(column + width, _COLUMNS) if text else 0):
                    yield at, text
                column += width

    def _cell(self, events: Iterator[XmlEvent]) -> str:
        words: list[str] = []
        depth = 0
        for kind, name, _ in events:
            if kind == "<" and name == "office:annotation":
                self._workbook.left_out["comment"] += 1
                skip(events)
            elif name == "text:p":
                depth += 1 if kind == "<" else -1
                words.append(" ")
            elif depth and name in {"text:s", "text:line-break", "text:tab"}:
                words.append(" ")
            elif not kind and depth:
                words.append(name)
        return "".join(words)
