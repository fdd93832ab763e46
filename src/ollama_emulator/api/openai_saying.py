"""Translate the daemon's replies to OpenAI's form: whole replies, streams of events, lists and errors."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go.json import encode
from ollama_emulator.replies import BARE_JSON, JSON, HttpReply, HttpStream

EVENTS = "text/event-stream"
_DONE = b"data: [DONE]\n\n"
_TYPES = {400: "invalid_request_error", 404: "not_found_error"}

Said = Mapping[str, Any]


def error(status: int, text: str) -> dict[str, Any]:
    """Return the body of an error reply."""
    kind = _TYPES.get(status, "api_error")
    return {"error": {"message": text, "type": kind, "param": None, "code": None}}


def refusal_reply(fault: ApiError) -> HttpReply:
    """Return the reply to a request that cannot be translated, without a newline at its end."""
    return HttpReply(fault.status, encode(error(fault.status, fault.text)).encode(), JSON)


def failure_reply(fault: ApiError) -> HttpReply:
    """Return the reply to a request that the daemon's own handler refused, with a newline at its end."""
    return whole(error(fault.status, fault.text), fault.status)


def whole(value: Any, status: int = 200) -> HttpReply:
    """Return a whole JSON reply, with a newline at its end."""
    return HttpReply(status, (encode(value) + "\n").encode("utf-8", "surrogatepass"), BARE_JSON)


def second(stamp: str) -> int:
    """Return a time of the daemon's (RFC 3339) in seconds since 1970, 0 for ""."""
    head = stamp[:19]
    return int(datetime.fromisoformat(f"{head}+00:00").timestamp()) if head else 0


def usage(said: Said) -> dict[str, int]:
    """Return the numbers of tokens of the prompt and the answer, as OpenAI's `usage`."""
    prompt, answer = int(said.get("prompt_eval_count", 0)), int(said.get("eval_count", 0))
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def _calls(calls: Sequence[Said]) -> list[dict[str, Any]]:
    """Convert the daemon's tool calls to OpenAI's, whose arguments are JSON text."""
    made = []
    for call in calls:
        function = call.get("function") or {}
        called = {"name": function.get("name", ""), "arguments": encode(function.get("arguments") or {})}
        index = function.get("index", 0)
        made.append({"id": call.get("id", ""), "index": index, "type": "function", "function": called})
    return made


@dataclass(slots=True)
class ChatStream:
    """The chat reply to one request, with one id and time for all its chunks."""

    id: str
    created: int
    with_usage: bool = False
    _begun: bool = False
    _called: bool = False

    def whole(self, said: Said) -> dict[str, Any]:
        """Return a whole reply, translated from the daemon's."""
        message, calls = said.get("message") or {}, _calls((said.get("message") or {}).get("tool_calls") or ())
        shown: dict[str, Any] = {"role": message.get("role", ""), "content": message.get("content", "")}
        shown |= {"reasoning": message["thinking"]} if message.get("thinking") else {}
        shown |= {"tool_calls": calls} if calls else {}
        choice = {"index": 0, "message": shown, "finish_reason": "tool_calls" if calls else _reason(said)}
        made = {**self._head("chat.completion", said), "created": second(str(said.get("created_at", "")))}
        made |= {"choices": [choice | _logprobs(said)], "usage": usage(said)}
        return {**made, "_debug_info": said["_debug_info"]} if said.get("_debug_info") else made

    def events(self, said: Said) -> list[dict[str, Any]]:
        """Return the chunks for a line of the daemon's; thinking comes before the answer."""
        message = said.get("message") or {}
        thought = {"reasoning": message["thinking"]} if message.get("thinking") else {}
        calls = _calls(message.get("tool_calls") or ())
        self._called = self._called or bool(calls)
        spoken = {"content": message["content"]} if message.get("content") else {}
        spoken |= {"tool_calls": calls} if calls else {}
        deltas = [thought, spoken] if thought and spoken else [thought | spoken]
        made = [self._chunk(said, [self._choice(delta, None)]) for delta in deltas]
        made[0]["choices"][0] |= _logprobs(said)
        reason = _reason(said)
        if reason is not None:
            made[-1]["choices"][0]["finish_reason"] = "tool_calls" if self._called else reason
        if said.get("done") and self.with_usage:
            made.append({**self._chunk(said, []), "usage": usage(said)})
        return made

    def _choice(self, delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        """Return the choice of a chunk; the first one of a stream also names the role."""
        if not self._begun:
            delta = {"role": "assistant", **delta}
            self._begun = True
        return {"index": 0, "delta": delta, "finish_reason": reason}

    def _chunk(self, said: Said, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._head("chat.completion.chunk", said), "choices": choices}

    def _head(self, kind: str, said: Said) -> dict[str, Any]:
        head = {"id": self.id, "object": kind, "created": self.created, "model": said.get("model", "")}
        return {**head, "system_fingerprint": "fp_ollama"}


@dataclass(slots=True)
class Completion:
    """The completion reply to one request, with one id and time for all its chunks."""

    id: str
    created: int
    with_usage: bool = False

    def whole(self, said: Said) -> dict[str, Any]:
        """Return a whole reply, translated from the daemon's."""
        head = {"id": self.id, "object": "text_completion", "created": second(str(said.get("created_at", "")))}
        head |= {"model": said.get("model", ""), "system_fingerprint": "fp_ollama"}
        return {**head, "choices": [_text(said)], "usage": usage(said)}

    def events(self, said: Said) -> list[dict[str, Any]]:
        """Return the chunks for a line of the daemon's."""
        made = [self._chunk(said, [_text(said)], {})]
        if said.get("done") and self.with_usage:
            made.append(self._chunk(said, [], said))
        return made

    def _chunk(self, said: Said, choices: list[dict[str, Any]], counted: Said) -> dict[str, Any]:
        head = {"id": self.id, "object": "text_completion", "created": self.created, "choices": choices}
        head |= {"model": said.get("model", ""), "system_fingerprint": "fp_ollama"}
        return {**head, "usage": usage(counted)} if self.with_usage else head


def _text(said: Said) -> dict[str, Any]:
    return {"text": said.get("response", ""), "index": 0, "finish_reason": _reason(said)}


def _reason(said: Said) -> str | None:
    return str(said["done_reason"]) if said.get("done_reason") else None


def _logprobs(said: Said) -> dict[str, Any]:
    return {"logprobs": {"content": said["logprobs"]}} if said.get("logprobs") else {}


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The reply with the vectors of one request; `packed` encodes them in base64."""

    model: str
    packed: bool

    def whole(self, said: Said) -> dict[str, Any]:
        """Return a whole reply, translated from the daemon's."""
        vectors = [_pack_vector(each) if self.packed else each for each in said.get("embeddings") or ()]
        data = [{"object": "embedding", "embedding": each, "index": at} for at, each in enumerate(vectors)]
        tokens = int(said.get("prompt_eval_count", 0))
        counted = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "data": data or None, "model": self.model, "usage": counted}


def _pack_vector(vector: Sequence[float]) -> str:
    return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def event_stream(stream: HttpStream, saying: ChatStream | Completion) -> HttpStream:
    """Return the daemon's stream of lines as a stream of server-sent events."""
    return HttpStream(_events(stream.chunks, saying), EVENTS, stream.status, stream.headers)


def events_of_line(line: bytes, saying: ChatStream | Completion) -> bytes:
    """Return the server-sent events for a line of the daemon's, b"" for a line that is no JSON."""
    try:
        said = json.loads(line)
    except ValueError:
        return b""
    out = b"".join(f"data: {encode(event)}\n\n".encode("utf-8", "surrogatepass") for event in saying.events(said))
    return out + _DONE if said.get("done") else out


async def _events(lines: Any, saying: ChatStream | Completion) -> AsyncIterator[list[bytes]]:
    async with aclosing(lines):
        async for some in lines:
            yield [events for one in some if (events := events_of_line(one, saying))]
