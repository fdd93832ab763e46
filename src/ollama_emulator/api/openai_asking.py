"""Translate requests in OpenAI's form to the daemon's own, and refuse those that the daemon refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go.json import interface
from ollama_emulator.go.types import BASE64

_BAD_MESSAGE = "invalid message format"
_BAD_ARGUMENTS = "invalid tool call arguments"
_IMAGE = re.compile(r"data:(?:image/(?:jpeg|jpg|png|webp))?;base64,")
_EFFORTS = ("high", "medium", "low", "max", "none")
_SAMPLED = ("seed", "frequency_penalty", "presence_penalty")
_FORMATS = ("float", "base64")

Given = Mapping[str, Any]


def chat(given: Given) -> dict[str, Any]:
    """Return the daemon's chat request. Raises: ApiError: 400, a message or option is invalid."""
    messages = given.get("messages") or []
    if not messages:
        raise ApiError(400, "[] is too short - 'messages'")
    made: dict[str, Any] = {
        "model": given.get("model", ""),
        "messages": [turn for message in messages for turn in _daemon_messages(message, messages)],
        "stream": bool(given.get("stream")),
        "options": _options(given, {"temperature": 1.0, "top_p": 1.0}),
    }
    made |= {name: given[name] for name in ("tools", "logprobs", "top_logprobs", "_debug_render_only") if name in given}
    wanted = _format(given.get("response_format") or {})
    if wanted is not None:
        made["format"] = wanted
    think = _think(given)
    return made if think is None else {**made, "think": think}


def completion(given: Given) -> dict[str, Any]:
    """Return the daemon's generate request. Raises: ApiError: 400, `stop` has a wrong type."""
    options = _options(given, {"temperature": 1.0, "frequency_penalty": 0, "presence_penalty": 0})
    options["top_p"] = given.get("top_p") or 1.0
    names = ("model", "prompt", "suffix")
    made = {name: given[name] for name in (*names, "_debug_render_only") if name in given}
    if given.get("logprobs"):
        made |= {"logprobs": True, "top_logprobs": given["logprobs"]}
    return {**made, "stream": bool(given.get("stream")), "options": options}


def embedding(given: Given) -> dict[str, Any]:
    """Return the daemon's embed request. Raises: ApiError: 400, the input is missing or the encoding unknown."""
    encoding = str(given.get("encoding_format") or "")
    if encoding and encoding.lower() not in _FORMATS:
        supported = "Supported values: ['float', 'base64']."
        raise ApiError(400, f"Invalid value for 'encoding_format' = {encoding}. {supported}")
    inputs = given.get("input")
    if inputs is None or inputs == []:
        raise ApiError(400, "invalid input")
    made = {"model": given.get("model", ""), "input": [""] if inputs == "" else inputs}
    return {**made, "dimensions": given["dimensions"]} if given.get("dimensions") else made


def _options(given: Given, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the daemon's options for OpenAI's fields, over some defaults. Raises: ApiError: 400, `stop` is no text."""
    options = dict(defaults)
    stop = given.get("stop")
    if isinstance(stop, str):
        options["stop"] = [stop]
    elif isinstance(stop, list):
        wrong = next((item for item in stop if not isinstance(item, str)), None)
        if wrong is not None and "prompt" in given:
            raise ApiError(400, f"invalid type for 'stop' field: {interface(wrong)}")
        options["stop"] = [item for item in stop if isinstance(item, str)]
    if given.get("max_tokens") is not None:
        options["num_predict"] = given["max_tokens"]
    named = (*_SAMPLED, "temperature", "top_p")
    return options | {name: given[name] for name in named if given.get(name) is not None}


def _format(wanted: Mapping[str, Any]) -> Any:
    """Return the daemon's `format` for OpenAI's `response_format`."""
    kind = str(wanted.get("type", "")).strip().lower()
    if kind == "json_object":
        return "json"
    return (wanted.get("json_schema") or {}).get("schema") if kind == "json_schema" else None


def _think(given: Given) -> bool | str | None:
    """Return the value of `think` for a request's reasoning effort. Raises: ApiError: 400, it is unknown."""
    reasoning = given.get("reasoning")
    effort = reasoning.get("effort", "") if reasoning is not None else given.get("reasoning_effort")
    if not effort:
        return None
    if effort not in _EFFORTS:
        allowed = '"high", "medium", "low", "max", or "none"'
        raise ApiError(400, f"invalid reasoning value: '{effort}' (must be {allowed})")
    return False if effort == "none" else str(effort)


def _daemon_messages(message: Given, messages: Sequence[Given]) -> list[dict[str, Any]]:
    """Return the daemon's messages for one of OpenAI's, one for each of its parts."""
    content, calls = message.get("content"), message.get("tool_calls")
    turn: dict[str, Any] = {"role": message.get("role", "")}
    name = _tool(message, messages)
    if isinstance(content, str):
        whole = {**turn, "content": content, "thinking": message.get("reasoning"), "tool_calls": _calls(calls or [])}
        return [_drop_empty_fields({**whole, "tool_name": name, "tool_call_id": message.get("tool_call_id")})]
    if isinstance(content, list):
        parts = [{**turn, **_part_fields(part)} for part in content]
        if parts and calls:
            parts[-1] |= _drop_empty_fields(
                {"tool_calls": _calls(calls), "tool_name": name, "thinking": message.get("reasoning")}
            )
        return parts
    if calls is None:
        raise ApiError(400, f"invalid message content type: {interface(content)}")
    return [
        _drop_empty_fields({**turn, "content": "", "thinking": message.get("reasoning"), "tool_calls": _calls(calls)})
    ]


def _drop_empty_fields(turn: dict[str, Any]) -> dict[str, Any]:
    """Return a message without its empty fields."""
    return {name: value for name, value in turn.items() if value or name in ("role", "content")}


def _tool(message: Given, messages: Sequence[Given]) -> str:
    """Return the name of the tool whose result a message is, from the message or its call, or ""."""
    if str(message.get("role", "")).lower() != "tool":
        return ""
    if message.get("name"):
        return str(message["name"])
    wanted = message.get("tool_call_id")
    for earlier in reversed(messages) if wanted else ():
        for call in earlier.get("tool_calls") or ():
            if call.get("id") == wanted:
                return str((call.get("function") or {}).get("name", ""))
    return ""


def _calls(calls: Sequence[Given]) -> list[dict[str, Any]]:
    """Return OpenAI's calls of tools in the daemon's form. Raises: ApiError: 400, the arguments are no JSON."""
    made = []
    for call in calls:
        function = call.get("function") or {}
        try:
            arguments = json.loads(function.get("arguments", ""))
        except (ValueError, RecursionError):
            raise ApiError(400, _BAD_ARGUMENTS) from None
        if not isinstance(arguments, dict):
            raise ApiError(400, _BAD_ARGUMENTS)
        made.append({"id": call.get("id", ""), "function": {"name": function.get("name", ""), "arguments": arguments}})
    return made


def _part_fields(part: Any) -> dict[str, Any]:
    """Return the fields of a message for one part, a text or an image. Raises: ApiError: 400, it is neither."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return {"content": part["text"]}
    if kind != "image_url":
        raise ApiError(400, _BAD_MESSAGE)
    found = part.get("image_url")
    url = found.get("url") if isinstance(found, dict) else found
    if not isinstance(url, str):
        raise ApiError(400, _BAD_MESSAGE)
    start = _IMAGE.match(url)
    if start is None:
        raise ApiError(400, "invalid image input")
    data = url[start.end() :]
    if not BASE64.fullmatch(data):
        raise ApiError(400, _BAD_MESSAGE)
    return {"content": "", "images": [data]}
