"""Names of the prototype graph that the kernel looks objects up by: personas, states and the cycle."""

from __future__ import annotations

from collections.abc import Mapping

#: Each state of the Prototypal State Machine with the message on which it does its work.
STATES: Mapping[str, str] = {
    "IDLE": "synthesize_response_for_",
    "DECOMPOSING": "_process_synthesis_",
    "DELEGATING": "_process_synthesis_",
    "SYNTHESIZING": "_process_synthesis_",
    "COMPLETE": "_process_synthesis_",
    "FAILED": "_process_synthesis_",
}

CYCLE = "cognitive_cycle_obj"


def state_slot(state: str) -> str:
    """Return the orchestrator's slot that holds a state's prototype: `idle_state_obj` for IDLE."""
    return f"{state.lower()}_state_obj"


def prototype_name(persona: str) -> str:
    """Return the root name of a persona's prototype: `robin_prototype_obj` for ROBIN."""
    return f"{persona.lower()}_prototype_obj"
