"""Handle POST /api/chat and /api/generate: loads, unloads, and answers, whole or streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter_ns
from typing import Any

from ollama_emulator.daemon import INJECTED, EmulatedDaemon, Lines, stream
from ollama_emulator.emulator_errors import ApiError, Cut
from ollama_emulator.faults import InjectedFault
from ollama_emulator.go import json as gojson
from ollama_emulator.go.json import encode
from ollama_emulator.http.incoming import Answer, HttpRequest
from ollama_emulator.library import model_tags
from ollama_emulator.library.models import Model
from ollama_emulator.machine.runners import Ask, ModelRunner
from ollama_emulator.prompting import prompts, rendering, sampling
from ollama_emulator.prompting.prompts import Manner
from ollama_emulator.prompting.rendering import Prompt
from ollama_emulator.replies import JSON, HttpReply, HttpStream
from ollama_emulator.requests import Fields
from ollama_emulator.speech import logprobs
from ollama_emulator.voices.voice import Saying, SpeechOrder

DIED = "an error was encountered while running the model: unexpected EOF"


@dataclass(slots=True)
class AnswerCall:
    """A request for an answer: its fields, its model, and the times of its steps (`perf_counter_ns`)."""

    daemon: EmulatedDaemon
    fields: Fields
    model: Model
    asked: str
    fault: InjectedFault | None
    chat: bool
    keep_alive: int | None
    began: int = field(default_factory=perf_counter_ns)
    loaded: int = 0
    #: The time at which it got its slot: waiting before that belongs to neither prompt nor answer.
    answering: int = 0

    def head(self) -> str:
        """Return the JSON text of the fields that begin every line of a reply."""
        return f'{{"model":{encode(self.asked)},"created_at":"{self.daemon.wire_time()}",'

    def body(self, text: str, thinking: str = "", calls: Sequence[Any] = ()) -> str:
        """Return the JSON text of the field with a line's text: `message` for chat, `response` for generate."""
        if not self.chat:
            return f'"response":{encode(text)}' + (f',"thinking":{encode(thinking)}' if thinking else "")
        more = f',"thinking":{encode(thinking)}' if thinking else ""
        more += f',"tool_calls":{encode(list(calls))}' if calls else ""
        return f'"message":{{"role":"assistant","content":{encode(text)}{more}}}'

    def note(self, reason: str) -> Answer:
        """Return the whole reply to a request that only loads or unloads the model."""
        text = f'{self.head()}{self.body("")},"done":true,"done_reason":"{reason}"}}'
        return _reply(text)


def _reply(text: str) -> HttpReply:
    return HttpReply(200, text.encode("utf-8", "surrogatepass"), JSON)


async def chat(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle POST /api/chat."""
    fields, fault = await daemon.open(request, "ChatRequest")
    call = _call(daemon, fields, fault, chat=True)
    if not fields.get("messages") and call.keep_alive == 0:
        daemon.scheduler.unload(call.model)
        return call.note("unload")
    prompts.capable(call.model, call.asked, fields, "chat")
    return await _answer(call, empty=not fields.get("messages"))


async def generate(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle POST /api/generate."""
    fields, fault = await daemon.open(request, "GenerateRequest")
    call = _call(daemon, fields, fault, chat=False)
    if not fields.get("prompt") and call.keep_alive == 0:
        daemon.scheduler.unload(call.model)
        return call.note("unload")
    if fields.get("raw") and (fields.get("system") or fields.get("template") or fields.get("context")):
        raise ApiError(400, "raw mode does not support template, system, or context")
    prompts.capable(call.model, call.asked, fields, "generate")
    return await _answer(call, empty=not fields.get("prompt"))


def _call(daemon: EmulatedDaemon, fields: Fields, fault: InjectedFault | None, *, chat: bool) -> AnswerCall:
    """Check a request up to its model and return it as a call.

    Raises: ApiError: a field is invalid, or no such model.
    """
    if not 0 <= int(fields.get("top_logprobs", 0)) <= logprobs.MOST:
        raise ApiError(400, "top_logprobs must be between 0 and 20")
    asked = str(fields.get("model", ""))
    if not asked:
        raise ApiError(400, "model is required") if chat else ApiError(404, "model '' not found")
    model = daemon.find(model_tags.select(asked))
    if model is None:
        raise ApiError(404, f"model '{asked}' not found")
    if model.remote:
        raise ApiError(403, model_tags.NO_CLOUD.format("is"))
    return AnswerCall(daemon, fields, model, asked, fault, chat, gojson.keep_alive(fields.get("keep_alive")))


async def _answer(call: AnswerCall, *, empty: bool) -> Answer:
    """Answer a checked request: load the model only, show the prompt, stream the answer, or return it whole."""
    fields, daemon = call.fields, call.daemon
    options = sampling.merge(call.model.parameters, fields.get("options", {}))
    ask = daemon.scheduler.ask(call.model, options, fields.get("shift"))
    if empty or fields.get("_debug_render_only"):
        async with daemon.scheduler.runner(ask, call.keep_alive) as runner:
            return call.note("load") if empty else _rendered_prompt(call, _prompt(call, ask, runner))
    if fields.get("stream", True):
        return await stream(_lines(call, ask), _wire_fault(call.fault), daemon.clock)
    return await _whole_reply(call, ask)


def _prompt(call: AnswerCall, ask: Ask, runner: ModelRunner) -> Prompt:
    write = rendering.chat if call.chat else rendering.generate
    return write(ask, call.fields, plain=runner.ask.model.rendered)


def _rendered_prompt(call: AnswerCall, prompt: Prompt) -> Answer:
    """Return the reply to a request with `_debug_render_only`: the prompt instead of an answer."""
    body = '"message":{"role":"","content":""}' if call.chat else '"response":""'
    info: dict[str, Any] = {"rendered_template": prompt.text}
    if prompt.images:
        info["image_count"] = prompt.images
    return _reply(f'{call.head()}{body},"done":false,"_debug_info":{encode(info)}}}')


def _wire_fault(fault: InjectedFault | None) -> InjectedFault | None:
    """Return the fault if it changes lines of the reply and not the answer's text, else None."""
    return fault if fault is not None and fault.do in ("cut", "no_done", "error_line", "bad_line", "stall") else None


@dataclass(frozen=True, slots=True)
class _SpokenStep:
    """A step of an answer that is due, with its prompt."""

    saying: Saying
    prompt: Prompt


async def _spoken_steps(call: AnswerCall, ask: Ask) -> AsyncGenerator[_SpokenStep | None, None]:
    """Yield None once the model is loaded, then the steps of the answer when due."""
    daemon = call.daemon
    async with daemon.scheduler.runner(ask, call.keep_alive) as runner:
        call.loaded = perf_counter_ns()
        yield None
        prompt = _prompt(call, ask, runner)
        async with runner.slots:
            call.answering = perf_counter_ns()
            manner = Manner(prompt.native and call.chat, daemon.options.endless, call.fault, daemon.roster)
            voice = daemon.voice(runner, call.fault)
            steps = voice.say(SpeechOrder(ask, call.fields, prompt, manner, runner))
            async with aclosing(steps), aclosing(_cut_at_kill(call, runner, steps)) as due:
                async for saying in due:
                    yield _SpokenStep(saying, prompt)


async def _cut_at_kill(
    call: AnswerCall, runner: ModelRunner, steps: AsyncGenerator[Saying, None]
) -> AsyncGenerator[Saying, None]:
    """Yield the steps up to the piece at which a fault kills the runner.

    Raises: ApiError: 500, the runner was killed.
    """
    left = _pieces_before_kill(call)
    async for saying in steps:
        if left == 0:
            break
        if runner.dead:
            raise ApiError(500, DIED)
        if left is None:
            yield saying
            continue
        yield replace(saying, pieces=saying.pieces[:left])
        left = max(0, left - (len(saying.pieces) or len(saying.thinking)))
        if left == 0:
            break
    if left is not None:
        _kill_runner(call, runner)


def _pieces_before_kill(call: AnswerCall) -> int | None:
    """Return the number of pieces after which a fault kills the runner, or None."""
    kills = call.fault is not None and call.fault.do == "kill_answer"
    return int(call.fault.number("after", 1)) if call.fault is not None and kills else None


def _kill_runner(call: AnswerCall, runner: ModelRunner) -> None:
    """Kill the runner as the fault says. Raises: ApiError: 500, it was killed."""
    runner.dead = True
    text = call.fault.text("error", DIED) if call.fault is not None else DIED
    if "out of memory" in text:
        call.daemon.scheduler.end_all()
    raise ApiError(500, text)


async def _lines(call: AnswerCall, ask: Ask) -> Lines:
    """Yield the lines of a streamed answer."""
    spoken: _SpokenStep | None = None
    async with aclosing(_spoken_steps(call, ask)) as saying:
        async for now in saying:
            if now is None:
                yield []
                continue
            head, due, more = call.head(), now.saying, partial(_logprobs, call, saying=now.saying)
            texts = [f'{head}{call.body("", thought)},"done":false}}\n' for thought in due.thinking]
            texts += [f'{head}{call.body(piece)},"done":false{more((piece,))}}}\n' for piece in due.pieces]
            if spoken is None and due.plan.tool_calls and not now.prompt.native:
                texts.append(f'{head}{call.body("", calls=due.plan.tool_calls)},"done":false}}\n')
            spoken = now
            yield [text.encode("utf-8", "surrogatepass") for text in texts]
    if spoken is not None:
        calls = spoken.saying.plan.tool_calls if spoken.prompt.native else ()
        yield [(_final_line(call, ask, spoken, _End(calls=calls)) + "\n").encode("utf-8", "surrogatepass")]


@dataclass(frozen=True, slots=True)
class _End:
    """The text fields of the last line: empty in a stream, the whole answer in a whole reply."""

    text: str = ""
    thinking: str = ""
    calls: Sequence[Any] = ()


def _final_line(call: AnswerCall, ask: Ask, spoken: _SpokenStep, end: _End) -> str:
    """Return the last line of an answer, with its counts of tokens and its durations."""
    turn, now = spoken.saying.plan, perf_counter_ns()
    answering = now - (call.answering or call.loaded)
    reading = spoken.saying.read_ns or answering // 2
    line = f'{call.head()}{call.body(end.text, end.thinking, end.calls)},"done":true,"done_reason":"{turn.reason}"'
    probabilities = _logprobs(call, turn.pieces, spoken.saying) if end.text else ""
    counts = {
        "total_duration": now - call.began,
        "load_duration": call.loaded - call.began,
        "prompt_eval_count": turn.prompt_tokens,
        "prompt_eval_duration": reading,
        "eval_count": turn.tokens,
        "eval_duration": spoken.saying.said_ns or max(1, answering - reading),
    }
    metrics = "".join(f',"{name}":{value}' for name, value in counts.items() if value)
    if call.chat:
        return line + probabilities + metrics + "}"
    if not call.fields.get("raw"):
        ids = rendering.vocabulary_of(ask).encode(spoken.prompt.text + "".join(turn.pieces))
        line += f',"context":{encode(list(ids))}' if ids else ""
    return line + metrics + probabilities + "}"


def _logprobs(call: AnswerCall, pieces: Sequence[str], saying: Saying) -> str:
    """Return the JSON text of the log probabilities of some pieces, or ""."""
    if not call.fields.get("logprobs"):
        return ""
    found: Sequence[Mapping[str, Any]] | None = saying.logprobs
    if found is None:
        found = logprobs.entries(pieces, int(call.fields.get("top_logprobs", 0)))
    return f',"logprobs":{encode(list(found))}'


async def _whole_reply(call: AnswerCall, ask: Ask) -> Answer:
    """Return an answer as a whole reply."""
    fault = _wire_fault(call.fault)
    if fault is not None and fault.do == "error_line":
        raise ApiError(int(fault.number("status", 500)), fault.text("error", INJECTED))
    said, entries = list[str](), list[Mapping[str, Any]]()
    spoken: _SpokenStep | None = None
    async with aclosing(_spoken_steps(call, ask)) as saying:
        async for now in saying:
            if now is not None:
                spoken = now
                said.extend(now.saying.pieces)
                entries.extend(now.saying.logprobs or ())
            elif fault is not None and fault.do == "stall":
                await call.daemon.clock.sleep(fault.number("seconds", 60))
    if spoken is None:
        raise ApiError(500, DIED)
    turn = spoken.saying.plan
    if spoken.saying.logprobs is not None:
        spoken = replace(spoken, saying=replace(spoken.saying, logprobs=entries))
    text = _final_line(call, ask, spoken, _End("".join(said), "".join(turn.thinking), turn.tool_calls))
    if fault is None or fault.do == "stall":
        return _reply(text)
    if fault.do == "no_done":
        return _reply(f'{call.head()}{call.body("".join(said))},"done":false}}')
    return HttpStream(_first_half(text.encode("utf-8", "surrogatepass"), cut=fault.do == "cut"), JSON)


async def _first_half(body: bytes, *, cut: bool) -> Lines:
    """Yield half of a whole reply. Raises, with `cut`: Cut: the connection breaks off."""
    yield [body[: len(body) // 2]]
    if cut:
        raise Cut
