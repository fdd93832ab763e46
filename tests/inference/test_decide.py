"""Decisions: how each mode asks, and what is done about a reply that is none."""

from __future__ import annotations

import json
from typing import Annotated

import pytest
from pydantic import BaseModel, Field
from tests.inference.counted import CountedBridge, Desk, asked, desk

from batos.cognition.prompt import Continuation
from batos.errors import DecisionInvalid
from batos.inference.bridge import ChatRequest
from batos.inference.decide import REASONING_TOKENS, Deciding, decide
from batos.inference.schema import Decision, Mode
from batos.inference.session import Step


class Verdict(BaseModel):
    """What is decided here."""

    word: Annotated[str, Field(max_length=20)]
    sure: bool


DECISION = Decision(Verdict)


def reply(mode: Mode, word: str = "yes") -> str:
    """A valid reply in a mode."""
    decision = DECISION.in_mode(mode)
    value = dict.fromkeys(decision.format["properties"], "")
    return json.dumps({**value, decision.key("word"): word, decision.key("sure"): True})


class Deciders:
    """A bridge that says these texts in turn, and what it was asked."""

    def __init__(self, at: Desk, *texts: str) -> None:
        self.requests: list[ChatRequest] = []
        texts_left = list(texts)

        def say(request: ChatRequest) -> str:
            self.requests.append(request)
            return texts_left.pop(0)

        self.session = at.session(CountedBridge(say))

    async def decide(self, mode: Mode = "direct") -> tuple[Verdict, str]:
        """Ask."""
        decision = DECISION.in_mode(mode)
        request = asked(messages=(), schema=decision.format)
        deciding = Deciding(self.session, request, decision, mode, Step("robin/weave#0"), Continuation())
        return await decide(deciding, ({"role": "user", "content": "Is it so?"},))

    @property
    def paths(self) -> list[str]:
        """The paths of what was paid for, in order."""
        return [record.path for record in self.session.journal.read(["m-1"])]


@pytest.mark.parametrize("mode", ["direct", "reason_field"])
async def test_a_decision_in_one_call(mode: Mode) -> None:
    """Both modes ask once, within the mode's own schema, and answer the value and the text as the model gave it."""
    async with desk() as at:
        deciders = Deciders(at, reply(mode))
        value, text = await deciders.decide(mode)
        assert (value.word, value.sure) == ("yes", True)
        assert text == reply(mode)
        (request,) = deciders.requests
        assert request.schema == DECISION.in_mode(mode).format
        assert deciders.paths == ["robin/weave#0"]
        assert deciders.session.cost.wasted == 0


async def test_two_phases_reason_freely_first() -> None:
    """The first call has no schema and a bound of its own; the second sees the reasoning and has the schema."""
    async with desk() as at:
        deciders = Deciders(at, "It seems so to me.", reply("two_phase"))
        value, _ = await deciders.decide("two_phase")
        assert value.word == "yes"
        first, second = deciders.requests
        assert (first.schema, first.options["num_predict"]) == (None, REASONING_TOKENS)
        assert second.schema is not None
        assert second.messages[: len(first.messages)] == first.messages
        assert second.messages[len(first.messages)] == {"role": "assistant", "content": "It seems so to me."}
        assert deciders.paths == ["robin/weave#0/reason", "robin/weave#0"]


@pytest.mark.parametrize("faulty", [1, 2])
async def test_a_reply_that_is_no_decision_is_repaired(faulty: int) -> None:
    """The reply and what was wrong with it are appended, at a path of its own; the tokens of the faulty are wasted."""
    async with desk() as at:
        deciders = Deciders(at, *["perhaps"] * faulty, reply("direct"))
        value, _ = await deciders.decide()
        assert value.word == "yes"
        assert deciders.paths == [f"robin/weave#0{tail}" for tail in ["", "/repair1", "/repair2"][: faulty + 1]]
        for before, after in zip(deciders.requests, deciders.requests[1:], strict=False):
            assert after.messages[: len(before.messages)] == before.messages
            appended = after.messages[len(before.messages) :]
            assert [message["role"] for message in appended] == ["assistant", "user"]
            assert appended[0]["content"] == "perhaps"
            assert appended[1]["content"].endswith("Answer again.")
        assert deciders.session.cost.wasted == 4 * faulty


async def test_after_two_repairs_a_decision_is_invalid() -> None:
    """Three replies are paid for, all are in the journal, and the error says what was wrong with the last."""
    async with desk() as at:
        deciders = Deciders(at, "perhaps", "", '{"a": 1}')
        with pytest.raises(DecisionInvalid):
            await deciders.decide()
        assert deciders.paths == ["robin/weave#0", "robin/weave#0/repair1", "robin/weave#0/repair2"]
        assert deciders.session.cost.calls == 3
        assert deciders.session.cost.wasted == 12
        # An empty reply is shown as something: a message without content is none.
        assert deciders.requests[2].messages[-2]["content"] == "{}"


async def test_a_repaired_decision_is_served_whole_and_wastes_nothing_again() -> None:
    """The next attempt at the mission takes all of it from the journal: no call, and no token wasted twice."""
    async with desk() as at:
        await Deciders(at, "perhaps", reply("direct")).decide()
        again = Deciders(at)
        value, _ = await again.decide()
        assert value.word == "yes"
        assert (again.session.cost.calls, again.session.cost.from_journal) == (0, 2)
        assert (again.session.cost.wasted, again.session.cost.answer_tokens) == (0, 0)
