"""Intentional resampling has its own sample number: a question asked again on purpose is paid for, a retry is not."""

from __future__ import annotations

from itertools import count

from tests.inference.counting_bridge import CountedBridge, asked, desk, step

from batos.inference.session import Step


async def test_intentional_resampling_has_its_own_sample_number() -> None:
    """Each sample of one question is an entry and an answer of its own, and each is served from the journal as itself.

    A retry reads them all, pays for none of them, and pays for the sample that was not drawn before.
    """
    async with desk() as at:
        numbers = count()
        bridge = CountedBridge(lambda request: f"sample {next(numbers)}")
        first = at.session(bridge)
        drawn = [(await first.think(asked(), step(f"brick/vote#{number}"))).text for number in range(3)]
        assert drawn == ["sample 0", "sample 1", "sample 2"]
        assert (await first.think(asked(), step("brick/vote#1"))).text == "sample 1"  # no resampling: the same number
        records = at.records()
        assert [each.path for each in records] == ["brick/vote#0", "brick/vote#1", "brick/vote#2"]
        assert len({each.key for each in records}) == 3
        assert len({str(each.request) for each in records}) == 1  # the number alone tells them apart
        at.open()
        again = at.session(bridge)
        served = [(await again.think(asked(), step(f"brick/vote#{number}"))).text for number in (2, 0, 1, 3)]
        assert served == ["sample 2", "sample 0", "sample 1", "sample 3"]
        assert again.cost.as_dict()["from_journal"] == 3
        assert sum(bridge.begun.values()) == 4


async def test_what_is_asked_again_for_its_answer_has_a_number_too() -> None:
    """A decision that was unusable is asked again at a step below, which a retry finds."""
    async with desk() as at:
        numbers = count()
        bridge = CountedBridge(lambda request: f"sample {next(numbers)}")
        place = Step("brick/vote#0")
        session = at.session(bridge)
        for at_step in (place, place.again("again", "cut")):
            await session.think(asked(), at_step)
        at.open()
        retried = at.session(bridge)
        served = [(await retried.think(asked(), each)).text for each in (place, place.again("again", "cut"))]
        assert (served, next(numbers)) == (["sample 0", "sample 1"], 2)
