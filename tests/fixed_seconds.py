"""Fixed times in tests, each of which a slow machine might not meet: listed by `python -m tests.fixed_seconds`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What a line with a fixed time says, with the reason behind it.
MARK = "any pace:"
#: Calls that wait, by the place of their seconds.
_WAITS = {"sleep": 0, "timeout": 0, "wait_for": 1, "wait": 0, "join": 0}
_KEYWORDS = {
    "timeout", "lease", "patience", "within", "turn_seconds", "wall_seconds", "request_seconds", "chat_seconds",
}  # fmt: skip
#: Seconds that no machine outlasts but by a hang.
_LONG = 60.0
_CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time"}


def fixed_seconds(tree: ast.Module, nodes: Iterable[ast.AST], text: str) -> Iterator[tuple[int, str]]:
    """Yield line and reason of each fixed time among the nodes of a tree without a remark why it holds at any pace.

    These are seconds that a call waits at most or sleeps, and comparisons of a clock with a time. The remark stands at
    the line's end or on the line before, as `# any pace: ...`.
    """
    lines, short = text.splitlines(), set(_short_times(tree))
    for node in nodes:
        for fault in _faults(node, short):
            number = getattr(node, "lineno", 1)
            around = lines[max(0, number - 2) : getattr(node, "end_lineno", number)]
            if not any(MARK in line for line in around):
                yield number, fault


def _short_times(tree: ast.Module) -> Iterator[str]:
    """Yield the constants of a module that a slow machine may outlast, where they are used as a time."""
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs = zip(_parts(target), _parts(node.value), strict=False)
            yield from (name.id for name, value in pairs if isinstance(name, ast.Name) and 0 < _number(value) < _LONG)


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _number(node: ast.expr) -> float:
    value = node.value if isinstance(node, ast.Constant) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _faults(node: ast.AST, short: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        place = _WAITS.get(name)
        of_text = isinstance(getattr(node.func, "value", None), ast.Constant | ast.JoinedStr)  # ", ".join
        if place is not None and not of_text and len(node.args) > place and _seconds(node.args[place], short):
            yield f"{name} of fixed seconds"
        for given in node.keywords:
            if given.arg in _KEYWORDS and _seconds(given.value, short):
                yield f"{given.arg} of fixed seconds"
    elif isinstance(node, ast.Compare) and any(map(_reads_clock, ast.walk(node))):
        yield "a clock is compared with a time"


def _seconds(node: ast.expr, short: set[str]) -> bool:
    """Return whether an expression is a number over zero that stands there as such, or one of the `short` constants."""
    if isinstance(node, ast.BinOp):
        return _seconds(node.left, short) or _seconds(node.right, short)
    return _number(node) > 0 or (isinstance(node, ast.Name) and node.id in short)


def _reads_clock(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in _CLOCKS and ast.unparse(node.func.value) == "time"


def main() -> int:
    """Print every fixed time under tests/ that has no remark."""
    found = 0
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for number, fault in fixed_seconds(tree, ast.walk(tree), text):
            print(f"{path.relative_to(ROOT)}:{number}: {fault}: {text.splitlines()[number - 1].strip()}")  # noqa: T201
            found += 1
    print(f"{found} fixed times without a remark `# {MARK} ...`", file=sys.stderr)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
