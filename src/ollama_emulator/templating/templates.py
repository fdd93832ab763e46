"""The daemon's prompt templates: Go templates over messages, or in the older way over system, prompt and response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from ollama_emulator.go import parse as goparse
from ollama_emulator.go.execute import TemplateRun
from ollama_emulator.go.go_values import Items, JsonMap, Ordered, Rows, StructValue, Types, floated
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
    """The values that a prompt is made of; `tools` None is no list of tools, `level` is that of `think`."""

    messages: Sequence[Message] = ()
    tools: Sequence[Any] | None = None
    prompt: str = ""
    suffix: str = ""
    think: bool = False
    level: str = ""
    think_set: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template with what follows from it alone: the names it uses, and the tags around its thinking."""

    tree: Tree
    names: frozenset[str]
    tags: tuple[str, str] = field(default=("", ""))

    def render(self, values: Values) -> str:
        """Return the prompt. Raises: Failed: Go's text, the template does not suit the values."""
        common = {"Think": values.think, "ThinkLevel": values.level, "IsThinkSet": values.think_set}
        if values.prompt and values.suffix:
            data = {"Prompt": values.prompt, "Suffix": values.suffix, _RESPONSE: "", **common}
            return TemplateRun(self.tree, data).text(self.tree.root)
        system, messages = collated(values.messages)
        if "messages" in self.names:
            data = {"System": system, "Messages": Items("[]*template.templateMessage", [*map(_message, messages)])}
            data |= {"Tools": tools_of(values.tools), _RESPONSE: "", **common}
            return TemplateRun(self.tree, data).text(self.tree.root)
        return self._older(messages, common)

    def _older(self, messages: Sequence[Message], common: dict[str, Any]) -> str:
        """Round by round: what was asked, what was answered; the last one ends where the answer is to stand."""
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
    """Return the daemon's objection to a template, or ""."""
    if not text:
        return ""
    try:
        parse(text)
    except Malformed as wrong:
        return str(wrong)
    return ""


@short(128, 1 << 14)
def parse(text: str) -> Template:
    """Return a template ready to render. Raises: Malformed: Go's text."""
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
    """Return the name, Go template and parameters that create gives to weights with a chat template, or None."""
    found = chatformats.nearest(chat_template) if chat_template else None
    if found is None:
        return None
    return found.name, found.template, {"stop": list(found.stop)} if found.stop else {}


def capabilities(text: str) -> list[str]:
    """Return the capabilities that a Go template adds to answering; none for an invalid one."""
    try:
        template = parse(text)
    except Malformed:
        return []
    found = [("tools", "tools" in template.names), ("insert", "suffix" in template.names)]
    return [name for name, has in (*found, ("thinking", all(template.tags))) if has]


def chat_capabilities(text: str) -> list[str]:
    """Return the capabilities that a Jinja template adds to answering, as the daemon guesses them from its words."""
    tools = "tools" in text or "tool_call" in text
    split = any(f"content.split({quote}</think>{quote})" in text for quote in ("'", '"'))
    thinks = split or any(opening in text and closing in text for opening, closing in _THINKING)
    return [name for name, has in (("tools", tools), ("thinking", thinks)) if has]


def renders(text: str, chat_template: str) -> bool:
    """Return whether the daemon writes the prompt by a Go template, rather than the runner by the weights' own
    template.

    The daemon does where there is a Go template, unless the weights' template can do more, or as much and takes tools'
    results too.
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
    try:
        names = parse(text).names
    except Malformed:
        return False
    marks = ('eq .Role "tool"', "tool_response", "TOOL_RESULTS")
    return {"tools", "toolcalls"} <= names and any(mark in text for mark in marks)


def _chat_round_trip(text: str) -> bool:
    calls = "tool_calls" in text or "assistant_tool_call" in text
    roles = [f"role{close} == {quote}tool{quote}" for close in ("']", '"]') for quote in ("'", '"')]
    roles += [f"message.role == {quote}tool{quote}" for quote in ("'", '"')]
    return calls and any(mark in text for mark in ("tool_response", "tool_results", "ipython", *roles))


def collated(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """Return all system texts as one, and the messages with neighbours of one role made one (but those of tools)."""
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


# what templates see of messages and tools


def _message(message: Message) -> StructValue:
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
    function = call.get("function") or {}
    arguments = function.get("arguments")
    inner = {
        "Index": int(function.get("index") or 0),
        "Name": str(function.get("name") or ""),
        "Arguments": JsonMap("template.templateArgs", floated(arguments) if isinstance(arguments, Mapping) else None),
    }
    called = StructValue("template.templateToolCallFunction", inner, {})
    return StructValue("template.templateToolCall", {"ID": str(call.get("id") or ""), "Function": called}, {})


def tools_of(tools: Sequence[Any] | None) -> Rows:
    """Return the tools of a request as templates see them, and as they are in JSON."""
    found = None if tools is None else [_tool(tool) for tool in tools if isinstance(tool, Mapping)]
    return Rows("template.templateTools", found)


def _tool(tool: Mapping[str, Any]) -> StructValue:
    function = tool.get("function") or {}
    given = function.get("parameters") or {}
    properties = given.get("properties")
    known = {name: _property(value) for name, value in properties.items()} if isinstance(properties, Mapping) else None
    parameters = {
        "Type": str(given.get("type") or ""),
        "Defs": floated(given.get("$defs")),
        "Items": floated(given.get("items")),
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
        "Items": floated(tool.get("items")),
        "Function": StructValue("template.templateToolFunction", inner, _FUNCTION),
    }
    return StructValue("template.templateTool", outer, _TYPED, frozenset(("Items",)))


def _property(given: Any) -> StructValue:
    given = given if isinstance(given, Mapping) else {}
    kinds = given.get("type")
    nested = given.get("properties")
    values = {
        "AnyOf": [_property(part) for part in given.get("anyOf") or ()],
        "Type": Types([kinds] if isinstance(kinds, str) else kinds or ()),
        "Items": floated(given.get("items")),
        "Description": str(given.get("description") or ""),
        "Enum": floated(list(given.get("enum") or ())),
        "Properties": Ordered({name: _property(value) for name, value in nested.items()}) if nested else None,
        "Required": list(given.get("required") or ()),
    }
    return StructValue("api.ToolProperty", values, _PROPERTY, frozenset(_PROPERTY))


# what follows from a template's text


def _until_response(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes up to and with the one that writes the response."""
    kept, _ = _cut(nodes, done=False)
    return kept


def _cut(nodes: Sequence[Node], *, done: bool) -> tuple[list[Node], bool]:
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
    """Return the texts around `.Thinking` in a range over the messages: how the model marks its thinking."""
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
    found = [branch.body, *([branch.other] if branch.other else [])]
    for nodes in list(found):
        for node in nodes:
            if isinstance(node, BranchNode):
                found.extend(_lists(node))
    return found


def _uses(nodes: Sequence[Node], *names: str) -> bool:
    return any(isinstance(node, FieldNode) and node.names[0] in names for node in walk(list(nodes)))
