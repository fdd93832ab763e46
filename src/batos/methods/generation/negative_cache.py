"""The negative cache: a recent failure is not repeated until its time is over, or the intent or coder has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from batos.methods.generation.generation_log import Round
from batos.protocol.errors import BatosError, CovenantViolation, GenerationFailed


@dataclass(slots=True)
class NegativeCache:
    """Recent failures by the log of their generation; another intent, coder or dialect has another log.

    The journal records the end of each generation, so a failure survives a restart without a store of its own. Failures
    for want of Ollama or of a cell are not kept, because they say nothing about the intent.
    """

    seconds: float
    clock: Callable[[], datetime]
    _known: dict[str, tuple[datetime, BatosError]] = field(default_factory=dict)

    def failure(self, log: str) -> BatosError | None:
        """Return the error of a failure that is still recent; None if there is none in memory."""
        known = self._known.get(log)
        if known is None:
            return None
        until, error = known
        if self.clock() >= until:
            del self._known[log]
            return None
        return error

    def add(self, log: str, error: BatosError) -> None:
        """Add a failure of this moment."""
        self._known[log] = (self.clock() + timedelta(seconds=self.seconds), error)

    def read(self, opened: Round) -> BatosError | None:
        """Return the error of the round before, from the journal, if it is still recent; otherwise None."""
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
    """Return the error that was recorded."""
    if failed["code"] == CovenantViolation.code:
        return CovenantViolation(failed["message"], faults=tuple(failed.get("faults", ())))
    return GenerationFailed(failed["message"], remedy=failed.get("remedy", ""))
