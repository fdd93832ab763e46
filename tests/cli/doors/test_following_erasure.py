"""An erasure whose server is lost: that is said at once, and the error tells what became of it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import pytest

from batos.cli.doors.door import Door
from batos.cli.doors.following import erase
from batos.client.pending import OnAcknowledged, OnEvent
from batos.protocol.errors import BatosError, NoServer, NotFound
from batos.terminal.console import Console


class Losing:
    """Answers as a server that is lost, if `events` say so, and raises `error` in the end."""

    def __init__(self, events: list[str], error: BatosError | None) -> None:
        self.events, self.error = events, error

    async def answer(
        self, verb: str, args: Mapping[str, Any], on_event: OnEvent, on_acknowledged: OnAcknowledged
    ) -> dict[str, Any]:
        """What it was made for."""
        for each in self.events:
            on_event(each, {})
        if self.error is not None:
            raise self.error
        return {"verb": verb}


async def erased(events: list[str], error: BatosError | None = None) -> tuple[str, str]:
    """What an erasure tells, and the remedy of its error."""
    said = io.StringIO()
    console = Console(said, said, False, has_colour=False)
    try:
        await erase(nullcontext(Door(Losing(events, error).answer)), {"target": "walrus"}, console)
    except BatosError as raised:
        assert raised is error
        return said.getvalue(), raised.remedy
    return said.getvalue(), ""


async def test_a_server_that_does_not_come_back_leaves_the_rest_to_the_next() -> None:
    """Who waits is told so as soon as it is lost."""
    said, remedy = await erased(["connection.lost"], NoServer("none runs"))
    assert said.startswith("The server is gone; the next one finishes what was begun")
    assert "finishes what was begun of the erasure" in remedy


async def test_words_that_are_gone_when_the_server_is_back_may_have_been_erased() -> None:
    """The command asks again, and nothing has the words any more."""
    said, remedy = await erased(["connection.lost", "connection.restored"], NotFound("nothing has 'walrus'"))
    assert (said.splitlines()[-1], "the next one finished that" in remedy) == ("The server is back.", True)


@pytest.mark.parametrize("error", [NoServer("none runs"), NotFound("nothing has it"), None])
async def test_without_a_loss_nothing_is_added(error: BatosError | None) -> None:
    """Neither to the output nor to an error."""
    assert await erased([], error) == ("", error.remedy if error else "")
