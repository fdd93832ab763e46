"""Questions to a person in one process: asked once, answered once, lapsing in their time, waking who waited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.approvals.coder_bridge import Days
from tests.image.open_image import open_image
from tests.image.questions import made
from tests.waiting import until

from batos.approvals import documents
from batos.approvals.desk import Approvals, Consequences
from batos.events import Events
from batos.image.ids import utc_now
from batos.image.image import LivingImage
from batos.image.roots import named_objects
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import ApprovalNeeded, BatosError, GenerationFailed, NotFound, Refused
from batos.records import methods

HOLDER, SELECTOR = "traits_obj", "say_"
SOURCE = "def say_(self):\n    return 'hello'\n"
WISH: dict[str, Any] = {"text": "say hello", "signature": "say_(self)"}
DIGEST = methods.digest_of(Intent(**WISH))


class Desk:
    """Approvals over an image, with what they told and whom they woke."""

    def __init__(self, image: LivingImage, clock: Days, group: asyncio.TaskGroup) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.woken: list[str] = []
        self.begun: list[str] = []
        self.image, self.clock = image, clock
        self.events = Events(lambda event, keys: self.heard.append((event, dict(keys))), log=False)
        self.approvals = Approvals(image, self.events, clock, 7.0, group, Consequences(self._wake))

    async def _wake(self, missions: Sequence[str]) -> list[str]:
        self.woken += missions
        return list(missions)

    async def ask(self, source: str = SOURCE, mission: str | None = None) -> str:
        candidate = made(HOLDER, SELECTOR, Intent(**WISH), source)
        return await self.approvals.ask(candidate, mission)

    def slot(self) -> Any:
        with self.image.snapshot() as root:
            value = own_slots(named_objects(root)[HOLDER])[SELECTOR]
            return value.source if isinstance(value, Method) else None


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """Approvals over an image in memory whose `traits_obj` declares `say_`."""
    clock = Days()
    async with open_image(None, clock=clock) as image, asyncio.TaskGroup() as group:
        await image.writer.apply(lambda root: root.__setitem__(HOLDER, UvmObject({"say_": Intent(**WISH)})))
        found = Desk(image, clock, group)
        yield found
        found.approvals.close()


async def test_asking_and_answering_are_told(desk: Desk) -> None:
    """Each once, with who said so; the method is there, and whoever waited is woken."""
    name = await desk.ask(mission="m-1")
    assert await desk.ask(mission="m-2") == name
    assert desk.slot() is None
    answered = await desk.approvals.approve([name], "ada")
    assert desk.slot() == SOURCE
    assert desk.heard == [
        (
            "approval.asked",
            {
                "approval": name,
                "receiver": HOLDER,
                "selector": SELECTOR,
                "digest": made(HOLDER, SELECTOR, Intent(**WISH), SOURCE).digest,
            },
        ),
        ("approval.answered", {"approval": name, "answer": "approved", "by": "ada"}),
    ]
    assert desk.woken == ["m-1", "m-2"]
    assert answered.woken == ("m-1", "m-2")
    assert desk.begun == []


async def test_who_is_there_to_work_begins_what_is_woken(desk: Desk) -> None:
    """One that was brought to a stand meanwhile keeps the others from nothing."""

    def begin(mission: str) -> None:
        if mission == "m-1":
            raise Refused("it is paused", remedy="Resume it.")
        desk.begun.append(mission)

    desk.approvals.keep(begin)
    name = await desk.ask(mission="m-1")
    await desk.ask(mission="m-2")
    await desk.approvals.approve([name], "ada")
    assert desk.begun == ["m-2"]


async def test_what_nobody_asked_cannot_be_answered(desk: Desk) -> None:
    """One unknown id keeps all that were named with it from being approved."""
    name = await desk.ask()
    with pytest.raises(NotFound, match="a-none"):
        await desk.approvals.approve([name, "a-none"], "ada")
    with pytest.raises(NotFound, match="a-none"):
        await desk.approvals.reject("a-none", "ada", "no")
    assert desk.slot() is None


async def test_a_rejection_is_the_answer_to_who_asks_the_same(desk: Desk) -> None:
    """With the reason and who gave it; nothing is generated in its place until it lapses, then it is asked anew."""
    name = await desk.ask(mission="m-1")
    await desk.approvals.reject(name, "ada", "too loud")
    for mission in ("m-1", None):
        with pytest.raises(GenerationFailed, match="rejected by ada: too loud"):
            await desk.ask(mission=mission)
        with pytest.raises(GenerationFailed, match="too loud"):
            await desk.approvals.find_asked(HOLDER, SELECTOR, DIGEST, mission)
    desk.clock.pass_(8)
    assert await desk.approvals.find_asked(HOLDER, SELECTOR, DIGEST, None) is None
    with pytest.raises(GenerationFailed, match="too loud"):  # it waited for that answer, however late it looks
        await desk.ask(mission="m-1")
    again = await desk.ask(mission="m-2")
    assert again != name
    assert await desk.approvals.find_asked(HOLDER, SELECTOR, DIGEST, "m-3") == again


async def test_what_waits_is_known_before_another_is_made(desk: Desk) -> None:
    """By its slot and intent, whatever its source."""
    assert await desk.approvals.find_asked(HOLDER, SELECTOR, DIGEST, "m-1") is None
    name = await desk.ask()
    assert await desk.approvals.find_asked(HOLDER, SELECTOR, DIGEST, "m-1") == name
    assert (await desk.approvals.approve([name], "ada")).woken == ("m-1",)


async def test_a_question_lapses_by_itself() -> None:
    """Whoever waited is woken, and told why there is no method; everybody else may ask anew."""
    async with open_image(None) as image, asyncio.TaskGroup() as group:
        await image.writer.apply(lambda root: root.__setitem__(HOLDER, UvmObject({"say_": Intent(**WISH)})))
        desk, woken = Desk(image, Days(), group), list[list[str]]()

        async def wake(missions: Sequence[str]) -> list[str]:
            woken.append(list(missions))
            return []

        hasty = Approvals(image, desk.events, utc_now, 0.02 / 86_400, group, Consequences(wake))
        candidate = made(HOLDER, SELECTOR, Intent(**WISH), SOURCE)
        name = await hasty.ask(candidate, "m-1")
        await until(lambda: woken, "the waking")
        assert woken == [["m-1"]]
        assert desk.heard[-1] == ("approval.answered", {"approval": name, "answer": "expired", "by": None})
        with pytest.raises(GenerationFailed, match="nobody answered in time"):
            await hasty.ask(candidate, "m-1")
        assert await hasty.ask(candidate, None) != name
        hasty.close()


async def test_a_late_yes_is_a_no(desk: Desk) -> None:
    """The clock decides, not whether somebody has written down that the time is over."""
    name = await desk.ask(mission="m-1")
    desk.clock.pass_(7)
    late = (await desk.approvals.approve([name], "ada")).answers[0]
    assert (late.word, late.changed, desk.slot()) == ("expired", False, None)
    assert documents.refusal(late).message.endswith("nobody answered until 2026-11-29T10:00:00.000Z")


async def test_what_is_active_already_needs_no_person(desk: Desk) -> None:
    """A mission of an older snapshot is given the id of what was approved, and nothing is asked."""
    name = await desk.ask()
    await desk.approvals.approve([name], "ada")
    assert await desk.ask(mission="m-9") == name
    assert [event for event, _ in desk.heard].count("approval.asked") == 1


async def test_questions_outlive_their_process(tmp_path: Path) -> None:
    """After a restart they are there, and lapse in their time; what lapsed meanwhile is written down at once."""
    clock = Days()
    async with open_image(tmp_path, clock=clock) as image, asyncio.TaskGroup() as group:
        await image.writer.apply(lambda root: root.__setitem__(HOLDER, UvmObject({"say_": Intent(**WISH)})))
        first = Desk(image, clock, group)
        old = await first.ask(mission="m-1")
        clock.pass_(6)
        young = await first.ask("def say_(self):\n    return 'hi'\n", mission="m-2")
        first.approvals.close()
    clock.pass_(2)
    async with open_image(tmp_path, clock=clock) as image, asyncio.TaskGroup() as group:
        second = Desk(image, clock, group)
        await second.approvals.open()
        assert second.woken == ["m-1"]
        assert [keys["approval"] for event, keys in second.heard] == [old]
        await second.approvals.approve([young], "ada")
        assert second.slot() == "def say_(self):\n    return 'hi'\n"
        second.approvals.close()


async def test_several_are_answered_together(desk: Desk) -> None:
    """One yes for each; the second one for the same slot comes too late, and says what is active."""
    names = [await desk.ask(f"def say_(self):\n    return {number}\n", f"m-{number}") for number in range(2)]
    answered = await desk.approvals.approve([*names, names[0]], "ada")
    assert [answer.word for answer in answered.answers] == ["approved", "outdated"]
    assert answered.woken == ("m-0", "m-1")
    assert desk.slot() == "def say_(self):\n    return 0\n"
    with pytest.raises(GenerationFailed, match="revision 1 is active"):
        raise documents.disapproval(answered.answers[1])


def test_reasons_name_every_question() -> None:
    """A mission whose parts wait for two says so, in the order in which they came, each once."""
    one, two = documents.approval_error(["a-1"], "this"), documents.approval_error(["a-2", "a-1", "a-2"], "that")
    assert (one.approval, one.others) == ("a-1", ())
    assert (two.approval, two.others) == ("a-2", ("a-1",))
    both = documents.combine_reasons([one, two])
    assert (both.approval, both.others) == ("a-1", ("a-2",))
    assert documents.combine_reasons([one, one]) is one
    assert isinstance(both, ApprovalNeeded)
    for error in (one, two, both):
        assert isinstance(error, BatosError)
        assert error.as_dict()["approvals"] == [error.approval, *error.others]
        assert f"batos approve {error.approval}" in error.remedy
