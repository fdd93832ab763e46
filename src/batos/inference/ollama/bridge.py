"""The bridge to Ollama: every request goes through it, with deadlines, no silent truncation and one tree of errors."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar, cast

import httpx

from batos.concurrency.threads import count_cancellations
from batos.inference.ollama import catalogue, failures, transport
from batos.inference.ollama.catalogue import Embedding, ModelCard, ModelRow, PullProgress, RunnerRow
from batos.inference.ollama.chat import (
    DEFAULT_NUM_PREDICT,
    EMBED_WINDOW,
    Answer,
    ChatRequest,
    chat_body,
    checked_messages,
    checked_model,
    checked_options,
    default_cpu_threads,
    refuse_cut,
    runner_key,
    stream_lines,
)
from batos.inference.ollama.client import AsyncClient, ChatResponse, ListResponse, ProgressResponse, check_count
from batos.inference.ollama.deadline import Deadlines, PhaseTimer, Pulse, ReadingPace
from batos.inference.ollama.h11_transport import network
from batos.inference.ollama.stream_reader import AT_ONCE, AnswerDraft, StreamReader, entire, part_of
from batos.inference.ollama.transport import (
    PROGRESS,
    WHOLE_CARD,
    OllamaTransport,
    RawExchange,
    bound_of_answer,
    bound_of_stream,
    bound_of_vectors,
    daemon_url,
    limit_replies,
)
from batos.protocol.errors import InternalError, ModelMissing, ModelUnsuitable, OllamaTimeout

__all__ = ["Answer", "Bridge", "ChatRequest", "Deadlines", "Embedding", "ModelCard", "PullProgress"]

T = TypeVar("T")
Models: TypeAlias = list[ModelRow]  # inside the class `list` is a method
Runners: TypeAlias = list[RunnerRow]
EMBED_BATCH = 32  # texts a request: decoding more vectors at once would hold the loop
WARM_SECONDS = 240.0  # less than the daemon's default keep-alive of five minutes
WHOLE_PACE = 0.5  # seconds a token: what a whole answer, of which nothing shows, may take at the slowest


class Bridge:
    """Ollama at one host, for one event loop. Every failure is an OllamaError, or UsageError before anything is sent.

    `transport` replaces the network (tests), `cpu_threads` is num_thread for calls with num_gpu 0: by default half
    of this machine's cores; give it when the daemon runs elsewhere. Close it with `aclose()` or `async with`.
    """

    def __init__(
        self,
        host: str,
        *,
        deadlines: Deadlines | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        cpu_threads: int | None = None,
    ) -> None:
        self.url = daemon_url(host)
        self.deadlines = deadlines or Deadlines()
        self._peer = failures.DaemonPeer(self.url, self.deadlines.connect)
        self._cpu_threads = cpu_threads or default_cpu_threads()
        inner = transport or network(self.url)
        settings: dict[str, Any] = {
            "transport": OllamaTransport(inner),
            "timeout": httpx.Timeout(None, connect=self.deadlines.connect),
            "trust_env": False,
            "follow_redirects": False,
            "headers": {"Accept-Encoding": "identity"},
        }
        self._client = AsyncClient(self.url, **settings)
        self._http = httpx.AsyncClient(base_url=self.url, **settings)
        self._exchange = RawExchange(self.url, inner, self.deadlines.connect)
        self._loop, self._closed = cast("asyncio.AbstractEventLoop | None", None), False
        self._chats = Pulse()
        self._embeds, self._pace = Pulse(behind=self._chats), ReadingPace()
        self._warm: tuple[tuple[object, ...], float] | None = None
        self._unmarked: set[str] = set()  # models whose answers began with thoughts and no mark before them
        self._listed: tuple[bytes, tuple[ModelRow, ...]] = (b"", ())  # the last list of models, as bytes and parsed

    async def __aenter__(self) -> Self:
        self._ready()
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection; what is still being answered is cut, and the daemon stops generating it."""
        self._closed = True
        await self._client.close()  # type: ignore[no-untyped-call]  # the client leaves this one untyped
        await self._http.aclose()

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """Ask a model and wait for its whole answer; `on_token` gets each piece of content as it comes.

        An exception of `on_token` stops the answer and comes out as it is. Leaving, by cancellation too, closes the
        stream, on which the daemon stops generating; behind the last line the answer is returned nevertheless.
        """
        checked_messages(request.messages)
        model = checked_model(request.model)
        options = checked_options(request.options, self._cpu_threads, num_predict=DEFAULT_NUM_PREDICT)
        self._ready()
        key = runner_key(model, options)
        characters = sum(len(message["content"]) for message in request.messages)
        phase, seconds = self._first_line(key, characters)
        most = options["num_predict"]
        asked = chat_body(request, options, stream=stream)
        if stream:
            lines = self._exchange.lines("/api/chat", asked)  # sends nothing yet
            reading = StreamReader(model, lines, AnswerDraft(request), most, on_token, self._unmarked)
            with limit_replies(bound_of_stream(stream_lines(most))):
                answer = await reading.whole(PhaseTimer(phase, seconds, self._chats), self.deadlines, self._peer)
        else:
            seconds += most * WHOLE_PACE
            with limit_replies(bound_of_answer(most)):
                reply = await self._ask(self._whole_reply(asked), phase, seconds, model, self._chats)
            answer = entire(request, reply)
            if on_token is not None and answer.text:
                on_token(answer.text)
        self._warm = None if request.keep_alive == 0 else (key, asyncio.get_running_loop().time())
        self._pace.note(model, characters, answer.reading_seconds)
        return refuse_cut(request, answer)

    async def _whole_reply(self, asked: Mapping[str, object]) -> ChatResponse:
        return part_of(await self._exchange.whole("POST", "/api/chat", asked))

    async def count(self, request: ChatRequest) -> int:
        """Count the tokens of a prompt as the daemon does: one token is generated, and nothing of it is kept."""
        cancelled = count_cancellations()
        answer = await self.think(replace(request, options={**request.options, "num_predict": 1}))
        if count_cancellations() > cancelled:
            raise asyncio.CancelledError
        return answer.prompt_tokens

    async def embed(
        self,
        model: str,
        texts: Sequence[str],
        *,
        options: Mapping[str, object] | None = None,
        keep_alive: float | str | None = None,
    ) -> Embedding:
        """Return one vector for each text. A text longer than the window raises ContextOverflow and is never cut.

        Without a num_ctx the window is 2048 tokens, which the daemon reduces to the length the model was trained for.
        """
        checked_model(model)
        sent = checked_options({"num_ctx": EMBED_WINDOW, **(options or {})}, self._cpu_threads, num_predict=None)
        client, key = self._ready(), runner_key(model, sent)
        vectors: list[list[float]] = []
        tokens, load, total = 0, 0, 0
        for start in range(0, len(texts), EMBED_BATCH):
            batch = list(texts[start : start + EMBED_BATCH])
            phase, seconds = self._first_line(key, sum(map(len, batch)))
            seconds += self.deadlines.between_tokens * (len(batch) - 1)
            call = client.embed(model=model, input=batch, options=sent, keep_alive=keep_alive)
            with limit_replies(bound_of_vectors(len(batch))):
                reply = await self._ask(call, phase, seconds, model, self._embeds)
            vectors.extend(catalogue.vectors_of(reply.embeddings, len(batch)))
            tokens += check_count(reply.prompt_eval_count, "count of prompt tokens")
            load += check_count(reply.load_duration, "load duration")
            total += check_count(reply.total_duration, "duration")
            self._warm = None if keep_alive == 0 else (key, asyncio.get_running_loop().time())
        return Embedding(vectors, tokens, load / 1e9, total / 1e9)

    async def version(self) -> str:
        """Return the daemon's version, such as "0.33.0"."""
        return catalogue.version_of(await self._plain("GET", "/api/version"))

    async def list(self) -> Models:
        """List the models on the daemon's disk, newest first."""
        self._ready()
        return list(await self._reply(self._rows()))

    async def _rows(self) -> tuple[ModelRow, ...]:
        body = await self._exchange.whole("GET", "/api/tags")
        if body != self._listed[0]:  # a mission asks each time and hardly ever hears anything else
            self._listed = body, tuple(catalogue.model_rows(ListResponse(**json.loads(body))))
        return self._listed[1]

    async def show(self, model: str, *, verbose: bool = False) -> ModelCard:
        """Return a model's card, with arrays if `verbose`; raise ModelMissing if the daemon does not have it."""
        checked_model(model)
        if verbose:
            with limit_replies(WHOLE_CARD):
                body = await self._plain("POST", "/api/show", {"model": model, "verbose": True})
                return await asyncio.to_thread(catalogue.whole_card, model, body)
        return catalogue.model_card(model, await self._reply(self._ready().show(model), model))

    async def ps(self) -> Runners:
        """List the runners that the daemon takes for alive. A dead one is listed until its next use."""
        return catalogue.runner_rows(await self._reply(self._ready().ps()))

    async def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
        """Pull a model, yielding its progress; leave early only through `contextlib.aclosing`."""
        checked_model(model)
        lines: Any = await self._ready().pull(model, stream=True)
        async with aclosing(self._progress(lines, model)) as steps:
            async for step in steps:
                yield step

    async def create(
        self,
        model: str,
        *,
        from_: str,
        system: str | None = None,
        parameters: Mapping[str, object] | None = None,
        adapters: Mapping[str, str] | None = None,
        template: str | None = None,
    ) -> AsyncGenerator[PullProgress, None]:
        """Make a model from a local base, yielding its progress; `adapters` maps file names to uploaded digests.

        ModelMissing when the base is not there: the daemon by itself would go to the network for it.
        """
        checked_model(model)
        await self.show(from_)
        lines: Any = await self._ready().create(
            model,
            from_=from_,
            system=system or None,
            parameters=dict(parameters) if parameters else None,
            adapters=dict(adapters) if adapters else None,
            template=template or None,
            stream=True,
        )
        async with aclosing(self._progress(lines, model)) as steps:
            async for step in steps:
                yield step

    async def _progress(
        self, lines: AsyncGenerator[ProgressResponse, None], model: str
    ) -> AsyncGenerator[PullProgress, None]:
        """Yield the lines of a pull or create. Each wait has a deadline, the consumer's own time has none."""
        began, status = False, ""
        async with aclosing(lines):
            for count in itertools.count(1):
                if not count % AT_ONCE:
                    await asyncio.sleep(0)
                try:
                    with PhaseTimer("progress", self.deadlines.progress), limit_replies(PROGRESS):
                        line = await anext(lines)
                except StopAsyncIteration:
                    break
                except OllamaTimeout:
                    raise
                except Exception as raw:  # of httpx, h11 or JSON: each has its error of ours
                    raise failures.progress_error(raw, self._peer, model=model, began=began) from raw
                began = True
                step = catalogue.progress(line)
                status = step.status
                yield step
        if status != "success":
            raise failures.unfinished_pull(model, status)

    async def has_blob(self, digest: str) -> bool:
        """Test if the daemon has the blob `sha256:<64 hex digits>`."""
        self._ready()
        response = await self._reply(self._http.head(f"/api/blobs/{transport.checked_digest(digest)}"))
        if response.status_code == 404:
            return False
        if response.status_code >= 300:
            raise failures.refusal(response.text, response.status_code)
        return True

    async def upload_blob(
        self, path: Path, digest: str | None = None, on_bytes: Callable[[int, int], None] | None = None
    ) -> str:
        """Upload a file unless the daemon has it already, and return its digest. Raise OSError if it cannot be read.

        The file is read a piece at a time, once more if its digest is not given. `on_bytes` gets the bytes sent and the
        size. A file changed meanwhile raises UsageError if it became shorter, else RequestRejected.
        """
        file = await asyncio.to_thread(transport.measure_file, path, digest)

        def on_sent(sent: int) -> None:
            timer.touch()
            if on_bytes is not None:
                on_bytes(sent, file.size)

        if not await self.has_blob(file.digest):
            with PhaseTimer("progress", self.deadlines.progress) as timer:
                await transport.send_file(self._http, self._peer, file, on_sent)
        return file.digest

    async def delete(self, model: str) -> None:
        """Delete a model. A runner that holds it goes on: unload it first."""
        checked_model(model)
        await self._reply(self._ready().delete(model), model)

    async def load(self, model: str, options: Mapping[str, object], keep_alive: float | str | None = None) -> None:
        """Bring a model into memory with the options that its calls will have, else those will load it again."""
        checked_model(model)
        sent = checked_options(options, self._cpu_threads, num_predict=None)
        self._warm = None
        await self._touch_runner(model, sent, keep_alive, "load", self.deadlines.load + self.deadlines.first_token)
        self._warm = (runner_key(model, sent), asyncio.get_running_loop().time())

    async def unload(self, model: str, *, within: float = 10.0) -> bool:
        """Take a model's runner out of memory; return True if it left the daemon's list within `within` seconds.

        While a runner answers, the daemon accepts the request, lists the runner again at the end of the answer, and
        keeps it. Models of one base share a runner, so they are unloaded with it.
        """
        names = await self._runners_of(model)
        self._warm = None
        await self._touch_runner(model, None, 0, "reply", self.deadlines.reply)
        clock = asyncio.get_running_loop().time
        end, pause = clock() + within, 0.02
        while names & {row.name for row in await self.ps()}:
            if clock() >= end:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.5)
        return True

    async def _runners_of(self, model: str) -> set[str]:
        """Return the names in ps that stand for this model's runner: its own, or that of a model with the same base."""
        card = await self.show(model)
        names = set()
        for row in await self.ps():
            try:
                other = await self.show(row.name)
            except ModelMissing:  # deleted while its runner lives on
                continue
            if other.blob == card.blob:
                names.add(row.name)
        return names

    async def _touch_runner(
        self, model: str, options: Mapping[str, object] | None, keep: float | str | None, phase: str, seconds: float
    ) -> None:
        client, pulse = self._ready(), self._chats if phase == "load" else None
        try:
            call = client.chat(model=model, messages=[], options=options, keep_alive=keep)
            await self._ask(call, phase, seconds, model, pulse)
        except ModelUnsuitable:  # an embedding model: an empty list of texts only loads it
            again = client.embed(model=model, input=[], options=options, keep_alive=keep)
            await self._ask(again, phase, seconds, model, pulse)

    def _ready(self) -> AsyncClient:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None:
                raise InternalError("this bridge belongs to another event loop: make one for each")
            self._loop = loop
        if self._closed:
            raise InternalError("this bridge is closed")
        return self._client

    def _first_line(self, key: tuple[object, ...], characters: int) -> tuple[str, float]:
        """Return phase and seconds to wait for the first line, more for longer texts and a slower model.

        Only the runner that answered last is taken for loaded; if that is wrong, the next call waits for the load.
        """
        warm, self._warm = self._warm, None
        first = self.deadlines.first_token_after(characters, self._pace.find(str(key[0])))
        if warm is not None and warm[0] == key and asyncio.get_running_loop().time() - warm[1] < WARM_SECONDS:
            return "first_token", first
        return "load", self.deadlines.load + first

    async def _reply(self, call: Awaitable[T], model: str = "") -> T:
        return await self._ask(call, "reply", self.deadlines.reply, model)

    async def _plain(self, method: str, path: str, sent: Mapping[str, object] | None = None) -> bytes:
        """Return the body of a reply to a request that the client library cannot send."""
        self._ready()
        return await self._reply(self._exchange.whole(method, path, sent), str((sent or {}).get("model", "")))

    async def _ask(self, call: Awaitable[T], phase: str, seconds: float, model: str, pulse: Pulse | None = None) -> T:
        """Wait for a call that answers in one piece; `pulse` is that of the calls behind which it may wait its turn."""
        with PhaseTimer(phase, seconds, pulse) as timer:
            try:
                reply = await call
                timer.touch()
                return reply
            except Exception as raw:  # of httpx, h11 or JSON: each has its error of ours
                raise failures.translate(raw, self._peer, model=model) from raw
