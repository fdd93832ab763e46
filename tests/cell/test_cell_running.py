"""Waiting: no worker is held, however deep or wide, and what waits side by side begins side by side."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.cell.hosting import PATIENT, Answers, method, outcome, soon, uses
from tests.cell.memory import resident_mb
from tests.waiting import HANG

from batos.cell.cell import Cell, MethodCall, MethodRun
from batos.cell.program import Program
from batos.cell.values import MessageAnswer, Ref, Writes
from batos.events import Events
from batos.protocol.errors import CellKilled


class NestingHost:
    """A host whose every message runs the same program again, one deeper, until the depth is reached."""

    def __init__(self, cell: Cell, program: Program, depth: int) -> None:
        self.cell, self.program, self.depth = cell, program, depth
        self.reached = 0

    async def send(
        self, to: Ref | None, selector: str, args: list[Any], kwargs: dict[str, Any], _: Writes
    ) -> MessageAnswer:
        (at,) = args
        self.reached = max(self.reached, at)
        if at == self.depth:
            return MessageAnswer(0)
        return MessageAnswer((await self.cell.run(self.program, MethodCall({}, [at + 1]), self)).result)

    async def read(self, of: Ref, slot: str) -> MessageAnswer:
        raise NotImplementedError


DEEPER = {
    "sync": "def go(self, at):\n    return 1 + self.deeper_(at)\n",
    "async": "async def go(self, at):\n    return 1 + await self.deeper_(at)\n",
}


@pytest.mark.parametrize("source", DEEPER.values(), ids=DEEPER.keys())
async def test_messages_50_deep_need_two_workers(cell: Cell, source: str) -> None:
    """Each run waits for the next, and none has a worker while it does."""
    program = method(source)
    host = NestingHost(cell, program, 50)
    found = await cell.run(program, MethodCall({}, [1]), host)
    assert found.result == 50 == host.reached


async def test_runs_within_runs_are_bounded() -> None:
    """A method that sends itself to itself is stopped by the depth, and by the messages of all runs together."""
    seen: list[Any] = []
    events = Events(lambda name, keys: seen.append((name, keys["limit"])))
    for limits, limit in ((replace(PATIENT, nesting=10), "nesting"), (replace(PATIENT, nested_messages=7), "messages")):
        cell = Cell(2, limits, events)
        program = method(DEEPER["sync"])
        with pytest.raises(CellKilled) as raised:
            await cell.run(program, MethodCall({}, [1]), NestingHost(cell, program, 1000))
        assert raised.value.limit == limit
        await cell.aclose()
    assert {("cell.kill", "nesting"), ("cell.kill", "messages")} == set(seen)


async def test_a_thousand_methods_wait_with_a_pool_of_two(cell: Cell) -> None:
    """All are suspended at once on inference; kernel and workers together grow by less than 20 MB."""
    gate = asyncio.Event()

    asked, all_asked = [], asyncio.Event()

    async def infer(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 1000:
            all_asked.set()
        await gate.wait()
        return prompt.upper()

    source = """
        async def ask(self, n):
            text = f"question {n} about {self.topic}"
            reply = await self.infer_(text, system="Be brief.")
            return [n, reply]
        """
    program = method(source, uses("topic"))
    host = Answers({"infer_": lambda prompt, system: infer(prompt)})
    view = {"topic": "rain " * 20}
    free = Answers({"infer_": "warm"})
    await asyncio.gather(*(outcome(cell, program, MethodCall(view, [n]), free) for n in range(50)))
    before = resident_mb()
    runs = [asyncio.create_task(outcome(cell, program, MethodCall(view, [n]), host)) for n in range(1000)]
    await all_asked.wait()
    await asyncio.gather(*(outcome(cell, program, MethodCall(view, [n]), free) for n in range(4)))  # once workers rest
    grown = resident_mb() - before
    gate.set()
    found = await asyncio.gather(*runs)
    assert [each.result for each in found][7] == [7, "QUESTION 7 ABOUT " + ("RAIN " * 20)]
    assert grown < 20


async def test_decimals_are_kept_while_a_method_waits() -> None:
    """Those in variables, keys and local functions: the one worker runs another method meanwhile."""
    cell = Cell(1, PATIENT)
    source = """
        from decimal import Decimal, ROUND_UP
        async def price(self, text):
            total, cent = Decimal(text), Decimal("0.01")
            rates = {Decimal("0.10"): [Decimal("1.50")]}
            def taxed(rate):
                return (total * rate).quantize(cent, rounding=ROUND_UP)
            rate = Decimal(await self.infer_("rate"))
            return [str(taxed(rate)), f"{total:,.2f}", str(rates[Decimal("0.1")][0] / 3), rate < total]
        """

    async def infer(_: str) -> str:
        await soon()
        other = method("from decimal import Decimal\ndef give(self):\n    return str(Decimal(1) / 7)\n")
        assert (await outcome(cell, other)).result == str(Decimal(1) / 7)
        return "1.19"

    found = await outcome(cell, method(source), MethodCall({}, ["1234.5"]), Answers({"infer_": infer}))
    await cell.aclose()
    assert found.result == ["1469.06", "1,234.50", "0.50", True]


async def test_gathered_messages_wait_side_by_side(cell: Cell) -> None:
    """The second is sent while the first is unanswered, in every way of saying so."""
    ways = (
        "return await asyncio.gather(self.infer_(1), self.infer_(2))",
        "return await asyncio.gather(*[self.infer_(n) for n in (1, 2)])",
        "return list(await asyncio.gather(*(self.infer_(n) for n in (1, 2))))",
        "tasks = [self.infer_(n) for n in (1, 2)]\n    return await asyncio.gather(*tasks)",
        "all = []\n    for n in (1, 2):\n        all.append(self.infer_(n))\n    return await asyncio.gather(*all)",
        "one = self.infer_(1)\n    two = self.infer_(2)\n    return await asyncio.gather(one, two)",
        "async def ask(n):\n        return await self.infer_(n)\n    return await asyncio.gather(ask(1), ask(2))",
        "return await asyncio.gather(*map(self.infer_, (1, 2)))",
    )
    for way in ways:
        both = asyncio.Barrier(2)

        async def infer(n: int, both: asyncio.Barrier = both) -> int:
            async with asyncio.timeout(HANG):
                await both.wait()
            return n * 10

        program = method(f"import asyncio\nasync def ask(self):\n    {way}\n")
        assert (await outcome(cell, program, host=Answers({"infer_": infer}))).result == [10, 20]


async def test_answers_come_in_any_order(cell: Cell) -> None:
    """A method goes on with the answer that is there, and each finds its own message."""
    gates = {n: asyncio.Event() for n in (1, 2, 3)}
    order: list[int] = []

    async def infer(n: int) -> int:
        await gates[n].wait()
        return n

    async def note(n: int) -> None:
        order.append(n)
        if n - 1 in gates:
            gates[n - 1].set()

    source = """
        import asyncio

        async def ask(self):
            async def one(n):
                found = await self.infer_(n)
                self.log_(found)
                return found

            return await asyncio.gather(*(one(n) for n in (1, 2, 3)))
        """
    gates[3].set()
    found = await outcome(cell, method(source), host=Answers({"infer_": infer, "log_": note}))
    assert found.result == [1, 2, 3]
    assert order == [3, 2, 1]


async def test_waiting_is_not_the_methods_time() -> None:
    """A method may wait longer than it may run: what counts as its run has no second of its wait in it."""
    cell = Cell(1, PATIENT)
    waited = 0.0

    async def infer() -> int:
        nonlocal waited
        began = time.perf_counter()
        await asyncio.sleep(0.5)  # any pace: it is measured
        waited = time.perf_counter() - began
        return 1

    program, host = method("async def ask(self):\n    return await self.infer_()"), Answers({"infer_": infer})
    policy = {"datetime": datetime.now(UTC), "sleep": "zero", "random_start": {"seed": "1"}}
    run = MethodRun(cell._workers, program, PATIENT, host, policy)
    began = time.perf_counter()
    await run.go({}, [], {})
    whole = time.perf_counter() - began
    assert run.result == 1
    assert 0 < run.seconds <= whole - waited
    await cell.aclose()


async def test_the_host_may_be_asked_while_others_run(cell: Cell) -> None:
    """While one method waits, the only worker runs another to its end."""
    single = Cell(1, PATIENT)
    gate = asyncio.Event()

    async def infer() -> str:
        await gate.wait()
        return "late"

    waiting = asyncio.create_task(
        outcome(single, method("async def ask(self):\n    return await self.infer_()"), host=Answers({"infer_": infer}))
    )
    await soon()
    assert (await outcome(single, method("def give(self):\n    return 1"))).result == 1
    gate.set()
    assert (await waiting).result == "late"
    await single.aclose()


async def test_state_survives_a_suspension(cell: Cell) -> None:
    """Locals, slots, aliases and other objects are the same after a wait in another process."""
    source = """
        async def work(self):
            items = self.items
            friend = self.friend
            items.append("before")
            reply = await self.infer_("x")
            items.append(reply)
            self._p_changed = True
            return [self.items is items, friend == self.friend, friend.name]
        """

    async def infer(_: str) -> str:
        await soon()
        return "after"

    host = Answers({"infer_": infer}, {(1, "name"): "al"})
    program = method(source, uses("friend", "", "items"))
    found = await outcome(cell, program, MethodCall({"items": [], "friend": Ref(1)}), host)
    assert found.result == [True, True, "al"]
    assert found.writes.values == {"items": ["before", "after"]}


async def test_a_message_that_nobody_awaits_is_ended(cell: Cell) -> None:
    """When the method is over, what it began and did not wait for is cancelled."""
    ended: list[str] = []

    async def infer(name: str) -> str:
        if name == "fast":
            return name
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)
        return name

    source = """
        import asyncio

        async def ask(self):
            async def fails():
                await self.infer_("fast")
                raise ValueError("over")

            try:
                await asyncio.gather(self.infer_("slow"), fails())
            except ValueError:
                return "caught"
        """
    assert (await outcome(cell, method(source), host=Answers({"infer_": infer}))).result == "caught"
    assert ended == ["slow"]
