"""The emulated daemon: the store, registry, scheduler and faults that all routes share, and the forms of replies."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from ollama_emulator import faults as orders
from ollama_emulator.clocks import Clock, SystemClock
from ollama_emulator.emulator_errors import ApiError, Cut, OptionError, RefusedLate
from ollama_emulator.faults import FaultList, FaultTarget, InjectedFault
from ollama_emulator.go import json as gojson
from ollama_emulator.http.incoming import HttpRequest
from ollama_emulator.library import models
from ollama_emulator.library.model_tags import Name
from ollama_emulator.library.models import Model
from ollama_emulator.library.store import Manifest, Store
from ollama_emulator.machine.memory import GIB
from ollama_emulator.machine.runners import Ask, Engine, ModelRunner
from ollama_emulator.machine.scheduler import KILLED, NO_MEMORY, Scheduler, Trouble
from ollama_emulator.options import DaemonSettings, Options
from ollama_emulator.pulling import registry
from ollama_emulator.pulling.registry import Registry
from ollama_emulator.replies import BARE_JSON, JSON, HttpReply, HttpStream
from ollama_emulator.requests import Fields
from ollama_emulator.speech.authoring.authors import Roster
from ollama_emulator.speech.authoring.orders import requested_selectors
from ollama_emulator.voices import gguf_model
from ollama_emulator.voices.invented import InventedVoice
from ollama_emulator.voices.llama import EngineSettings, LlamaEngine
from ollama_emulator.voices.real import RealVoice
from ollama_emulator.voices.voice import Voice

REMEMBERED = 2_000
REMEMBERED_BYTES = 32 << 20  # bytes of the bodies that the log keeps whole; others keep their short fields
INJECTED = "injected fault"
INVENTS = "not a model: its answers are cut from the prompt"
_NO_ADAPTER = "the emulator's real voice applies no adapter: use the model without it"
_WORDED = ("nel", "blanks", "repeat", "broken_json", "text", "author")  # faults whose words are invented
_LOADING = ("kill_load", "oom", "spill")
Lines = AsyncGenerator[list[bytes], None]
_SAMPLED = (
    "model",
    "name",
    "stream",
    "options",
    "keep_alive",
    "think",
    "truncate",
    "shift",
    "from",
    "source",
    "destination",
)


@dataclass(slots=True)
class EmulatedDaemon:
    """The state behind the routes; `requests` is the log of the last `REMEMBERED` requests.

    `reals` are the models of `--gguf`, whose words or vectors are their own. Beside one that writes no vector is
    invented; every other model invents.
    """

    options: Options
    settings: DaemonSettings
    clock: Clock
    store: Store
    registry: Registry
    faults: FaultList
    scheduler: Scheduler
    roster: Roster
    invented: Voice
    reals: Sequence[Model] = ()
    requests: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _models: dict[str, tuple[Manifest, Model]] = field(default_factory=dict)
    held_most: int = REMEMBERED_BYTES
    _log: TextIO | None = None
    _served: int = 0
    _bodies: deque[tuple[dict[str, Any], int]] = field(default_factory=deque)
    _held: int = 0

    @classmethod
    def create(cls, options: Options, clock: Clock | None = None) -> EmulatedDaemon:
        """Return a daemon for some options, its store empty or read from a folder.

        Raises: OptionError: one is invalid.
        """
        clock = clock or SystemClock()
        settings = DaemonSettings.read(options)
        scheduler = Scheduler(settings, clock, int(options.vram * GIB), options.load_s)
        store = Store(clock.now_ns, options.store)
        made = cls(
            options,
            settings,
            clock,
            store,
            registry.read(options.registry),
            orders.read(options.faults),
            scheduler,
            Roster(options.authors),
            InventedVoice(clock, options.tok_s, options.embedder),
        )
        if options.gguf:
            made.reals = gguf_model.install_all(store, options)
            scheduler.open_engine = made.open_engine
        if options.log is not None:
            made._log = _open_log(options.log)
        return made

    def close(self) -> None:
        """Close the log, stop the scheduler, and remove temporary files."""
        if self._log is not None:
            self._log.close()
        self.scheduler.close()
        self.store.close()

    # requests

    def note(self, request: HttpRequest, given: Mapping[str, Any] | None = None) -> None:
        """Log a request, once, with the fields of its body."""
        entry = request.entry
        if entry or request.path.startswith("/_emulator/"):
            return
        self._served += 1
        body = dict(given or {})
        model = body.get("model") or body.get("name") or ""
        entry |= {"n": self._served, "time": gojson.stamp(self.clock.now_ns()), "method": request.method}
        entry |= {"path": request.path, "model": model, "body": body}
        self.requests.append(entry)
        self._shorten_log(entry, len(request.body))
        if self._log is not None:
            self._log.write(json.dumps({**entry, "body": _short_fields(body)}) + "\n")
            self._log.flush()

    def _shorten_log(self, entry: dict[str, Any], size: int) -> None:
        """Cut the oldest bodies in the log to their short fields until all fit the memory for them."""
        self._bodies.append((entry, size))
        self._held += size
        while self._held > self.held_most or len(self._bodies) > REMEMBERED:
            oldest, freed = self._bodies.popleft()
            oldest["body"] = _short_fields(oldest["body"])
            self._held -= freed

    async def open(self, request: HttpRequest, struct: str) -> tuple[Fields, InjectedFault | None]:
        """Log a request and wait the latency; return its fields and the fault that applies to it.

        Raises: ApiError: the request is invalid, or the fault refuses it. Cut: the fault closes the connection.
        """
        fields = Fields(struct, request.body)
        self.note(request, fields.given)
        if self.options.latency_ms:
            await self.clock.sleep(self.options.latency_ms / 1000)
        model = str(fields.get("model") or fields.get("name") or "")
        return fields, await self.strike(request, model, _code_selectors(fields))

    async def strike(
        self, request: HttpRequest, model: str = "", selectors: Sequence[str] = ()
    ) -> InjectedFault | None:
        """Return the fault that applies to a request, or None; carry out faults that come before any work.

        `selectors` are the methods that the request asks code for. Raises: ApiError: the fault refuses the request.
        Cut: the fault closes the connection.
        """
        fault = self.faults.take(FaultTarget(request.method, request.path, model, selectors))
        if fault is None:
            return None
        if fault.do == "status":
            raise ApiError(int(fault.number("status", 500)), fault.text("error", INJECTED))
        if fault.do == "cut" and (request.method == "GET" or not fault.number("after", 1)):
            raise Cut
        if fault.do == "stall" and request.method == "GET":
            await self.clock.sleep(fault.number("seconds", 60))
        if fault.do == "slow_load":
            self.scheduler.delay_s = fault.number("seconds", 1)
        elif fault.do in _LOADING:
            self.scheduler.trouble = _load_effect(fault)
        return fault

    # models

    def find(self, name: Name) -> Model | None:
        """Return the stored model of a name, or None. Raises: ApiError: 500, its layers are unreadable."""
        manifest = self.store.find(name)
        if manifest is None:
            return None
        known = self._models.get(name.key)
        if known is None or known[0] is not manifest:
            known = (manifest, models.resolve(self.store, manifest))
            self._models[name.key] = known
        return known[1]

    def all(self) -> list[Model]:
        """Return all stored models with readable layers, the newest first."""
        # the daemon compares whole seconds, in any order within one; here the newest is first
        newest = sorted(self.store.manifests.values(), key=lambda manifest: -manifest.modified_ns)
        found: list[Model] = []
        for manifest in newest:
            with suppress(ApiError):
                found += filter(None, (self.find(manifest.name),))
        return found

    # voices

    @property
    def notice(self) -> str:
        """Return the words that say what answers here."""
        return "; ".join(f"{each.name.display}: {gguf_model.notice(each.card)}" for each in self.reals) or INVENTS

    def real(self, *, embeds: bool) -> Model | None:
        """Return the real model that stands for all that write, or for all embedders."""
        return next((each for each in self.reals if each.card.embeds == embeds), None)

    def voice(self, runner: ModelRunner, fault: InjectedFault | None = None) -> Voice:
        """Return the voice of a runner; the words of a fault that changes them are invented."""
        worded = fault is not None and fault.do in _WORDED
        return self.invented if runner.engine is None or worded else RealVoice()

    async def open_engine(self, ask: Ask, slots: int) -> Engine | None:
        """Load the weights of a real model for a runner; None for another model.

        Raises: ApiError: 500, an adapter lies on it, or llama.cpp cannot load the file.
        """
        blob = self.store.blobs.get(ask.model.base)
        if blob is None or blob.path is None or all(each.base != ask.model.base for each in self.reals):
            return None
        if ask.model.adapters:
            raise ApiError(500, _NO_ADAPTER)
        card = ask.model.card
        return await LlamaEngine.load(EngineSettings(blob.path, ask.window, slots, ask.threads, ask.shift, card.embeds))

    def wire_time(self) -> str:
        """Return the current time in the form of `created_at`."""
        return gojson.stamp(self.clock.now_ns())


def _code_selectors(fields: Fields) -> Sequence[str]:
    """Return the selectors of the methods that a request asks code for."""
    messages = fields.get("messages") or [{"role": "user", "content": fields.get("prompt", "")}]
    return requested_selectors(fields.get("format"), messages)


def _short_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the short fields of a body, which stay in the log."""
    return {key: body[key] for key in _SAMPLED if key in body}


def _load_effect(fault: InjectedFault) -> Trouble:
    """Return the effect of a fault on the load that its request causes."""
    if fault.do == "kill_load":
        return Trouble(error=fault.text("error", KILLED))
    if fault.do == "oom":
        return Trouble(error=NO_MEMORY, attempts=int(fault.number("attempts", 2)))
    return Trouble(share=fault.number("share", 0.5))


def _open_log(path: Path) -> TextIO:
    """Open the request log to append to it. Raises: OptionError: the file cannot be written."""
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise OptionError(
            f"the log {path} cannot be written: {error.strerror}",
            field="log",
            remedy="Name a file in a folder of yours.",
        ) from error


def reply(value: Any, status: int = 200, content_type: str = JSON) -> HttpReply:
    """Return a whole reply with a value as JSON."""
    return json_reply(gojson.encode(value), status, content_type)


def json_reply(text: str, status: int = 200, content_type: str = JSON) -> HttpReply:
    """Return a whole reply with a text that is already JSON."""
    return HttpReply(status, text.encode("utf-8", "surrogatepass"), content_type)


def refusal(error: ApiError) -> HttpReply:
    """Return the reply for an error that was raised before the first line."""
    if isinstance(error, RefusedLate):
        return replace(reply({"error": error.text}, error.status, BARE_JSON), chunked=error.chunked)
    return reply({"error": error.text}, error.status)


def line(value: Any) -> bytes:
    """Return a value as a line of NDJSON."""
    return (gojson.encode(value) + "\n").encode("utf-8", "surrogatepass")


def status_line(status: str) -> bytes:
    """Return a progress line, `{"status": ...}`."""
    return line({"status": status})


async def stream(lines: Lines, fault: InjectedFault | None, clock: Clock) -> HttpStream:
    """Return lines as a streamed reply; an error after the first line becomes the last line.

    The first item of `lines` is empty and says that the work began. Raises: ApiError: the first line failed.
    """
    begun = await anext(lines)
    if fault is not None:
        lines = _disturb(lines, fault, clock)
    try:
        first = await anext(lines, begun)
    except ApiError as error:
        raise RefusedLate(error, chunked=True) from None
    return HttpStream(_end_with_error(first, lines))


async def _end_with_error(first: list[bytes], lines: Lines) -> Lines:
    """Yield the first lines and then the others; an ApiError among them becomes an error line."""
    async with aclosing(lines):
        try:
            yield first
            async for some in lines:
                yield some
        except ApiError as error:
            yield [line({"error": error.text})]


async def whole(statuses: Lines) -> HttpReply:
    """Return the last of some progress lines as a whole reply. Raises: ApiError: the work failed."""
    await anext(statuses)
    last = b""
    try:
        async for some in statuses:
            last = some[-1]
    except ApiError as error:
        raise RefusedLate(error, chunked=False) from None
    return HttpReply(200, last.rstrip(b"\n"), BARE_JSON)


async def _disturb(lines: Lines, fault: InjectedFault, clock: Clock) -> Lines:
    """Yield the lines as the fault changes them."""
    after = int(fault.number("after", 0 if fault.do == "stall" else 1))
    sent = 0
    held: bytes | None = None
    async with aclosing(lines):
        async for some in lines:
            for one in some:
                if sent == after:
                    await _interrupt(fault, clock)
                    if fault.do == "bad_line":
                        yield [b'{"broken\n']
                if held is not None:
                    yield [held]
                if fault.do == "no_done":
                    held = one
                else:
                    yield [one]
                sent += 1


async def _interrupt(fault: InjectedFault, clock: Clock) -> None:
    """Interrupt a stream as a fault says: cut it, end it with an error line, or stall."""
    if fault.do == "cut":
        raise Cut
    if fault.do == "error_line":
        raise ApiError(int(fault.number("status", 500)), fault.text("error", INJECTED))
    if fault.do == "stall":
        await clock.sleep(fault.number("seconds", 60))
