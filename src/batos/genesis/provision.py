"""Carries out a plan: pulls models side by side and makes them one by one, with remedies for steps that fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, TypeVar

from batos.genesis.adapters.inventory import Adapter
from batos.genesis.codex.codex import Codex
from batos.genesis.codex.key_lines import KeyLines, KeyPath
from batos.genesis.codex.origins import SHARED, CodexEntry, entries
from batos.genesis.daemon_listing import GenesisDaemon, look
from batos.genesis.persona_models import Recipe, model_record
from batos.genesis.plan import Plan, PlanStep, compare
from batos.inference import model_names
from batos.inference.ollama import catalogue
from batos.protocol.errors import ModelMissing, OllamaError, OllamaTimeout, PullFailed, UsageError

T = TypeVar("T", bound=OllamaError)

_FULL = ("no space left", "disk quota", "not enough space")
_NO_WAY = ("dial tcp", "no such host", "network is unreachable", "tls:", "i/o timeout", "max retries exceeded")


#: Told where nothing answers and there was no genesis: somebody is here for the first time.
FIRST_RUN = """\
1. Install Ollama: https://ollama.com/download
2. Start it with `ollama serve`, or set OLLAMA_HOST to where it listens.
3. Run `batos genesis`: it pulls the models, about 5 GB, once.
To look around without it, run `batos emulator` in another terminal: it answers, and is not a model."""


def advise_pull(error: T, step: PlanStep, codex: Codex, profile: str) -> T:
    """Return the error of a failed pull with the step's name and a remedy."""
    name, low = step.name or "", error.message.lower()
    error.advise(error.remedy, step.label)
    if isinstance(error, ModelMissing):
        named = " and ".join(places_of_model(codex, profile, name))
        error.advise(f"Correct the name in {named}, or make a model of that name yourself, then run `batos genesis`.")
    elif any(sign in low for sign in _FULL):
        error.advise(_room("what was pulled so far is kept"))
    elif any(sign in low for sign in _NO_WAY):
        error.advise(
            f"The daemon cannot reach the registry, or only slowly: when there is a network, run `batos genesis` "
            f"again (what was pulled so far is kept), or pull by hand: `ollama pull {name}`."
        )
    elif isinstance(error, OllamaTimeout):
        error.advise(
            "The pull made no more progress: run `batos genesis` again (what was pulled so far is kept), pull by hand "
            f"(`ollama pull {name}`), or raise progress_seconds in batos.toml for a slow line."
        )
    elif isinstance(error, PullFailed) or not error.retry:
        error.advise(f"See whether `ollama pull {name}` works by hand, then run `batos genesis` again.")
    return error


def advise_create(error: T, step: PlanStep) -> T:
    """Return the error of a model that could not be made, with a remedy; a missing base is reported unchanged."""
    if isinstance(error, ModelMissing):
        return error
    low = error.message.lower()
    error.advise(error.remedy, step.label)
    if any(sign in low for sign in _FULL):
        error.advise(_room("what was made so far is kept"))
    elif not error.retry and error.remedy == type(error).remedy:  # the daemon said nothing that is known
        error.advise("Run `batos genesis` again; if it repeats, the daemon's log has the cause.")
    return error


def _room(kept: str) -> str:
    return f"Free space on the disk where Ollama keeps its models (OLLAMA_MODELS), then run `batos genesis`: {kept}."


def places_of_model(codex: Codex, profile: str, name: str) -> list[str]:
    """List the places of the codex from which a model's name comes: `default_model (mind.toml:12)`."""
    own = "" if profile == "default" else f"profiles.{profile}."
    keys = {"model", "coder", "embedder"} if own else {"default_model", "coder", "embedder"}
    models = {f"{SHARED}.{own}{key}" for key in keys} | {f"{persona}.model" for persona in codex.personas}
    named = (each for each in entries(codex, profile) if each.name in models and model_names.same(each.value, name))
    lines = {file: KeyLines(text).keys for file, text in codex.texts.items()}
    return list(dict.fromkeys(_place(each, lines) for each in named)) or ["the codex"]


def _place(entry: CodexEntry, lines: Mapping[str, Mapping[KeyPath, int]]) -> str:
    """Return the first of an entry's places that is written."""
    file, path, _ = next(place for place in entry.places if place[1] in lines[place[0]])
    return f"`{path[-1]}` ({file}:{lines[file][path]})"


#: Retries of a pull that gets no further; a pull that does is retried for as long as it does.
PULL_ATTEMPTS = 3
#: Seconds before a pull is taken up again, doubled each time it got no further.
PULL_PAUSE = 0.1
#: The number of new plans when something vanishes while a plan is carried out.
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class StepProgress:
    """The progress of a step; `completed` and `total` in bytes, None if nothing is counted."""

    step: str
    status: str
    completed: int | None = None
    total: int | None = None


OnProgress: TypeAlias = Callable[[StepProgress], None]
#: The models that may be pulled: all missing ones, only required ones, none.
Pull: TypeAlias = Literal["all", "needed", "none"]
#: Called when all bases are there and before anything is made of them; raises to refuse the plan.
Gate: TypeAlias = Callable[[Plan], Awaitable[None]]


async def carry_out(
    todo: Plan,
    daemon: GenesisDaemon,
    on_progress: OnProgress,
    *,
    gates: Sequence[Gate] = (),
    pull: Pull = "all",
    patience: float = 300.0,
) -> Plan:
    """Pull what is missing, upload adapters, make the models, look again; return the plan as it then stands.

    Interrupted work is continued, and a plan in which nothing is missing sends nothing. If something vanishes meanwhile
    (somebody deletes a base), it is planned again. Records in the image, and models to delete, are left to the caller.
    With `pull` "needed" nothing optional is pulled; with "none" nothing is, and models that wait for a base go on
    waiting. A pull whose bytes stand still for `patience` seconds is cut and resumed.

    Raises: BatosError: a gate refuses. OllamaError: a required step failed, or a model that was reported as made is not
    there; the error names the step and a remedy.
    """
    work = _Work(daemon, on_progress, gates, patience)
    if pull == "all" and todo.needs_pull:
        await work.pull_all(todo.steps_of("pull"), todo)
        todo = await work.again(todo)
    for number in range(1, ROUNDS + 1):
        if not _remaining_steps(todo, pull):
            return todo
        try:
            todo = await work.round(todo, pull)
        except ModelMissing as gone:
            if number == ROUNDS or pull == "none":
                raise
            on_progress(StepProgress("look again", gone.message))
            todo = await work.again(todo)
    left = _remaining_steps(todo, pull)
    if left:
        name = left[0].name or left[0].persona or ""
        raise ModelMissing(name, f"Ollama reported {left[0].label} as done and does not list it")
    return todo


async def fetch(todo: Plan, daemon: GenesisDaemon, on_progress: OnProgress, *, patience: float = 300.0) -> None:
    """Pull what is missing, as `carry_out` does, and nothing else: this takes hours and changes nothing in use."""
    await _Work(daemon, on_progress, (), patience).pull_all(todo.steps_of("pull"), todo)


def _remaining_steps(todo: Plan, pull: Pull) -> list[PlanStep]:
    """Return the required steps that can be carried out: a model that waits for its base needs a pull first."""
    if pull == "none":
        return [step for step in todo.steps_of("create") if step.name is not None]
    return [step for step in todo.steps_of("pull", "create") if not step.optional]


@dataclass(slots=True)
class _Meter:
    """The number of bytes of a step that are there, over all its layers and attempts."""

    layers: dict[str, tuple[int, int]] = field(default_factory=dict)
    most: int = 0
    #: When the bytes were last seen to grow, on the loop's clock.
    grown: float = 0.0
    #: True once this attempt named a layer: a line without one comes after the last byte then, else before the first.
    has_begun: bool = False

    def begin(self, now: float) -> None:
        """Begin another attempt."""
        self.grown, self.has_begun = now, False

    def add(self, line: catalogue.PullProgress, now: float) -> None:
        """Take in one line of the daemon."""
        if line.digest and line.total:
            self.has_begun = True
            self.layers[line.digest] = (line.completed or 0, line.total)
        elif self.has_begun and not line.digest:
            # The daemon may leave out the line of a layer's last byte.
            self.layers = {digest: (size, size) for digest, (_, size) in self.layers.items()}
        if not line.digest or self.byte_count > self.most:
            self.most, self.grown = max(self.most, self.byte_count), now

    @property
    def byte_count(self) -> int:
        """Return the bytes that are there."""
        return sum(completed for completed, _ in self.layers.values())

    @property
    def total(self) -> int | None:
        """Return the bytes of all layers that were named so far; None before the first."""
        return sum(size for _, size in self.layers.values()) if self.layers else None


@dataclass(slots=True)
class _Work:
    """A genesis under way; `made` are the models that it made itself and therefore trusts."""

    daemon: GenesisDaemon
    on_progress: OnProgress
    gates: Sequence[Gate]
    patience: float
    made: dict[str, Recipe] = field(default_factory=dict)

    async def round(self, todo: Plan, pull: Pull) -> Plan:
        """Carry out every required step of the plan once, and return the new plan."""
        pulls = [step for step in todo.steps_of("pull") if not step.optional and pull != "none"]
        if pulls:
            await self.pull_all(pulls, todo)
            todo = await self.again(todo)
        creates = [todo.recipes[step.name] for step in todo.steps_of("create") if step.name is not None]
        if not creates:
            return todo
        for gate in self.gates:
            await gate(todo)
        uploads = {(step.persona, step.adapter): step for step in todo.steps_of("upload")}
        for recipe in creates:
            if recipe.adapter is not None:
                await self._upload(recipe.adapter, uploads[recipe.persona, recipe.adapter.name])
            await self._create(recipe)
        return await self.again(todo)

    async def again(self, todo: Plan) -> Plan:
        """Return the plan for the models that the daemon lists now."""
        listed = await look(self.daemon, todo.version)
        known = todo.known
        if known is not None:
            rows = ((recipe, listed.row(name)) for name, recipe in self.made.items())
            known = known.with_models(
                {recipe.name: model_record(recipe, row, "") for recipe, row in rows if row is not None}
            )
        found = compare(todo.codex, todo.profile, listed, todo.inventory, todo.chosen, known)
        return replace(found, known=todo.known)

    async def pull_all(self, steps: Iterable[PlanStep], todo: Plan) -> None:
        """Pull side by side: after a failure the other pulls still finish, a refusal stops them all."""
        steps, failures = tuple(steps), []
        try:
            async with asyncio.TaskGroup() as group:
                pulls = [group.create_task(self._pull(step)) for step in steps]
        except BaseExceptionGroup as refused:
            raise refused.exceptions[0] from None
        for step, failure in zip(steps, (pull.result() for pull in pulls), strict=True):
            if failure is None:
                continue
            if step.optional:
                self.on_progress(StepProgress(step.label, f"left out: {failure.message}"))
            else:
                failures.append(advise_pull(failure, step, todo.codex, todo.profile))
        if failures:
            first, *others = failures
            raise first.add_faults(f"{other.message}. {other.remedy}" for other in others)

    async def _pull(self, step: PlanStep) -> OllamaError | None:
        """Pull until it is there, or return the failure; one that got further is taken up where it stopped."""
        meter, tries = _Meter(), 0
        while True:
            before = meter.most
            try:
                await self._report(step, self.daemon.pull(step.name or ""), meter)
                return None
            except OllamaError as error:
                further = meter.most > before
                tries = 0 if further else tries + 1
                if not further and (not error.retry or tries >= PULL_ATTEMPTS):
                    return error
                told = f"stopped ({error.message}); going on"
            self.on_progress(StepProgress(step.label, told, meter.most or None, meter.total))
            await asyncio.sleep(PULL_PAUSE * 2**tries)

    async def _upload(self, adapter: Adapter, step: PlanStep) -> None:
        def on_bytes(sent: int, size: int) -> None:
            self.on_progress(StepProgress(step.label, "sending", sent, size))

        for key, path in adapter.files.items():
            try:
                await self.daemon.upload_blob(path, adapter.digests[key], on_bytes)
            except OllamaError as error:
                raise advise_create(error, step) from error
            except OSError as error:
                remedy = "Make it readable, or copy it again; then run `batos genesis`."
                raise UsageError(f"{path} cannot be read: {error.strerror}", remedy=remedy) from error
        self.on_progress(StepProgress(step.label, "success", step.size, step.size))

    async def _create(self, recipe: Recipe) -> None:
        step = PlanStep("create", recipe.name, "")
        lines = self.daemon.create(
            recipe.name,
            from_=recipe.base,
            system=recipe.system,
            parameters=dict(recipe.parameters),
            adapters=None if recipe.adapter is None else dict(recipe.adapter.digests),
        )
        try:
            await self._report(step, lines, _Meter())
        except OllamaError as error:
            raise advise_create(error, step) from error
        self.made[recipe.name] = recipe

    async def _report(self, step: PlanStep, lines: AsyncGenerator[catalogue.PullProgress, None], meter: _Meter) -> None:
        clock = asyncio.get_running_loop().time
        meter.begin(clock())
        async with aclosing(lines):
            async for line in lines:
                meter.add(line, clock())
                if clock() - meter.grown > self.patience:
                    raise OllamaTimeout("progress", self.patience)
                done = meter.byte_count if meter.layers else None
                self.on_progress(StepProgress(step.label, line.status, done, meter.total))
