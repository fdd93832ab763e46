"""The daemon's prompt templates in Go: over messages, or in the older form over system, prompt and response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from ollama_emulator.go import parse as goparse
from ollama_emulator.go.execute import TemplateRun
from ollama_emulator.go.go_values import Items, JsonMap, OrderedMap, Rows, StructValue, Types, with_floats
from ollama_emulator.go.lex import Malformed
from ollama_emulator.go.tree import (
    ActionNode,
    BranchNode,
    CallNode,
    CommandNode,
    FieldNode,
    Node,
    PipeNode,
    TextNode,
    Tree,
    walk,
)
from ollama_emulator.remembering import short
from ollama_emulator.templating import chatformats

_RESPONSE = "Response"
_MESSAGE = ("Role", "Content", "Thinking", "Images", "ToolCalls", "ToolName", "ToolCallID")
_TYPED = {"Type": "type", "Items": "items", "Function": "function"}
_FUNCTION = {"Name": "name", "Description": "description", "Parameters": "parameters"}
_PARAMETERS = {"Type": "type", "Defs": "$defs", "Items": "items", "Required": "required", "Properties": "properties"}
_PROPERTY = {
    "AnyOf": "anyOf",
    "Type": "type",
    "Items": "items",
    "Description": "description",
    "Enum": "enum",
    "Properties": "properties",
    "Required": "required",
}

_THINKING = (
    ("<think>", "</think>"),
    ("<|channel>", "<channel|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<seed:think>", "</seed:think>"),
)
OPENINGS = tuple(opening for opening, _ in _THINKING)

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Values:
    """The values that a prompt is rendered from. A None for `tools` means no list; `level` is the level of `think`."""

    messages: Sequence[Message] = ()
    tools: Sequence[Any] | None = None
    prompt: str = ""
    suffix: str = ""
    think: bool = False
    level: str = ""
    think_set: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template, the names that it uses in small letters, and the tags that it writes around thinking."""

    tree: Tree
    names: frozenset[str]
    tags: tuple[str, str] = field(default=("", ""))

    def render(self, values: Values) -> str:
        """Return the prompt for some values. Raises: Failed: the template fails on them; the message is Go's."""
        common = {"Think": values.think, "ThinkLevel": values.level, "IsThinkSet": values.think_set}
        if values.prompt and values.suffix:
            data = {"Prompt": values.prompt, "Suffix": values.suffix, _RESPONSE: "", **common}
            return TemplateRun(self.tree, data).text(self.tree.root)
        system, messages = collate(values.messages)
        if "messages" in self.names:
            data = {"System": system, "Messages": Items("[]*template.templateMessage", [*map(_message, messages)])}
            data |= {"Tools": tools_of(values.tools), _RESPONSE: "", **common}
            return TemplateRun(self.tree, data).text(self.tree.root)
        return self._render_rounds(messages, common)

    def _render_rounds(self, messages: Sequence[Message], common: dict[str, Any]) -> str:
        """Render a template of the older form, once for each round of system, prompt and response.

        The last round ends at the response, where the answer is to stand.
        """
        turn = {"System": "", "Prompt": "", _RESPONSE: ""}
        out = []
        for message in messages:
            role, content = message.get("role"), str(message.get("content") or "")
            full = bool(turn[_RESPONSE]) or (role == "system" and bool(turn["Prompt"]))
            if role in ("system", "user") and full:
                out.append(TemplateRun(self.tree, {**turn, **common}).text(self.tree.root))
                turn = dict.fromkeys(turn, "")
            slot = {"system": "System", "user": "Prompt", "assistant": _RESPONSE}.get(str(role))
            if slot is not None:
                turn[slot] = content
        last = TemplateRun(self.tree, {**turn, **common}, fresh=True)
        return "".join(out) + last.text(_until_response(self.tree.root))


def fault(text: str) -> str:
    """Return the error message with which the daemon refuses a template, or ""."""
    if not text:
        return ""
    try:
        parse(text)
    except Malformed as wrong:
        return str(wrong)
    return ""


@short(128, 1 << 14)
def parse(text: str) -> Template:
    """Parse a prompt template; a response is added at the end of one without messages and response.

    Raises: Malformed: the template is wrong; the message is Go's.
    """
    tree = goparse.parse(text)
    for nodes in (tree.root, *tree.defined.values()):
        if any(isinstance(node, CallNode) and node.pipe is None for node in walk(nodes)):
            raise Malformed("undefined template specified")
    names = tree.names()
    if not names & {"messages", "response"}:
        end = len(text)
        tree.root.append(ActionNode(end, PipeNode(end, [], [CommandNode(end, [FieldNode(end, (_RESPONSE,))])])))
    return Template(tree, names, _thinking_tags(tree.root))


def detect(chat_template: str) -> tuple[str, str, dict[str, Any]] | None:
    """Return the name, Go template and parameters that `create` gives weights with a known Jinja template, or None."""
    found = chatformats.nearest(chat_template) if chat_template else None
    if found is None:
        return None
    return found.name, found.template, {"stop": list(found.stop)} if found.stop else {}


def capabilities(text: str) -> list[str]:
    """Return the capabilities that a Go template gives a model beside completion; none for an invalid template."""
    try:
        template = parse(text)
    except Malformed:
        return []
    found = [("tools", "tools" in template.names), ("insert", "suffix" in template.names)]
    return [name for name, has in (*found, ("thinking", all(template.tags))) if has]


def chat_capabilities(text: str) -> list[str]:
    """Return the capabilities beside completion that a Jinja template's words suggest, as the daemon guesses."""
    tools = "tools" in text or "tool_call" in text
    split = any(f"content.split({quote}</think>{quote})" in text for quote in ("'", '"'))
    thinks = split or any(opening in text and closing in text for opening, closing in _THINKING)
    return [name for name, has in (("tools", tools), ("thinking", thinks)) if has]


def renders(text: str, chat_template: str) -> bool:
    """Return whether the daemon renders the prompt with the Go template `text`, and not the runner with the Jinja one.

    The daemon does if there is a Go template, unless the Jinja template has more capabilities, or has the same ones and
    only it takes results of tools. A Go template that alone takes results of tools is always used.
    """
    if not text:
        return False
    own, other = capabilities(text), chat_capabilities(chat_template)
    if len(other) > len(own):
        return _go_round_trip(text) and not _chat_round_trip(chat_template)
    if set(own) != set(other) or "tools" not in own:
        return True
    return not _chat_round_trip(chat_template) or _go_round_trip(text)


def _go_round_trip(text: str) -> bool:
    """Return whether a Go template writes both calls of tools and their results."""
    try:
        names = parse(text).names
    except Malformed:
        return False
    marks = ('eq .Role "tool"', "tool_response", "TOOL_RESULTS")
    return {"tools", "toolcalls"} <= names and any(mark in text for mark in marks)


def _chat_round_trip(text: str) -> bool:
    """Return whether a Jinja template writes both calls of tools and their results, guessed from its words."""
    calls = "tool_calls" in text or "assistant_tool_call" in text
    roles = [f"role{close} == {quote}tool{quote}" for close in ("']", '"]') for quote in ("'", '"')]
    roles += [f"message.role == {quote}tool{quote}" for quote in ("'", '"')]
    return calls and any(mark in text for mark in ("tool_response", "tool_results", "ipython", *roles))


def collate(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """Return all system texts joined, and the messages, those of one role in a row joined, except tools' results."""
    system = [str(message.get("content") or "") for message in messages if message.get("role") == "system"]
    whole: list[Message] = []
    for _, run in groupby(messages, lambda message: message.get("role", "")):
        same = list(run)
        if len(same) == 1 or same[0].get("role", "") == "tool":
            whole.extend(same)
        else:
            content = "\n\n".join(str(message.get("content") or "") for message in same)
            whole.append({**same[0], "content": content})
    return "\n\n".join(system), whole


# messages and tools as templates see them


def _message(message: Message) -> StructValue:
    """Return a message as a Go struct, for templates."""
    calls = [_tool_call(call) for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
    values = (
        str(message.get("role") or ""),
        str(message.get("content") or ""),
        str(message.get("thinking") or ""),
        Items("[]api.ImageData", message.get("images") or None),
        Items("[]template.templateToolCall", calls or None),
        str(message.get("tool_name") or ""),
        str(message.get("tool_call_id") or ""),
    )
    return StructValue("*template.templateMessage", dict(zip(_MESSAGE, values, strict=True)), {})


def _tool_call(call: Mapping[str, Any]) -> StructValue:
    """Return a call of a tool as a Go struct, for templates."""
    function = call.get("function") or {}
    arguments = function.get("arguments")
    inner = {
        "Index": int(function.get("index") or 0),
        "Name": str(function.get("name") or ""),
        "Arguments": JsonMap(
            "template.templateArgs", with_floats(arguments) if isinstance(arguments, Mapping) else None
        ),
    }
    called = StructValue("template.templateToolCallFunction", inner, {})
    return StructValue("template.templateToolCall", {"ID": str(call.get("id") or ""), "Function": called}, {})


def tools_of(tools: Sequence[Any] | None) -> Rows:
    """Return the tools of a request as templates see them; the value prints itself as JSON."""
    found = None if tools is None else [_tool(tool) for tool in tools if isinstance(tool, Mapping)]
    return Rows("template.templateTools", found)


def _tool(tool: Mapping[str, Any]) -> StructValue:
    """Return a tool of a request as a Go struct, for templates."""
    function = tool.get("function") or {}
    given = function.get("parameters") or {}
    properties = given.get("properties")
    known = {name: _property(value) for name, value in properties.items()} if isinstance(properties, Mapping) else None
    parameters = {
        "Type": str(given.get("type") or ""),
        "Defs": with_floats(given.get("$defs")),
        "Items": with_floats(given.get("items")),
        "Required": list(given.get("required") or ()),
        "Properties": JsonMap("template.templateProperties", known),
    }
    kept = frozenset(("Defs", "Items", "Required"))
    inner = {
        "Name": str(function.get("name") or ""),
        "Description": str(function.get("description") or ""),
        "Parameters": StructValue("template.templateToolFunctionParameters", parameters, _PARAMETERS, kept),
    }
    outer = {
        "Type": str(tool.get("type") or ""),
        "Items": with_floats(tool.get("items")),
        "Function": StructValue("template.templateToolFunction", inner, _FUNCTION),
    }
    return StructValue("template.templateTool", outer, _TYPED, frozenset(("Items",)))


def _property(given: Any) -> StructValue:
    """Return a property of a tool's parameters as a Go struct, with its nested properties."""
    given = given if isinstance(given, Mapping) else {}
    kinds = given.get("type")
    nested = given.get("properties")
    values = {
        "AnyOf": [_property(part) for part in given.get("anyOf") or ()],
        "Type": Types([kinds] if isinstance(kinds, str) else kinds or ()),
        "Items": with_floats(given.get("items")),
        "Description": str(given.get("description") or ""),
        "Enum": with_floats(list(given.get("enum") or ())),
        "Properties": OrderedMap({name: _property(value) for name, value in nested.items()}) if nested else None,
        "Required": list(given.get("required") or ()),
    }
    return StructValue("api.ToolProperty", values, _PROPERTY, frozenset(_PROPERTY))


# facts that are read from a template's tree


def _until_response(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes up to the one that writes the response, and with it."""
    kept, _ = _cut(nodes, done=False)
    return kept


def _cut(nodes: Sequence[Node], *, done: bool) -> tuple[list[Node], bool]:
    """Return the nodes up to the response, and whether it was found."""
    kept: list[Node] = []
    for node in nodes:
        if done:
            break
        if isinstance(node, BranchNode):
            body, done = _cut(node.body, done=done)
            other = None
            if node.other is not None:
                other, done = _cut(node.other, done=done)
            kept.append(replace(node, body=body, other=other))
        else:
            kept.append(node)
            done = isinstance(node, ActionNode) and any(
                isinstance(inner, FieldNode) and _RESPONSE in inner.names for inner in walk([node])
            )
    return kept, done


def _thinking_tags(root: Sequence[Node]) -> tuple[str, str]:
    """Return the texts before and after `.Thinking` in a loop over the messages, the tags around a model's thinking."""
    tags = ("", "")
    for loop in walk(list(root)):
        if not (isinstance(loop, BranchNode) and loop.word == "range" and _uses([loop.pipe], "Messages")):
            continue
        for nodes in _lists(loop):
            if _uses([node for node in nodes if not isinstance(node, BranchNode)], "Thinking"):
                first, last = nodes[0], nodes[-1]
                opening = first.text.strip() if isinstance(first, TextNode) else tags[0]
                closing = last.text.strip() if isinstance(last, TextNode) else tags[1]
                tags = (opening, closing)
    return tags


def _lists(branch: BranchNode) -> list[list[Node]]:
    """Return the lists of nodes in a branch and in the branches within it."""
    found = [branch.body, *([branch.other] if branch.other else [])]
    for nodes in list(found):
        for node in nodes:
            if isinstance(node, BranchNode):
                found.extend(_lists(node))
    return found


def _uses(nodes: Sequence[Node], *names: str) -> bool:
    """Return whether the nodes use a field of one of these names."""
    return any(isinstance(node, FieldNode) and node.names[0] in names for node in walk(list(nodes)))
