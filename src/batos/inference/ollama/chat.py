"""A chat call as a value: its request, its answer, and the check for an answer that repeats itself without end."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batos.errors import Runaway, UsageError
from batos.inference.ollama.checked import check_count, clean
from batos.inference.ollama.client import ChatResponse
from batos.inference.ollama.transport import WHOLE_PROMPT

DEFAULT_NUM_PREDICT = 1024
EMBED_WINDOW = 2048
WINDOW_STEP = 256

# The daemon's own limit for rendered models: the 31st equal token in a row is no answer any more.
SAME_TOKEN_LIMIT = 30
# A loop of several tokens: so many of them at least, so often; it is looked for once in a while.
LOOP_LONGEST, LOOP_TIMES, LOOP_TOKENS, LOOP_EVERY = 64, 12, 120, 32
# The same words with numbers that count on: of words so often, of as many letters as a sentence has less often, of
# nothing but numbers more often. Rows of a table that somebody asked for are fewer, or have something of their own.
COUNTED_WORDS, COUNTED_SENTENCES, COUNTED_NUMBERS = 128, 64, 512
_SENTENCE_LETTERS = 40
# So many numbers may be in one row, so many characters are looked at, after so many tokens; and what is kept for that.
_ROW_NUMBERS, _COUNTED_CHARS, _COUNTED_EVERY = 4, 32_768, 256
_TAIL_LEAST, _TAIL_MOST = 2_560, 5_120
_NUMBER = re.compile(r"([0-9]{1,15})")
# The grammar of a schema allows at most two newlines and twenty blanks between two parts, so 64 in a row are never
# structure. In free text an indented table or a poem may need more.
SCHEMA_BLANK_LIMIT = 64
TEXT_BLANK_LIMIT = 256

# The daemon's limit counts what is thought and what is said, and a line carries a token or, held back by a parser,
# more; four times the limit is no answer that it counted.
_LINES_A_TOKEN = 4
_LINES_BESIDE = 64

_RELOAD_KEYS = ("num_ctx", "num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread", "draft_num_predict")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A chat call: `messages` are dicts with role and content, `options` are Ollama's own (num_ctx is required).

    `schema` constrains the reply (see schema.py). With `think` None the daemon decides: a model that can think does.
    `keep_alive` is a number of seconds (negative: for ever), or a duration with its unit such as "5m".
    """

    model: str
    messages: tuple[dict[str, str], ...]
    options: dict[str, Any]
    schema: dict[str, Any] | None = None
    think: bool | str | None = None
    keep_alive: float | str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; `done_reason` is "stop" or "length", counts are tokens.

    `prompt_tokens` is the full prompt, cached or not. `wasted` counts streamed tokens that were only blanks between
    the parts of a constrained reply. `total_seconds` has all the waiting in it, for a turn and for the model's load;
    `evaluation_seconds` has what the runner spent on prompt and answer, None where the daemon does not say.
    """

    text: str
    thinking: str
    done_reason: str
    prompt_tokens: int
    answer_tokens: int
    load_seconds: float
    total_seconds: float
    wasted: int = 0
    evaluation_seconds: float | None = None

    @property
    def thinking_seconds(self) -> float:
        """Return the seconds that Ollama thought for it, without waiting."""
        if self.evaluation_seconds is not None:
            return self.evaluation_seconds
        return max(0.0, self.total_seconds - self.load_seconds)


def checked_messages(messages: Sequence[Mapping[str, str]]) -> None:
    """Raise UsageError for a chat without messages, or one of them without a role, or with what is no text."""
    if not messages:
        raise UsageError("a chat needs at least one message: without any it only loads the model", field="messages")
    for message in messages:
        if not message.get("role") or not all(isinstance(said, str) for said in message.values()):
            raise UsageError("a message needs a role, and texts for all it says", field="messages")


def chat_body(request: ChatRequest, options: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
    """Return what /api/chat is sent: what the request leaves open is not named, and no prompt is cut."""
    named = {"format": request.schema, "keep_alive": request.keep_alive, "think": request.think}
    return {
        "model": request.model,
        "stream": stream,
        "options": options,
        **{name: value for name, value in named.items() if value is not None},
        "messages": request.messages,
        **WHOLE_PROMPT,
    }


def checked_model(model: str) -> str:
    """Return a model's name if its calls stay on this machine.

    Raises: UsageError: the name is empty, or its tag is reserved for models elsewhere.
    """
    if not model or not model.strip():
        raise UsageError("a model's name is missing", field="model")
    tag = model.rpartition("/")[2].partition(":")[2]
    if tag in ("cloud", "local") or tag.endswith("-cloud"):
        raise UsageError(
            f"{model!r}: the tag {tag!r} is reserved by Ollama for models that are not local",
            field="model",
            remedy="Name a local model.",
        )
    return model


def checked_options(options: Mapping[str, Any], cpu_threads: int, *, num_predict: int | None) -> dict[str, Any]:
    """Return the options to send: with a window that the daemon uses unchanged, a limit for every answer, and free
    cores.

    `num_predict` is the default limit of an answer in tokens, None for a call that only loads the model.

    Raises: UsageError: an option is not usable; the error names the field.
    """
    sent = dict(options)
    window = sent.get("num_ctx")
    if type(window) is not int or window < WINDOW_STEP or window % WINDOW_STEP:
        raise UsageError(
            f"num_ctx must be a positive multiple of {WINDOW_STEP}, not {window!r}",
            field="options.num_ctx",
            remedy="The daemon would round it up or use its own; give the window that is meant.",
        )
    if num_predict is not None:
        limit = sent.setdefault("num_predict", num_predict)
        if type(limit) is not int or limit < 1:
            raise UsageError(
                f"num_predict must be at least 1, not {limit!r}",
                field="options.num_predict",
                remedy="To the daemon 0 and less mean an answer without end.",
            )
    if sent.get("num_gpu") == 0 and sent.get("num_thread") is None:
        sent["num_thread"] = cpu_threads
    return sent


def default_cpu_threads() -> int:
    """Return half the number of cores, at least 1: a runner on every core is hundreds of times slower beside other
    work.
    """
    return max(1, (os.cpu_count() or 1) // 2)


def runner_key(model: str, options: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the values on which a reload depends: the model and the options with which its runner was started."""
    return (model, *(options.get(key) for key in _RELOAD_KEYS))


def stream_lines(num_predict: int) -> int:
    """Return the most lines that a streamed answer may have, with its thinking and empty lines."""
    return _LINES_A_TOKEN * num_predict + _LINES_BESIDE


class AnswerDraft:
    """An answer in the making: takes pieces as they come; Runaway on blanks, one token or a few without end."""

    __slots__ = (
        "_blank_limit",
        "_blanks",
        "_in_row",
        "_last",
        "_repeats",
        "_structured",
        "_tail",
        "content",
        "thinking",
        "wasted",
    )

    def __init__(self, *, structured: bool) -> None:
        self._structured = structured
        self._blank_limit = SCHEMA_BLANK_LIMIT if structured else TEXT_BLANK_LIMIT
        self._blanks = 0  # characters of blanks in a row, and the pieces they came in
        self._in_row = 0
        self._last = ""
        self._repeats = 1
        self._tail: list[str] = []  # the last pieces, at least as many as a loop is known by
        self.content: list[str] = []
        self.thinking: list[str] = []
        self.wasted = 0

    def take(self, piece: str) -> None:
        """Add a piece of the content."""
        self.content.append(piece)
        self._watch(piece)

    def ponder(self, piece: str) -> None:
        """Add a piece of the thinking."""
        self.thinking.append(piece)
        self._watch(piece)

    def _watch(self, piece: str) -> None:
        self._tail.append(piece)
        if not len(self._tail) % LOOP_EVERY:
            if loops(self._tail):
                raise Runaway("a few tokens", LOOP_TOKENS)
            if not len(self._tail) % _COUNTED_EVERY and counts_on(_end(self._tail)):
                raise Runaway("a row with the next number", len(self._tail))
            if len(self._tail) >= _TAIL_MOST:
                del self._tail[:-_TAIL_LEAST]
        if piece == self._last:
            self._repeats += 1
        else:
            self._last = piece
            self._repeats = 1
        if piece.isspace():
            self._blanks += len(piece)
            self._in_row += 1
            self.wasted += self._structured
            if self._blanks > self._blank_limit or self._repeats > SAME_TOKEN_LIMIT:
                raise Runaway("blanks", self._in_row)
        else:
            self._blanks = self._in_row = 0
            if self._repeats > SAME_TOKEN_LIMIT:
                raise Runaway("one token", self._repeats)

    def finish(self, last: ChatResponse) -> Answer:
        """Return the answer with the counts of the daemon's last line."""
        return answer_of("".join(self.content), "".join(self.thinking), last, self.wasted)


def loops(pieces: Sequence[str]) -> bool:
    """Tell whether a sequence ends in two tokens or some more, over and over."""
    for size in range(2, LOOP_LONGEST + 1):
        whole = max(size * LOOP_TIMES, LOOP_TOKENS)
        if pieces[-1] != pieces[-1 - size :][0]:
            continue
        if len(pieces) >= whole and pieces[-whole:-size] == pieces[size - whole :]:
            return True
    return False


def _end(pieces: Sequence[str]) -> str:
    """Return the last characters of a text that came in pieces, and a piece more than are looked at."""
    size, first = 0, len(pieces)
    while first and size < _COUNTED_CHARS:
        first -= 1
        size += len(pieces[first])
    return "".join(pieces[first:])


def counts_on(text: str) -> bool:
    """Tell whether a text ends in the same words again and again, of which only numbers change, each by one step."""
    parts = _NUMBER.split(text[-_COUNTED_CHARS:])[:-2]  # the last number may be only the beginning of one
    texts, numbers = parts[-1::-2], [int(number) for number in parts[-2::-2]]
    return any(_counts_on(texts, numbers, many) for many in range(1, _ROW_NUMBERS + 1))


def _counts_on(texts: Sequence[str], numbers: Sequence[int], many: int) -> bool:
    """Tell it of rows of so many numbers; the newest text and number come first."""
    letters = sum(map(str.isalpha, "".join(texts[:many])))
    rows = COUNTED_NUMBERS if not letters else COUNTED_WORDS if letters < _SENTENCE_LETTERS else COUNTED_SENTENCES
    whole = rows * many
    if len(numbers) < whole or texts[: whole - many] != texts[many:whole]:
        return False
    steps = [one - before for one, before in zip(numbers[: whole - many], numbers[many:whole], strict=True)]
    return any(steps) and steps[many:] == steps[: len(steps) - many]


def blanks_beyond(text: str, limit: int) -> bool:
    """Test if more than `limit` blanks follow each other. A megabyte of any text takes about 5 ms."""
    size = (limit + 2) // 2  # a longer run covers one such block whole, wherever it begins
    for at in range(0, len(text), size):
        block = text[at : at + size]
        if block.strip():
            continue
        before, after = text[max(0, at - limit) : at], text[at + size : at + size + limit]
        if len(before) - len(before.rstrip()) + len(block) + len(after) - len(after.lstrip()) > limit:
            return True
    return False


def runaway_in(text: str, *, structured: bool, ended: bool) -> str:
    """Return a word for an endless repetition in a text, "" if there is none.

    Looks for blanks anywhere, and at the end of a text that did not end by itself for a repeated token. The borders of
    tokens are not known, so every unit of up to 16 characters is tried.
    """
    limit = SCHEMA_BLANK_LIMIT if structured else TEXT_BLANK_LIMIT
    if blanks_beyond(text, limit):
        return "blanks"
    if ended or len(text) <= SAME_TOKEN_LIMIT:
        return ""
    for size in range(1, 17):
        unit = text[-size:]
        if len(unit) == size and text.endswith(unit * (SAME_TOKEN_LIMIT + 1)):
            return "blanks" if unit.isspace() else "one token"
    if any(text.endswith(text[-size:] * LOOP_TIMES) for size in range(17, 4 * LOOP_LONGEST)):
        return "a few tokens"
    return "a row with the next number" if counts_on(text) else ""


def _evaluation_seconds(last: ChatResponse) -> float | None:
    """Sum the seconds of reading and writing, as far as the daemon tells; a prompt cached whole has no time."""
    if last.prompt_eval_duration is None and last.eval_duration is None:
        return None
    reading = check_count(last.prompt_eval_duration, "duration of reading")
    return (reading + check_count(last.eval_duration, "duration of writing")) / 1e9


def answer_of(text: str, thinking: str, last: ChatResponse, wasted: int = 0) -> Answer:
    """Return the answer with the counts of the line that says `done`."""
    return Answer(
        text=text,
        thinking=thinking,
        done_reason=clean(last.done_reason),
        prompt_tokens=check_count(last.prompt_eval_count, "count of prompt tokens"),
        answer_tokens=check_count(last.eval_count, "count of tokens"),
        load_seconds=check_count(last.load_duration, "load duration") / 1e9,
        total_seconds=check_count(last.total_duration, "duration") / 1e9,
        wasted=wasted,
        evaluation_seconds=_evaluation_seconds(last),
    )
