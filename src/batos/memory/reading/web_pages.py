"""Read an HTML page as text with Markdown's headings, lists, tables and blocks of code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from selectolax.lexbor import LexborHTMLParser, LexborNode

from batos.memory.reading import unseen
from batos.memory.reading.other_text import decode
from batos.memory.reading.read_text import Emit, NoText, ReadText, clean, one_line
from batos.memory.reading.unseen import UnseenParts

_CHARSET: Final = re.compile(
    rb"<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE
)
#: Elements around what a page says, and the roles, classes and names of others like them.
_AROUND: Final = frozenset({"nav", "aside", "form", "menu", "dialog", "button", "annotation", "annotation-xml"})
_ROLES: Final = frozenset("navigation banner contentinfo complementary search menu menubar dialog alert".split())
_NAMED_AROUND: Final = re.compile(
    r"(?:\A|[\s_-])(?:nav|navbar|navigation|menu|breadcrumbs?|sidebar|cookies?|consent|banner|footer|share|social|"
    r"newsletter|subscribe|related|recommended|teasers?|promo|advert(?:isement)?s?|ads?|skip)(?:\Z|[\s_-])",
    re.IGNORECASE,
)
#: Elements whose class or name tells that.
_NAMED: Final = frozenset({"div", "ul", "ol", "section", "p", "a", "span", "article"})
#: A header or footer within one of these is part of it, and not of the page.
_SECTIONS: Final = frozenset({"article", "main", "section"})
_BLOCKS: Final = frozenset(
    "address article aside blockquote body dd details dialog div dl dt fieldset figcaption figure footer form header"
    " hr main nav ol p pre section summary table ul h1 h2 h3 h4 h5 h6 li tr caption".split()
)
#: Neighbours of a picture that say nothing beside it.
_APART: Final = _BLOCKS | {"br", "img"}
#: Begins of lines that an item or a row follows without a gap.
_GOES_ON: Final = frozenset({"- ", "| ", "  ", "|-"})
_LISTS: Final = frozenset({"ul", "ol"})
_CELLS: Final = frozenset({"td", "th"})
_MOST_COLUMNS: Final = 60
_MOST_ROWS: Final = 1_000
#: Elements that stand beside each other without a blank and are read apart.
_ITEMS: Final = frozenset({"a", "label", "option"})
#: More choices are a list of countries, and no text.
_CHOICES: Final = 20
#: Fewer words that are hidden are a label.
_HIDDEN_WORDS: Final = 5
#: Articles with a smaller share of a page's words are not what it says.
_SHARE: Final = 0.25
#: Elements that a picture stands in on its line.
_WITHIN_LINES: Final = frozenset({"a", "span", "picture", "center", "b", "em", "strong"})
#: A smaller picture is an ornament.
_ORNAMENT: Final = 40
#: Pieces of text before a raised one that are looked at.
_BEFORE: Final = 6
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
    page, doubts = decode(data, declared[1].decode("ascii") if declared else "")
    title, text, left_out = text_of(page)
    if not text.strip():
        raise NoText("the page has no text" + (f": it has {left_out[0]}" if left_out else ""))
    emit(ReadText(text, title, "text/html", left_out=(*doubts, *left_out)))


class WebText(NamedTuple):
    """The title and the text of a page, and what the text lacks."""

    title: str
    text: str
    left_out: tuple[str, ...] = ()


def text_of(page: str) -> WebText:
    """Return a page's title and its text.

    >>> text_of("<title>Lamp</title><h2>Oil</h2><p>It is <b>dear</b>.<ul><li>brass<li>glass</ul>").text
    '## Oil\\n\\nIt is dear.\\n\\n- brass\\n- glass'
    """
    tree = LexborHTMLParser(page)
    named = tree.css_first("title")
    title, body = one_line(named.text() if named is not None else ""), tree.body
    if body is None:
        return WebText(title, "")
    unseen = UnseenParts.find(tree)

    def is_around(node: LexborNode, sections: int) -> bool:
        return _is_around(node, sections) or unseen.hides(node)

    def is_unseen(node: LexborNode, _sections: int) -> bool:
        return unseen.hides(node)

    tries: list[tuple[list[LexborNode], LeavesOut]] = [([body], is_around), ([body], is_unseen)]
    whole = len(_write([body], is_around, len(page)).text()) if tree.css_first("article") is not None else 0
    for tag in ("article", "main"):
        tops = _outermost(body, tag, is_unseen if tag == "main" else is_around)
        tries.insert(0, (_without_teasers(tops), is_around))
    for tops, leaves_out in tries:
        unseen.words = 0
        written = _write(tops, leaves_out, len(page))
        is_main = tops != [body] and "main" in {top.tag for top in tops}
        if written.text() and (is_main or len(written.text()) >= _SHARE * whole):
            break
    return WebText(title, written.text(), tuple(_phrases(unseen.words, written.pictures)))


def _phrases(words: int, pictures: int) -> Iterator[str]:
    """Yield a phrase for what a text lacks; a word or two that are hidden are the labels of a page."""
    if words >= _HIDDEN_WORDS:
        yield f"{words} words that are hidden or struck out"
    if pictures:
        yield f"{pictures} picture{'s' * (pictures > 1)} without a description"


def _outermost(body: LexborNode, tag: str, leaves_out: LeavesOut) -> list[LexborNode]:
    """Return the elements of a tag that stand in no other of it, and are not left out."""
    return [node for node, enters in _walk(body, leaves_out, tag) if enters and node.tag == tag]


def _without_teasers(tops: Sequence[LexborNode]) -> list[LexborNode]:
    """Return the articles without those that are mostly links and far shorter than another one."""
    sizes = [len(top.text() or "") for top in tops]
    links = [sum(len(link.text() or "") for link in top.css("a")) for top in tops]
    longest = max(sizes, default=0) / 3
    return [top for top, size, linked in zip(tops, sizes, links, strict=True) if size >= longest or linked < size / 2]


def _write(tops: Sequence[LexborNode], leaves_out: LeavesOut, size: int) -> _Writer:
    writer = _Writer(_room=size)
    for top in tops:
        for node, enters in _walk(top, leaves_out):
            writer.enter(node) if enters else writer.leave(node)
    return writer


def _is_around(node: LexborNode, sections: int) -> bool:
    """Test if an element leads through a page or stands around what it says; it is within so many sections."""
    tag, about = node.tag or "", node.attributes
    if tag in _AROUND or (tag == "select" and len(node.css("option")) > _CHOICES):
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


def _is_alone(picture: LexborNode) -> bool:
    """Test if a picture, that is no ornament, is all that its place has to say."""
    sizes = [str(picture.attributes.get(side) or "") for side in ("width", "height")]
    if any(size.isdigit() and int(size[:6]) <= _ORNAMENT for size in sizes):
        return False
    node = picture
    while node.parent is not None and node.parent.tag in _WITHIN_LINES:
        if _has_neighbour(node):
            return False
        node = node.parent
    captioned = node.parent is not None and node.parent.tag == "figure" and node.parent.css_first("figcaption")
    return not captioned and not _has_neighbour(node)


def _has_neighbour(node: LexborNode) -> bool:
    """Test if words stand before or after a node on its line."""
    for beside in (node.prev, node.next):
        if beside is not None and (beside.tag or "") not in _APART and (beside.text() or "").strip():
            return True
    return False


def _sign_before(node: LexborNode) -> str:
    """Return what parts a node from the one before it, where the page shows them apart."""
    if unseen.is_divisor(node):
        return "/"
    tag = node.tag or ""
    is_next = tag in _ITEMS and node.prev is not None and node.prev.tag == tag
    return (", " if tag == "option" else " ") if is_next else ""


def _span(node: LexborNode, name: str, most: int) -> int:
    told = str(node.attributes.get(name) or "")
    return min(max(1, int(told)), most) if told.isascii() and told.isdigit() and len(told) < _BEFORE else 1


@dataclass(slots=True)
class _Writer:
    """Lays the nodes of a page into lines; the words of cells are told again as long as there is room."""

    _room: int
    pictures: int = 0
    #: Where words begin that are raised.
    _raised: list[int] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _words: list[str] = field(default_factory=list)
    _before: str = ""
    _cells: list[str] | None = None
    #: Of a column of the next rows: how many of them a cell above goes on in, and its words.
    _carried: dict[int, tuple[int, str]] = field(default_factory=dict)
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
            about = node.attributes
            self._words.append(str(about.get("alt") or about.get("title") or ""))
            self.pictures += not {"alt", "title"} & set(about) and _is_alone(node)
        elif unseen.is_raised(node):
            self._raised.append(len(self._words))
        elif sign := _sign_before(node):
            self._words.append(sign)
        elif tag == "optgroup":
            self._words.append(f" {node.attributes.get('label') or ''}: ")
        elif self._cells is not None:
            self._has_head = self._has_head or tag == "th"
        elif tag == "tr" and node.css_first(_LAID_OUT) is None:
            self._begin(tag)
            self._cells, self._has_head = [], False
        elif tag in _BLOCKS or tag in _CELLS:
            self._begin(tag)

    def _begin(self, tag: str) -> None:
        self._end_line()
        if tag == "table":
            self._carried.clear()
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
        if self._raised and unseen.is_raised(node):
            start = self._raised.pop()
            said, before = "".join(self._words[start:]), "".join(self._words[max(0, start - _BEFORE) : start])
            self._words[start:] = [unseen.raised_text(node, said.strip(), before) or said]
        elif self._cells is not None:
            self._leave_in_row(node, self._cells)
        elif tag == "pre":
            self._end_code()
        elif tag in _BLOCKS or tag in _CELLS:
            self._end_line()
            self._before = ""
            if tag in _LISTS:
                self._lists = max(0, self._lists - 1)
            if tag not in {"li", "tr"} and not (tag in _LISTS and self._lists):
                self._gap()

    def _leave_in_row(self, node: LexborNode, cells: list[str]) -> None:
        tag = node.tag or ""
        if tag in _CELLS:
            self._add_cell(node, " ".join("".join(self._words).split()).replace("|", "\\|"), cells)
            self._words.clear()
        elif tag == "tr":
            if any(cells):
                self._carry(cells)
                self._lines.append(f"| {' | '.join(cells)} |")
                if self._has_head and not (len(self._lines) > 1 and self._lines[-2].startswith("| ")):
                    self._lines.append("|" + "---|" * len(cells))
            self._cells = None
        elif tag in _BLOCKS:
            self._words.append(" ")

    def _add_cell(self, node: LexborNode, said: str, cells: list[str]) -> None:
        """Add a cell to its row; one that goes over several columns or rows stands in each of them."""
        self._carry(cells)
        down, across = _span(node, "rowspan", _MOST_ROWS), _span(node, "colspan", _MOST_COLUMNS)
        alone = (
            across > 1 and not cells and (node.next is None or (node.next.tag == "-text" and node.next.next is None))
        )
        for number in range(across if self._room > 0 else 1):
            if down > 1:
                self._carried[len(cells)] = down - 1, said
            cells.append(said if number == 0 else "" if alone else self._again(said))

    def _carry(self, cells: list[str]) -> None:
        if self._room < 0:
            self._carried.clear()
        while len(cells) in self._carried:
            left, said = self._carried.pop(len(cells))
            if left > 1:
                self._carried[len(cells)] = left - 1, said
            cells.append(self._again(said))

    def _again(self, said: str) -> str:
        """Return the words of a cell once more, unless a page of few words would become one of many."""
        self._room -= len(said) + 3
        return said if self._room > 0 else ""

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
