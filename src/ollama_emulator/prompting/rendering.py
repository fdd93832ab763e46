"""Render messages to the prompt that the runner reads: choose the template, leave messages out, refuse others."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.faults import InjectedFault
from ollama_emulator.go.go_values import marshal
from ollama_emulator.go.lex import Malformed
from ollama_emulator.library.models import PROMPT_ALONE, Model
from ollama_emulator.machine.runners import Ask
from ollama_emulator.prompting import sampling
from ollama_emulator.prompting.scripts import Script
from ollama_emulator.requests import Fields
from ollama_emulator.schemas import compiled_schema
from ollama_emulator.templating import templates
from ollama_emulator.templating.chattemplate import CHATML
from ollama_emulator.templating.templates import Message, Values
from ollama_emulator.tokenizers import vocabulary
from ollama_emulator.tokenizers.vocabulary import TokenEstimate, Vocabulary

_EXCEEDS = "request ({} tokens) exceeds the available context size ({} tokens), try increasing it"
_UNSHIFTED = (
    "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the "
    "context length in settings, or use a model with a longer context length"
)
_KEEP = 4  # default number of tokens that stay in front when a prompt is cut
_MOST_MESSAGES = 1 << 14  # of one conversation, which is rendered several times until it fits
_SHORT_OF = ("qwen3", "deepseek-r1")  # models whose prompts leave out the thinking of earlier answers


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: its text, the messages in it, and the number of images.

    With `native` the runner's template wrote it.
    """

    text: str
    messages: Sequence[Message]
    images: int = 0
    native: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """A prompt after it was cut to the window: its token ids, and the messages, or the rest of the last one.

    The ids are invented for weights without a vocabulary. `text` is the prompt before it was cut.
    """

    ids: Sequence[int]
    messages: Sequence[Message]
    text: str

    @property
    def tokens(self) -> int:
        """Return the number of tokens."""
        return len(self.ids)


def chat(ask: Ask, fields: Fields, *, plain: bool = False) -> Prompt:
    """Return the prompt of a request to /api/chat.

    With `plain` the runner was started for a model with a Go template: without one it writes chatml, whatever template
    the weights have. Raises: ApiError: 400 for too many messages, 500 if the template fails.
    """
    model = ask.model
    asked: list[Message] = fields.get("messages", [])
    whole: list[Message] = [*model.messages, *asked]
    if len(whole) > _MOST_MESSAGES:
        raise ApiError(400, f"the emulator reads no more than {_MOST_MESSAGES} messages")
    if model.system and asked[0].get("role", "") != "system":
        whole.insert(0, {"role": "system", "content": model.system})
    whole = _without_thinking(model, whole)
    if not model.rendered:
        return _native(ask, whole, fields, CHATML if plain else "")
    return _by_template(ask, whole, fields, model.template)


def after(ask: Ask, prompt: Prompt, fields: Fields, thought: str) -> Prompt:
    """Return the prompt of the daemon's second request for a format: the first one with the model's thinking."""
    return _by_template(ask, [*prompt.messages, {"role": "assistant", "thinking": thought}], fields, ask.model.template)


def generate(ask: Ask, fields: Fields, *, plain: bool = False) -> Prompt:
    """Return the prompt of a request to /api/generate.

    Raises: ApiError: 500, the template fails, or an id in `context` is unknown.
    """
    model, text = ask.model, str(fields.get("prompt", ""))
    images = list(fields.get("images") or ())
    user: Message = {"role": "user", "content": text, "images": images}
    if fields.get("raw"):
        return Prompt(text, [user], len(images))
    own, suffix = str(fields.get("template", "")), str(fields.get("suffix", ""))
    system = fields.get("system") or model.system
    context = fields.given.get("context")
    whole: list[Message] = [{"role": "system", "content": system}] if system else []
    whole += [*(model.messages if context is None else ()), user]
    before = _context_text(vocabulary_of(ask), context) if context is not None else ""
    if own or suffix:
        values = Values(
            [] if suffix else whole, prompt=text if suffix else "", suffix=suffix, **_think_values(fields, model)
        )
        written = _render_template(own or model.template or PROMPT_ALONE, values)
        return Prompt(before + written, [user], len(images))
    if not model.rendered and model.card.template:
        found = _native(ask, whole, fields, CHATML if plain else "")
    else:
        found = _by_template(ask, whole, fields, (model.template if model.rendered else "") or PROMPT_ALONE)
    return replace(found, text=before + found.text, native=False) if before or found.native else found


def _context_text(known: Vocabulary, ids: Sequence[int]) -> str:
    """Return the text of a request's `context`, a list of token ids. Raises: ApiError: 500, an id is unknown."""
    beyond = next((one for one in ids if known.size is not None and not 0 <= one < known.size), None)
    if beyond is None:
        return known.decode(ids)
    told = f"vector::_M_range_check: __n (which is {beyond % 2**64}) >= this->size() (which is {known.size})"
    inner = {"error": {"code": 500, "message": told, "type": "server_error"}}
    raise ApiError(500, f"detokenize error: {json.dumps(inner, separators=(',', ':'))}")


def vocabulary_of(ask: Ask) -> Vocabulary:
    """Return the vocabulary of the model's weights, by which tokens are counted."""
    return vocabulary.vocabulary_of(ask.model.base, ask.model.card)


def read(ask: Ask, prompt: Prompt, fields: Fields, keep: int | None, fault: InjectedFault | None) -> Read:
    """Return a prompt as the runner reads it, its middle cut out if it is too long; `keep` tokens stay in front.

    Raises: ApiError: 400, it does not fit the window and may not be cut.
    """
    if fault is not None and fault.do == "overflow":
        raise too_long(int(fault.number("n_prompt_tokens", ask.window + 1)), int(fault.number("n_ctx", ask.window)))
    known = vocabulary_of(ask)
    text = prompt.text
    if not prompt.native and known.adds_bos:
        text = text.removeprefix("<bos>")
    ids = known.encode(text, whole=True)
    whole = len(ids)
    if fields.get("truncate", True) and not prompt.native and len(text.encode("utf-8", "replace")) >= ask.num_ctx:
        ids = _cut(ask, ids, _KEEP if keep is None else keep, adds_bos=known.adds_bos)
    if len(ids) >= ask.window:
        raise too_long(len(ids), ask.window)
    if fault is not None and fault.do == "truncate":
        ids = ids[: int(fault.number("tokens", 256))]
    messages = prompt.messages if len(ids) == whole else _shorten_last(prompt.messages, known, ids)
    return Read(ids, messages, text)


def too_long(tokens: int, window: int) -> ApiError:
    """Return the refusal of a prompt of more tokens than the window has: status 400, with JSON as its text."""
    text = _EXCEEDS.format(tokens, window)
    return compiled_schema.refuse(text, "exceed_context_size_error", n_prompt_tokens=tokens, n_ctx=window)


def _cut(ask: Ask, ids: Sequence[int], keep: int, *, adds_bos: bool) -> Sequence[int]:
    """Return the ids of a prompt, without their middle if the window has no room for another token.

    Half of the removable part stays free. Raises: ApiError: 400, the model does not allow cutting.
    """
    if ask.num_ctx <= 1 or len(ids) <= ask.num_ctx - 1:
        return ids
    if not ask.shift:
        raise ApiError(400, _UNSHIFTED)
    keep = min((len(ids) if keep < 0 else keep) + adds_bos, ask.num_ctx - 1)
    room = ask.num_ctx - max((ask.num_ctx - keep) // 2, 1)
    return [*ids[:keep], *ids[len(ids) - (room - keep) :]]


def _shorten_last(messages: Sequence[Message], known: Vocabulary, ids: Sequence[int]) -> Sequence[Message]:
    """Return the end of the last message, as much as the remaining tokens hold."""
    size = len(ids) * vocabulary.BYTES_A_TOKEN if isinstance(known, TokenEstimate) else len(known.decode(ids))
    last = messages[-1]
    return [{**last, "content": str(last.get("content") or "")[-size:]}]


# templates


def _think_values(fields: Fields, model: Model) -> dict[str, Any]:
    """Return the values of `think` for a Go template, as arguments of `Values`."""
    think = think_option(fields, model)
    level = think if isinstance(think, str) else "medium" if think else ""
    return {"think": bool(think), "level": level, "think_set": think is not None}


def think_option(fields: Fields, model: Model) -> bool | str | None:
    """Return the `think` of a request; without one it is True for a model that can think, else None."""
    asked: bool | str | None = fields.get("think")
    return True if asked is None and "thinking" in model.capabilities else asked


def _render_template(template: str, values: Values) -> str:
    """Render a Go template. Raises: ApiError: 500, it is malformed."""
    try:
        return templates.parse(template).render(values)
    except Malformed as wrong:
        raise ApiError(500, str(wrong)) from None


def _by_template(ask: Ask, messages: list[Message], fields: Fields, template: str) -> Prompt:
    """Render with a Go template, and leave out the oldest messages until the prompt fits.

    Results of tools are left out only together with their call.
    """
    thought = _think_values(fields, ask.model)
    tools = fields.get("tools") if fields.has("messages") else []

    def write(kept: Sequence[Message]) -> str:
        return _render_template(template, Values(kept, tools, **thought))

    kept, text = _fit_messages(ask, messages, fields, write, _block_start)
    images = sum(len(message.get("images") or ()) for message in kept)
    if images:
        kept = _tag_images(kept)
        text = write(kept)
    return Prompt(text, kept, images)


def _native(ask: Ask, messages: list[Message], fields: Fields, template: str) -> Prompt:
    """Render with a Jinja template: the given one, else the weights' own, else chatml."""
    card, known = ask.model.card, vocabulary_of(ask)
    template = template or card.template or CHATML
    bos, eos = (vocabulary.token_text(known, name, card.info) for name in ("bos", "eos"))
    think = think_option(fields, ask.model)
    given: dict[str, Any] = {"bos_token": bos, "eos_token": eos, "enable_thinking": think is not False}
    if isinstance(think, str):
        given["reasoning_effort"] = think
    tools = fields.get("tools")
    if tools:
        given["tools"] = json.loads(marshal(templates.tools_of(tools)))

    write = Script(template, given, known, bos, eos).write
    asked = sampling.merge(ask.model.parameters, fields.get("options", {})).get("num_ctx", ask.num_ctx)
    whole = len(messages) < 2 or asked <= 0  # the daemon leaves nothing out for a window of no size
    kept, text = (messages, write(messages)) if whole else _fit_messages(ask, messages, fields, write, _same)
    return Prompt(text, kept, sum(len(message.get("images") or ()) for message in kept), native=True)


def _fit_messages(
    ask: Ask,
    messages: Sequence[Message],
    fields: Fields,
    write: Callable[[Sequence[Message]], str],
    start: Callable[[Sequence[Message], int], int],
) -> tuple[Sequence[Message], str]:
    """Return the messages that stay if the oldest are left out until the prompt fits, and that prompt.

    System messages and the last message always stay. `write` renders messages; `start` moves a cut to a place where it
    may be.
    """
    text = write(messages)
    if not fields.get("truncate", True) or _fits(ask, text) or len(messages) < 2:
        return messages, text

    def candidate(at: int) -> list[Message]:
        first = start(messages, at)
        return [*(message for message in messages[:first] if message.get("role") == "system"), *messages[first:]]

    low, high = 1, len(messages) - 1
    while low < high:  # fewer messages never make a longer prompt
        middle = (low + high) // 2
        if _fits(ask, write(candidate(middle))):
            high = middle
        else:
            low = middle + 1
    kept = candidate(low)
    return kept, write(kept)


def _fits(ask: Ask, text: str) -> bool:
    """Return whether a prompt fits the window; a short text is not counted."""
    return len(text) < ask.num_ctx // 4 or len(vocabulary_of(ask).encode(text)) <= ask.num_ctx


def _same(messages: Sequence[Message], at: int) -> int:
    return at


def _block_start(messages: Sequence[Message], at: int) -> int:
    """Return the index of the answer whose tool call the message at `at` is a result of, else `at`."""
    if messages[at].get("role") != "tool":
        return at
    first = at
    while first > 0 and messages[first - 1].get("role") == "tool":
        first -= 1
    called = first > 0 and messages[first - 1].get("role") == "assistant" and messages[first - 1].get("tool_calls")
    return first - 1 if called else at


def _tag_images(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with a mark for each image, numbered through all messages."""
    found: list[Message] = []
    number = 0
    for message in messages:
        content, marks = str(message.get("content") or ""), ""
        for _ in message.get("images") or ():
            mark = f"[img-{number}]"
            number += 1
            if "[img]" in content:
                content = content.replace("[img]", mark, 1)
            else:
                marks += mark
        found.append({**message, "content": marks + content})
    return found


def _without_thinking(model: Model, messages: list[Message]) -> list[Message]:
    """Return the messages, for models in `_SHORT_OF` without the `<think>` blocks before the last question."""
    if model.card.architecture not in _SHORT_OF and model.name.model not in _SHORT_OF:
        return messages
    asked = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    found: list[Message] = []
    for at, message in enumerate(messages):
        content = str(message.get("content") or "")
        if at < asked and message.get("role") == "assistant" and content.lstrip().startswith("<think>"):
            message = {**message, "content": content.partition("</think>")[2].lstrip()}
        found.append(message)
    return found
