"""The bridge against a person's own daemon, with a model that it has."""

from __future__ import annotations

import os
from typing import Annotated

import pytest
from pydantic import BaseModel, Field
from tests.living import found_model

from batos.inference.ollama.bridge import Bridge, ChatRequest
from batos.inference.schema import Decision
from batos.protocol.errors import ContextOverflow, ModelMissing, UsageError

pytestmark = [pytest.mark.live, pytest.mark.blocks_loop(reason="a person's machine may be busy with the model")]


class Choice(BaseModel):
    """A small decision whose declared order is not alphabetical."""

    why: Annotated[str, Field(max_length=200)]
    answer: Annotated[str, Field(max_length=40)]
    certain: bool


DECISION: Decision[Choice] = Decision(Choice)


def _asking(model: str, text: str, decision: Decision[Choice] | None = None) -> ChatRequest:
    options = {"num_ctx": 1024, "temperature": 0, "seed": 1, "num_predict": decision.num_predict if decision else 40}
    schema = decision.format if decision else None
    return ChatRequest(model, ({"role": "user", "content": text},), options, schema=schema)


@pytest.mark.timeout(600)  # any pace: more than the suite has, for a person's daemon
async def test_a_real_daemon_answers() -> None:
    """It lists and shows the model, loads it, answers whole and streamed, and unloads it."""
    async with Bridge(os.environ["BATOS_LIVE_OLLAMA"]) as bridge:
        model = await found_model(bridge)
        assert await bridge.version()
        assert model.partition(":")[0] in {row.name.partition(":")[0] for row in await bridge.list()}
        assert (await bridge.show(model)).blob
        await bridge.load(model, {"num_ctx": 1024})
        pieces: list[str] = []
        streamed = await bridge.think(_asking(model, "Name a colour."), pieces.append)
        whole = await bridge.think(_asking(model, "Name a colour."), stream=False)
        assert streamed.text == "".join(pieces)
        assert streamed.prompt_tokens == whole.prompt_tokens > 0
        assert await bridge.unload(model)


@pytest.mark.timeout(600)  # any pace: more than the suite has, for a person's daemon
async def test_a_real_daemon_enforces_a_decision() -> None:
    """The keys come in declared order, within their bounds and within num_predict."""
    async with Bridge(os.environ["BATOS_LIVE_OLLAMA"]) as bridge:
        model = await found_model(bridge)
        answer = await bridge.think(_asking(model, f"Is water wet?\n{DECISION.guide}", DECISION))
    assert answer.done_reason == "stop"
    assert DECISION.parse(answer.text).why is not None
    assert answer.text.index("a_why") < answer.text.index("b_answer") < answer.text.index("c_certain")


@pytest.mark.timeout(600)  # any pace: more than the suite has, for a person's daemon
async def test_a_real_daemon_refuses_what_does_not_fit() -> None:
    """An overlong prompt is ContextOverflow with counts, an unknown model ModelMissing."""
    async with Bridge(os.environ["BATOS_LIVE_OLLAMA"]) as bridge:
        model = await found_model(bridge)
        with pytest.raises(ContextOverflow) as overflow:
            await bridge.think(_asking(model, "water " * 4000))
        assert (overflow.value.prompt_tokens or 0) > (overflow.value.window or 0) >= 1024
        with pytest.raises(ModelMissing):
            await bridge.think(_asking("no-such-model-here", "x"))
        with pytest.raises(UsageError):
            await bridge.think(_asking("x:cloud", "x"))
