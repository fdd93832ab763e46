"""The two pure methods of an operation as the kernel computes them: from its parameters, and from an example reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from batos.agency.apis import reply_shapes
from batos.agency.apis.api_operations import FAILURE, Json, Operation, Parameter
from batos.agency.apis.reply_shapes import EVERY, Shape
from batos.records.tools import READING, REQUEST

_VARIABLE: Final = re.compile(r"\{(\w+)\}")
#: Keys under which APIs say that something failed, and those of the sentence about it.
_FLAGS: Final = ("ok", "success", "succeeded")
_ERRORS: Final = ("error", "errors", "fault", "error_message", "errorMessage")
_MESSAGES: Final = (*_ERRORS, "message", "reason", "detail", "details", "description", "title", "info", "msg")
#: The most characters of a reply that a method reads: 256 Ki.
MOST_BODY: Final = 256 * 1024

_REQUEST_SOURCE: Final = """\
def {selector}(self, args):
    for name in {required}:
        if args.get(name) is None:
            return {{"failure": f"`{{name}}` is missing"}}

    def text(value):
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return {{
        "method": "GET",
        "path": {path},
        "query": {{name: text(args[name]) for name in {query} if args.get(name) is not None}},
        "body": None,
    }}
"""

_READING_SOURCE: Final = """\
import json


def {selector}(self, status, headers, body):
    shape = {shape}

    def fit(value, wanted, place):
        if wanted in ("any", "mixed") or (value is None and place != "the reply"):
            return value
        if isinstance(wanted, list):
            if not isinstance(value, list):
                raise ValueError(f"{{place}} is no list")
            return [fit(each, wanted[0], place) for each in value]
        if isinstance(wanted, dict):
            if not isinstance(value, dict):
                raise ValueError(f"{{place}} has no keys")
            if "*" in wanted:
                return {{name: fit(each, wanted["*"], name) for name, each in value.items()}}
            found = {{}}
            for name, inner in wanted.items():
                key = name.removesuffix("?")
                if key in value:
                    found[key] = fit(value[key], inner, key)
                elif key == name:
                    raise ValueError(f"`{{key}}` is missing")
            return found
        kind = "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "other"
        kind = "number" if kind == "other" and isinstance(value, (int, float)) else kind
        if kind != wanted:
            raise ValueError(f"{{place}} is {{kind}}, not {{wanted}}")
        return value

    if len(body) > {most}:
        return {{"failure": "the reply is too long"}}
    try:
        data = json.loads(body)
    except ValueError:
        return {{"failure": f"the status is {{status}}, and the reply is no JSON"}}
    if isinstance(data, dict):
        flags = [data[name] for name in {flags} if name in data]
        told = [data[name] for name in {errors} if data.get(name)]
        if told or status != 200 or False in flags or data.get("status") in {bad}:
            told = told or [data[name] for name in {messages} if data.get(name)]
            return {{"failure": str(told[0])[:200] if told else f"the status is {{status}}"}}
    if status != 200:
        return {{"failure": f"the status is {{status}}"}}
    try:
        value = fit(data, shape, "the reply")
    except ValueError as error:
        return {{"failure": str(error)}}
    main = value
    for name in {main}:
        main = main[name] if main else main
    if main is None or main == {empty}:
        return {{"failure": "nothing was found"}}
    return value
"""

_TEXT_SOURCE: Final = """\
def {selector}(self, status, headers, body):
    if status != 200:
        return {{"failure": f"the status is {{status}}"}}
    text = body.strip()
    if not text or text.startswith("<") or len(text) > {most}:
        return {{"failure": "the reply is no plain text"}}
    return text
"""


def request_source(operation: Operation) -> str:
    """Return the source of the method that makes a request of arguments."""
    query = [each.name for each in operation.parameters if each.place == "query"]
    return _REQUEST_SOURCE.format(
        selector=REQUEST + operation.name, path=_path_expression(operation.path),
        required=json.dumps(operation.required_names), query=json.dumps(query),
    )  # fmt: skip


def _path_expression(template: str) -> str:
    """Return the expression of a path in Python.

    >>> _path_expression("/v1/{city}/days")
    '"/v1/" + text(args["city"]) + "/days"'
    """
    parts = _VARIABLE.split(template)
    written = [f"text(args[{json.dumps(part)}])" if at % 2 else json.dumps(part) for at, part in enumerate(parts)]
    return " + ".join(each for each in written if each != '""')


def reading_source(operation: Operation) -> str | None:
    """Return the source of the method that makes a value of a reply; None: the description has no example of one."""
    if not operation.replies:
        return None
    selector, first = READING + operation.name, operation.replies[0]
    if isinstance(first, str):
        return _TEXT_SOURCE.format(selector=selector, most=MOST_BODY)
    shape = reply_shapes.merge(map(reply_shapes.shape_of, operation.replies))
    errors = [each for each in _ERRORS if not _holds(operation.replies, each)]
    main = main_place(shape)
    return _READING_SOURCE.format(
        selector=selector, shape=_literal(shape), most=MOST_BODY, errors=json.dumps([*errors, *_own_errors(operation)]),
        flags=json.dumps(list(_FLAGS)), bad='["error", "fail", "failed", "ERROR", "FAIL"]',
        messages=json.dumps(list(_MESSAGES)), main=json.dumps(main), empty=_empty_at(shape, main),
    )  # fmt: skip


def _holds(replies: tuple[Json, ...], key: str) -> bool:
    """Test if a good reply has something under a key, as `errors` of a report may."""
    return any(isinstance(each, dict) and bool(each.get(key)) for each in replies)


def _own_errors(operation: Operation) -> Iterator[str]:
    """Yield the keys that only the examples of errors have: by them an error is known, whatever its status."""
    good = {key for each in operation.replies if isinstance(each, dict) for key in each}
    seen = {key for each in operation.errors if isinstance(each, dict) for key in each}
    yield from sorted(seen - good - {*_ERRORS, *_FLAGS, "status"})


def main_place(shape: Shape) -> list[str]:
    """Return the keys that lead to the list that a reply is about: the only list of objects near its top; else [].

    >>> main_place({"page": "number", "items": [{"name": "string"}]})
    ['items']
    """
    if not isinstance(shape, dict):
        return []
    lists = [name for name, each in shape.items() if isinstance(each, list) and not isinstance(each[0], str)]
    if len(lists) == 1:
        return [lists[0]] if not lists[0].endswith("?") else []
    inner = [name for name, each in shape.items() if isinstance(each, dict) and not name.endswith("?")]
    return [inner[0], *main_place(shape[inner[0]])] if not lists and len(inner) == 1 and inner != [EVERY] else []


def _empty_at(shape: Shape, place: list[str]) -> str:
    """Return the literal of the empty value at a place of a shape; None's for a value that may be empty."""
    for name in place:
        shape = shape[name] if isinstance(shape, dict) else shape
    return "[]" if isinstance(shape, list) else "{}" if isinstance(shape, dict) else '""'


def _literal(shape: Shape) -> str:
    return json.dumps(shape, ensure_ascii=True)


def describe(operation: Operation, selector: str) -> str:
    """Return what one of its methods is for, in the form that a description has: from it the method is made again."""
    lines = [f"GET {operation.path}", "", operation.purpose.replace("`", "'"), "", "Parameters:", ""]
    lines += [f"- `{each.name}` ({each.kind}, {_words_of(each)})" for each in operation.parameters]
    if selector.startswith(READING):
        shown = [("Reply", each) for each in operation.replies] + [("Error", each) for each in operation.errors]
        lines += [f"\n{kind}:\n\n```\n{_reply_text(each)}\n```" for kind, each in shown]
        lines += [] if operation.replies else ["", "The reply:", "", operation.section]
    return "\n".join(lines)


def _words_of(parameter: Parameter) -> str:
    """Return what is known of a parameter, in words that are read again."""
    said = ["required" if parameter.is_required else "optional"]
    said += [f"one of {', '.join(f'`{each}`' for each in parameter.choices)}"] if parameter.choices else []
    said += [f"e.g. `{parameter.example}`"] if parameter.example else []
    return ", ".join(said)


def _reply_text(reply: Json) -> str:
    return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)


def sample_arguments(operation: Operation) -> list[dict[str, Json]]:
    """Return arguments by which the request of an operation is checked: all of its parameters, and the required ones.

    >>> sample_arguments(Operation("near_", "/near", parameters=(Parameter("lat", kind="number"),)))
    [{'lat': 1.5}, {}]
    """
    values: dict[str, Json] = {"integer": 3, "number": 1.5, "boolean": True, "string": "a b"}
    every: dict[str, Json] = {
        each.name: next(iter(each.choices), "") or each.example or values[each.kind] for each in operation.parameters
    }
    return [every, {name: every[name] for name in operation.required_names}]


def request_for(operation: Operation, arguments: dict[str, Json]) -> dict[str, Json]:
    """Return the request that an operation's method must make of arguments."""

    def text(value: Json) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    path = _VARIABLE.sub(lambda found: text(arguments[found[1]]), operation.path)
    placed = {each.name: each.place for each in operation.parameters}
    query: dict[str, Json] = {name: text(each) for name, each in arguments.items() if placed[name] == "query"}
    return {"method": "GET", "path": path, "query": query, "body": None}


# -- replies that a reading must not take for an answer


def broken_replies(replies: Sequence[Json]) -> Iterator[tuple[str, int, str]]:
    """Yield (what is wrong, status, body) of replies made of good ones: each must be declared a failure."""
    reply, shape = replies[0], reply_shapes.merge(map(reply_shapes.shape_of, replies))
    text = reply if isinstance(reply, str) else json.dumps(reply)
    yield "a wrong status", 500, text
    yield "an error with status 404", 404, '{"error": "not found"}'
    yield "a page of an error", 200, "<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>"
    yield "too many requests", 429, '{"message": "slow down"}'
    yield "1 MiB", 200, json.dumps({"padding": "x" * (1 << 20)})
    if isinstance(reply, str):
        yield "an empty reply", 200, ""
        return
    yield "a reply that is cut", 200, text[: max(1, len(text) // 2)]
    if isinstance(reply, dict):
        for name in [each for each in reply if each in shape]:
            yield f"a reply without `{name}`", 200, json.dumps({key: reply[key] for key in reply if key != name})
    main = main_place(shape)
    if main or isinstance(reply, list):
        yield "an empty list", 200, json.dumps(_without_items(reply, main))


def _without_items(reply: Json, place: list[str]) -> Json:
    """Return a reply in which the list at a place has no items."""
    if not place or not isinstance(reply, dict):
        return []
    inner = reply[place[0]]
    return {**reply, place[0]: _without_items(inner, place[1:]) if place[1:] else type(inner)() if inner else inner}


def is_failure(value: object) -> bool:
    """Test if a value says why there is none."""
    return isinstance(value, dict) and set(value) == {FAILURE}
