"""The record of a thought: its answer, the origin of every part of it, and its trust."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from batos.agency.records import api_records, effect_records
from batos.gate import attribution
from batos.image.records import least_trust
from batos.inference.session import Session
from batos.memory.evidence import Evidence, Passage, Summary
from batos.memory.exchanges import MEMORABLE, is_memorable, pack
from batos.minds import answers_by_rule, computed_results
from batos.minds.combine import changes
from batos.minds.context import MindContext
from batos.minds.results import Synthesis
from batos.minds.tools import telling
from batos.protocol.evidence_documents import (
    Recalled,
    RecalledPassage,
    RecalledTurn,
    RecalledView,
    SlotDocument,
)
from batos.protocol.mission_documents import GateDocument, PlacementDocument, ProvenanceDocument
from batos.records import approval_subjects, tool_declarations, tools


def write(context: MindContext, synthesis: Synthesis) -> None:
    """Write the answer of a complete synthesis onto the thought."""
    standing, thought = synthesis.standing, context.mission.thought
    thought.answer = answers_by_rule.lead_of(context) + standing.answer.answer
    thought.voices = [part.as_dict() for part in synthesis.parts]
    thought.route = context.mission.route.as_dict()
    thought.trust = "model"
    thought.lineage_trust = least_trust(
        lineage_trust(synthesis.recalled), context.mission.brief.system_trust, *context.trace.trusts
    )
    thought.cost = context.io.session.cost.as_dict()
    thought.provenance = provenance = _provenance(context, synthesis)
    if context.trace.wanted:
        provenance["tool_calls"] = list(context.trace.wanted)
    if context.trace.indexed:
        thought.indexed_documents = pack(context.trace.indexed)
    thought.contributions = _contributions(context, len(standing.verdict.faults))


def placements(session: Session) -> list[PlacementDocument]:
    """List where the models of this session lay: on the card, the processor, or divided between them."""
    return [found.as_dict() for found in session.placements.values()]


def attempt_record(context: MindContext) -> ProvenanceDocument | None:
    """Return the facts of an attempt without an answer: placements, methods that ran, and methods made or tried; or
    None.
    """
    shown = ProvenanceDocument()
    if looked_at := placements(context.io.session):
        shown["placements"] = looked_at
    if context.trace.behaviour:
        shown["methods"] = list(context.trace.behaviour)
    if context.trace.learned:
        shown["generated"] = list(context.trace.learned)
    return shown or None


def lineage_trust(recalled: Evidence) -> str:
    """Return the least trusted class of everything an answer was made from: question, model, and recalled evidence."""
    turns = (*(each.trust for each in recalled.view), *(each.trust for each in recalled.turns))
    return least_trust("user", "model", *turns, *(each.trust for each in recalled.passages))


def _provenance(context: MindContext, synthesis: Synthesis) -> ProvenanceDocument:
    evidence, said, lead = synthesis.evidence, synthesis.standing.answer, answers_by_rule.lead_of(context)
    recalled = synthesis.recalled.merge(context.trace.seen)
    shown: ProvenanceDocument = {
        "personas": list(context.mission.route.personas),
        "journal": list(context.io.session.keys),
        "models": context.io.session.models,
        "forms": dict(sorted(context.trace.forms.items())),
        "placements": placements(context.io.session),
        "methods": list(context.trace.behaviour),
        "generated": list(context.trace.learned),
        "written": list(context.trace.written),
        "recalled": _recalled_documents(recalled),
        "omitted": {
            "passages": evidence.omitted_passages,
            "turns": evidence.omitted_turns,
            "parts": synthesis.shortened,
        },
        "focus": [context.trace.focus[path] for path in sorted(context.trace.focus)],
        "citations": attribution.in_files(said.citations, recalled),
        "sentences": [
            {**each, "span": [place + len(lead) for place in each["span"]]}
            for each in attribution.list_sentences(synthesis.standing.attribution)
        ],
        "unanswered": sorted(said.unanswered),
        "combined": synthesis.combined,
        "changes": changes.list_changes(context, synthesis),
        "gate": _gate(synthesis),
        "earlier": list(context.mission.failures),
        "read_at": context.mission.read_at,
    }
    if context.trace.tools:
        shown["tools"] = list(context.trace.tools)
    if told := telling.lead_of(context):
        shown["about_tools"] = told
    elif context.trace.memory.state in ("nothing", "perhaps"):
        shown["without_memory"] = lead.strip()
    if computed := computed_results.documents(context):
        shown["computed"] = computed
    if context.trace.rules:
        shown["rules"] = sorted(context.trace.rules, key=lambda rule: (rule["path"], rule["decision"]))
    if steps := context.mission.steps.redefined_states():
        shown["steps"] = steps
    if read := context.trace.read:
        shown["read"] = [SlotDocument(oid=oid, slot=slot) for oid, slot in read]
    if said.was_cut:
        shown["cut"] = True
    if withdrawn := [each for each in context.trace.withdrawn if each["text"].strip() != (lead + said.answer).strip()]:
        shown["withdrawn"] = withdrawn
    return shown


def _gate(synthesis: Synthesis) -> GateDocument:
    """Return the verdict on the final answer, with the causes of its revision or its protocol."""
    verdict = synthesis.standing.verdict
    revised = synthesis.revised is not None and synthesis.discarded is None
    faults = [fault.as_dict() for fault in verdict.faults]
    shown = GateDocument(
        ok=verdict.ok, state=verdict.state, checked=list(verdict.checked), faults=faults, revised=revised
    )
    if synthesis.revised is not None and revised:
        shown["mended"] = [fault.as_dict() for fault in synthesis.revised.faults]
    if synthesis.discarded is not None:
        shown["discarded"] = [fault.as_dict() for fault in synthesis.discarded.faults]
    if synthesis.protocol is not None:
        shown["protocol"] = synthesis.protocol
    return shown


def _recalled_documents(evidence: Evidence) -> list[Recalled]:
    passages = [_recalled_passage(each) for each in evidence.passages]
    view = [_recalled_view(each, evidence.undone) for each in evidence.view]
    turns = [RecalledTurn(mission=turn.mission, turn=turn.position, trust=turn.trust) for turn in evidence.turns]
    return [*passages, *view, *turns]


def _recalled_view(summary: Summary, undone: Iterable[int]) -> RecalledView:
    told = RecalledView(turns=[summary.first, summary.last], by_model=summary.by_model, trust=summary.trust)
    if within := [each for each in undone if summary.first <= each <= summary.last]:
        told["undone"] = within
    return told


def _recalled_passage(passage: Passage) -> RecalledPassage:
    told = RecalledPassage(
        document=passage.number,
        name=passage.name,
        sha256=passage.sha256,
        start=passage.start,
        length=len(passage.text),
        trust=passage.trust,
    )
    if passage.document:
        told["memory"], told["chunk"], told["why"] = passage.document, passage.chunk, passage.why
    if passage.standing:
        told["standing"] = passage.standing
    if passage.source:
        told["source"] = passage.source
    if passage.left_out:
        told["left_out"] = [*passage.left_out]
    return told


def _contributions(context: MindContext, gate_faults: int) -> list[tuple[str, Any]]:
    cost = context.io.session.cost
    counted = {"persona": context.mind.voice.name, "calls": cost.calls, "measured": dict(context.io.session.measured)}
    found: list[tuple[str, Any]] = [("statistics", counted)]
    brief, is_answer = context.mission.brief, not context.trace.wanted
    if brief.conversation is not None and brief.message is None and is_answer:
        found.append(("turn", {"conversation": brief.conversation}))
    if context.trace.indexed or (is_memorable(brief) and is_answer):
        found.append((MEMORABLE, {}))
    if context.trace.forgets:
        found.append((approval_subjects.FORGET_KIND, {"documents": list(context.trace.forgets)}))
    if context.io.methods.lifecycle is not None:
        found += [("method", use.payload(gate_faults)) for use in context.trace.uses]
    found += [(effect_records.KIND, {**each, "number": number}) for number, each in enumerate(context.trace.effects, 1)]
    found += [(tool_declarations.KIND, tool) for tool in context.trace.forged]
    found += [(api_records.KIND, reply) for reply in context.trace.api_replies]
    found += [(tools.WISH_KIND, wish) for wish in tools.wishes_in(context.trace.learned)]
    return found
