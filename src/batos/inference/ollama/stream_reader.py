"""Reads an answer while it is written, line by line or in one piece, and stops where it repeats itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from batos.inference.ollama import failures
from batos.inference.ollama.chat import REPEATED, Answer, ChatRequest, answer_of, stream_lines
from batos.inference.ollama.client import ChatResponse, ResponseError, check_count, clean
from batos.inference.ollama.deadline import Deadlines, PhaseTimer
from batos.inference.ollama.repetition import Repetition, RepetitionWatch, StaleRows, numbers_in, repetition_in
from batos.inference.thoughts import ReplyParts, ThoughtFilter, part, part_values
from batos.protocol.errors import OllamaTimeout, Runaway


class AnswerDraft:
    """An answer to a request in the making; a Runaway stops it, and `salvage` returns what stands of it then.

    `turned` tells that what was said so far has turned out to be thought.
    """

    __slots__ = (
        "_content", "_filter", "_found", "_keep", "_rows", "_structured", "_taken", "_thinking", "_told", "turned",
        "wasted",
    )  # fmt: skip

    def __init__(self, request: ChatRequest) -> None:
        self._structured = request.schema is not None
        self._keep = None if self._structured else request.keep
        told = "\n\n".join(each["content"] for each in request.messages if each["role"] == "system")
        self._told = told
        self._content = RepetitionWatch(structured=self._structured, instructions=told)
        self._thinking = RepetitionWatch()
        self._filter = ThoughtFilter(structured=self._structured)
        self._taken, self.turned = 0, False
        shown = (each["content"] for each in request.messages)
        self._rows = StaleRows(numbers_in(shown)) if request.from_text and not self._structured else None
        self._found: Repetition | None = None
        self.wasted = 0

    @property
    def content(self) -> str:
        """Return the content so far."""
        return self._content.text

    def take(self, piece: str) -> str:
        """Add a piece of the content; return what is said in it. Raises Runaway if it repeats itself without end."""
        if self._structured and piece.isspace():
            self.wasted += 1
        self._taken += 1
        return self._add(self._filter.add(piece))

    def end(self) -> str:
        """Return what is said at the end of the content, which may have been the beginning of a mark."""
        return self._add(self._filter.end())

    def _add(self, parted: ReplyParts) -> str:
        if parted.turned:
            for piece in self._content.pieces:
                self._thinking.add(piece)
            self._content = RepetitionWatch(structured=self._structured, instructions=self._told)
            self.turned = True
        if parted.thought:
            self._refuse(self._thinking.add(parted.thought))
        if parted.said:
            self._found = self._content.add(parted.said) or self._stale_rows(parted.said)
            self._refuse(self._found)
        return parted.said

    def _stale_rows(self, piece: str) -> Repetition | None:
        found = self._rows.add(piece) if self._rows is not None else None
        return Repetition("rows without anything new", *found) if found else None

    def ponder(self, piece: str) -> None:
        """Add a piece of the thinking. Raises Runaway if it repeats itself without end."""
        self._taken += 1
        self._refuse(self._thinking.add(piece))

    def _refuse(self, found: Repetition | None) -> None:
        if found is not None:
            raise Runaway(found.kind, self._taken)

    def salvage(self, seconds: float, evaluating: float) -> Answer | None:
        """Return the answer that stands of a text that repeats itself, None if none does.

        The call took so many seconds, and its tokens so many of them.
        """
        if self._found is None or self._keep is None:
            return None
        text = self._keep(self.content[: self._found.most], self._found.until)
        if not text:
            return None
        ends = 0
        used = next(
            count
            for count, piece in enumerate(self._content.pieces, start=1)
            if (ends := ends + len(piece)) >= len(text)
        )
        return Answer(
            text=text,
            thinking=self._thinking.text,
            done_reason=REPEATED,
            prompt_tokens=0,
            answer_tokens=self._taken,
            load_seconds=0.0,
            total_seconds=seconds,
            wasted=len(self._content.pieces) - used,
            evaluation_seconds=evaluating,
        )

    def finish(self, last: ChatResponse) -> Answer:
        """Return the answer with the counts of the daemon's last line."""
        content = part_values(self.content) if self._structured else ReplyParts(self.content)
        thinking = "\n".join(filter(None, (self._thinking.text.strip(), content.thought)))
        return answer_of(content.said, thinking, last, self.wasted)


#: Lines that are read out of bytes that lie ready; then other tasks and deadlines have their turn.
AT_ONCE = 128
_BEHIND_DONE = 64  # lines behind the one with `done` that are waited for


class StreamReader:
    """A streamed answer that is being read, line by line; `on_token` gets what is said.

    That is kept back until the thoughts have ended where the model is one of the `unmarked`, which begin with thoughts
    and no mark before them. Another model that turns out to do so becomes one of them, and is heard no further; whoever
    heard it has the answer at its end.
    """

    __slots__ = ("_began", "_draft", "_holds", "_lines", "_model", "_most", "_on_token", "_unmarked")

    def __init__(
        self,
        model: str,
        lines: AsyncGenerator[bytes, None],
        draft: AnswerDraft,
        num_predict: int,
        on_token: Callable[[str], None] | None,
        unmarked: set[str],
    ) -> None:
        self._model, self._holds, self._unmarked = model, model in unmarked, unmarked
        self._most = stream_lines(num_predict)
        self._lines = lines
        self._draft = draft
        self._began = 0.0
        self._on_token = on_token

    async def whole(self, timer: PhaseTimer, deadlines: Deadlines, peer: failures.DaemonPeer) -> Answer:
        """Read to the end. The stream is closed however this is left: the daemon then stops generating.

        A cancellation behind the line with `done` ends the wait for the end of the stream, and is not raised, because
        the answer was paid for. The task's `cancelling()` tells of it.
        """
        last: ChatResponse | None = None
        clock = asyncio.get_running_loop().time
        asked = self._began = clock()
        try:
            async with aclosing(self._lines):
                with timer:
                    last = await self._read_to_end(timer, deadlines, peer)
                    timer.enter("between_tokens", deadlines.drain)
                    await self._drain()
        except (OllamaTimeout, asyncio.CancelledError):
            if last is None:
                raise
        except Runaway:
            kept = self._draft.salvage(clock() - asked, clock() - self._began)
            if kept is None:
                raise
            return kept
        self._tell(self._draft.end())
        answer = self._draft.finish(last)
        if self._draft.turned:
            self._unmarked.add(self._model)
        elif self._holds and self._on_token is not None and answer.text:
            self._on_token(answer.text)
        return answer

    async def _read_to_end(self, timer: PhaseTimer, deadlines: Deadlines, peer: failures.DaemonPeer) -> ChatResponse:
        began = False
        for count in range(1, self._most + 1):
            if not count % AT_ONCE:
                await asyncio.sleep(0)
            try:
                part = part_of(await anext(self._lines))
            except StopAsyncIteration:
                raise failures.unfinished_answer(self._draft.content) from None
            except Exception as raw:  # of httpx, h11 or JSON: each has its error of ours
                raise failures.translate(raw, peer, model=self._model, began=began) from raw
            if began:
                timer.touch()
            else:
                began = True
                self._began = asyncio.get_running_loop().time()
                timer.enter("between_tokens", deadlines.between_tokens)
            self._add_part(part)
            if part.done:
                return part
        raise Runaway("length", self._most)

    def _add_part(self, part: ChatResponse) -> None:
        message = part.message
        if message.thinking:
            self._draft.ponder(clean(message.thinking))
        piece = message.content
        if piece:
            if not piece.isascii():
                piece = clean(piece)
            self._tell(self._draft.take(piece))

    def _tell(self, said: str) -> None:
        if said and self._on_token is not None and self._holds == self._draft.turned:
            self._on_token(said)

    async def _drain(self) -> None:
        try:
            for _ in range(_BEHIND_DONE):
                await anext(self._lines)
        except StopAsyncIteration:
            pass
        except Exception:  # the answer is whole: what breaks behind it only costs the connection
            pass


def part_of(line: bytes) -> ChatResponse:
    """Read what the daemon says in a line, or in a whole reply; ResponseError where that is an error."""
    part = json.loads(line.decode("utf-8", "replace"))
    if error := part.get("error"):
        raise ResponseError(error)
    return ChatResponse(**part)


def entire(request: ChatRequest, reply: ChatResponse) -> Answer:
    """Return the answer of a reply that came in one piece.

    Raises: Runaway: the answer repeats itself without end. StreamCut: the reply is not done.
    """
    text = clean(reply.message.content)
    ended = bool(reply.done) and reply.done_reason == "stop"
    kind = repetition_in(text, structured=request.schema is not None, ended=ended)
    if kind:
        raise Runaway(kind, check_count(reply.eval_count, "count of tokens"))
    if not reply.done:
        raise failures.unfinished_answer(text)
    parted = part(text) if request.schema is None else part_values(text)
    thoughts = (clean(reply.message.thinking), parted.thought)
    return answer_of(parted.said, "\n".join(filter(None, map(str.strip, thoughts))), reply)
