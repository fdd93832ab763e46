"""Carrying a plan out: models pulled at once and made one by one, as often as it takes to reach what the codex says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from batos.errors import ModelMissing, OllamaError
from batos.genesis import modelfile
from batos.genesis.modelfile import Recipe
from batos.genesis.plan import Daemon, Plan, Step, plan
from batos.inference import catalogue

#: A pull that was cut goes on where it stopped; this is how often it is taken up.
PULL_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a step is; `completed` and `total` are bytes, None where nothing is counted."""

    step: str
    status: str
    completed: int | None = None
    total: int | None = None


OnProgress: TypeAlias = Callable[[Progress], None]


async def carry_out(todo: Plan, daemon: Daemon, on_progress: OnProgress, *, modelfiles: Path | None = None) -> Plan:
    """Pull what is missing, make the personas' models, look again; answers the plan as it then stands.

    Whatever was interrupted before is simply continued, and a plan that is satisfied sends nothing. With
    `modelfiles` the Modelfiles are written there. OllamaError: a step that is not optional failed, or
    a model that was reported as made is not there.
    """
    if not todo.steps:
        _write(modelfiles, todo.recipes.values())
        return todo
    if todo.needs_pull:
        await _pull_all([step for step in todo.steps if step.kind == "pull"], daemon, on_progress)
        todo = await plan(todo.codex, todo.profile, daemon)
    _write(modelfiles, todo.recipes.values())
    for step in todo.steps:
        if step.kind == "create":
            await _create(step, todo, daemon, on_progress)
    return await _verified(todo, daemon)


def _write(folder: Path | None, recipes: Iterable[Recipe]) -> None:
    if folder is not None:
        modelfile.write(folder, recipes)


async def _pull_all(steps: list[Step], daemon: Daemon, on_progress: OnProgress) -> None:
    """All at once, each to its end: one that fails leaves the others their bytes."""
    ended = await asyncio.gather(*(_pull(step, daemon, on_progress) for step in steps), return_exceptions=True)
    for step, failure in zip(steps, ended, strict=True):
        if isinstance(failure, OllamaError) and step.optional:
            on_progress(Progress(step.label, f"left out: {failure.message}"))
        elif failure is not None:
            raise failure


async def _pull(step: Step, daemon: Daemon, on_progress: OnProgress) -> None:
    for attempt in range(1, PULL_ATTEMPTS + 1):
        try:
            await _report(step, daemon.pull(step.name or ""), on_progress)
            return
        except OllamaError as error:
            if not error.retry or attempt == PULL_ATTEMPTS:
                raise
            on_progress(Progress(step.label, f"cut ({error.message}); going on"))


async def _create(step: Step, todo: Plan, daemon: Daemon, on_progress: OnProgress) -> None:
    made = todo.recipes.get(step.persona or "")
    if made is None:
        raise ModelMissing(step.persona or "", f"{step.reason}, which Ollama does not list even after the pull")
    lines = daemon.create(made.name, from_=made.base, system=made.system, parameters=dict(made.parameters))
    await _report(step, lines, on_progress)


async def _report(step: Step, lines: AsyncGenerator[catalogue.Progress, None], on_progress: OnProgress) -> None:
    layers: dict[str, tuple[int, int]] = {}
    async with aclosing(lines):
        async for line in lines:
            if line.digest and line.total:
                layers[line.digest] = (line.completed or 0, line.total)
            total = sum(size for _, size in layers.values()) if layers else None
            done = sum(completed for completed, _ in layers.values()) if layers else None
            # What names no layer comes after the last byte, whose own line the daemon may leave out.
            on_progress(Progress(step.label, line.status, done if line.digest else total, total))


async def _verified(todo: Plan, daemon: Daemon) -> Plan:
    after = await plan(todo.codex, todo.profile, daemon)
    for step in after.steps:
        if not step.optional:
            name = step.name or step.persona or ""
            raise ModelMissing(name, f"Ollama reported {step.label} as done and does not list it")
    return after
