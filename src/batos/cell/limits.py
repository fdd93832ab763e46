"""Limits of a method's use of the machine, each with the name that `cell.kill` and CellKilled give."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CellLimits:
    """Bounds of one run. Time is that of the method itself: what it waits for (a message, inference) is not counted."""

    memory: int = 64 << 20  # bytes of the interpreter's heap ("memory")
    seconds: float = 5.0  # of execution, over all turns ("time")
    turn_seconds: float = 2.0  # of execution between two messages ("time")
    wall_seconds: float = 4.0  # until a worker that does not answer is killed ("hang")
    recursion: int = 200  # calls deep ("recursion")
    messages: int = 500  # to self and others, reads of others' slots too ("messages")
    nested_messages: int = 1000  # of a run and all runs that its messages brought about ("messages")
    nesting: int = 64  # runs within runs ("nesting")
    bytes: int = 1 << 20  # of the arguments, the view, a message, its answer, or the result, as JSON ("bytes")
    output: int = 64 << 10  # characters printed ("output")
