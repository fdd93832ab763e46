"""Why an earlier attempt failed stands in the prompts of calls that were not paid yet, and in no key of the others."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as some
from tests.inference.counting_bridge import CountedBridge, asked, desk, step

from batos.inference.ollama.bridge import ChatRequest
from batos.protocol.errors import ContextOverflow


@settings(max_examples=30)
@given(some.lists(some.tuples(some.sampled_from(["", "late", "cut"]), some.sets(some.integers(0, 4))), max_size=5))
async def test_whatever_failed_between_attempts_each_call_is_paid_once(attempts: list[tuple[str, set[int]]]) -> None:
    """A later attempt finds what any earlier one paid for, with or without a warning, whichever it was."""
    async with desk() as at:
        bridge, first, paid = CountedBridge(), dict[int, str](), Counter[int]()
        for warning, questions in attempts:
            at.open()
            session = at.session(bridge, warning=warning)
            for number in sorted(questions):
                answer = await session.think(asked(f"{number}"), step())
                assert answer.text == first.setdefault(number, answer.text)
                paid[number] += 1
            assert session.paid_count == len(first)
        assert sum(bridge.begun.values()) == len(paid)


async def test_the_warning_stands_last_and_is_in_the_record() -> None:
    """What calls have in common comes before it; the journal has what was really asked."""
    async with desk() as at:
        await at.session(CountedBridge(), warning="It failed.").think(asked("Why?"), step())
        (record,) = at.records()
        messages = record.request["messages"]
        assert messages[0] == asked("Why?").messages[0]
        assert messages[-1]["content"] == "Why?\n\nIt failed."


async def test_where_the_warning_does_not_fit_the_call_is_made_without_it() -> None:
    """A prompt that the warning made too long for the window is sent as it would have been."""

    def narrow(request: ChatRequest) -> str | ContextOverflow:
        return ContextOverflow(600, 512) if "failed" in request.messages[-1]["content"] else "yes"

    async with desk() as at:
        bridge = CountedBridge(narrow)
        answer = await at.session(bridge, warning="It failed.").think(asked("Why?"), step())
        assert answer.text == "yes"
        await at.session(bridge, warning="It failed again.").think(asked("Why?"), step())
        assert sum(bridge.given.values()) == 1
