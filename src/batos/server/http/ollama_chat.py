"""The face for Ollama's clients: chat and generate, streamed as lines of JSON and whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

from batos.protocol.errors import BatosError, BriefError
from batos.protocol.mission_documents import MissionDocument
from batos.server.http import answer_stream
from batos.server.http.answer_stream import AnswerStream
from batos.server.http.client_missions import ClientMissions, ClientQuestion
from batos.server.http.client_tools import ollama_calls, read_tools
from batos.server.http.door_models import ModelChoice, choose
from batos.server.http.http_errors import words_of
from batos.server.http.http_exchange import NDJSON, Exchange, encode
from batos.server.http.openai_chat import note_ignored
from batos.server.http.sent_messages import SentMessages, read_messages, read_options, text_of

#: The two endpoints, which differ in where the text stands.
Endpoint: TypeAlias = Literal["chat", "generate"]
#: The options that a brief has too, by their names there.
_OPTIONS: Final[Mapping[str, str]] = {
    "temperature": "temperature", "top_p": "top_p", "seed": "seed", "num_predict": "max_tokens",
}  # fmt: skip
_READ: Final = frozenset({
    "model", "name", "messages", "prompt", "system", "stream", "format", "options", "think", "keep_alive", "context",
    "images", "raw", "suffix", "tools",
})  # fmt: skip
#: Fields of `generate` that would change what is asked.
_UNMEANT: Final = ("suffix", "raw", "images")


def model_of(given: Mapping[str, Any]) -> ModelChoice:
    """Return the model of a request, which has it as `model` or as `name`. Raises: UnknownModel."""
    return choose(given.get("model") or given.get("name"))


def now() -> str:
    """Return the time as Ollama writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def _fields(given: Mapping[str, Any], exchange: Exchange, ignored: Sequence[str]) -> dict[str, Any]:
    """Return what a request has of a brief's fields, and name in the reply's head what a brief does not have."""
    options = {} if given.get("options") is None else given["options"]
    if not isinstance(options, Mapping):
        raise BriefError("options: it must be an object", field="options", remedy="Send {name: value}.")
    meant = {name: value for name, value in options.items() if not (name == "num_predict" and _is_endless(value))}
    fields = read_options(meant, _OPTIONS, "options.")
    form = given.get("format")
    if form == "json":
        fields["schema"] = {"type": "object"}
    elif isinstance(form, dict):
        fields["schema"] = form
    elif form:
        raise BriefError("format: it must be json or a JSON schema", field="format", remedy="Correct `format`.")
    note_ignored(
        exchange,
        [
            *(each for each in given.keys() - _READ if given[each]),
            *(f"options.{each}" for each in options.keys() - _OPTIONS),
            *ignored,
        ],
    )
    return fields


def _is_endless(value: object) -> bool:
    """Test if a number of tokens means that there is no limit."""
    return isinstance(value, int) and value < 1


class OllamaChat:
    """Answers requests for chats and for continuations."""

    def __init__(self, asking: ClientMissions) -> None:
        self._asking = asking

    async def chat(self, exchange: Exchange, given: dict[str, Any]) -> None:
        """Answer a request for a chat; one without messages only asks whether the model is there."""
        chosen = model_of(given)
        if given.get("messages") in (None, []):
            await self._load(exchange, given, "chat")
            return
        await self._ask(exchange, given, chosen, read_messages(given["messages"]))

    async def generate(self, exchange: Exchange, given: dict[str, Any]) -> None:
        """Answer a request for a continuation, as one question that stands alone."""
        chosen = model_of(given)
        for name in (each for each in _UNMEANT if given.get(each)):
            raise BriefError(f"{name}: this is not done here", field=name, remedy=f"Leave `{name}` out.")
        prompt = text_of(given.get("prompt"), "prompt")
        if not prompt.strip():
            await self._load(exchange, given, "generate")
            return
        said = SentMessages(prompt, system=text_of(given.get("system"), "system").strip())
        await self._ask(exchange, given, chosen, said, "generate")

    async def _load(self, exchange: Exchange, given: Mapping[str, Any], endpoint: Endpoint) -> None:
        """Answer who only wants a model loaded, or unloaded: both are the mind's own affair."""
        seconds = str(given.get("keep_alive", "")).rstrip("smh")
        reason = "unload" if seconds in {"0", "0.0"} else "load"
        body = {"model": given.get("model"), "created_at": now(), **_text(endpoint, ""), "done": True}
        await exchange.reply_json({**body, "done_reason": reason})

    async def _ask(
        self, exchange: Exchange, given: Mapping[str, Any], chosen: ModelChoice, said: SentMessages,
        endpoint: Endpoint = "chat",
    ) -> None:  # fmt: skip
        takes = self._asking.settings.client_tools if endpoint == "chat" else "ignore"
        tools, ignored = read_tools({"tools": given.get("tools")}, takes)
        fields, streams = _fields(given, exchange, ignored), given.get("stream") is not False
        agent = exchange.headers.get("user-agent", "")
        ask = ClientQuestion("ollama", chosen, said, fields, agent, tools, remembers=endpoint == "chat")
        stream = await answer_stream.begin(self._asking, ask, exchange, streams=streams)
        reply = _Reply(str(given.get("model") or given.get("name")), endpoint, stream, bool(given.get("think")))
        if streams:
            await exchange.stream(NDJSON, reply.lines())
        else:
            await exchange.reply_json(reply.whole(await stream.whole()))


def _text(endpoint: Endpoint, text: str, thinking: str = "", calls: Sequence[object] = ()) -> dict[str, object]:
    """Return the part of a line that has the text, or the calls in its place."""
    more = {**({"thinking": thinking} if thinking else {}), **({"tool_calls": calls} if calls else {})}
    if endpoint == "chat":
        return {"message": {"role": "assistant", "content": text, **more}}
    return {"response": text, **more}


class _Reply:
    """A reply: its lines, and the last of them, which is all of one that does not stream."""

    def __init__(self, model: str, endpoint: Endpoint, stream: AnswerStream, thinks: bool) -> None:
        self._model, self._endpoint, self._stream, self._thinks = model, endpoint, stream, thinks

    def _line(self, text: str, thinking: str = "", calls: Sequence[object] = ()) -> dict[str, object]:
        said = _text(self._endpoint, text, thinking, calls)
        return {"model": self._model, "created_at": now(), **said, "done": False}

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the reply's lines; an error is the last of them. A line without a text is a sign of life."""
        try:
            yield _write(self._line(""))
            async for piece in self._stream.pieces():
                thinking = piece.text if piece.kind == "progress" and self._thinks else ""
                yield _write(self._line(piece.text if piece.kind == "answer" else "", thinking))
            found = await self._stream.following.document()
            if calls := ollama_calls(found):
                yield _write(self._line("", calls=calls))
            yield _write(self.last(found))
        except BatosError as error:
            yield _write({"error": words_of(error)})

    def whole(self, found: MissionDocument) -> dict[str, object]:
        """Return all of a reply in one document."""
        return {**self.last(found), **_text(self._endpoint, self._stream.sent, calls=ollama_calls(found))}

    def last(self, found: MissionDocument) -> dict[str, object]:
        """Return the last line, with the counts; times in nanoseconds."""
        cost = found["cost"]
        spent = round(cost["seconds"] * 1e9)
        reason = "length" if answer_stream.was_cut(found) else "stop"
        return {
            **self._line(""), "done": True, "done_reason": reason,
            "total_duration": spent + round(cost["waited"] * 1e9), "load_duration": 0,
            "prompt_eval_count": cost["prompt_tokens"], "prompt_eval_duration": 0,
            "eval_count": cost["answer_tokens"], "eval_duration": spent, "batos": answer_stream.about(found),
        }  # fmt: skip


def _write(line: Mapping[str, object]) -> bytes:
    return encode(line) + b"\n"
