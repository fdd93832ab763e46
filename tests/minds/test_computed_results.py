"""What is computed of a mission's evidence: shown to the model, said by the answer, recorded with its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.minds.conftest import Mind
from tests.minds.scripted import ask
from tests.minds.test_context_building_remembered import remember

from batos.cli.render.mission import computed_lines
from batos.protocol.brief import as_file
from batos.server.dispatch.reads import explain

SALES = """date,product,units,price
2026-03-01,Kettle,80,39.50
2026-03-05,Toaster,45,29.90
2026-03-09,Kettle,,39.50
2026-04-02,Kettle,59,39.50
"""
FILES = (as_file("sales.csv", SALES.encode()),)
QUESTION = "How many units of kettles were sold in total?"
LINE = "Computed from sales.csv: sum of units where product = Kettle: 80 + 59 = 139"


async def reflex(mind: Mind, text: str = QUESTION, **brief: Any) -> dict[str, Any]:
    """Ask about the sales in one call."""
    return await ask(mind.uvm, text, FILES, effort="reflex", **brief)


async def test_the_line_stands_right_before_the_question(mind: Mind) -> None:
    """The model is shown the result, and the document as it is."""
    mind.script.woven = "139 kettles were sold."
    found = await reflex(mind)
    last = mind.bridge.history[-1].messages[-1]["content"]
    assert last.index(LINE) < last.index(QUESTION)
    assert last[last.index(LINE) :].count("\n\n") == 1
    assert found["answer"] == "139 kettles were sold."
    assert found["provenance"]["gate"]["faults"] == []


async def test_an_answer_that_says_another_number_is_replaced(mind: Mind) -> None:
    """The result leads, the wrong number is gone from the answer and from what was streamed, and a rule says so."""
    mind.script.woven = "In total 184 kettles were sold."
    found = await reflex(mind)
    assert found["answer"] == "Computed from sales.csv: 80 + 59 = 139."
    assert [each["decision"] for each in found["provenance"]["rules"]] == ["result"]
    streamed = mind.told("mission.token")[-1]
    assert streamed["text"] == found["answer"]
    assert found["provenance"]["gate"]["faults"] == []


async def test_an_answer_that_leaves_the_result_out_is_led_by_it(mind: Mind) -> None:
    """Words without a number stay behind the result."""
    mind.script.woven = "The kettles sold well."
    found = await reflex(mind)
    assert found["answer"] == "Computed from sales.csv: 80 + 59 = 139.\n\nThe kettles sold well."


async def test_the_rows_are_recorded_with_their_places(mind: Mind) -> None:
    """The record names each row by its place in the file, and what was left out; a person is shown the first rows."""
    mind.script.woven = "139."
    found = await reflex(mind)
    (computed,) = found["provenance"]["computed"]
    assert computed["result"] == "139"
    assert computed["question"] == QUESTION
    for row in (*computed["rows"], *computed["left_out"]):
        start, end = row["span"]
        assert SALES[start:end] == row["quote"]
    assert [each["quote"] for each in computed["left_out"]] == ["2026-03-09,Kettle,,39.50"]
    shown = list(computed_lines(found["provenance"]))
    assert shown[0].startswith(LINE)
    assert "2026-04-02,Kettle,59,39.50" in shown[1]


async def test_a_sentence_that_says_the_result_leads_to_its_rows(mind: Mind) -> None:
    """`batos why` names the computation and the rows below it, for the model's words and for the code's."""
    for said in ("It was 139.", "Many were."):
        mind.script.woven = said
        found = await reflex(mind)
        sentence = found["answer"].partition("\n")[0]
        told = explain(mind.uvm.readings, sentence, found["brief"]["user"])
        computed = next(each for each in told["because"] if each["kind"] == "computed")
        assert computed["text"].startswith(LINE)
        assert [each["ref"] for each in computed["because"]] == [found["brief"]["attachments"][0]["sha256"]] * 2


async def test_a_small_model_is_shown_the_line_behind_the_text(mind: Mind) -> None:
    """In lean form it stands between the text and the question."""
    mind.bridge.rows = {name: replace(row, parameter_size="135M") for name, row in mind.bridge.rows.items()}
    mind.script.woven = "139."
    await reflex(mind)
    last = mind.bridge.history[-1].messages[-1]["content"]
    assert last.startswith("Text:\n")
    assert f"rows left out, a cell is missing or unreadable).\n\nQuestion: {QUESTION}" in last


async def test_columns_that_fit_equally_are_named_and_not_guessed(mind: Mind) -> None:
    """The model and the person are told which they are; the answer stays the model's."""
    mind.script.woven = "Which column do you mean?"
    found = await reflex(mind, "What is the total?")
    assert "units; price" in mind.bridge.history[-1].messages[-1]["content"]
    assert found["answer"] == "Which column do you mean?"
    assert found["provenance"]["computed"][0]["ambiguous"] == ["units", "price"]
    assert "units; price" in next(computed_lines(found["provenance"]))


async def test_a_question_that_computes_nothing_has_no_line(mind: Mind) -> None:
    """Neither prompt nor record speaks of a computation."""
    found = await reflex(mind, "Why do kettles sell so well?")
    assert "omputed from" not in mind.bridge.history[-1].messages[-1]["content"]
    assert "computed" not in found["provenance"]


@pytest.mark.parametrize("effort", ["cycle", "council"])
async def test_every_call_that_answers_the_question_is_shown_the_line(mind: Mind, effort: str) -> None:
    """The weave is shown it, and its answer says it."""
    mind.script.woven = "Many kettles were sold."
    found = await ask(mind.uvm, QUESTION, FILES, effort=effort)
    asked = [each.messages[-1]["content"] for each in mind.bridge.history if each.schema is None]
    assert any(LINE in each for each in asked)
    assert found["answer"].startswith("Computed from sales.csv: 80 + 59 = 139.")


async def test_a_retry_sends_the_same_prompt_and_pays_nothing_again(mind: Mind) -> None:
    """The computation follows from what the mission read and its own day: the journal has the answer."""
    mind.script.woven = "139."
    first = await reflex(mind, "How many days since 1 March 2026, and how many units?")
    again = await reflex(mind, "How many days since 1 March 2026, and how many units?", ancestor=first["id"])
    assert again["cost"]["from_journal"] == 1


async def test_remembered_documents_are_read_whole(mind: Mind) -> None:
    """A table that is remembered is computed from all of its parts, however few were recalled."""
    rows = "".join(f"{each},{'Hilltop' if each % 3 else 'Harbour'},{each % 40}\n" for each in range(1, 400))
    await remember(mind.uvm, "loan,branch,days\n" + rows, title="loans.csv")
    mind.script.woven = "Some."
    question = "How many loans were made at the Hilltop branch?"
    found = await mind.uvm.missions.ask({"text": question, "user": "tester", "effort": "reflex"})
    recalled = [each for each in found["provenance"]["recalled"] if "memory" in each]
    assert sum(each["length"] for each in recalled) > 0
    assert found["answer"] == "Computed from loans.csv: 266.\n\nSome."
    assert found["provenance"]["computed"][0]["of"] == 266


async def test_an_earlier_answer_is_no_table_to_compute_from(mind: Mind) -> None:
    """What a model said is remembered too, and no sum is made of it."""
    await remember(mind.uvm, SALES, title="sales.csv", kind="mission")
    mind.script.woven = "Some."
    found = await mind.uvm.missions.ask({"text": QUESTION, "user": "tester", "effort": "reflex"})
    assert "computed" not in found["provenance"]
