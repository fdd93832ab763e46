"""How near a part is to a question: by forms of words, titles, paths and dates, and never by words that only ask."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming, store_of

from batos.memory.evidence import Passage
from batos.memory.known_texts import Incoming
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.metadata import MemoryReach
from batos.memory.search.recollection import Recollection

OTHERS = [
    f"The {thing} of the {place} is there."
    for thing, place in zip("bell oar net sail".split(), "mill quay hut inn".split(), strict=True)
]


async def found(question: str, *given: Incoming, others: bool = True) -> tuple[Passage, ...]:
    """The evidence for a question among some texts."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([*given, *(incoming(each) for each in (OTHERS if others else []))])
        with image.snapshot() as root:
            return recollection.find_passages(root, RecallQuery(question), MemoryReach("ann"), 8)


@pytest.mark.parametrize(
    ("question", "text", "source"),
    [
        ("When did my pass get renewed?", "renew the pass (done on Monday)", ""),
        ("Was kosten die Garagen?", "Die Garage kostet 65 Euro.", ""),
        ("How many kwh did we use in February?", "month,used_kwh\n2026-01,402\n2026-02,377", "/home/ann/power.csv"),
        ("What is in the heating notes?", "The engineer comes in autumn.", "/home/ann/house/heating.md"),
        ("What happened on 2 July?", "2026-07-02 02:30 the disk was full", "/home/ann/nas.log"),
    ],
)
async def test_a_question_finds_forms_of_words_paths_and_dates(question: str, text: str, source: str) -> None:
    """The note is the first evidence, and no guess."""
    first = (await found(question, incoming(text, source)))[0]
    assert first.text == text
    assert not first.is_perhaps


async def test_what_is_not_near_enough_is_shown_as_perhaps() -> None:
    """At most three parts, each with the mark in its name; nothing at all where no word of the question is met."""
    question = "Which colour and shape had the harbour gate in autumn?"
    passages = await found(question, *(incoming(f"The harbour gate number {n} is new.") for n in range(5)))
    assert 0 < len(passages) <= 3
    assert all(each.is_perhaps and each.name.endswith("(perhaps)") for each in passages)
    assert await found("Who paints zebras?", incoming("Oil is dear.")) == ()


async def test_few_words_between_others_of_a_file_are_no_evidence() -> None:
    """A part of a page that is a menu is left out; a short note that stands alone is evidence."""
    page = "# Home\n\nHeat pumps\n\n# Costs\n\n" + "The pumps of the old harbour were paid by the city in spring. " * 3
    assert all("Home" not in each.text for each in await found("What about heat pumps?", incoming(page, "/a.html")))
    (alone,) = await found("heat pumps", incoming("Heat pumps: no"), others=False)
    assert not alone.is_perhaps


async def test_a_fact_is_shown_behind_its_key() -> None:
    """A value alone says nothing, to a model and to the gate."""
    fact = replace(incoming("2 April 2027"), kind="fact", key="atlas_launch", title="atlas launch")
    (passage,) = await found("When is the atlas launch?", fact)
    assert passage.text == "atlas launch: 2 April 2027"


@pytest.mark.parametrize("said", ["ferry_time", "Ferry time", "ferry-time?"])
async def test_a_fact_comes_first_to_who_says_its_key(said: str) -> None:
    """Also where other texts have the words of the key more often, and the fact has none of them."""
    fact = replace(incoming("at nine"), kind="fact", key="ferry_time", title="ferry time")
    others = ("A time for ferry repairs.", "Ferry time: ferry and time.", "The time of the tide is noon.")
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([fact, *map(incoming, others)])
        with image.snapshot() as root:
            page = recollection.recall(root, RecallQuery(said), MemoryReach("ann"), 8)
    assert page["recalled"][0]["text"] == "at nine"


async def test_the_later_message_of_a_talk_is_evidence_too() -> None:
    """Though it has less of the question than the one before it; another's later message is none."""

    def mail(place: str, text: str, at: str, speaker: str, talk: str) -> Incoming:
        about = {"kind": "turn", "said_at": at, "speaker": speaker, "conversation": talk}
        return replace(incoming(text, f"/box#{place}"), **about)  # type: ignore[arg-type]

    first = mail("1", "We have the summer house at Skagen from 11 to 25 July.", "2026-02-02T10:00:00.000Z", "Per", "a")
    later = mail("2", "The house is free only from 18 July to 1 August.", "2026-06-27T10:00:00.000Z", "Per", "b")
    other = mail("3", "Our house needs paint.", "2026-07-27T10:00:00.000Z", "Eve", "c")
    passages = await found("On which days do we have the summer house at Skagen?", first, later, other)
    assert [each.text for each in passages] == [first.text, later.text]
    assert [(each.day, each.speaker) for each in passages] == [("2026-02-02", "Per"), ("2026-06-27", "Per")]
