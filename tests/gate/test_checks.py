"""The quality gate: each check passes what is right and catches what is not, in several languages."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.minds.conftest import Mind
from tests.minds.scripted import BAD, DOCUMENT, GOOD, QUESTION, TRIMS, WINDS, ask, kind

from batos.gate import checks, ground, languages
from batos.gate.ground import OWN_NAMES, Draft, Ground
from batos.gate.quotations import Quotation
from batos.memory.evidence import Evidence, Passage, Turn
from batos.memory.passages import passages
from batos.minds.calls import answers
from batos.minds.results import MindAnswer

GERMAN = (
    "Der Wärter zieht das Uhrwerk alle vier Stunden auf. Das Öl von 1.200 Kannen trägt Frau Lund über 86 Stufen."
    " Ein zweiter Wärter schläft unter der Galerie."
)
CHINESE = "灯塔守护人每四小时给钟上一次发条。油由安娜·伦德搬上来，一共有八十六级台阶。"
RUSSIAN = "Смотритель заводит часы каждые четыре часа. Масло носит Иван Петров, а ступеней здесь 86."

LAMP = Evidence(passages([("lamp.txt", "a" * 64, DOCUMENT)]))
MANY = Evidence(passages([(name, "a" * 64, text) for name, text in (("de", GERMAN), ("zh", CHINESE), ("ru", RUSSIAN))]))


MET = (
    "Ludwig van Beethoven met Anna Lund and Jean-Luc O'Brien on 3 March 2021 at 14:30. Maria de la Cruz and J. R. R."
    " Tolkien came to the Bank of Norway. Professor Müller gave 1,250,000 kr to 120 members."
)
PEOPLE = Evidence(passages([("people", "a" * 64, MET)]))
TORN = "The well-\nknown clock\u00adwork is old. “No lamp burns for ever.” 灯塔守护人每四小时给钟\n上一次发条。"
PLOTS = Evidence(passages([("p", "a" * 64, "Plot 3 costs 66 pounds a year.\n\nPlot 7 costs 98 pounds a year.")]))
CANS = Evidence(passages([("c", "a" * 64, "day,who,cans\nWednesday,Lund,10\nThursday,Lund,20\nFriday,Lund,40")]))
OLD = Evidence((Passage(1, "o", "a" * 64, 0, "The smith comes tomorrow.", day="2026-11-01"),))
BROKEN = Evidence(passages([("b", "a" * 64, TORN)]))


def draft(
    answer: str,
    *,
    evidence: Evidence = LAMP,
    question: str = QUESTION,
) -> Draft:
    """A draft beside the lamp's document, unless told otherwise."""
    return Draft(answer, Ground(question, evidence, frozenset({"robin", "bat", "os"}), today="2026-11-21"))


def ordered(answer: str) -> Draft:
    """A draft whose prompt gave orders beside the document."""
    return replace(
        draft(answer), instructions=f"You are the keeper of the town. {WINDS}. Say it like a good travel guide."
    )


def cut(answer: str) -> Draft:
    """A draft that reached the length at which its schema cuts."""
    return replace(draft(answer), was_cut=True)


def faults(check: str, given_: Draft) -> list[str]:
    """What one check finds."""
    if check == checks.CARRIED:
        return [fault.what for fault in checks.judge(given_).verdict.faults if fault.check == check]
    return [spot.repair for spot in checks.CHECKS[check](given_) or ()]


RIGHT: list[tuple[str, Draft]] = [
    ("carried", draft(f"{WINDS}. [1]")),
    ("carried", draft(f"Because {TRIMS} (document 1).")),
    ("carried", draft("I hope this helps!")),
    ("carried", draft("Whales sing.", evidence=Evidence())),
    ("carried", draft("The documents do not say it.")),
    ("length", draft("It burns.")),
    ("length", draft("x" * checks.LONGEST)),
    ("quotations", draft(f'As it says: "{WINDS}."')),
    ("quotations", draft(f"Es heißt: „{TRIMS}“.")),
    ("quotations", draft("Il est dit : « the wick is trimmed when the flame turns yellow ».")),
    ("quotations", draft('The "lamp" and the "tower of light" are ways of speaking.')),
    ("quotations", draft(f'"{WINDS} … when the flame turns yellow"')),
    ("quotations", draft(f'You asked: "{QUESTION}"')),
    ("quotations", draft('```\nprint("this is not a quotation but code")\n```')),
    ("quotations", draft('He writes "a" and then goes on and on to "b".')),
    ("quotations", draft('"nobody says this anywhere at all"', evidence=Evidence())),
    ("quotations", draft("据说：“灯塔守护人每四小时给钟上一次发条”。", evidence=MANY)),
    ("numbers", draft("1,200 cans, 86 steps, 4 hours.")),
    ("numbers", draft("1200 cans; 1.200 cans; 1 200 cans.")),
    ("numbers", draft("1. Wind it.\n2. Trim it.\n12. Rest.")),
    ("numbers", draft("It is 2 × 86 = 172 steps both ways, so 172 in all.")),
    ("numbers", draft("In 1999 there were 45 %.", evidence=Evidence())),
    ("numbers", draft("Es sind 12 %.", question="Was sind zwölf Prozent davon?")),
    ("names", draft("It is carried by Anna Lund.")),
    ("names", draft("Anna Lund's oil, says BAT OS.")),
    ("names", draft("When Anna Lund comes up, the Keeper sleeps.")),
    ("names", draft("## Next Steps For The Team\n- **Main Cause**: the oil.")),
    ("names", draft("Zwei Liter Wasser und ein Kilogramm Mehl sind für die Frau Lund.", evidence=MANY)),
    ("names", draft("Масло несёт Иван Петрович? Нет, его несёт Ивана Петрова друг.", evidence=MANY)),
    ("names", draft("Somebody like Marie Curie did.", evidence=Evidence())),
    ("schema", draft("It burns.")),
    ("schema", draft("It burns")),
    ("schema", cut("It burns.")),
    ("schema", draft('{"hours": 4}', question="Give me JSON: how many hours?")),
    ("schema", draft("`<think>` is what a model may write, [sic] and {so} on.")),
    ("prompt", ordered(f"{WINDS}, and I am the keeper.")),
    ("prompt", draft("Say it like a good travel guide.")),
    ("documents", draft("As document 1 says, it burns [1].")),
    ("documents", draft("It is on page 4 of document 12.", question="What does document 12 say?")),
    ("documents", draft("array[7] of [2021], [a link](x) [9](y)")),
    ("quotations", draft('It says "the keeper winds the\nclockwork every four hours" and then "x" and "y".')),
    ("quotations", draft("‘the keeper winds the clockwork every four hours’")),
    ("quotations", draft("the keepers' lamp and the owners' oil are not the same as the others' oil")),
    ("quotations", draft('"**The keeper winds the clockwork** every four hours"')),
    ("quotations", draft('"[He] winds the clockwork every four hours […] the wick is trimmed"')),
    ("quotations", draft(f"> {WINDS} [1]\n> — lamp.txt")),
    ("quotations", draft('a 6" pipe and a 12" pipe are not the same as the 8" one')),
    ("quotations", draft('"The well-known clockwork is old"', evidence=BROKEN)),
    ("quotations", draft("“‘No lamp burns for ever’”", evidence=BROKEN)),
    ("quotations", draft("『灯塔守护人每四小时给钟上一次发条』", evidence=BROKEN)),
    ("numbers", draft("1.25 million kr, or 1.250.000, for each of 120 members.", evidence=PEOPLE)),
    ("numbers", draft("Um 14.30 Uhr, at 2:30 pm, on 03.03.2021.", evidence=PEOPLE)),
    ("numbers", draft("120 members × 12 = 1,440 a year; 120 and 120 make 240.", evidence=PEOPLE)),
    ("numbers", draft("Step 12: see document 1 [1].\n**13.** Rest.\n(14) Sleep.")),
    ("numbers", draft("It is 2026 now.")),
    ("numbers", draft("Eighty-six of the steps are in the yard, and that is it.")),
    ("days", draft("On March 3rd, 2021, or 2021-03-03, or im März 2021.", evidence=PEOPLE)),
    ("days", draft("Today is 21 November 2026.")),
    ("days", draft("You may 12 times march 10 miles.")),
    ("days", draft("On 1 May 1999.", evidence=Evidence())),
    ("names", draft("It was Ludwig van Beethoven, and Jean-Luc O’Brien’s friend Maria de la Cruz.", evidence=PEOPLE)),
    ("names", draft("J.R.R. Tolkien and Prof. Dr. Müller at the Bank of Norway.", evidence=PEOPLE)),
    ("names", draft("In March Anna Lund came. Yesterday Anna Lund left. Both Anna Lund and I.", evidence=PEOPLE)),
    ("names", draft("WARNING NOTICE: read this.\n| Some Head | Other Head |")),
    ("language", draft("The keeper winds the clockwork, and the lamp burns on through the night.")),
    (
        "language",
        draft("Fyrvokteren trekker opp urverket, og han er ikke alene.", question="Hvordan er det om natten?"),
    ),
    ("language", draft("Latarnik nakręca mechanizm co cztery godziny.", question="Jak to jest i co z tym jest?")),
    ("language", draft("番人は四時間ごとに巻きます。", question="ランプはどうやって灯し続けますか？")),
    ("language", draft("Der Wärter zieht das Uhrwerk auf und die Lampe brennt.", question="Wie brennt die Lampe?")),
    ("language", draft("灯由发条带动，所以一直亮着。", question="灯为什么亮？")),
    ("language", draft("Смотритель заводит часы.", question="Кто заводит часы?")),
    ("language", draft("Der Wärter zieht das Uhrwerk auf.", question="Translate into German: the keeper winds it.")),
    ("language", draft("print(x)", question="用 Python 写一行代码打印 x")),
    ("language", draft(f'Es steht da: "{WINDS}", also alle vier Stunden.', question="Wie oft ist das und warum?")),
    ("language", draft("42", question="Was ist das?")),
    ("sums", draft("2 × 86 = 172 steps, and 231 km / 165 min = 84 km/h.")),
    ("sums", draft("It is at 14:30, or 2 × 86 steps.")),
    ("subjects", draft("Plot 3 costs 66 pounds, plot 7 costs 98 pounds.", evidence=PLOTS)),
    ("subjects", draft("Plot 3 is cheaper than plot 7, by 32 pounds.", evidence=PLOTS)),
    ("totals", draft("10 + 20 + 40 = 70 cans.", evidence=CANS, question="How many cans in all?")),
    ("counts", draft("It burns. It is old.", question="What of it, in two sentences?")),
    ("totals", draft("40 cans.", evidence=CANS, question="How many cans on Friday?")),
    ("relative_days", draft("The smith comes on 21 November.", evidence=OLD, question="When does the smith come?")),
    ("relative_days", draft("Tomorrow never dies.", evidence=LAMP)),
]

WRONG: list[tuple[str, Draft, str]] = [
    ("carried", draft("Whales sing below the ice for days."), "No document carries"),
    ("length", draft(""), "empty"),
    ("length", draft(" \n "), "empty"),
    ("length", draft("x" * (checks.LONGEST + 1)), "4001"),
    ("schema", draft('{"answer": "It burns."}'), "JSON"),
    ("schema", draft("[1, 2, 3]"), "JSON"),
    ("schema", draft("<think>Hm.</think> It burns."), "<think>"),
    ("schema", draft("It burns.<|eot_id|>"), "eot_id"),
    ("schema", cut("It burns because the"), "in the middle"),
    ("prompt", ordered(f"{WINDS}. You are the keeper of the town."), "the instructions"),
    ("documents", draft("As document 7 says, it burns."), "no document 7"),
    ("documents", draft("It burns [1, 5]."), "no document 5"),
    ("quotations", draft('It says "the keeper sleeps\nthe whole night long" and then.'), "sleeps"),
    ("quotations", draft("‘the keeper sleeps the whole night long’"), "sleeps"),
    ("quotations", draft("'the keeper sleeps the whole night long'"), "sleeps"),
    ("quotations", draft("> The keeper sleeps the whole night long\n"), "sleeps"),
    ("quotations", draft('"[He] sleeps the whole night long"'), "sleeps"),
    ("quotations", draft("『灯塔守护人整夜都在睡觉什么也不做』", evidence=BROKEN), "整夜"),
    ("numbers", draft("1.26 million kr.", evidence=PEOPLE), "1.26"),
    ("numbers", draft("120 billion members.", evidence=PEOPLE), "120"),
    ("numbers", draft("At 14:45.", evidence=PEOPLE), "45"),
    ("numbers", draft("7 % of them."), "7"),
    ("numbers", draft("40 × 131 = 5240"), "131"),
    ("numbers", draft("There are twenty-seven of them in the yard, and that is it."), "twenty-seven"),
    ("days", draft("On 4 March 2021.", evidence=PEOPLE), "4 March 2021"),
    ("days", draft("Am 3. April 2021.", evidence=PEOPLE), "3. April 2021"),
    ("days", draft("On 2022-03-03.", evidence=PEOPLE), "2022-03-03"),
    ("names", draft("It was Ludwig van Berghoven.", evidence=PEOPLE), "Berghoven"),
    ("names", draft("Berta Lund carries it."), "Berta Lund"),
    ("names", draft("Painted by Vincent van Gogh.", evidence=PEOPLE), "Vincent van Gogh"),
    ("names", draft("It is Jean-Paul O'Brien's.", evidence=PEOPLE), "Jean-Paul"),
    ("names", draft("Frau Dr. Huber sagt das, und es ist so.", evidence=MANY), "Huber"),
    (
        "language",
        draft("守护人每四小时给钟上一次发条，这样灯就不会熄灭。", question="ランプはどうやって灯し続けますか？"),
        "question's language",
    ),
    (
        "language",
        draft("El guardián da cuerda al mecanismo, y es así.", question="Como é que isto não para e o que é?"),
        "question's language",
    ),
    ("quotations", draft('It says: "the keeper winds the clockwork every day".'), "every day"),
    ("quotations", draft("Es heißt: „der Wärter schläft die ganze Nacht“."), "schläft"),
    ("quotations", draft("Il dit : « le gardien dort toute la nuit »."), "gardien"),
    ("quotations", draft("据说：“灯塔守护人整夜都在睡觉什么也不做”。", evidence=MANY), "整夜"),
    ("quotations", draft(f'"{WINDS} … and then nobody ever sleeps again"'), "nobody"),
    ("numbers", draft("There are 1,300 cans."), "1,300"),
    ("numbers", draft("Es sind 1.300 Dosen und 12 %."), "1.300"),
    ("sums", draft("2 × 86 = 182 steps."), "172"),
    ("numbers", draft("It was in 1887."), "1887"),
    ("names", draft("It is carried by Berta Lund."), "Berta Lund"),
    ("names", draft("Says Anne Lund, who carries it."), "Anne Lund"),
    ("names", draft("Das Öl trägt die Frau Meier, und das ist nicht wenig.", evidence=MANY), "Meier"),
    ("names", draft("Масло носит Пётр Сидоров.", evidence=MANY), "Сидоров"),
    ("language", draft("Смотритель заводит часы каждый день."), "another script"),
    ("language", draft("The keeper winds the clock every day.", question="灯为什么亮？"), "question's language"),
    (
        "language",
        draft("The keeper winds the clock, and it burns.", question="Wie brennt die Lampe und was ist das?"),
        "question's language",
    ),
    ("sums", draft("231 km / 25 minutes = 9.28 km/h.", evidence=Evidence()), "9.24"),
    ("subjects", draft("Plot 3 costs 98 pounds, plot 7 costs 66 pounds.", evidence=PLOTS), "Plot 7"),
    ("counts", draft("It burns.", question="What of it, in two sentences?"), "in two sentences"),
    ("totals", draft("It is 40 cans.", evidence=CANS, question="How many cans in all?"), "40 is one entry"),
    ("relative_days", draft("He comes tomorrow.", evidence=OLD, question="When does the smith come?"), "2026-11-01"),
    ("language", draft("Le gardien remonte la montre pour que la lampe brûle dans la nuit."), "question's language"),
]


@pytest.mark.parametrize(("check", "given_"), RIGHT)
def test_a_check_passes_what_is_right(check: str, given_: Draft) -> None:
    """Nothing is found where nothing is wrong."""
    assert faults(check, given_) == []


@pytest.mark.parametrize(("check", "given_", "named"), WRONG)
def test_a_check_catches_what_is_wrong(check: str, given_: Draft, named: str) -> None:
    """The fault names what is wrong, as the model is told it."""
    assert any(named in what for what in faults(check, given_))


def test_an_amount_is_no_year() -> None:
    """A thousand with a mark in it stands for no year of the days in a text."""
    text = "It costs 1,380 euro from 5 May on. 1999 was before, and 2.150 more."
    assert Ground("Q?", Evidence(passages([("p", "a" * 64, text)])), today="2026-11-28").years == {1999, 2026}


def test_a_model_may_call_itself_what_it_is() -> None:
    """No document has that word, and a refusal states nothing; a name with it is a name."""
    for answer, ok in (("As an AI, I have no access to that.", True), ("The lamp was bought by AI Industries.", False)):
        assert checks.judge(Draft(answer, Ground(QUESTION, LAMP, OWN_NAMES))).verdict.ok is ok


def test_every_check_has_a_case_of_both_kinds() -> None:
    """No check stands untested on either side."""
    assert {check for check, _ in RIGHT} == {check for check, _, _ in WRONG} == {*checks.CHECKS, checks.CARRIED}


def test_every_check_is_documented() -> None:
    """docs/combining.md has a row for each check, in the order in which they are made, and for no other."""
    page = (Path(__file__).parents[2] / "docs" / "combining.md").read_text(encoding="utf-8")
    table = page.partition("| check | condition |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [*checks.CHECKS, checks.CARRIED, checks.SUPERSEDED]


word = st.text("abcdefghijklmnopqrstuvwxyzäöü", min_size=2, max_size=8)
number = st.integers(10, 99_999).map("{:,}".format)
sentence = st.lists(word | number, min_size=4, max_size=14).map(" ".join)
documents = st.lists(st.lists(sentence, min_size=1, max_size=6).map(". ".join), min_size=1, max_size=4)


@given(documents=documents, data=st.data())
def test_an_answer_of_verbatim_spans_rightly_cited_always_passes(documents: list[str], data: st.DataObject) -> None:
    """Whatever the documents are, an answer that is put together from cited spans of them has no fault."""
    evidence = Evidence(passages([(str(number), "a" * 64, text) for number, text in enumerate(documents)]))
    cited = []
    for _ in range(data.draw(st.integers(1, 4))):
        passage = data.draw(st.sampled_from(evidence.passages))
        words = passage.text.split()
        start = data.draw(st.integers(0, len(words) - 1))
        span = " ".join(words[start : data.draw(st.integers(start + 1, len(words)))])
        assume(re.search(r"\w", span))
        cited.append(Quotation(passage.number, span))
    answer = "\n".join(f'"{each.quote}" ({each.document})' for each in cited)
    assume(len(answer) <= checks.LONGEST)
    verdict = checks.judge(Draft(answer, Ground("aa bb?", evidence))).verdict
    assert [fault for fault in verdict.faults if fault.check not in {"language", "carried"}] == []


def test_a_value_that_no_document_has_is_the_fault_of_its_sentence() -> None:
    """Each is told by itself, with the sentence that it stands in; nothing is said of that sentence beside it."""
    verdict = checks.judge(draft("Berta Lund sang 7,777 songs. In 1887 it burnt down.")).verdict
    assert [(fault.check, fault.sentence) for fault in verdict.faults] == [
        ("numbers", "Berta Lund sang 7,777 songs."),
        ("numbers", "In 1887 it burnt down."),
        ("names", "Berta Lund sang 7,777 songs."),
    ]


@pytest.mark.parametrize(("answer", "state"), [(f"{WINDS}.", "passed"), ("Hello!", "unchecked"), ("7 %.", "faulty")])
def test_an_answer_of_which_nothing_could_be_checked_has_not_passed(answer: str, state: str) -> None:
    """The checks that are counted are those that were really made."""
    verdict = checks.judge(draft(answer)).verdict
    assert verdict.state == verdict.as_dict()["state"] == state
    assert checks.FORM.issuperset(verdict.checked) == (state == "unchecked")


def test_without_documents_only_written_sums_are_checked() -> None:
    """Numbers, dates and names of an answer cannot be looked up anywhere."""
    verdict = checks.judge(draft("On 1 May 1999 Marie Curie had 45 lamps.", evidence=Evidence())).verdict
    assert checks.FORM.issuperset(verdict.checked)
    assert "sums" in checks.judge(draft("45 + 1 = 46 lamps.", evidence=Evidence())).verdict.checked


@pytest.mark.parametrize("language", sorted(ground.table()))
def test_every_fault_is_worded_in_every_language(language: str) -> None:
    """For the model and for the reader, with the same codes and values as in English."""
    values = dict.fromkeys(("said", "near", "value", "result", "day", "number", "size", "most", "asked", "count"), "7")
    for use in ("repair", "told"):
        english, own = (ground.table()[each][use] for each in ("English", language))
        assert own.keys() == english.keys()
        for code, words in own.items():
            assert set(re.findall(r"{(\w+)", words)) == set(re.findall(r"{(\w+)", english[code])), code
            assert "{" not in words.format_map(values)


def test_a_fault_is_told_in_the_language_of_the_question() -> None:
    """A small model that reads English under a German question goes on in English."""
    (fault,) = checks.judge(draft("Es sind 1.300 Kannen.", question="Wie viele Kannen sind das?")).verdict.faults
    assert fault.what.startswith("Die Zahl 1.300 steht in keinem Dokument")
    assert (fault.code, fault.told) == ("number", "nicht in deinen Dokumenten: „1.300“")


@given(answer=st.text(max_size=400), question=st.text(max_size=200), text=st.text(max_size=400))
def test_any_texts_are_judged_without_error(answer: str, question: str, text: str) -> None:
    """Whatever is asked, found and answered, the gate has a verdict, and the same one every time."""
    evidence = Evidence(passages([("a", "a" * 64, text)]), (Turn("m-1", question, answer, "model"),))
    given_ = draft(answer, evidence=evidence, question=question)
    assert checks.judge(given_) == checks.judge(given_)


def test_what_the_conversation_said_needs_no_document() -> None:
    """Numbers, names and quotations of earlier turns count as known."""
    turn = Turn("m-1", "My name is Erik Holm and I have 512 sheep.", "So you said.", "model")
    evidence = Evidence(LAMP.passages, (turn,))
    answer = 'Erik Holm has 512 sheep: "I have 512 sheep" is what you said.'
    given_ = draft(answer, evidence=evidence)
    assert [faults(check, given_) for check in ("numbers", "names", "quotations")] == [[], [], []]


def test_a_sentence_that_is_repeated_is_one_fault() -> None:
    """Whoever reads the faults, a model or a person, reads each once."""
    once = checks.judge(draft("Berta Lund sang 7,777 songs.")).verdict
    again = checks.judge(draft("Berta Lund sang 7,777 songs. " * 5)).verdict
    assert once.faults == again.faults != ()


async def test_a_concrete_fault_leads_to_one_revision(mind: Mind) -> None:
    """The revision is told the fault; its answer stands, and both verdicts are recorded."""
    mind.script.woven = BAD
    shown = await ask(mind.uvm)
    assert [kind(request) for request in mind.bridge.history][-2:] == ["woven", "revised"]
    told = shown["provenance"]["gate"]
    assert told["ok"]
    assert told["revised"]
    assert [fault["check"] for fault in told["mended"]] == ["carried"]
    assert shown["cost"]["calls"] == 6
    assert len(mind.told("mission.retracted")) == 1


async def test_citations_are_told_in_the_stream(mind: Mind) -> None:
    """Each as its sentence ends, before the next words, with its file; a revision's after what was withdrawn."""
    mind.script.woven = BAD
    mind.script.revised = f"{WINDS}. {TRIMS.capitalize()}."
    shown = await ask(mind.uvm)
    names = [name for name, _ in mind.events if name in ("mission.token", "mission.retracted", "mission.citation")]
    assert names.index("mission.citation") > names.index("mission.retracted")
    told = [{**keys} for keys in mind.told("mission.citation")]
    assert {keys.pop("path") for keys in told} == {f"{shown['route']['personas'][0].lower()}/revising#0"}
    assert {keys.pop("mission") for keys in told} == {shown["id"]}
    assert [keys["sentence"] for keys in told] == [f"{WINDS}.", f"{TRIMS.capitalize()}."]
    assert {keys["name"] for keys in told} == {"lamp.txt"}
    assert shown["provenance"]["citations"] == told[:1]


async def test_there_is_no_second_revision(mind: Mind) -> None:
    """An answer that is still faulty stands, with its faults told."""
    mind.script.woven = BAD
    mind.script.revised = BAD
    shown = await ask(mind.uvm)
    assert shown["status"] == "done"
    assert shown["cost"]["calls"] == 6
    assert not shown["provenance"]["gate"]["ok"]
    assert shown["provenance"]["citations"] == []


async def test_a_right_answer_is_not_revised(mind: Mind) -> None:
    """Without a fault there is no further call and nothing is retracted."""
    shown = await ask(mind.uvm)
    assert shown["cost"]["calls"] == 5
    assert shown["provenance"]["gate"]["ok"]
    assert not shown["provenance"]["gate"]["revised"]
    assert "mended" not in shown["provenance"]["gate"]
    assert mind.told("mission.retracted") == []
    assert shown["answer"] == GOOD


async def test_what_is_streamed_is_the_answer(mind: Mind) -> None:
    """The tokens since the last retraction, put together, are the answer that stands."""
    mind.script.woven = BAD
    mind.script.revised = f" {WINDS}.\n\n{TRIMS}  🗼\n"
    shown = await ask(mind.uvm)
    streamed = ""
    for name, keys in mind.events:
        if name == "mission.retracted":
            streamed = ""
        elif name == "mission.token":
            streamed += keys["text"]
    assert streamed == shown["answer"] == mind.script.revised.strip()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How does the keeper know that the lamp is burning?", "English"),
        ("Wie weiß der Wärter, dass die Lampe brennt?", "German"),
        ("Comment le gardien sait-il que la lampe est allumée ?", "French"),
        ("¿Cómo sabe el guardián que la lámpara está encendida?", "Spanish"),
        ("Come fa il guardiano a sapere che la lampada è accesa?", "Italian"),
        ("Como é que o guarda sabe que a lâmpada está acesa?", "Portuguese"),
        ("Hoe weet de wachter dat het licht van de lamp brandt?", "Dutch"),
        ("Lamp? Lamp!", None),
        ("", None),
        ("灯塔", None),
    ],
)
def test_languages_are_told_by_their_small_words(text: str, language: str | None) -> None:
    """Clear cases are named, unclear ones are not."""
    assert languages.guess(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 4_000,
        "\n " * 2_000,
        "1," * 2_000,
        "1+1" * 1_300,
        "12 " * 1_300,
        "9^" * 2_000,
        "(" * 4_000,
        '"' * 4_000,
        '"a ' * 1_300,
        "'a " * 1_300,
        "> " * 2_000,
        ">\n" * 2_000,
        "[1," * 1_300,
        "**" * 2_000,
        "Dr. " * 1_000,
        "A. " * 1_300,
        "Aa " * 1_300,
        "Aa van " * 600,
        "1.1.20" * 600,
        "1 May " * 600,
        "1 万" * 1_300,
        "〇十" * 2_000,
        "twenty-" * 500,
        "<|" * 2_000,
        "灯" * 4_000,
        "[" * 4_000,
    ],
)
async def test_no_answer_holds_the_loop(text: str) -> None:
    """An answer that was made to be slow is judged like any other: the watch over this test's loop would tell."""
    given_ = draft(text)
    judged = await answers.judge_alone(MindAnswer(given_.answer), given_.ground)
    assert judged.verdict.checked


async def test_no_document_holds_the_loop() -> None:
    """A table of ten thousand numbers is read aside."""
    table = "\n".join(f"{number:,}; {number / 7:.2f} kg; {number % 100} %" for number in range(2_500))
    ground = draft("x", evidence=Evidence(passages([("t", "a" * 64, table)]))).ground
    judged = await answers.judge_alone(MindAnswer("It is 2,499."), ground)
    assert not judged.answer.unanswered
