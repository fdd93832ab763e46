"""Limits on rendering a Jinja chat template: its steps, its output, and the sizes of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Undefined, nodes
from jinja2.runtime import Context
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

LONGEST = 1 << 20  # characters of any text, the prompt's or one within the rendering
STEPS = 400_000  # turns of loops, calls and values read, of one rendering
_WRITTEN = 8 * LONGEST  # characters that all macros, blocks and the prompt write together
_A_STEP = 1024  # characters that cost one step
_VISITS = 64  # values within a value that cost one step
_WIDEST = 1 << 63  # largest integer: the runner's have 64 bits
BUDGET = "the budget"  # a variable of each rendering; its blank keeps templates from naming it
_PLAIN_DATA = 256  # shorter constant texts of a template are not counted
#: Filters that read a value's items and not the values within them.
_SHALLOW = frozenset("length count first last list default d items reverse selectattr rejectattr".split())


class NotRendered(Exception):
    """The error of a chat template that gives no prompt; the message gives the reason."""


@dataclass(slots=True)
class RenderBudget:
    """The steps and the written characters that are left to one rendering."""

    steps: int = STEPS
    written: int = _WRITTEN

    def step(self, count: int = 1) -> None:
        """Take `count` steps. Raises: NotRendered: too few are left."""
        self.steps -= count
        if self.steps < 0:
            raise NotRendered(f"the emulator renders no template of more than {STEPS} steps")

    def each(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the items, and take a step for each."""
        for item in items:
            self.step()
            yield item

    def weigh(self, value: Any) -> None:
        """Take steps for all the values within a value. Raises: NotRendered: its text would be too long."""
        weight = visits = 0
        waiting = [value]
        while waiting:
            one = waiting.pop()
            visits += 1
            weight += len(one) if isinstance(one, str) else 1
            check_size(weight)
            if isinstance(one, Mapping):
                waiting.extend(one.keys())
                waiting.extend(one.values())
            elif isinstance(one, list | tuple):
                waiting.extend(one)
            elif isinstance(one, Namespace):
                raise NotRendered("the emulator renders no namespace within another value")
        self.step(1 + visits // _VISITS + weight // _A_STEP)

    def look(self, value: Any) -> None:
        """Take steps for a value, but not for the values within its items."""
        self.step(1 + (len(value) if isinstance(value, str | list | tuple | dict) else 0) // _A_STEP)

    def write(self, text: str) -> None:
        """Count the characters of a text that a template, macro or block writes.

        Raises: NotRendered: they are too many.
        """
        self.written -= len(text)
        if self.written < 0:
            raise NotRendered(f"the emulator writes no more than {_WRITTEN} characters on the way to a prompt")


def check_size(length: int) -> None:
    """Check the length of a text or list. Raises: NotRendered: it exceeds `LONGEST`."""
    if length > LONGEST:
        raise NotRendered(f"the emulator renders no more than {LONGEST} characters")


def number(value: Any) -> Any:
    """Return a value unchanged. Raises: NotRendered: it is an integer of more than 64 bits, which the runner lacks."""
    if isinstance(value, int) and abs(value) > _WIDEST:
        raise NotRendered("the emulator renders no whole number of more than 64 bits")
    return value


def budget_of(context: Context) -> RenderBudget:
    """Return the budget of the rendering that a Jinja context belongs to."""
    found: RenderBudget = context.parent[BUDGET]
    return found


class BoundedFunctions:
    """Methods of the Jinja environment, called by the nodes that `BoundInserter` puts into a template.

    Each returns its value unchanged after taking steps from the budget. All raise NotRendered at a limit.
    """

    def bound_each(self, context: Context, items: Iterable[Any]) -> Iterator[Any]:
        """Yield a loop's items, with a step for each."""
        return budget_of(context).each(items)

    def bound_deep(self, context: Context, value: Any) -> Any:
        """Take steps for a value and all within it, for an operation that may read all of it."""
        if isinstance(value, str):
            check_size(len(value))
            budget_of(context).look(value)
        elif not isinstance(value, int | float | Undefined | None):
            budget_of(context).weigh(value)
        return value

    def bound_shallow(self, context: Context, value: Any) -> Any:
        """Take steps for a value's items, for an operation that does not look into them."""
        budget_of(context).look(value)
        return value

    def bound_key(self, _context: Context, value: Any) -> Any:
        """Return a key. Raises: NotRendered: the key is a tuple."""
        if isinstance(value, tuple):
            raise NotRendered("the emulator looks up no key of several parts")
        return value

    def bound_written(self, context: Context, value: Any) -> str:
        """Return the text of a value that the template writes, and count its characters."""
        text = value if isinstance(value, str) else str(self.bound_deep(context, value))
        budget_of(context).write(text)
        return text

    def bound_joined(self, context: Context, *parts: Any) -> str:
        """Return the texts of the parts joined, after checking their length."""
        texts = [str(self.bound_deep(context, part)) for part in parts]
        check_size(sum(map(len, texts)))
        return "".join(texts)


class BoundInserter(NodeTransformer):
    """A visitor of a parsed template that wraps each costly operation in a call of `BoundedFunctions`."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802  # the visitor's name for it, here and below
        """Count the items of a loop. Raises: NotRendered: the loop is recursive."""
        self.generic_visit(node)
        if node.recursive:
            raise NotRendered("the emulator renders no recursive loop")
        node.iter = _call("each", node.iter)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Call:  # noqa: N802
        """Check the length of texts joined by `~`."""
        self.generic_visit(node)
        return _call("joined", *node.nodes)

    def visit_Filter(self, node: nodes.Filter) -> nodes.Filter:  # noqa: N802
        """Count the values that a filter reads."""
        self.generic_visit(node)
        if node.node is not None:
            node.node = _call("shallow" if node.name in _SHALLOW else "deep", node.node)
        node.args = [_count_value(arg) for arg in node.args]
        return node

    def visit_Test(self, node: nodes.Test) -> nodes.Test:  # noqa: N802
        """Count the values that a test reads."""
        self.generic_visit(node)
        if node.args:
            node.node = _call("deep", node.node)
            node.args = [_count_value(arg) for arg in node.args]
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:  # noqa: N802
        """Count the values that are compared."""
        self.generic_visit(node)
        node.expr = _count_value(node.expr)
        for operand in node.ops:
            operand.expr = _count_value(operand.expr)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Getitem:  # noqa: N802
        """Check a computed key, or count the items of a value that is sliced."""
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
        node.nodes = [_count_output(each) for each in node.nodes]
        return node


def _call(name: str, *args: Any) -> nodes.Call:
    """Return a node that calls a method of `BoundedFunctions`."""
    function = nodes.EnvironmentAttribute(f"bound_{name}")
    made = nodes.Call(function, [nodes.ContextReference(), *args], [], None, None)
    made.set_lineno(args[0].lineno if args else 1)
    return made


def _count_value(node: nodes.Expr) -> nodes.Expr:
    """Return a node whose value is counted, unless it is a constant."""
    return node if isinstance(node, nodes.Const) else _call("deep", node)


def _count_output(node: nodes.Expr) -> nodes.Expr:
    """Return a node of the output whose text is counted, unless it is a short constant."""
    if isinstance(node, nodes.TemplateData):
        return node if len(node.data) <= _PLAIN_DATA else _call("written", nodes.Const(node.data, lineno=node.lineno))
    return _call("written", node)
