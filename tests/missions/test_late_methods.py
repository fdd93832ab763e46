"""Methods that are made when the answer is out: while nobody asks, by whichever process has the time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.methods.generation.learning import CYCLE, FACETS, MESSAGE, SAID, SPEAKS, Learning, Refusing, learning
from tests.minds.test_trace_choices import died
from tests.waiting import HANG

from batos.image import roots
from batos.inference.cost import Cost
from batos.inference.ollama.bridge import ChatRequest
from batos.inference.ollama.chat import Answer
from batos.missions.late_methods import writing_seconds
from batos.objects.method import Intent, Method
from batos.protocol.errors import AnswerUnreadable, BatosError, OllamaUnreachable
from batos.testing import ScriptedBridge, author, wanted_selector
from batos.uvm import Seams


def waiting(mind: Learning) -> int:
    """How many methods are to be made."""
    found: int = mind.uvm.status()["learning"]["waiting"]
    return found


async def test_the_answer_comes_before_any_method(tmp_path: Path) -> None:
    """A mission under `auto` asks no coder: it interprets, says so, and what it did without is to be made."""
    async with learning(tmp_path, install="auto") as mind:
        mission = await mind.uvm.missions.ask(CYCLE)
        assert (mission["status"], mind.coded, waiting(mind)) == ("done", [], 3)
        assert [each["outcome"] for each in mission["provenance"]["generated"]] == ["later"] * 3
        assert all(each["as"].startswith("interpreted intent") for each in mission["provenance"]["methods"])


async def test_what_was_done_without_is_made_afterwards(tmp_path: Path) -> None:
    """Each once, however many missions did without it; the next mission runs them, and pays for no coder."""
    async with learning(tmp_path, install="auto") as mind:
        await asyncio.gather(*(mind.uvm.missions.ask({**CYCLE, "text": f"Why {number}?"}) for number in range(3)))
        told = await mind.uvm.learning.some()
        assert sorted(each["selector"] for each in told["made"]) == sorted(mind.coded) == sorted(FACETS)
        assert {each["outcome"] for each in told["made"]} == {"installed"}
        assert (told["left"], waiting(mind)) == (0, 0)
        assert {mind.slot(each) for each in FACETS} == {Method}
        mission = await mind.uvm.missions.ask(CYCLE)
        assert mission["provenance"]["generated"] == []
        assert len(mind.coded) == 3


async def test_a_process_that_is_there_to_work_does_so_by_itself(tmp_path: Path) -> None:
    """Who keeps at it begins when all rests, also with what an earlier process left in the image."""
    async with learning(tmp_path, install="auto", memory=False) as mind:
        await mind.uvm.missions.ask(MESSAGE)
    async with learning(tmp_path, install="auto", memory=False) as mind:
        changed = asyncio.Event()
        mind.uvm.events.subscribe(lambda event, _: changed.set() if event == "txn.commit" else None)
        mind.uvm.learning.keep()
        for answered in (None, CYCLE):
            if answered is not None:
                await mind.uvm.missions.ask(answered)
            async with asyncio.timeout(HANG):
                while waiting(mind):
                    changed.clear()
                    await changed.wait()
            assert mind.slot("guide_facet_") is Method
        assert sorted(mind.coded) == sorted(FACETS)


class HeldCoder(ScriptedBridge):
    """A daemon whose coder does not answer until it is let; `came` is set when it is asked, `away` raises."""

    def __init__(self) -> None:
        super().__init__(author(SPEAKS, SAID))
        self.came, self.may, self.away = asyncio.Event(), asyncio.Event(), False

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """As any, once it may."""
        if wanted_selector(request):
            self.came.set()
            await self.may.wait()
            if self.away:
                raise OllamaUnreachable("gone")
        return await super().think(request, on_token, stream=stream)


@asynccontextmanager
async def making_one(place: Path) -> AsyncIterator[tuple[Learning, HeldCoder, asyncio.Future[Any]]]:
    """A mind that is making a method, and waits for its coder."""
    held = HeldCoder()
    async with learning(place, held, install="auto") as mind:
        await mind.uvm.missions.ask(MESSAGE)
        making = asyncio.ensure_future(mind.uvm.learning.some())
        await asyncio.wait_for(held.came.wait(), HANG)
        yield mind, held, making


async def test_a_question_goes_first(tmp_path: Path) -> None:
    """A mission that comes while a method is being made ends that at once; it is made when all rests again."""
    async with making_one(tmp_path) as (mind, held, making):
        async with asyncio.timeout(HANG):
            making_now = mind.uvm.status()["learning"]["making"]
            assert making_now is not None
            assert (making_now["object"], making_now["selector"]) == ("brick_prototype_obj", "guide_facet_")
            mission = await mind.uvm.missions.ask({"text": "Why?", "effort": "reflex"})
            told = await making
        assert (mission["status"], told, mind.slot("guide_facet_")) == ("done", {"made": [], "left": 1}, Intent)
        held.may.set()
        assert [each["outcome"] for each in (await mind.uvm.learning.some())["made"]] == ["installed"]


async def test_none_is_made_while_an_erasure_rests_on_that(tmp_path: Path) -> None:
    """What is being made is left, and no other is begun until then."""
    async with making_one(tmp_path) as (mind, held, making):
        async with asyncio.timeout(HANG):
            async with mind.uvm.learning.resting():
                assert await making == {"made": [], "left": 1}
                held.may.set()
                assert await mind.uvm.learning.some() == {"made": [], "left": 1}
        assert [each["outcome"] for each in (await mind.uvm.learning.some())["made"]] == ["installed"]


async def test_a_question_that_never_runs_only_delays_it(tmp_path: Path) -> None:
    """A mission that is accepted and not begun ends what is being made; it is taken up again after a pause."""
    held = HeldCoder()
    async with learning(tmp_path, held, install="auto", seams=Seams(pauses=(0.01,))) as mind:
        await mind.uvm.missions.ask(MESSAGE)
        mind.uvm.learning.keep()
        async with asyncio.timeout(HANG):
            await held.came.wait()
            held.came.clear()
            await mind.uvm.missions.submit({"text": "Why?", "effort": "reflex"})
            await held.came.wait()
        assert len(mind.uvm.workers.running) == 1  # the mission that makes it, and not the question
        held.may.set()


async def test_a_short_process_begins_what_fits_and_leaves_the_rest(tmp_path: Path) -> None:
    """Where a call would not fit nothing is paid; what is not done in time is left, and stands for the next process."""
    held = HeldCoder()
    async with learning(tmp_path, held, install="auto") as mind:
        await mind.uvm.missions.ask(MESSAGE)
        assert await mind.uvm.learning.briefly(5.0, 6.0) == {"made": [], "left": 1}
        assert not held.came.is_set()
        seconds = 0.2
        while not held.came.is_set():  # until it is asked in its time
            assert await mind.uvm.learning.briefly(seconds, 0.0) == {"made": [], "left": 1}
            seconds *= 2
        held.may.set()
        told = await mind.uvm.learning.briefly(HANG, 0.0)
        assert ([each["outcome"] for each in told["made"]], told["left"]) == (["installed"], 0)


def test_a_method_takes_longer_than_a_short_answer() -> None:
    """It has 300 tokens at the pace of the mission's calls, takes no less than one of them, and may be unmeasured."""
    reflex = Cost(calls=1, seconds=1.0, answer_tokens=30).as_dict()
    assert writing_seconds(reflex) == 10.0
    assert writing_seconds(Cost(calls=2, seconds=8.0, answer_tokens=4000).as_dict()) == 4.0
    assert writing_seconds({**reflex, "calls": 0}) == writing_seconds({**reflex, "answer_tokens": 0}) == math.inf


async def test_what_is_wished_has_its_mission(tmp_path: Path) -> None:
    """The first mission that did without a method is named by what is to be made; a later one is not."""
    async with learning(tmp_path, HeldCoder(), install="auto") as mind:
        first = await mind.uvm.missions.ask(MESSAGE)
        await mind.uvm.missions.ask(MESSAGE)
        assert [each["mission"] for each in mind.uvm.learning.list_wishes()] == [first["id"]]


async def test_what_fails_is_to_be_made_no_more(tmp_path: Path) -> None:
    """A coder that writes nothing acceptable is asked its four times, and the next mission does not wish it again."""
    coder = Refusing()
    async with learning(tmp_path, coder, install="auto") as mind:
        await mind.uvm.missions.ask(MESSAGE)
        told = await mind.uvm.learning.some()
        assert [each["outcome"] for each in told["made"]] == ["failed"]
        mission = await mind.uvm.missions.ask(MESSAGE)
        assert mission["provenance"]["generated"][0]["outcome"] == "declined"
        assert (waiting(mind), coder.count) == (0, 4)


async def test_what_ollama_cannot_answer_for_is_left(tmp_path: Path) -> None:
    """While the daemon is away the wish stands; when it is back the method is made."""
    held = HeldCoder()
    held.may.set()
    async with learning(tmp_path, held, install="auto", seams=Seams(pauses=(0.01,))) as mind:
        await mind.uvm.missions.ask(MESSAGE)
        held.away = True
        assert await mind.uvm.learning.some() == {"made": [], "left": 1}
        held.away = False
        assert (await mind.uvm.learning.some())["left"] == 0


async def test_one_that_the_daemon_cannot_read_keeps_no_other(tmp_path: Path) -> None:
    """What comes of one request stands and is tried again; the others are made meanwhile."""

    def writes(request: ChatRequest) -> str | BatosError:
        return (
            AnswerUnreadable("half a letter")
            if wanted_selector(request) == "guide_facet_"
            else author(SPEAKS, SAID)(request)
        )

    async with learning(tmp_path, writes, install="auto") as mind:
        await mind.uvm.missions.ask(CYCLE)
        told = await mind.uvm.learning.some()
        assert sorted(each["selector"] for each in told["made"]) == ["rogues_gallery_facet_", "tamland_facet_"]
        assert (told["left"], mind.slot("guide_facet_")) == (1, Intent)


async def test_a_coder_that_cannot_be_asked_is_tried_less_and_less_often(tmp_path: Path) -> None:
    """Each time in vain the pause is twice as long, so that a model which never loads is not loaded all day."""
    held, asked = HeldCoder(), asyncio.Queue[float]()
    held.may.set()
    held.away = True
    async with learning(tmp_path, held, install="auto", seams=Seams(pauses=(0.01,))) as mind:
        clock = asyncio.get_running_loop().time
        mind.uvm.events.subscribe(lambda event, _: asked.put_nowait(clock()) if event == "method.generating" else None)
        await mind.uvm.missions.ask(MESSAGE)
        mind.uvm.learning.keep()
        async with asyncio.timeout(HANG):
            first, *_, last = [await asked.get() for _ in range(5)]
        assert last - first >= 0.01 + 0.02 + 0.04 + 0.08
        assert waiting(mind) == 1


async def test_a_wish_for_what_is_another_by_now_is_dropped(tmp_path: Path) -> None:
    """The intent was changed since: nothing is asked for the former one."""
    async with learning(tmp_path, install="auto") as mind:
        await mind.uvm.missions.ask(MESSAGE)

        def changed(root: Any) -> None:
            brick = root["brick_prototype_obj"]
            brick.guide_facet_ = Intent(**{**brick.guide_facet_.as_dict(), "text": "Explain, and kindly."})

        await mind.uvm.image.writer.apply(changed)
        told = await mind.uvm.learning.some()
        assert ([each["outcome"] for each in told["made"]], mind.coded, waiting(mind)) == (["gone"], [], 0)


async def test_where_a_person_is_to_be_asked_nothing_waits_for_it(tmp_path: Path) -> None:
    """A process that asks first takes up what another left: the candidate waits for a yes, the wish is fulfilled."""
    async with learning(tmp_path, install="auto", memory=False) as mind:
        await mind.uvm.missions.ask(MESSAGE)
    async with learning(tmp_path, install="ask", memory=False) as mind:
        told = await mind.uvm.learning.some()
        assert [each["outcome"] for each in told["made"]] == ["asked"]
        with mind.uvm.image.snapshot() as root:
            assert (len(root[roots.AWAITED]), len(root[roots.WISHES])) == (1, 0)


async def test_a_brief_may_have_it_made_first(tmp_path: Path) -> None:
    """`now` of a brief waits for the method where `auto` is configured: both let it be installed."""
    async with learning(tmp_path, install="auto") as mind:
        mission = await mind.uvm.missions.ask({**MESSAGE, "policy": {"install": "now"}})
        assert mission["provenance"]["generated"][0]["outcome"] == "installed"
        assert mission["provenance"]["methods"][0]["as"].startswith("method")


async def test_what_learning_costs_is_told_where_it_was_paid(tmp_path: Path) -> None:
    """After an answer by the missions that make the methods, which it names; before it beside the mission's own."""
    async with learning(tmp_path, install="auto", memory=False) as mind:
        first = await mind.uvm.missions.ask(CYCLE)
        made = (await mind.uvm.learning.some())["made"]
        shown = mind.uvm.readings.mission(first["id"])
        nothing = {"calls": 0, "tokens": 0}
        assert (shown["cost"], first["cost"]["learning"]) == (first["cost"], nothing)
        assert [each["outcome"] for each in shown["provenance"]["generated"]] == ["installed"] * 3
        makers = [each["mission"] for each in shown["provenance"]["generated"]]
        assert sorted(makers) == sorted(each["mission"] for each in made)
        for told in made:
            maker = told["mission"]
            cost = mind.uvm.readings.mission(maker)["cost"]
            assert (cost["calls"], cost["prompt_tokens"] + cost["answer_tokens"]) == (1, told["tokens"])
            assert cost["learning"] == nothing
            (call,) = mind.uvm.readings.prompts(maker)
            assert call.get("method") == f"{told['receiver']}.{told['selector']}"
    async with learning(tmp_path, install="now", memory=False) as mind:
        other = await mind.uvm.missions.ask({**CYCLE, "persona": "BABS"})
        assert other["cost"]["learning"]["calls"] == 3


async def test_a_second_attempt_wishes_for_what_the_first_did_without(tmp_path: Path) -> None:
    """The process dies when the parts are answered: the next attempt reads that they were interpreted, and why."""
    async with learning(tmp_path, install="auto") as mind:
        mission = await mind.uvm.missions.submit(CYCLE)
        assert await died(mind.uvm, mission, "SYNTHESIZING")
        assert waiting(mind) == 0
        await mind.uvm.missions.recover()
        done = await mind.uvm.missions.run(mission)
        assert (done["status"], waiting(mind)) == ("done", 3)
        assert [each["outcome"] for each in done["provenance"]["generated"]] == ["later"] * 3
