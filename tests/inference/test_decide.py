"""Decisions: how each mode asks, and what is done about a reply that is none."""

from __future__ import annotations

import json
from typing import Annotated, Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from pydantic import BaseModel, Field
from tests.inference.counting_bridge import CountedBridge, Desk, asked, desk, replied

from batos.inference.decide import (
    AGAIN,
    REASONING_TOKENS,
    SPARE,
    Deciding,
    decide,
    larger_limit,
    sample_differently,
    whole,
)
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.inference.schema import Decision, Mode
from batos.inference.session import Step
from batos.minds.prompt import Continuation
from batos.protocol.errors import AnswerCut, AnswerUnreadable, BatosError, ContextOverflow, DecisionInvalid, Runaway


class Verdict(BaseModel):
    """What is decided here."""

    word: Annotated[str, Field(max_length=20)]
    sure: bool


DECISION = Decision(Verdict)


def no_word(value: Verdict) -> str:
    """Return the fault of a verdict that is valid and of no use."""
    return "that is no word" if value.word == "hmm" else ""


def reply(mode: Mode, word: str = "yes") -> str:
    """A valid reply in a mode."""
    decision = DECISION.in_mode(mode)
    value = dict.fromkeys(decision.format["properties"], "")
    return json.dumps({**value, decision.key("word"): word, decision.key("sure"): True})


class Deciders:
    """A bridge that says these texts in turn, and what it was asked."""

    def __init__(self, at: Desk, *texts: str | Answer | BatosError) -> None:
        self.requests: list[ChatRequest] = []
        self.retracted = 0
        texts_left = list(texts)

        def say(request: ChatRequest) -> str | Answer | BatosError:
            self.requests.append(request)
            return texts_left.pop(0)

        self.session = at.session(CountedBridge(say))

    def retract(self, why: str) -> None:
        """What was heard no longer stands, for a reason."""
        assert why
        self.retracted += 1

    async def decide(self, mode: Mode = "direct") -> tuple[Verdict, str]:
        """Ask."""
        decision = DECISION.in_mode(mode)
        request = asked(messages=(), schema=decision.format)
        step = Step("robin/weave#0", None, self.retract)
        deciding = Deciding(self.session, request, decision, mode, step, Continuation(), no_word)
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


@pytest.mark.parametrize("useless", ["perhaps", "", reply("direct", "hmm"), Runaway("blanks", 4)])
async def test_a_reply_of_no_use_is_asked_for_once_more_without_showing_it(useless: str | BatosError) -> None:
    """The same messages at a path of their own, with another seed and temperature; the first tokens are waste."""
    async with desk() as at:
        deciders = Deciders(at, useless, reply("direct"))
        value, _ = await deciders.decide()
        assert value.word == "yes"
        first, second = deciders.requests
        assert second.messages == first.messages
        assert second.options["seed"] != first.options.get("seed")
        assert second.options["temperature"] != first.options.get("temperature")
        assert deciders.paths[-1] == f"robin/weave#0/{AGAIN}"
        assert deciders.retracted == 1
        assert deciders.session.cost.calls == 2
        assert deciders.session.cost.wasted > 0


async def test_after_the_second_try_a_decision_is_invalid() -> None:
    """Both replies are paid for and in the journal, and the error says what was wrong with the last."""
    async with desk() as at:
        deciders = Deciders(at, "perhaps", reply("direct", "hmm"))
        with pytest.raises(DecisionInvalid, match=r"of no use: that is no word\."):
            await deciders.decide()
        assert deciders.paths == ["robin/weave#0", f"robin/weave#0/{AGAIN}"]
        assert deciders.session.cost.calls == 2


@given(
    st.fixed_dictionaries(
        {"num_ctx": st.just(512)}, optional={"seed": st.integers(-1, 2**31), "temperature": st.floats(0, 2)}
    )
)
def test_a_second_try_is_sampled_differently_and_always_in_the_same_way(options: dict[str, Any]) -> None:
    """Seed and temperature differ from those of the first try, and nothing else does."""
    other = sample_differently(options)
    assert other == sample_differently(options)
    assert other["seed"] != options.get("seed")
    assert other["temperature"] != options.get("temperature")
    assert {**other, **options} == {"seed": other["seed"], "temperature": other["temperature"], **options}


async def test_a_decision_of_the_second_try_is_served_whole_and_wastes_nothing_again() -> None:
    """The next attempt at the mission takes all of it from the journal: no call, and no token wasted twice."""
    async with desk() as at:
        await Deciders(at, "perhaps", reply("direct")).decide()
        again = Deciders(at)
        value, _ = await again.decide()
        assert value.word == "yes"
        assert (again.session.cost.calls, again.session.cost.from_journal) == (0, 2)
        assert (again.session.cost.wasted, again.session.cost.answer_tokens) == (0, 0)


def cut(limit: int, text: str = '{"word": "y', prompt: int = 10) -> Answer:
    """A reply that reached its limit."""
    return replied(text, done_reason="length", answer_tokens=limit, prompt_tokens=prompt)


async def test_a_cut_reply_is_asked_for_once_more_with_more_room() -> None:
    """The same messages, without the cut reply, and twice the room; a second cut one is told with its counts."""
    async with desk() as at:
        deciders = Deciders(at, cut(64, "x" * 300), reply("direct"))
        value, _ = await deciders.decide()
        assert value.word == "yes"
        assert [each.options["num_predict"] for each in deciders.requests] == [64, 128]
        assert all(each.messages == deciders.requests[0].messages for each in deciders.requests)
        assert deciders.paths == ["robin/weave#0", f"robin/weave#0/{AGAIN}"]
        assert deciders.retracted == 1
        assert deciders.session.cost.wasted == 64
    async with desk() as at:
        with pytest.raises(AnswerCut) as raised:
            await Deciders(at, cut(64, "x" * 300), cut(128, "x" * 600)).decide()
        assert raised.value.wanted == 256


async def test_free_text_that_is_cut_is_given_more_room_until_the_window_is_full() -> None:
    """The same messages, without the cut answer, twice the room and then all of it; who heard it is told each time."""
    async with desk() as at:
        deciders = Deciders(at, cut(64, "x" * 300), cut(128, "x" * 600), cut(256, "x" * 1200), "So it is.")
        request = asked(messages=({"role": "user", "content": "Is it so?"},))
        answer = await whole(deciders.session, request, Step("robin/weave#0", None, deciders.retract))
        assert answer.text == "So it is."
        assert [each.options["num_predict"] for each in deciders.requests] == [64, 128, 256, 512 - 10 - SPARE]
        assert all(each.messages == deciders.requests[0].messages for each in deciders.requests)
        assert deciders.paths == [f"robin/weave#0{tail}" for tail in ("", "/more1", "/more2", "/more3")]
        assert deciders.retracted == 3
        assert deciders.session.cost.wasted == 64 + 128 + 256


async def test_a_dense_answer_is_given_what_its_letters_cost_at_once() -> None:
    """A token a letter where two and a half letters a token were thought of: one more try, not several."""
    assert larger_limit(100, cut(100, "x" * 100)) == 300
    assert larger_limit(100, cut(100, "x" * 400)) == 200
    assert larger_limit(100, cut(100, "")) > 1_000


async def test_an_answer_that_fills_the_window_is_cut_with_its_counts() -> None:
    """No second try is made, since there is no room for a longer one; the error names both counts."""
    async with desk() as at:
        deciders = Deciders(at, cut(64, prompt=440))
        with pytest.raises(AnswerCut, match=r"cut after 64 tokens: the prompt has 440 of the window's 512") as raised:
            await deciders.decide()
        assert (raised.value.prompt_tokens, raised.value.window) == (440, 512)
        assert raised.value.wanted > 64
        assert len(deciders.requests) == 1


async def test_an_answer_that_the_daemon_cannot_read_is_asked_for_once_more() -> None:
    """Mostly it was cut within a letter: twice the room, once; then it is the daemon's word that is told."""
    async with desk() as at:
        deciders = Deciders(at, AnswerUnreadable("peg-native"), reply("direct"))
        value, _ = await deciders.decide()
        assert value.word == "yes"
        assert [each.options["num_predict"] for each in deciders.requests] == [64, 128]
        assert deciders.retracted == 1
    async with desk() as at:
        with pytest.raises(AnswerUnreadable):
            await Deciders(at, AnswerUnreadable("peg-native"), AnswerUnreadable("again")).decide()


async def test_a_prompt_that_does_not_fit_is_told_as_that() -> None:
    """Nothing was answered yet: the daemon's counts are the reason."""
    async with desk() as at:
        with pytest.raises(ContextOverflow):
            await Deciders(at, ContextOverflow(600, 512)).decide()


async def test_what_was_asked_again_with_more_room_is_served_from_the_journal() -> None:
    """A later attempt goes the same way without a call."""
    async with desk() as at:
        await Deciders(at, cut(64), reply("direct")).decide()
        again = Deciders(at)
        value, _ = await again.decide()
        assert (value.word, again.session.cost.calls, again.session.cost.from_journal) == ("yes", 0, 2)
