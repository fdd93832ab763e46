"""Free text: bounded in letters, and cut at a whole sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.inference.decide import FreeText, SpokenText
from batos.minds.calls.decisions import whole_sentences
from batos.protocol.errors import DecisionInvalid

SHAPE = FreeText(20, whole_sentences)


def test_a_text_is_taken_as_it_is() -> None:
    """Without the blanks around it."""
    assert SHAPE.parse(" It burns.\n") == SpokenText("It burns.")
    assert SHAPE.format is None
    assert SHAPE.in_mode("reason_field") is SHAPE


def test_no_text_is_no_reply() -> None:
    """Blanks alone are asked for once more, as an invalid decision is."""
    with pytest.raises(DecisionInvalid, match="empty"):
        SHAPE.parse(" \n")


def test_a_long_text_keeps_its_whole_sentences() -> None:
    """Where there is none it is cut at its bound, and known as cut either way."""
    assert SHAPE.parse("It burns. It is wound every hour.") == SpokenText("It burns.", was_cut=True)
    assert SHAPE.parse("x" * 30) == SpokenText("x" * 20, was_cut=True)


def test_a_cut_reply_is_asked_for_again_if_more_of_it_can_be_had() -> None:
    """A reply below its bound had dense letters; the last try takes what is whole."""
    assert SHAPE.salvage("It burns. It", last=False) is None
    assert SHAPE.salvage("It burns. It", last=True) == SpokenText("It burns.", was_cut=True)
    assert SHAPE.salvage("It burns. It is wound every", last=False) == SpokenText("It burns.", was_cut=True)
    assert SHAPE.salvage("It is wound", last=True) is None


@given(st.text())
def test_no_text_is_longer_than_its_bound(text: str) -> None:
    """Whatever was said."""
    if text.strip():
        assert len(SHAPE.parse(text).text) <= 20
