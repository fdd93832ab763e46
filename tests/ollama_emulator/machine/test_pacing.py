"""How much of a prompt is new to a runner, and when tokens are due."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from tests.ollama_emulator.clients import Start, pass_time
from tests.waiting import until

from ollama_emulator.clocks import ManualClock
from ollama_emulator.machine.pacing import Pace, Prefixes


def test_a_prompt_is_read_once() -> None:
    """The first time whole; the same again costs one token; half of it new, half of it is read."""
    prefixes = Prefixes()
    assert prefixes.count_unread("a" * 100, 50) == 50
    assert prefixes.count_unread("a" * 100, 50) == 1
    assert prefixes.count_unread("a" * 50 + "b" * 50, 50) == 25
    assert prefixes.count_unread("", 0) == 0


@given(st.lists(st.text("ab", max_size=12), min_size=1, max_size=6))
def test_it_is_the_longest_shared_beginning(prompts: list[str]) -> None:
    """With a token a character, what is new is what no earlier prompt began with."""
    prefixes = Prefixes()
    for at, prompt in enumerate(prompts):
        known = max((_shared(prompt, other) for other in prompts[:at]), default=0)
        assert prefixes.count_unread(prompt, len(prompt)) == (max(1, len(prompt) - known) if prompt else 0)


def _shared(one: str, other: str) -> int:
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))


async def test_the_rate_holds_on_average() -> None:
    """Who is late says at once what is due; prompts are read twenty times as fast."""
    clock = ManualClock()
    pace, said = Pace(clock, 10), 0

    async def speak() -> None:
        nonlocal said
        await pace.read(50)
        while True:
            await pace.say()
            said += 1

    speaking = asyncio.create_task(speak())
    for seconds, due in ((0.2, 0), (0.05, 0), (0.1, 1), (0.05, 1), (0.85, 10), (5.0, 60)):
        await asyncio.sleep(0)
        clock.advance(seconds)
        for _ in range(200):
            await asyncio.sleep(0)
        assert said == due
    assert pace.read_ns == 250_000_000
    speaking.cancel()


async def test_a_prompt_that_the_runner_knows_is_not_read_again(start: Start) -> None:
    """prompt_eval_count is the whole prompt both times, prompt_eval_duration the part that was new."""
    async with start(tok_s=20_000) as client:
        first = await client.chat("word " * 200, options={"num_predict": 4})
        again = await client.chat("word " * 200, options={"num_predict": 4})
        assert first["prompt_eval_count"] == again["prompt_eval_count"] > 100
        assert again["prompt_eval_duration"] * 50 < first["prompt_eval_duration"]


async def test_a_killed_runner_ends_all_its_answers(start: Start) -> None:
    """Who shares the process with the one that is struck hears of it too."""
    clock = ManualClock()
    async with start(clock, tok_s=10, parallel=2) as client:
        scheduler = client.emulator.scheduler
        body = {"model": "llama3.2:3b", "messages": [{"role": "user", "content": "What is water?"}], "stream": False}
        asked = [asyncio.create_task(client.http.post("/api/chat", json=body)) for _ in range(2)]
        await until(lambda: any(runner.slots.used == 2 for runner in scheduler.runners.values()))
        next(iter(scheduler.runners.values())).dead = True
        await pass_time(clock, *asked)
        words = {"error": "an error was encountered while running the model: unexpected EOF"}
        assert [(task.result().status_code, task.result().json()) for task in asked] == [(500, words)] * 2
        assert (await client.ps())[0]["name"] == "llama3.2:3b"
