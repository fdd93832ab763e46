"""POST /api/chat and /api/generate: load, unload, and answers whole or in a stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

from batos.emulator import gojson, names, prompts, sampling, templates
from batos.emulator.daemon import Daemon, Lines, stream
from batos.emulator.faults import Fault
from batos.emulator.gojson import encode
from batos.emulator.http import Answer, Request
from batos.emulator.models import Model
from batos.emulator.prompts import Manner, Turn
from batos.emulator.replies import JSON, ApiError, Cut, Reply, Stream
from batos.emulator.requests import Fields
from batos.emulator.scheduler import Ask, Runner

DIED = "an error was encountered while running the model: unexpected EOF"
_IDLE_RATE = 50.0  # tokens a second of an answer without end where the machine is otherwise instant


@dataclass(slots=True)
class Call:
    """One request on its way: what was asked, by which model, and when it began."""

    daemon: Daemon
    fields: Fields
    model: Model
    asked: str
    fault: Fault | None
    chat: bool
    keep_alive: int | None
    began: int = field(default_factory=perf_counter_ns)
    loaded: int = 0

    def head(self) -> str:
        """The first fields of every line."""
        return f'{{"model":{encode(self.asked)},"created_at":"{self.daemon.wire_time()}",'

    def body(self, text: str, thinking: str = "", calls: Sequence[Any] = ()) -> str:
        """The words of a line as chat or generate carries them."""
        if not self.chat:
            return f'"response":{encode(text)}' + (f',"thinking":{encode(thinking)}' if thinking else "")
        more = f',"thinking":{encode(thinking)}' if thinking else ""
        more += f',"tool_calls":{encode(list(calls))}' if calls else ""
        return f'"message":{{"role":"assistant","content":{encode(text)}{more}}}'

    def note(self, reason: str) -> Answer:
        """The single reply to a load or an unload."""
        text = f'{self.head()}{self.body("")},"done":true,"done_reason":"{reason}"}}'
        return _reply(text)


def _reply(text: str) -> Reply:
    return Reply(200, text.encode("utf-8", "surrogatepass"), JSON)


async def chat(daemon: Daemon, request: Request) -> Answer:
    """POST /api/chat."""
    fields, fault = await daemon.open(request, "ChatRequest")
    call = _call(daemon, fields, fault, chat=True)
    messages = fields.get("messages", [])
    if not messages and call.keep_alive == 0:
        daemon.scheduler.unload(call.model)
        return call.note("unload")
    prompts.capable(call.model, call.asked, fields, "chat")
    return await _answer(call, messages)


async def generate(daemon: Daemon, request: Request) -> Answer:
    """POST /api/generate."""
    fields, fault = await daemon.open(request, "GenerateRequest")
    call = _call(daemon, fields, fault, chat=False)
    prompt = fields.get("prompt", "")
    if not prompt and call.keep_alive == 0:
        daemon.scheduler.unload(call.model)
        return call.note("unload")
    if fields.get("raw") and (fields.get("system") or fields.get("template") or fields.get("context")):
        raise ApiError(400, "raw mode does not support template, system, or context")
    prompts.capable(call.model, call.asked, fields, "generate")
    wrong = templates.fault(fields.get("template", ""))
    if wrong:
        raise ApiError(500, wrong)
    messages: list[dict[str, Any]] = []
    if prompt:
        messages = [{"role": "user", "content": prompt, "images": fields.get("images")}]
    if prompt and fields.get("system"):
        messages.insert(0, {"role": "system", "content": fields.get("system")})
    return await _answer(call, messages)


def _call(daemon: Daemon, fields: Fields, fault: Fault | None, *, chat: bool) -> Call:
    """The checks up to the model: types that decode, its name, and whether it is there."""
    alive = gojson.keep_alive(fields.get("keep_alive"))
    prompts.think_value(fields)
    if not 0 <= int(fields.get("top_logprobs", 0)) <= 20:
        raise ApiError(400, "top_logprobs must be between 0 and 20")
    asked = str(fields.get("model", ""))
    if not asked:
        raise ApiError(400, "model is required") if chat else ApiError(404, "model '' not found")
    model = daemon.find(names.select(asked))
    if model is None:
        raise ApiError(404, f"model '{asked}' not found")
    return Call(daemon, fields, model, asked, fault, chat, alive)


async def _answer(call: Call, messages: Sequence[Mapping[str, Any]]) -> Answer:
    fields, daemon = call.fields, call.daemon
    options = sampling.merged(call.model.parameters, fields.get("options", {}))
    ask = daemon.scheduler.ask(call.model, options, fields.get("shift", True))
    if not messages:
        async with daemon.scheduler.runner(ask, call.keep_alive):
            return call.note("load")
    if fields.get("stream", True):
        return await stream(_lines(call, ask, messages), _wire_fault(call.fault), daemon.clock)
    return await _whole(call, ask, messages)


def _wire_fault(fault: Fault | None) -> Fault | None:
    """The fault, if it is one that strikes lines and not words."""
    return fault if fault is not None and fault.do in ("cut", "no_done", "error_line", "bad_line", "stall") else None


async def _saying(
    call: Call, ask: Ask, messages: Sequence[Mapping[str, Any]]
) -> AsyncGenerator[tuple[Turn, Sequence[str]] | None, None]:
    """None when the model is loaded, then the turn with its pieces as they come: all at once on an instant machine."""
    daemon = call.daemon
    async with daemon.scheduler.runner(ask, call.keep_alive) as runner, runner.slots:
        call.loaded = perf_counter_ns()
        yield None
        native = call.chat and not ask.model.rendered
        manner = Manner(native, daemon.options.endless, call.fault)
        turn = prompts.compose(ask, call.fields, messages, manner)
        rate = daemon.options.tok_s or (_IDLE_RATE if turn.endless else 0.0)
        doomed = (
            int(call.fault.number("after", 1)) if call.fault is not None and call.fault.do == "kill_answer" else None
        )
        if not rate:
            yield turn, turn.pieces[:doomed]
            _die(runner, doomed)
            return
        said = 0
        while True:
            for piece in turn.pieces or [" "]:
                _die(runner, doomed if said == doomed else None)
                await daemon.clock.sleep(1 / rate)
                yield turn, (piece,)
                said += 1
            if not turn.endless:
                break
        _die(runner, doomed)


def _die(runner: Runner, doomed: int | None) -> None:
    if doomed is not None:
        runner.dead = True
        raise ApiError(500, DIED)


async def _lines(call: Call, ask: Ask, messages: Sequence[Mapping[str, Any]]) -> Lines:
    turn: Turn | None = None
    async with aclosing(_saying(call, ask, messages)) as saying:
        async for spoken in saying:
            if spoken is None:
                yield []
                continue
            turn, pieces = spoken
            head = call.head()
            lines = [f'{head}{call.body(piece)},"done":false{_logprobs(call, (piece,))}}}\n' for piece in pieces]
            if turn.thinking and call.loaded:
                lines[:0] = [f'{head}{call.body("", turn.thinking)},"done":false}}\n']
                call.loaded = -call.loaded
            yield [text.encode("utf-8", "surrogatepass") for text in lines]
    if turn is not None:
        yield [(_last(call, turn, "") + "\n").encode("utf-8", "surrogatepass")]


def _last(call: Call, turn: Turn, text: str, thinking: str = "") -> str:
    """The line that ends an answer, with its metrics."""
    now = perf_counter_ns()
    loaded = abs(call.loaded)
    spoken = f'{call.head()}{call.body(text, thinking, turn.tool_calls)},"done":true,"done_reason":"{turn.reason}"'
    spoken += _logprobs(call, turn.pieces) if text else ""
    if not call.chat and not call.fields.get("raw"):
        spoken += f',"context":{encode(list(range(1, min(turn.prompt_tokens + len(turn.pieces), 4096))))}'
    counts = {
        "total_duration": now - call.began,
        "load_duration": loaded - call.began,
        "prompt_eval_count": turn.prompt_tokens,
        "prompt_eval_duration": (now - loaded) // 2,
        "eval_count": len(turn.pieces),
        "eval_duration": (now - loaded) // 2,
    }
    return spoken + "".join(f',"{name}":{value}' for name, value in counts.items() if value) + "}"


def _logprobs(call: Call, pieces: Sequence[str]) -> str:
    if not call.fields.get("logprobs"):
        return ""
    items = []
    for piece in pieces:
        item: dict[str, Any] = {"token": piece, "logprob": -0.1, "bytes": list(piece.encode("utf-8", "replace"))}
        if call.fields.get("top_logprobs"):
            item["top_logprobs"] = [dict(item)] * int(call.fields.get("top_logprobs"))
        items.append(item)
    return f',"logprobs":{encode(items)}'


async def _whole(call: Call, ask: Ask, messages: Sequence[Mapping[str, Any]]) -> Answer:
    fault = _wire_fault(call.fault)
    if fault is not None and fault.do == "error_line":
        raise ApiError(int(fault.number("status", 500)), str(fault.given.get("error", "injected fault")))
    said: list[str] = []
    turn: Turn | None = None
    async with aclosing(_saying(call, ask, messages)) as saying:
        async for spoken in saying:
            if spoken is not None:
                turn, pieces = spoken
                said.extend(pieces)
            elif fault is not None and fault.do == "stall":
                await call.daemon.clock.sleep(fault.number("seconds", 60))
    if turn is None:
        raise ApiError(500, DIED)
    text = _last(call, turn, "".join(said), turn.thinking)
    if fault is None or fault.do == "stall":
        return _reply(text)
    if fault.do == "no_done":
        return _reply(f'{call.head()}{call.body("".join(said))},"done":false}}')
    return Stream(_half(text.encode("utf-8", "surrogatepass"), cut=fault.do == "cut"), JSON)


async def _half(body: bytes, *, cut: bool) -> Lines:
    """A whole reply that breaks off in the middle; with `cut` the connection does too."""
    yield [body[: len(body) // 2]]
    if cut:
        raise Cut
