"""Recall: within reach, never newer than the root that reads, with a reason, and what has enough of a question."""

from __future__ import annotations

from dataclasses import replace

from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming, store_of

from batos.memory import thresholds
from batos.memory.records import memory_standings
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.metadata import WITH_HISTORY, MemoryReach
from batos.memory.search.recollection import RecallView, Recollection

LAMP = "The keeper Maro winds the clockwork of the lamp every four hours. Gulls cry. Oil is dear."


async def test_a_search_keeps_within_reach() -> None:
    """Of one user, in the scopes that are named."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming("Lamp a."), incoming("Lamp b.", scope="work"), incoming("Lamp c.", user="bob")])
        with image.snapshot() as root:

            def found(reach: MemoryReach) -> set[str]:
                return {each["text"] for each in recollection.recall(root, RecallQuery("lamp"), reach, 9)["recalled"]}

            assert found(MemoryReach("ann")) == {"Lamp a.", "Lamp b."}
            assert found(MemoryReach("ann", frozenset({"work"}))) == {"Lamp b."}
            assert found(MemoryReach("bob", frozenset({"default"}))) == {"Lamp c."}
            assert found(MemoryReach("eve")) == set()
            listed = recollection.list_memories(root, MemoryReach("ann", frozenset({"work"})), 9)
            assert [each["title"] for each in listed["memories"]] == ["Lamp b."]
            assert (listed["documents"], listed["chunks"]) == (1, 1)


async def test_an_older_root_sees_nothing_newer() -> None:
    """The indexes in memory follow the newest root, and what is not in an older one is left out there."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming("Lamp one.", "/a")])
        with image.snapshot() as before:
            await store.remember([incoming("Lamp two.", "/b")])
            with image.snapshot() as after:
                assert recollection.recall(after, RecallQuery("lamp"), MemoryReach(None), 9)["of"] == 2
            (found,) = recollection.recall(before, RecallQuery("lamp"), MemoryReach(None), 9)["recalled"]
            assert found["text"] == "Lamp one."
            assert len(recollection.list_memories(before, MemoryReach(None), 9)["memories"]) == 1


async def test_the_newest_come_from_all_scopes_that_are_searched() -> None:
    """In the order in which they came, whatever the names of their scopes; with a scope only from this one."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        said = [("The lamp burns.", "b"), ("Gulls cry.", "default"), ("Oil is dear.", "a"), ("Fog came.", "z")]
        for text, scope in said:
            await store.remember([replace(incoming(text, scope=scope), kind="turn")])

        def recall(*scopes: str) -> list[str]:
            reach = MemoryReach("ann", frozenset(scopes) or None)
            with image.snapshot() as root:
                found = recollection.recall(root, RecallQuery("lamp"), reach, 3, RecallView(newest=True))["recalled"]
                return [each["text"] for each in found]

        assert recall() == ["The lamp burns.", "Fog came.", "Oil is dear."]
        assert recall("default", "z") == ["Fog came.", "Gulls cry."]


async def test_a_part_tells_where_it_stands_and_why_it_was_found() -> None:
    """Its span in the text, its document, and the rare words that it shares with the query."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming(LAMP, "/lamp"), *(incoming(f"The hour of the day {n}.") for n in range(9))])
        with image.snapshot() as root:
            page = recollection.recall(root, RecallQuery("Who winds the clockwork of the lamp?"), MemoryReach("ann"), 1)
            (found,) = page["recalled"]
            assert (found["text"], found["span"], found["source"]) == (LAMP, [0, len(LAMP)], "/lamp")
            assert found["why"].startswith("words: ")
            assert {"winds", "clockwork", "lamp"} <= set(found["why"].removeprefix("words: ").split(", "))
            assert page["of"] == 1
            shown = recollection.show(root, found["document"], "ann")
            assert [each["text"] for each in shown["parts"]] == [LAMP]


async def test_a_mission_is_shown_what_has_enough_of_its_question() -> None:
    """A question about something else finds nothing, though it shares common words."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming(LAMP), *(incoming(f"The hour of the day {n}.") for n in range(9))])
        with image.snapshot() as root:
            reach = MemoryReach("ann")
            (passage,) = recollection.find_passages(root, RecallQuery("Who winds the clockwork of the lamp?"), reach, 8)
            assert (passage.text, passage.start) == (LAMP, 0)
            assert recollection.find_passages(root, RecallQuery("What is the capital of Bolivia?"), reach, 8) == ()
            assert passage.why.startswith("words: ")
            noted = [(passage.chunk, passage.why, passage.weight), (99, "gone", 1.0)]
            assert recollection.passages_of(root, noted, reach) == (passage,)
            assert recollection.passages_of(root, noted, MemoryReach("bob")) == ()
        await image.writer.apply(lambda root: memory_standings.set_standing(root, passage.document, "superseded"))
        with image.snapshot() as root:
            assert recollection.passages_of(root, noted, reach) == ()
            asked = replace(reach, standings=WITH_HISTORY)  # a later attempt of a question about the past
            assert len(recollection.passages_of(root, noted, asked)) == 1
    assert 0 < thresholds.RECALL_COVERED < 1


async def test_the_only_part_is_found_by_its_one_telling_word() -> None:
    """A memory of one sentence cannot tell by itself which words are common in language."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming("My cat is called Miso. She is four years old.")])
        with image.snapshot() as root:

            def count(question: str) -> int:
                return len(recollection.find_passages(root, RecallQuery(question), MemoryReach("ann"), 8))

            assert count("What is the name of my cat?") == 1
            assert count("How old is the cat?") == 1
            assert count("Is it true that Bolivia is a country?") == 0
            assert count("How do I install a printer on Linux?") == 0


async def test_an_answer_does_not_stand_before_what_was_given() -> None:
    """Though its title is the question itself, and there are more of them than a recall shows."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([incoming("Maro winds the clockwork of the lamp.", "/lamp")])
        given = [incoming(f"Nobody knows, said {n}.", f"m-{n}") for n in range(6)]
        answers = [replace(each, kind="mission", title="Who winds the clockwork of the lamp?") for each in given]
        await store.remember(answers)
        with image.snapshot() as root:
            page = recollection.recall(root, RecallQuery("Who winds the clockwork of the lamp?"), MemoryReach("ann"), 3)
        assert [each["kind"] for each in page["recalled"]] == ["document", "mission", "mission"]


async def test_answers_come_last_and_lead_nowhere() -> None:
    """An answer has the very question for a title, and stands behind a note that has less of it."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        answer = replace(
            incoming("Atlas is led by Sarah.", "m-1"), kind="mission", title="Who leads project Atlas now?"
        )
        await store.remember([answer, incoming("Tomas leads Atlas."), replace(incoming("Born in Ulm."), title="Sarah")])
        with image.snapshot() as root:
            query = RecallQuery("Who leads project Atlas now?")
            page = recollection.recall(root, query, MemoryReach("ann"), 9)
            assert [each["text"] for each in page["recalled"]] == ["Tomas leads Atlas.", "Atlas is led by Sarah."]
            only = MemoryReach("ann", kinds=frozenset({"mission"}))
            (found,) = recollection.recall(root, query, only, 9)["recalled"]
            assert found["kind"] == "mission"


async def test_a_title_leads_to_no_part_of_its_own_document() -> None:
    """A part that has its page's title in it does not reach the others; another page with that title is reached."""
    text = "# Heat pumps\n\nHeat pumps save gas in winter.\n\n# Other things\n\nOil is dear, and gulls cry a lot."
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        await store.remember([replace(incoming(text, "/a"), title="Heat pumps")])
        with image.snapshot() as root:
            page = recollection.recall(root, RecallQuery("Do they save gas?"), MemoryReach("ann"), 9)
            assert [each["path"] for each in page["recalled"]] == [None]
