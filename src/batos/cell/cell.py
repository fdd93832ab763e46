"""The cell: runs generated methods in worker processes, one fresh interpreter per call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from batos.cell.host import Host, Writes
from batos.cell.limits import Limits
from batos.cell.program import Program
from batos.cell.values import Value
from batos.errors import CellMissing
from batos.events import Events


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a method: the receiver's slots that it names, the arguments, and what time and chance are to be."""

    view: Mapping[str, Value]
    args: Sequence[Value] = ()
    kwargs: Mapping[str, Value] = field(default_factory=dict)
    seed: str = ""
    now: datetime | None = None  # None: the time at which it begins


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run: `result` is plain data or one Ref; `writes` are marked, or there are none."""

    result: Value
    writes: Writes
    sends: int
    printed: str
    seconds: float  # of the method's own time


class Cell:
    """A pool of workers; none is started before the first run."""

    def __init__(self, workers: int = 2, limits: Limits | None = None, events: Events | None = None) -> None: ...

    async def run(self, program: Program, call: Call, host: Host) -> Outcome:
        """Run a method: MethodFailed when it raises or gives no plain data, CovenantViolation when it wrote without
        the marker, CellKilled over a limit, CellMissing without an interpreter; whatever `host` raises.
        """
        raise CellMissing("not yet")

    async def aclose(self) -> None:
        """Stop the workers; runs under way end in CellMissing."""
