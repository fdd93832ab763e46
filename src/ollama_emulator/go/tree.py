"""The tree of a parsed Go template: its nodes, which print as Go prints them, and walks over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ollama_emulator.go.lex import quote


@dataclass(slots=True)
class Node:
    """A part of a template; `at` is the offset of its first character."""

    at: int


@dataclass(slots=True)
class TextNode(Node):
    """Text between actions."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class WordNode(Node):
    """An argument of one word: `kind` is dot, nil, bool, number, string or function; `value` is a constant's value."""

    kind: str
    text: str
    value: bool | int | float | complex | str | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class FieldNode(Node):
    """Fields of the dot: `.A.B`."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return "".join(f".{name}" for name in self.names)


@dataclass(slots=True)
class VariableNode(Node):
    """A variable and the fields behind it: `$x.A` has the names `$x` and `A`."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.names)


@dataclass(slots=True)
class ChainNode(Node):
    """Fields of a term that is neither a field nor a variable: `(pipeline).A.B`."""

    node: Node
    names: tuple[str, ...]

    def __str__(self) -> str:
        inner = f"({self.node})" if isinstance(self.node, PipeNode) else str(self.node)
        return inner + "".join(f".{name}" for name in self.names)


@dataclass(slots=True)
class CommandNode(Node):
    """An operand or a function with its arguments."""

    args: list[Node] = field(default_factory=list)

    def __str__(self) -> str:
        return " ".join(f"({arg})" if isinstance(arg, PipeNode) else str(arg) for arg in self.args)


@dataclass(slots=True)
class PipeNode(Node):
    """Commands, each given the value of the one before.

    The `declared` variables take the last value; `assigns` is `=`.
    """

    declared: list[VariableNode] = field(default_factory=list)
    commands: list[CommandNode] = field(default_factory=list)
    assigns: bool = False

    def __str__(self) -> str:
        head = ", ".join(str(variable) for variable in self.declared)
        if head:
            head += " = " if self.assigns else " := "
        return head + " | ".join(str(command) for command in self.commands)


@dataclass(slots=True)
class ActionNode(Node):
    """An action that writes the value of its pipe."""

    pipe: PipeNode

    def __str__(self) -> str:
        return f"{{{{{self.pipe}}}}}"


@dataclass(slots=True)
class BranchNode(Node):
    """An `if`, `range` or `with`, named by `word`; `other` holds the nodes behind its `else`, None without one."""

    word: str
    pipe: PipeNode
    body: list[Node]
    other: list[Node] | None

    def __str__(self) -> str:
        other = "" if self.other is None else "{{else}}" + "".join(str(node) for node in self.other)
        return f"{{{{{self.word} {self.pipe}}}}}{''.join(str(node) for node in self.body)}{other}{{{{end}}}}"


@dataclass(slots=True)
class CallNode(Node):
    """A call of another template: `{{template "name" pipeline}}`."""

    name: str
    pipe: PipeNode | None

    def __str__(self) -> str:
        return f"{{{{template {quote(self.name)}{f' {self.pipe}' if self.pipe else ''}}}}}"


@dataclass(slots=True)
class MarkNode(Node):
    """`end`, `else`, `break` or `continue`."""

    word: str

    def __str__(self) -> str:
        return f"{{{{{self.word}}}}}"


@dataclass(slots=True)
class Tree:
    """A parsed template: its text, its nodes, and the templates defined in it by name."""

    text: str
    root: list[Node]
    defined: dict[str, list[Node]]

    def names(self) -> frozenset[str]:
        """Return the names of all fields and variables in the template, in small letters."""
        found: set[str] = set()
        for nodes in (self.root, *self.defined.values()):
            for node in walk(nodes):
                if isinstance(node, FieldNode | VariableNode):
                    found.update(name.lower() for name in node.names)
        return frozenset(found)

    def place(self, at: int) -> str:
        """Return the place of an offset in characters as Go's errors give it: `line:column`, the column in bytes."""
        start = self.text.rfind("\n", 0, at) + 1
        column = len(self.text[start:at].encode("utf-8", "surrogatepass"))
        return f"{self.text.count(chr(10), 0, at) + 1}:{column}"


def walk(nodes: list[Node]) -> Iterator[Node]:
    """Yield these nodes and all below them, in the order of the text.

    Declared variables and the inner term of a ChainNode are left out.
    """
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))


def children(node: Node) -> list[Node]:
    """Return the nodes directly below a node."""
    if isinstance(node, ActionNode):
        return [node.pipe]
    if isinstance(node, BranchNode):
        return [node.pipe, *node.body, *(node.other or ())]
    if isinstance(node, CallNode):
        return [node.pipe] if node.pipe is not None else []
    if isinstance(node, PipeNode):
        return [arg for command in node.commands for arg in command.args]
    return []


def empty(nodes: list[Node]) -> bool:
    """Return whether the nodes hold nothing but white space."""
    return all(isinstance(node, TextNode) and not node.text.strip() for node in nodes)
