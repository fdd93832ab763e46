"""Trials and slots at a door: a change is tried in copies of the mind, kept, shown and taken back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.care.byte_scan import files_with
from tests.history.test_as_of_past_questions import Door
from tests.waiting import until

from batos.autotelic import trial_nights, trial_verdicts, trials
from batos.autotelic.heartbeat import Allowance, Duty
from batos.autotelic.trials import PairedAnswer, TrialAnswer
from batos.genesis.codex.codex import PILLARS
from batos.genesis.codex.declarations import prototype_name
from batos.image.roots import Root, named_objects
from batos.inference.ollama.bridge import ChatRequest
from batos.objects.prototype import own_slots
from batos.protocol.errors import BriefError, NotFound, OllamaUnreachable, Refused
from batos.records import gold_items
from batos.records.approvals import count_waiting
from batos.records.gold_items import GoldItem
from batos.server.dispatch.guests import limit_guest
from batos.server.dispatch.trial_changes import read_value
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

LINE = "You are BABS. Name the colour."
#: A model of Ollama that names it whoever speaks.
OTHER = "colours:1b"
QUESTIONS = trial_nights.FRESH


class Colours(ScriptedBridge):
    """A model that names the colour where its persona is told to, and else talks; it waits while it is `slow`."""

    def __init__(self) -> None:
        super().__init__(colour_of)
        self.slow: asyncio.Event | None = None
        self.begun, self.gone_after = 0, 10**9

    async def think(self, request: Any, *args: Any, **named: Any) -> Any:
        """Answer when it may."""
        self.begun += 1
        if self.begun > self.gone_after:
            raise OllamaUnreachable("nothing answers")
        if self.slow is not None:
            await self.slow.wait()
        return await super().think(request, *args, **named)


def colour_of(request: ChatRequest) -> str:
    """The reply by the line that the persona has, or by its model."""
    said = "\n".join(str(each["content"]) for each in request.messages)
    names = "Name the colour" in said or request.model == OTHER
    return "The colour is amber." if names else "The sea is calm tonight."


@asynccontextmanager
async def coloured(home: Path, **more: Any) -> AsyncIterator[tuple[UVM, Door, Colours]]:
    """A mind with questions whose answer is amber."""
    bridge = Colours()
    async with scripted_uvm(home, bridge, heartbeat_calls=12, **more) as uvm:
        door = Door(uvm)
        await door("remember", text="The buoy at the pier is amber.", scope="long_term")
        with uvm.image.snapshot() as root:
            source = next(iter(root["documents"]))
        items = [
            GoldItem(f"i-{use}-{n}", "A", f"Which colour is buoy {n}?", ("amber",), source, use, "tester", "")
            for use in trial_nights.USES for n in range(QUESTIONS)
        ]  # fmt: skip
        await uvm.image.shared.apply(lambda root: gold_items.put_items(root, source, items))
        for persona in PILLARS:  # in the lean form the line says who speaks
            await door("slot_redefine", slot=f"{persona}.form", value="lean")
        yield uvm, door, bridge


def answer_the_rest(root: Root, name: str) -> None:
    """Answer as many more questions better as it takes, without a model."""
    number = 0
    while trials.state_of(root, name) == "trying":
        pair = PairedAnswer(f"more-{number}", "A", 1.0, 0.0)
        trial_verdicts.note_answer(root, name, TrialAnswer(pair, "", ""), "2026-11-30T12:00:00.000Z")
        number += 1


async def test_a_slot_is_redefined_and_rolled_back(tmp_path: Path) -> None:
    """Every value with its origin; what may not be redefined is refused."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        door = Door(uvm)
        told = await door("slot_redefine", slot="robin.temperature", value="0.3", why="too lively", user="ann")
        assert (told["slot"], told["value"]) == ("ROBIN.temperature", 0.3)
        assert [(each["by"], each["why"]) for each in told["values"]] == [("codex", ""), ("ann", "too lively")]
        told = await door("slot_rollback", slot="ROBIN.temperature")
        assert told["value"] == told["values"][0]["value"]
        assert (await door("slot_show", slot="ROBIN.temperature")) == told
        assert "BABS.line" in {each["slot"] for each in (await door("slots"))["slots"]}
        with pytest.raises(Refused, match="may be redefined"):
            await door("slot_redefine", slot="ROBIN.core_identity", value="nobody")
        with pytest.raises(BriefError, match="must be a number"):
            await door("slot_redefine", slot="ROBIN.temperature", value="hot")


async def test_a_person_tries_a_line_which_is_kept_when_they_agree(tmp_path: Path) -> None:
    """Asked in copies of the mind: no mission and no memory of it is left in the image."""
    async with coloured(tmp_path) as (uvm, door, _):
        begun = await door("trials_try", slot="BABS.line", value=LINE, why="it talks", user="ann")
        assert begun["state"] == "trying"
        with pytest.raises(Refused, match="goes on"):
            await door("trials_try", slot="ROBIN.form", value="full")
        told = await door("heartbeat_now")
        assert told["calls"] > 0
        await uvm.image.shared.apply(lambda root: answer_the_rest(root, begun["id"]))
        shown = await door("trials_show", trial=begun["id"])
        assert (shown["state"], shown["losses"]) == ("waiting", 0), shown
        example = shown["examples"][0]
        assert (example["before"], example["after"]) == ("The sea is calm tonight.", "The colour is amber.")
        assert "examples" not in await door("trials_show", trial=begun["id"], user="key laptop")
        with uvm.image.snapshot() as root:
            assert not list(root["missions"])
            assert own_slots(root["babs_prototype_obj"])["line"] != LINE
        await door("trials_keep", trial=begun["id"], user="ann")
        page = await door("trials")
        assert (page["trials"][-1]["state"], page["kept"]) == ("promoted", 1)
        assert (await door("slot_show", slot="BABS.line"))["value"] == LINE
        why = await door("why", what="babs.line")
        assert [each["kind"] for each in why["because"]] == ["value", "value"]
        (trial,) = why["because"][0]["because"]
        assert (trial["ref"], trial["because"][0]["text"]) == (begun["id"], "it talks, by ann")
        assert (await door("why", what=begun["id"]))["text"] == trial["text"]
        await uvm.missions.ask({"text": "Which colour is the buoy?", "effort": "reflex"})
        await uvm.mission_memory.write()
        marks = [each["text"] for each in (await door("cem"))["marks"]]
        assert f"promoted: BABS.line ({begun['id']})" in marks
        assert (await door("cem", user="tester"))["marks"] == []
        undone = await door("trials_undo", trial=begun["id"], why="too short")
        assert (undone["state"], undone["reason"]) == ("undone", "too short")
        assert (await door("slot_show", slot="BABS.line"))["value"] != LINE
        with pytest.raises(NotFound, match="no trial"):
            await door("trials_show", trial="t-none")


async def waiting_line(uvm: UVM, door: Door) -> str:
    """A line that is better, and waits for a person."""
    begun = await door("trials_try", slot="BABS.line", value=LINE, why="it talks", user="ann")
    await door("heartbeat_now")
    await uvm.image.shared.apply(lambda root: answer_the_rest(root, begun["id"]))
    return str(begun["id"])


async def test_a_change_that_waits_is_approved_at_the_desk_of_methods(tmp_path: Path) -> None:
    """It is listed with both values, answers that changed, evidence and cost; the yes is that of `trials keep`."""
    async with coloured(tmp_path) as (uvm, door, _):
        trial = await waiting_line(uvm, door)
        page = await door("approvals")
        assert ([each["id"] for each in page["trials"]], page["waiting"]) == ([trial], 1)
        with uvm.image.snapshot() as root:
            assert count_waiting(root) == 1
        shown = await door("approvals", approval=trial[:12])
        assert shown["changes"][0]["value"] == LINE
        assert shown["evidence"] >= shown["needed"]
        assert shown["calls"] > 0
        told = shown["examples"]
        assert {(each["before"], each["after"]) for each in told} == {
            ("The sea is calm tonight.", "The colour is amber.")
        }
        assert 0 < len(told) <= trials.EXAMPLES
        done = await door("approve", approvals=[trial], user="ann")
        assert [(each["id"], each["by"]) for each in done["approved"]] == [(trial, "ann")]
        assert (await door("slot_show", slot="BABS.line"))["value"] == LINE
        assert (await door("approvals"))["trials"] == []
        with pytest.raises(Refused, match="is promoted"):
            await door("approve", approvals=[trial])
        with pytest.raises(NotFound, match="no trial"):
            await door("approve", approvals=["t-none"])


async def test_a_change_that_is_rejected_at_the_desk_is_barred(tmp_path: Path) -> None:
    """For ninety days; what does not wait is not ended by a rejection."""
    async with coloured(tmp_path) as (uvm, door, _):
        trial = await waiting_line(uvm, door)
        told = await door("reject", approval=trial, why="not her voice", user="ann")
        assert (told["rejected"]["id"], told["rejected"]["why"]) == (trial, "not her voice")
        shown = await door("trials_show", trial=trial)
        assert (shown["state"], shown["reason"]) == ("undone", "not her voice")
        with uvm.image.snapshot() as root:
            assert own_slots(root["babs_prototype_obj"])["line"] != LINE
            assert [each[0].value for each in trials.list_barred(root, "BABS.line", uvm.clock())] == [LINE]
        with pytest.raises(Refused, match="is undone"):
            await door("reject", approval=trial, why="again")


async def test_another_model_is_tried_in_copies_and_acts_when_it_is_better(tmp_path: Path) -> None:
    """Only one that Ollama has; the codex's comes back when it is undone, and when the codex names another."""
    async with coloured(tmp_path) as (uvm, door, bridge):
        with pytest.raises(BriefError, match="no model sea:1"):
            await door("trials_try", slot="BABS.model", value="sea:1")
        bridge.rows[OTHER] = replace(next(iter(bridge.rows.values())), name=OTHER)
        begun = await door("trials_try", slot="BABS.model", value=OTHER)
        assert begun["risk"] == 2
        await door("heartbeat_now")
        assert {each.model for each in bridge.history} > {OTHER}
        status = await door("status")
        assert status["models"]["BABS"] != OTHER
        await uvm.image.shared.apply(lambda root: answer_the_rest(root, begun["id"]))
        assert (await door("trials_show", trial=begun["id"]))["state"] == "promoted"
        told = await uvm.missions.ask({"text": "Which colour is buoy 1?", "persona": "BABS", "effort": "reflex"})
        assert (told["answer"], (await door("status"))["models"]["BABS"]) == ("The colour is amber.", OTHER)
        await door("trials_undo", trial=begun["id"])
        assert (await door("status"))["models"] == status["models"]


async def test_the_sealed_questions_are_asked_in_copies_and_told_beside_the_trials(tmp_path: Path) -> None:
    """By the heartbeat, with the values that act; no mission and no memory of it is left in the image."""
    async with coloured(tmp_path) as (uvm, door, _):
        with uvm.image.snapshot() as root:
            source = next(iter(root["documents"]))
            before = [*gold_items.items_under(root, source)]
        sealed = [
            GoldItem(f"i-sealed-{n}", "A", f"Which colour is float {n}?", (gold,), source, "sealed", "tester", "")
            for n, gold in enumerate(("amber", "calm", "sea"))
        ]  # fmt: skip
        await uvm.image.shared.apply(lambda root: gold_items.put_items(root, source, [*before, *sealed]))
        assert (await door("trials"))["sealed"] == []
        told = await door("heartbeat_now")
        assert "sealed: 3 sealed questions, and the figure of this month" in told["did"]
        (figure,) = (await door("trials"))["sealed"]
        assert (figure["share"], figure["questions"]) == (0.667, 3)
        assert "sealed: nothing to do" in (await door("heartbeat_now"))["did"]
        with uvm.image.snapshot() as root:
            assert not list(root["missions"])


async def test_a_guest_sees_and_decides_no_trial_at_the_desk(tmp_path: Path) -> None:
    """Neither in the list nor by its id, whatever door."""
    async with coloured(tmp_path) as (uvm, door, _):
        trial, guest = await waiting_line(uvm, door), "key laptop"
        assert (await door("approvals", user=guest))["trials"] == []
        with pytest.raises(NotFound):
            await door("approvals", approval=trial, user=guest)
        for verb, more in (("approve", {"approvals": [trial]}), ("reject", {"approval": trial, "why": "no"})):
            with pytest.raises(NotFound):
                await door(verb, **limit_guest(verb, more, f"{guest} 0a1b"))
        assert (await door("trials_show", trial=trial))["state"] == "waiting"


async def test_a_question_of_a_person_ends_a_trial_at_once(tmp_path: Path) -> None:
    """While a model answers a question of the trial; nothing of that is noted, and it goes on later."""
    async with coloured(tmp_path) as (uvm, door, bridge):
        await door("trials_try", slot="BABS.line", value=LINE)
        bridge.slow, bridge.begun = asyncio.Event(), 0
        beating = asyncio.ensure_future(uvm.heartbeat.beat())
        await until(lambda: bridge.begun > 0)
        asking = asyncio.ensure_future(uvm.missions.ask({"text": "Who winds the lamp?", "effort": "reflex"}))
        await beating
        bridge.slow.set()
        await asking
        shown = await door("trials_show", trial="last")
        assert (shown["asked"], shown["state"]) == (0, "trying")


async def test_a_dream_of_a_person_ends_a_trial_at_once_too(tmp_path: Path) -> None:
    """Such a question is no mission of the image; trials and dreams have the few places for copies together."""
    async with coloured(tmp_path) as (uvm, door, bridge):
        await door("trials_try", slot="BABS.line", value=LINE)
        bridge.slow, bridge.begun = asyncio.Event(), 0
        beating = asyncio.ensure_future(uvm.heartbeat.beat())
        await until(lambda: bridge.begun > 0)
        brief = {"text": "Who winds the lamp?", "effort": "reflex"}
        dreaming = asyncio.ensure_future(door("dream_new", brief=brief, follow=True))
        await beating
        bridge.slow.set()
        assert (await dreaming)["status"] == "done"
        assert (await door("trials_show", trial="last"))["asked"] == 0


async def test_an_erasure_leaves_no_word_of_a_trial(tmp_path: Path) -> None:
    """The memory that questions were made of is erased: the answers of trials go with it."""
    async with coloured(tmp_path, memory=False) as (uvm, door, _):
        begun = await door("trials_try", slot="BABS.line", value=LINE)
        await door("heartbeat_now")
        assert (await door("trials_show", trial=begun["id"]))["examples"]
        with uvm.image.snapshot() as root:
            document = next(iter(root["documents"]))
        await door("erase", target=document, cascade=True)
        shown = await door("trials_show", trial=begun["id"])
        assert shown["asked"] > 0
        assert not shown["examples"]
    assert not files_with(tmp_path, b"The buoy at the pier is amber.")


async def test_a_model_that_goes_away_is_no_forms_fault(tmp_path: Path) -> None:
    """The question that it left unanswered is not noted, and the night ends."""
    async with coloured(tmp_path) as (_, door, bridge):
        begun = await door("trials_try", slot="BABS.line", value=LINE)
        bridge.gone_after = bridge.begun + 3
        await door("heartbeat_now")
        assert bridge.begun > bridge.gone_after
        shown = await door("trials_show", trial=begun["id"])
        assert (shown["asked"], shown["state"]) == (1, "trying")
        assert shown["calls"] == 3


async def test_an_image_from_before_is_asked_as_it_acts(tmp_path: Path) -> None:
    """A persona without a form of its prompts has that of its model's size, and no trial takes that for a failure."""
    async with coloured(tmp_path) as (uvm, door, bridge):

        def take(root: Root) -> None:
            for persona in PILLARS:
                delattr(named_objects(root)[prototype_name(persona)], "form")

        await uvm.image.shared.apply(take)
        begun = await door("trials_try", slot="BABS.form", value="full")
        assert begun["changes"][0]["before"] == "auto"
        bridge.history.clear()
        await door("heartbeat_now")
        shown = await door("trials_show", trial=begun["id"])
        assert (shown["wins"], shown["losses"], shown["calls"]) == (0, 0, len(bridge.history))
        assert shown["calls"] >= 2 * shown["asked"] > 0


async def test_an_erasure_waits_for_no_duty_that_waits_for_it(tmp_path: Path) -> None:
    """A duty that changes memories wants them for itself, as the erasure has them: one of both comes first."""
    async with coloured(tmp_path, memory=False) as (uvm, door, _):
        with uvm.image.snapshot() as root:
            document = next(iter(root["documents"]))
        begun = asyncio.Event()

        async def fold(allowance: Allowance) -> str:
            begun.set()
            await until(lambda: not allowance.go_on())
            await uvm.document_store.merge()
            return ""

        uvm.heartbeat.add(Duty("curator", lambda root: "", fold))
        beating = asyncio.ensure_future(door("heartbeat_now"))
        await begun.wait()
        await door("erase", target=document, cascade=True)
        assert (await beating)["ran"]
        with uvm.image.snapshot() as root:
            assert document not in root["documents"]


async def test_a_server_that_stops_waits_for_no_whole_beat(tmp_path: Path) -> None:
    """A beat that a person asked for is left at its next step."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        door, begun = Door(uvm), asyncio.Event()

        async def toil(allowance: Allowance) -> str:
            begun.set()
            await until(lambda: not allowance.go_on())
            return "a part"

        uvm.heartbeat.add(Duty("trials", lambda root: "", toil))
        beating = asyncio.ensure_future(door("heartbeat_now"))
        await begun.wait()
        await door.dispatcher.wait_until_settled()
        assert "trials: a part" in (await beating)["did"]


@pytest.mark.parametrize("text", ["[[[[" * 9_999, "{", '{"min_words": 8}', "7", "true"])
def test_a_value_is_json_or_a_text(text: str) -> None:
    """Whatever is written, something comes of it."""
    try:
        wanted = json.loads(text)
    except (ValueError, RecursionError):
        wanted = text
    assert read_value(text) == wanted
