"""Guests: who came in by a key asks and reads, governs nothing, and answers by the name of its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.front.serving.test_auth import EVERYWHERE, key_of
from tests.front.wired import HASTY, wired

from batos import AsyncClient
from batos.errors import Refused
from batos.front.serving.guests import ANSWERS, OWNERS, bounded
from batos.front.wire.shapes import ARGS

GUEST, OWNER, HOME = "key laptop 0a1b", "token 0a1b", "key home 0a1b"


@pytest.mark.parametrize("verb", sorted(OWNERS))
def test_only_the_home_governs(verb: str) -> None:
    """A guest is refused and told where to do it; the token and the home's own key are the home."""
    args: dict[str, Any] = {"prune": True}
    with pytest.raises(Refused, match="laptop") as refused:
        bounded(verb, args, GUEST)
    assert "where the home is" in refused.value.remedy
    assert bounded(verb, args, OWNER) == bounded(verb, args, HOME) == args


@pytest.mark.parametrize("verb", sorted(ANSWERS))
def test_a_guest_answers_by_its_key(verb: str) -> None:
    """Whoever it says that it is; the home's own say who they are."""
    assert bounded(verb, {"user": "root"}, GUEST) == {"user": "key laptop"}
    assert bounded(verb, {"user": "root"}, OWNER) == {"user": "root"}


def test_all_else_is_everybodys() -> None:
    """Also the plan of a genesis, which changes nothing."""
    assert bounded("genesis", {"plan": True}, GUEST) == {"plan": True}
    for verb in ARGS:
        if verb not in OWNERS | ANSWERS:
            assert bounded(verb, {"user": "ann"}, GUEST) == {"user": "ann"}


async def test_a_key_governs_nothing_over_the_wire(tmp_path: Path) -> None:
    """The server asks the gate who it is that asks."""
    async with wired(tmp_path, bind=EVERYWHERE, events=EVERYWHERE) as wire:
        file = tmp_path / "laptop.json"
        file.write_text(key_of(wire, "laptop").text(), encoding="utf-8")
        async with AsyncClient(tmp_path, patience=HASTY, server=str(file)) as client:
            with pytest.raises(Refused, match="guest"):
                await client.call("genesis", {"prune": True})
            assert (await client.ask("why?"))["status"] == "done"
