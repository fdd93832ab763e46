"""An errand: one message to a method on its way, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from batos.errors import MethodFailed
from batos.gate.citing import Quoted
from batos.memory.evidence import Evidence
from batos.methods.execution.plain_data import Data
from batos.methods.execution.write_buffer import WriteBuffer
from batos.minds.context import Interprets, MindContext
from batos.objects.method import Intent, IntentKind, Method
from batos.objects.prototype import UvmObject

#: How deep messages may be nested, methods counted.
DEEPEST: Final = 64
#: How many messages all methods of one errand may send together, if their cell lets them send so many.
MOST_SENDS: Final = 2_000
#: Lines that they may log together, and characters of each.
MOST_LINES: Final = 100
LONGEST_LINE: Final = 2_000


@dataclass(slots=True)
class InvocationLimits:
    """What the runs of one errand have used together of what is bounded."""

    sends: int = 0
    lines: int = 0
    #: The processor's seconds in the methods themselves, of the runs that stand.
    seconds: float = 0.0

    def send(self) -> None:
        """One more message; MethodFailed: no more may be sent."""
        self.sends += 1
        if self.sends > MOST_SENDS:
            raise MethodFailed(
                f"a method and those that it sent messages to sent more than {MOST_SENDS:,}",
                remedy="Make it do more in one message, or fewer of them.",
            )


@dataclass(frozen=True, slots=True)
class Invocation:
    """A message to a method with all that it is worked on with.

    `path` is its place in sample paths, `trust` how far the message is to be trusted, `below` the sheet of the method
    that sent it, `mind` that of the mind (None: the mission's own, whose methods write into the image), `depth` how
    many methods it stands in, itself counted. `intent` is what the slot was declared for, and `method` what answers
    it; None: the intent is interpreted.
    """

    context: MindContext
    interpreter: Interprets
    receiver: UvmObject
    holder: UvmObject
    selector: str
    method: Method | None
    args: tuple[Data, ...]
    path: str
    evidence: Evidence
    trust: str
    intent: Intent | None = None
    kind: IntentKind = "method"
    kwargs: Mapping[str, Data] = field(default_factory=dict)
    below: WriteBuffer | None = None
    mind: WriteBuffer | None = None
    depth: int = 1
    #: Which of its mind's sub-queries it is, from 1; 0: none.
    number: int = 0
    tally: InvocationLimits = field(default_factory=InvocationLimits)


@dataclass(frozen=True, slots=True)
class Thought:
    """What the model said to a method: its text, with what is kept beside it. `citations` stand in their documents."""

    answer: str
    citations: tuple[Quoted, ...] = ()
    known: bool = True
    gist: str = ""


@dataclass(frozen=True, slots=True)
class InvocationResult:
    """What came of an errand: data (objects in it are objects), what was thought on the way, and its trust."""

    value: Data
    thoughts: tuple[Thought, ...] = ()
    trust: str = "model"
    #: The processor's, in the method itself.
    seconds: float = 0.0
