"""Recognise requests for code by their schema or their first words, read them, and answer in their form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ollama_emulator.speech.authoring.wish_texts import MethodCheck, MethodWish, WrittenMethod
from ollama_emulator.speech.language import plain_name

_HEADING: Final = re.compile(
    r"^(Owner|Receiver|Selector|Signature|Kind|Name|Inspiration|Arguments|Intent|Api|Examples|Slots|Messages|Task|"
    r"Reply with):[ \t]*(.*)$",
    re.MULTILINE,
)
# a line that begins with a call; brackets within its brackets nest once
_SIGNATURE: Final = re.compile(r"^([A-Za-z]\w*)\(((?:[^()\n]|\([^()\n]*\))*)\)", re.MULTILINE)
_SLOT: Final = re.compile(r"^-[ \t]+(\w+):[ \t]*(\w+)", re.MULTILINE)
_MOST: Final = 16  # methods of one request
# The first words of a request in plain words (docs/generation.md), for a method and for calls that check it.
_TITLE: Final = 60  # longest title before an intent
_METHOD_HEAD: Final = "You write one Python method."
_CALLS_HEAD: Final = "You write calls of a function"
_FIRST_LINE: Final = re.compile(r"^(?:async )?def (\w+)\(((?:[^()\n]|\([^()\n]*\))*)\)", re.MULTILINE)
_GIVEN: Final = re.compile(r"^Given: (.*)$", re.MULTILINE)
_GIVEN_SLOT: Final = re.compile(r"self\.(\w+) \((\w+)\)")


@dataclass(frozen=True, slots=True)
class CodeShape:
    """The names of the properties in which a schema wants the parts of code; `methods` is "" for a single method."""

    source: str
    checks: str
    check: Mapping[str, Any]  # the schema of one check
    methods: str = ""
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """A request for code: one wish, or for a whole prototype one for each of its methods."""

    shape: CodeShape
    wishes: tuple[MethodWish, ...]


def shape_of(form: Any) -> CodeShape | None:
    """Return the names under which a schema asks for code; None if it asks for none.

    Code is an object with `source` and `checks`, or one with a list of such objects.
    """
    if not isinstance(form, dict):
        return None
    found = _code_shape(form, form)
    name = _names(form).get("methods")
    if found is not None or name is None:
        return found
    item = _resolve_schema(_resolve_schema(_properties(form)[name], form).get("items"), form)
    one = _code_shape(item, form)
    return one and CodeShape(one.source, one.checks, one.check, name, _names(item).get("selector", ""))


def _code_shape(found: Mapping[str, Any], root: Mapping[str, Any]) -> CodeShape | None:
    """Return the shape of one method in a schema, None if it asks for no source with checks."""
    names = _names(found)
    if "source" not in names or "checks" not in names:
        return None
    listed = _resolve_schema(_properties(found)[names["checks"]], root)
    if listed.get("type") != "array":
        return None
    return CodeShape(names["source"], names["checks"], _resolve_schema(listed.get("items"), root))


def _resolve_schema(node: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema within a schema, with its `$ref` followed; {} for anything else."""
    reference = node.get("$ref") if isinstance(node, dict) else None
    if isinstance(reference, str):
        definitions = root.get("$defs")
        node = definitions.get(reference.removeprefix("#/$defs/")) if isinstance(definitions, dict) else None
    return node if isinstance(node, dict) else {}


def _properties(found: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = found.get("properties")
    return properties if isinstance(properties, dict) else {}


def _names(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the schema's names of its properties, by the name without the prefix that only sorts them."""
    return {plain_name(name): name for name in _properties(found)}


def read(shape: CodeShape, messages: Sequence[Mapping[str, Any]]) -> Order:
    """Read the wishes of a request from the last message that names a selector or an API; at least one is returned."""
    texts = [str(message.get("content") or "") for message in messages if message.get("role") != "system"]
    parts = next((found for found in map(_sections, reversed(texts)) if found.keys() & {"selector", "api"}), {})
    shared = {
        "title": parts.get("name", ""),
        "inspiration": parts.get("inspiration", ""),
        "slots": tuple(_SLOT.findall(parts.get("slots", ""))),
    }
    if shape.methods:
        said = parts.get("api") or parts.get("intent", "")
        return Order(shape, tuple(_api_wishes(said, shared))[:_MOST] or (MethodWish("answer_", ("query",), said),))
    selector = parts.get("selector", "").strip() or "answer_"
    signed = _SIGNATURE.search(parts.get("signature", ""))
    inside = signed[2] if signed else "self, query"
    return Order(shape, (_wish(selector, inside, parts.get("intent", ""), shared, parts.get("kind", "")),))


@dataclass(frozen=True, slots=True)
class PlainOrder:
    """A request in plain words: the wish, and whether calls that check it are asked for and not the method."""

    wish: MethodWish
    calls: bool


def plain_order(form: Any, messages: Sequence[Mapping[str, Any]]) -> PlainOrder | None:
    """Return the order of a request in plain words; None for any other request."""
    head = str(messages[0].get("content") or "") if messages else ""
    if form or not head.startswith((_METHOD_HEAD, _CALLS_HEAD)):
        return None
    texts = [str(each.get("content") or "") for each in messages if each.get("role") == "user"]
    found = next(((text, line) for text in reversed(texts) if (line := _FIRST_LINE.search(text))), None)
    if found is None:
        return None
    text, line = found
    given = _GIVEN.search(text)
    slots = tuple(_GIVEN_SLOT.findall(given[1])) if given else ()
    intent = _GIVEN.sub("", _FIRST_LINE.sub("", text)).strip(": \n")
    title, mark, rest = intent.partition(": ")
    named = bool(mark) and len(title) <= _TITLE and line[0].startswith("async")
    shared = {"title": title if named else "", "inspiration": "", "slots": slots}
    wish = _wish(line[1], line[2], rest if named else intent, shared)
    return PlainOrder(wish, head.startswith(_CALLS_HEAD))


def plain_reply(order: PlainOrder, made: WrittenMethod) -> str:
    """Return a method in a fence, or the calls that check it."""
    if not order.calls:
        return f"```python\n{made.source.strip()}\n```"
    return "\n\n".join("\n".join(_call_lines(order.wish.selector, check)) for check in made.checks)


def _call_lines(selector: str, check: MethodCheck) -> list[str]:
    called = f"{selector}({', '.join(map(repr, check.arguments))})"
    before = [f"self.{name} = {value!r}" for name, value in check.slots.items()]
    return [*before, f"{called} == {check.result!r}", *(f"self.{n} == {value!r}" for n, value in check.after.items())]


def requested_selectors(form: Any, messages: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the selectors of the methods that a request asks for; none if it asks for no code."""
    plain = plain_order(form, messages)
    if plain is not None:
        return (plain.wish.selector,)
    shape = shape_of(form)
    return () if shape is None else tuple(wish.selector for wish in read(shape, messages).wishes)


def _sections(text: str) -> dict[str, str]:
    """Return the text under each heading of a prompt, by the heading in small letters; the first of equals counts."""
    found: dict[str, tuple[int, int]] = {}
    for match in _HEADING.finditer(text):
        found.setdefault(match[1].lower(), match.span(2))
    inside = list(found.items())
    ends = [text.rfind("\n", 0, start) for _, (start, _) in inside[1:]]
    return {name: text[start:end].strip() for (name, (start, _)), end in zip(inside, [*ends, len(text)], strict=False)}


def _api_wishes(text: str, shared: Mapping[str, Any]) -> list[MethodWish]:
    """Return a wish for each method of an API's description: its signature, and the text up to the next signature."""
    found = list(_SIGNATURE.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    return [
        _wish(match[1], match[2], f"{match[1]}({match[2]}) {text[match.end() : end].strip()}", shared)
        for match, end in zip(found, ends, strict=False)
    ]


def _wish(selector: str, inside: str, intent: str, shared: Mapping[str, Any], kind: str = "") -> MethodWish:
    """Return a wish for a method; `inside` is the text between the brackets of its signature."""
    names = [re.split(r"[:=]", part, maxsplit=1)[0].strip() for part in _split(inside)]
    signature = ", ".join(part for part in _split(inside) if part)
    if not names or names[0] != "self":
        names, signature = ["self", *names], f"self, {signature}" if signature else "self"
    parameters = tuple(name for name in names[1:] if name.lstrip("*").isidentifier())
    return MethodWish(selector, parameters, intent, signature=signature, declared=kind.strip(), **shared)


def _split(inside: str) -> list[str]:
    """Split the text between a signature's brackets into its parameters, as written."""
    parts, deep = [""], 0
    for sign in inside:
        deep += (sign in "[{") - (sign in "]}")
        if sign == "," and not deep:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def fill_reply(order: Order, made: Sequence[WrittenMethod], drawn: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to a request: the instance `drawn` of its schema, with the methods and checks put into it."""
    shape = order.shape
    if not shape.methods:
        return {**drawn, **_method_entry(shape, made[0])}
    items = drawn.get(shape.methods) or [{}]
    pairs = zip(order.wishes, made, strict=True)
    listed = [
        {**items[0], **({shape.selector: wish.selector} if shape.selector else {}), **_method_entry(shape, one)}
        for wish, one in pairs
    ]
    return {**drawn, shape.methods: [{name: item[name] for name in sorted(item)} for item in listed]}


def _method_entry(shape: CodeShape, one: WrittenMethod) -> dict[str, Any]:
    names = _names(shape.check)
    return {shape.checks: [_check(names, check) for check in one.checks], shape.source: one.source}


def _check(names: Mapping[str, str], check: MethodCheck) -> dict[str, str]:
    """Return a check in the schema's form: each part as JSON text, "" for a field that is not known."""
    told = {
        "arguments": list(check.arguments),
        "before": check.slots,
        "replies": {"infer_": list(check.infer)} if check.infer else {},
        "result": check.result,
        "slots": check.after,
    }
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in told.items() if value or name == "result"}
    return {name: texts.get(plain, "") for plain, name in sorted(names.items(), key=lambda pair: pair[1])}
