"""Reads DOCX and ODT: the text as its authors have it now, without what they deleted or hid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from batos.memory.reading.read_text import Emit, NotReadable
from batos.memory.reading.zipped_documents import (
    BREAK,
    Numbering,
    Page,
    Style,
    XmlEvent,
    ZippedDocument,
    inner_events,
    skip,
    whole,
)

#: Elements whose words are none of the text.
_PASSED: Final = frozenset(
    "w:instrText w:delText w:delInstrText w:moveFrom w:sdtPr w:sectPr w:tblPr w:rt w:fldData w:ffData w:del w:object"
    " w:altChunk markup-compatibility:Fallback".split()
)
#: Elements that are told as left out.
_TOLD: Final = {
    "w:del": "tracked deletion", "w:object": "embedded object", "w:altChunk": "embedded document",
    "w:commentReference": "comment", "picture:pic": "picture", "?:imagedata": "picture", "chart:chart": "chart",
    "diagram:relIds": "diagram",
}  # fmt: skip
#: Elements that mean words.
_SAID: Final = {"w:tab": " ", "w:ptab": " ", "w:noBreakHyphen": "-", "w:br": BREAK, "w:cr": BREAK, "m:den": "/",
                "m:sup": "^"}  # fmt: skip


#: Signs of the usual symbol font.
_SIGNS: Final = {"F0FE": "☒", "F0FD": "☒", "F0FC": "✓", "F0A8": "☐", "F06F": "☐", "F0E0": "→"}


def read_docx(path: Path, emit: Emit) -> None:
    """Read a file as one text."""
    _read(_Docx(ZippedDocument(path)), emit)


def read_odt(path: Path, emit: Emit) -> None:
    """Read a file as one text."""
    _read(_Odt(ZippedDocument(path)), emit)


def _read(document: _Document, emit: Emit) -> None:
    try:
        document.read(emit)
    except IndexError:  # a cell without a row, or what else no program writes
        raise NotReadable("it is damaged: its tables are none") from None


def _change(style: Style, name: str, value: str) -> Style:
    """Return a style with what a property says of it."""
    if name == "w:outlineLvl":
        return replace(style, heading=whole(value, 9) + 1 if whole(value, 9) < 6 else 0)
    if name == "w:numId":
        return replace(style, list=value)
    if name == "w:ilvl":
        return replace(style, depth=min(whole(value), 8))
    if name == "w:vanish":
        return replace(style, is_hidden=value not in {"0", "false", "off"})
    return replace(style, is_raised=value == "superscript") if name == "w:vertAlign" else style


class _Document(ABC):
    """Reads the parts of a document one after the other."""

    def __init__(self, archive: ZippedDocument) -> None:
        self._archive = archive
        self._styles: dict[str, Style] = {}
        self._title = ""
        self._numbering = Numbering()
        self._page = Page()

    @abstractmethod
    def read(self, emit: Emit) -> None:
        """Read styles and notes first, then the text, and what stands above and below its pages."""

    @abstractmethod
    def _walk(self, events: Iterator[XmlEvent]) -> None:
        """Write what is there on the page."""

    def _apart(self, events: Iterator[XmlEvent]) -> str:
        """Return what is no part of the flow, as HTML; what it leaves out counts."""
        held, self._page = self._page, Page()
        self._walk(events)
        html = self._page.html()
        held.left_out.update(self._page.left_out)
        self._page = held
        return html


class _Docx(_Document):
    """A document of Word."""

    def __init__(self, archive: ZippedDocument) -> None:
        super().__init__(archive)
        self._titles: set[str] = set()
        self._notes: dict[tuple[str, str], str] = {}
        self._run = self._paragraph = Style()
        self._cells: list[tuple[int, bool]] = []
        self._gone: list[bool] = []
        self._is_text = self._joins = self._is_title = False

    def read(self, emit: Emit) -> None:
        archive, main = self._archive, self._archive.main_part("word/document.xml")
        parts = [(kind, name) for _, kind, name in archive.list_related(main) if archive.has(name)]
        for kind, name in parts:
            if kind == "styles":
                self._take_styles(archive.events(name))
            elif kind == "numbering":
                self._numbering.take(archive.events(name))
        for kind, name in parts:
            if kind in {"footnotes", "endnotes"}:
                self._take_notes(archive.events(name))
        self._walk(archive.events(main))
        around = [self._apart(archive.events(name)) for kind, name in parts if kind in {"header", "footer"}]
        self._page.emit(around, self._title, emit)

    def _take_styles(self, events: Iterator[XmlEvent]) -> None:
        found: dict[str, tuple[Style, str]] = {}
        for event in events:
            if event[:2] != ("<", "w:style"):
                continue
            own, below, called, style = event.about.get("w:styleId", ""), "", "", Style()
            for kind, name, about in inner_events(events):
                if kind == "<":
                    value = about.get("w:val", "")
                    called = value.casefold() if name == "w:name" else called
                    below = value if name == "w:basedOn" else below
                    style = _change(style, name, value)
            level = whole(called.removeprefix("heading "))
            if called == "title":
                self._titles.add(own)
                level = 1
            found[own] = replace(style, heading=min(level, 6) or style.heading), below
        for own, (style, below) in found.items():
            for _ in range(20):  # a style may be based on itself
                style, below = style.over(found[below][0]) if below in found else style, found.get(below, (0, ""))[1]
            self._styles[own] = style

    def _take_notes(self, events: Iterator[XmlEvent]) -> None:
        for kind, name, about in events:
            if kind == "<" and name in {"w:footnote", "w:endnote"} and "w:type" not in about:
                self._notes[f"{name}Reference", about.get("w:id", "")] = self._apart(inner_events(events))

    def _walk(self, events: Iterator[XmlEvent]) -> None:
        for kind, name, about in events:
            if not kind:
                if self._is_text:
                    self._page.say(name, self._run.over(self._paragraph))
            elif kind == ">":
                self._end(name)
            elif name in {"w:pPr", "w:rPr"}:
                self._take_style(name, inner_events(events))
            elif name in {"w:trPr", "w:tcPr"}:
                self._take_cell(inner_events(events))
            else:
                self._begin(name, about)
                if name in _PASSED:
                    skip(events)

    def _take_style(self, of: str, events: Iterator[XmlEvent]) -> None:
        """Take what the properties of a paragraph or a run tell, and not what they were before a tracked change."""
        style, below = Style(), Style()
        for kind, name, about in events:
            value = about.get("w:val", "")
            if kind != "<":
                continue
            if name.endswith("Change"):
                skip(events)
            elif name == "w:rPr":  # of the mark at the paragraph's end: where it was deleted, the next one joins
                marks = [each.name for each in inner_events(events)]
                self._joins = self._joins or "w:del" in marks or "w:moveFrom" in marks
            elif name in {"w:pStyle", "w:rStyle"}:
                below = self._styles.get(value, below)
                self._is_title = self._is_title or value in self._titles
            elif name == "w:framePr":  # a large first letter
                self._joins = self._joins or about.get("w:dropCap", "none") != "none"
            else:
                style = _change(style, name, value)
        if of == "w:pPr":
            self._paragraph = style.over(below)
        else:
            self._run = style.over(below)

    def _take_cell(self, events: Iterator[XmlEvent]) -> None:
        """Take what the properties of a row or a cell tell."""
        for kind, name, about in events:
            value = about.get("w:val", "")
            if kind == "<" and self._cells and name == "w:gridSpan":
                self._cells[-1] = min(whole(value, 1), 64), self._cells[-1][1]
            elif kind == "<" and self._cells and name == "w:vMerge":
                self._cells[-1] = self._cells[-1][0], value != "restart"
            elif name in {"w:del", "w:hidden"} and self._gone:
                self._gone[-1] = True

    def _begin(self, name: str, about: Mapping[str, str]) -> None:
        page = self._page
        if name in {"w:t", "m:t"}:
            self._is_text = True
        elif name in _SAID:
            page.mark(_SAID[name])
        elif name in _TOLD:
            page.left_out[_TOLD[name]] += 1
        elif name in {"w:sym", "wordprocessingDrawing:docPr"}:
            page.say(_SIGNS.get(about.get("w:char", "").upper(), f" {about.get('descr', '')} "), self._run)
        elif name in {"w:footnoteReference", "w:endnoteReference"}:
            if html := self._notes.get((name, about.get("w:id", ""))):
                page.note(html)
        elif name == "w:tbl":
            page.begin_table()
        elif name == "w:tr":
            page.begin_row()
            self._gone.append(False)
        elif name in {"w:tc", "w:txbxContent"}:
            page.begin_level()
            self._cells += [(1, False)] if name == "w:tc" else []

    def _end(self, name: str) -> None:
        page = self._page
        if name in {"w:t", "m:t"}:
            self._is_text = False
        elif name == "w:r":
            self._run = Style()
        elif name == "w:p":
            self._end_paragraph()
        elif name == "w:tc":
            width, goes_on = self._cells.pop()
            page.end_cell(width, goes_on=goes_on)
        elif name == "w:tr" and self._gone.pop():
            page.drop_row()
            page.left_out["deleted or hidden row"] += 1
        elif name == "w:tbl":
            page.end_table()
        elif name == "w:txbxContent":
            page.end_box()

    def _end_paragraph(self) -> None:
        if self._is_title and not self._title:
            self._title = self._page.words()
        if not self._joins:
            self._page.end_paragraph(self._paragraph, self._numbering.label(self._paragraph))
        self._paragraph, self._joins, self._is_title = Style(), False, False


#: Elements of ODT whose words are none of the text, and as what they are told.
_ODT_PASSED: Final = {
    "office:annotation": "comment", "drawing:object": "embedded object", "drawing:plugin": "embedded object",
    "text:hidden-text": "hidden text", "text:note-citation": "", "text:ruby-text": "", "office:forms": "",
    "office:scripts": "", "text:sequence-decls": "",
}  # fmt: skip
_BOXES: Final = frozenset(f"drawing:{each}" for each in "text-box custom-shape rect ellipse polygon line path".split())


class _Odt(_Document):
    """A document of LibreOffice."""

    def __init__(self, archive: ZippedDocument) -> None:
        super().__init__(archive)
        self._titles = {"Title"}
        self._is_title = False
        self._open: list[Style] = []
        self._lists: list[str] = []
        self._is_item = False
        self._rows: list[bool] = []

    def read(self, emit: Emit) -> None:
        self._archive.raise_if_locked()
        around: list[str] = []
        if self._archive.has("styles.xml"):
            events = self._archive.events("styles.xml")
            for event in events:
                self._take_style(event, events)
                if event.kind == "<" and event.name.startswith(("style:header", "style:footer")):
                    around.append(self._apart(inner_events(events)))
        events = self._archive.events("content.xml")
        for event in events:
            self._take_style(event, events)
            if event[:2] == ("<", "office:body"):
                self._walk(inner_events(events))
        self._page.emit(around, self._title, emit)

    def _take_style(self, event: XmlEvent, events: Iterator[XmlEvent]) -> None:
        """Take what a style tells, or a kind of list."""
        if event[:2] == ("<", "style:style"):
            below, own = event.about.get("style:parent-style-name", ""), event.about.get("style:name", "")
            style = Style(list=event.about.get("style:list-style-name", ""))
            for _, _, about in inner_events(events):
                raised = about.get("style:text-position", "").startswith("super")
                hidden = about.get("text:display") == "none"
                style = Style(list=style.list, is_hidden=hidden, is_raised=raised).over(style)
            self._styles[own] = style.over(self._styles.get(below, Style()))
            self._titles |= {own} if below in self._titles else set()
        elif event[:2] == ("<", "text:list-style"):
            own = event.about.get("style:name", "")
            self._numbering.kinds[own] = own
            for kind, name, about in inner_events(events):
                if kind == "<" and name.startswith("text:list-level-style-"):
                    at = whole(about.get("text:level"), 1) - 1
                    self._numbering.levels[own, at] = _odt_level(name, about, at)

    def _walk(self, events: Iterator[XmlEvent]) -> None:
        for kind, name, about in events:
            if not kind:
                if self._open:
                    self._page.say(name, self._open[-1])
            elif kind == ">":
                self._end(name)
            elif name == "text:tracked-changes":
                self._page.left_out["tracked deletion"] += skip(events, "text:deletion")
            elif name in _ODT_PASSED or name.endswith("-source"):
                self._page.left_out[_ODT_PASSED.get(name, "")] += 1
                skip(events)
            else:
                self._begin(name, about)
                self._begin_structure(name, about)

    def _begin(self, name: str, about: Mapping[str, str]) -> None:
        """Take the begin of what has words, or is one."""
        outer = self._open[-1] if self._open else Style()
        if name in {"text:p", "text:h"}:
            own = self._styles.get(about.get("text:style-name", ""), Style())
            heading = whole(about.get("text:outline-level"), 1) if name == "text:h" else 0
            self._is_title = about.get("text:style-name") in self._titles
            self._open.append(replace(own, heading=heading or int(self._is_title)).over(replace(outer, heading=0)))
        elif name == "text:span":
            self._open.append(self._styles.get(about.get("text:style-name", ""), Style()).over(outer))
        elif name == "text:section":
            self._open.append(replace(outer, is_hidden=outer.is_hidden or about.get("text:display") == "none"))
        elif name in {"text:s", "text:tab", "drawing:frame", "svg:title", "svg:desc"}:
            self._page.mark(" ")
        elif name == "text:line-break":
            self._page.mark(BREAK)
        elif name == "drawing:image" and not about.get("xlink:href", "").startswith("./ObjectReplacements"):
            self._page.left_out["picture"] += 1

    def _begin_structure(self, name: str, about: Mapping[str, str]) -> None:
        """Take the begin of a list, a table, a box or a note."""
        page = self._page
        if name == "text:list":
            own = about.get("text:style-name") or (self._lists[-1] if self._lists else "")
            if not self._lists and about.get("text:continue-numbering") != "true":
                self._numbering.restart(own)
            self._lists.append(own)
        elif name == "text:list-item":
            self._is_item = True
        elif name == "table:table":
            page.begin_table()
        elif name == "table:table-row":
            page.begin_row()
            self._rows.append(about.get("table:visibility", "visible") != "visible")
        elif name in _BOXES or name in {"text:note-body", "table:table-cell", "table:covered-table-cell"}:
            page.begin_level()

    def _end(self, name: str) -> None:
        page = self._page
        if name in {"text:p", "text:h"}:
            if self._is_title and not self._title:
                self._title = page.words()
            style = replace(self._open.pop(), list=self._lists[-1] if self._lists else "", depth=len(self._lists) - 1)
            page.end_paragraph(style, self._numbering.label(style) if self._is_item and self._lists else "")
            self._is_item = False
        elif name in {"text:span", "text:section"}:
            self._open.pop()
        elif name == "text:list":
            self._lists.pop()
        elif name in _BOXES:
            page.end_box()
        elif name == "text:note-body":
            page.end_note()
        elif name in {"table:table-cell", "table:covered-table-cell"}:
            page.end_cell()
        elif name == "table:table":
            page.end_table()
        elif name == "table:table-row" and self._rows.pop():
            page.drop_row()
            page.left_out["hidden row"] += 1


def _odt_level(name: str, about: Mapping[str, str], at: int) -> dict[str, str]:
    """Return the form of a level of a list, in the words of DOCX."""
    forms = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman", "1": "decimal"}
    form = forms.get(about.get("style:num-format", ""), "none") if name.endswith("number") else "bullet"
    first = max(0, at + 1 - whole(about.get("text:display-levels"), 1))
    shown = ".".join(f"%{each + 1}" for each in range(first, min(at + 1, 9)))
    words = about.get("style:num-prefix", "") + shown + about.get("style:num-suffix", "")
    return {"w:numFmt": form, "w:lvlText": words, "w:start": about.get("text:start-value", "1")}
