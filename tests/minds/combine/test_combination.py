"""Combining: woven, selected or voted, with the fewest calls; empties, ties and failures have one outcome each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.minds.conftest import Mind
from tests.minds.scripted import BAD, GOOD, LAMP, QUESTION, TRIMS, WINDS, ask, candidate, kind, stepping, submit

from batos.gate.evidence_index import Citation
from batos.inference.ollama.bridge import ChatRequest
from batos.memory.evidence import Evidence
from batos.memory.passages import passages
from batos.minds import states
from batos.minds.combine import combination
from batos.minds.results import PartResult, Synthesis
from batos.protocol.errors import Runaway, StreamCut

CITED = (Citation(1, 0, len(WINDS), WINDS),)
TRIMMED = (Citation(1, len(WINDS) + 6, len(WINDS) + 6 + len(TRIMS), TRIMS),)
#: An answer that the document carries, as the keeper's winding and trimming are.
OIL = "The oil of 1,200 cans is carried up by Anna Lund."
#: A question that short answers fit.
STEPS = "How many steps from the yard is the oil carried up?"


def part(number: int, answer: str, citations: tuple[Citation, ...] = CITED, *, query: str = QUESTION) -> PartResult:
    """A facet's answer; without one it is open."""
    return PartResult(number, f"{number}_facet_", f"Facet {number}", query, answer, citations, bool(answer))


def failed(number: int) -> PartResult:
    """A facet that failed."""
    return PartResult(number, f"{number}_facet_", f"Facet {number}", QUESTION, failure=StreamCut("cut"))


async def combined(
    mind: Mind, parts: Sequence[PartResult], combine: str, of: int | None = None, question: str = QUESTION
) -> Synthesis:
    """What becomes of these parts of a mission that asks for that way."""
    mission = await submit(mind.uvm, question, policy={"combine": combine})
    async with stepping(mind.uvm, mission) as opened:
        evidence = Evidence(passages([("lamp.txt", "a" * 64, LAMP.data.decode())]))
        synthesis = Synthesis(evidence, evidence, parts=tuple(parts))
        synthesis.queries = {f"{number}_facet_": QUESTION for number in range(1, (of or len(parts)) + 1)}
        said = await combination.combine(opened.interpreter, opened.context, synthesis)
        for finish in (states.FINISHING["repair"], states.FINISHING["withhold"]):
            await finish(opened.context, opened.interpreter, synthesis, said)
    return synthesis


def kinds(mind: Mind) -> list[str]:
    """The kind of every call so far."""
    return [kind(request) for request in mind.bridge.history]


def naming(answer: str) -> Any:
    """A model that names the candidate which begins so, wherever it is shown."""

    def choose(request: ChatRequest) -> int:
        return next(number for number in range(1, 10) if candidate(request, number).startswith(answer))

    return choose


def answer_of(synthesis: Synthesis) -> str:
    """The answer that stands."""
    return synthesis.standing.answer.answer


THREE = (part(1, f"{WINDS}."), part(2, OIL), part(3, f"Because {TRIMS}.", TRIMMED))


async def test_both_orders_agree(mind: Mind) -> None:
    """Two calls, and the one they name stands word for word with its citations; it is streamed once."""
    mind.script.choose = naming("Because")
    synthesis = await combined(mind, THREE, "select")
    assert kinds(mind) == ["choice", "choice"]
    assert answer_of(synthesis) == THREE[2].answer
    assert [each.quote for each in synthesis.standing.answer.citations] == [f"{WINDS}, and {TRIMS}."]
    assert synthesis.standing.verdict.ok
    assert synthesis.combined == {
        "mode": "select",
        "decomposed": False,
        "candidates": 3,
        "shown": [1, 2, 3],
        "named": [3, 3],
        "decided": "agreed",
        "winner": {"number": 3, "slot": "3_facet_", "name": "Facet 3"},
    }
    assert [keys["text"] for keys in mind.told("mission.token")] == [THREE[2].answer]
    assert mind.told("mission.retracted") == []


async def test_the_two_calls_show_two_orders(mind: Mind) -> None:
    """Nobody's name is shown, and no candidate is where it was."""
    await combined(mind, THREE, "select")
    one, other = mind.bridge.history
    assert "Facet" not in one.messages[-1]["content"]
    for number in range(1, 4):
        assert candidate(one, number) != candidate(other, number)


async def test_a_choice_cannot_leave_its_bounds(mind: Mind) -> None:
    """The schema holds the number between one and the candidates; nothing else can be said."""
    await combined(mind, THREE, "select")
    assert mind.bridge.history[0].schema is not None
    assert mind.bridge.history[0].schema["properties"] == {"best": {"type": "integer", "minimum": 1, "maximum": 3}}


async def test_where_the_orders_differ_the_gate_decides(mind: Mind) -> None:
    """Always the first shown: two different ones are named, and the one with fewer faults stands."""
    parts = (part(1, "In 1887 they did."), part(2, f"{WINDS}."))
    synthesis = await combined(mind, parts, "select")
    assert answer_of(synthesis) == f"{WINDS}."
    assert sorted(number or 0 for number in synthesis.combined["named"]) == [1, 2]
    assert synthesis.combined["decided"] == "faults"


async def test_then_the_citations_then_the_first(mind: Mind) -> None:
    """Equal in faults: more citations; equal in these too: the first of the parts."""
    more = (part(1, f"{WINDS}.", CITED), part(2, OIL, CITED + TRIMMED))
    assert (await combined(mind, more, "select")).combined["decided"] == "citations"
    equal = (part(1, f"{WINDS}."), part(2, OIL))
    synthesis = await combined(mind, equal, "select")
    assert synthesis.combined["decided"] == "place"
    assert answer_of(synthesis) == f"{WINDS}."


@pytest.mark.parametrize("combine", ["select", "vote"])
async def test_one_candidate_needs_no_call(mind: Mind, combine: str) -> None:
    """The others failed or know nothing: the one that is left stands."""
    synthesis = await combined(mind, (failed(1), part(2, f"{WINDS}."), part(3, "")), combine)
    assert kinds(mind) == []
    assert answer_of(synthesis) == f"{WINDS}."
    assert synthesis.combined["decided"] == "alone"


async def test_equal_candidates_need_no_call(mind: Mind) -> None:
    """Who says the same is one candidate."""
    synthesis = await combined(mind, (part(1, "So it is."), part(2, "so  it IS.")), "select")
    assert kinds(mind) == []
    assert synthesis.combined["winner"]["number"] == 1


@pytest.mark.parametrize("combine", ["weave", "select", "vote"])
async def test_without_any_answer_a_rule_quotes_the_evidence(mind: Mind, combine: str) -> None:
    """There is nothing to choose: the sentences that bear most on the question stand, quoted, without a call."""
    synthesis = await combined(mind, (failed(1), part(2, "")), combine)
    assert kinds(mind) == []
    assert synthesis.combined["ruled"] == "no part had an answer"
    assert answer_of(synthesis).startswith(f"> {WINDS}, and {TRIMS}.")
    assert synthesis.standing.verdict.ok
    assert synthesis.standing.answer.unanswered == {1, 2}
    (told,) = mind.told("mission.rule")
    assert told["decision"] == "answer"


async def test_a_winner_with_a_fault_is_revised_once(mind: Mind) -> None:
    """The fault is told, the winner's words before it; the revision stands and what was streamed is retracted."""
    synthesis = await combined(mind, (part(1, "In 1887 they did."), part(2, "")), "select")
    assert kinds(mind) == ["revised"]
    *_, said, asked = mind.bridge.history[0].messages
    assert said == {"role": "assistant", "content": "In 1887 they did."}
    assert "1887" in asked["content"]
    assert answer_of(synthesis) == GOOD
    assert len(mind.told("mission.retracted")) == 1
    assert "".join(keys["text"] for keys in mind.told("mission.token")[1:]) == GOOD


async def test_no_valid_choice_leaves_it_to_the_gate(mind: Mind) -> None:
    """A model that names nobody, however often it is asked again, does not end the mission."""
    mind.script.choose = lambda request: 9
    synthesis = await combined(mind, (part(1, "In 1887 they did."), part(2, f"{WINDS}.")), "select")
    assert synthesis.combined["named"] == [None, None]
    assert answer_of(synthesis) == f"{WINDS}."


async def test_a_majority_needs_no_further_call(mind: Mind) -> None:
    """Of those who say the same stands the one with the fewest faults; the votes are recorded."""
    parts = (part(1, "86 whales.", ()), part(2, "86 steps from the yard.", TRIMMED))
    synthesis = await combined(mind, parts, "vote", of=3, question=STEPS)
    assert kinds(mind) == []
    assert answer_of(synthesis) == "86 steps from the yard."
    assert synthesis.combined == {
        "mode": "vote",
        "decomposed": False,
        "votes": [[1, 2]],
        "asked": 2,
        "of": 3,
        "majority": True,
        "candidates": 1,
        "decided": "alone",
        "winner": {"number": 2, "slot": "2_facet_", "name": "Facet 2"},
    }


async def test_without_a_majority_one_of_each_group_is_selected_from(mind: Mind) -> None:
    """Two against two against one: three candidates, one for each answer."""
    said = ("86 steps.", "1,200 steps.", "It is 86.", "1200!", f"{WINDS}.")
    mind.script.choose = naming("1,200")
    synthesis = await combined(mind, [part(number, each) for number, each in enumerate(said, start=1)], "vote")
    assert kinds(mind)[:2] == ["choice", "choice"]
    assert synthesis.combined["votes"] == [[1, 3], [2, 4], [5]]
    assert synthesis.combined["candidates"] == 3
    assert synthesis.drafts[0].answer.answer == "1,200 steps."


async def test_auto_weaves_what_answers_different_questions(mind: Mind) -> None:
    """The parts are joined by a call."""
    parts = [part(number, f"{WINDS}.", query=f"Part {number}?") for number in (1, 2)]
    synthesis = await combined(mind, parts, "auto")
    assert kinds(mind) == ["woven"]
    assert synthesis.combined == {"mode": "weave", "decomposed": True}


async def test_auto_selects_where_the_decomposition_gave_all_the_same(mind: Mind) -> None:
    """The same question in other letters is the same: the parts compete."""
    parts = (part(1, OIL, query="Why  so?"), part(2, f"{WINDS}.", query="WHY SO?"))
    synthesis = await combined(mind, parts, "auto")
    assert kinds(mind) == ["choice", "choice"]
    assert synthesis.combined["mode"] == "select"
    assert synthesis.combined["decomposed"]


async def test_weave_weaves_also_then(mind: Mind) -> None:
    """Who asks for a weave has one."""
    await combined(mind, (part(1, "So it is."), part(2, f"{WINDS}.")), "weave")
    assert kinds(mind) == ["woven"]


async def test_one_part_is_woven(mind: Mind) -> None:
    """A mind of one facet has nothing that competes."""
    await combined(mind, (part(1, f"{WINDS}."),), "auto")
    assert kinds(mind) == ["woven"]


async def test_a_faulty_weave_is_revised_once(mind: Mind) -> None:
    """And no second time: what has no fewer faults is no better, and the draft stands."""
    mind.script.woven, mind.script.revised = BAD, f"{BAD} Or so."
    synthesis = await combined(mind, (part(1, f"{WINDS}."),), "weave")
    assert kinds(mind) == ["woven", "revised"]
    assert not synthesis.standing.verdict.ok
    assert answer_of(synthesis) == BAD


async def test_a_revision_with_more_faults_is_discarded(mind: Mind) -> None:
    """The draft stands and is streamed again; the faults of the revision are kept."""
    mind.script.woven, mind.script.revised = BAD, f"{BAD} Whales sing in the cellar."
    synthesis = await combined(mind, (part(1, f"{WINDS}."),), "weave")
    assert kinds(mind) == ["woven", "revised"]
    assert answer_of(synthesis) == BAD
    assert len(synthesis.drafts) == 1
    assert synthesis.discarded is not None
    assert len(synthesis.discarded.faults) == 2
    assert mind.told("mission.token")[-1]["text"] == BAD


async def test_a_budget_that_pays_a_cycle_pays_no_revision_and_the_draft_stands(mind: Mind) -> None:
    """The answer is paid for: it is kept with its fault, and `changes` tells why it was not revised."""
    mind.script.woven = BAD
    shown = await ask(mind.uvm, budget={"calls": 5})
    assert (shown["status"], shown["answer"], shown["cost"]["calls"]) == ("done", BAD, 5)
    gate = shown["provenance"]["gate"]
    assert not gate["ok"]
    assert not gate["revised"]
    assert gate["discarded"] == [{"check": "budget", "what": "the mission has spent its 5 calls"}]
    (entry,) = [each for each in shown["provenance"]["changes"] if each["did"] == "revising"]
    assert entry["what"] == "failed, the mission has spent its 5 calls; the answer is unchanged"
    assert mind.told("mission.token")[-1]["text"] == BAD


async def test_a_weave_of_no_use_leaves_the_best_part(mind: Mind) -> None:
    """What the parts said is paid for: the one with the fewest faults stands, and the rule is told."""
    mind.script.woven = Runaway("blanks", 9)
    synthesis = await combined(mind, (part(1, BAD), part(2, OIL)), "weave")
    assert kinds(mind) == ["woven", "woven"]
    assert answer_of(synthesis) == OIL
    assert [each["decision"] for each in mind.told("mission.rule")] == ["weave"]


async def test_another_mission_shows_the_same_orders(mind: Mind) -> None:
    """They follow from the texts: what a retry or a replay asks is what the journal has."""
    for _ in range(2):
        await combined(mind, THREE, "select")
    shown = [request.messages[-1]["content"].partition("\n\nAsked at ")[0] for request in mind.bridge.history]
    assert shown[:2] == shown[2:]
