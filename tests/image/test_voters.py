"""Voters: what may not be in a thought is vetoed at its commit, and leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.image.living import answer, brief, living, thought_in

from batos.errors import Refused
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject


def _given(root: Any) -> None:
    method = Method("shout_", "def shout_(self):\n    return 1\n")
    root["traits_obj"] = UvmObject({"shout_": method, "count": 0})


def _in_its_thought(thought: UvmObject, root: Any) -> None:
    thought.learnt = Method("tick_", "def tick_(self):\n    return 1\n")


def _an_intent(thought: UvmObject, root: Any) -> None:
    thought.wish = Intent("Count.", may_learn=True)


def _in_an_object_of_its_own(thought: UvmObject, root: Any) -> None:
    tool = UvmObject()
    thought._p_jar.add(tool)
    tool.tick_ = Method("tick_", "def tick_(self):\n    return 1\n")
    thought.tool = tool


def _in_what_is_there(thought: UvmObject, root: Any) -> None:
    root["traits_obj"].tick_ = Method("tick_", "def tick_(self):\n    return 1\n")


def _of_one_that_is_there(thought: UvmObject, root: Any) -> None:
    root["traits_obj"].shout_.source = "def shout_(self):\n    return 2\n"


@pytest.mark.parametrize(
    "smuggle", [_in_its_thought, _an_intent, _in_an_object_of_its_own, _in_what_is_there, _of_one_that_is_there]
)
async def test_no_thought_makes_behaviour(smuggle: Callable[[UvmObject, Any], None]) -> None:
    """A method or intent that a mission would write, wherever it puts it, is vetoed: they come in by install alone."""
    async with living(None) as image:
        await image.writer.apply(_given)
        mission = await image.accept(brief())
        await image.move(mission, "running")
        with image.transaction(mission) as transaction:
            thought = answer(thought_in(image, transaction, mission))
            smuggle(thought, transaction.root)
            with pytest.raises(Refused, match="by itself"):
                await transaction.commit(thought)
        with image.snapshot() as root:
            assert root["traits_obj"].shout_.source.endswith("return 1\n")
            assert "tick_" not in vars(root["traits_obj"])


async def test_an_object_with_behaviour_may_be_written() -> None:
    """What a thought writes into an object that holds methods leaves them as they are, and is no offence."""
    async with living(None) as image:
        await image.writer.apply(_given)
        mission = await image.accept(brief())
        await image.move(mission, "running")
        with image.transaction(mission) as transaction:
            transaction.root["traits_obj"].count = 1
            await transaction.commit(answer(thought_in(image, transaction, mission)))
        with image.snapshot() as root:
            assert root["traits_obj"].count == 1
