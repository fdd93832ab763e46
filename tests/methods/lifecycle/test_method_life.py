"""Seeded methods in real missions: they run in the cell, the gate judges the answers, and the bad ones go."""

from __future__ import annotations

import asyncio
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.methods.execution.method_mind import open_method_mind
from tests.methods.lifecycle.brick import seeded
from tests.minds.scripted import BAD, LAMP, QUESTION, SLOTS, Script
from tests.minds.scripted import GOOD as WELL

from batos.genesis.codex.codex import PILLARS
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.protocol.errors import BatosError, MethodFailed
from batos.protocol.mission_documents import MissionDocument
from batos.testing import ScriptedBridge
from batos.uvm import UVM

BRICK, ROBIN = "brick_prototype_obj", "robin_prototype_obj"
#: What BRICK is given: one raises, one says what is nowhere written, one asks four times what can be asked once.
SEEDED = {
    SLOTS[0]: """
        async def SELECTOR(self, query):
            raise ValueError("not today")
        """,
    SLOTS[1]: """
        async def SELECTOR(self, query):
            return "The pier was made of old cheese."
        """,
    SLOTS[2]: """
        async def SELECTOR(self, query):
            found = await self.infer_(query)
            for number in range(4):
                found = await self.infer_(f"{query} ({number})")
            return found
        """,
}
GOOD = """
async def SELECTOR(self, query):
    return await self.infer_(query)
"""


class Weaving(Script):
    """A mind whose answer is as sound as what it is woven of."""

    def __call__(self, request: ChatRequest) -> str | BatosError:
        """Rubbish in, a citation of nothing out."""
        rubbish = any("old cheese" in message["content"] for message in request.messages[1:])
        self.woven = self.revised = BAD if rubbish else WELL
        return super().__call__(request)


async def ask(uvm: UVM, persona: str) -> MissionDocument:
    """One cycle of that persona over the same facts."""
    return await uvm.missions.ask({"text": QUESTION, "persona": persona, "effort": "cycle"}, [LAMP])


def acting(uvm: UVM, holder: str) -> set[str]:
    """The slots of an object in which a method acts."""
    return {line["selector"] for line in uvm.lifecycle.list_methods(holder) if line["active"]}


async def test_the_good_ones_are_left(tmp_path: Path) -> None:
    """Of methods that raise, answer rubbish or cost too much none is left; what does as well as its intent stays."""
    async with open_method_mind(tmp_path / "home", Weaving(), install="never", method_control=3, method_uses=3) as mind:
        uvm = mind.uvm
        for slot, source in SEEDED.items():
            await uvm.lifecycle.install(seeded(uvm, BRICK, slot, textwrap.dedent(source)))
        for slot in PILLARS["ROBIN"]:
            await uvm.lifecycle.install(seeded(uvm, ROBIN, slot, GOOD))
        rounds = 0
        while acting(uvm, BRICK) and rounds < 150:
            rounds += 1
            await ask(uvm, "BRICK")
            await ask(uvm, "ROBIN")
        assert acting(uvm, BRICK) == set(), uvm.lifecycle.list_methods(BRICK)
        assert acting(uvm, ROBIN) == set(PILLARS["ROBIN"])
        lines = {line["selector"]: line for line in uvm.lifecycle.list_methods(BRICK)}
        assert "failed in" in str(lines[SLOTS[0]]["reason"])
        assert "ended badly" in str(lines[SLOTS[1]]["reason"])
        assert lines[SLOTS[2]]["reason"]
        assert len(mind.told("method.retired")) == 3
        # What was retired is interpreted again, and its own answers are sound.
        shown = await ask(uvm, "BRICK")
        assert {each["as"] for each in shown["provenance"]["methods"]} == {"interpreted intent"}
        assert shown["provenance"]["gate"]["faults"] == []


async def test_a_method_that_fails_its_missions_is_counted_all_the_same(tmp_path: Path) -> None:
    """A mission that failed leaves no thought; what it used is in the ledger, and after enough the method goes."""
    async with open_method_mind(tmp_path / "home", install="never", method_control=0, method_uses=3) as mind:
        await mind.uvm.lifecycle.install(seeded(mind.uvm, BRICK, SLOTS[0], textwrap.dedent(SEEDED[SLOTS[0]])))
        for number in range(3):
            assert acting(mind.uvm, BRICK) == {SLOTS[0]}, number
            with pytest.raises(MethodFailed):
                await mind.send(SLOTS[0], "a shed")
        (line,) = mind.uvm.lifecycle.list_methods(BRICK)
        assert (line["state"], line["calls"], line["faults"]) == ("retired", 3, 3)
        found = await mind.send(SLOTS[0], "a shed")
        assert [each["as"] for each in found["provenance"]["methods"]] == ["interpreted intent"]


class QueueingBridge(ScriptedBridge):
    """A slow daemon with one slot: who comes through a cell comes last, and waits for the others' answers."""

    async def think(self, request: ChatRequest, *args: Any, **more: Any) -> Answer:
        """The answer, which took the runner half a second, whoever had to wait for it."""
        answer = await super().think(request, *args, **more)
        waited = 6.0 if "Literally: " in request.messages[-1]["content"] else 0.0
        return replace(answer, total_seconds=0.5 + waited, evaluation_seconds=0.5)


async def test_no_method_goes_for_what_it_waits_for(tmp_path: Path) -> None:
    """All facets of all personas have a sound method, missions run side by side on a slow model: none is retired."""
    source = GOOD.replace("infer_(query)", "infer_('Literally: ' + query)")
    rules: dict[str, Any] = {"method_control": 2, "method_uses": 3}
    async with open_method_mind(tmp_path / "home", bridge=QueueingBridge(Script()), install="never", **rules) as mind:
        holders = {persona: f"{persona.lower()}_prototype_obj" for persona in PILLARS}
        for persona, holder in holders.items():
            for slot in PILLARS[persona]:
                await mind.uvm.lifecycle.install(seeded(mind.uvm, holder, slot, source))
        for _ in range(60):  # a mission's id decides who is its control: seldom more than fifteen rounds
            await asyncio.gather(*(ask(mind.uvm, persona) for persona in PILLARS))
            lines = [line for holder in holders.values() for line in mind.uvm.lifecycle.list_methods(holder)]
            if all(line["control"] >= 3 and line["chosen"] >= 3 for line in lines):
                break
        for persona, holder in holders.items():
            assert acting(mind.uvm, holder) == set(PILLARS[persona]), mind.uvm.lifecycle.list_methods(holder)
            for line in mind.uvm.lifecycle.list_methods(holder):
                assert line["control"] >= 3
                assert line["seconds_saved"] is not None
                assert abs(line["seconds_saved"]) < line["chosen"] * 0.25
