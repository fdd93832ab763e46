"""Elements of an HTML page beyond plain words: those that nobody sees, and raised ones, powers or marks of notes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from selectolax.lexbor import LexborHTMLParser, LexborNode

#: Elements that nobody reads.
_NEVER: Final = frozenset({"script", "style", "template", "noscript", "svg", "head", "iframe", "canvas", "object"})
#: Elements whose words were taken back.
_DELETED: Final = frozenset({"del", "s", "strike"})
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_BRACE: Final = re.compile(r"[^{}]*[{}]")
_SELECTOR: Final = re.compile(r"\s*(?:[a-z][a-z0-9]*)?([.#][\w-]+)\s*", re.IGNORECASE)
_HIDING: Final = re.compile(
    r"(?:\A|;)(?:display:none|visibility:(?:hidden|collapse)|opacity:0?(?:\.0\d*)?(?:%|!|;|\Z)"
    r"|font(?:-size)?:(?:0*\.?0*(?:r?em|%)?|[01]?(?:\.\d+)?p[xt])(?:!|;|/|\Z)"
    r"|(?:left|right|top|bottom|text-indent):-(?:\d{4,}|9\d\d)|transform:[^;]*(?:scale\(0\)|-\d{4,})"
    r"|clip:rect\((?:[01](?:px)?[, ]?){4}\)|clip-path:inset\((?:50|100)%|text-decoration(?:-line)?:line-through)"
)
_NO_ROOM: Final = re.compile(r"(?:\A|;)(?:max-)?(?:width|height):0(?:px)?(?:!|;|\Z)")
_SHOWING: Final = re.compile(r"(?:\A|;)(?:display|visibility):")
_COLOR: Final = re.compile(r"(?:\A|;)(color|background(?:-color)?):(#[0-9a-f]{3,8}|rgba?\([^)]*\)|[a-z]+)")
_TOKEN: Final = re.compile(r"[.#]?[\w-]+|\*")
#: A colour as numbers of 0 to 255.
_Color: TypeAlias = tuple[int, int, int]
_NAMED: Final[dict[str, _Color]] = {"white": (255, 255, 255), "snow": (255, 250, 250), "black": (0, 0, 0)}
#: Colours that differ by less are the same to the eye.
_ALIKE: Final = 25
_CHANNELS: Final = 3
#: Characters of styles that are looked at.
_MOST: Final = 200_000


class _Colors(NamedTuple):
    """The colours of words and of their ground; None where the page does not tell."""

    ink: _Color | None = None
    ground: _Color | None = _NAMED["white"]


@dataclass(slots=True)
class UnseenParts:
    """The parts of a page that nobody sees; `words` counts those that a reader would otherwise have taken."""

    _rules: dict[str, bool] = field(default_factory=dict)
    #: Tags, classes and names whose ground is not known, as a rule gives it; "" where a file of rules is not here.
    _grounds: set[str] = field(default_factory=set)
    _colors: dict[int, _Colors] = field(default_factory=dict)
    _is_colored: bool = False
    words: int = 0

    @classmethod
    def find(cls, tree: LexborHTMLParser) -> UnseenParts:
        """Return that of a page: its rules for classes and names are read, and no other."""
        styles = _COMMENT.sub(" ", "\n".join(each.text() for each in tree.css("style"))[:_MOST])
        found = cls(_is_colored=tree.css_first("[style*=color],[bgcolor],font[color]") is not None)
        if tree.css_first("link[rel*=stylesheet]") is not None or "@import" in styles:
            found._grounds.add("")
        for head, style in _rules(styles):
            if _is_hiding(style) or _SHOWING.search(style):
                alone = (_SELECTOR.fullmatch(each) for each in head.split(","))
                found._rules |= {each[1]: _is_hiding(style) for each in alone if each}
            if "background" in style:
                found._grounds.update(_TOKEN.findall(head))
        return found

    def hides(self, node: LexborNode) -> bool:
        """Test if a node and all within it is unseen."""
        tag = node.tag or ""
        if tag == "-text":
            hidden = self._is_colored and self._has_no_contrast(node)
        elif tag.startswith("-") or tag in _NEVER:
            return tag in _NEVER
        else:
            about = node.attributes
            hidden = "hidden" in about or tag in _DELETED or self._is_styled(about)
        if hidden:
            self.words += len((node.text() or "").split())
        return hidden

    def _is_styled(self, about: dict[str, str | None]) -> bool:
        style = _plain(about.get("style"))
        if _is_hiding(style):
            return True
        return bool(self._rules) and not _SHOWING.search(style) and any(map(self._rules.get, _names(about)))

    def _has_no_contrast(self, text: LexborNode) -> bool:
        ink, ground = self._colors_of(text.parent)
        return (
            ink is not None
            and ground is not None
            and max(abs(a - b) for a, b in zip(ink, ground, strict=True)) < _ALIKE
        )

    def _colors_of(self, node: LexborNode | None) -> _Colors:
        """Return the colours of a node, as its own style or that of the nodes around it has them."""
        path: list[LexborNode] = []
        while node is not None and node.mem_id not in self._colors:
            path.append(node)
            node = node.parent
        found = self._colors[node.mem_id] if node is not None else _Colors()
        for each in reversed(path):
            about = each.attributes
            style = {kind[:4]: value for kind, value in _COLOR.findall(_plain(about.get("style")))}
            ink = style.get("colo") or (_plain(about.get("color")) if each.tag == "font" else "")
            ground = style.get("back") or _plain(about.get("bgcolor"))
            names = {each.tag or "", *_names(about)}
            unknown = ground or not self._grounds.isdisjoint(names) or ("" in self._grounds and len(names) > 1)
            found = _Colors(_color(ink) if ink else found.ink, _color(ground) if unknown else found.ground)
            if ink == "transparent":
                found = _Colors(found.ground, found.ground)
            self._colors[each.mem_id] = found
        return found


def _plain(style: str | None) -> str:
    return re.sub(r"\s+", "", style or "").lower()


def _names(about: dict[str, str | None]) -> list[str]:
    named = [f"#{about['id']}"] if about.get("id") else []
    return [*named, *(f".{each}" for each in (about.get("class") or "").split())]


def _color(said: str) -> _Color | None:
    """Return a colour that is told by numbers or as white or black; None of another."""
    numbers = re.findall(r"\d+", said) if said.startswith("rgb") else []
    if len(numbers) == _CHANNELS:
        return int(numbers[0][:3]), int(numbers[1][:3]), int(numbers[2][:3])
    digits = "".join(each * 2 for each in said[1:]) if len(said) == 1 + _CHANNELS else said[1:]
    if said.startswith("#") and len(digits) == 2 * _CHANNELS:
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)
    return _NAMED.get(said)


def _is_hiding(style: str) -> bool:
    if not style:
        return False
    return bool(_HIDING.search(style)) or ("overflow:hidden" in style and bool(_NO_ROOM.search(style)))


def _rules(styles: str) -> Iterator[tuple[str, str]]:
    """Yield the selectors and the style of each rule; those for paper or a kind of screen do not count."""
    heads: list[str] = []
    for piece in _BRACE.findall(styles):
        if piece.endswith("{"):
            heads.append(piece[:-1].rpartition(";")[2].strip())
        elif heads and not any(each.startswith("@") for each in heads):
            yield heads.pop(), _plain(piece[:-1])
        elif heads:
            heads.pop()


_POWER: Final = re.compile(r"[+\u2212\u2013-]?(?:\d{1,4}[a-z]?|[nmkxyijtT])")
_NOTE: Final = re.compile(r"\[?(\d{1,4}|[a-z*†‡§])\]?")
#: Words that have a power: a number, a unit, a letter.
_HAS_POWER: Final = re.compile(r"\w*\d|[cdkm]?m|s|ft|in|yd|mi|sin|cos|tan|log|[^\W\d_]")
#: A power that needs no brackets.
_SIMPLE: Final = re.compile(r"[+\u2212\u2013-]?\w+")
_NOTE_NAMES: Final = re.compile(r"footnote|noteref|fnref|\breference\b|\bcit(?:e|ation)\b", re.IGNORECASE)


def is_raised(node: LexborNode) -> bool:
    """Test if an element is raised: by its tag, its style, its place in a formula, or as the mark of a note."""
    return (
        node.tag == "sup"
        or _is_exponent(node)
        or (
            node.tag in {"a", "span"}
            and ("vertical-align:super" in str(node.attributes.get("style") or "").replace(" ", "") or _is_note(node))
        )
    )


def is_divisor(node: LexborNode) -> bool:
    """Test if an element is what a fraction of a formula is divided by."""
    return _within(node, "mfrac") and _is_behind(node)


def _is_exponent(node: LexborNode) -> bool:
    """Test if an element is the power in a formula, whose last part it is."""
    return (_within(node, "msup") or (_within(node, "msubsup") and not _has_element(node, "next"))) and _is_behind(node)


def _within(node: LexborNode, tag: str) -> bool:
    return node.parent is not None and node.parent.tag == tag and not (node.tag or "-").startswith("-")


def _is_behind(node: LexborNode) -> bool:
    return _has_element(node, "prev")


def _has_element(node: LexborNode, side: Literal["prev", "next"]) -> bool:
    """Test if an element, and not only text, stands on a side of another one."""
    beside: LexborNode | None = getattr(node, side)
    while beside is not None and (beside.tag or "-").startswith("-"):
        beside = getattr(beside, side)
    return beside is not None


def _is_note(node: LexborNode) -> bool:
    """Test if an element is the mark of a note: by its role or class, or as a link within the page that is raised."""
    about = node.attributes
    if _NOTE_NAMES.search(" ".join(str(about.get(each) or "") for each in ("class", "role", "epub:type"))):
        return True
    around = node.parent if node.parent is not None and node.parent.tag == "a" else None
    link = around if around is not None or node.tag != "sup" else node.child
    return link is not None and link.tag == "a" and str(link.attributes.get("href") or "").startswith("#")


def raised_text(node: LexborNode, said: str, before: str) -> str:
    """Return a power with its sign, the mark of a note in brackets, and "" for other raised words.

    `before` is what stands before them on the page.
    """
    if _is_exponent(node):
        return f"^{said}" if _SIMPLE.fullmatch(said) else f"^({said})"
    note, word = _NOTE.fullmatch(said), re.search(r"\w*\Z", before)
    if note and _is_note(node):
        return f" [{note[1]}]" if before.strip() else f"[{note[1]}]"
    after = (node.next.text_content or "")[:1] if node.next is not None and node.next.tag == "-text" else ""
    if not _POWER.fullmatch(said) or not said[-1].isdigit() or after in {"/", "\u2044"}:
        is_power = _POWER.fullmatch(said) and word is not None and _HAS_POWER.fullmatch(word[0])
        return f" {said}" if after in {"/", "\u2044"} and before[-1:].isdigit() else f"^{said}" if is_power else ""
    if word and word[0]:
        return f"^{said}" if _HAS_POWER.fullmatch(word[0]) else f" [{said}]"
    if before[-1:] in {")", "]"}:
        return f"^{said}"
    if not before[-1:].strip():
        return "" if after.isalnum() else f"[{said}]"
    return f" [{said}]"
