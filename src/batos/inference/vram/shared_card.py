"""The daemon's card, as all sessions share it: the order of their calls, and where each model lies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field

from batos.events import Events
from batos.inference.ollama.chat import ChatRequest, runner_key
from batos.inference.vram.call_scheduler import ALL, BOUND, Call, CallScheduler, CallTurn
from batos.inference.vram.placement import LOOK_SECONDS, Bases, Looks, Placement, Watch, wants_card
from batos.inference.vram.residents import Runner
from batos.protocol.errors import OllamaError


@dataclass(slots=True)
class SharedCard:
    """The card behind one daemon, for the calls of one event loop; `many` is how many a runner answers at once.

    `bound` are the seconds after which a call that waits for a load is overdue.
    """

    daemon: Looks
    events: Events
    many: int = ALL
    bound: float = BOUND
    scheduler: CallScheduler = field(init=False)
    _bases: Bases = field(init=False)
    _watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.scheduler = CallScheduler(self.many, self.bound)
        self._bases = Bases(self.daemon)
        self._watch = Watch(self.daemon, self.events, self._bases)

    @asynccontextmanager
    async def turn(
        self, request: ChatRequest, digest: str, mission: str, priority: int = 0, within: float | None = None
    ) -> AsyncIterator[CallTurn]:
        """Wait until a mission's call may be made, and hold its place while inside; `digest` is its model's.

        Raises: TimeoutError: its turn did not come within so many seconds.
        """
        runner = await self.runner(request.model, digest, request.options)
        async with self.scheduler.turn(Call(runner, request.messages, mission, priority, within)) as turn:
            yield turn

    def attend(self, mission: str) -> AbstractContextManager[None]:
        """Keep the runner of a mission's last call for it for a moment, while the mission runs."""
        return self.scheduler.attend(mission)

    async def runner(self, model: str, digest: str, options: Mapping[str, object]) -> Runner:
        """Return what a call needs in memory; a model about which the daemon says nothing shares with nobody."""
        kin: tuple[str, ...] = ()
        with suppress(OllamaError, TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                kin = await self._bases.kin(model, digest)
        base, *adapters = kin or (digest,)
        return Runner(base, (*adapters, *runner_key("", options)), wants_card(options) or bool(options.get("num_gpu")))

    async def look(self, model: str, digest: str, options: Mapping[str, object], loaded: float) -> Placement | None:
        """Find where a model lies after a call, as `Watch.look` does."""
        return await self._watch.look(model, digest, options, loaded)
