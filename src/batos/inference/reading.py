"""Reading an answer from the client, line by line or in one piece, until it says that it is done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from batos.errors import OllamaTimeout, Runaway
from batos.inference import failures
from batos.inference.chat import Answer, Draft, answer_of, runaway_in
from batos.inference.client import ChatResponse
from batos.inference.deadline import Deadlines, PhaseTimer


class Reading:
    """One streamed answer being read; `parts` is the client's async generator, `on_token` hears the content."""

    __slots__ = ("_draft", "_model", "_on_token", "_parts")

    def __init__(self, model: str, parts: Any, draft: Draft, on_token: Callable[[str], None] | None) -> None:
        self._model = model
        self._parts = parts
        self._draft = draft
        self._on_token = on_token

    async def whole(self, timer: PhaseTimer, deadlines: Deadlines, peer: failures.Peer) -> Answer:
        """Read to the end. The stream is closed however this is left: the daemon then stops generating."""
        last: ChatResponse | None = None
        try:
            async with aclosing(self._parts):
                with timer:
                    last = await self._to_done(timer, deadlines, peer)
                    timer.enter("between_tokens", deadlines.drain)
                    await self._drain()
        except OllamaTimeout:
            if last is None:
                raise
        return self._draft.finished(last)

    async def _to_done(self, timer: PhaseTimer, deadlines: Deadlines, peer: failures.Peer) -> ChatResponse:
        began = False
        draft = self._draft
        while True:
            try:
                part: ChatResponse = await anext(self._parts)
            except StopAsyncIteration:
                raise failures.not_done("".join(draft.content)) from None
            except Exception as raw:
                raise failures.translate(raw, peer, model=self._model, began=began) from raw
            if began:
                timer.touch()
            else:
                began = True
                timer.enter("between_tokens", deadlines.between_tokens)
            message = part.message
            if message.thinking:
                draft.ponder(message.thinking)
            piece = message.content
            if piece:
                draft.take(piece)
                if self._on_token is not None:
                    self._on_token(piece)
            if part.done:
                return part

    async def _drain(self) -> None:
        try:
            async for _ in self._parts:
                pass
        except Exception:  # the answer is whole: what breaks behind it only costs the connection
            pass


def entire(reply: ChatResponse, *, structured: bool) -> Answer:
    """The answer of a reply that came in one piece; Runaway or StreamCut if it is none."""
    text = reply.message.content or ""
    ended = bool(reply.done) and reply.done_reason == "stop"
    kind = runaway_in(text, structured=structured, ended=ended)
    if kind:
        raise Runaway(kind, reply.eval_count or 0)
    if not reply.done:
        raise failures.not_done(text)
    return answer_of(text, reply.message.thinking or "", reply)
