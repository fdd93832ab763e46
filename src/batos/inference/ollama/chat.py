"""A chat call as a value: its request and its answer, and the test if the daemon cut its prompt silently."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from batos.inference.ollama.client import ChatResponse, check_count, clean
from batos.inference.ollama.transport import WHOLE_PROMPT
from batos.protocol.errors import ContextOverflow, UsageError

DEFAULT_NUM_PREDICT = 1024
EMBED_WINDOW = 2048
WINDOW_STEP = 256

#: The `done_reason` of an answer that was stopped because it repeated itself, and of which the beginning stands.
REPEATED: Final = "repeated"

# The daemon's limit counts what is thought and what is said, and a line carries a token or, held back by a parser,
# more; four times the limit is no answer that it counted.
_LINES_A_TOKEN = 4
_LINES_BESIDE = 64

_RELOAD_KEYS = ("num_ctx", "num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread", "draft_num_predict")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A chat call: `messages` are dicts with role and content, `options` are Ollama's own (num_ctx is required).

    `schema` constrains the reply (see schema.py). With `think` None the daemon decides: a model that can think does.
    `keep_alive` is a number of seconds (negative: for ever), or a duration with its unit such as "5m". `keep` returns
    what may stand of a text from whose given place on nothing is new; without it, a text that repeats itself is a
    Runaway. With `from_text` the answer follows from what the messages show, so that row after row of numbers that they
    do not show is a repetition too.
    """

    model: str
    messages: tuple[dict[str, str], ...]
    options: dict[str, Any]
    schema: dict[str, Any] | None = None
    think: bool | str | None = None
    keep_alive: float | str | None = None
    keep: Callable[[str, int], str] | None = None
    from_text: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; `done_reason` is "stop", "length" or "repeated", counts are tokens.

    `prompt_tokens` is the full prompt, cached or not. `wasted` counts streamed tokens that were only blanks between
    the parts of a constrained reply, or stood behind what was kept of a text that repeated itself. Such an answer has
    no counts of the daemon's: its tokens are counted as they came, and those of its prompt are 0. `total_seconds` has
    all the waiting in it, for a turn and for the model's load; `evaluation_seconds` has what the runner spent on prompt
    and answer, None where the daemon does not say, and `reading_seconds` what of that on the prompt.
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
    reading_seconds: float = 0.0

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


def chat_body(request: ChatRequest, options: Mapping[str, object], *, stream: bool) -> dict[str, object]:
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


def checked_options(options: Mapping[str, object], cpu_threads: int, *, num_predict: int | None) -> dict[str, Any]:
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


def runner_key(model: str, options: Mapping[str, object]) -> tuple[object, ...]:
    """Return the values on which a reload depends: the model and the options with which its runner was started."""
    return (model, *(options.get(key) for key in _RELOAD_KEYS))


def stream_lines(num_predict: int) -> int:
    """Return the most lines that a streamed answer may have, with its thinking and empty lines."""
    return _LINES_A_TOKEN * num_predict + _LINES_BESIDE


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
        reading_seconds=check_count(last.prompt_eval_duration, "duration of reading") / 1e9,
    )


#: Words that at least one token stands for. Byte pair vocabularies have no token for two words; a few others have.
WORDS_A_TOKEN = 2
_WORD = re.compile(r"\S*\w\S*")
#: All blanks among the characters of ASCII.
_BLANKS = " \n\t\r\v\f\x1c\x1d\x1e\x1f"


def least_tokens(messages: Iterable[Mapping[str, str]]) -> int:
    """Count the fewest tokens that a prompt can have, by words between blanks.

    This is no estimate: a text without blanks, as in Chinese, counts as one word.

    >>> least_tokens([{"role": "user", "content": "Who closed the breach, and when?"}])
    3
    """
    return sum(len(_WORD.findall(each["content"])) for each in messages) // WORDS_A_TOKEN


def _most_parts(text: str) -> int:
    """Return the most parts between blanks that a text can have, by a count that takes a tenth of a split."""
    return 1 + sum(map(text.count, _BLANKS)) if text.isascii() else (len(text) + 1) // 2


def refuse_cut(request: ChatRequest, answer: Answer) -> Answer:
    """Give the answer back, unless it is one to a part of the prompt: then raise ContextOverflow.

    `truncate: false` forbids the daemon to cut; one that does not know it, or a proxy before it, may do so anyway. A
    count of 0 is none: the daemon leaves it out.
    """
    if answer.prompt_tokens >= sum(_most_parts(each["content"]) for each in request.messages) // WORDS_A_TOKEN:
        return answer
    # Hardly any part between blanks is no word: only where there are too many to have been read are the words among
    # them counted.
    parts = sum(len(each["content"].split()) for each in request.messages)
    if not 0 < answer.prompt_tokens < parts // WORDS_A_TOKEN:
        return answer
    least = least_tokens(request.messages)
    if answer.prompt_tokens < least:
        told = f"{request.model} read {answer.prompt_tokens} tokens of a prompt that has at least {least}: it was cut"
        raise ContextOverflow(None, None, told)
    return answer
