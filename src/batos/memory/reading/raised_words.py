"""Read raised words of an HTML page: powers keep their sign, and marks of notes are no digits of a number."""

from __future__ import annotations

import re
from typing import Final, Literal

from selectolax.lexbor import LexborNode

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
