"""A decision or a text from a model: asked in the mode that suits it, parsed, asked again; or by an asker's schema."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from batos.inference.canonical import EncodedSchema
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.inference.schema import SLACK_TOKENS, Mode, ordered_keys, parse_json
from batos.inference.session import Session, Step
from batos.inference.shapes import CHARS_PER_TOKEN, ShapeMismatch, tokens_of
from batos.protocol import brief_checks
from batos.protocol.brief_checks import JsonSchema
from batos.protocol.errors import AnswerCut, AnswerUnreadable, DecisionInvalid, Runaway

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


class ReplyShape(Protocol[V_co]):
    """The shape that a reply is asked for in: a decision by a schema, or free text, whose `format` is None."""

    @property
    def format(self) -> dict[str, object] | None:
        """Return the schema that the daemon enforces."""
        ...

    @property
    def num_predict(self) -> int:
        """Return the tokens that a reply can need."""
        ...

    @property
    def guide(self) -> str:
        """Return the description of the reply for a prompt; "" if it needs none."""
        ...

    def in_mode(self, mode: Mode) -> ReplyShape[V_co]:
        """Return the same shape in another mode."""
        ...

    def parse(self, text: str) -> V_co:
        """Return the value of a reply. Raises: DecisionInvalid: it is none."""
        ...

    def salvage(self, text: str, *, last: bool) -> V_co | None:
        """Return the value of a reply that was cut, or None if it has none. `last`: no longer reply can be had."""
        ...


@dataclass(frozen=True, slots=True)
class SpokenText:
    """A text that a model wrote; `was_cut` tells that it would have gone on."""

    text: str
    was_cut: bool = False


class FreeText:
    """Text of at most `longest` characters. `shorten` returns the whole sentences at the head of a text, or ""."""

    format: Final = None
    guide: Final = ""

    def __init__(self, longest: int, shorten: Callable[[str], str]) -> None:
        self.longest = longest
        self.num_predict = tokens_of(longest) + SLACK_TOKENS
        self._shorten = shorten

    def in_mode(self, mode: Mode) -> FreeText:
        """Return itself: reasoning in the reply would be part of the answer, and two phases are two calls."""
        return self

    def parse(self, text: str) -> SpokenText:
        """Return the text without the blanks around it, cut to its bound at a whole sentence if there is one.

        Raises: DecisionInvalid: there is no text.
        """
        bare = text.strip()
        if not bare:
            raise DecisionInvalid("The reply is not valid: it is empty.")
        if len(bare) <= self.longest:
            return SpokenText(bare)
        head = bare[: self.longest]
        return SpokenText(self._shorten(head).strip() or head.rstrip(), was_cut=True)

    def at_most(self, tokens: int) -> LimitedText:
        """Return the same for a text of at most so many tokens, which may end anywhere."""
        return LimitedText(self.longest, tokens)

    def salvage(self, text: str, *, last: bool) -> SpokenText | None:
        """Return the whole sentences of a text that was cut at its limit of tokens.

        A text that has fewer letters than its bound was cut because its letters cost more tokens than was thought, so
        more of it can be had, unless this is the `last` try.
        """
        bare = text.strip()
        if len(bare) < self.longest and not last:
            return None
        kept = self._shorten(bare[: self.longest]).strip()
        return SpokenText(kept, was_cut=True) if kept else None


class LimitedText(FreeText):
    """Text whose asker has said how many tokens it may have: it is kept as it is where it was cut."""

    def __init__(self, longest: int, tokens: int) -> None:
        super().__init__(longest, str)
        self.num_predict = min(tokens, self.num_predict)

    def salvage(self, text: str, *, last: bool) -> SpokenText | None:
        """Return what there is of the text."""
        return SpokenText(text.strip(), was_cut=True) if text.strip() else None


Messages: TypeAlias = tuple[dict[str, str], ...]

#: The end of the path of a second try, and the reason for one with more room.
AGAIN: Final = "again1"
CUT: Final = "it was cut at its limit; it is asked for again with more room"
#: The temperature of a second try; the other one where the first try had this one or a higher.
WARMER, COOLER = 0.7, 0.3
#: Tokens that free reasoning may take before the constrained answer of mode `two_phase`.
REASONING_TOKENS = 384
#: Tokens of the window that a longer answer leaves free.
SPARE = 8
#: The least growth of a limit that makes a second try worth its price, and the margin over the measured density.
LEAST_GAIN, DENSER = 1.25, 1.2


class Composer(Protocol):
    """Composes the messages around free reasoning: each method returns the given messages and some more."""

    def reason(self, messages: Messages) -> Messages:
        """Ask for free reasoning first."""
        ...

    def conclude(self, messages: Messages, reasoning: str) -> Messages:
        """Ask for the answer, after the reasoning."""
        ...


def no_fault(value: object) -> str:
    """Return "": every valid value is of use."""
    return ""


@dataclass(frozen=True, slots=True)
class Deciding(Generic[V]):
    """A decision to be made: the session, the `request` without its messages, and the composer of these.

    `fault` returns the reason why a valid value is of no use, "" if it is of use.
    """

    session: Session
    request: ChatRequest
    decision: ReplyShape[V]
    mode: str
    step: Step
    composer: Composer
    fault: Callable[[V], str] = no_fault


async def decide(deciding: Deciding[V], messages: Messages) -> tuple[V, str]:
    """Return the decision and its text. Of a text that is cut at last, its whole sentences are returned.

    A reply that is invalid, of no use, cut or without end is asked for once more: the same messages, without that
    reply, with another seed and another temperature. A model that is shown its own loop goes on with it.

    Raises: DecisionInvalid, AnswerCut, Runaway: the second reply is no decision either. Other errors: the bridge's.
    """
    if deciding.mode == "two_phase":
        messages = await _reason_first(deciding, messages)
    request = replace(deciding.request, messages=messages)
    try:
        return await _attempt(deciding, request, deciding.step)
    except (DecisionInvalid, Runaway, AnswerUnreadable) as unusable:
        why = unusable.message
        # A reply that cannot be read was mostly cut within a letter: no counts came with it.
        limit = int(request.options["num_predict"])
        if isinstance(unusable, AnswerUnreadable):
            if 2 * limit > int(request.options["num_ctx"]) // 2:
                raise
            limit *= 2
    except AnswerCut as cut:
        why = CUT
        limit = min(cut.window - cut.prompt_tokens - SPARE, cut.wanted)
        if limit < int(request.options["num_predict"]) * LEAST_GAIN:
            raise
    options = {**sample_differently(request.options), "num_predict": limit}
    return await _attempt(deciding, replace(request, options=options), deciding.step.again(AGAIN, why), last=True)


def sample_differently(options: Mapping[str, Any]) -> dict[str, object]:
    """Return the options with another seed and another temperature, always the same ones."""
    warm = float(options.get("temperature", 0.0)) >= WARMER
    return {**options, "seed": int(options.get("seed", 0)) + 1, "temperature": COOLER if warm else WARMER}


async def _attempt(deciding: Deciding[V], request: ChatRequest, step: Step, *, last: bool = False) -> tuple[V, str]:
    """Return the decision in one reply; a reply that is none is counted as wasted."""
    answer = await deciding.session.think(request, step)
    try:
        if answer.done_reason == "length":
            kept = deciding.decision.salvage(answer.text, last=last)
            if kept is not None:
                return kept, answer.text
            window, limit = int(request.options["num_ctx"]), int(request.options["num_predict"])
            wanted = larger_limit(limit, answer)
            raise AnswerCut(answer.prompt_tokens, answer.answer_tokens, window, wanted, text=answer.text)
        value = deciding.decision.parse(answer.text)
        fault = deciding.fault(value)
        if fault:
            raise DecisionInvalid(f"The reply is of no use: {fault}.")
    except (DecisionInvalid, AnswerCut):
        deciding.session.waste(step.path)
        raise
    return value, answer.text


async def whole(session: Session, request: ChatRequest, step: Step) -> Answer:
    """Return an answer that was not cut: a cut one is asked for again with more room, as far as the window has it.

    The cut one is not shown to the model: small ones go on where it stopped. AnswerCut where there is no more room.
    """
    window, place, more = int(request.options["num_ctx"]), step, 0
    while True:
        limit = int(request.options["num_predict"])
        try:
            answer = await session.think(request, place)
        except AnswerUnreadable:
            # Mostly an answer that was cut within a letter: no counts came with it.
            if more or 2 * limit > window // 2:
                raise
            more, place = more + 1, step.again(f"more{more + 1}", CUT)
            request = replace(request, options={**request.options, "num_predict": 2 * limit})
            continue
        if answer.done_reason != "length":
            return answer
        session.waste(place.path)
        room, needed = window - answer.prompt_tokens - SPARE, larger_limit(limit, answer)
        if room < limit * LEAST_GAIN:
            raise AnswerCut(answer.prompt_tokens, answer.answer_tokens, window, needed)
        request = replace(request, options={**request.options, "num_predict": min(room, needed)})
        more += 1
        place = step.again(f"more{more}", CUT)


def larger_limit(limit: int, answer: Answer) -> int:
    """Return the next limit for an answer that was cut: twice the last, or what its letters cost if they are dense."""
    dense = answer.answer_tokens / max(1, len(answer.text)) * CHARS_PER_TOKEN
    return math.ceil(limit * max(2.0, DENSER * dense))


async def _reason_first(deciding: Deciding[V], messages: Messages) -> Messages:
    """Free reasoning first: small models lose much when they reason inside a grammar (arXiv 2601.07525)."""
    free = deciding.composer.reason(messages)
    options = {**deciding.request.options, "num_predict": REASONING_TOKENS}
    request = replace(deciding.request, messages=free, options=options, schema=None)
    reasoning = await deciding.session.think(request, Step(f"{deciding.step.path}/reason"))
    return deciding.composer.conclude(free, reasoning.text)


#: Letters that an answer may have at first; one that is cut is asked for again with more room.
LONGEST: Final = 2_400
#: The depth to which a prompt describes a schema.
_DEPTH: Final = 4
_REMEDY: Final = "Ask another model (`--model NAME`), or let the schema allow more."
_WORDS: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


class AskedSchema:
    """An answer by a schema: the daemon enforces what it can of it, and the rest is checked in the reply.

    Keys at the top get a letter before them where their order is another than the alphabet's, in which a daemon writes
    them: what is asked for first is to be thought of first. The text of an answer has the asker's own keys.
    """

    num_predict: Final = tokens_of(LONGEST)

    def __init__(self, schema: JsonSchema) -> None:
        self._schema = schema
        properties = schema.get("properties")
        self._keys = ordered_keys(properties) if isinstance(properties, dict) else {}
        self.format = EncodedSchema(self._rename(schema))

    @property
    def guide(self) -> str:
        """Return a line for each key, since a model does not see its grammar."""
        nodes: JsonSchema = self._schema.get("properties", {})
        lines = [f"`{self._keys[name]}`: {self._describe(node)}" for name, node in nodes.items()]
        return "\n".join(lines) or f"JSON: {self._describe(self._schema)}"

    def in_mode(self, mode: Mode) -> AskedSchema:
        """Return itself: reasoning in the reply is no part of what was asked for."""
        return self

    def parse(self, text: str) -> SpokenText:
        """Return a reply as JSON text. Raises: DecisionInvalid: it does not have the schema."""
        try:
            value = parse_json(text)
        except ShapeMismatch as mismatch:
            raise DecisionInvalid(f"The reply is not valid: {mismatch}.") from mismatch
        if isinstance(value, dict):
            own = {key: name for name, key in self._keys.items()}
            value = {own.get(key, key): each for key, each in value.items()}
        if faults := brief_checks.find_faults(self._schema, value):
            raise DecisionInvalid(
                f"The reply does not have the schema: {'; '.join(faults)}.", field="schema", remedy=_REMEDY
            )
        return SpokenText(json.dumps(value, ensure_ascii=False, indent=2))

    def salvage(self, text: str, *, last: bool) -> SpokenText | None:
        """Return None: a part of a value is none."""
        return None

    def _rename(self, schema: JsonSchema) -> JsonSchema:
        """Return the schema with the keys in which the daemon is asked: for all of them where none is called required,
        since a model that may leave out each leaves out all.
        """
        renamed, required = dict(schema), schema.get("required") or list(self._keys)
        if self._keys:
            renamed["properties"] = {self._keys[name]: node for name, node in schema["properties"].items()}
        if required:
            renamed["required"] = [self._keys.get(name, name) for name in required]
        return renamed

    def _describe(self, node: object, depth: int = 0) -> str:
        """Describe in prose what is allowed at a place of the schema."""
        if not isinstance(node, dict) or depth > _DEPTH:
            return "any value"
        if isinstance(reference := node.get("$ref"), str):
            return self._describe(brief_checks.find_part(self._schema, reference), depth + 1)
        about = str(node.get("description") or "")
        allowed = self._describe_type(node, depth)
        return f"{about} ({allowed})" if about else allowed

    def _describe_type(self, node: JsonSchema, depth: int) -> str:
        if "enum" in node or "const" in node:
            values = node.get("enum", [node.get("const")])
            return "one of " + ", ".join(json.dumps(each, ensure_ascii=False) for each in values)
        for several in ("anyOf", "oneOf"):
            if isinstance(node.get(several), list):
                return " or ".join(self._describe(each, depth + 1) for each in node[several])
        kind = node.get("type")
        if isinstance(kind, list):
            return " or ".join(_WORDS.get(str(each), str(each)) for each in kind)
        if kind == "array":
            return f"a list, each {self._describe(node.get('items'), depth + 1)}"
        if isinstance(properties := node.get("properties"), dict):
            inside = (f"`{name}`: {self._describe(each, depth + 1)}" for name, each in properties.items())
            return "an object of " + "; ".join(inside)
        return _WORDS.get(str(kind), "any value" if kind is None else f"an {kind}")
