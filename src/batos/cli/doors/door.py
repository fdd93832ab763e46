"""The door of a verb: the one way to the mind, whether a server has it or this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from batos.client.pending import OnAcknowledged, OnEvent, nobody, send_files
from batos.protocol.errors import NoServer

if TYPE_CHECKING:
    from batos.client.line import Line
    from batos.protocol.brief import File
    from batos.protocol.method_documents import LateReport
    from batos.uvm import UVM


class Answers(Protocol):
    """Answers a verb of docs/protocol.md: a dispatcher, through a server's client or in this process."""

    async def __call__(
        self, verb: str, args: Mapping[str, object], on_event: OnEvent, on_acknowledged: OnAcknowledged, /
    ) -> dict[str, object]:
        """Answer it; raises the BatosError that came of it."""
        ...


@dataclass(frozen=True, slots=True)
class Door:
    """The way to the mind: whoever answers, the same calls give the same results, events and errors."""

    answers: Answers
    #: Yields the notices of the server that answers, which goes on with missions without this process; None: none does.
    watch: Callable[[Sequence[str]], AsyncIterator[dict[str, object]]] | None = None
    #: The mind, where this process has it and sees to what a server would do by itself; else None.
    uvm: UVM | None = None
    #: The process that has the image open, where this one only looks at it; and a test if that runs a mission.
    holder: str = ""
    runs: Callable[[str], Awaitable[bool]] | None = None

    @property
    def served(self) -> bool:
        """Test if a server answers."""
        return self.watch is not None

    async def call(
        self,
        verb: str,
        args: Mapping[str, object] | None = None,
        on_event: OnEvent | None = None,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> dict[str, Any]:
        """Ask one thing (docs/protocol.md has the verbs); raises the BatosError that came of it."""
        return await self.answers(verb, args or {}, on_event or nobody, on_acknowledged or nobody)

    async def attach(self, files: Sequence[File]) -> list[dict[str, object]]:
        """Hand over the bytes of files; return the references that a brief carries."""
        return await send_files(self.call, files)

    async def attends(self, mission: str) -> bool:
        """Test if another process is at work on a mission that has not ended, or will be without being asked."""
        return self.served or (self.runs is not None and await self.runs(mission))

    async def left_behind(self) -> list[str]:
        """Settle and queue the missions that nobody runs, and return them."""
        return [] if self.uvm is None else await self.uvm.missions.recover()

    async def begin(self, mission: str) -> None:
        """Run a queued mission, where no server does. Raises: NoServer: the image is only read."""
        if self.uvm is not None:
            await self.uvm.missions.begin(mission)
        elif not self.served:
            raise NoServer(f"no server runs, and {mission} can only be read")

    async def start_due(self, mission: str) -> str | None:
        """Begin what an answered turn made due, where no server does, and return its id."""
        return None if self.uvm is None else await self.uvm.follow_ups.start_due(mission)

    async def learn(self, mission: str) -> LateReport:
        """Make methods now that the mission is answered, where no server does; return {made, left, new}."""
        if self.uvm is None:
            return {"made": [], "left": 0, "new": 0}
        return await self.uvm.learning.learn_after(mission, self.uvm.readings.mission(mission)["cost"])

    async def keep_learning(self) -> None:
        """Begin to make methods while nobody asks anything, where no server does."""
        if self.uvm is not None:
            self.uvm.learning.keep()


#: A door that is opened by `async with`, inside the loop.
Opened: TypeAlias = AbstractAsyncContextManager[Door]


@asynccontextmanager
async def open_server_door(line: Line) -> AsyncIterator[Door]:
    """Open the door to a server, which sees by itself to what was left, is due and is to be learnt."""
    try:
        await line.open()
        yield Door(line.call, line.watch)
    finally:
        await line.close()
