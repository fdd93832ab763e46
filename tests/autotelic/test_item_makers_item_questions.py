"""Questions by a model: kept if only their sentence answers them, and asked by missions that leave nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.autotelic import test_item_store
from tests.autotelic.test_item_store import LAMP, PIER, items, remember, store_of
from tests.memory.test_document_store import incoming

from batos.autotelic import item_store
from batos.autotelic.heartbeat import Allowance, Expense, Heartbeat, HeartbeatParts
from batos.autotelic.item_makers import QuestionWriter
from batos.autotelic.model_missions import PATIENCE, ModelMissions
from batos.protocol.brief import File
from batos.protocol.errors import OllamaUnreachable, Refused
from batos.records import gold_items
from batos.testing import emulated_uvm
from batos.uvm import UVM

ASKED = "Which lighthouse has such an old lamp?"

uvm = test_item_store.uvm


@dataclass
class Model:
    """A model that answers by a function of the question and what it is shown."""

    reply: Callable[[str, str], str]
    asked: list[tuple[Mapping[str, Any], str]] = field(default_factory=list)
    is_there: bool = True

    async def ask(self, brief: Mapping[str, Any], files: Sequence[File]) -> Mapping[str, Any]:
        """The report of a mission."""
        shown = files[0].data.decode() if files else ""
        self.asked.append((brief, shown))
        return {"id": "m-1", "answer": self.reply(str(brief["text"]) if "schema" not in brief else "", shown)}

    async def answers(self) -> bool:
        """Tell whether it is there."""
        return self.is_there

    async def check(self) -> None:
        """It is ready."""

    def writer(self) -> QuestionWriter:
        """A writer by it."""
        return QuestionWriter(ModelMissions(self.ask, self.answers, self.check))


def good(question: str, shown: str) -> str:
    """A model that asks well, and knows what it is shown."""
    if not question:
        return f'{{"question": "{ASKED}"}}' if "Holm" in shown else '{"question": "When was such a pier paid?"}'
    return shown or "I do not know."


async def test_a_question_is_kept_with_one_that_nothing_answers(uvm: UVM) -> None:
    """By three missions without memory, each of which names its memory; a second run asks nothing."""
    store, model = store_of(uvm), Model(good)
    (name,) = await remember(uvm, incoming(LAMP, "/a"))
    assert await store.ask(model.writer()) == 0
    await store.refresh()
    assert await store.ask(model.writer()) == 2
    found = items(uvm, kinds="AN")
    assert [(each.kind, each.question, each.gold) for each in found] == [
        ("A", ASKED, ("Holm Light",)),
        ("N", ASKED, ()),
    ]
    assert len(model.asked) == 3
    assert {brief["origin"]["client"] for brief, _ in model.asked} == {f"items {name}"}
    assert {brief["policy"]["memory"] for brief, _ in model.asked} == {"none"}
    assert all(LAMP not in str(brief) and "Holm" not in str(brief) for brief, _ in model.asked)
    assert await store.ask(model.writer()) == 0
    assert len(model.asked) == 3


async def test_a_memory_that_answers_it_ends_what_nothing_answered(uvm: UVM) -> None:
    """Whether it was there before or comes later; that of another user answers nothing here."""
    store, model = store_of(uvm), Model(good)
    await remember(uvm, incoming(LAMP, "/a"), incoming("HOLM LIGHT is old.", "/b", user="bob"))
    await store.refresh()
    await store.ask(model.writer())
    assert [each.kind for each in items(uvm, kinds="AN")] == ["A", "N"]
    await remember(uvm, incoming("Boats pass HOLM LIGHT.", "/b"))
    await store.refresh()
    assert [each.kind for each in items(uvm, kinds="AN")] == ["A"]
    await remember(uvm, incoming(LAMP, "/c", scope="work"))
    await store.refresh()
    assert await store.ask(model.writer()) == 1


@pytest.mark.parametrize(
    ("reply", "missions"),
    [
        (lambda question, shown: "no json", 1),
        (lambda question, shown: '{"question": ["?"]}', 1),
        (lambda question, shown: '{"question": "Where is Holm Light?"}', 1),
        (lambda question, shown: good(question, shown) if not question else "Skarn.", 2),
        (lambda question, shown: good(question, shown) if not question else "Holm Light.", 3),
    ],
)
async def test_a_question_that_does_not_do_is_left(uvm: UVM, reply: Callable[[str, str], str], missions: int) -> None:
    """One that tells its answer, that its sentence does not answer, or that a model answers without it."""
    store, model = store_of(uvm), Model(reply)
    await remember(uvm, incoming(LAMP, "/a"))
    await store.refresh()
    assert await store.ask(model.writer()) == 0
    assert (items(uvm, kinds="AN"), len(model.asked)) == ([], missions)


async def test_the_duty_asks_so_much_at_most_and_only_a_model_that_is_there(uvm: UVM) -> None:
    """What needs none is made all the same; the rest of the questions is asked in later beats."""
    store, model = store_of(uvm), Model(good, is_there=False)
    texts = [LAMP.replace("Holm", f"Holm{chr(97 + n // 26)}{chr(97 + n % 26)}") for n in range(75)]
    await remember(uvm, *(incoming(text, f"/{n}") for n, text in enumerate(texts)))
    duty = item_store.refreshing(store, model.writer(), lambda: datetime(2026, 11, 30, tzinfo=UTC))
    with uvm.image.snapshot() as root:
        before = duty.mark(root)
    assert await duty.work(Allowance()) == "75 questions with known answers made"
    assert not model.asked
    model.is_there = True
    await duty.work(Allowance())
    assert item_store.CALLS - 6 < len(model.asked) <= item_store.CALLS
    first = len(items(uvm, kinds="A"))
    await duty.work(Allowance())
    assert first < len(items(uvm, kinds="A")) <= 75
    assert await duty.work(Allowance(lambda: False)) == ""
    with uvm.image.snapshot() as root:
        assert duty.mark(root) == before
    await remember(uvm, incoming(PIER, "/p"))
    with uvm.image.snapshot() as root:
        assert duty.mark(root) != before


def steps(many: int) -> Callable[[], bool]:
    """A beat that ends after so many steps."""
    left = iter([True] * many)
    return lambda: next(left, False)


async def test_a_beat_that_ends_between_two_memories_loses_and_doubles_nothing(uvm: UVM) -> None:
    """Whatever was made stays, and the next beat goes on there."""
    store, model = store_of(uvm), Model(good)
    await remember(uvm, *(incoming(LAMP.replace("Holm", f"Holm{chr(97 + n)}"), f"/{n}") for n in range(5)))
    made = 0
    for _ in range(5):
        made += await store.refresh(steps(1))
        assert len(items(uvm)) == made
    assert made == 5
    for many in range(12):
        await store.ask(model.writer(), Allowance(steps(many)))
        found = [(each.kind, each.source) for each in items(uvm, kinds="AN")]
        assert len(found) == len(set(found))
    await store.ask(model.writer())
    found = [(each.kind, each.source) for each in items(uvm, kinds="AN")]
    assert len(found) == len(set(found)) == 10


async def test_a_model_that_is_away_is_not_asked_again_and_again(uvm: UVM) -> None:
    """The memory is asked about when it is back."""
    store, model = store_of(uvm), Model(good)
    await remember(uvm, incoming(LAMP, "/a"), incoming(PIER, "/b"))
    await store.refresh()
    tried: list[str] = []

    async def away(brief: Mapping[str, Any], _files: Sequence[File]) -> Mapping[str, Any]:
        tried.append(str(brief["text"]))
        raise OllamaUnreachable("it is away")

    writer = QuestionWriter(ModelMissions(away, model.answers, model.check))
    assert await store.ask(writer) == 0
    assert len(tried) == PATIENCE
    assert {each.source for each in items(uvm, kinds="A")} == set()
    assert await store.ask(model.writer()) >= 1


async def test_a_mission_that_failed_is_asked_anew(uvm: UVM) -> None:
    """Its key is that of a mission without an answer: two of them would else hold up all memories for ever."""
    store, model, ended, away = store_of(uvm), Model(good), set[str](), [True]
    await remember(uvm, incoming(f"{LAMP} {PIER}", "/a"))
    await store.refresh()

    async def ask(brief: Mapping[str, Any], files: Sequence[File]) -> Mapping[str, Any]:
        key = str(brief["idempotency_key"])
        if key in ended:
            raise Refused("it has ended with status failed", field="mission")
        if away:
            ended.add(key)
            raise OllamaUnreachable("it is away")
        return await model.ask(brief, files)

    missions = ModelMissions(ask, model.answers, model.check)
    assert await store.ask(QuestionWriter(missions)) == 0
    assert missions.is_given_up
    away.clear()
    assert await missions.can_ask()
    assert await store.ask(QuestionWriter(missions)) >= 1
    assert len(ended) == PATIENCE


async def test_a_beat_asks_over_the_wire(tmp_path: Path) -> None:
    """Of an emulator, whose words ask for nothing: its replies have the schema, each memory was asked about once, and
    nothing is remembered of it. The missions of the beat do not stop it.
    """
    async with emulated_uvm(tmp_path / "home") as (uvm, emulator):
        await uvm.readiness.genesis()
        await remember(uvm, incoming(LAMP, "/a", user="tester"), incoming(PIER, "/b", user="tester"))
        writer = QuestionWriter(ModelMissions(uvm.missions.ask, uvm.readiness.answers, uvm.readiness.check))
        duty = item_store.refreshing(store_of(uvm), writer, uvm.clock)
        parts = HeartbeatParts(
            uvm.image,
            uvm.clock,
            uvm.workers.is_idle,
            [duty],
            Expense(100.0, 99, 99_999),
            86_400.0,
            lambda: True,
            idle=0.0,
        )
        emulator.requests.clear()
        assert (await Heartbeat(parts).beat())["did"] == ["items: 2 questions with known answers made"]
        formats = [each["body"].get("format") for each in emulator.requests if each["path"] == "/api/chat"]
        assert [[*each["properties"]] for each in formats if each] == [["question"]] * 2
        await uvm.mission_memory.write()
        assert uvm.readings.memories(9)["documents"] == 2
        with uvm.image.snapshot() as root:
            assert gold_items.number_of(root, "asked") == gold_items.number_of(root, "read") > 0


async def test_a_model_is_asked_about_the_memories_of_one_user_alone(uvm: UVM) -> None:
    """Only that user's items judge a trial; the others' calls would be for nothing."""
    model = Model(good)
    await remember(uvm, incoming(LAMP, "/a"), incoming(PIER, "/b", user="bob"))
    store = item_store.ItemStore(uvm.image, uvm.readings.recollection.search, uvm.clock, "ann")
    await store.refresh()
    await store.ask(model.writer())
    assert {each.user for each in items(uvm, kinds="A")} <= {"ann"}
    assert {told["user"] for told, _ in model.asked} == {"ann"}
