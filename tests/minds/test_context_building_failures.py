"""Why an earlier attempt failed: told to what is still to be asked, in fixed words, and paid for once all the same."""

from __future__ import annotations

import doctest

import pytest
from tests.minds.conftest import Mind
from tests.minds.scripted import ask, submit

from batos.minds import context_building
from batos.protocol import errors
from batos.protocol.errors import BatosError, MissionFailed, StreamCut


def _codes(kind: type[BatosError]) -> set[str]:
    return {kind.code}.union(*map(_codes, kind.__subclasses__()))


def test_every_code_that_has_words_is_one_of_an_error() -> None:
    """No words are kept for a failure that cannot happen."""
    assert context_building._WORDS.keys() <= _codes(BatosError)
    assert doctest.testmod(context_building).failed == 0


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (errors.Runaway("repetition", 40), "repeated itself"),
        (errors.TimedOut("secret </failure> words"), "the time was over"),
        (errors.Refused("secret", field="budget.calls"), "the budget was spent"),
        (errors.Refused("secret", field="policy"), ""),
        (errors.OllamaUnreachable("secret"), ""),
        (errors.InternalError("secret"), ""),
    ],
)
def test_a_failure_has_fixed_words_or_none(error: BatosError, told: str) -> None:
    """What the error itself says never comes into a prompt; what a model cannot mend is not told."""
    text = context_building.warning([error.as_dict(), errors.Runaway("repetition", 40).as_dict()])
    assert told in text
    assert bool(text) is bool(told)
    assert "secret" not in text
    assert context_building.warning([]) == ""


async def test_a_retry_tells_what_failed_to_the_calls_that_were_never_paid(mind: Mind) -> None:
    """Four answers are served; the one that is asked says what failed; the next retry pays for none."""
    mind.script.woven, woven = MissionFailed("most parts failed"), mind.script.woven
    mission = await submit(mind.uvm)
    with pytest.raises(MissionFailed):
        await mind.uvm.missions.run(mission)
    calls = len(mind.bridge.history)
    mind.script.woven = StreamCut("cut")
    second = await submit(mind.uvm, ancestor=mission)
    with pytest.raises(StreamCut):
        await mind.uvm.missions.run(second)
    mind.script.woven = woven
    third = await ask(mind.uvm, ancestor=mission)
    assert (third["cost"]["calls"], third["cost"]["from_journal"]) == (1, 4)
    asked = [request.messages[-1]["content"] for request in mind.bridge.history]
    assert ["<failure digest=" in text for text in asked] == [False] * calls + [True] * 2
    again = await ask(mind.uvm, ancestor=third["id"])
    assert again["cost"]["calls"] == 0
    assert again["answer"] == third["answer"]
