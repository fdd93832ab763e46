"""Protocols of the two parties that receive a candidate: approvals ask a person, the lifecycle installs."""

from __future__ import annotations

from typing import Protocol

from batos.image.candidates import Candidate
from batos.objects.method import Method


class Approves(Protocol):
    """Keeps candidates that wait for a person (approvals)."""

    async def ask(self, candidate: Candidate, mission: str | None) -> str:
        """Ask for an approval once and return its id. Raises: GenerationFailed: the candidate was rejected before."""
        ...

    async def find_asked(self, holder: str, selector: str, intent: str, mission: str | None) -> str | None:
        """Return the id of the approval that is already asked for a slot's intent, if any."""
        ...

    def check_not_rejected(self, candidate: Candidate) -> None:
        """Raise GenerationFailed if a person rejected exactly this source."""
        ...


class Installs(Protocol):
    """Makes a method of a candidate (methods/lifecycle)."""

    async def install(self, candidate: Candidate) -> Method:
        """Install a candidate and return a copy of its method that belongs to no connection. Raises: Refused."""
        ...
