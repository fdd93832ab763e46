"""A workshop with a real guardian and a real cell, whose coder is a function."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ZODB.DB import DB

from batos.cell.cell import Cell
from batos.concurrency.threads import CommitThread
from batos.events import Events
from batos.guardian import policy
from batos.image.roots import JournalRoot
from batos.image.writer import Writer
from batos.inference.journal import Journal
from batos.inference.ollama.bridge import ChatRequest
from batos.methods.generation import generation_limits
from batos.methods.generation.attempt import GenerationDeps
from batos.methods.generation.generation_limits import GenerationLimits
from batos.methods.generation.method_checks import LIMITS
from batos.methods.generation.method_spec import Coder, MethodSpec
from batos.protocol.errors import BatosError
from batos.records.approval_subjects import Candidate
from batos.testing import ScriptedBridge, method_reply

CODER = "coder:1"
START = datetime(2026, 1, 1, tzinfo=UTC)

#: What a coder that knows its trade writes for `WISH`, and its checks.
GOOD = "def add_up_(self, items):\n    total = 0\n    for item in items:\n        total += item\n    return total\n"
CHECKS: Sequence[Mapping[str, Any]] = (
    {"arguments": [[1, 2, 3]], "result": 6},
    {"arguments": [[5, -1]], "result": 4},
)
RIGHT = method_reply(GOOD, CHECKS)

WISH = MethodSpec(
    holder="oid:0x2a",
    name="brick_prototype_obj",
    selector="add_up_",
    kind="method",
    intent="0" * 64,
    text="Add up the items.",
    signature="add_up_(self, items)",
    title="",
    inspiration="",
    examples=(),
    owner="You are BRICK.",
    arguments=("list",),
    slots=(("count", "int"),),
    messages=("infer_",),
    trust="model",
    coder=Coder(CODER, "d" * 64, {"num_ctx": 4096}),
)


@dataclass
class Bench:
    """The dependencies of a generation, what was asked of its coder, and what it told."""

    deps: GenerationDeps
    bridge: ScriptedBridge
    told: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def names(self, event: str) -> list[Mapping[str, Any]]:
        """The keys of each event of that name, in order."""
        return [keys for name, keys in self.told if name == event]

    async def make(self, wanted: MethodSpec = WISH, *, check_stop: Callable[[], None] = lambda: None) -> Candidate:
        """One generation, of the round that is open."""
        opened = generation_limits.current_round(self.deps.journal, wanted.log("dialect"))
        session = self.deps.session(wanted, opened, check_stop)
        return await self.deps.make(wanted, opened, session, {"missions": ["m-1"]})

    @property
    def asked(self) -> list[ChatRequest]:
        """Every request of the coder's."""
        return self.bridge.history


class Coding:
    """A coder that says one thing after another; the last for ever."""

    def __init__(self, *said: str | BatosError) -> None:
        self.said = said
        self.count = 0

    def __call__(self, request: ChatRequest) -> str | BatosError:
        self.count += 1
        return self.said[min(self.count, len(self.said)) - 1]


@asynccontextmanager
async def bench(*said: str | BatosError, allowance: GenerationLimits | None = None) -> AsyncIterator[Bench]:
    """A workshop whose coder says these."""
    db, thread = DB(None), CommitThread()
    writer: Writer[JournalRoot] = Writer(db, thread, lambda error: error)
    bridge = ScriptedBridge(Coding(*said), models=(CODER,))
    cell = Cell(1, LIMITS)
    told: list[tuple[str, Mapping[str, Any]]] = []
    deps = GenerationDeps(
        journal=Journal(db, writer),
        bridge=bridge,
        digests={CODER: "d" * 64},
        cell=cell,
        events=Events(lambda name, keys: told.append((name, keys))),
        clock=lambda: START,
        allowance=allowance or GenerationLimits(),
        dialect=policy.dialect_text(),
    )
    try:
        yield Bench(deps, bridge, told)
    finally:
        await cell.aclose()
        writer.close()
        thread.close()
        db.close()


def wish(**changes: Any) -> MethodSpec:
    """`WISH` with changes."""
    return replace(WISH, **changes)
