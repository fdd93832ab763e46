"""The doctor's finding on the cell, without which no generated method runs."""

from __future__ import annotations

from pathlib import Path

from batos.cell.cell import Cell, MethodCall
from batos.cell.host import MessageAnswer
from batos.cell.program import prepare
from batos.genesis.integrity import Finding
from batos.protocol.errors import BatosError, CellMissing


class _NoSlots:
    """No slots are used."""

    reads = writes = mutates = deletes = frozenset[str]()


class _SilentHost:
    """Nothing is sent by a method that only computes."""

    async def send(self, *_: object) -> MessageAnswer:
        return MessageAnswer()

    async def read(self, *_: object) -> MessageAnswer:
        return MessageAnswer()


async def runs(binary: Path | None = None) -> Finding:
    """Run a method that returns 42 in a worker of its own, and leave nothing of it. `binary`: another interpreter."""
    cell = Cell(1, binary=binary)
    try:
        outcome = await cell.run(
            prepare("def answer(self):\n    return 6 * 7\n", _NoSlots()), MethodCall({}), _SilentHost()
        )
    except BatosError as error:
        return Finding("cell.runs", False, str(error), _REMEDY if isinstance(error, CellMissing) else error.remedy)
    finally:
        await cell.aclose()
    if outcome.result != 42:
        return Finding("cell.runs", False, f"the cell computes 6 * 7 = {outcome.result!r}", _REMEDY)
    return Finding("cell.runs", True, "the cell runs: generated methods have their interpreter")


_REMEDY = "Install it again: pip install --force-reinstall pydantic-monty. Until then intents are interpreted."
