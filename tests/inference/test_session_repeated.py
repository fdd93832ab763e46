"""Answers that repeated themselves: what stands is journaled, served again and told; what was wasted is counted."""

from __future__ import annotations

import pytest
from tests.inference.counting_bridge import CountedBridge, asked, desk, replied

from batos.inference.cost import cost_of
from batos.inference.journaled_requests import USUAL_RATIO, prompt_bytes
from batos.inference.ollama.chat import REPEATED
from batos.inference.session import Step
from batos.protocol.errors import Runaway


async def test_what_stands_is_journaled_and_served_again() -> None:
    """A replay gives the same text; the whole of what was paid for is kept beside it."""
    async with desk() as at:
        bridge = CountedBridge(lambda _: replied("Kept.", done_reason=REPEATED, prompt_tokens=0, wasted=3))
        session, heard, again = at.session(bridge), list[str](), list[str]()
        step = Step("a#0", heard.append, again.append)
        answer = await session.think(asked("Why?"), step)
        assert heard == ["partly", " and whole", "Kept."]
        assert again == ["the model repeated itself"]
        (record,) = at.records()
        assert (record.state, record.partial) == ("done", "partly and whole")
        assert answer.prompt_tokens == round(prompt_bytes(record.request) * USUAL_RATIO)
        assert (session.cost.wasted, session.cost.answer_tokens) == (3, 4)
        assert session.measured == {}
        replay = await at.session(bridge).think(asked("Why?"), Step("a#0", heard.append))
        assert replay == answer
        assert heard[-1] == "Kept."
        assert sum(bridge.begun.values()) == 1


async def test_its_prompt_is_estimated_by_those_before() -> None:
    """The tokens of a byte are the model's own where a prompt of it was counted."""
    async with desk() as at:
        session = at.session(
            CountedBridge(
                lambda request: (
                    "Fine." if request.messages[-1]["content"] == "1" else replied("So.", done_reason=REPEATED)
                )
            )
        )
        await session.think(asked("1"), Step("a#0"))
        answer = await session.think(asked("2"), Step("a#1"))
        assert answer.prompt_tokens == 10


async def test_a_runaway_counts_its_tokens_in_every_run() -> None:
    """As tokens, as wasted ones, and for the next run by the journal."""
    async with desk() as at:
        session = at.session(CountedBridge(lambda _: Runaway("blanks", 45)))
        with pytest.raises(Runaway):
            await session.think(asked("Why?"), Step("a#0"))
        assert (session.cost.answer_tokens, session.cost.wasted) == (45, 45)
        assert session.cost.prompt_tokens > 0
        told = cost_of(at.records())
        assert (told.prompt_tokens, told.answer_tokens) == (session.cost.prompt_tokens, 45)
