"""Run a parsed Go template over Python values, with Go's error messages and with limits on steps and output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ollama_emulator.go import template_functions as gofuncs
from ollama_emulator.go.go_values import StructValue, format_value, true, type_name
from ollama_emulator.go.lex import Malformed, quote
from ollama_emulator.go.template_functions import LONGEST, Wrong
from ollama_emulator.go.tree import (
    ActionNode,
    BranchNode,
    CallNode,
    ChainNode,
    CommandNode,
    FieldNode,
    MarkNode,
    Node,
    PipeNode,
    TextNode,
    Tree,
    VariableNode,
    WordNode,
)

STEPS = 200_000  # nodes that one run may execute, with the characters in units of `_A_STEP`
_A_STEP = 512  # characters that cost as much as one node
_VARIABLES = 1000
_DEEPEST = 60  # nested calls of templates
_MISSING = object()
_CONTINUE, _BREAK = 1, 2


class Failed(Malformed):
    """The error of a running template, in Go's words."""


class TemplateRun:
    """A run of a parsed template over `data`, the value of `$` and of the first dot.

    With `fresh` the template is run as by a plain Go program: it cannot call the daemon's functions or templates that
    it defines, and a field of a missing key is no error.
    """

    def __init__(self, tree: Tree, data: dict[str, Any], *, fresh: bool = False) -> None:
        self._tree = tree
        self._data = data
        self._fresh = fresh
        self._out: list[str] = []
        self._written = 0
        self._steps = 0
        self._name = ""
        self._deep = 0
        self._variables: list[tuple[str, Any]] = [("$", data)]

    def text(self, nodes: Sequence[Node]) -> str:
        """Return the text that the nodes write, for a run that was not used before.

        Raises: Failed: Go would fail, or the run exceeds a limit of the emulator.
        """
        try:
            self._walk(nodes, self._data)
        except RecursionError:
            raise Failed("template: : exceeded maximum template depth (100000)") from None
        return "".join(self._out)

    def _fail(self, node: Node, text: str) -> Failed:
        place = self._tree.place(node.at)
        return Failed(f"template: :{place}: executing {quote(self._name)} at <{node}>: {text}")

    def _write(self, text: str) -> None:
        """Add text to the output. Raises: Failed: the output is longer than the emulator renders."""
        self._written += len(text)
        if self._written > LONGEST:
            raise Failed(f"template: : the emulator renders no more than {LONGEST} characters")
        self._out.append(text)

    def _walk(self, nodes: Sequence[Node], dot: Any) -> int:
        """Execute nodes in order; return `_BREAK` or `_CONTINUE` if such a mark ended them, else 0."""
        self._steps += len(nodes) + 1
        if self._steps > STEPS:
            raise Failed(f"template: : the emulator executes no more than {STEPS} steps")
        for node in nodes:
            if isinstance(node, TextNode):
                self._write(node.text)
            elif isinstance(node, ActionNode):
                self._act(node, dot)
            elif isinstance(node, BranchNode):
                left = self._range(node, dot) if node.word == "range" else self._if(node, dot)
                if left:
                    return left
            elif isinstance(node, CallNode):
                self._call(node, dot)
            elif isinstance(node, MarkNode):
                return _BREAK if node.word == "break" else _CONTINUE
        return 0

    def _act(self, node: ActionNode, dot: Any) -> None:
        value = self._pipe(node.pipe, dot)
        if not node.pipe.declared:
            self._write("<no value>" if value is None else value if isinstance(value, str) else format_value(value))

    def _if(self, node: BranchNode, dot: Any) -> int:
        """Execute an `if` or `with`; return as `_walk` does."""
        known = len(self._variables)
        value = self._pipe(node.pipe, dot)
        left = 0
        if true(value):
            left = self._walk(node.body, value if node.word == "with" else dot)
        elif node.other is not None:
            left = self._walk(node.other, dot)
        del self._variables[known:]
        return left

    def _range(self, node: BranchNode, dot: Any) -> int:
        """Execute a `range`: its body for each item, or its `else` without items. A break in the body ends here."""
        known = len(self._variables)
        value = self._pipe(node.pipe, dot)
        pairs = self._pairs(node, value)
        inside = len(self._variables)
        declared = [variable.names[0] for variable in node.pipe.declared]
        if not pairs:
            del self._variables[known:]
            return self._walk(node.other, dot) if node.other is not None else 0
        for key, item in pairs:
            if declared:
                self._variables[inside - 1] = (declared[-1], item)
            if len(declared) > 1:
                self._variables[inside - 2] = (declared[0], key)
            left = self._walk(node.body, item)
            del self._variables[inside:]
            if left == _BREAK:
                break
        del self._variables[known:]
        return 0

    def _pairs(self, node: BranchNode, value: Any) -> list[tuple[Any, Any]]:
        """List the keys and items that a `range` over a value visits; a map is visited in the order of its keys."""
        if value is None:
            return []
        if isinstance(value, list):
            return list(enumerate(value))
        if isinstance(value, dict):
            return [(key, value[key]) for key in sorted(value)]
        if isinstance(value, int) and not isinstance(value, bool):
            if value > STEPS:
                raise Failed(f"template: : the emulator executes no more than {STEPS} steps")
            return [(at, at) for at in range(value)]
        raise self._fail(node, f"range can't iterate over {format_value(value)}")

    def _call(self, node: CallNode, dot: Any) -> None:
        """Execute a defined template with its own dot and variables."""
        nodes = None if self._fresh else self._tree.defined.get(node.name)
        if nodes is None:
            raise self._fail(node, f"template {quote(node.name)} not defined")
        if self._deep >= _DEEPEST:
            raise self._fail(node, "exceeded maximum template depth (100000)")
        value = self._pipe(node.pipe, dot) if node.pipe is not None else None
        held, self._variables = self._variables, [("$", value)]
        name, self._name = self._name, node.name
        self._deep += 1
        self._walk(nodes, value)
        self._deep -= 1
        self._variables, self._name = held, name

    # values

    def _pipe(self, pipe: PipeNode, dot: Any) -> Any:
        """Evaluate a pipeline, set the variables that it declares or assigns, and return its value."""
        value: Any = _MISSING
        for command in pipe.commands:
            value = self._command(command, dot, value)
        for variable in pipe.declared:
            if pipe.assigns:
                self._assign(variable, value)
            else:
                self._variables.append((variable.names[0], value))
                if len(self._variables) > _VARIABLES:
                    raise Failed(f"template: : the emulator keeps no more than {_VARIABLES} variables")
        return value

    def _assign(self, variable: VariableNode, value: Any) -> None:
        """Set the innermost variable of that name. Raises: Failed: it is undefined."""
        name = variable.names[0]
        for at in range(len(self._variables) - 1, -1, -1):
            if self._variables[at][0] == name:
                self._variables[at] = (name, value)
                return
        raise self._fail(variable, f"undefined variable: {name}")

    def _command(self, command: CommandNode, dot: Any, final: Any) -> Any:
        """Evaluate one command of a pipeline; `final` is the value of the command before it, or `_MISSING`."""
        first = command.args[0]
        if isinstance(first, WordNode) and first.kind == "function":
            return self._function(first, command, dot, final)
        arguments = len(command.args) > 1 or final is not _MISSING
        if isinstance(first, FieldNode):
            return self._fields(dot, first, first.names, arguments)
        if isinstance(first, VariableNode):
            return self._variable(first, arguments)
        if isinstance(first, ChainNode):
            return self._fields(self._value(first.node, dot), first, first.names, arguments)
        if arguments:
            raise self._fail(first, f"can't give argument to non-function {_bare(first)}")
        if isinstance(first, WordNode) and first.kind == "nil":
            raise self._fail(first, "nil is not a command")
        return self._value(first, dot)

    def _value(self, node: Node, dot: Any) -> Any:
        """Return the value of an argument."""
        if isinstance(node, WordNode):
            if node.kind == "function":
                return self._function(node, CommandNode(node.at, [node]), dot, _MISSING)
            return dot if node.kind == "dot" else node.value
        if isinstance(node, FieldNode):
            return self._fields(dot, node, node.names, False)
        if isinstance(node, VariableNode):
            return self._variable(node, False)
        if isinstance(node, PipeNode):
            return self._pipe(node, dot)
        if isinstance(node, ChainNode):
            return self._fields(self._value(node.node, dot), node, node.names, False)
        raise self._fail(node, f"can't handle {node}")

    def _variable(self, node: VariableNode, arguments: bool) -> Any:
        """Evaluate a variable and the fields that follow it, such as `$x.Name`."""
        name = node.names[0]
        value = next((value for known, value in reversed(self._variables) if known == name), None)
        if len(node.names) == 1:
            if arguments:
                raise self._fail(node, f"can't give argument to non-function {name}")
            return value
        return self._fields(value, node, node.names[1:], arguments)

    def _fields(self, value: Any, node: Node, names: Sequence[str], arguments: bool) -> Any:
        """Follow field names from a value; return the last one's value."""
        last = len(names) - 1
        for at, name in enumerate(names):
            value = self._field(value, node, name)
            if value is None and at < last and not self._fresh:
                raise self._fail(node, f"nil pointer evaluating interface {{}}.{names[at + 1]}")
        if arguments:
            raise self._fail(node, f"{names[last]} has arguments but cannot be invoked as function")
        return value

    def _field(self, value: Any, node: Node, name: str) -> Any:
        """Return a field of a value, or a key of a map."""
        if value is None:
            return None
        if isinstance(value, dict):
            return value.get(name)
        if isinstance(value, StructValue):
            if name in value.fields:
                return value.fields[name]
            if name == "String" and value.spoken is not None:
                return value.spoken(value)
        raise self._fail(node, f"can't evaluate field {name} in type {type_name(value)}")

    def _function(self, node: WordNode, command: CommandNode, dot: Any, final: Any) -> Any:
        """Call a function with its arguments, the value `final` of the pipeline last."""
        name = node.text
        if name in ("and", "or"):
            return self._short(name == "or", command, dot, final)
        values = [self._value(arg, dot) for arg in command.args[1:]]
        if final is not _MISSING:
            values.append(final)
        try:
            made = gofuncs.call(name, values, self._fresh)
        except Wrong as wrong:
            called = str(wrong).startswith("error calling")
            raise self._fail(command if called else node, str(wrong)) from None
        self._steps += sum(len(value) for value in (made, *values) if isinstance(value, str)) // _A_STEP
        return made

    def _short(self, wanted: bool, command: CommandNode, dot: Any, final: Any) -> Any:
        """Evaluate `or` (with `wanted`) or `and`: return the first argument whose truth is `wanted`, else the last."""
        value: Any = None
        waiting: list[Callable[[], Any]] = [lambda arg=arg: self._value(arg, dot) for arg in command.args[1:]]  # type: ignore[misc]
        if final is not _MISSING:
            waiting.append(lambda: final)
        if not waiting:
            node = command.args[0]
            raise self._fail(node, f"wrong number of args for {node}: want at least 1 got 0")
        for each in waiting:
            value = each()
            if true(value) == wanted:
                return value
        return value


def _bare(node: Node) -> str:
    """Return a node's source, a pipeline in brackets."""
    return f"({node})" if isinstance(node, PipeNode) else str(node)
