"""An attempt to generate a method, or a whole object, in a dialogue with a session of its own."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, create_model

from batos.agency.apis.description import read_description
from batos.cell.cell import Cell
from batos.events import Events
from batos.genesis.codex.declarations import ApiMethod, api_of
from batos.image.ids import iso
from batos.image.roots import Root
from batos.inference.canonical import canonical
from batos.inference.journal import Journal
from batos.inference.schema import Decision
from batos.inference.session import Session, Thinks
from batos.inference.vram.call_scheduler import SharedCard
from batos.methods.generation import dialogue, lean_request
from batos.methods.generation import method_checks as checking
from batos.methods.generation.described_methods import BY_DESCRIPTION, ExampleDialogue, draft, operation_of
from batos.methods.generation.dialogue import Dialogue
from batos.methods.generation.generation_limits import GenerationLimits, Round
from batos.methods.generation.lean_request import LeanDialogue
from batos.methods.generation.method_checks import LEAST_CHECKS, MOST_CHECKS, REPLY, SOURCE, CheckText
from batos.methods.generation.method_spec import MethodSpec
from batos.methods.generation.trial import Trial, TrialResult
from batos.minds.prompt import Message, with_guide
from batos.objects.method import Intent
from batos.protocol import brief as briefs
from batos.protocol.errors import DecisionInvalid, GenerationFailed, MessageNotUnderstood
from batos.protocol.event_payloads import METHOD_TRIED, MethodTried
from batos.protocol.method_documents import MethodProvenance, MutantsDocument
from batos.protocol.mission_documents import LearningDocument
from batos.records import methods, tools
from batos.records.approval_subjects import Candidate, digest_of_source

HEAD: Final = "You write every method of one object of BAT OS."

_TASK: Final = (
    "They take and return plain data, in the form that the API gives. No method reaches a network, a file or another "
    "program: this object can compute; ask the model (`await self.infer_(prompt)` answers a text), which may not know; "
    "and recall what is in memory (`await self.recall_(text)`). What it cannot find out it says as the API says that "
    "nothing was found, and it never pretends to have looked anywhere. A method may send another of the same object."
)


@dataclass(frozen=True, slots=True)
class AllMethodsTrial:
    """Tries a reply with every method of an object: if one fails, all fail."""

    trials: tuple[Trial, ...]

    async def reply(self, text: str) -> TrialResult:
        """Try each method of a reply; a fault begins with its selector. Raises: CellMissing: there is no cell."""
        try:
            reply = self.decision.parse(text)
        except DecisionInvalid as error:
            return TrialResult((error.message,), is_readable=False)
        given = {each.selector: each for each in reply.methods}
        missing = [trial.wanted.selector for trial in self.trials if trial.wanted.selector not in given]
        if missing:
            return TrialResult(tuple(f"`{selector}` is missing: write each method once" for selector in missing))
        parts: list[TrialResult] = []
        for trial in self.trials:
            written = given[trial.wanted.selector]
            checks, faults = checking.parse(written.checks)
            parts.append(await trial.reply_source(written.source, checks, faults))
            await asyncio.sleep(0)  # auditing six at once would block the event loop
        named = zip(self.trials, parts, strict=True)
        faults = [f"`{trial.wanted.selector}`: {fault}" for trial, part in named for fault in part.faults]
        refused = tuple(fault for part in parts for fault in part.refused)
        return TrialResult(tuple(faults), refused, join_sources(part.source for part in parts), parts=tuple(parts))

    @property
    def decision(self) -> Decision[Any]:
        """Return the schema of the reply."""
        return decision(tuple(trial.wanted.selector for trial in self.trials))


@lru_cache(maxsize=64)
def decision(selectors: tuple[str, ...]) -> Decision[Any]:
    """Return the schema of a reply with one method and its checks for each of these selectors."""
    many = len(selectors)
    checks = Field(min_length=LEAST_CHECKS, max_length=MOST_CHECKS, description="calls that tell it from doing nothing")
    source = Field(max_length=SOURCE, description="one Python function, its imports before it")
    fields: dict[str, Any] = {
        "checks": (Annotated[list[CheckText], checks], ...),
        "selector": (Literal[selectors], ...),
        "source": (Annotated[str, source], ...),
    }
    one: Any = create_model("OneMethod", **fields)
    described = Field(min_length=many, max_length=many, description="every method of the object, each once")
    listed: dict[str, Any] = {"methods": (Annotated[list[one], described], ...)}
    whole: type[BaseModel] = create_model("WholeObject", **listed)
    return Decision(whole)


def intent_of(declared: ApiMethod) -> Intent:
    """Return the intent for the slot of a declared method, while it has no method or after it is retired."""
    return Intent(text=declared.text, signature=declared.signature, may_learn=True, kind="tool")


def parts_of(wanted: MethodSpec) -> tuple[MethodSpec, ...]:
    """Return a specification for each method of a prototype; () for a single method."""
    if wanted.kind != "prototype":
        return ()
    return tuple(
        replace(
            wanted,
            holder=wanted.selector,
            name=wanted.selector,
            selector=declared.selector,
            kind="tool",
            intent=methods.digest_of(intent_of(declared)),
            text=declared.text,
            signature=declared.signature,
            title="",
            slots=(("api", "str"), ("name", "str")),
            former=None,
        )
        for declared in api_of(wanted.text)[0]
    )


def messages(wanted: MethodSpec, parts: Sequence[MethodSpec], dialect: str, guide: str) -> tuple[Message, ...]:
    """Return the messages of the first request for all methods of an object; `guide` is the reply's schema in prose."""
    owner = (f"Owner:\n{wanted.owner}",) if wanted.owner else ()
    asked = "\n\n".join(
        (
            *owner,
            f"Receiver: {wanted.selector}\nKind: {wanted.kind}",
            f"Api:\n{wanted.text.strip()}",
            "Messages:\n- infer_(prompt)\n- recall_(text)\n- log_(text)",
            f"Task:\n{with_guide(task(parts), guide)}",
        )
    )
    return ({"role": "system", "content": f"{HEAD}\n\n{dialect.strip()}"}, {"role": "user", "content": asked})


def task(parts: Sequence[MethodSpec]) -> str:
    """Return the task: the signatures, the form of arguments and results, and the form of the checks."""
    signatures = ", ".join(f"`{part.signature}`" for part in parts)
    return f"Write the methods {signatures}, each so that it does what the API says.\n{_TASK}\n{dialogue.CHECKS}"


def candidate(wanted: MethodSpec, judged: TrialResult, parts: Sequence[Candidate]) -> Candidate:
    """Return one candidate of all methods of an object, which is approved once and installed whole or not at all."""
    source = join_sources(part.source for part in parts)
    verdicts = {part.selector: dict(part.verdict) for part in parts}
    wishes = {declared.selector: intent_of(declared).as_dict() for declared in api_of(wanted.text)[0]}
    mutants = MutantsDocument(
        made=sum(part.mutants["made"] for part in parts), killed=sum(part.mutants["killed"] for part in parts)
    )
    return Candidate(
        holder=wanted.holder,
        selector=wanted.selector,
        intent=wanted.intent,
        source=source,
        verdict={"accepted": not judged.faults, "digest": digest_of_source(source), "methods": verdicts},
        checks=tuple({"selector": part.selector, **check} for part in parts for check in part.checks),
        provenance={**parts[0].provenance, "mutants": mutants},
        mutants=mutants,
        methods=tuple(replace(part, wish=wishes[part.selector]) for part in parts),
    )


def join_sources(sources: Iterable[str]) -> str:
    """Join sources into one text for a reader."""
    return "\n\n".join(source.strip("\n") for source in sources) + "\n"


# -- an object that is declared and does not exist yet, when a mission sends it a message


def absent_intent(root: Root, message: briefs.Message) -> Intent | None:
    """Return the intent of a message's receiver if it is declared and does not exist; None for any other receiver.

    Raises: MessageNotUnderstood: the object is absent, and its API does not declare the selector; nothing is paid for.
    """
    intent = tools.absent(root, message.receiver)
    if intent is None:
        return None
    declared = {each.selector: each.signature for each in api_of(intent.text)[0]}
    for each in read_description(intent.text).operations if tools.is_described(declared) else ():
        declared[each.name] = f"{each.name}({', '.join(each.required_names)})"
    if message.selector not in declared:
        signatures = ", ".join(declared.values())
        raise MessageNotUnderstood(message.receiver, message.selector).advise(f"Its API declares {signatures}.")
    return intent


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
    #: The card on which the coder's calls have their turns; None: each goes to the daemon at once.
    card: SharedCard | None = None

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
        priority: int = 0,
        read_at: bytes | None = None,
    ) -> Session:
        """Open the session of one round; paid answers are served from the journal.

        `priority` is that of the mission that waits for it. `read_at` is a commit of the image before which `wanted`
        was read, where no open mission guards that.
        """
        return Session(
            mission=opened.log,
            journal=self.journal if read_at is None else self.journal.as_of(read_at),
            bridge=self.bridge,
            digests=self.digests,
            limits=self.allowance.limits(lean=wanted.coder.form == "lean", many=max(1, len(parts_of(wanted)))),
            events=self.events,
            earlier=opened.paid,
            marks={wanted.coder.model: wanted.coder.marks},
            clock=self.clock,
            check_stop=check_stop,
            card=self.card,
            priority=priority,
        )

    async def make(self, wanted: MethodSpec, opened: Round, session: Session, about: MethodProvenance) -> Candidate:
        """Make a candidate by a dialogue with the coder; `about` is added to its provenance.

        Raises: as `Dialogue.run`.
        """
        parts = parts_of(wanted)
        if any(map(operation_of, (wanted, *parts))):
            return await self._make_described(wanted, parts, opened, session, about)
        if not parts:
            trial = self.trial(wanted)
            dialogue = self._dialogue(wanted, opened, session, trial)
            judged = await dialogue.run()
            return await self.candidate(wanted, trial, judged, self._provenance(dialogue, opened, about))
        if wanted.coder.form == "lean":
            return await self._make_each(wanted, parts, opened, session, about)
        tries = AllMethodsTrial(tuple(map(self.trial, parts)))
        first = messages(wanted, parts, self.dialect, tries.decision.guide)
        dialogue = Dialogue(
            wanted, session, tries, self.events, opened.path, opened.first_messages or first, tries.decision
        )
        tried = await dialogue.run()
        made = self._provenance(dialogue, opened, about)
        found = [
            await self.candidate(trial.wanted, trial, judged, made)
            for trial, judged in zip(tries.trials, tried.parts, strict=True)
        ]
        return candidate(wanted, tried, found)

    async def _make_each(
        self, wanted: MethodSpec, parts: Sequence[MethodSpec], opened: Round, session: Session, about: MethodProvenance
    ) -> Candidate:
        """Make the methods of an object one after another: a small coder does one thing in a small request."""
        tried: list[TrialResult] = []
        found: list[Candidate] = []
        for part in parts:
            path, first = f"{opened.path}/{part.selector.rstrip('_')}", lean_request.method_messages(part)
            dialogue = LeanDialogue(part, session, self.trial(part), self.events, path, first)
            tried.append(await dialogue.run())
            made = self._provenance(dialogue, opened, about)
            found.append(await self.candidate(part, self.trial(part), tried[-1], made))
        return candidate(wanted, TrialResult((), parts=tuple(tried)), found)

    async def _make_described(
        self, wanted: MethodSpec, parts: Sequence[MethodSpec], opened: Round, session: Session, about: MethodProvenance
    ) -> Candidate:
        """Make the methods of an API's operations; a reading for which nothing is known is left out of an object.

        Raises: GenerationFailed: there is none.
        """
        found: list[Candidate] = []
        for part in parts or (wanted,):
            writing = ExampleDialogue(part, session, opened.path)
            judged = await draft(part, self.trial(part), writing.ask)
            if not judged.faults:
                made = self._provenance(writing, opened, about)
                if not writing.attempts:  # no model wrote any of it
                    made = {**made, "model": "", "model_digest": "", "prompt_digest": "", "by": BY_DESCRIPTION}
                found.append(await self.candidate(part, self.trial(part), judged, made))
            elif part.selector.startswith(tools.REQUEST) or not parts:
                raise GenerationFailed(f"{part.selector!r} of {part.name} cannot be made: {'; '.join(judged.faults)}")
        return candidate(wanted, TrialResult(()), found) if parts else found[0]

    def _dialogue(self, wanted: MethodSpec, opened: Round, session: Session, trial: Trial) -> Dialogue:
        """Return the dialogue about one method, in the form that suits the coder."""
        if wanted.coder.form == "lean":
            first = opened.first_messages or lean_request.method_messages(wanted)
            return LeanDialogue(wanted, session, trial, self.events, opened.path, first)
        first = opened.first_messages or dialogue.messages(wanted, self.dialect, REPLY.guide)
        return Dialogue(wanted, session, trial, self.events, opened.path, first)

    def _provenance(
        self, dialogue: Dialogue | ExampleDialogue, opened: Round, about: MethodProvenance
    ) -> MethodProvenance:
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
