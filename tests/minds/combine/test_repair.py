"""The repair of a faulty answer: it is never made worse, and what can be left out is left out without a call."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.minds.combine.test_combination import OIL, answer_of, combined, kinds, part
from tests.minds.conftest import Mind
from tests.minds.scripted import BAD, DOCUMENT, GOOD, QUESTION, TRIMS, WINDS, ask

from batos.gate import checks
from batos.gate.ground import Draft, Ground
from batos.memory.evidence import Evidence
from batos.memory.passages import passages
from batos.minds.combine import repair
from batos.minds.results import JudgedAnswer, MindAnswer

GROUND = Ground(QUESTION, Evidence(passages([("lamp.txt", "a" * 64, DOCUMENT)])))
SENTENCES = (GOOD, OIL, f"So {TRIMS}.", BAD, "Whales sing in the cellar.", "Nobody was ever seen at the pump.")

#: An answer of which less than half would be left.
MOSTLY_BAD = f"{BAD} Whales sing in the cellar. Nobody was ever seen at the pump. {GOOD}"


def judged(text: str) -> JudgedAnswer:
    """An answer to the question with the gate's verdict on it."""
    found = checks.judge(Draft(text, GROUND))
    return JudgedAnswer(MindAnswer(text), found.verdict, found.attribution)


async def test_a_sentence_that_rests_on_nothing_is_left_out_without_a_call(mind: Mind) -> None:
    """What has no fault stays word for word; the former text is kept with the reason for which it went."""
    mind.script.woven, mind.script.revised = f"{GOOD} {BAD}", "This must not be asked."
    shown = await ask(mind.uvm)
    assert shown["answer"] == GOOD
    assert "revised" not in kinds(mind)
    (gone,) = shown["provenance"]["withdrawn"]
    assert gone["text"] == f"{GOOD} {BAD}"
    assert gone["reason"] == repair.LEFT_OUT
    assert mind.told("mission.retracted")[-1]["reason"] == repair.LEFT_OUT
    assert [each["decision"] for each in shown["provenance"]["rules"]] == ["revision"]
    assert shown["provenance"]["gate"]["ok"]
    assert not [each for each in shown["provenance"]["changes"] if each["did"] == "revising"]


async def test_a_revision_that_says_less_is_discarded(mind: Mind) -> None:
    """Fewer faults are no gain where what had none is gone; the draft is told again."""
    mind.script.woven, mind.script.revised = MOSTLY_BAD, OIL
    synthesis = await combined(mind, (part(1, GOOD),), "weave")
    assert kinds(mind) == ["woven", "revised"]
    assert answer_of(synthesis) == mind.script.woven
    assert synthesis.discarded is not None
    assert synthesis.discarded.faults == (repair.LOST,)
    assert mind.told("mission.token")[-1]["text"] == mind.script.woven


async def test_a_revision_with_fewer_faults_that_keeps_the_rest_stands(mind: Mind) -> None:
    """The one way in which a further call changes the answer."""
    mind.script.woven, mind.script.revised = MOSTLY_BAD, f"{GOOD} {OIL}"
    synthesis = await combined(mind, (part(1, GOOD),), "weave")
    assert answer_of(synthesis) == f"{GOOD} {OIL}"


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        (f"- {GOOD}\n- {BAD}\n- {OIL}", f"- {GOOD}\n- {OIL}"),
        (f"1. {GOOD}\n2. {OIL}\n3. {BAD}", f"1. {GOOD}\n2. {OIL}"),
        (f"{GOOD} {BAD} {OIL}", f"{GOOD} {OIL}"),
        (f"{GOOD}\n\n{OIL} {BAD}\n", f"{GOOD}\n\n{OIL}"),
        (BAD, ""),
        (MOSTLY_BAD, ""),
    ],
)
def test_what_is_left_keeps_its_layout(answer: str, left: str) -> None:
    """Lines of a list go with their marks; where more than half would go, nothing is left out."""
    assert repair.without_faulty(judged(answer), repair.UNFOUNDED) == left


def test_a_table_is_not_cut() -> None:
    """A row without its cells is no table any more: the model is asked."""
    table = f"| who | what |\n|---|---|\n| keeper | {GOOD} |\n| nobody | Whales sing in the cellar at 7,777 |\n"
    found = judged(table)
    assert found.verdict.faults
    assert repair.without_faulty(found, repair.UNFOUNDED) == ""


@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=6, unique=True), st.sampled_from([" ", "\n", "\n- "]))
def test_leaving_out_never_adds(said: list[str], between: str) -> None:
    """The words that are left are words of the answer in their order, each sentence without fault among them."""
    before = judged(between.join(said))
    left = repair.without_faulty(before, repair.UNFOUNDED)
    if left:
        words = iter(before.answer.answer.split())
        assert all(word in words for word in left.split())
        named = {each.sentence for each in before.verdict.faults}
        assert all(each.text in left for each in before.attribution.sentences if each.text not in named)
        assert not named & {each.text for each in judged(left).attribution.sentences}


def test_no_answer_is_better_than_itself() -> None:
    """Equal faults are no gain, whatever is said."""
    assert WINDS in GOOD
    for text in (GOOD, BAD, f"{GOOD} {BAD}"):
        assert not repair.is_better(judged(text), judged(text), QUESTION)


@pytest.mark.parametrize("effort", ["reflex", "cycle"])
async def test_a_wrong_sum_is_put_right(mind: Mind, effort: str) -> None:
    """Without a call; the model's text is kept with the reason."""
    said = "The cans and the steps are 1,200 + 86 = 1,300 together."
    mind.script.woven = mind.script.revised = said
    shown = await ask(mind.uvm, "How many cans and steps are there together?", effort=effort)
    assert shown["answer"] == "The cans and the steps are 1,200 + 86 = 1,286 together."
    assert [each["reason"] for each in shown["provenance"]["withdrawn"]] == [repair.CORRECTED]
    assert "revised" not in kinds(mind)


WHO = "Who carries the oil up?"


@pytest.mark.parametrize("effort", ["reflex", "cycle"])
@pytest.mark.parametrize("said", ["It is carried up by Berta Lund.", "McTavish", "Berta Zeppelin."])
async def test_an_answer_that_no_document_says_is_withheld(mind: Mind, effort: str, said: str) -> None:
    """The answer to a question of fact about a file: its name is in no document. The text is kept with the reason."""
    mind.script.woven = mind.script.revised = said
    shown = await ask(mind.uvm, WHO, effort=effort)
    assert shown["answer"] == "The documents do not say this."
    gone = shown["provenance"]["withdrawn"][-1]
    assert (gone["text"], gone["reason"]) == (said, repair.WITHHELD)
    assert not shown["provenance"]["gate"]["faults"]
    assert mind.told("mission.token")[-1]["text"] == shown["answer"]


@pytest.mark.parametrize(
    ("question", "answer", "files"),
    [
        (WHO, "Anna Lund carries it up.", True),
        (WHO, "Anna", True),
        (WHO, "Weekly.", True),
        (WHO, "Nobody cited anything.", True),
        (WHO, "Anna Lund carries up the oil of the cans, a woman from the hills of Upper Silesia.", True),
        (WHO, "Anna Lund carries it up. Each can weighs 7,777 pounds.", True),
        ("What does oil_up(3) return for the oil?", "It returns 7,777.", True),
        ("Write a letter about the oil.", "It is carried up by Berta Lund.", True),
        ("Who carried the oil of the first lighthouse?", "It was carried up by Berta Lund.", False),
    ],
)
async def test_what_may_be_right_is_not_withheld(mind: Mind, question: str, answer: str, files: bool) -> None:
    """A right sentence or clause, a text that was asked for, and what the model may know without a file."""
    mind.script.woven = answer
    shown = await ask(mind.uvm, question, **({} if files else {"files": ()}), effort="reflex")
    assert shown["answer"] == answer


CODE = "```python\ndef mean(x):\n    return sum(x) / len(x)\n```"


@pytest.mark.parametrize(
    ("question", "is_alone"),
    [
        ("Write a function mean(x). Only the code.", True),
        ("Write mean(x): just the function, no explanation.", True),
        ("Schreib eine Funktion mean(x). Gib nur den Code aus.", True),
        ("Écris une fonction mean(x), uniquement le code s'il te plaît.", True),
        ("Escribe mean(x), solo el código.", True),
        ("写一个函数 mean(x)，只要代码", True),
        ("mean(x) という関数のコードだけ書いてください。", True),
        ("Write a function mean(x).", False),
        ("Write the code of mean(x) only once, and explain it.", False),
        ("Explain mean(x) without code.", False),
        ("Can you write mean(x), only the code?", True),
        ("Why does mean(x) return only the code?", False),
        ("Which change of mean(x) affects only the function?", False),
        ("Write mean(x) that prints only the command, and explain it.", False),
        ("I have no explanation. Can you write mean(x) and describe it?", False),
    ],
)
async def test_only_the_code_where_nothing_else_is_asked_for(mind: Mind, question: str, is_alone: bool) -> None:
    """What a model says around it is left out; the text as it came is kept."""
    mind.bridge.respond = lambda request: f"Here it is:\n\n{CODE}\n\nThis returns the mean."
    shown = await mind.uvm.missions.ask({"text": question, "effort": "reflex"})
    assert (shown["answer"] == CODE) == is_alone
    if is_alone:
        assert shown["provenance"]["withdrawn"][0]["reason"] == repair.ALONE


@pytest.mark.parametrize(
    ("question", "answer", "alone"),
    [
        ("What is Viktor's locker? Number only.", "The locker of Viktor is 28.", "28"),
        ("Wie viele Gäste kommen? Nur die Zahl bitte.", "Es kommen 1.250,5 Gäste.", "1.250,5"),
        ("Combien de jours ? Uniquement le nombre.", "Il faut −3 jours.", "−3"),
        ("¿Cuántos años tiene Iván? Solo el número.", "Iván tiene 34 años.", "34"),
        ("有几个人？只要数字。", "一共有12个人。", "12"),
        ("Of 12 guests, how many stay? Just the number.", "Of 12 guests, 7 stay.", "7"),
        ("What is Viktor's locker? Number only.", "Either 28 or 29.", ""),
        ("What is Viktor's locker? Number only.", "No document says it.", ""),
        ("Why does it print only the number?", "It has 1 argument.", ""),
        ("Give only the number and the name.", "28, Viktor", ""),
        ("What is Viktor's locker?", "The locker of Viktor is 28.", ""),
    ],
)
def test_only_the_number_where_nothing_else_is_asked_for(question: str, answer: str, alone: str) -> None:
    """The one number that the question does not have itself; where there are two, nobody chooses."""
    assert repair.number_alone(answer, question) == alone


async def test_an_answer_that_is_only_the_number(mind: Mind) -> None:
    """The sentence around it is kept with the reason for which it was left out."""
    mind.bridge.respond = lambda request: "The answer is 42."
    shown = await mind.uvm.missions.ask({"text": "What is six times seven? Number only.", "effort": "reflex"})
    assert shown["answer"] == "42"
    assert shown["provenance"]["withdrawn"][0]["reason"] == repair.NUMBER_ALONE


@given(st.lists(st.sampled_from(["```", "```python", "x = 1", "", "Text.", "  ```"]), max_size=12))
@example(["```", "```python", "```", "```"])
@example(["```", "```", "```", "```"])
def test_code_alone_is_a_part_of_the_answer(lines: list[str]) -> None:
    """No line is made but the blank ones between blocks, and what is alone once stays so."""
    answer = "\n".join(lines)
    if code := repair.code_alone(answer):
        assert all(line in {*lines, ""} for line in code.split("\n"))
        assert repair.code_alone(code) == code
