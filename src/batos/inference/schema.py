"""Decisions: pydantic models compiled to schemas that the daemon enforces exactly; other keywords are refused.

The daemon's treatment of a schema was measured: it may sort keys, it drops optional ones, and it accepts keywords that
it does not enforce. So every field is required, every string and list has a bound, and keys are named so that their
alphabetical order is the declared one. A keyword that the daemon would not enforce is refused when the model is
compiled, which happens when the module that defines the model is imported.

The bound in tokens, `num_predict`, is the sum over the schema of: text at 2.5 characters a token plus its quotes; one
token for each digit an integer may have; 16 for a number; 2 for a boolean or null; for every key its text and 5 for
punctuation and blanks; for every possible item of a list 2 more; and 16 for the blanks around it all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Generic, Literal, NoReturn, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema

from batos.inference.canonical import EncodedSchema
from batos.inference.shapes import Array, Leaf, Object, Shape, ShapeMismatch, Union, tokens_of
from batos.protocol.errors import DecisionInvalid, SchemaError

# A repetition of 2000 or more is refused by llama.cpp's grammar parser ("exceeds sane defaults"), after the load.
REPEAT_LIMIT = 1999
INTEGER_DIGITS = 16
NUMBER_TOKENS = 16
DATE_TIME_CHARS = 32

Node: TypeAlias = Mapping[str, Any]

_SAID_ELSEWHERE = {"title", "description", "default", "examples", "deprecated", "$defs", "discriminator", "$comment"}
_ALLOWED: Mapping[str, set[str]] = {
    "string": {"type", "maxLength", "minLength", "pattern", "format"},
    "integer": {"type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "number": {"type"},
    "boolean": {"type"},
    "null": {"type"},
    "array": {"type", "items", "maxItems", "minItems"},
    "object": {"type", "properties", "required", "additionalProperties"},
}
# A single character of a pattern with its count. No groups, no dot, no shorthand such as \d: the grammar knows them
# differently or not at all.
_PATTERN_PART = re.compile(r"(\[(?!\^)(?:\\.|[^\]\\])+\]|\\[^\w\s]|[^\\\[\](){}|*+?^$.])(\?|\{(\d+)(?:,(\d+))?\})?")


def compile_model(model: type[BaseModel]) -> Object:
    """Return the shape of a model.

    Raises: SchemaError: a field cannot be enforced; the error names the field and the reason.
    """
    try:
        schema = model.model_json_schema()
    except PydanticInvalidForJsonSchema as wrong:
        raise SchemaError(f"{model.__name__}: {wrong}", field=model.__name__) from wrong
    shape = _Compiler(model.__name__, schema.get("$defs", {})).shape(schema, model.__name__)
    if not isinstance(shape, Object):
        raise SchemaError(f"{model.__name__}: a decision is an object with fields", field=model.__name__)
    return shape


def ordered_keys(fields: Iterable[str]) -> dict[str, str]:
    """Return the daemon's key for each field: the field's name if the order is alphabetical, else with a prefix.

    `("why", "answer")` -> `{"why": "a_why", "answer": "b_answer"}`. The order is by code point, as Go sorts.
    """
    names = list(fields)
    if names == sorted(names):
        return {name: name for name in names}
    width = 1 if len(names) <= 26 else 2
    return {name: f"{_letters(index, width)}_{name}" for index, name in enumerate(names)}


def _letters(index: int, width: int) -> str:
    letters = ""
    for _ in range(width):
        index, place = divmod(index, 26)
        letters = chr(ord("a") + place) + letters
    return letters


class _Compiler:
    def __init__(self, name: str, definitions: Mapping[str, Node]) -> None:
        self._name = name
        self._definitions = definitions
        self._open: list[str] = []
        self._makers: dict[str, Callable[[Node, str], Shape]] = {
            "string": _string,
            "integer": _integer,
            "number": lambda node, path: Leaf({"type": "number"}, NUMBER_TOKENS, "a number"),
            "boolean": lambda node, path: Leaf({"type": "boolean"}, 2, "true or false"),
            "null": lambda node, path: Leaf({"type": "null"}, 2, "null"),
            "array": self._array,
            "object": self._object,
        }

    def shape(self, node: Node, path: str) -> Shape:
        if "$ref" in node:
            return self._referred_shape(node, path)
        for several in ("anyOf", "oneOf"):
            if several in node:
                _only(node, {several}, path)
                return self._union(node[several], path)
        if "enum" in node or "const" in node:
            return _enumeration(node, path)
        kind = node.get("type")
        if not isinstance(kind, str) or kind not in self._makers:
            said = "anything at all" if kind is None else f"the type {kind!r}"
            raise _refuse(path, f"{said} cannot be enforced: give the field a plain type")
        _only(node, _ALLOWED[kind], path)
        return self._makers[kind](node, path)

    def _referred_shape(self, node: Node, path: str) -> Shape:
        _only(node, {"$ref"}, path)
        name = str(node["$ref"]).rpartition("/")[2]
        if name in self._open:
            raise _refuse(path, f"{name} contains itself, so nothing bounds it")
        self._open.append(name)
        shape = self.shape(self._definitions[name], path)
        self._open.pop()
        return shape

    def _union(self, nodes: Iterable[Node], path: str) -> Shape:
        choices = tuple(self.shape(node, path) for node in nodes)
        seen: dict[frozenset[str], Mapping[str, str]] = {}
        for choice in choices:
            if isinstance(choice, Object):
                keys = frozenset(choice.keys.values())
                if seen.setdefault(keys, choice.keys) != choice.keys:
                    raise _refuse(path, "two of its forms cannot be told apart by their keys: rename a field")
        return Union(choices)

    def _array(self, node: Node, path: str) -> Shape:
        most = node.get("maxItems")
        if most is None:
            raise _refuse(path, "a list needs a bound: give it max_length")
        _below_limit(most, path, "items")
        item = self.shape(node.get("items", {}), f"{path}[]")
        return Array(item, int(node.get("minItems", 0)), most)

    def _object(self, node: Node, path: str) -> Shape:
        if node.get("additionalProperties"):
            raise _refuse(path, "a dict has no bound on its keys: use a model or a list of pairs")
        properties: Mapping[str, Node] = node.get("properties", {})
        if not properties:
            raise _refuse(path, "an object without fields decides nothing")
        fields = {name: self.shape(inner, f"{path}.{name}") for name, inner in properties.items()}
        return Object(fields, ordered_keys(fields))


def _only(node: Node, allowed: set[str], path: str) -> None:
    for keyword in node:
        if keyword not in allowed and keyword not in _SAID_ELSEWHERE:
            raise _refuse(path, f"the daemon accepts `{keyword}` here and does not enforce it")


def _refuse(path: str, problem: str) -> SchemaError:
    remedy = "Change the model's field; what cannot be enforced belongs into a check after the reply."
    return SchemaError(f"{path}: {problem}", field=path, remedy=remedy)


def _below_limit(count: int, path: str, what: str) -> None:
    if count > REPEAT_LIMIT:
        raise _refuse(path, f"more than {REPEAT_LIMIT} {what} are refused by the daemon's grammar")


def _enumeration(node: Node, path: str) -> Leaf:
    _only(node, {"enum", "const", "type"}, path)
    values = list(node["enum"]) if "enum" in node else [node["const"]]
    for value in values:
        if not isinstance(value, (str, int, bool, type(None))):
            raise _refuse(path, f"{value!r} is no value to choose from: use text or whole numbers")
    shown = [json.dumps(value, ensure_ascii=False) for value in values]
    kind = {"type": node["type"]} if "type" in node else {}
    bound = max(tokens_of(len(text)) for text in shown) + 2
    return Leaf({**kind, "enum": values}, bound, "one of " + ", ".join(shown))


def _string(node: Node, path: str) -> Leaf:
    most, pattern, kind = node.get("maxLength"), node.get("pattern"), node.get("format")
    if pattern is not None:
        if most is not None or "minLength" in node or kind is not None:
            raise _refuse(path, "a length or format beside a pattern is not enforced: put the length into the pattern")
        width = _width(pattern, path)
        return Leaf({"type": "string", "pattern": pattern}, tokens_of(width) + 2, f"text of the form {pattern}")
    if kind is not None:
        if kind != "date-time" or most is not None or "minLength" in node:
            raise _refuse(path, f"the format {kind!r} is not enforced here: use text with max_length or a pattern")
        bound = tokens_of(DATE_TIME_CHARS) + 2
        return Leaf({"type": "string", "format": kind}, bound, "a date and time such as 2026-01-31T09:30:00Z")
    if most is None:
        raise _refuse(path, "text needs a bound: give it max_length")
    _below_limit(most, path, "characters")
    least = node.get("minLength", 0)
    bound_format = {"type": "string", **({"minLength": least} if least else {}), "maxLength": most}
    return Leaf(bound_format, tokens_of(most) + 2, f"text, at most {most} characters")


def _integer(node: Node, path: str) -> Leaf:
    low, high = node.get("minimum"), node.get("maximum")
    if "exclusiveMinimum" in node:
        low = max(node["exclusiveMinimum"] + 1, low if low is not None else node["exclusiveMinimum"] + 1)
    if "exclusiveMaximum" in node:
        high = min(node["exclusiveMaximum"] - 1, high if high is not None else node["exclusiveMaximum"] - 1)
    made: dict[str, object] = {"type": "integer"}
    if low is not None:
        made["minimum"] = low
    if high is not None:
        made["maximum"] = high
    digits = max((len(str(bound)) for bound in (low, high) if bound is not None), default=INTEGER_DIGITS)
    if low is None or high is None:
        digits = max(digits, INTEGER_DIGITS)
    between = f" from {low}" * (low is not None) + f" to {high}" * (high is not None)
    return Leaf(made, digits + 1, f"a whole number{between}")


def _width(pattern: str, path: str) -> int:
    """Return the most characters that an anchored, bounded pattern matches.

    Raises: SchemaError: the daemon would not enforce the pattern.
    """
    if len(pattern) < 3 or not (pattern.startswith("^") and pattern.endswith("$")):
        raise _refuse(path, "a pattern that is not anchored with ^ and $ is not enforced")
    width, at, inner = 0, 0, pattern[1:-1]
    while at < len(inner):
        part = _PATTERN_PART.match(inner, at)
        if part is None:
            raise _refuse(path, f"the pattern is not enforced from {inner[at:]!r} on: use letters, [classes], {{n,m}}")
        one = part.group(1)
        if any(re.fullmatch(one, mark) for mark in '"\\\n'):
            raise _refuse(path, f"{one!r} would let a bare quotation mark, backslash or newline into the JSON")
        width += int(part.group(4) or part.group(3) or 1)
        at = part.end()
    _below_limit(width, path, "characters")
    return width


M = TypeVar("M", bound=BaseModel)
Mode: TypeAlias = Literal["direct", "reason_field", "two_phase"]
MODES: tuple[Mode, ...] = get_args(Mode)

REASONING_CHARS = 600
SLACK_TOKENS = 16
_REASONING = "reasoning"
_PROBLEMS_SHOWN = 5


class Decision(Generic[M]):
    """A decision that a model is to make: `format` and `num_predict` go into the call, `parse` reads its reply.

    In mode `reason_field` the reply begins with a bounded text of reasoning; in `two_phase` (the reasoning is a call
    of its own before) and `direct` it is the decision alone.
    """

    def __init__(self, model: type[M], *, mode: Mode = "direct") -> None:
        if mode not in MODES:
            raise SchemaError(f"there is no decision mode {mode!r}: one of {', '.join(MODES)}", field="mode")
        self.model = model
        self.mode: Mode = mode
        self.name = model.__name__
        plain = compile_model(model)
        self._shape = _with_reasoning(plain) if mode == "reason_field" else plain
        self._modes: dict[Mode, Decision[M]] = {mode: self}
        self.format = EncodedSchema(self._shape.format)
        self.num_predict: int = self._shape.tokens + SLACK_TOKENS

    def in_mode(self, mode: Mode) -> Decision[M]:
        """Return the same decision in another mode; made once."""
        if mode not in self._modes:
            self._modes[mode] = Decision(self.model, mode=mode)
        return self._modes[mode]

    def key(self, field: str) -> str:
        """Return the daemon's key for a field at the model's top level."""
        return self._shape.keys[field]

    @cached_property
    def guide(self) -> str:
        """Describe the reply in prose, a line for each key, for a prompt: a model does not see its grammar.

        An example in JSON instead would make small models produce endless blanks.
        """
        described = {name: info.description for name, info in self.model.model_fields.items()}
        lines = []
        for name, shape in self._shape.fields.items():
            about = described.get(name)
            lines.append(f"`{self._shape.keys[name]}`: {about + ' ' if about else ''}({shape.words})")
        return "\n".join(lines)

    def parse(self, text: str) -> M:
        """Return the decision in a reply.

        Raises: DecisionInvalid: the reply does not fit; the message says so in words that the model can act on.
        """
        value = self._map_back(text)
        if self.mode == "reason_field":
            value.pop(_REASONING)
        try:
            return self.model.model_validate(value)
        except ValidationError as invalid:
            problems = [self._problem(error) for error in invalid.errors(include_url=False)[:_PROBLEMS_SHOWN]]
            raise _invalid("; ".join(problems)) from invalid

    def salvage(self, text: str, *, last: bool) -> M | None:
        """Return None: a part of a decision is none."""
        return None

    def reasoning(self, text: str) -> str:
        """Return the reasoning at the head of a reply in mode `reason_field`, "" in other modes."""
        return str(self._map_back(text)[_REASONING]) if self.mode == "reason_field" else ""

    def _map_back(self, text: str) -> dict[str, object]:
        try:
            value: dict[str, object] = self._shape.back(parse_json(text), "")
        except ShapeMismatch as mismatch:
            raise _invalid(str(mismatch), mismatch.path) from mismatch
        return value

    def _problem(self, error: Any) -> str:
        where = self._shape.daemon_path(error["loc"])
        said = error["msg"]
        return f"{where}: {said}" if where else str(said)


def _with_reasoning(plain: Object) -> Object:
    if _REASONING in plain.fields:
        raise SchemaError(f"a decision in mode reason_field cannot have a field named {_REASONING!r}", field=_REASONING)
    room = min(REASONING_CHARS, REPEAT_LIMIT)
    words = f"your reasoning, at most {room} characters"
    reasoning = Leaf({"type": "string", "maxLength": room}, tokens_of(room) + 2, words)
    fields = {_REASONING: reasoning, **plain.fields}
    return Object(fields, ordered_keys(fields))


def parse_json(text: str) -> Any:
    """Return the value of a reply. Raises: DecisionInvalid: it is no JSON. ShapeMismatch: a key is given twice."""
    if not text.strip():
        raise _invalid("it is empty")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as wrong:
        cut = not text[wrong.pos :].strip() or wrong.msg.startswith("Unterminated")
        where = "it stops in the middle" if cut else f"no valid JSON at character {wrong.pos}: {wrong.msg}"
        raise _invalid(where) from wrong
    except (RecursionError, ValueError) as wrong:
        raise _invalid(f"no valid JSON: {wrong}") from wrong


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, value in pairs:
        if key in made:
            raise ShapeMismatch(key, "the key is given twice")
        made[key] = value
    return made


def _no_constant(name: str) -> NoReturn:
    raise ShapeMismatch("", f"{name} is not a number of JSON")


def _invalid(problem: str, path: str | None = None) -> DecisionInvalid:
    return DecisionInvalid(f"The reply is not valid: {problem}.", field=path or None)
