"""The store of gold items: made once of what is new, of nothing that is set aside, and a user's for that user alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from tests.memory.test_document_store import incoming

from batos.autotelic.curator import CurationWish
from batos.autotelic.item_store import ItemStore
from batos.image import roots
from batos.memory.known_texts import Incoming
from batos.protocol.motion_documents import OutcomeAct
from batos.records import gold_items, outcomes
from batos.records.gold_items import GoldItem
from batos.records.outcomes import NotedAct
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

LAMP = "The clockwork of the old lamp at Holm Light was wound by its keeper every night."
PIER = "In 1848 the harbour board of the island paid the granite pier and its iron crane."


def store_of(uvm: UVM) -> ItemStore:
    """A store over a mind."""
    return ItemStore(uvm.image, uvm.readings.recollection.search, uvm.clock)


def items(uvm: UVM, user: str = "ann", kinds: str = "RAHNSU") -> list[GoldItem]:
    """What there is for a user."""
    with uvm.image.snapshot() as root:
        return [each for each in gold_items.list_items(root, user) if each.kind in kinds]


async def remember(uvm: UVM, *given: Incoming) -> list[str]:
    """The names of texts that are remembered."""
    return [each["document"] for each in (await uvm.document_store.remember(given))["remembered"]]


@pytest.fixture
async def uvm(tmp_path: Path) -> AsyncIterator[UVM]:
    """A mind that remembers nothing yet."""
    async with scripted_uvm(
        tmp_path, ScriptedBridge.saying("Maro winds the lamp at 1,250 turns."), user="ann"
    ) as opened:
        yield opened


async def test_nothing_is_made_twice(uvm: UVM) -> None:
    """Of what is new since the last time, whatever else changed."""
    store = store_of(uvm)
    await remember(uvm, incoming(LAMP, "/a"), incoming("Gulls cry.", "/b"))
    assert (await store.refresh(), await store.refresh()) == (1, 0)
    await remember(uvm, incoming(PIER, "/c"))
    assert (await store.refresh(), await store.refresh()) == (1, 0)
    assert [each.gold for each in items(uvm)] == [(LAMP,), (PIER,)]
    await remember(uvm, incoming(PIER.replace("1848", "1850"), "/c"))
    assert await store.refresh() == 1
    assert [each.gold[0][:7] for each in items(uvm)] == [LAMP[:7], "In 1850"]


async def test_an_item_of_one_user_is_never_anothers(uvm: UVM) -> None:
    """Of the same text each has one of their own."""
    await remember(uvm, incoming(LAMP, "/a"), incoming(LAMP, "/a", user="bob"), incoming(PIER, "/c", user="bob"))
    assert await store_of(uvm).refresh() == 3
    assert [each.user for each in items(uvm)] == ["ann"]
    assert [each.user for each in items(uvm, "bob")] == ["bob", "bob"]
    splits = {(each.gold, each.split) for each in items(uvm, "bob")}
    assert {(each.gold, each.split) for each in items(uvm)} < splits
    assert not items(uvm, "cid")


async def test_what_is_set_aside_judges_nothing(uvm: UVM) -> None:
    """While it is retracted or folded away; an edited text has items of its own."""
    store = store_of(uvm)
    first, second = await remember(uvm, incoming(LAMP, "/a"), incoming(PIER, "/b"))
    await store.refresh()
    folded = await uvm.curator.curate(CurationWish("ann", 0, 9, by_rule=True))
    assert (len(folded["regions"]), items(uvm)) == (1, [])
    await uvm.curator.undo(folded["regions"][0]["summary"], "ann")
    assert len(items(uvm)) == 2
    await uvm.document_store.edit(second, PIER.replace("1848", "1850"), "ann")
    assert await store.refresh() == 1
    assert [each.gold[0][:7] for each in items(uvm)] == [LAMP[:7], "In 1850"]
    await uvm.document_store.forget([first], "ann")
    assert len(items(uvm)) == 1
    with uvm.image.snapshot() as root:
        assert not gold_items.items_under(root, first)


async def test_a_value_that_took_the_place_of_another_is_asked_for(uvm: UVM) -> None:
    """And the sentence that gave way is asked for no more."""
    store = store_of(uvm)
    long = "The launch of the Orion rocket is on {0} March at the northern pad of the island harbour."
    await remember(uvm, incoming(long.format(15), "/a/plan.md"))
    await store.refresh()
    assert [each.kind for each in items(uvm)] == ["R"]
    await remember(uvm, incoming(long.format(18), "/b/plan.md"))
    await store.refresh()
    found = items(uvm)
    assert sorted(each.kind for each in found) == ["R", "S"]
    assert all("15 March" not in text for each in found for text in (each.question, *each.gold))
    assert [each.gold for each in found if each.kind == "S"] == [("18",)]


async def test_an_answer_is_gold_as_long_as_its_person_says_so(uvm: UVM) -> None:
    """A newer verdict takes it away, and what a person wrote over it is gold too."""
    store = store_of(uvm)
    mission = (await uvm.missions.ask({"text": "Who winds the lamp?", "user": "ann", "effort": "reflex"}))["id"]
    await uvm.mission_memory.write()
    await store.refresh()
    assert not items(uvm)
    acts: list[tuple[OutcomeAct, int]] = [("rated_good", 1), ("rated_bad", 0), ("rated_good", 1)]
    for act, many in acts:
        noted = NotedAct(act, "2026-11-30T06:00:00.000Z", "ann")
        await uvm.image.shared.apply(partial(outcomes.note, mission=mission, noted=noted))
        await store.refresh()
        assert [each.source for each in items(uvm)] == [mission] * many
    (answer,) = [each for each in uvm.readings.memories(9)["memories"] if each["kind"] == "mission"]
    await uvm.document_store.edit(answer["document"], "Ida winds it.", "ann")
    await store.refresh()
    (found,) = items(uvm)
    assert (found.kind, found.question, found.gold) == ("U", "Who winds the lamp?", ("Ida winds it.",))
    assert not items(uvm, "bob")


async def test_a_user_has_so_many_items_at_most(uvm: UVM) -> None:
    """The oldest of the kind that has the most go; of another user none."""
    await remember(uvm, incoming(LAMP, "/a"), incoming(LAMP, "/a", user="bob"))
    await store_of(uvm).refresh()
    (name,) = [each["document"] for each in uvm.readings.memories(9)["memories"] if each["user"] == "ann"]

    def fill(root: roots.Root) -> None:
        (own,) = gold_items.items_under(root, name)
        many = [own._replace(id=f"i-{n}", kind="R" if n else "H", made_at=f"{n:04}") for n in range(700)]
        gold_items.put_items(root, name, many)
        gold_items.cap_items(root, "ann")

    await uvm.image.shared.apply(fill)
    found = items(uvm)
    assert (len(found), found[0].kind, found[1].id, found[-1].id) == (gold_items.CAP, "H", "i-101", "i-699")
    assert len(items(uvm, "bob")) == 1
