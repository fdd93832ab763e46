"""Read an HTML page as text with Markdown's headings, lists, tables and blocks of code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from selectolax.lexbor import LexborHTMLParser, LexborNode

from batos.memory.reading.other_text import decode
from batos.memory.reading.read_text import Emit, NoText, ReadText, clean, one_line

_CHARSET: Final = re.compile(
    rb"<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE
)
#: Elements that nobody reads.
_UNSEEN: Final = frozenset({"script", "style", "template", "noscript", "svg", "head", "iframe", "canvas", "object"})
#: Elements around what a page says, and the roles, classes and names of others like them.
_AROUND: Final = frozenset({"nav", "aside", "form", "menu", "dialog", "button", "select"})
_ROLES: Final = frozenset("navigation banner contentinfo complementary search menu menubar dialog alert".split())
_NAMED_AROUND: Final = re.compile(
    r"(?:\A|[\s_-])(?:nav|navbar|navigation|menu|breadcrumbs?|sidebar|cookies?|consent|banner|footer|share|social|"
    r"newsletter|subscribe|related|advert(?:isement)?s?|ads?|skip)(?:\Z|[\s_-])",
    re.IGNORECASE,
)
#: Elements whose class or name tells that.
_NAMED: Final = frozenset({"div", "ul", "ol", "section", "p", "a", "span"})
#: A header or footer within one of these is part of it, and not of the page.
_SECTIONS: Final = frozenset({"article", "main", "section"})
_BLOCKS: Final = frozenset(
    "address article aside blockquote body dd details dialog div dl dt fieldset figcaption figure footer form header"
    " hr main nav ol p pre section summary table ul h1 h2 h3 h4 h5 h6 li tr caption".split()
)
#: Begins of lines that an item or a row follows without a gap.
_GOES_ON: Final = frozenset({"- ", "| ", "  ", "|-"})
_LISTS: Final = frozenset({"ul", "ol"})
_CELLS: Final = frozenset({"td", "th"})
#: A row with one of these is there for the layout of the page, and is no row of a table.
_LAID_OUT: Final = "table, ul, ol, pre, blockquote, h1, h2, h3, h4"
#: Stands where a line was broken.
_BREAK: Final = "\u2028"
#: Tells of a node, which stands within so many sections, if it is left out with all that it holds.
LeavesOut: TypeAlias = Callable[[LexborNode, int], bool]
_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}


def read(path: Path, emit: Emit) -> None:
    """Read a file as one text."""
    data = path.read_bytes()
    declared = _CHARSET.search(data[:2_048])
    title, text = text_of(decode(data, declared[1].decode("ascii") if declared else ""))
    if not text.strip():
        raise NoText("the page has no text")
    emit(ReadText(text, title, "text/html"))


def text_of(page: str) -> tuple[str, str]:
    """Return a page's title and its text.

    >>> text_of("<title>Lamp</title><h2>Oil</h2><p>It is <b>dear</b>.<ul><li>brass<li>glass</ul>")
    ('Lamp', '## Oil\\n\\nIt is dear.\\n\\n- brass\\n- glass')
    """
    tree = LexborHTMLParser(page)
    named = tree.css_first("title")
    title, body = one_line(named.text() if named is not None else ""), tree.body
    if body is None:
        return title, ""
    main = _outermost(body, "main") or _outermost(body, "article")
    return title, _write(main, _is_around) or _write([body], _is_around) or _write([body], _is_unseen)


def _outermost(body: LexborNode, tag: str) -> list[LexborNode]:
    """Return the elements of a tag that stand in no other of it, and are seen."""
    return [
        node for node, enters in _walk(body, lambda node, _: _is_unseen(node, 0), tag) if enters and node.tag == tag
    ]


def _write(tops: Sequence[LexborNode], leaves_out: LeavesOut) -> str:
    writer = _Writer()
    for top in tops:
        for node, enters in _walk(top, leaves_out):
            writer.enter(node) if enters else writer.leave(node)
    return writer.text()


def _is_unseen(node: LexborNode, _sections: int) -> bool:
    return node.tag in _UNSEEN or (not (node.tag or "").startswith("-") and "hidden" in node.attributes)


def _is_around(node: LexborNode, sections: int) -> bool:
    """Test if an element leads through a page or stands around what it says; it is within so many sections."""
    tag, about = node.tag or "", node.attributes
    if _is_unseen(node, sections) or tag in _AROUND:
        return True
    if tag.startswith("-"):
        return False
    if tag in {"header", "footer"}:
        return not sections
    if str(about.get("role") or "").casefold() in _ROLES:
        return True
    return tag in _NAMED and any(_NAMED_AROUND.search(str(about.get(each) or "")) for each in ("class", "id"))


def _walk(top: LexborNode, leaves_out: LeavesOut, leaf: str = "") -> Iterator[tuple[LexborNode, bool]]:
    """Yield each node that is seen when it begins (True) and when it ends; without recursion, as trees may be deep.

    Nothing within an element of the tag `leaf` is looked at.
    """
    node: LexborNode | None = top
    path, sections = [top], int(top.tag in _SECTIONS)
    yield top, True
    node = top.child
    while path:
        if node is None:
            ended = path.pop()
            sections -= ended.tag in _SECTIONS
            yield ended, False
            node = ended.next if path else None
        elif leaves_out(node, sections):
            node = node.next
        else:
            yield node, True
            path.append(node)
            sections += node.tag in _SECTIONS
            node = None if node.tag == leaf else node.child


@dataclass(slots=True)
class _Writer:
    """Lays the nodes of a page into lines."""

    _lines: list[str] = field(default_factory=list)
    _words: list[str] = field(default_factory=list)
    _before: str = ""
    _cells: list[str] | None = None
    _has_head: bool = False
    _lists: int = 0

    def enter(self, node: LexborNode) -> None:
        """Take a node as it begins."""
        tag = node.tag or ""
        if tag == "-text":
            self._words.append(node.text_content or "")
        elif tag == "br":
            self._words.append(_BREAK)
        elif tag == "img":
            self._words.append(str(node.attributes.get("alt") or ""))
        elif self._cells is not None:
            self._has_head = self._has_head or tag == "th"
        elif tag == "tr" and node.css_first(_LAID_OUT) is None:
            self._begin(tag)
            self._cells, self._has_head = [], False
        elif tag in _BLOCKS or tag in _CELLS:
            self._begin(tag)

    def _begin(self, tag: str) -> None:
        self._end_line()
        goes_on = tag in {"li", "tr"} and (not self._lines or self._lines[-1][:2] in _GOES_ON)
        if not goes_on and not (tag in _LISTS and self._lists):
            self._gap()
        if tag == "li":
            self._before = "  " * max(0, self._lists - 1) + "- "
        elif tag in _LISTS:
            self._lists += 1
        elif tag == "pre":
            self._words.clear()
        else:
            self._before = _HEADINGS.get(tag, self._before if tag in {"p", "div"} else "")

    def leave(self, node: LexborNode) -> None:
        """Take a node as it ends."""
        tag = node.tag or ""
        if self._cells is not None:
            self._leave_in_row(tag, self._cells)
        elif tag == "pre":
            self._end_code()
        elif tag in _BLOCKS or tag in _CELLS:
            self._end_line()
            self._before = ""
            if tag in _LISTS:
                self._lists = max(0, self._lists - 1)
            if tag not in {"li", "tr"} and not (tag in _LISTS and self._lists):
                self._gap()

    def _leave_in_row(self, tag: str, cells: list[str]) -> None:
        if tag in _CELLS:
            cells.append(" ".join("".join(self._words).split()).replace("|", "\\|"))
            self._words.clear()
        elif tag == "tr":
            if any(cells):
                self._lines.append(f"| {' | '.join(cells)} |")
                if self._has_head and not (len(self._lines) > 1 and self._lines[-2].startswith("| ")):
                    self._lines.append("|" + "---|" * len(cells))
            self._cells = None
        elif tag in _BLOCKS:
            self._words.append(" ")

    def _end_code(self) -> None:
        code = "".join(self._words).replace(_BREAK, "\n").strip("\n")
        self._words.clear()
        if code.strip():
            self._lines += ["```", *code.splitlines(), "```"]
        self._gap()

    def _end_line(self) -> None:
        parts = "".join(self._words).split(_BREAK)
        self._words.clear()
        for part in parts:
            said = " ".join(part.split())
            if said:
                self._lines.append(self._before + said)
                self._before = ""

    def _gap(self) -> None:
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def text(self) -> str:
        """Return all lines."""
        self._end_line()
        return clean("\n".join(self._lines)).strip()
