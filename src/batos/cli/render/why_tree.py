"""A tree of reasons as text: as much of it as fits a screen, and how much was left out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from batos.protocol.image_documents import WhyNode
from batos.terminal.layout import cut, reveal
from batos.terminal.short_names import local_time

#: Lines of a screen that the tree may take: the prompt and the notes have the others.
SCREEN: Final = 21
#: Things below one, and levels, the most first: rather all things than all levels, but three levels if possible.
_MOST: Final = (30, 16, 12, 9, 7, 6, 5, 4, 3, 2, 1)
_DEPTHS: Final = (12, 8, 6, 5, 4, 3)
_SHAPES: Final = (*product(_MOST, _DEPTHS), *product(_MOST, (2,)))
#: Cells that a node's text has at least, before when it was is shown.
_TEXT: Final = 10
#: Kinds whose reference says more than their text.
_NAMED: Final = frozenset({"mission", "memory", "method", "slot", "sentence"})


def tree_text(found: WhyNode, width: int, *, whole: bool = False) -> str:
    """Write a tree; unless `whole`, with as many branches as fit a screen."""
    if whole:
        return "\n".join(_lines(found, width, most=10**6, depth=10**3))
    shapes = (list(_lines(found, width, most, depth)) for most, depth in _SHAPES)
    lines = next((each for each in shapes if len(each) <= SCREEN), [])
    return "\n".join(lines or list(_lines(found, width, 1, 1)))


def _lines(node: WhyNode, width: int, most: int, depth: int) -> Iterator[str]:
    yield _line(node, width)
    yield from _branches(node["because"], "", width, most, depth - 1)


def _branches(nodes: list[WhyNode], indent: str, width: int, most: int, depth: int) -> Iterator[str]:
    """Yield the lines of what is below a node, and of how much is left out."""
    shown = nodes if len(nodes) <= most else _choose(nodes, most)
    left = len(nodes) - len(shown)
    for place, node in enumerate(shown):
        last = place == len(shown) - 1 and not left
        hidden = f" (+{_count(node['because'])})" if depth == 1 and node["because"] else ""
        yield f"{indent}{'└─ ' if last else '├─ '}" + _line(node, width - len(indent) - 3, hidden)
        below = f"{indent}{'   ' if last else '│  '}"
        if depth > 1:
            yield from _branches(node["because"], below, width, most, depth - 1)
    if left:
        yield f"{indent}└─ … {left} more (--whole)"


def _choose(nodes: list[WhyNode], most: int) -> list[WhyNode]:
    """Return so many nodes, of each kind the first before a second of any."""
    seen: dict[str, int] = {}
    ranked = []
    for place, node in enumerate(nodes):
        seen[node["kind"]] = seen.get(node["kind"], 0) + 1
        ranked.append((seen[node["kind"]], place))
    return [nodes[place] for place in sorted(place for _, place in sorted(ranked)[:most])]


def _count(nodes: list[WhyNode]) -> int:
    return sum(1 + _count(node["because"]) for node in nodes)


def _line(node: WhyNode, width: int, hidden: str = "") -> str:
    """Write a node on one line: its kind, its name, its text, when, and how much behind it is hidden.

    On a narrow line the moment gives way to the text, and the rest to the line's end.
    """
    at = f" [{local_time(node['at'])}]" if "at" in node else ""
    if width - len(at + hidden) < _TEXT:
        at = ""
    at += hidden if len(at + hidden) < width else ""
    name = f" {node['ref']}" if node["kind"] in _NAMED and node.get("ref", "") not in node["text"] else ""
    tid = f" {node['tid']}" if "tid" in node else ""
    text = f"{node['kind']}{name}: {' '.join(node['text'].split())}{tid}"
    return cut(reveal(text), max(1, width - len(at))) + at
