"""Holds what a mind has so far, its parts' results and its answer, and the task of one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from batos.gate.attribution import Attribution, Attributor
from batos.gate.checks import GateFault, GateVerdict
from batos.gate.evidence_index import Citation
from batos.memory.evidence import Evidence
from batos.protocol.errors import BatosError, InternalError
from batos.protocol.mission_documents import ChangeDocument, CombinedDocument, ProtocolDocument, VoiceDocument

#: The attribution of an answer that no model wrote.
NOTHING: Final = Attribution(())


@dataclass(frozen=True, slots=True)
class PartResult:
    """The result of one part of a mind: data, never writes; `failure` gives the reason if there is no answer.

    With documents `is_known` is True if they carry any of the answer.

    A part is a facet of `persona`, or that persona as a mind of its own. In a persona's result `parts` are its own
    parts, and `faults` the gate's faults of its answer.
    """

    number: int
    slot: str
    name: str
    query: str
    answer: str = ""
    citations: tuple[Citation, ...] = ()
    is_known: bool = False
    #: The answer says that nothing was found, or only the question again.
    found_nothing: bool = False
    #: The answer would have gone on, and was cut.
    was_cut: bool = False
    failure: BatosError | None = None
    persona: str = ""
    parts: tuple[PartResult, ...] = ()
    faults: tuple[GateFault, ...] = ()
    #: The sentence of the answer that is compared, if it was given as a vote.
    gist: str = ""
    #: The change made by each call of this mind (changes.py).
    changes: tuple[ChangeDocument, ...] = ()

    @property
    def open(self) -> bool:
        """Test if the sub-query has no answer."""
        return self.failure is not None or self.found_nothing or not self.answer.strip()

    @property
    def is_mind(self) -> bool:
        """Test if this part is a persona: one that ran a cycle of its own, or one of two voices."""
        return self.slot == self.persona.lower()

    def as_dict(self) -> VoiceDocument:
        """Return a voice as CONTRACT's `voices` shows it; a persona's contains the voices of its facets."""
        shown = VoiceDocument(
            persona=self.persona,
            name=self.name,
            query=self.query,
            answer=self.answer,
            known=self.is_known,
            citations=[each.as_dict() for each in self.citations],
        )
        if not self.is_mind:
            shown = {"facet": self.slot, **shown}
        if self.gist:
            shown["gist"] = self.gist
        if self.is_mind:
            shown["faults"] = [each.as_dict() for each in self.faults]
            shown["voices"] = [each.as_dict() for each in self.parts]
        if self.failure is not None:
            shown["failure"] = self.failure.as_dict()
        return shown


#: Says of the parts that answered or failed so far whether the others need not be asked.
Enough: TypeAlias = Callable[[Sequence[PartResult]], bool]


@dataclass(frozen=True, slots=True)
class MindAnswer:
    """An answer as the model wrote it; `was_cut` tells that it would have gone on.

    Its `citations` and the numbers of the sub-queries that are `unanswered` are computed when it is judged. A
    rule made an answer that `is_ruled`. An answer that `is_structured` has the schema of who asked, and stays as it is.
    """

    answer: str
    citations: tuple[Citation, ...] = ()
    unanswered: frozenset[int] = frozenset()
    was_cut: bool = False
    gist: str = ""
    is_known: bool = True
    is_ruled: bool = False
    is_structured: bool = False


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer with the gate's verdict on it, and the sentences that it rests on."""

    answer: MindAnswer
    verdict: GateVerdict
    attribution: Attribution = NOTHING


@dataclass(slots=True)
class Synthesis:
    """The work of a cycle so far, in a slot of the cycle while it runs and dropped at the end.

    `evidence` is shown to the next call and shrinks if a prompt does not fit. `recalled` is the evidence that IDLE
    recalled: calls were shown it, so answers are judged by it.
    """

    recalled: Evidence = field(default_factory=Evidence)
    evidence: Evidence = field(default_factory=Evidence)
    queries: dict[str, str] = field(default_factory=dict)
    #: The reason why the question was not divided, if it might have been: then each part was given the question.
    undivided: str = ""
    #: No model was asked to divide the question, because a rule knew.
    is_unasked: bool = False
    parts: tuple[PartResult, ...] = ()
    #: Parts that the weave was shown shortened, for lack of room.
    shortened: int = 0
    #: The way to one answer: the mode, and the findings of select and vote.
    combined: CombinedDocument = field(default_factory=CombinedDocument)
    #: Each answer that stood for a while, with its verdict: as combined, as revised, as a protocol left it.
    drafts: list[JudgedAnswer] = field(default_factory=list)
    #: The verdict on the first answer, if it led to a revision.
    revised: GateVerdict | None = None
    #: The verdict on a revision that was discarded.
    discarded: GateVerdict | None = None
    #: The key protocol that was applied or tried.
    protocol: ProtocolDocument | None = None
    #: The reader of the answer that is streamed; the gate goes on with what it has read.
    attributor: Attributor | None = None

    @property
    def standing(self) -> JudgedAnswer:
        """Return the answer that stands. InternalError: no answer was judged yet."""
        if not self.drafts:
            raise InternalError("an answer was not judged")
        return self.drafts[-1]


@dataclass(frozen=True, slots=True)
class Task:
    """The task of one call. `text` ends the prompt: in full form the whole task, in lean form the question or the task.

    A `plain` task is the question itself, before which a line on the speaker is enough. `query` is the question that it
    asks, "" if it asks for something else, and `computed` what was computed for that.

    The other fields are the lean form's. `line` says who speaks and what is done with a text, `whole` the same where
    texts are shown whole and `alone` where none is; an empty one is `line`, or the voice's own. Evidence is chosen for
    `query`, none for "". `material` is shown behind it. `asks` says that `text` is a question. `examples` are earlier
    requests of the kind with their replies.
    """

    text: str
    line: str = ""
    whole: str = ""
    alone: str = ""
    query: str = ""
    computed: str = ""
    material: str = ""
    asks: bool = False
    examples: tuple[tuple[str, str], ...] = ()
    plain: bool = False

    def beside(self, more: str) -> Task:
        """Return the task with further text to be told of: beside the text that a small model is shown, else behind."""
        if not self.material or not more.strip():
            return self.then(more)
        return replace(self, material=f"{self.material}\n{more.strip()}")

    def then(self, more: str) -> Task:
        """Return the task with further lines at its end, such as a description of the reply."""
        return replace(self, text=f"{self.text.strip()}\n\n{more.strip()}".strip())
