"""The Prototypal State Machine: a cycle is a clone whose state is its first parent, and a step is one message to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

from batos.genesis.codex import declarations
from batos.minds.context import MindContext
from batos.minds.stopping import Stopped
from batos.objects.prototype import Interpreter, UvmObject, become, parents_of, send
from batos.protocol.errors import InternalError, ObjectError

#: The states that may follow each state; FAILED may follow every one.
FOLLOWS: Final = {
    "IDLE": {"DECOMPOSING", "DELEGATING", "SYNTHESIZING"},
    "DECOMPOSING": {"DELEGATING"},
    "DELEGATING": {"SYNTHESIZING"},
    "SYNTHESIZING": {"COMPLETE"},
    "COMPLETE": {"IDLE"},
}


def begin(orchestrator: UvmObject) -> UvmObject:
    """Begin a cycle: clone the prototype, in the state IDLE."""
    cycle: UvmObject = getattr(orchestrator, declarations.CYCLE).clone()
    become(cycle, _prototype(orchestrator, "IDLE"))
    return cycle


def state_of(cycle: UvmObject) -> str:
    """Return the name of a cycle's state, which is its first parent."""
    return str(parents_of(cycle)[0].name)


class Machine:
    """Runs a cycle from IDLE to IDLE again, or to FAILED."""

    def __init__(self, orchestrator: UvmObject, interpreter: Interpreter, context: MindContext) -> None:
        self._orchestrator = orchestrator
        self._interpreter = interpreter
        self._context = context

    async def steps(self, cycle: UvmObject) -> AsyncGenerator[str, None]:
        """Yield each state as it is entered; stop iterating to stop between two states.

        An exception in a state moves the cycle to FAILED and is raised again. FAILED dooms the transaction of the
        mission's own mind; a mind within another has none. Between two states the mission may be stopped: its thought
        is doomed, and its cycle stays in its state, because nothing failed.
        """
        state = self._enter(cycle, "IDLE")
        yield state
        while True:
            try:
                if not self._context.mind.inner:  # a mission stops here too, and not only before a call
                    self._context.io.session.check_stop()
                state = self._enter(cycle, await self._next(cycle, state))
            except Stopped:
                self._context.doom()
                raise
            except BaseException:
                await self._fail(cycle)
                raise
            yield state
            if state == "IDLE":
                return

    async def run(self, cycle: UvmObject) -> None:
        """Run all steps of a cycle, which is IDLE again after them."""
        async for _ in self.steps(cycle):
            pass

    async def _next(self, cycle: UvmObject, state: str) -> str:
        """Let the state do its work; the name of the one that follows."""
        args: tuple[Any, ...] = (self._context.mind.question,) if state == "IDLE" else ()
        after = await send(self._interpreter, cycle, declarations.STATES[state], *args)
        if not isinstance(after, str) or after not in FOLLOWS[state]:
            raise InternalError(f"the state {state} named {after!r} as the next")
        return after

    async def _fail(self, cycle: UvmObject) -> None:
        """Enter FAILED; the thought is doomed whatever that state does, also if it fails itself."""
        try:
            self._enter(cycle, "FAILED")
            await send(self._interpreter, cycle, declarations.STATES["FAILED"])
        finally:
            self._context.doom()

    def _enter(self, cycle: UvmObject, state: str) -> str:
        become(cycle, _prototype(self._orchestrator, state))
        mind = self._context.mind
        self._context.io.note(state, mind.name if mind.inner else None)
        return state


def _prototype(orchestrator: UvmObject, state: str) -> UvmObject:
    prototype = getattr(orchestrator, declarations.state_slot(state))
    if not isinstance(prototype, UvmObject):
        raise ObjectError(f"the state {state} is no object", remedy="Run `batos genesis`.")
    return prototype
