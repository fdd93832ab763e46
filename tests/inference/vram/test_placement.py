"""Where a model lies after its load: when it is looked, what is told, and what is an alarm and what is none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.inference.conftest import PATIENT
from tests.inference.counting_bridge import DIGEST, CountedBridge, asked, desk, step, until
from tests.inference.still_clock import on_still_clock

from batos.events import Events
from batos.inference.ollama.bridge import Bridge, ChatRequest
from batos.inference.ollama.catalogue import ModelCard, RunnerRow
from batos.inference.vram.call_scheduler import SharedCard
from batos.inference.vram.placement import LOADED, Bases, Watch, place_of, wants_card
from batos.protocol.errors import ModelMissing, OllamaUnreachable
from batos.protocol.event_payloads import EVENTS
from ollama_emulator.emulator import Emulator, Options

WARM = LOADED / 10


def runner(name: str = "robin", size: int = 100, vram: int = 100, digest: str = "") -> RunnerRow:
    """A runner, as /api/ps lists it."""
    return RunnerRow(name, digest or f"digest of {name}", size, vram, 4096, None)


@dataclass(slots=True)
class Daemon:
    """A daemon of which only its lists are asked; `cards` are base blob and adapters by model."""

    rows: Sequence[RunnerRow] = ()
    cards: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    fails: Exception | None = None
    hangs: bool = False

    async def ps(self) -> Sequence[RunnerRow]:
        self.asked.append("ps")
        if self.hangs:
            await asyncio.Event().wait()
        if self.fails is not None:
            raise self.fails
        return self.rows

    async def show(self, model: str) -> ModelCard:
        self.asked.append(f"show {model}")
        if model not in self.cards:
            raise ModelMissing(model)
        blob, *adapters = self.cards[model]
        lines = [f"FROM {blob}", *(f"ADAPTER {each}" for each in adapters)]
        return ModelCard(model, (), {}, "\n".join(lines), "", "", "", "", "")


class EventList(list[tuple[str, Mapping[str, Any]]]):
    """What was told."""

    def __call__(self, event: str, keys: Mapping[str, Any]) -> None:
        assert set(EVENTS[event].keys) <= set(keys)
        self.append((event, keys))

    @property
    def names(self) -> list[str]:
        return [event for event, _ in self]


async def looked(daemon: Daemon, options: Mapping[str, Any] | None = None, load: float = 1.0) -> tuple[EventList, str]:
    """What is told of robin after a call, and where it lies."""
    told = EventList()
    found = await Watch(daemon, Events(told), Bases(daemon)).look("robin", "digest of robin", options or {}, load)
    return told, found.where if found else ""


@pytest.mark.parametrize(
    ("vram", "beside", "options", "where", "events"),
    [
        (100, (), {}, "card", ["vram.sample"]),
        (60, (), {}, "spilled", ["vram.sample", "vram.spill"]),
        # A machine without a card.
        (0, (), {}, "processor", ["vram.sample"]),
        # There is a card, and others have all of it.
        (0, (runner("other"),), {}, "spilled", ["vram.sample", "vram.spill"]),
        # Whoever says how many layers go there has chosen.
        (0, (runner("other"),), {"num_gpu": 0}, "processor", ["vram.sample"]),
        (60, (), {"num_gpu": 20}, "card", ["vram.sample"]),
        (60, (), {"num_gpu": -1}, "spilled", ["vram.sample", "vram.spill"]),
    ],
)
async def test_what_is_an_alarm(
    vram: int, beside: tuple[RunnerRow, ...], options: dict[str, Any], where: str, events: list[str]
) -> None:
    """Less on the card than there is of a model is an alarm, unless there is no card or nobody asked for it."""
    told, found = await looked(Daemon([runner(vram=vram), *beside]), options)
    assert (found, told.names) == (where, events)
    keys = told[-1][1]
    assert (keys["model"], keys["runner"], keys["size"], keys["size_vram"]) == ("robin", "robin", 100, vram)


async def test_it_is_looked_once_and_after_loads() -> None:
    """One request at the first call on a model and after each load; a call that found its model there costs none."""
    daemon = Daemon([runner()])
    watch = Watch(daemon, Events(), Bases(daemon))
    assert await watch.look("robin", "digest of robin", {}, WARM)
    assert await watch.look("robin", "digest of robin", {}, WARM) is None
    assert await watch.look("robin", "digest of robin", {}, LOADED)
    assert daemon.asked == ["ps", "ps"]


async def test_a_siblings_runner_is_ours() -> None:
    """The list shows whoever made it load: a sibling is found by base and adapters, and asked about once."""
    cards = {"robin": ("b",), "brick": ("b",), "babs": ("b", "lora"), "other": ("c",)}
    rows = [runner("other"), runner("babs"), runner("brick", vram=10)]
    daemon = Daemon(rows, cards)
    bases = Bases(daemon)
    for _ in range(2):
        found = await bases.runner("robin", "digest of robin", rows)
        assert found is not None
        assert found.name == "brick"
    assert sorted(daemon.asked) == ["show babs", "show brick", "show other", "show robin"]
    told, where = await looked(daemon)
    assert where == "spilled"
    assert told[-1][1]["runner"] == "brick"


async def test_a_deleted_models_runner_is_nobodys() -> None:
    """A runner whose model is gone, and one of a model without a base, serve nobody by name."""
    rows = [runner("gone"), runner("bare")]
    assert (await looked(Daemon(rows, {"robin": ("b",), "bare": ("",)})))[1] == ""
    assert (await looked(Daemon(rows, {"robin": ("",), "bare": ("",)})))[1] == ""
    assert (await looked(Daemon([], {})))[1] == ""


@pytest.mark.parametrize("fails", [OllamaUnreachable("it is away"), ModelMissing("robin"), TimeoutError()])
async def test_a_look_that_fails_fails_nothing(fails: Exception) -> None:
    """The answer is there: that nobody can say where its model lies is no reason to lose it."""
    told, where = await looked(Daemon(fails=fails))
    assert (list(told), where) == ([], "")


def test_the_words() -> None:
    """A runner is where its bytes are; num_gpu is a choice unless it is negative."""
    assert place_of(runner(vram=120), ()) == "card"
    assert place_of(runner(size=0, vram=0), ()) == "card"
    assert [wants_card(options) for options in ({}, {"num_gpu": -1}, {"num_gpu": 0}, {"num_gpu": 99})] == [
        True, True, False, False,
    ]  # fmt: skip


@on_still_clock
async def test_a_card_that_is_too_small() -> None:
    """On the wire: a model of five GiB that does not fit into two is loaded in silence, and found to have spilled."""
    emulator, told = Emulator(Options(vram=2.0, models=("llama3.1:8b-instruct-q4_K_M",))), EventList()
    async with emulator.serving() as url, Bridge(url, deadlines=PATIENT) as bridge:
        (row,) = await bridge.list()
        options = {"num_ctx": 512, "num_predict": 4}
        answer = await bridge.think(ChatRequest(row.name, ({"role": "user", "content": "Why?"},), options=options))
        found = await Watch(bridge, Events(told), Bases(bridge)).look(
            row.name, row.digest, options, answer.load_seconds
        )
    assert found is not None
    assert 0 < found.size_vram < found.size
    assert told.names == ["vram.sample", "vram.spill"]


@on_still_clock
async def test_a_paid_answer_is_written_before_it_is_looked() -> None:
    """A look that hangs, and a mission that is cancelled in it, lose nothing: the next asks the journal."""
    daemon = Daemon([runner(digest=DIGEST, vram=40)], hangs=True)
    async with desk() as at:
        bridge = CountedBridge()
        session = at.session(bridge, card=SharedCard(daemon, Events()))
        asking = asyncio.ensure_future(session.think(asked(), step()))
        await until(lambda: "ps" in daemon.asked)
        assert [record.state for record in at.records()] == ["done"]
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        at.open()
        daemon.hangs = False
        again = at.session(bridge, card=SharedCard(daemon, Events()))
        await again.think(asked(), step())
        assert sum(bridge.begun.values()) == 1
        # What comes from the journal loads nothing.
        assert (daemon.asked, again.placements) == (["show robin", "ps"], {})
        await again.think(asked("And now?"), step())
        assert again.placements["robin"].where == "spilled"
