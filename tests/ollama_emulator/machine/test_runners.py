"""Slots are given out in turn and given back; which options are the same to a runner."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ollama_emulator.emulator import Emulator, Options
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.library.model_tags import parse
from ollama_emulator.library.models import Model
from ollama_emulator.machine.memory import Footprint
from ollama_emulator.machine.runners import Ask, ModelRunner

CHAT, EMBEDDER = "llama3.2:3b", "all-minilm"


def _model(name: str) -> Model:
    daemon = Emulator(Options(models=(name,))).daemon
    parsed = parse(name)
    model = daemon.find(parsed) if parsed is not None else None
    daemon.close()
    assert model is not None
    return model


MODELS = {name: _model(name) for name in (CHAT, EMBEDDER)}


def ask(name: str = CHAT, *, shift: bool | None = None, **options: Any) -> Ask:
    """What a request with these options asks, on a machine whose automatic window is 4096."""
    return Ask.from_options(MODELS[name], options, 4096, False, shift)


def runner(asked: Ask, *, slots: int = 1, batch: int = 512, on_card: bool = True) -> ModelRunner:
    """A runner started for a request."""
    return ModelRunner(asked, Footprint(1, 1), slots, 10**9, batch, on_card=on_card)


@pytest.mark.parametrize(
    ("first", "then", "joins"),
    [
        ({}, {}, True),
        ({}, {"num_ctx": 4096}, True),
        ({"num_ctx": 4096}, {}, True),
        ({"num_ctx": 8192}, {}, False),
        ({"num_ctx": 10**6}, {"num_ctx": 131_072}, True),
        ({"num_batch": 64}, {}, False),
        ({"num_batch": 512}, {}, True),
        ({}, {"num_batch": 512}, True),
        ({"num_gpu": 12}, {}, True),
        ({"num_gpu": 12}, {"num_gpu": -1}, True),
        ({"num_gpu": 12}, {"num_gpu": 12}, True),
        ({"num_gpu": 12}, {"num_gpu": 13}, False),
        ({}, {"num_gpu": 12}, False),
        ({"use_mmap": True}, {}, False),
        ({"main_gpu": 0}, {}, False),
        ({"num_thread": 2}, {}, False),
        ({"draft_num_predict": 4}, {}, True),
        ({"shift": False}, {}, False),
        ({"shift": True}, {}, True),
        ({"temperature": 2.0, "num_predict": 3}, {}, True),
    ],
)
def test_what_makes_a_runner_start_again(first: dict[str, Any], then: dict[str, Any], joins: bool) -> None:
    """Numbers are compared after capping; what nobody named is equal to itself and to the number in force."""
    assert runner(ask(**first), batch=first.get("num_batch", 512)).serves(ask(**then)) is joins


def test_an_automatic_batch_is_compared_by_its_number() -> None:
    """A large window was given a batch of 1024: naming 512 is another one, naming 1024 is not."""
    large = runner(ask(num_ctx=8192), batch=1024)
    assert large.serves(ask(num_ctx=8192))
    assert large.serves(ask(num_ctx=8192, num_batch=1024))
    assert not large.serves(ask(num_ctx=8192, num_batch=512))


def test_on_the_cpu_only_a_wish_for_mapping_reloads() -> None:
    """The daemon turns it off there by itself."""
    on_cpu = runner(ask(), on_card=False)
    assert on_cpu.serves(ask(use_mmap=False))
    assert not on_cpu.serves(ask(use_mmap=True))


def test_a_killed_process_serves_nobody() -> None:
    """Nor does it take who waits for its slot."""
    dead = runner(ask())
    dead.dead = True
    assert not dead.serves(ask())


async def test_a_slot_of_a_dead_process_is_an_error() -> None:
    """Who comes to it hears that it no longer runs; the place is given back."""
    dead = runner(ask())
    dead.dead = True
    with pytest.raises(ApiError, match="no longer running"):
        async with dead.slots:
            raise AssertionError("it has no place to give")
    assert dead.slots.used == 0


async def test_slots_go_to_those_who_asked_first() -> None:
    """One place: the order of answers is the order of asking."""
    slots, order = runner(ask()).slots, []

    async def take(number: int) -> None:
        async with slots:
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(take(number) for number in range(9)))
    assert order == list(range(9))
    assert (slots.used, slots.waiting_count) == (0, 0)


@pytest.mark.parametrize("turns", range(4))
async def test_a_slot_is_not_lost_with_a_client_that_leaves(turns: int) -> None:
    """Whether it waits, was just handed the place, or has it."""
    slots = runner(ask()).slots
    held, done = asyncio.Event(), []

    async def take(name: str, hold: bool = False) -> None:
        async with slots:
            if hold:
                await held.wait()
            done.append(name)

    first = asyncio.create_task(take("first", hold=True))
    second = asyncio.create_task(take("second"))
    third = asyncio.create_task(take("third"))
    await asyncio.sleep(0)
    held.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert "third" in done
    assert (slots.used, slots.waiting_count) == (0, 0)


@pytest.mark.parametrize(("asked", "shown", "window"), [(1, 4, 256), (256, 256, 256), (300, 300, 512)])
def test_the_window_in_force(asked: int, shown: int, window: int) -> None:
    """At least 4, shown as asked, rounded up to 256."""
    found = ask(num_ctx=asked)
    assert (found.num_ctx, found.window) == (shown, window)


def test_embedders_have_one_slot_and_a_batch_as_long_as_their_window() -> None:
    """Whatever OLLAMA_NUM_PARALLEL says."""
    found = ask(EMBEDDER)
    assert found.lone
    assert runner(found, batch=512).serves(ask(EMBEDDER, num_batch=512))
    assert found.num_ctx == 512
