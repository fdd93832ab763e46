"""The bounds of rendering a chat template: its steps, its output, and the size of a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Undefined, nodes
from jinja2.runtime import Context
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

LONGEST = 1 << 20  # characters of a text, rendered or on the way
STEPS = 400_000  # turns of loops, calls and looks at values
_WRITTEN = 8 * LONGEST  # characters that all macros, blocks and the prompt have together
_A_STEP = 1024  # characters that one step goes through
_VISITS = 64  # values within a value that one step looks at
_WIDEST = 1 << 63  # of whole numbers: the runner's have 64 bits
BUDGET = "the budget"  # among a rendering's names; no template can write such a one
_PLAIN_DATA = 256  # characters of a template's own text that are written uncounted
#: Filters that look at a value and not at what is in it.
_SHALLOW = frozenset("length count first last list default d items reverse selectattr rejectattr".split())


class NotRendered(Exception):
    """The reason that a chat template gives no prompt, in the words of the part that found it."""


@dataclass(slots=True)
class RenderBudget:
    """The steps and characters that a rendering has left."""

    steps: int = STEPS
    written: int = _WRITTEN

    def step(self, count: int = 1) -> None:
        """Take steps; NotRendered when none is left."""
        self.steps -= count
        if self.steps < 0:
            raise NotRendered(f"the emulator renders no template of more than {STEPS} steps")

    def each(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the items, and count a step for each."""
        for item in items:
            self.step()
            yield item

    def weigh(self, value: Any) -> None:
        """Look through a value; NotRendered for one whose text would be too long."""
        weight = visits = 0
        waiting = [value]
        while waiting:
            one = waiting.pop()
            visits += 1
            weight += len(one) if isinstance(one, str) else 1
            sized(weight)
            if isinstance(one, Mapping):
                waiting.extend(one.keys())
                waiting.extend(one.values())
            elif isinstance(one, list | tuple):
                waiting.extend(one)
            elif isinstance(one, Namespace):
                raise NotRendered("the emulator renders no namespace within another value")
        self.step(1 + visits // _VISITS + weight // _A_STEP)

    def look(self, value: Any) -> None:
        """Pay for a value without looking at what is in it."""
        self.step(1 + (len(value) if isinstance(value, str | list | tuple | dict) else 0) // _A_STEP)

    def write(self, text: str) -> None:
        """Count what is written anywhere."""
        self.written -= len(text)
        if self.written < 0:
            raise NotRendered(f"the emulator writes no more than {_WRITTEN} characters on the way to a prompt")


def sized(length: int) -> None:
    """Raise NotRendered for a text that is too long."""
    if length > LONGEST:
        raise NotRendered(f"the emulator renders no more than {LONGEST} characters")


def number(value: Any) -> Any:
    """Return the value. Raises: NotRendered: a whole number that the runner does not have."""
    if isinstance(value, int) and abs(value) > _WIDEST:
        raise NotRendered("the emulator renders no whole number of more than 64 bits")
    return value


def budget_of(context: Context) -> RenderBudget:
    """Return the budget of a rendering."""
    found: RenderBudget = context.parent[BUDGET]
    return found


class BoundedFunctions:
    """The functions that `BoundInserter` puts into a template; the environment has them."""

    def bound_each(self, context: Context, items: Iterable[Any]) -> Iterator[Any]:
        """Return a loop's items, counted."""
        return budget_of(context).each(items)

    def bound_deep(self, context: Context, value: Any) -> Any:
        """Return a value whose depth will be walked, once it is charged."""
        if isinstance(value, str):
            sized(len(value))
            budget_of(context).look(value)
        elif not isinstance(value, int | float | Undefined | None):
            budget_of(context).weigh(value)
        return value

    def bound_shallow(self, context: Context, value: Any) -> Any:
        """Return a value whose first level will be walked, once it is charged."""
        budget_of(context).look(value)
        return value

    def bound_key(self, _context: Context, value: Any) -> Any:
        """Return a key. Raises: NotRendered: a value with parts is no key."""
        if isinstance(value, tuple):
            raise NotRendered("the emulator looks up no key of several parts")
        return value

    def bound_written(self, context: Context, value: Any) -> str:
        """Return the text of a value that is written, once it is charged."""
        text = value if isinstance(value, str) else str(self.bound_deep(context, value))
        budget_of(context).write(text)
        return text

    def bound_joined(self, context: Context, *parts: Any) -> str:
        """Return the texts joined, once they are charged."""
        texts = [str(self.bound_deep(context, part)) for part in parts]
        sized(sum(map(len, texts)))
        return "".join(texts)


class BoundInserter(NodeTransformer):
    """A visitor that inserts the bounds into a parsed template."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802  # the visitor's name for it, here and below
        """Count the items of a loop."""
        self.generic_visit(node)
        if node.recursive:
            raise NotRendered("the emulator renders no recursive loop")
        node.iter = _call("each", node.iter)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Call:  # noqa: N802
        """Count texts that are joined."""
        self.generic_visit(node)
        return _call("joined", *node.nodes)

    def visit_Filter(self, node: nodes.Filter) -> nodes.Filter:  # noqa: N802
        """Count the values that a filter reads."""
        self.generic_visit(node)
        if node.node is not None:
            node.node = _call("shallow" if node.name in _SHALLOW else "deep", node.node)
        node.args = [_looked(arg) for arg in node.args]
        return node

    def visit_Test(self, node: nodes.Test) -> nodes.Test:  # noqa: N802
        """Count the values that a test reads."""
        self.generic_visit(node)
        if node.args:
            node.node = _call("deep", node.node)
            node.args = [_looked(arg) for arg in node.args]
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:  # noqa: N802
        """Count the values that are compared."""
        self.generic_visit(node)
        node.expr = _looked(node.expr)
        for operand in node.ops:
            operand.expr = _looked(operand.expr)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Getitem:  # noqa: N802
        """Check a key before it is used."""
        self.generic_visit(node)
        if node.ctx == "load" and not isinstance(node.arg, nodes.Const):
            if isinstance(node.arg, nodes.Slice):
                node.node = _call("shallow", node.node)
            else:
                node.arg = _call("key", node.arg)
        return node

    def visit_List(self, node: nodes.List) -> nodes.Expr:  # noqa: N802
        """Count the items of a list."""
        self.generic_visit(node)
        return _call("deep", node) if node.items else node

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:  # noqa: N802
        """Count the items of a tuple."""
        self.generic_visit(node)
        return _call("deep", node) if node.ctx == "load" else node

    def visit_Dict(self, node: nodes.Dict) -> nodes.Expr:  # noqa: N802
        """Count the entries of a dict."""
        self.generic_visit(node)
        return _call("deep", node) if node.items else node

    def visit_Output(self, node: nodes.Output) -> nodes.Output:  # noqa: N802
        """Count every value that is written."""
        self.generic_visit(node)
        node.nodes = [_written(each) for each in node.nodes]
        return node


def _call(name: str, *args: Any) -> nodes.Call:
    function = nodes.EnvironmentAttribute(f"bound_{name}")
    made = nodes.Call(function, [nodes.ContextReference(), *args], [], None, None)
    made.set_lineno(args[0].lineno if args else 1)
    return made


def _looked(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _call("deep", node)


def _written(node: nodes.Expr) -> nodes.Expr:
    if isinstance(node, nodes.TemplateData):
        return node if len(node.data) <= _PLAIN_DATA else _call("written", nodes.Const(node.data, lineno=node.lineno))
    return _call("written", node)
