"""From audited source to what a worker runs: parsed, lowered to what the interpreter has, and wrapped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from batos.errors import MethodFailed


class SlotNames(Protocol):
    """The names of the receiver's slots that a method uses, exactly; the guardian's `SlotUse` is one."""

    @property
    def reads(self) -> frozenset[str]: ...
    @property
    def writes(self) -> frozenset[str]: ...
    @property
    def mutates(self) -> frozenset[str]: ...
    @property
    def deletes(self) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class Program:
    """A method ready to run: pure data, a function of its source and slot names."""

    selector: str
    digest: str  # SHA-256 of the source, hex
    code: str  # what the worker is fed
    is_async: bool
    view: frozenset[str]  # slots to give to the method: all it names
    changes: frozenset[str]  # of these, what is read back


def prepare(source: str, slots: SlotNames, selector: str = "") -> Program:
    """A program of one method; MethodFailed when the source cannot be lowered. Pure, and cached.

    `selector` names the method when the source defines more than one function; the last is taken otherwise.
    """
    raise MethodFailed("not yet")
