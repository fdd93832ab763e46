"""A tree of reasons as text: as much of it as fits a screen, and how much was left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from batos.cli.render.short_names import local_time
from batos.terminal.layout import cut, reveal

#: Lines of a screen that the tree may take: the prompt and the notes have the others.
SCREEN: Final = 21
#: Limits of a tree, the most generous first: things below one, and levels. The first that fits is taken.
_SHAPES: Final = ((30, 12), (12, 8), (8, 6), (6, 5), (5, 4), (4, 4), (4, 3), (3, 3), (2, 3), (3, 2), (2, 2), (1, 2))
#: Kinds whose reference says more than their text.
_NAMED: Final = frozenset({"mission", "memory", "method", "slot", "sentence"})


def tree_text(found: Mapping[str, Any], width: int, *, whole: bool = False) -> str:
    """Write a tree; unless `whole`, with as many branches as fit a screen."""
    if whole:
        return "\n".join(_lines(found, width, most=10**6, depth=10**3))
    shapes = (list(_lines(found, width, most, depth)) for most, depth in _SHAPES)
    lines = next((each for each in shapes if len(each) <= SCREEN), [])
    return "\n".join(lines or list(_lines(found, width, 1, 1)))


def _lines(node: Mapping[str, Any], width: int, most: int, depth: int) -> Iterator[str]:
    yield _line(node, width)
    yield from _branches(node["because"], "", width, most, depth - 1)


def _branches(nodes: list[Mapping[str, Any]], indent: str, width: int, most: int, depth: int) -> Iterator[str]:
    """Yield the lines of what is below a node: commits last and always, because they tell when."""
    shown = nodes if len(nodes) <= most else _choose(nodes, most)
    left = len(nodes) - len(shown)
    for place, node in enumerate(shown):
        last = place == len(shown) - 1 and not left
        yield f"{indent}{'└─ ' if last else '├─ '}" + _line(node, width - len(indent) - 3)
        below = f"{indent}{'   ' if last else '│  '}"
        if depth > 1:
            yield from _branches(node["because"], below, width, most, depth - 1)
        elif node["because"]:
            yield f"{below}└─ … {_count(node['because'])} more behind it"
    if left:
        yield f"{indent}└─ … {left} more (--whole)"


def _choose(nodes: list[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """Return so many nodes, of each kind the first before a second of any."""
    seen: dict[str, int] = {}
    ranked = []
    for place, node in enumerate(nodes):
        seen[node["kind"]] = seen.get(node["kind"], 0) + 1
        ranked.append((seen[node["kind"]], place))
    return [nodes[place] for place in sorted(place for _, place in sorted(ranked)[:most])]


def _count(nodes: list[Mapping[str, Any]]) -> int:
    return sum(1 + _count(node["because"]) for node in nodes)


def _line(node: Mapping[str, Any], width: int) -> str:
    """Write a node on one line: its kind, its name, its text, and when."""
    at = f" [{local_time(node['at'])}]" if "at" in node else ""
    name = f" {node['ref']}" if node["kind"] in _NAMED and node.get("ref", "") not in node["text"] else ""
    tid = f" {node['tid']}" if "tid" in node else ""
    text = f"{node['kind']}{name}: {' '.join(node['text'].split())}{tid}"
    return cut(reveal(text), max(10, width - len(at))) + at
