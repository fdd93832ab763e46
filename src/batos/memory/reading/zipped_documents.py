"""Opens zipped documents: their parts and XML within limits, and the page of HTML on which their words are laid out."""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape, unescape
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple
from xml.parsers import expat

from batos.memory.reading.read_text import Emit, NotReadable, ReadText, one_line
from batos.memory.reading.web_pages import text_of

LOCKED: Final = "it is locked with a password: save it without one, in its own program"
#: Stands for a line that was broken.
BREAK: Final = "<br>"
#: Stands before the number of an item, in place of a dash.
_NUMBER: Final = "\ufdd0"
#: Bytes that are unpacked at once; and of a whole archive at most, beside so many times its own.
_PIECE: Final = 2**20
_UNPACKED: Final = 64 * 2**20
_FACTOR: Final = 100
#: Begins and ends of the names of namespaces -> ours. Of those of ODF the last word is taken.
_SPACES: Final = re.compile(
    r".*(?:(?P<w>wordprocessingml)|(?P<x>spreadsheetml)|(?P<m>officeDocument)|(?P<a>drawingml))(?:/20\d\d)?/(?:main|math)"
    r"|.*:opendocument:xmlns:(?P<odf>[a-z]+).*|.*/(?:20\d\d/)?(?P<last>[A-Za-z-]+)(?:/20\d\d)?"
)


#: Raised words that are no power: the end of the word before them, as in 1st and 2e, or a sign.
_NO_POWER: Final = re.compile(r"[^\W\d_]{2,}|[aeo]\Z|[^\w+\u2212-]|\Z")
_ROMAN: Final = "0 i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx".split()


class XmlEvent(NamedTuple):
    """A place that a parser came to: the begin ("<") or end (">") of an element, or words ("")."""

    kind: str
    name: str
    about: Mapping[str, str] = {}


@dataclass(slots=True)
class ZippedDocument:
    """An open zip archive. All that is unpacked of it is bounded, and never written anywhere."""

    path: Path
    names: dict[str, zipfile.ZipInfo] = field(init=False)
    _zip: zipfile.ZipFile = field(init=False)
    _left: int = field(init=False)

    def __post_init__(self) -> None:
        try:
            self._zip = zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            raise NotReadable("it is a damaged archive: save or download it again") from None
        self.names = {each.filename.replace("\\", "/").casefold(): each for each in self._zip.infolist()}
        self._left = _UNPACKED + _FACTOR * self.path.stat().st_size

    def has(self, name: str) -> bool:
        """Test if there is a part."""
        return name.casefold() in self.names

    def count(self, folder: str) -> int:
        """Return how many parts a folder has."""
        return sum(each.startswith(folder) for each in self.names)

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a part. Raises: NotReadable: it is missing, damaged, locked, or far too large."""
        try:
            with self._zip.open(self.names[name.casefold()]) as part:
                while data := part.read(_PIECE):
                    self._left -= len(data)
                    if self._left < 0:
                        raise NotReadable("it unpacks to far more than its own size")
                    yield data
        except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
            locked = "password" in str(error)  # what `zipfile` says of a part that asks for one
            raise NotReadable(LOCKED if locked else f"its part {name[:80]} is missing or damaged") from None

    def part(self, name: str) -> bytes:
        """Return the bytes of a part."""
        return b"".join(self.pieces(name))

    def events(self, name: str) -> Iterator[XmlEvent]:
        """Yield what a part of XML holds, in order. Raises: NotReadable: it is no XML, or it defines entities."""
        parser = expat.ParserCreate(namespace_separator=" ")
        found, short = list[XmlEvent](), _ShortNames()
        parser.buffer_text = True

        def begin(tag: str, about: dict[str, str]) -> None:
            found.append(XmlEvent("<", short[tag], {short[each]: value for each, value in about.items()}))

        parser.StartElementHandler = begin
        parser.EndElementHandler = lambda tag: found.append(XmlEvent(">", short[tag]))
        parser.CharacterDataHandler = lambda words: found.append(XmlEvent("", words))
        parser.EntityDeclHandler = _refuse_entities
        try:
            for piece in chain(self.pieces(name), [b""]):
                parser.Parse(piece, not piece)
                yield from found
                found.clear()
        except (expat.ExpatError, ValueError, LookupError):
            raise NotReadable(f"its part {name[:80]} is damaged: it is no XML to its end") from None

    def list_related(self, name: str) -> Iterator[tuple[str, str, str]]:
        """Yield the parts that a part of an office document names: the id, the last word of the type, and the name."""
        folder, _, own = name.rpartition("/")
        table = f"{folder}/_rels/{own}.rels".lstrip("/")
        for _, _, about in self.events(table) if self.has(table) else ():
            if "Target" in about and about.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, about["Target"])).lstrip("/")
                yield about.get("Id", ""), about.get("Type", "").rpartition("/")[2], target

    def main_part(self, usual: str) -> str:
        """Return the part of an office document that has its content."""
        return next((name for _, kind, name in self.list_related("") if kind == "officeDocument"), usual)

    def raise_if_locked(self) -> None:
        """Raise NotReadable if it is an ODF document that was saved with a password."""
        manifest = "META-INF/manifest.xml"
        events = self.events(manifest) if self.has(manifest) else iter(())
        if self.has("encrypted-package") or any(each.name == "manifest:encryption-data" for each in events):
            raise NotReadable(LOCKED)


class _ShortNames(dict[str, str]):
    """Names of XML with a short name of their space before a colon."""

    def __missing__(self, name: str) -> str:
        space, _, own = name.rpartition(" ")
        found = _SPACES.fullmatch(space)
        kind = found.lastgroup if found else None
        prefix = "?" if found is None or kind is None else found[kind] if kind in {"odf", "last"} else kind
        self[name] = short = f"{prefix}:{own}" if space else own
        return short


def _refuse_entities(*_: object) -> None:
    raise NotReadable("its XML defines entities, which no office program does: it is not read")


def inner_events(events: Iterator[XmlEvent]) -> Iterator[XmlEvent]:
    """Yield what is within the element that has just begun; then go on behind it."""
    depth = 1
    for event in events:
        depth += {"<": 1, ">": -1}.get(event.kind, 0)
        if not depth:
            return
        yield event


def skip(events: Iterator[XmlEvent], name: str = "") -> int:
    """Pass over what is within the element that has just begun; return how many elements of a name are there."""
    return sum(event.kind == "<" and event.name == name for event in inner_events(events))


def whole(text: str | None, default: int = 0) -> int:
    """Return a number that an attribute has, or a default where it has none, or an absurd one."""
    return int(text) if text and len(text) < 8 and text.isascii() and text.isdigit() else default


def name_left_out(counts: Counter[str]) -> tuple[str, ...]:
    """Return the phrases that tell what a text lacks.

    >>> name_left_out(Counter({"picture": 2, "hidden text": 5, "comment": 1}))
    ('2 pictures', 'hidden text', '1 comment')
    """
    some = ((what, count) for what, count in counts.items() if what and count)
    return tuple(what if what.endswith("text") else f"{count} {what}" + "s" * (count > 1) for what, count in some)


@dataclass(frozen=True, slots=True)
class Style:
    """The effect of a style on its words: a heading, an item of a list at a depth, hidden or raised words."""

    heading: int = 0
    list: str = ""
    depth: int = 0
    is_hidden: bool = False
    is_raised: bool = False

    def over(self, below: Style) -> Style:
        """Return what holds where this style lies over another one."""
        own = self if self.list else replace(self, list=below.list, depth=below.depth)
        hidden, raised = self.is_hidden or below.is_hidden, self.is_raised or below.is_raised
        return replace(own, heading=self.heading or below.heading, is_hidden=hidden, is_raised=raised)


def _numeral(number: int, form: str) -> str:
    """Return a number as a list has it.

    >>> _numeral(4, "lowerRoman"), _numeral(2, "upperLetter"), _numeral(4, "decimal")
    ('iv', 'B', '4')
    """
    found = str(number)
    if form.endswith("Roman") and number < len(_ROMAN):
        found = _ROMAN[number]
    elif form.endswith("Letter") and 0 < number < 27:
        found = chr(96 + number)
    return found.upper() if form.startswith("upper") else found


@dataclass(slots=True)
class Numbering:
    """The numbers of lists: each is of a kind, whose levels have a form, words around the number, and a start."""

    kinds: dict[str, str] = field(default_factory=dict)
    levels: dict[tuple[str, int], dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    starts: dict[tuple[str, int], int] = field(default_factory=dict)
    _counts: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))

    def take(self, events: Iterator[XmlEvent]) -> None:
        """Take what the part of a document tells."""
        kind, number, at = "", "", 0
        for begin, name, about in events:
            value = about.get("w:val", "")
            if begin != "<":
                continue
            if name in {"w:lvl", "w:lvlOverride"}:
                at = whole(about.get("w:ilvl"))
            elif name == "w:startOverride":
                self.starts[number, at] = whole(value, 1)
            elif name == "w:abstractNumId":
                self.kinds[number] = value
            elif name in {"w:numFmt", "w:lvlText", "w:start"} and not number:
                self.levels[kind, at][name] = value
            kind = about.get("w:abstractNumId", kind)
            number = about.get("w:numId", number)

    def label(self, style: Style) -> str:
        """Return what stands before the next item of a list; "" where it is none."""
        kind, at = self.kinds.get(style.list, ""), style.depth
        level = self.levels.get((kind, at), {"w:numFmt": "bullet" if style.list.strip("0") else "none"})
        counts = self._counts[kind]
        for deeper in [each for each in counts if each > at]:
            del counts[deeper]
        if (style.list, at) in self.starts:
            counts[at] = self.starts.pop((style.list, at)) - 1
        counts[at] = counts.get(at, whole(level.get("w:start"), 1) - 1) + 1
        if level.get("w:numFmt") in {"bullet", "none"}:
            sign = level.get("w:lvlText", "")
            return "" if level["w:numFmt"] == "none" else sign if sign and sign in "☐☑☒" else "-"
        return re.sub("%([1-9])", lambda found: self._show(kind, int(found[1]) - 1), level.get("w:lvlText", "")).strip()

    def restart(self, kind: str) -> None:
        """Count a list anew."""
        self._counts.pop(kind, None)

    def _show(self, kind: str, at: int) -> str:
        level = self.levels.get((kind, at), {})
        return _numeral(self._counts[kind].get(at, whole(level.get("w:start"), 1)), level.get("w:numFmt", ""))


@dataclass(slots=True)
class _Level:
    """A place that is written to: the page, a cell, a box or a note. `later` stands behind the paragraph."""

    done: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)
    lists: int = 0


class Page:
    """Writes a document as plain HTML, and counts what is left out of it."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._levels = [_Level()]
        self._tables: list[list[list[str]]] = []
        self._notes: list[str] = []
        self._note = 0
        self._is_raised = False

    def say(self, words: str, style: Style) -> None:
        """Add words to the paragraph, or count them as hidden."""
        if style.is_hidden:
            self.left_out["hidden text"] += bool(words.strip())
        else:
            is_power = style.is_raised and not self._is_raised and not _NO_POWER.match(words)
            self._is_raised = style.is_raised
            self.mark("^" * is_power + escape(words.replace("\xad", ""), quote=False))

    def words(self) -> str:
        """Return the words of the paragraph as they are."""
        return unescape(re.sub("<[^>]*>", " ", "".join(self._levels[-1].words)))

    def mark(self, html: str) -> None:
        """Add what is HTML to the paragraph."""
        self._levels[-1].words.append(html)

    def end_paragraph(self, style: Style, label: str = "") -> None:
        """Write the paragraph, and behind it the boxes and notes that belong to it."""
        level = self._levels[-1]
        words, in_list = "".join(level.words), bool(label and not style.heading and not self._tables)
        if words.strip():
            tag = "li" if in_list else f"h{min(style.heading, 6)}" if style.heading and not self._tables else "p"
            self._open_lists(level, style.depth + 1 if in_list else 0)
            before = f"{_NUMBER}{escape(label)} " if label.strip("-") else ""
            level.done.append(f"<{tag}>{before}{words}</{tag}>")
        level.done += level.later
        level.words, level.later, self._is_raised = [], [], False
        self._write_notes()

    @staticmethod
    def _open_lists(level: _Level, depth: int) -> None:
        level.done.append("<ul>" * (depth - level.lists) + "</ul>" * (level.lists - depth))
        level.lists = depth

    def begin_level(self) -> None:
        """Write to a place of its own from here on."""
        self._levels.append(_Level())

    def _end_level(self) -> str:
        self.end_paragraph(Style())
        self._open_lists(self._levels[-1], 0)
        return "".join(self._levels.pop().done)

    def end_box(self) -> None:
        """Write what stands in a box behind the paragraph that it is fixed to."""
        box = self._end_level()
        self._levels[-1].later.append(box)

    def end_note(self) -> None:
        """Take what was written at a place of its own for a note."""
        self.note(self._end_level())

    def note(self, html: str) -> None:
        """Add the mark of a note here, and its words behind the paragraph or the table."""
        self._note += 1
        self.mark(f"[^{self._note}]")
        self._notes.append(f"<p>[^{self._note}]: {re.sub('</?(?:p|ul|li|h[1-6])>', ' ', html)}</p>")

    def _write_notes(self) -> None:
        if self._notes and not self._tables and len(self._levels) == 1:
            self._open_lists(self._levels[0], 0)
            self._levels[0].done += self._notes
            self._notes.clear()

    def begin_table(self) -> None:
        """Begin a table, whose rows have cells."""
        self._open_lists(self._levels[-1], 0)
        self._tables.append([])

    def begin_row(self) -> None:
        """Begin a row."""
        self._tables[-1].append([])

    def drop_row(self) -> None:
        """Take the row away that was written."""
        self._tables[-1].pop()

    def end_cell(self, width: int = 1, *, goes_on: bool = False) -> None:
        """End a cell that is so many columns wide; one that goes on has the words of the one above."""
        text, rows = self._end_level(), self._tables[-1]
        row, above = rows[-1], rows[-2] if len(rows) > 1 else []
        row += [above[len(row)] if goes_on and not text and len(row) < len(above) else text, *[""] * (width - 1)]

    def end_table(self) -> None:
        """Write a table; its first row names the columns, where there is more than one of either."""
        rows = [row for row in self._tables.pop() if any(row)]
        done = self._levels[-1].done
        done.append("<table>")
        for number, row in enumerate(rows):
            tag = "th" if not number and len(row) > 1 < len(rows) else "td"
            done.append(f"<tr>{''.join(f'<{tag}>{each}</{tag}>' for each in row)}</tr>")
        done.append("</table>")
        self._write_notes()

    def html(self) -> str:
        """Return all that was written."""
        while len(self._levels) > 1:
            self.end_box()
        self._tables.clear()
        return self._end_level()

    def emit(self, around: Iterable[str], title: str, emit: Emit) -> None:
        """Hand the document on: its text, and behind it, once, what stands above and below all pages."""
        around = (each for each in dict.fromkeys(around) if re.search(r">[^<]*[^\W\d_]", each))
        text, left_out = text_of(self.html() + "".join(around))[1], name_left_out(self.left_out)
        text = text.replace(f"- {_NUMBER}", "").replace(_NUMBER, "")
        if not text.strip():
            raise NotReadable("the document has no text" + f"; left out: {', '.join(left_out)}" * bool(left_out))
        emit(ReadText(text, one_line(title), "text/markdown", left_out=left_out))
