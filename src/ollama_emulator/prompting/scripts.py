"""Prompts that the runner writes: a Jinja template over messages, and answers that are to be continued."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.schemas import compiled_schema
from ollama_emulator.templating import chattemplate
from ollama_emulator.templating.bounding import NotRendered
from ollama_emulator.tokenizers.vocabulary import Vocabulary

_NOT_WRITTEN = "Unable to generate parser for this template. Automatic parser generation failed: "
_NO_IMAGES = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Script:
    """A Jinja template with its variables beside the messages (`given`), the vocabulary, and the bos and eos tokens."""

    template: str
    given: Mapping[str, Any]
    known: Vocabulary
    bos: str
    eos: str

    def write(self, messages: Sequence[Message]) -> str:
        """Return the prompt for messages; if the last is an assistant's it is left open, so that the answer continues
        it.

        Raises: ApiError: 400 or 500, the runner refuses the messages.
        """
        for message in messages:
            if message.get("images"):
                inner = {"error": {"code": 500, "message": _NO_IMAGES, "type": "server_error"}}
                raise ApiError(500, json.dumps(inner, separators=(",", ":")))
        if not messages or messages[-1].get("role") != "assistant":
            return self._render(messages, opened=True)
        before, last = messages[:-1], messages[-1]
        if before and before[-1].get("role") == "assistant":
            raise compiled_schema.refuse("Cannot have 2 or more assistant messages at the end of the list.")
        if last.get("tool_calls"):
            raise compiled_schema.refuse("Cannot continue an assistant message that contains tool calls.")
        begun = str(last.get("content") or "")
        written = self._render(before, opened=False)
        if not begun and not last.get("tool_name") and not last.get("tool_call_id"):
            return written
        return written + self._opening(before, written) + begun

    def _opening(self, messages: Sequence[Message], closed: str) -> str:
        """Return the text that the template adds to open an answer; `closed` is the prompt without it."""
        opened = self._render(messages, opened=True)
        same = next((at for at, (one, two) in enumerate(zip(closed, opened, strict=False)) if one != two), len(closed))
        return opened[same:]

    def _render(self, messages: Sequence[Message], *, opened: bool) -> str:
        """Render the chat template, without or (`opened`) with the opening of an answer."""
        given = self.given if opened else {**self.given, "add_generation_prompt": False}
        try:
            text = chattemplate.render(self.template, [_as_runner(message) for message in messages], given)
        except NotRendered as wrong:
            raise compiled_schema.refuse(_NOT_WRITTEN + str(wrong)) from None
        return chattemplate.strip_marks(text, (self.known.adds_bos, self.known.adds_eos), self.bos, self.eos)


def _as_runner(message: Message) -> dict[str, Any]:
    """Return a message as the runner gives it to a template; the role developer becomes system."""
    role = message.get("role", "")
    seen: dict[str, Any] = {
        "role": "system" if role == "developer" else role,
        "content": str(message.get("content") or ""),
    }
    if message.get("tool_call_id"):
        seen["tool_call_id"] = message["tool_call_id"]
    if message.get("tool_name"):
        seen["name"] = message["tool_name"]
    calls = [call.get("function") or {} for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
    if calls:
        seen["tool_calls"] = [
            {"type": "function", "function": {"name": call.get("name", ""), "arguments": call.get("arguments") or {}}}
            for call in calls
        ]
    return seen
