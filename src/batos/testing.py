"""Fakes that are real: a bridge that answers by a function, an image in memory, a UVM over an emulator."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import tempfile
import tomllib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from ZODB.MappingStorage import MappingStorage
from ZODB.utils import z64

from batos.config import Settings
from batos.events import Events
from batos.genesis.codex import codex as codices
from batos.image.filestorage import SoundFileStorage
from batos.image.ids import utc_now
from batos.image.image import Opening
from batos.inference import thoughts
from batos.inference.ollama import transport
from batos.inference.ollama.bridge import Answer, ChatRequest, Embedding, ModelCard, PullProgress
from batos.inference.ollama.catalogue import ModelRow, RunnerRow
from batos.methods.generation.dialogue import HEAD
from batos.protocol.errors import BatosError, ConfigError, ModelMissing, ModelUnsuitable, OllamaUnreachable
from batos.uvm import UVM, Seams, open_uvm
from ollama_emulator.emulator import Emulator, Options
from ollama_emulator.emulator_errors import OptionError

#: The keys of a division.
_SUB_QUERY = re.compile(r"q\d+")

Responder = Callable[[ChatRequest], str | BatosError]
Vectors = Callable[[str], Sequence[float] | BatosError]


def instance(schema: Mapping[str, Any], text: str = "word") -> Any:
    """Return a valid value of a compiled schema: `text` for strings, the least numbers, the shortest lists.

    A question is divided into questions of which no two are alike.
    """
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return instance(schema["anyOf"][0], text)
    kind = schema.get("type")
    if kind == "object" and all(_SUB_QUERY.fullmatch(key) for key in schema["properties"]):
        return {key: f"Word {key}?" for key in schema["properties"]}
    if kind == "object":
        return {key: instance(value, text) for key, value in schema["properties"].items()}
    if kind == "array":
        return [instance(schema["items"], text)] * int(schema.get("minItems", 0))
    simple: dict[Any, Any] = {"boolean": True, "null": None, "integer": schema.get("minimum", 0), "number": 0.0}
    return simple[kind] if kind in simple else text[: int(schema.get("maxLength", len(text)))]


def plain_reply(request: ChatRequest) -> str:
    """Return the usual answer of a scripted bridge: the least valid decision, or a sentence."""
    return json.dumps(instance(request.schema)) if request.schema else "A scripted sentence."


def wanted_selector(request: ChatRequest) -> str:
    """Return the selector for which a coder is asked to write a method; "" for any other request."""
    if not request.messages or not request.messages[0]["content"].startswith(HEAD):
        return ""
    lines = request.messages[1]["content"].splitlines()
    return next((line.removeprefix("Selector: ") for line in lines if line.startswith("Selector: ")), "")


def method_reply(source: str, checks: Sequence[Mapping[str, object]]) -> str:
    """Return a coder's reply. Each field of a check is given as plain data and becomes JSON text."""
    fields = ("arguments", "before", "replies", "result", "slots")
    texts = [{name: json.dumps(each[name]) if name in each else "" for name in fields} for each in checks]
    return json.dumps({"checks": [{**each, "result": each["result"] or "null"} for each in texts], "source": source})


def author(source: str, checks: Sequence[Mapping[str, object]], otherwise: Responder = plain_reply) -> Responder:
    """Return a responder that writes this method for every coder request, with `SELECTOR` replaced by the selector."""

    def respond(request: ChatRequest) -> str | BatosError:
        selector = wanted_selector(request)
        return method_reply(source.replace("SELECTOR", selector), checks) if selector else otherwise(request)

    return respond


class ScriptedBridge:
    """A bridge without a daemon: answers by a function, or raises what that returns; `history` has every request.

    `vectors` is its embedder (a vector for a text, or the error to raise); without one no text is embedded.
    """

    def __init__(
        self, respond: Responder = plain_reply, models: tuple[str, ...] = (), vectors: Vectors | None = None
    ) -> None:
        self.respond = respond
        self.vectors = vectors
        #: Tokens that `count` says a byte has; None: it counts nothing, as a daemon that does not answer.
        self.density: float | None = None
        #: Every text that was embedded, in order.
        self.embedded: list[str] = []
        self.history: list[ChatRequest] = []
        self.rows = {name: _row(name) for name in models or shipped_models()}

    @classmethod
    def saying(cls, text: str) -> ScriptedBridge:
        """Make a bridge whose model says this and nothing else: as an answer, and in every decision asked of it."""
        return cls(lambda request: json.dumps(instance(request.schema, text)) if request.schema else text)

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """Return the function's answer, in two pieces if anyone listens; cut where it has more tokens than it may."""
        self.history.append(request)
        said = self.respond(request)
        if isinstance(said, BatosError):
            raise said
        tokens, most = max(1, len(said) // 4), int(request.options.get("num_predict", 1 << 20))
        ended = "length" if tokens > most else "stop"
        if tokens > most:
            said, tokens = said[: 4 * most], most
        said, thought, _ = thoughts.part_values(said) if request.schema else thoughts.part(said)
        if on_token is not None:
            for piece in (said[: len(said) // 2], said[len(said) // 2 :]):
                on_token(piece)
        size = sum(len(message["content"]) for message in request.messages)
        return Answer(said, thought.strip(), ended, max(1, size // 4), tokens, 0.0, 0.001)

    async def embed(
        self,
        model: str,
        texts: Sequence[str],
        *,
        options: Mapping[str, object] | None = None,
        keep_alive: float | str | None = None,
    ) -> Embedding:
        """Return the result of `vectors` for each text.

        Raises: ModelUnsuitable: there is no `vectors`.
        """
        if self.vectors is None:
            raise ModelUnsuitable(f"{model} embeds nothing here", field="model")
        found: list[list[float]] = []
        for text in texts:
            self.embedded.append(text)
            vector = self.vectors(text)
            if isinstance(vector, BatosError):
                raise vector
            found.append(list(vector))
        return Embedding(found, sum(map(len, texts)), 0.0, 0.001)

    async def count(self, request: ChatRequest) -> int:
        """Count a prompt's tokens by `density`; OllamaUnreachable without it."""
        if self.density is None:
            raise OllamaUnreachable("nothing is counted here")
        return int(sum(len(each["content"].encode()) for each in request.messages) * self.density)

    async def version(self) -> str:
        """Return a supported version."""
        return "0.33.0"

    async def list(self) -> Sequence[ModelRow]:
        """List the models given at the start, and those created since."""
        return tuple(self.rows.values())

    async def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
        """Add the model at once."""
        self.rows[model] = _row(model)
        yield PullProgress("success")

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
        """Add the model at once."""
        self.rows[model] = _row(model)
        yield PullProgress("success")

    async def show(self, model: str, *, verbose: bool = False) -> ModelCard:
        """Return a bare card of a model that can do what any is named for; personas share a base. ModelMissing."""
        if model not in self.rows:
            raise ModelMissing(model)
        base = _row("base") if model.startswith("batos-") else self.rows[model]
        weights = f"FROM /blobs/sha256-{base.digest}"
        return ModelCard(model, ("completion", "embedding"), {}, weights, "", "", "llama", "", "")

    async def ps(self) -> Sequence[RunnerRow]:
        """Return no runners: nothing is in memory."""
        return ()

    async def upload_blob(
        self, path: Path, digest: str | None = None, on_bytes: Callable[[int, int], None] | None = None
    ) -> str:
        """Return the file's digest and store nothing."""
        return transport.measure_file(path, digest).digest

    async def unload(self, model: str) -> bool:
        """Return True: no model is in memory."""
        return True

    async def delete(self, model: str) -> None:
        """Remove the model at once.

        Raises: ModelMissing: there is none.
        """
        if self.rows.pop(model, None) is None:
            raise ModelMissing(model)

    async def aclose(self) -> None:
        """Do nothing: no connection was opened."""


def _row(name: str) -> ModelRow:
    return ModelRow(name, hashlib.sha256(name.encode()).hexdigest(), 1_000_000)


@cache
def shipped_models() -> tuple[str, ...]:
    """Return the models that the shipped codex's default profile names."""
    mind = tomllib.loads(codices.read_shipped()[codices.MIND])
    return (mind["default_model"], mind["embedder"])


@asynccontextmanager
async def scripted_uvm(
    home: Path,
    bridge: ScriptedBridge | None = None,
    *,
    memory: bool = True,
    events: Events | None = None,
    seams: Seams | None = None,
    **settings: object,
) -> AsyncIterator[UVM]:
    """Open a UVM over a scripted bridge that answers eight calls of a mission at a time unless `settings` differ.

    Genesis is done. The image is in memory, or in `home`. `seams` may have a clock or pauses. No intent becomes a
    method unless `settings` say so (`install`). An image in memory is a copy of one that this process grew once, where
    its genesis could not be another.
    """
    chosen = _settings_of(home, memory=memory, **settings)
    bridge, seams = bridge or ScriptedBridge(), seams or Seams()
    alike = memory and settings.keys() <= _NOT_OF_GENESIS and _is_usual(home, bridge, seams)
    grown = await _grow() if alike else None
    opening = seams.opening if grown is None else grown.take_up(bridge)
    async with open_uvm(chosen, events or Events(log=False), replace(seams, bridge=bridge, opening=opening)) as uvm:
        await (uvm.readiness.genesis() if grown is None else uvm.readiness.check())
        yield uvm


def _settings_of(home: Path, *, memory: bool, **settings: Any) -> Settings:
    image = "memory://image" if memory else ""
    usual = {"home": home, "user": "tester", "image": image, "parallel": 8, "install": "never"}
    return Settings(**{**usual, **settings})


# -- a grown image, of which many minds are copies


#: Settings of which no genesis depends.
_NOT_OF_GENESIS = frozenset({
    "effort", "install", "method_control", "missions", "queue", "second_voice_margin", "user",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _GrownImage:
    """An image and its journal after their genesis, which are never written to, and the models of that genesis."""

    image: MappingStorage
    journal: MappingStorage
    rows: Mapping[str, ModelRow]

    def take_up(self, bridge: ScriptedBridge) -> Callable[[Opening], Opening]:
        """Give the models to a bridge, and return how copies of both storages are opened."""
        bridge.rows.update(self.rows)
        image, journal = partial(_copy, self.image), partial(_copy, self.journal)
        return lambda opening: replace(opening, image_factory=image, journal_factory=journal)


_grown: list[_GrownImage] = []


async def _grow() -> _GrownImage:
    """Return the grown image of this process."""
    if not _grown:
        bridge = ScriptedBridge()
        with tempfile.TemporaryDirectory() as home:
            seams = Seams(bridge=bridge)
            async with open_uvm(_settings_of(Path(home), memory=True), Events(log=False), seams) as uvm:
                await uvm.readiness.genesis()
                image, journal = uvm.image.db.storage, uvm.image.journal_db.storage
        _grown.append(_GrownImage(_copy(image), _copy(journal), bridge.rows))
    return _grown[0]


def _is_usual(home: Path, bridge: ScriptedBridge, seams: Seams) -> bool:
    """Test if a genesis there would have the shipped codex, the usual models and the time of the clock."""
    ours = not any((home / folder).exists() for folder in ("codex", "adapters"))
    daemon = bridge.density is None and bridge.rows.keys() == set(shipped_models())
    return ours and daemon and seams.opening is None and seams.clock is utc_now


def _copy(storage: MappingStorage) -> MappingStorage:
    """Return a storage in memory with all transactions of another."""
    copy, newest = MappingStorage(storage.getName()), dict[bytes, bytes]()
    for each in storage.iterator():
        copy.tpc_begin(each, each.tid)
        for record in each:
            copy.store(record.oid, newest.get(record.oid, z64), record.data, "", each)
            newest[record.oid] = each.tid
        copy.tpc_vote(each)
        copy.tpc_finish(each)
    last = max(newest)
    while copy.new_oid() < last:
        pass
    return copy


@asynccontextmanager
async def emulated_uvm(
    home: Path, options: Options | None = None, *, memory: bool = True, events: Events | None = None, **settings: Any
) -> AsyncIterator[tuple[UVM, Emulator]]:
    """Open a UVM that speaks over a socket with an emulator in this process, and yield both.

    Nothing is pulled or made yet: `await uvm.readiness.genesis()`. No intent becomes a method unless `settings` say so.
    The emulator lists its requests (`requests`), takes faults (`faults.add({...})`), and has its store and scheduler.

    Raises: ConfigError: an option of the emulator is wrong.
    """
    try:
        emulator = Emulator(options)
    except OptionError as error:
        raise ConfigError(error.message, field=error.field, remedy=error.remedy) from error
    async with emulator.serving() as url:
        image = "memory://image" if memory else ""
        usual = {"home": home, "user": "tester", "image": image, "ollama_host": url, "install": "never"}
        async with open_uvm(Settings(**{**usual, **settings}), events or Events(log=False)) as uvm:
            yield uvm, emulator


class DeadlyStorage(SoundFileStorage):
    """Kills its process at a point of one of the commits that follow once it is armed.

    The points are `begun` (nothing is written), `voted` (all is, and is marked) and `finished` (durable; nobody knows).
    """

    _point = ""
    _left = 0

    @classmethod
    def arm(cls, point: str, number: int = 1) -> None:
        """Kill the process at a point of the commit of this number from now on."""
        cls._point, cls._left = point, number

    @classmethod
    def in_home(cls, home: Path) -> Callable[[Opening], Opening]:
        """Return the seam `opening` by which the image of a home is such a file."""

        def storage() -> DeadlyStorage:
            return cls(str(home / "live_image.fs"), blob_dir=str(home / "blobs"))

        return lambda given: replace(given, image_factory=storage)

    def _at(self, point: str) -> None:
        if type(self)._point == point:
            type(self)._left -= 1
            if type(self)._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def tpc_begin(self, transaction: Any, *more: Any) -> Any:
        """Begin a commit, all changes of which have been made."""
        self._at("begun")
        return super().tpc_begin(transaction, *more)

    def tpc_vote(self, transaction: Any) -> Any:
        """Write the commit into the file."""
        found = super().tpc_vote(transaction)
        self._at("voted")
        return found

    def tpc_finish(self, transaction: Any, *more: Any) -> Any:
        """Make the commit durable, before anybody knows."""
        found = super().tpc_finish(transaction, *more)
        self._at("finished")
        return found
