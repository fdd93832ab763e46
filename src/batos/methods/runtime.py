"""The method runtime: the cells that methods run in and the generator that makes them, opened and closed together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from batos.agency.api_transport import ApiSender
from batos.approvals.desk import Approvals
from batos.cell.cell import Cell
from batos.concurrency.threads import finish_despite_cancel
from batos.config import Settings
from batos.events import Events
from batos.genesis.past_reconciler import PastMind
from batos.guardian import policy
from batos.guardian.policy import SHIPPED
from batos.image.image import LivingImage
from batos.inference.journal import Journal
from batos.inference.session import Thinks
from batos.inference.vram.call_scheduler import SharedCard
from batos.methods.generation.attempt import GenerationDeps
from batos.methods.generation.generation_limits import GenerationLimits, GenerationQuota
from batos.methods.generation.generations import Generations
from batos.methods.generation.generator import MethodGenerator
from batos.methods.generation.method_checks import LIMITS
from batos.methods.lifecycle.lifecycle import MethodLifecycle
from batos.minds.context import MethodRuntime


@dataclass(frozen=True, slots=True)
class RuntimeParts:
    """The parts of the UVM that the method runtime is built from; `digests` has each known model's digest by name."""

    settings: Settings
    image: LivingImage
    journal: Journal
    bridge: Thinks
    card: SharedCard
    events: Events
    clock: Callable[[], datetime]
    lifecycle: MethodLifecycle
    approvals: Approvals
    digests: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CopySource:
    """Holds what a copy of the mind is to be, and the quota of methods that it has with the mind that it is of."""

    mind: PastMind
    quota: GenerationQuota


@dataclass(frozen=True, slots=True)
class OpenedRuntime:
    """The cell and the generator of one process, and the method runtime that a mission is given."""

    cell: Cell
    generator: MethodGenerator
    methods: MethodRuntime


@asynccontextmanager
async def open_method_runtime(
    parts: RuntimeParts, quota: GenerationQuota | None = None
) -> AsyncIterator[OpenedRuntime]:
    """Open the cell for methods and the generator, and close both at the end. Workers start at their first use.

    `quota` is that of the mind where the UVM is of a copy: its methods go with the copy.
    """
    cell = Cell(parts.settings.cell_workers, events=parts.events)
    # A cell of its own with one worker: no mission waits for a rehearsal, and mutants raise no alarm.
    rehearsal = Cell(1, LIMITS)
    deps = _generation_deps(parts, rehearsal)
    generations = Generations(deps, parts.lifecycle, parts.approvals, quota=quota)
    generator = MethodGenerator(parts.image, deps, generations)
    try:
        yield OpenedRuntime(
            cell,
            generator,
            MethodRuntime(
                cell,
                generator,
                parts.lifecycle,
                parts.settings.install,
                parts.settings.interpret,
                ApiSender(parts.settings.home),
                parts.approvals,
            ),
        )
    finally:
        await finish_despite_cancel(asyncio.ensure_future(_close(cell, rehearsal, generator)))


async def _close(cell: Cell, rehearsal: Cell, generator: MethodGenerator) -> None:
    """Close the generator, then both cells."""
    await generator.aclose()
    await rehearsal.aclose()
    await cell.aclose()


def _generation_deps(parts: RuntimeParts, rehearsal: Cell) -> GenerationDeps:
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
        card=parts.card,
        digests=parts.digests,
        cell=rehearsal,
        events=parts.events,
        clock=parts.clock,
        allowance=allowance,
        dialect=policy.dialect_text(SHIPPED),
    )
