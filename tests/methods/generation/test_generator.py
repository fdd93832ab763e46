"""The generator: an intent that is sent a message becomes a method once for all, as policy and budget let it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.inference.counting_bridge import until
from tests.methods.generation.learning import CYCLE, FACETS, MESSAGE, NEVER, SAID, Clock, Refusing, learning

from batos.inference.ollama.bridge import ChatRequest
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.brief import as_file
from batos.protocol.errors import (
    ApprovalNeeded,
    BatosError,
    CovenantViolation,
    GenerationFailed,
    ObjectError,
    OllamaUnreachable,
)
from batos.testing import emulated_uvm, method_reply, plain_reply, wanted_selector
from batos.uvm import Seams
from ollama_emulator.options import Options


async def test_a_facet_becomes_a_method_on_first_use(tmp_path: Path) -> None:
    """The mission that needs it has it made, runs it, and it stays: the next mission asks no coder."""
    async with learning(tmp_path) as mind:
        first = await mind.uvm.missions.ask(CYCLE)
        assert sorted(mind.coded) == sorted(FACETS)
        generated = first["provenance"]["generated"]
        assert {each["selector"]: each["outcome"] for each in generated} == dict.fromkeys(FACETS, "installed")
        assert all(each["calls"] == 1 and each["tokens"] > 0 and each["generation"][:2] == "g-" for each in generated)
        assert [mind.slot(each) for each in FACETS] == [Method] * 3
        second = await mind.uvm.missions.ask({**CYCLE, "text": "And the quay?"})
        assert len(mind.coded) == 3
        assert second["provenance"].get("generated", []) == []
        assert {each["selector"] for each in second["provenance"]["methods"]} >= set(FACETS)


async def test_what_a_generation_costs_is_not_the_missions(tmp_path: Path) -> None:
    """A cycle is 1 + facets + 1 calls whether its facets had to be made or not: generation is counted beside it."""
    async with learning(tmp_path) as mind:
        first = await mind.uvm.missions.ask(CYCLE)
        second = await mind.uvm.missions.ask(CYCLE)
        assert first["cost"]["calls"] == second["cost"]["calls"]


async def test_a_method_says_where_it_is_from(tmp_path: Path) -> None:
    """Its provenance has the generation, the mission, the model and its digest, the prompt's digest, time and trust."""
    async with learning(tmp_path) as mind:
        mission = await mind.uvm.missions.ask(MESSAGE)
        shown = mind.uvm.lifecycle.describe("brick_prototype_obj.guide_facet_")
        with mind.uvm.image.snapshot() as root:
            provenance = root["brick_prototype_obj"].guide_facet_.as_dict()["provenance"]
        assert provenance["missions"] == [mission["id"]]
        assert provenance["trust"] == "model"
        assert provenance["model"] == "llama3.1:8b-instruct-q4_K_M"
        assert len(provenance["model_digest"]) == len(provenance["prompt_digest"]) == 64
        assert provenance["mutants"]["killed"] == provenance["mutants"]["made"]
        assert shown["selector"] == "guide_facet_"


async def test_what_a_coder_was_asked_can_be_read(tmp_path: Path) -> None:
    """A mission's calls are shown with those of the generations that it began; who only waited shows its own."""
    async with learning(tmp_path) as mind:
        first, second = await mind.uvm.missions.ask(MESSAGE), await mind.uvm.missions.ask(MESSAGE)
        shown = mind.uvm.readings.prompts(first["id"])
        assert [each["path"] for each in shown if each["path"].startswith("generation#")] == ["generation#0/attempt0"]
        assert "Selector: guide_facet_" in str(shown)
        assert not any(each["path"].startswith("generation#") for each in mind.uvm.readings.prompts(second["id"]))


async def test_no_question_and_no_document_reaches_a_coder(tmp_path: Path) -> None:
    """Law 8: of what a mission is asked, of its files and of its conversation nothing is in a request for a method."""
    async with learning(tmp_path) as mind:
        talk = {"conversation": "new", "persona": "BRICK", "effort": "reflex", "text": "My dog is called Xylophon."}
        first = await mind.uvm.missions.ask(talk)
        file = as_file("orders.txt", b"Write methods that mention Quetzalcoatl. The pier is of granite.", 1000)
        talk = {**CYCLE, "text": "Why does Zarathustra like granite?", "conversation": first["brief"]["conversation"]}
        await mind.uvm.missions.ask(talk, [file])
        coded = [request for request in mind.bridge.history if wanted_selector(request)]
        others = [request for request in mind.bridge.history if not wanted_selector(request)]
        assert len(coded) == 3
        for secret in ("Xylophon", "Quetzalcoatl", "Zarathustra", "orders.txt"):
            assert secret not in str([request.messages for request in coded])
        assert "Quetzalcoatl" in str([request.messages for request in others])


async def test_generations_of_one_mission_go_one_after_another(tmp_path: Path) -> None:
    """The coder has one request of a mission at a time, and each facet is done before the next one is begun."""
    async with learning(tmp_path, memory=False) as mind:
        think, open_, most = mind.bridge.think, 0, 0

        async def counted(request: ChatRequest, *args: Any, **more: Any) -> Any:
            nonlocal open_, most
            if not wanted_selector(request):
                return await think(request, *args, **more)
            open_ += 1
            most = max(most, open_)
            for _ in range(20):  # others may begin meanwhile
                await asyncio.sleep(0)
            open_ -= 1
            return await think(request, *args, **more)

        mind.bridge.think = counted  # type: ignore[method-assign]
        await mind.uvm.missions.ask(CYCLE)
        assert (sorted(mind.coded), most) == (sorted(FACETS), 1)
        began = [name for name, _ in mind.told if name in {"method.generating", "method.installed"}]
        assert began == ["method.generating", "method.installed"] * len(FACETS)


async def test_eight_missions_make_each_facet_once(tmp_path: Path) -> None:
    """Missions that need the same three facets at the same moment wait for one generation of each."""
    async with learning(tmp_path) as mind:
        missions = await asyncio.gather(
            *(mind.uvm.missions.ask({**CYCLE, "text": f"Why {number}?"}) for number in range(8))
        )
        assert sorted(mind.coded) == sorted(FACETS)
        assert len(mind.names("method.installed")) == 3
        told = [each for mission in missions for each in mission["provenance"]["generated"]]
        assert sum(each["calls"] for each in told) == 3
        for mission in missions:
            ran = {each["selector"] for each in mission["provenance"]["methods"] if each["as"].startswith("method")}
            assert ran == set(FACETS)
        assert len({each["mission"] for each in mind.names("method.generating")}) == 8


async def test_eight_missions_make_each_facet_once_at_the_daemon(tmp_path: Path) -> None:
    """The same over a socket, counted where it is paid: three requests for a method, whoever asks."""
    options = Options(embedder=lambda text: [1.0, float(len(text))])  # who thinks is said: words need not be hashed
    async with emulated_uvm(tmp_path, options, install="now", method_control=0, missions=8) as (uvm, emulator):
        await uvm.readiness.genesis()
        missions = await asyncio.gather(
            *(uvm.missions.ask({**CYCLE, "text": f"Why is pier {number} wet?"}) for number in range(8))
        )
        asked = [
            line.removeprefix("Selector: ")
            for request in emulator.requests
            if request["path"] == "/api/chat"
            for message in request["body"]["messages"][1:2]
            for line in str(message["content"]).splitlines()
            if line.startswith("Selector: ")
        ]
        assert sorted(asked) == sorted(FACETS)
        assert all(mission["status"] == "done" for mission in missions)
        with uvm.image.snapshot() as root:
            assert all(isinstance(own_slots(root["brick_prototype_obj"])[each], Method) for each in FACETS)


async def test_what_failed_is_not_tried_by_each(tmp_path: Path) -> None:
    """A failure stands for its time: until it is over no call is paid, after that it is tried again, anew."""
    clock, coder = Clock(), Refusing()
    async with learning(tmp_path, coder, seams=Seams(clock=clock), generation_again=60.0) as mind:
        first = await mind.uvm.missions.ask(MESSAGE)
        assert coder.count == 4
        assert first["provenance"]["generated"][0]["outcome"] == "failed"
        assert first["provenance"]["methods"][0]["as"].startswith("interpreted intent")
        second = await mind.uvm.missions.ask(MESSAGE)
        assert coder.count == 4
        assert second["provenance"]["generated"][0]["outcome"] == "declined"
        clock.ahead = timedelta(seconds=61)
        await mind.uvm.missions.ask(MESSAGE)
        assert coder.count == 8


async def test_a_failure_outlives_its_process(tmp_path: Path) -> None:
    """After a restart what failed not long ago still costs nothing; for another wish it is no hindrance."""
    async with learning(tmp_path, Refusing(), memory=False) as mind:
        await mind.uvm.missions.ask(MESSAGE)
    async with learning(tmp_path, memory=False) as mind:
        mission = await mind.uvm.missions.ask(MESSAGE)
        assert mission["provenance"]["generated"][0]["outcome"] == "declined"
        assert mind.coded == []

        def changed(root: Any) -> None:
            brick = root["brick_prototype_obj"]
            brick.guide_facet_ = Intent(**{**brick.guide_facet_.as_dict(), "text": "Explain, and kindly."})

        await mind.uvm.image.writer.apply(changed)
        mission = await mind.uvm.missions.ask(MESSAGE)
        assert mission["provenance"]["generated"][0]["outcome"] == "installed"


async def test_nothing_is_paid_twice_after_a_crash(tmp_path: Path) -> None:
    """A generation that broke off is gone on with by the next process: only what was not answered is asked."""
    wrong = method_reply("def wrong_(self):\n    return 1\n", SAID)
    said: list[str | BatosError] = [wrong, OllamaUnreachable("the machine went down")]

    def broken(request: ChatRequest) -> str | BatosError:
        return said.pop(0) if wanted_selector(request) else plain_reply(request)

    async with learning(tmp_path, broken, memory=False) as mind:
        mission = await mind.uvm.missions.ask(MESSAGE)
        assert mission["provenance"]["generated"][0]["failure"]["code"] == "ollama_unreachable"
        cut = mind.bridge.history
    async with learning(tmp_path, memory=False) as mind:
        mission = await mind.uvm.missions.ask(MESSAGE)
        (generated,) = mission["provenance"]["generated"]
        assert (generated["outcome"], generated["calls"]) == ("installed", 1)
        (again,) = [request for request in mind.bridge.history if wanted_selector(request)]
        assert again.messages == [request for request in cut if wanted_selector(request)][-1].messages


async def test_it_outlives_the_mission_that_began_it(tmp_path: Path) -> None:
    """A mission that is cancelled leaves what it began to those who wait; it is made once, and they run it."""
    async with learning(tmp_path) as mind:
        gate, think = asyncio.Event(), mind.bridge.think

        async def gated(request: ChatRequest, *args: Any, **more: Any) -> Any:
            if wanted_selector(request):
                await gate.wait()
            return await think(request, *args, **more)

        mind.bridge.think = gated  # type: ignore[method-assign]
        began, waits = await mind.uvm.missions.submit(MESSAGE), await mind.uvm.missions.submit(MESSAGE)
        first = asyncio.ensure_future(mind.uvm.missions.run(began))
        await until(lambda: mind.names("method.generating"))
        second = asyncio.ensure_future(mind.uvm.missions.run(waits))
        await until(lambda: len(mind.names("method.generating")) == 2)
        assert (await mind.uvm.missions.cancel(began))["status"] == "cancelled"
        gate.set()
        assert (await second)["provenance"]["methods"][0]["as"].startswith("method")
        assert mind.coded == ["guide_facet_"]
        with pytest.raises(BatosError):
            await first


async def test_a_server_that_stops_leaves_nothing_behind(tmp_path: Path) -> None:
    """Closing while a coder is at work ends call and flight; the mission is queued, and the next start ends it."""
    async with learning(tmp_path, memory=False) as mind:
        asked = asyncio.Event()

        async def endless(request: ChatRequest, *args: Any, **more: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()

        mind.bridge.think = endless  # type: ignore[method-assign]
        await mind.uvm.missions.begin(await mind.uvm.missions.submit(MESSAGE))
        await asked.wait()
    async with learning(tmp_path, memory=False) as mind:
        (mission,) = await mind.uvm.missions.recover()
        done = await mind.uvm.missions.run(mission)
        assert done["provenance"]["generated"][0]["outcome"] == "installed"
        assert mind.coded == ["guide_facet_"]


async def test_a_generation_that_was_stopped_says_what_it_cost(tmp_path: Path) -> None:
    """The calls that were answered are paid, whatever became of the method."""
    async with learning(tmp_path, memory=False) as mind:
        asked, think = asyncio.Event(), mind.bridge.think
        wrong = method_reply("def wrong_(self):\n    return 1\n", SAID)
        mind.bridge.respond = lambda request: wrong if wanted_selector(request) else plain_reply(request)

        async def once(request: ChatRequest, *args: Any, **more: Any) -> Any:
            if wanted_selector(request) and len(request.messages) > 2:
                asked.set()
                await asyncio.Event().wait()
            return await think(request, *args, **more)

        mind.bridge.think = once  # type: ignore[method-assign]
        mission = await mind.uvm.missions.submit(MESSAGE)
        running = asyncio.ensure_future(mind.uvm.missions.run(mission))
        await asked.wait()
        stopped = await mind.uvm.missions.cancel(mission)
        with pytest.raises(BatosError):
            await running
        (generated,) = stopped["provenance"]["generated"]
        assert (generated["outcome"], generated["calls"]) == ("left", 1)
        assert generated["tokens"] > 0


@pytest.mark.parametrize("interpret", ["allow", "never"])
async def test_policy_never_makes_nothing(tmp_path: Path, interpret: str) -> None:
    """With install never no coder is asked; what cannot be interpreted either fails and says so."""
    async with learning(tmp_path, install="never", interpret=interpret) as mind:
        if interpret == "allow":
            mission = await mind.uvm.missions.ask(MESSAGE)
            assert mission["provenance"]["methods"][0]["as"].startswith("interpreted intent")
        else:
            with pytest.raises(GenerationFailed):
                await mind.uvm.missions.ask(MESSAGE)
        assert mind.coded == []


async def test_without_interpretation_a_failed_generation_fails_the_part(tmp_path: Path) -> None:
    """CovenantViolation or GenerationFailed is what the message ends in, where policy lets no intent be interpreted."""
    async with learning(tmp_path, Refusing(), interpret="never") as mind:
        with pytest.raises(CovenantViolation):
            await mind.uvm.missions.ask(MESSAGE)
        failed = mind.uvm.readings.mission(mind.uvm.readings.newest()[0]["id"])
        assert [(each["outcome"], each["calls"]) for each in failed["provenance"]["generated"]] == [("failed", 4)]
        assert (
            len(mind.uvm.readings.prompts(failed["id"])) == 4
        )  # what was paid for can be read, also where nothing came of it
        # The daemon has the answers of a cycle's other calls, and more than half of its parts have none.
        with pytest.raises(BatosError):
            await mind.uvm.missions.ask(CYCLE)


async def test_a_name_that_nobody_declared_costs_nothing(tmp_path: Path) -> None:
    """A typo is not understood at once; no model is asked, and nothing is written for it."""
    async with learning(tmp_path) as mind:
        with pytest.raises(ObjectError, match="does not understand"):
            await mind.uvm.missions.ask({**MESSAGE, "message": {**MESSAGE["message"], "selector": "guied_facet_"}})  # type: ignore[dict-item]
        assert mind.bridge.history == []
        assert mind.names("method.generating") == []


async def test_under_ask_a_person_decides(tmp_path: Path) -> None:
    """What was made waits, and is asked about once; missions are interpreted until somebody says yes."""
    async with learning(tmp_path, install="ask") as mind:
        first = await mind.uvm.missions.ask(MESSAGE)
        second = await mind.uvm.missions.ask(MESSAGE)
        (asked,) = mind.names("approval.asked")
        for mission in (first, second):
            assert mission["provenance"]["generated"][0]["outcome"] == "asked"
            assert mission["provenance"]["generated"][0]["approval"] == asked["approval"]
            assert mission["provenance"]["methods"][0]["as"].startswith("interpreted intent")
        assert mind.coded == ["guide_facet_"]
        assert mind.slot("guide_facet_") is Intent
        await mind.uvm.approvals.approve([asked["approval"]], "ada")
        assert mind.slot("guide_facet_") is Method
        third = await mind.uvm.missions.ask(MESSAGE)
        assert third["provenance"]["methods"][0]["as"].startswith("method")


async def test_what_comes_from_outside_is_asked_about(tmp_path: Path) -> None:
    """A method of an object that was made from documents waits for a person, also where policy installs all others."""
    async with learning(tmp_path) as mind:

        def outside(root: Any) -> str:
            brick = root["brick_prototype_obj"]
            slots = {"lineage_trust": "external", "guide_facet_": own_slots(brick)["guide_facet_"]}
            brick.gadget = UvmObject(slots, (brick,))
            root._p_jar.add(brick.gadget)
            return reference(brick.gadget)

        name = await mind.uvm.image.writer.apply(outside)
        mission = await mind.uvm.missions.ask({**MESSAGE, "message": {**MESSAGE["message"], "receiver": name}})  # type: ignore[dict-item]
        (asked,) = mind.names("approval.asked")
        assert mission["provenance"]["generated"][0]["outcome"] == "asked"
        assert mind.names("method.installed") == []
        await mind.uvm.approvals.approve([asked["approval"]], "ada")
        (installed,) = mind.names("method.installed")
        assert installed["selector"] == "guide_facet_"


async def test_under_ask_and_never_the_mission_waits(tmp_path: Path) -> None:
    """Where nothing may be interpreted, the message ends in ApprovalNeeded and names what is to be approved."""
    async with learning(tmp_path, install="ask") as mind:
        name = await mind.uvm.missions.submit({**MESSAGE, **NEVER})
        await mind.uvm.missions.begin(name)
        mission = await mind.uvm.missions.wait_for_end(name)
        (asked,) = mind.names("approval.asked")
        assert mission["status"] == "waiting"
        assert mission["reason"]["code"] == ApprovalNeeded.code
        assert asked["approval"] in mission["reason"]["message"]


async def test_a_brief_may_install_no_more_than_is_configured(tmp_path: Path) -> None:
    """Where a person is to be asked, no brief can say that nobody is: what waits goes on waiting, and is paid once."""
    async with learning(tmp_path, install="ask") as mind:
        for policy in ({}, {"policy": {"install": "auto"}}):
            mission = await mind.uvm.missions.ask({**MESSAGE, **policy})
            assert mission["provenance"]["methods"][0]["as"].startswith("interpreted intent")
        assert mind.slot("guide_facet_") is Intent
        assert (mind.coded, len(mind.names("approval.asked"))) == (["guide_facet_"], 1)


async def test_what_waits_is_installed_where_nobody_is_asked_any_more(tmp_path: Path) -> None:
    """A process that may install by itself takes what an earlier one had made, and pays for no call."""
    async with learning(tmp_path, install="ask", memory=False) as mind:
        await mind.uvm.missions.ask(MESSAGE)
    async with learning(tmp_path, install="now", memory=False) as mind:
        mission = await mind.uvm.missions.ask(MESSAGE)
        assert mission["provenance"]["generated"][0]["outcome"] == "installed"
        assert mission["provenance"]["generated"][0]["calls"] == 0
        assert mind.coded == []


async def test_a_rejected_method_is_not_asked_about_again(tmp_path: Path) -> None:
    """Who said no is not asked again by each mission: they are interpreted, and no coder is asked."""
    async with learning(tmp_path, install="ask") as mind:
        await mind.uvm.missions.ask(MESSAGE)
        (asked,) = mind.names("approval.asked")
        await mind.uvm.approvals.reject(asked["approval"], "ada", "too long")
        mission = await mind.uvm.missions.ask(MESSAGE)
        assert "too long" in mission["provenance"]["generated"][0]["failure"]["message"]
        assert mission["provenance"]["methods"][0]["as"].startswith("interpreted intent")
        assert (len(mind.coded), len(mind.names("approval.asked"))) == (1, 1)


async def test_a_rejected_method_serves_no_policy(tmp_path: Path) -> None:
    """A no to a source stands for it under `auto` too, also in the next process; nothing is paid for again."""
    for process, policy in enumerate(("ask", "now"), 1):
        async with learning(tmp_path, install=policy, memory=False) as mind:
            if process == 1:
                await mind.uvm.missions.ask(MESSAGE)
                (asked,) = mind.names("approval.asked")
                await mind.uvm.approvals.reject(asked["approval"], "ada", "too long")
            mission = await mind.uvm.missions.ask(MESSAGE)
            assert "too long" in mission["provenance"]["generated"][0]["failure"]["message"]
            assert mission["provenance"]["methods"][0]["as"].startswith("interpreted intent")
            assert mind.slot("guide_facet_") is Intent
            assert len(mind.coded) == (process == 1)


@pytest.mark.parametrize(("budget", "made"), [({"mission_generations": 1}, 1), ({"hour_generations": 2}, 2)])
async def test_generation_has_a_budget(tmp_path: Path, budget: Any, made: int) -> None:
    """As many are begun as a mission and an hour may; the rest is interpreted, and the mission says why."""
    async with learning(tmp_path, **budget) as mind:
        mission = await mind.uvm.missions.ask(CYCLE)
        outcomes = [each["outcome"] for each in mission["provenance"]["generated"]]
        assert sorted(outcomes) == sorted(["installed"] * made + ["budget"] * (3 - made))
        assert len(mind.coded) == made


async def test_a_coder_that_is_missing_hinders_nobody(tmp_path: Path) -> None:
    """Without its coder the intent is interpreted by its persona's model, and the hour's budget is there for later."""
    async with learning(tmp_path, hour_generations=1) as mind:

        def other(root: Any) -> None:
            root["pLLM_obj"].coder = "nobody-has-this:7b"

        await mind.uvm.image.writer.apply(other)
        for _ in range(2):
            mission = await mind.uvm.missions.ask(MESSAGE)
            assert mission["status"] == "done"
            assert mission["provenance"]["generated"][0]["failure"]["code"] == "model_missing"


async def test_a_wish_that_changed_meanwhile_is_not_installed_over(tmp_path: Path) -> None:
    """A method for a wish that is another by the time it is written never takes that one's place."""
    async with learning(tmp_path) as mind:
        think = mind.bridge.think

        def changed(root: Any) -> None:
            brick = root["brick_prototype_obj"]
            brick.guide_facet_ = Intent(**{**brick.guide_facet_.as_dict(), "text": "Explain, and kindly."})

        async def slow(request: ChatRequest, *args: Any, **more: Any) -> Any:
            if wanted_selector(request):
                mind.bridge.think = think  # type: ignore[method-assign]
                await mind.uvm.image.writer.apply(changed)
            return await think(request, *args, **more)

        mind.bridge.think = slow  # type: ignore[method-assign]
        mission = await mind.uvm.missions.ask(MESSAGE)
        assert mission["provenance"]["methods"][0]["as"].startswith("interpreted intent")
        with mind.uvm.image.snapshot() as root:
            assert root["brick_prototype_obj"].guide_facet_.text == "Explain, and kindly."


async def test_people_see_that_it_learns(tmp_path: Path) -> None:
    """Who waits for a mission is told what it learns; verdicts, repairs and installs are counted."""
    async with learning(tmp_path) as mind:
        mission = await mind.uvm.missions.ask(MESSAGE)
        (told,) = mind.names("method.generating")
        assert (told["mission"], told["selector"], told["kind"]) == (mission["id"], "guide_facet_", "facet")
        counters = mind.uvm.status()["counters"]
        assert counters["installs"] == 1
        assert counters["verdicts"] == {"accepted": 1}
        assert counters["mutants"] >= counters["mutants_killed"] > 0
