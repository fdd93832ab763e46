"""What is said to a running mission: the stronger word stands, and what comes of it is what was said."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.image.records import StatusWord
from batos.minds.stopping import Stopped, StopRequest
from batos.protocol.errors import BatosError, OllamaError, OllamaUnreachable

#: From the weakest to the strongest.
WORDS: tuple[StatusWord, ...] = ("paused", "queued", "failed", "cancelled")


@given(said=st.lists(st.sampled_from(WORDS), min_size=1))
async def test_the_strongest_word_stands(said: list[StatusWord]) -> None:
    """In whatever order a mission is told to pause, go back, time out and be cancelled, the strongest is what it is."""
    stop_request = StopRequest()
    stop_request.check()
    for word in said:
        stop_request.request_stop(word, BatosError(word), force=word != "paused")
    strongest = max(said, key=WORDS.index)
    with pytest.raises(Stopped):
        stop_request.check()
    for error in (Stopped(strongest), asyncio.CancelledError()):
        assert (await stop_request.outcome(error))[0] == strongest


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (asyncio.CancelledError(), "cancelled"),
        (KeyError("x"), "failed"),
        (BatosError("x"), "failed"),
        (Stopped(), "paused"),
    ],
)
async def test_without_a_word_the_error_says_it(error: BaseException, word: str) -> None:
    """Nobody said anything: a cancellation cancels, an error fails, one that was held and released is paused."""
    found, reason = await StopRequest().outcome(error)
    assert found == word
    assert reason.message


async def test_a_gentle_word_hides_no_failure() -> None:
    """A mission that was to pause and failed has failed; one that was broken off stands as it was told."""
    stop_request = StopRequest()
    stop_request.request_stop("paused", BatosError("paused"), force=False)
    assert (await stop_request.outcome(BatosError("no")))[0] == "failed"
    stop_request.request_stop("failed", BatosError("late"), force=True)
    assert (await stop_request.outcome(KeyError("on the way out")))[1].message == "late"


@pytest.mark.parametrize("patient", [True, False])
async def test_patience_is_asked_about_ollamas_errors_alone(patient: bool) -> None:
    """An error of the daemon's lets a patient mission wait; any other fails it without a question."""
    asked: list[OllamaError] = []

    async def ask(error: OllamaError) -> bool:
        asked.append(error)
        return patient

    stop_request, away = StopRequest(ask), OllamaUnreachable("nothing listens")
    assert (await stop_request.outcome(away))[0] == ("waiting" if patient else "failed")
    assert (await stop_request.outcome(BatosError("no")))[0] == "failed"
    assert asked == [away]
