"""Asks a model for native tool calls, in the form of its own template, and reads the calls that come back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from batos.inference.ollama.bridge import Bridge, ChatRequest
from batos.protocol.errors import BatosError, OllamaUnreachable, Runaway
from tasks_data_side import KeptLines, digest_of

#: The words that the template of Qwen2.5 writes behind the system text where it is given tools: the prompt is the same
#: as by a daemon that passes `tools` on, which the emulator's real voice does not.
_TOOLS: Final = (
    "{system}\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with "
    "function signatures within <tools></tools> XML tags:\n<tools>\n{tools}\n</tools>\n\nFor each function call, return"
    " a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{{"name": <function-name>, "arguments": <args-json-object>}}\n</tool_call>'
)
_SYSTEM: Final = "Today is {day}. Call a function only if the request needs one."
#: A call is short, and what is no call is of no interest.
OPTIONS: Final[Mapping[str, Any]] = {"num_ctx": 8192, "num_predict": 96, "temperature": 0.0, "seed": 1}


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A call that a model made by itself, None for no tool, and the tokens that it cost."""

    tool: str | None
    arguments: Mapping[str, Any]
    tokens: int


async def ask_natively(
    bridge: Bridge, model: str, kept: KeptLines, tools: Sequence[Mapping[str, Any]], text: str, day: str
) -> NativeCall:
    """Return the call that a model makes for a request; asked once, then read from the file of kept answers."""
    listed = "\n".join(json.dumps(_function(each), ensure_ascii=False) for each in tools)
    system = _TOOLS.format(system=_SYSTEM.format(day=day), tools=listed)
    messages = ({"role": "system", "content": system}, {"role": "user", "content": text})
    key = digest_of(["native", model, messages, dict(OPTIONS)])
    if key not in kept.rows:
        try:
            found = await bridge.think(ChatRequest(model, messages, dict(OPTIONS)))
            said, tokens = found.text, found.prompt_tokens + found.answer_tokens
        except Runaway as error:
            said, tokens = "", error.wasted
        except OllamaUnreachable:
            raise
        except BatosError:  # what cannot be read is no call
            said, tokens = "", 0
        kept.add(key, {"text": said, "tokens": tokens})
    row = kept.rows[key]
    names = {each["name"] for each in tools}
    for name, arguments in _calls_in(row["text"]):
        if name in names:
            return NativeCall(name, arguments, row["tokens"])
    return NativeCall(None, {}, row["tokens"])


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": tool["parameters"], "required": list(tool["parameters"])}
    about = {"name": tool["name"], "description": tool["purpose"], "parameters": parameters}
    return {"type": "function", "function": about}


def _calls_in(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and the arguments of each call in a text, with its marks or as plain JSON."""
    decoder = json.JSONDecoder()
    for start in (found.start() for found in re.finditer(r"\{", text)):
        try:
            value, _ = decoder.raw_decode(text, start)
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            arguments = value.get("arguments", value.get("parameters"))
            yield value["name"], arguments if isinstance(arguments, dict) else {}
