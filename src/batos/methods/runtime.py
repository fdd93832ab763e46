"""What missions run and learn methods with, opened and closed together: the cells, and the jit that they turn to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from batos.approvals.approvals import Approvals
from batos.cell.cell import Cell
from batos.concurrency.commit_thread import finish_despite_cancel
from batos.config import Settings
from batos.events import Events
from batos.guardian import dialect
from batos.guardian.policy import SHIPPED
from batos.image.image import LivingImage
from batos.inference.journal import Journal
from batos.inference.session import Thinks
from batos.methods.generation.attempt import GenerationDeps
from batos.methods.generation.generations import Generations
from batos.methods.generation.generator import Jit
from batos.methods.generation.quota import GenerationLimits
from batos.methods.generation.rehearsal import LIMITS
from batos.methods.lifecycle.lifecycle import MethodLifecycle
from batos.minds.context import MethodRuntime


class RuntimeParts(Protocol):
    """What they are made of: the UVM."""

    @property
    def settings(self) -> Settings: ...
    @property
    def image(self) -> LivingImage: ...
    @property
    def journal(self) -> Journal: ...
    @property
    def bridge(self) -> Thinks: ...
    @property
    def events(self) -> Events: ...
    @property
    def clock(self) -> Callable[[], datetime]: ...
    @property
    def lives(self) -> MethodLifecycle: ...
    @property
    def approvals(self) -> Approvals: ...
    @property
    def digests(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class OpenedRuntime:
    """What one process has: the cell, the jit, and both as a mission is given them."""

    cell: Cell
    jit: Jit
    methods: MethodRuntime


@asynccontextmanager
async def open_method_runtime(parts: RuntimeParts) -> AsyncIterator[OpenedRuntime]:
    """The cell that methods run in, and who makes them; no worker is started before it is needed."""
    cell = Cell(parts.settings.cell_workers, events=parts.events)
    # Of its own, with one worker: no mission waits for a rehearsal, and what mutants do is no alarm.
    rehearsal = Cell(1, LIMITS)
    workshop = _workshop(parts, rehearsal)
    jit = Jit(parts.image, workshop, Generations(workshop, parts.lives, parts.approvals))
    try:
        yield OpenedRuntime(
            cell, jit, MethodRuntime(cell, jit, parts.lives, parts.settings.install, parts.settings.interpret)
        )
    finally:
        await finish_despite_cancel(asyncio.ensure_future(_close(cell, rehearsal, jit)))


async def _close(cell: Cell, rehearsal: Cell, jit: Jit) -> None:
    await jit.aclose()
    await rehearsal.aclose()
    await cell.aclose()


def _workshop(parts: RuntimeParts, rehearsal: Cell) -> GenerationDeps:
    chosen = parts.settings
    allowance = GenerationLimits(
        calls=chosen.generation_calls,
        tokens=chosen.generation_tokens,
        seconds=chosen.generation_seconds,
        mission=chosen.mission_generations,
        hour=chosen.hour_generations,
        again=chosen.generation_again,
    )
    return GenerationDeps(
        journal=parts.journal,
        bridge=parts.bridge,
        digests=parts.digests,
        cell=rehearsal,
        events=parts.events,
        clock=parts.clock,
        allowance=allowance,
        dialect=dialect.text(SHIPPED),
    )
