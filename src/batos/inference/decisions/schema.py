"""Decisions: pydantic models compiled to schemas that the daemon enforces exactly, and parsed from replies.

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
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Generic, Literal, NoReturn, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from batos.inference.canonical import EncodedSchema
from batos.inference.decisions.schema_compiler import REPEAT_LIMIT, compile_model, ordered_keys
from batos.inference.decisions.shapes import Leaf, Object, ShapeMismatch, tokens_of
from batos.protocol.errors import DecisionInvalid, SchemaError

M = TypeVar("M", bound=BaseModel)
Mode: TypeAlias = Literal["direct", "reason_field", "two_phase"]
MODES: tuple[Mode, ...] = get_args(Mode)

REASONING_CHARS = 600
SLACK_TOKENS = 16
_REASONING = "reasoning"
_PROBLEMS_SHOWN = 5


class CompiledSchema:
    """A model's schema as the daemon enforces it: the `format` to send and the `num_predict` that it can need."""

    def __init__(self, shape: Object) -> None:
        self.shape = shape
        self.format = shape.format
        self.num_predict = shape.tokens + SLACK_TOKENS


def compile_schema(model: type[BaseModel]) -> CompiledSchema:
    """Compile a model; SchemaError names the field and the keyword that the daemon would not enforce."""
    return CompiledSchema(compile_model(model))


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
        compiled = CompiledSchema(self._shape)
        self.format = EncodedSchema(compiled.format)
        self.num_predict: int = compiled.num_predict

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
            value: dict[str, object] = self._shape.back(_parse_json(text), "")
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


def _parse_json(text: str) -> Any:
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
