"""Giving memory back: wherever it runs it does no harm."""

from __future__ import annotations

from batos.memory.freed_memory import give_back


def test_memory_is_given_back_where_that_can_be_done() -> None:
    """Twice in a row too; who asks is told whether there was any."""
    block = [bytes(1000) for _ in range(1000)]
    del block
    assert {give_back(), give_back()} <= {True, False}
