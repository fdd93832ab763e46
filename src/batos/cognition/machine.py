"""The Prototypal State Machine: a cycle is a clone whose state is its first parent, and a step is one message to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from batos.cognition.running import Running
from batos.errors import InternalError
from batos.objects.message import Interpreter, send
from batos.objects.prototype import UvmObject, become, parents_of

#: State names and the slots of `orchestrator_obj` that hold their prototypes.
PROTOTYPES: Final = {
    "IDLE": "idle_state_obj",
    "DECOMPOSING": "decomposing_state_obj",
    "DELEGATING": "delegating_state_obj",
    "SYNTHESIZING": "synthesizing_state_obj",
    "COMPLETE": "complete_state_obj",
    "FAILED": "failed_state_obj",
}

#: Which states may follow which; everything may follow into FAILED.
FOLLOWS: Final = {
    "IDLE": {"DECOMPOSING", "SYNTHESIZING"},
    "DECOMPOSING": {"DELEGATING"},
    "DELEGATING": {"SYNTHESIZING"},
    "SYNTHESIZING": {"COMPLETE"},
    "COMPLETE": {"IDLE"},
}


class Machine:
    """Runs a cycle from IDLE to IDLE again, or to FAILED."""

    def __init__(self, orchestrator: UvmObject, interpreter: Interpreter, running: Running) -> None:
        self._orchestrator = orchestrator
        self._interpreter = interpreter
        self._running = running

    def begin(self) -> UvmObject:
        """A cycle: a clone of the prototype, in the state IDLE."""
        cycle: UvmObject = self._orchestrator.cognitive_cycle_obj.clone()
        become(cycle, self._prototype("IDLE"))
        return cycle

    async def steps(self, cycle: UvmObject) -> AsyncIterator[str]:
        """Each state as it is entered; stop iterating to stop between two states.

        An exception in a state moves the cycle to FAILED, which dooms the transaction, and is raised again.
        """
        selector, question = "synthesize_response_for_", (self._running.brief.text,)
        state = self._enter(cycle, "IDLE")
        yield state
        while True:
            try:
                after = await send(self._interpreter, cycle, selector, *question)
                self._check(state, after)
            except BaseException:
                self._enter(cycle, "FAILED")
                await send(self._interpreter, cycle, "_process_synthesis_")
                raise
            state = self._enter(cycle, after)
            yield state
            if after == "IDLE":
                return
            selector, question = "_process_synthesis_", ()

    async def run(self) -> UvmObject:
        """All steps of a new cycle; answers the cycle, which is IDLE again."""
        cycle = self.begin()
        async for _ in self.steps(cycle):
            pass
        return cycle

    def _enter(self, cycle: UvmObject, state: str) -> str:
        become(cycle, self._prototype(state))
        self._running.note(state)
        return state

    def _prototype(self, state: str) -> UvmObject:
        prototype = getattr(self._orchestrator, PROTOTYPES[state])
        assert isinstance(prototype, UvmObject)
        return prototype

    @staticmethod
    def _check(state: str, after: object) -> None:
        if after not in FOLLOWS[state]:
            raise InternalError(f"the state {state} named {after!r} as the next")


def state_of(cycle: UvmObject) -> str:
    """The name of the state that a cycle is in: that of its first parent."""
    return str(parents_of(cycle)[0].name)
