"""The negative cache: what failed lately is not tried again, until its time is over or the wish or coder is another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from batos.errors import BatosError, CovenantViolation, GenerationFailed
from batos.methods.generation.generation_log import Round


@dataclass(slots=True)
class NegativeCache:
    """Failures by the log of their generation, which is another for another wish, coder or dialect.

    What a generation came to is written in the journal, so a failure stands across restarts without a store of its own;
    what failed for want of Ollama or of a cell is kept nowhere: it says nothing about the wish.
    """

    seconds: float
    clock: Callable[[], datetime]
    _known: dict[str, tuple[datetime, BatosError]] = field(default_factory=dict)

    def failure(self, log: str) -> BatosError | None:
        """Why it failed, if that is not long ago; of what the journal was asked before."""
        known = self._known.get(log)
        if known is None:
            return None
        until, error = known
        if self.clock() >= until:
            del self._known[log]
            return None
        return error

    def add(self, log: str, error: BatosError) -> None:
        """It failed now."""
        self._known[log] = (self.clock() + timedelta(seconds=self.seconds), error)

    def read(self, opened: Round) -> BatosError | None:
        """The same, as the journal has it of the round before."""
        before = opened.before
        if before is None or before["ended"] != "failed":
            return None
        at = datetime.fromisoformat(before["at"])
        until = at + timedelta(seconds=self.seconds)
        if self.clock() >= until:
            return None
        error = _again(before["failed"])
        self._known[opened.log] = (until, error)
        return error


def _again(failed: Mapping[str, Any]) -> BatosError:
    """The error that was written down."""
    if failed["code"] == CovenantViolation.code:
        return CovenantViolation(failed["message"], faults=tuple(failed.get("faults", ())))
    return GenerationFailed(failed["message"], remedy=failed.get("remedy", ""))
