"""An attempt to generate a method: a dialogue in a session of its own, with its cost and provenance."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from batos.cell.cell import Cell
from batos.events import Events
from batos.image.ids import iso
from batos.inference.call_order import CallOrder
from batos.inference.canonical import canonical
from batos.inference.journal import Journal
from batos.inference.session import Session, Thinks
from batos.methods.generation import coder_prompt, lean_request, prototypes
from batos.methods.generation.dialogue import Dialogue
from batos.methods.generation.generation_log import Round
from batos.methods.generation.lean_dialogue import LeanDialogue
from batos.methods.generation.method_checks import REPLY
from batos.methods.generation.method_spec import MethodSpec
from batos.methods.generation.prototypes import AllMethodsTrial
from batos.methods.generation.quota import GenerationLimits
from batos.methods.generation.trial import Trial, TrialResult
from batos.protocol.event_payloads import METHOD_TRIED, MethodTried
from batos.protocol.method_documents import MethodProvenance
from batos.protocol.mission_documents import LearningDocument
from batos.records.candidates import Candidate


@dataclass(slots=True)
class GenerationDeps:
    """The dependencies that candidates are made with, shared by all generations of a UVM."""

    journal: Journal
    bridge: Thinks
    #: The digest of each known model, by name.
    digests: Mapping[str, str]
    #: The cell of the rehearsal, for which no mission waits.
    cell: Cell
    events: Events
    clock: Callable[[], datetime]
    allowance: GenerationLimits
    #: The description of the language of methods for the coder (guardian/dialect).
    dialect: str

    @property
    def dialect_digest(self) -> str:
        """Return the digest of the dialect.

        A generation under another dialect has another log, and earlier failures do not count for it.
        """
        return hashlib.sha256(self.dialect.encode()).hexdigest()

    def session(
        self,
        wanted: MethodSpec,
        opened: Round,
        check_stop: Callable[[], None],
        turns: CallOrder | None = None,
        read_at: bytes | None = None,
    ) -> Session:
        """Open the session of one round, with calls ordered by `turns`; paid answers are served from the journal.

        `read_at` is a commit of the image before which `wanted` was read, where no open mission guards that.
        """
        return Session(
            mission=opened.log,
            journal=self.journal if read_at is None else self.journal.as_of(read_at),
            bridge=self.bridge,
            digests=self.digests,
            limits=self.allowance.limits(lean=wanted.coder.form == "lean"),
            events=self.events,
            earlier=opened.paid,
            marks={wanted.coder.model: wanted.coder.marks},
            clock=self.clock,
            check_stop=check_stop,
            turns=turns or CallOrder(),
        )

    async def make(self, wanted: MethodSpec, opened: Round, session: Session, about: MethodProvenance) -> Candidate:
        """Make a candidate by a dialogue with the coder; `about` is added to its provenance.

        Raises: as `Dialogue.run`.
        """
        parts = prototypes.parts_of(wanted)
        if not parts:
            trial = self.trial(wanted)
            dialogue = self._dialogue(wanted, opened, session, trial)
            judged = await dialogue.run()
            return await self.candidate(wanted, trial, judged, self._provenance(dialogue, opened, about))
        tries = AllMethodsTrial(tuple(map(self.trial, parts)))
        first = prototypes.messages(wanted, parts, self.dialect, tries.decision.guide)
        dialogue = Dialogue(
            wanted, session, tries, self.events, opened.path, opened.first_messages or first, tries.decision
        )
        tried = await dialogue.run()
        made = self._provenance(dialogue, opened, about)
        found = [
            await self.candidate(trial.wanted, trial, judged, made)
            for trial, judged in zip(tries.trials, tried.parts, strict=True)
        ]
        return prototypes.candidate(wanted, tried, found)

    def _dialogue(self, wanted: MethodSpec, opened: Round, session: Session, trial: Trial) -> Dialogue:
        """Return the dialogue about one method, in the form that suits the coder."""
        if wanted.coder.form == "lean":
            first = opened.first_messages or lean_request.method_messages(wanted)
            return LeanDialogue(wanted, session, trial, self.events, opened.path, first)
        first = opened.first_messages or coder_prompt.messages(wanted, self.dialect, REPLY.guide)
        return Dialogue(wanted, session, trial, self.events, opened.path, first)

    def _provenance(self, dialogue: Dialogue, opened: Round, about: MethodProvenance) -> MethodProvenance:
        """Return the provenance of a candidate: its log, model, prompt, dialect, attempts and trust class."""
        wanted, session, begun = dialogue.wanted, dialogue.session, dialogue.begun
        return {
            "generation": opened.log,
            "round": opened.number,
            "model": wanted.coder.model,
            "model_digest": session.models.get(wanted.coder.model, wanted.coder.digest),
            "prompt_digest": hashlib.sha256(canonical(list(begun))).hexdigest(),
            "dialect": self.dialect_digest,
            "attempts": dialogue.attempts,
            "trust": wanted.trust,
            **about,
        }

    def trial(self, wanted: MethodSpec) -> Trial:
        """Return a trial for sources of this specification."""
        return Trial(wanted, self.cell, self.events)

    async def candidate(
        self, wanted: MethodSpec, trial: Trial, judged: TrialResult, provenance: MethodProvenance
    ) -> Candidate:
        """Return the candidate of a source that passed its trial, after counting the mutants that its checks kill."""
        verdict = judged.audit_verdict()
        mutants = await trial.worth(judged)
        self.events.emit(
            METHOD_TRIED,
            MethodTried(
                receiver=wanted.name,
                selector=wanted.selector,
                outcome="passed",
                mutants=mutants["made"],
                killed=mutants["killed"],
            ),
        )
        if judged.changes:
            provenance = {**provenance, "written": list(judged.changes)}
        return Candidate(
            holder=wanted.holder,
            selector=wanted.selector,
            intent=wanted.intent,
            source=judged.source,
            verdict=verdict.as_dict(),
            checks=tuple(check.as_dict() for check in judged.checks),
            provenance={"missions": [], **provenance, "at": iso(self.clock()), "mutants": mutants},
            mutants=mutants,
            former=wanted.former,
        )


def cost_of(session: Session) -> LearningDocument:
    """Return the cost of a generation in this process so far; answers that the journal already had cost nothing."""
    cost = session.cost
    return LearningDocument(calls=cost.calls, tokens=cost.prompt_tokens + cost.answer_tokens)
