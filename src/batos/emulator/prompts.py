"""From a chat or generate request to what is to be said: checks in the daemon's order, the window, the words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from batos.emulator import gojson, instances, language, sampling, schema, sources, tokens
from batos.emulator.faults import Fault
from batos.emulator.models import Model
from batos.emulator.replies import ApiError
from batos.emulator.requests import Fields
from batos.emulator.scheduler import Ask

_FORMAT = 'invalid format: {}; expected "json" or a valid JSON Schema object'
_THINK = 'invalid think value: {} (must be "high", "medium", "low", "max", true, or false)'
_LEVELS = ("high", "medium", "low", "max")
_TOO_LONG = "request ({} tokens) exceeds the available context size ({} tokens), try increasing it"
_NO_IMAGES = "Multimodal data provided, but model does not support multimodal requests."
_MOST = 10  # windows that an answer without a limit may fill
ENDLESS = -1

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """What is to be answered: the pieces, why they end, and the prompt's tokens. `endless` says them over and over."""

    thinking: str
    pieces: Sequence[str]
    reason: str
    prompt_tokens: int
    endless: bool = False
    tool_calls: tuple[dict[str, Any], ...] = ()


def think_value(fields: Fields) -> bool | str | None:
    """The request's `think`; ApiError 400 for what it cannot be."""
    value = fields.get("think")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _LEVELS:
        return value
    raise ApiError(400, _THINK.format(gojson.quote(value) if isinstance(value, str) else json.dumps(value)))


def capable(model: Model, asked: str, fields: Fields, verb: str) -> None:
    """ApiError 400 where the model lacks what the request needs; before anything is loaded."""
    can = model.capabilities
    if "completion" not in can:
        raise ApiError(400, f"{gojson.quote(asked)} does not support {verb}")
    if fields.get("tools") and "tools" not in can:
        raise ApiError(400, f"{model.name.full} does not support tools")
    if fields.get("suffix") and "insert" not in can:
        raise ApiError(400, f"{model.name.full} does not support insert")
    if think_value(fields) and "thinking" not in can:
        raise ApiError(400, f"{gojson.quote(asked)} does not support thinking")


def wanted_format(fields: Fields) -> Any:
    """None, "json" or a schema; ApiError 500 for what is neither, 400 for a schema that the runner refuses."""
    value = fields.get("format")
    if value is None or value == "":
        return None
    if value == "json":
        return value
    if not isinstance(value, dict):
        raise ApiError(500, _FORMAT.format(gojson.quote(json.dumps(value, ensure_ascii=False, separators=(",", ":")))))
    try:
        schema.check(value)
    except RecursionError:
        raise schema.excessive("schema nested so deep") from None
    except (AttributeError, TypeError) as fault:
        raise schema.unfit(fault) from None
    return value


def conversation(model: Model, messages: Sequence[Message]) -> list[Message]:
    """The messages with what the model keeps for itself in front."""
    whole: list[Message] = [*model.messages, *messages]
    if model.system and str(messages[0].get("role", "")).lower() != "system":
        whole.insert(0, {"role": "system", "content": model.system})
    return whole


@dataclass(frozen=True, slots=True)
class Manner:
    """How words come: keys sorted where a Go map carried the schema; `on_and_on` where text never ends by itself."""

    sorted_keys: bool = False
    on_and_on: bool = False
    fault: Fault | None = None


def compose(ask: Ask, fields: Fields, messages: Sequence[Message], manner: Manner) -> Turn:
    """Fit the conversation into the window and find the words; ApiError 400 where it neither fits nor may be cut."""
    fault = manner.fault
    model, window = ask.model, ask.window
    if any(message.get("images") for message in messages):
        raise schema.refuse(_NO_IMAGES)
    form = wanted_format(fields)
    options = sampling.merged(model.parameters, fields.get("options", {}))
    whole = conversation(model, messages)
    kept, counted = _fitted(model, fields, whole, window, fault)
    source = sources.gather(kept, (model.name.key, form, options.get("seed"), fields.get("tools")))
    thinking = ""
    if "thinking" in model.capabilities and think_value(fields) is not False:
        thinking = language.answer(source, 200, 1)
    calls = () if form else _tool_calls(fields.get("tools", []), source)
    text = "" if calls else _words(form, source, manner.sorted_keys)
    turn = Turn(thinking, tokens.pieces(_spoilt(text, fault)), "stop", counted, tool_calls=calls)
    return _limited(turn, ask, options, fields, on_and_on=manner.on_and_on and not isinstance(form, dict))


def _fitted(
    model: Model, fields: Fields, whole: list[Message], window: int, fault: Fault | None
) -> tuple[list[Message], int]:
    """The messages that are read, and what they count; the oldest are dropped unless the request forbids it."""
    counted = tokens.prompt_count(whole)
    if fault is not None and fault.do == "overflow":
        raise too_long(int(fault.number("n_prompt_tokens", window + 1)), int(fault.number("n_ctx", window)))
    if counted <= window:
        return whole, counted
    if fields.get("truncate") is False:
        raise too_long(counted, window)
    kept = tokens.fit(whole, window)
    counted = tokens.prompt_count(kept)
    if counted > window:
        if not model.rendered:
            raise too_long(counted, window)
        counted = window // 2 + 3  # the prompt is cut to half the window behind its first tokens
        last = str(kept[-1].get("content") or "")
        kept = [{**kept[-1], "content": last[-counted * tokens.BYTES_A_TOKEN :]}]
    return kept, counted


def too_long(counted: int, window: int) -> ApiError:
    """The 400 whose text is itself JSON."""
    text = _TOO_LONG.format(counted, window)
    return schema.refuse(text, "exceed_context_size_error", n_prompt_tokens=counted, n_ctx=window)


def _words(form: Any, source: sources.Sources, sorted_keys: bool) -> str:
    if form is None:
        return language.answer(source)
    if form == "json":
        return json.dumps({"answer": language.answer(source)}, ensure_ascii=False)
    return json.dumps(_drawn(form, source, sorted_keys=sorted_keys), ensure_ascii=False)


def _drawn(form: Mapping[str, Any], source: sources.Sources, *, sorted_keys: bool) -> Any:
    """An instance of a schema; ApiError 400 for one that has none, or whose keywords hold what they cannot."""
    try:
        return instances.Drawing(form, source, sorted_keys).draw(form)
    except RecursionError:
        raise schema.excessive("values of a schema without end") from None
    except (AttributeError, TypeError, ValueError, OverflowError) as fault:
        raise schema.unfit(fault) from None


def _tool_calls(tools: Sequence[Any], source: sources.Sources) -> tuple[dict[str, Any], ...]:
    """A call of the tool that the question names, if it names one."""
    asked = source.asked.lower()
    for tool in tools:
        function = tool.get("function", {}) if isinstance(tool, dict) else {}
        name = str(function.get("name", ""))
        if name and name.lower() in asked:
            form = function.get("parameters") or {"type": "object"}
            filled = {**form, "required": list(form.get("properties", {}))}
            arguments = _drawn(filled, source, sorted_keys=True)
            call = {"index": 0, "name": name, "arguments": arguments}
            return ({"id": f"call_{source.number('call', name):x}"[:13], "function": call},)
    return ()


def _spoilt(text: str, fault: Fault | None) -> str:
    """The words as a fault leaves them; `blanks` and `repeat` go on until the limit."""
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


def _limited(turn: Turn, ask: Ask, options: Mapping[str, Any], fields: Fields, *, on_and_on: bool) -> Turn:
    """The turn cut at a stop sequence, at num_predict, or at the window where it may not slide."""
    said, reason = turn.pieces, turn.reason
    text = "".join(said)
    ends = [at for at in (text.find(stop) for stop in options.get("stop", []) if stop) if at >= 0]
    if ends:
        said = tokens.pieces(text[: min(ends)])
        on_and_on = False
    limit = options.get("num_predict", -1)
    endless = limit == 0
    most = limit if limit > 0 else _MOST * ask.num_ctx
    if fields.get("shift") is False:
        most = min(most, ask.window - turn.prompt_tokens)
        endless = False
    if on_and_on and not endless:
        said = list(islice(cycle(said or [" "]), most + 1))
    if len(said) > most and not endless:
        said, reason = said[: max(most, 0)], "length"
    return Turn(turn.thinking, said, reason, turn.prompt_tokens, endless, turn.tool_calls)
