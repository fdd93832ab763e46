"""What a message to a declared intent is answered with: a method that is there, is made now, or none."""

from __future__ import annotations

from typing import Any, Protocol

from batos.cognition.generating.candidate import Candidate
from batos.cognition.running import Running
from batos.objects.method import Method
from batos.objects.prototype import Found, UvmObject


class Approves(Protocol):
    """Where a candidate waits for a person."""

    async def ask(self, candidate: Candidate, mission: str | None) -> str:
        """The id of the approval that is asked for; the same candidate asks once."""
        ...

    def answer(self, holder: str, selector: str, digest: str) -> str | None:
        """What was said of it: `approved`, `rejected`, `asked`, or None if it was never asked for."""
        ...


class Jit(Protocol):
    """One for all missions: what it learns for one is there for the others."""

    async def method_for(
        self, running: Running, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...] = ()
    ) -> Method | None:
        """The method for an intent that was sent a message; None: it is interpreted.

        Of `args` nothing but their types is used. What was made is also noted in `running.generated` (for the mission's
        later messages) and told in `running.learned` (for its provenance). GenerationFailed, CovenantViolation,
        ApprovalNeeded: only where policy forbids interpretation.
        """
        ...

    async def redefine(
        self, holder: str, selector: str, by: str, *, wish: str | None = None, source: str | None = None
    ) -> Candidate:
        """A candidate from a new wish, or of a person's own source: audited and checked alike, not installed.

        NotFound: no such object or intent. GenerationFailed, CovenantViolation: nothing acceptable came of it.
        """
        ...
