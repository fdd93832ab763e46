"""The host of a run against a cell that lies: what it asks is checked, and what it says was written is too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.methods.execution.method_mind import MethodMind
from tests.methods.execution.scenes import FakeCell, errands, program, with_cell

from batos.cell.values import Ref, Writes
from batos.methods.execution import method_run
from batos.methods.execution import resolution as sent
from batos.minds.stopping import Stopped
from batos.objects.prototype import own_slots
from batos.protocol.errors import CellKilled, CovenantViolation, ImageDamaged, MethodFailed


async def test_an_object_that_it_was_never_shown_is_refused(mind: MethodMind) -> None:
    """A number that is in no table means nothing, whether it is sent to, read, written or returned."""
    found: list[Any] = []

    async def forge(call: Any, host: Any) -> Any:
        for number in (-1, 0, 1, 99):
            found.append((await host.send(Ref(number), "name", [], {}, Writes())).raised)
            found.append((await host.read(Ref(number), "name")).raised)
        return None, Writes({"total": Ref(5)}, is_marked=True)

    async with errands(mind.uvm) as (_, given):
        with pytest.raises(MethodFailed, match="never shown"):
            await method_run.run_until_unchanged(given, FakeCell(forge), program("total"))
    assert [each.kind for each in found] == ["RuntimeError"] * 8


async def test_writes_without_a_marker_are_refused_here_too(mind: MethodMind) -> None:
    """The cell has looked at that; the kernel looks again, and keeps nothing."""

    async def unmarked(call: Any, host: Any) -> Any:
        return None, Writes({"total": 1})

    async with errands(mind.uvm) as (opened, given):
        with pytest.raises(CovenantViolation, match="did not mark"):
            await method_run.run_until_unchanged(given, FakeCell(unmarked), program("total"))
        assert "total" not in own_slots(opened.context.mind.persona)


@pytest.mark.parametrize(
    "slot",
    [
        "unlisted",
        "core_identity",
        "core_method",
        "codex_digests",
        "guide_facet_",
        "infer_",
        "_parents",
        "parent*",
        "name",
    ],
)
async def test_a_slot_that_may_not_be_written_takes_all_others_with_it(mind: MethodMind, slot: str) -> None:
    """Writes are honoured all or none: what else the method wrote is not there either."""

    async def write(call: Any, host: Any) -> Any:
        return None, Writes({"total": 1, slot: "x"}, is_marked=True)

    async with errands(mind.uvm) as (opened, given):
        before = dict(own_slots(opened.context.mind.persona))
        with pytest.raises(MethodFailed):
            await method_run.run_until_unchanged(
                given,
                FakeCell(write),
                program("total", "core_identity", "core_method", "codex_digests", "guide_facet_", "name"),
            )
        assert dict(own_slots(opened.context.mind.persona)) == before


@pytest.mark.parametrize(
    ("result", "writes"),
    [
        ([1] * 250_000, Writes()),
        ("x" * 900_000, Writes()),
        (None, Writes({"total": [[1]] * 120_000}, is_marked=True)),
        (None, Writes({name: [1] * 2_000 for name in ("a", "b", "c")}, is_marked=True)),
    ],
)
async def test_what_is_too_large_is_neither_a_result_nor_a_slot(mind: MethodMind, result: Any, writes: Writes) -> None:
    """What the cell lets through and the loop could not look at at once fails the run, and nothing of it is kept."""

    async def flood(call: Any, host: Any) -> Any:
        return result, writes

    async with errands(mind.uvm) as (opened, given):
        before = dict(own_slots(opened.context.mind.persona))
        with pytest.raises(MethodFailed, match="too large for a method"):
            await method_run.run_until_unchanged(given, FakeCell(flood), program("total", "a", "b", "c"))
        assert dict(own_slots(opened.context.mind.persona)) == before


async def test_what_ends_a_run_ends_it_however_often_it_is_caught(mind: MethodMind) -> None:
    """A mission that is held, a database that cannot be read: no message is answered any more."""

    async def stubborn(call: Any, host: Any) -> Any:
        for _ in range(3):
            try:
                await host.send(None, "infer_", ["?"], {}, Writes())
            except (Stopped, ImageDamaged):
                continue
            raise AssertionError("it went on")
        return (await host.send(None, "log_", ["x"], {}, Writes())).value, Writes()

    for error in (Stopped("paused"), ImageDamaged("gone")):
        async with errands(mind.uvm) as (opened, given):
            opened.context.io.session.check_stop = _raising(error)
            with pytest.raises(type(error)):
                await method_run.run_until_unchanged(given, FakeCell(stubborn), program())
    assert mind.bridge.history == []


def _raising(error: BaseException) -> Any:
    def check_stop() -> None:
        raise error

    return check_stop


async def test_a_nested_run_that_was_killed_ends_the_one_that_sent_it(mind: MethodMind) -> None:
    """A limit of the cell is no error that a method could catch: it would try again."""
    await mind.learn(inner_="def inner_(self):\n    return 1\n")

    async def outer(call: Any, host: Any) -> Any:
        await host.send(None, "inner_", [], {}, Writes())
        return None, Writes()

    async def kill(call: Any, host: Any) -> Any:
        raise CellKilled("it ran too long", "time")

    async with errands(mind.uvm) as (_, given):
        given = with_cell(given, FakeCell(kill))
        with pytest.raises(CellKilled, match="too long"):
            await method_run.run_until_unchanged(given, FakeCell(outer), program())


async def test_messages_are_counted_here_too(mind: MethodMind) -> None:
    """Whatever a cell lets through: all methods of one make_invocation together send no more than that."""

    async def flood(call: Any, host: Any) -> Any:
        answers = []
        for _ in range(sent.MOST_SENDS + 1):
            answers.append(await host.send(None, "name", [], {}, Writes()))
            await asyncio.sleep(0)
        assert [each.raised is None for each in answers] == [True] * sent.MOST_SENDS + [False]
        return answers[-1].raised.message, Writes()

    async with errands(mind.uvm) as (_, given):
        ran = await method_run.run_until_unchanged(given, FakeCell(flood), program())
    assert "more than 2,000" in ran.value


async def test_a_slot_that_never_stands_still_is_an_error_that_says_so(mind: MethodMind) -> None:
    """Each time that it runs another part has changed what it read: it fails, and nothing of it is kept."""
    async with errands(mind.uvm) as (opened, given):
        persona = opened.context.mind.persona
        persona.total = 0

        async def overtaken(call: Any, host: Any) -> Any:
            persona.total += 1
            return None, Writes({"total": call.view["total"] + 100}, is_marked=True)

        cell = FakeCell(overtaken)
        with pytest.raises(MethodFailed, match="was changed by other parts of the mission each of the 12 times"):
            await method_run.run_until_unchanged(given, cell, program("total"))
        assert (cell.runs, persona.total) == (method_run.MOST_RUNS, method_run.MOST_RUNS)


async def test_two_nested_messages_at_once_lose_nothing(mind: MethodMind) -> None:
    """What was written before both is written once, and each sees what the other has done, or is made again."""
    await mind.learn(add_="def add_(self, amount):\n    self.total += amount\n    self._p_changed = True\n")

    async def both(call: Any, host: Any) -> Any:
        pending = Writes({"total": 10}, is_marked=True)
        sent = await asyncio.gather(*(host.send(None, "add_", [amount], {}, pending) for amount in (1, 2, 4)))
        return [each.raised for each in sent], Writes()

    async with errands(mind.uvm) as (opened, given):
        opened.context.mind.persona.total = 0
        ran = await method_run.run_until_unchanged(given, FakeCell(both), program("total"))
        assert ran.value == [None, None, None]
        assert opened.context.mind.persona.total == 17
