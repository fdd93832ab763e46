"""The face for OpenAI's clients: chat completions, streamed and whole, models and embeddings."""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

from batos.inference.embedder import Unembedded
from batos.protocol.errors import BatosError, BriefError, ModelMissing
from batos.protocol.mission_documents import MissionDocument
from batos.server.http import answer_stream
from batos.server.http.answer_stream import AnswerStream, Piece
from batos.server.http.client_missions import ClientMissions, ClientQuestion
from batos.server.http.client_tools import READ, calls_of, openai_calls, read_tools
from batos.server.http.door_models import choose, names
from batos.server.http.http_errors import openai_error
from batos.server.http.http_exchange import SSE, Exchange, encode, event
from batos.server.http.sent_messages import clean, read_messages, read_options

#: The fields of a request that a brief has too, by their names there.
OPTIONS: Final[Mapping[str, str]] = {
    "temperature": "temperature", "top_p": "top_p", "seed": "seed", "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
}  # fmt: skip
#: Fields that are read, or mean nothing where they have their usual value.
_READ: Final = frozenset({
    *OPTIONS, *READ, "messages", "model", "stream", "stream_options", "response_format", "n", "logprobs", "modalities",
    "input", "instructions", "previous_response_id", "background", "text", "store", "max_output_tokens",
})  # fmt: skip
_BEAT: Final = b": beat\n\n"
#: Stands for the words of a chunk; no client can send it in a name.
_WORDS: Final = "\0"
#: Texts of one request for embeddings.
_TEXTS: Final = 256


def note_ignored(exchange: Exchange, given: Iterable[str]) -> None:
    """Name in the reply's head what a request has and a brief does not."""
    if ignored := sorted(clean(each)[:40] for each in given):
        exchange.more["x-batos-ignored"] = ",".join(each for each in ignored[:40] if each.isprintable())


def refuse_unmeant(given: Mapping[str, Any]) -> None:
    """Raise BriefError for what would change an answer's meaning and is not done here."""
    unmeant = {
        "n": given.get("n") not in {None, 1} if not isinstance(given.get("n"), dict | list) else True,
        "logprobs": bool(given.get("logprobs")),
        "modalities": given.get("modalities") not in (None, ["text"]),
    }
    for name in (name for name, is_there in unmeant.items() if is_there):
        raise BriefError(f"{name}: this is not done here", field=name, remedy=f"Leave `{name}` out.")


def schema_of(form: object, field: str) -> dict[str, Any] | None:
    """Return the schema that a response format asks for; None for plain text. Raises: BriefError: it has none."""
    if form is None:
        return None
    kind = form.get("type") if isinstance(form, Mapping) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    if kind == "json_schema" and isinstance(form, Mapping):
        inside = form.get("json_schema", form)
        schema = inside.get("schema") if isinstance(inside, Mapping) else None
        if isinstance(schema, dict):
            return schema
    raise BriefError(
        f"{field}: it must be of the type text, json_object or json_schema with a schema", field=field,
        remedy=f"Correct `{field}`.",
    )  # fmt: skip


class OpenAI:
    """Answers requests for chat completions, models and embeddings."""

    def __init__(self, asking: ClientMissions) -> None:
        self._asking = asking
        self._began = int(time.time())

    async def chat(self, exchange: Exchange, given: dict[str, Any]) -> None:
        """Answer a request for a chat completion."""
        refuse_unmeant(given)
        fields = read_options(given, OPTIONS)
        if (schema := schema_of(given.get("response_format"), "response_format")) is not None:
            fields["schema"] = schema
        if key := exchange.headers.get("idempotency-key"):
            fields["idempotency_key"] = key
        tools, ignored = read_tools(given, self._asking.settings.client_tools)
        ask = ClientQuestion(
            "openai", choose(given.get("model")), read_messages(given.get("messages")), fields,
            exchange.headers.get("user-agent", ""), tools, remembers=not key,
        )  # fmt: skip
        note_ignored(exchange, [*(given.keys() - _READ), *ignored])
        stream = await answer_stream.begin(self._asking, ask, exchange, streams=bool(given.get("stream")))
        reply = _Completion(str(given["model"]), stream, _usage_is_asked(given))
        if given.get("stream"):
            await exchange.stream(SSE, reply.frames())
        else:
            await exchange.reply_json(reply.whole(await stream.whole()))

    async def models(self, exchange: Exchange) -> None:
        """List the models."""
        await exchange.reply_json({"object": "list", "data": [self._model(each) for each in names()]})

    async def model(self, exchange: Exchange, name: str) -> None:
        """Show one model."""
        await exchange.reply_json(self._model(choose(name).name))

    def _model(self, name: str) -> dict[str, object]:
        return {"id": name, "object": "model", "created": self._began, "owned_by": "batos"}

    async def embeddings(self, exchange: Exchange, given: dict[str, Any]) -> None:
        """Answer a request for embeddings."""
        texts = read_texts(given.get("input"))
        form = given.get("encoding_format", "float")
        if form not in ("float", "base64"):
            raise BriefError("encoding_format: it must be float or base64", field="encoding_format")
        if given.get("dimensions") is not None:
            raise BriefError("dimensions: the embedder has its own", field="dimensions", remedy="Leave it out.")
        model, vectors = await embed(self._asking, texts)
        data = [
            {"object": "embedding", "index": place, "embedding": _pack(vector) if form == "base64" else vector}
            for place, vector in enumerate(vectors)
        ]
        used = sum(len(each.encode("utf-8", "replace")) for each in texts) // 4
        usage = {"prompt_tokens": used, "total_tokens": used}
        await exchange.reply_json({"object": "list", "data": data, "model": model, "usage": usage})


def _usage_is_asked(given: Mapping[str, Any]) -> bool:
    options = given.get("stream_options")
    return isinstance(options, Mapping) and bool(options.get("include_usage"))


class _Completion:
    """A chat completion: its chunks, or all of it in one document."""

    def __init__(self, model: str, stream: AnswerStream, tells_usage: bool) -> None:
        self._stream, self._tells_usage = stream, tells_usage
        self._head = {
            "id": f"chatcmpl-{stream.following.mission}", "object": "chat.completion", "created": int(time.time()),
            "model": model,
        }  # fmt: skip
        #: A chunk around the words in it: they are many, and nothing else in them differs.
        self._before, _, self._after = self._chunk({"content": _WORDS}).partition(encode(_WORDS))

    def whole(self, found: MissionDocument) -> dict[str, Any]:
        """Return the completion as a document."""
        text = self._stream.sent
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if noted := answer_stream.annotations_of(found, text, self._stream.exchange.base):
            message["annotations"] = noted
        if calls := openai_calls(found):
            message |= {"content": None, "tool_calls": calls}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(found)}
        return {**self._head, "choices": [choice], "usage": _usage(found), "batos": answer_stream.about(found)}

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the completion in chunks; an error is the last of them."""
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            async for piece in self._stream.pieces():
                yield self._piece(piece)
            found = await self._stream.following.document()
        except BatosError as error:
            yield event(openai_error(error))
            return
        for number, call in enumerate(openai_calls(found)):
            yield self._chunk({"tool_calls": [{"index": number, **call}]})
        last: dict[str, Any] = {}
        if noted := answer_stream.annotations_of(found, self._stream.sent, self._stream.exchange.base):
            last["annotations"] = noted
        yield self._chunk(last, finish=_finish(found), batos=answer_stream.about(found))
        if self._tells_usage:
            yield event({**self._chunk_head(), "choices": [], "usage": _usage(found)})
        yield b"data: [DONE]\n\n"

    def _piece(self, piece: Piece) -> bytes:
        if piece.kind == "beat":
            return _BEAT
        if piece.kind == "progress":  # half of the clients read the one name, half the other
            return self._chunk({"reasoning_content": piece.text, "reasoning": piece.text})
        return self._before + encode(piece.text) + self._after

    def _chunk_head(self) -> dict[str, object]:
        return {**self._head, "object": "chat.completion.chunk"}

    def _chunk(self, delta: Mapping[str, object], finish: str | None = None, **more: object) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": None} if self._tells_usage else {}
        return event({**self._chunk_head(), "choices": [choice], **usage, **more})


def _finish(found: MissionDocument) -> str:
    return "tool_calls" if calls_of(found) else "length" if answer_stream.was_cut(found) else "stop"


def _usage(found: MissionDocument) -> dict[str, int]:
    cost = found["cost"]
    prompt, answer = cost["prompt_tokens"], cost["answer_tokens"]
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


# -- embeddings


def read_texts(given: object, field: str = "input") -> list[str]:
    """Return the texts that are to be embedded. Raises: BriefError: they are none, or too many."""
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
        raise BriefError(
            f"{field}: it must be a text or a list of texts", field=field, remedy="Send texts: tokens are not read."
        )
    if len(texts) > _TEXTS:
        raise BriefError(
            f"{field}: there are {len(texts):,} texts, at most {_TEXTS} are taken", field=field, remedy="Send fewer."
        )
    return [clean(each) for each in texts]


async def embed(asking: ClientMissions, texts: list[str]) -> tuple[str, list[list[float]]]:
    """Return the embedder's name, and a vector for each text. Raises: ModelMissing: there is no embedder."""
    try:
        embedder = await asking.dispatcher.uvm.embedder_finder.find()
        return embedder.model, await embedder.vectors(texts)
    except Unembedded as error:
        raise ModelMissing(str(error)) from error


def _pack(vector: list[float]) -> str:
    """Return a vector as little-endian numbers of four bytes, in base64."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
