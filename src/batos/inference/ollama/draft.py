"""An answer in the making: takes what the daemon sends, and stops where it repeats itself without end."""

from __future__ import annotations

from batos.inference.ollama.chat import REPEATED, Answer, ChatRequest, answer_of
from batos.inference.ollama.client import ChatResponse
from batos.inference.ollama.repetition import Repetition, RepetitionWatch
from batos.inference.ollama.stale_rows import StaleRows, numbers_in
from batos.inference.thoughts import ReplyParts, ThoughtFilter, part_values
from batos.protocol.errors import Runaway


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
