"""The kernel's side of a running method: answers its messages, and holds its limits of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from batos.cell.values import Plain, Ref, Value


@dataclass(frozen=True, slots=True)
class Writes:
    """The changes that a method has made to its receiver so far, compared with the view that the method was given."""

    values: Mapping[str, Value] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()
    is_marked: bool = False  # whether `self._p_changed` is True

    def __bool__(self) -> bool:
        return bool(self.values or self.deleted)


@dataclass(frozen=True, slots=True)
class RaisedError:
    """An error that the method may catch: a Python exception by name (`KeyError`; an unknown one is a RuntimeError)."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class MessageAnswer:
    """The answer to a message: a value or an error, and a new view if the receiver may have changed."""

    value: Value = None
    slots: Mapping[str, Value] | None = None  # every slot of the view that exists now; None: nothing changed
    raised: RaisedError | None = None


class Host(Protocol):
    """The kernel's side of one run. Its methods are awaited on the event loop, and may wait as long as they like:
    no worker is held. An exception that they raise ends the run and is raised by it; what the method may catch is
    `Sent.raised`.
    """

    async def send(
        self, to: Ref | None, selector: str, args: list[Plain], kwargs: dict[str, Plain], pending: Writes
    ) -> MessageAnswer:
        """Send a message to another object, or to the receiver (None), whose unwritten changes are `pending`.

        Arguments are plain data. A Ref that is not in the host's table is refused by the host.
        """

    async def read(self, of: Ref, slot: str) -> MessageAnswer:
        """Read a slot of another object: plain data or a Ref. A missing slot is returned in `raised`, as
        AttributeError.
        """


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
