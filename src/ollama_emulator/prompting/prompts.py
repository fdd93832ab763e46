"""Compose the answer to a prompt: check the request in the daemon's order, find the text, and cut it at its limit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, cycle, islice
from typing import Any

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.faults import InjectedFault
from ollama_emulator.go import json as gojson
from ollama_emulator.library.models import Model
from ollama_emulator.machine.runners import Ask
from ollama_emulator.prompting import rendering, sampling
from ollama_emulator.prompting.rendering import Prompt, Read
from ollama_emulator.requests import Fields
from ollama_emulator.schemas import compiled_schema, grammars, instances
from ollama_emulator.speech import language, sources, tokens
from ollama_emulator.speech.authoring import authors, gadgets, orders
from ollama_emulator.speech.authoring.authors import AuthorReply, Roster
from ollama_emulator.templating import templates

_FORMAT = 'invalid format: {}; expected "json" or a valid JSON Schema object'
_NO_IMAGES = "Multimodal data provided, but model does not support multimodal requests."
_ENDLESS = 4096  # tokens of an endless method without a limit
_MOST = 10  # context windows that an answer without a limit may fill


@dataclass(frozen=True, slots=True)
class AnswerPlan:
    """A complete answer before it is sent: its pieces, its `done_reason`, and the tokens of the prompt.

    `endless` repeats the pieces for ever, `again` follows them for ever. `unseen` tokens are counted and not sent: the
    end token and those of tool calls. `apart` means that the thinking came from a request of its own, as the daemon
    makes one before a format.
    """

    thinking: Sequence[str]
    pieces: Sequence[str]
    reason: str
    prompt_tokens: int
    endless: bool = False
    tool_calls: tuple[dict[str, Any], ...] = ()
    unseen: int = 0
    apart: bool = False
    again: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Return the number of tokens that the answer is counted for."""
        return (0 if self.apart else len(self.thinking)) + len(self.pieces) + self.unseen


def capable(model: Model, asked: str, fields: Fields, verb: str) -> None:
    """Check that a model has the capabilities that a request needs, before it is loaded.

    Raises: ApiError: 400, it lacks one.
    """
    can = model.capabilities
    if fields.get("think") and "thinking" not in can:
        raise ApiError(400, f"{gojson.quote(asked)} does not support thinking")
    if "completion" not in can:
        raise ApiError(400, f"{gojson.quote(asked)} does not support {verb}")
    if fields.get("tools") and "tools" not in can:
        raise ApiError(400, f"{model.name.full} does not support tools")
    if fields.get("suffix") and "insert" not in can:
        raise ApiError(400, f"{model.name.full} does not support insert")


def wanted_format(fields: Fields) -> Any:
    """Return the format of a request: a schema, "json", or None (also for an empty one).

    Raises: ApiError: 500, the value is no format.
    """
    value = fields.get("format")
    if value is None or value in ("", {}):
        return None
    if value == "json" or isinstance(value, dict):
        return value
    raise ApiError(500, _FORMAT.format(gojson.quote(json.dumps(value, ensure_ascii=False, separators=(",", ":")))))


def _grammatical(form: Mapping[str, Any], *, native: bool) -> None:
    """Check that the runner accepts a schema. Raises: ApiError: 400, the runner or the emulator refuses it."""
    try:
        grammars.check(form, native=native)
    except RecursionError:
        raise compiled_schema.excessive("schema nested so deep") from None
    except (AttributeError, TypeError) as fault:
        raise compiled_schema.unfit(fault) from None


@dataclass(frozen=True, slots=True)
class Manner:
    """Settings of an answer. `sorted_keys`: the schema reached the runner through a Go map, which sorts its keys.

    `on_and_on` stands for random weights: text never ends by itself, no thinking is begun and no tool called. `fault`
    spoils the answer on purpose. `roster` gives the author of code.
    """

    sorted_keys: bool = False
    on_and_on: bool = False
    fault: InjectedFault | None = None
    roster: Roster = field(default_factory=Roster)


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request that the runner accepts: its options, its format, its prompt as read, and the limit of its answer."""

    options: Mapping[str, Any]
    form: Any
    read: Read
    most: int | None


def check(ask: Ask, fields: Fields, prompt: Prompt, manner: Manner) -> CheckedRequest:
    """Read a prompt as the runner does, and check what was asked in the daemon's order.

    Raises: ApiError: the prompt does not fit the window, or an option or the format is refused.
    """
    form = None if _thinks_on(ask.model, fields, prompt, manner) else wanted_format(fields)
    if prompt.images:
        raise compiled_schema.refuse(_NO_IMAGES)
    options = sampling.merge(ask.model.parameters, fields.get("options", {}))
    if not prompt.native:  # the runner's own chat looks at the schema first
        sampling.within_limits(options)
    if isinstance(form, dict):
        _grammatical(form, native=prompt.native)
    sampling.within_limits(options)
    found = rendering.read(ask, prompt, fields, options.get("num_keep"), manner.fault)
    return CheckedRequest(options, form, found, _most_tokens(ask, options, found, native=prompt.native))


def compose(ask: Ask, fields: Fields, prompt: Prompt, manner: Manner) -> AnswerPlan:
    """Read a prompt as the runner does and return the invented answer to it.

    Raises: ApiError: the prompt does not fit the window, or the format is refused.
    """
    model, checked = ask.model, check(ask, fields, prompt, manner)
    options, form, found = checked.options, checked.form, checked.read
    source = sources.gather(found.messages, (model.name.key, form, options.get("seed"), fields.get("tools")))
    turn = _whole_answer(_Question(model, fields, form, found.messages), source, manner)
    aloud = not (manner.on_and_on and _is_opened(model, fields, prompt))
    if form and turn.thinking and not prompt.native and all(templates.parse(model.template).tags):
        second = rendering.after(ask, prompt, fields, "".join(turn.thinking))
        found = rendering.read(ask, second, fields, options.get("num_keep"), None)
        turn = replace(turn, apart=True)
    budget = _Budget(_most_tokens(ask, options, found, native=prompt.native), found.tokens)
    turn = _limit(turn, budget, options, _Free(not isinstance(form, dict), manner.on_and_on))
    return turn if aloud else replace(turn, thinking=turn.pieces, pieces=())


def _thinks_on(model: Model, fields: Fields, prompt: Prompt, manner: Manner) -> bool:
    """Return whether the format is never reached: the daemon waits for the end of thinking, which never comes."""
    if not (manner.on_and_on and fields.has("messages") and rendering.think_option(fields, model)) or prompt.native:
        return False
    return all(templates.parse(model.template).tags)


def _is_opened(model: Model, fields: Fields, prompt: Prompt) -> bool:
    """Return whether the prompt ends with the tag that opens thinking."""
    if not rendering.think_option(fields, model):
        return False
    openings = templates.OPENINGS if prompt.native else templates.parse(model.template).tags[:1]
    return prompt.text.rstrip().endswith(tuple(opening for opening in openings if opening))


@dataclass(frozen=True, slots=True)
class _Question:
    """A request for an answer: its fields, the format in force, and the messages that fit the window."""

    model: Model
    fields: Fields
    form: Any
    messages: Sequence[Mapping[str, Any]]


def _whole_answer(asked: _Question, source: sources.Sources, manner: Manner) -> AnswerPlan:
    """Return the whole answer to a question, not yet cut at a limit."""
    thinking: Sequence[str] = ()
    fields = asked.fields
    if rendering.think_option(fields, asked.model) and not fields.get("raw") and not manner.on_and_on:
        thinking = tokens.pieces(language.answer(source, 200, 1))
    calls = () if asked.form or manner.on_and_on else _tool_calls(fields.get("tools", []), source)
    if calls:
        written = tokens.pieces(json.dumps(calls[0]["function"]))
        return AnswerPlan(thinking, (), "stop", 0, tool_calls=calls, unseen=len(written) + 1)
    reply = _code_reply(asked, source, manner) or AuthorReply(_words(asked.form, source, manner.sorted_keys))
    pieces = tokens.pieces(_spoil(reply.text, manner.fault))
    return AnswerPlan(thinking, pieces, "stop", 0, unseen=1, again=reply.again)


def _code_reply(asked: _Question, source: sources.Sources, manner: Manner) -> AuthorReply | None:
    """Return the reply to a request for code, or None for another request.

    The author is the one that a fault names, else the next of the roster.
    """
    plain = orders.plain_order(asked.form, asked.messages)
    shape = orders.shape_of(asked.form)
    if shape is None and plain is None:
        return None
    fault = manner.fault
    author = fault.text("author", authors.GOOD) if fault is not None and fault.do == "author" else manner.roster.next()
    if plain is not None:
        return authors.write_plain(author, plain, source.number("author"))
    if shape is None:
        return None
    drawn = _draw_instance(asked.form, source, sorted_keys=manner.sorted_keys)
    return authors.write(author, orders.read(shape, asked.messages), drawn, source.number("author"))


@dataclass(frozen=True, slots=True)
class _Budget:
    """The most tokens that an answer may have (None: no limit), and the tokens of its prompt."""

    most: int | None
    prompt_tokens: int


def _most_tokens(ask: Ask, options: Mapping[str, Any], found: Read, *, native: bool) -> int | None:
    """Return the limit that `num_predict` and the context window set to an answer, in tokens; None for no limit.

    A negative or too large `num_predict` means ten windows. Zero means one token in the runner's own chat (`native`),
    else no limit.
    """
    limit = options.get("num_predict", -1)
    largest = _MOST * ask.num_ctx
    most: int | None = largest if limit < 0 else min(limit, largest)
    if limit == 0:
        most = 1 if native else None
    if not ask.shift:
        room = ask.window - found.tokens
        most = room if most is None else min(most, room)
    return most


def _words(form: Any, source: sources.Sources, sorted_keys: bool) -> str:
    """Return the text of an answer: free text, or JSON for a format."""
    if form is None:
        return language.answer(source)
    if form == "json":
        return json.dumps({"answer": language.answer(source)}, ensure_ascii=False)
    drawn = _draw_instance(form, source, sorted_keys=sorted_keys)
    if isinstance(drawn, dict):
        drawn |= gadgets.wish(form, source)
    return json.dumps(drawn, ensure_ascii=False)


def _draw_instance(form: Mapping[str, Any], source: sources.Sources, *, sorted_keys: bool) -> Any:
    """Return an instance of a schema.

    Raises: ApiError: 400, the schema has no instance, or a keyword has an impossible value.
    """
    try:
        return instances.Drawing(form, source, sorted_keys).draw(form)
    except RecursionError:
        raise compiled_schema.excessive("values of a schema without end") from None
    except (AttributeError, TypeError, ValueError, OverflowError) as fault:
        raise compiled_schema.unfit(fault) from None


def _tool_calls(tools: Sequence[Any], source: sources.Sources) -> tuple[dict[str, Any], ...]:
    """Return a call of the first tool that the question names; no call if it names none."""
    asked = source.question_line.lower()
    for tool in tools:
        function = tool.get("function", {}) if isinstance(tool, dict) else {}
        name = str(function.get("name", ""))
        if name and name.lower() in asked:
            form = function.get("parameters") or {"type": "object"}
            filled = {**form, "required": list(form.get("properties", {}))}
            arguments = _draw_instance(filled, source, sorted_keys=True)
            call = {"index": 0, "name": name, "arguments": arguments}
            return ({"id": f"call_{source.number('call', name):x}"[:13], "function": call},)
    return ()


def _spoil(text: str, fault: InjectedFault | None) -> str:
    """Return the answer's text, changed by a fault; `blanks` and `repeat` make it run into its limit."""
    if fault is None:
        return text
    if fault.do == "nel":
        middle = len(text) // 2
        return f"{text[:middle]}\x85{text[middle:]}"
    if fault.do == "broken_json":
        return text[: max(1, len(text) // 2)]
    if fault.do == "text":
        return str(fault.given.get("text", ""))
    if fault.do in ("blanks", "repeat"):
        unit = str(fault.given.get("unit", "\t" if fault.do == "blanks" else " the"))
        return (text[:1] if text[:1] in "{[" else "") + unit * int(fault.number("count", 2000))
    return text


def space_repeats(pieces: Sequence[str]) -> list[str]:
    """Return pieces as they follow themselves, with a blank between; without any, a blank.

    >>> space_repeats(["So", "."]), space_repeats([])
    ([' So', '.'], [' '])
    """
    first = "".join(pieces[:1])
    return [first if first[:1].isspace() else f" {first}", *pieces[1:]]


@dataclass(frozen=True, slots=True)
class _Free:
    """Two facts about an answer: no format ends its text (`bare`), and it never ends by itself (`on_and_on`)."""

    bare: bool
    on_and_on: bool


def _limit(turn: AnswerPlan, budget: _Budget, options: Mapping[str, Any], free: _Free) -> AnswerPlan:
    """Return the answer cut at its first stop sequence and at its limit, which an endless one fills."""
    turn = replace(turn, prompt_tokens=budget.prompt_tokens)
    text = "".join(turn.pieces)
    ends = [at for at in (text.find(stop) for stop in options.get("stop", []) if stop) if at >= 0]
    if ends:
        turn = replace(turn, pieces=tokens.pieces(text[: min(ends)]))
    goes_on = free.bare and not ends and not turn.tool_calls
    if turn.again and not ends:
        room = budget.most or _ENDLESS
        turn = replace(turn, pieces=[*islice(chain(turn.pieces, cycle(turn.again)), room + 1)])
    if budget.most is None:
        return replace(turn, endless=goes_on)
    if goes_on and free.on_and_on:
        turn = replace(
            turn, pieces=list(islice(chain(turn.pieces, cycle(space_repeats(turn.pieces))), budget.most + 1))
        )
    if turn.tokens <= budget.most:
        return turn
    thinking = turn.thinking if turn.apart else turn.thinking[: budget.most]
    left = budget.most - (0 if turn.apart else len(thinking))
    said = turn.pieces[:left]
    unseen = left - len(said)
    return replace(turn, thinking=thinking, pieces=said, reason="length", tool_calls=(), unseen=unseen)
