"""An invocation of a method or an intent, its result, and the limits that nested invocations share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from batos.gate.evidence_index import Citation
from batos.memory.evidence import Evidence
from batos.methods.execution.plain_data import Data
from batos.methods.execution.resolution import ResolvedMessage
from batos.methods.execution.write_buffer import WriteBuffer
from batos.minds.context import MindContext, MindInterpreter
from batos.protocol.errors import MethodFailed

#: The most methods that may be nested by messages.
DEEPEST: Final = 64
#: The most messages of an invocation and all that it causes; the cell may allow a single run fewer.
MOST_SENDS: Final = 2_000
#: The most lines that they may log together, and the most characters of a line.
MOST_LINES: Final = 100
LONGEST_LINE: Final = 2_000


@dataclass(slots=True)
class InvocationLimits:
    """The use of shared limits so far, by an invocation and all that it causes: messages sent, log lines, seconds."""

    sends: int = 0
    lines: int = 0
    #: CPU seconds in the methods themselves, of the runs whose writes were merged.
    seconds: float = 0.0

    def send(self) -> None:
        """Count one more message. Raises: MethodFailed: more than MOST_SENDS were sent."""
        self.sends += 1
        if self.sends > MOST_SENDS:
            raise MethodFailed(
                f"a method and those that it sent messages to sent more than {MOST_SENDS:,}",
                remedy="Make it do more in one message, or fewer of them.",
            )

    def log(self) -> bool:
        """Count one more line, and return True if it may be logged: at most MOST_LINES may."""
        self.lines += 1
        return self.lines <= MOST_LINES

    def spend(self, seconds: float) -> None:
        """Add the CPU seconds of a run whose writes were merged."""
        self.seconds += seconds


#: The type of the message: one to a method, or one to an intent.
To = TypeVar("To", bound=ResolvedMessage)


@dataclass(frozen=True, slots=True)
class Invocation(Generic[To]):
    """A message to a method or an intent, with everything that is needed to answer it.

    `path` is its place in sample paths, and `trust` the trust class of the message. `below` is the write buffer of the
    method that sent it. `mind` is the write buffer of the mind; None means the mission's own mind, whose methods write
    into the image. `depth` counts the nested methods, itself included.
    """

    context: MindContext
    interpreter: MindInterpreter
    message: To
    path: str
    evidence: Evidence
    trust: str
    below: WriteBuffer | None = None
    mind: WriteBuffer | None = None
    depth: int = 1
    limits: InvocationLimits = field(default_factory=InvocationLimits)


@dataclass(frozen=True, slots=True)
class Thought:
    """An answer of the model to a method, with its citations; `is_known` is False if it says that nothing was found."""

    answer: str
    citations: tuple[Citation, ...] = ()
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class InvocationResult:
    """The result of an invocation: data, which may hold UvmObjects, the model's answers on the way, and the trust
    class.
    """

    value: Data
    thoughts: tuple[Thought, ...] = ()
    trust: str = "model"
    #: CPU seconds in the method itself.
    seconds: float = 0.0
