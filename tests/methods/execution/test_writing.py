"""What methods write: in one step when they have ended well, to their receiver alone, trusted no more than it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from persistent.mapping import PersistentMapping
from tests.methods.execution.method_mind import BRICK, MethodMind, put
from tests.minds.scripted import GOOD, LAMP, SLOTS, ask, change, kind, submit

from batos.image.roots import named_objects
from batos.inference.ollama.bridge import ChatRequest
from batos.protocol.errors import BatosError, CovenantViolation, MethodFailed, RunnerDied, StreamCut

#: A facet that asks, and then counts in a slot that all of them share.
COUNTING = """
async def {slot}(self, query):
    before = self.asked
    reply = await self.infer_(query)
    self.asked = before + 1
    self.heard.append({slot!r})
    self._p_changed = True
    return reply
"""


async def test_parts_that_write_the_same_slot_lose_nothing(mind: MethodMind) -> None:
    """Three facets read a slot, wait for the model and write: each that rested on what changed is run again, unpaid."""
    await mind.learn(**{slot: COUNTING.format(slot=slot) for slot in SLOTS})
    await mind.write(asked=0, heard=[])
    told = await ask(mind.uvm)
    assert mind.slots()["asked"] == 3
    assert sorted(mind.slots()["heard"]) == sorted(SLOTS)
    assert told["cost"]["calls"] == len(mind.bridge.history) == 5
    assert told["cost"]["from_journal"] >= 2


#: What no method writes, and what is said of it where the guardian does not refuse it before.
WRONG = [
    ("self.core_identity = 'another'", "the codex's or the kernel's"),
    ("self.name = 'another'", "the codex's or the kernel's"),
    ("self.facets = []", "the codex's or the kernel's"),
    ("self.prompts['weave'] = 'Obey $parts $query'", "the codex's or the kernel's"),
    ("self.trust = 'user'", "the codex's or the kernel's"),
    ("self.slot_trust = {}", "the codex's or the kernel's"),
    ("self.guide_facet_ = 'text'", "is behaviour"),
    ("self.add_ = 'text'", "is behaviour"),
    ("self.log_ = 'text'", "is behaviour"),
    ("del self.model", "the codex's or the kernel's"),
    ("del self.inherited", "is its parent's"),
    ("self.kept['a'] = 1", "a container of the kernel's"),
]


async def test_what_no_method_writes(mind: MethodMind) -> None:
    """Who a persona is, what the codex declares, behaviour, trust: refused, and nothing else of the run is kept."""
    source = "def try_{n}(self):\n    self.spare = 1\n    {body}\n    self._p_changed = True\n"
    await mind.learn(add_="def add_(self):\n    return 1\n")
    await mind.learn(**{f"try_{n}": source.format(n=n, body=body) for n, (body, _) in enumerate(WRONG)})
    await _give(mind)
    before = mind.slots()
    for number, (_, why) in enumerate(WRONG):
        with pytest.raises(MethodFailed) as raised:
            await mind.send(f"try_{number}")
        assert why in str(raised.value) or "guardian refuses" in str(raised.value)
    assert mind.slots() == before


async def _give(mind: MethodMind) -> None:
    def work(root: Any) -> None:
        root[BRICK].kept = PersistentMapping()
        root["traits_obj"].inherited = [1]

    await change(mind.uvm, work)


async def test_a_container_that_is_inherited_is_written_to_the_receiver(mind: MethodMind) -> None:
    """What a parent holds stays the parent's: the changed copy is the receiver's own slot."""
    await mind.learn(grow_="def grow_(self):\n    self.inherited.append(2)\n    self._p_changed = True\n")
    await _give(mind)
    await mind.send("grow_")
    assert mind.slots()["inherited"] == [1, 2]
    assert mind.slots("traits_obj")["inherited"] == [1]


async def test_an_own_slot_can_be_deleted(mind: MethodMind) -> None:
    """What was there is in the mission's provenance."""
    await mind.learn(drop_="def drop_(self):\n    del self.spare\n    self._p_changed = True\n")
    await mind.write(spare={"a": [1]})
    told = await mind.send("drop_")
    assert "spare" not in mind.slots()
    assert [(each["slot"], each["had"], each["former"]) for each in told["provenance"]["written"]] == [
        ("spare", True, {"a": [1]})
    ]


async def test_a_write_without_the_marker_is_nowhere(mind: MethodMind) -> None:
    """The guardian refuses it before it runs; the part fails and the image is as it was."""
    await mind.learn(try_="def try_(self):\n    self.total = 1\n")
    with pytest.raises(CovenantViolation):
        await mind.send("try_")
    assert "total" not in mind.slots()


async def test_a_write_that_changes_nothing_writes_no_record(mind: MethodMind) -> None:
    """A slot that is given the value that it has is no change: the object is not committed again."""
    await mind.learn(same_="def same_(self):\n    self.total = 1\n    self._p_changed = True\n")
    await mind.write(total=1)
    before = _serial(mind)
    told = await mind.send("same_")
    assert (told["provenance"]["written"], _serial(mind)) == ([], before)


def _serial(mind: MethodMind) -> bytes:
    with mind.uvm.image.snapshot() as root:
        named_objects(root)[BRICK]._p_activate()
        serial: bytes = named_objects(root)[BRICK]._p_serial
        return serial


async def test_what_comes_from_outside_stays_marked(mind: MethodMind) -> None:
    """A slot that a method wrote beside a file is external: for who reads it, and for what is made from it."""
    await mind.learn(
        tamland_facet_="""
        async def tamland_facet_(self, query):
            self.found = await self.infer_(query)
            self._p_changed = True
            return self.found
        """,
        tell_="def tell_(self):\n    return self.found\n",
        keep_="def keep_(self):\n    self.kept = 'It says: ' + self.found\n    self._p_changed = True\n",
        renew_="def renew_(self):\n    self.found = 'nothing'\n    self._p_changed = True\n",
    )
    await ask(mind.uvm, files=(LAMP,))
    assert mind.slots()["slot_trust"] == {"found": "external"}
    assert (await mind.send("found"))["trust"]["lineage"] == "external"
    assert (await mind.send("tell_"))["trust"]["lineage"] == "external"
    await mind.send("keep_")
    assert mind.slots()["slot_trust"] == {"found": "external", "kept": "external"}
    assert (await mind.send("name"))["trust"]["lineage"] == "model"


async def test_a_council_with_methods_in_which_one_fails(mind: MethodMind) -> None:
    """What the failing part of one persona wrote is nowhere, what the others' parts wrote is in the image."""
    source = """
    def {slot}(self, query):
        self.thought = self.thought + [query]
        self._p_changed = True
        if self.name == {name!r}:
            return self.nothing_here
        return "Well."
    """
    await mind.learn(tamland_facet_=source.format(slot="tamland_facet_", name="BRICK"))
    await put(mind.uvm, "robin_prototype_obj", sage_facet_=source.format(slot="sage_facet_", name="nobody"))
    for receiver in (BRICK, "robin_prototype_obj"):
        await mind.write(receiver, thought=[])
    mind.script.voiced = GOOD
    told = await ask(mind.uvm, effort="council")
    assert told["status"] == "done"
    voices = {voice["persona"]: voice["voices"] for voice in told["voices"]}
    assert "AttributeError" in voices["BRICK"][0]["failure"]["message"]
    assert voices["ROBIN"][0]["answer"] == "Well."
    assert mind.slots()["thought"] == []
    assert len(mind.slots("robin_prototype_obj")["thought"]) == 1
    paths = [each["path"] for each in told["provenance"]["methods"] if each["as"] == "method"]
    assert sorted(paths) == ["council/brick/delegating/tamland", "council/robin/delegating/sage"]


async def test_a_persona_that_fails_leaves_nothing_that_its_methods_wrote(mind: MethodMind) -> None:
    """Its facet wrote and ended well, and its own weave failed: the slot is as it was, and the others' stand."""
    source = """
    def {slot}(self, query):
        self.thought = self.thought + [query]
        self._p_changed = True
        return "Well."
    """
    await mind.learn(tamland_facet_=source.format(slot="tamland_facet_"))
    await put(mind.uvm, "robin_prototype_obj", sage_facet_=source.format(slot="sage_facet_"))
    for receiver in (BRICK, "robin_prototype_obj"):
        await mind.write(receiver, thought=[])

    def respond(request: ChatRequest) -> str | BatosError:
        fails = kind(request) == "voiced" and request.model.startswith("batos-brick")
        return RunnerDied("the runner stopped") if fails else mind.script(request)

    mind.bridge.respond = respond
    mind.script.woven = GOOD
    told = await ask(mind.uvm, effort="council")
    assert told["status"] == "done"
    failed = {voice["persona"] for voice in told["voices"] if voice.get("failure")}
    assert failed == {"BRICK"}
    assert (mind.slots()["thought"], len(mind.slots("robin_prototype_obj")["thought"])) == ([], 1)
    assert {each["slot"] for each in told["provenance"]["written"]} == {"thought"}


async def test_what_personas_count_together_is_not_lost(mind: MethodMind) -> None:
    """Two personas' methods write one slot of a shared object: who comes second thinks again on what the first left."""
    await put(
        mind.uvm,
        "tools_obj",
        count_="""
        def count_(self):
            self.counted = self.counted + 1
            self._p_changed = True
            return self.counted
        """,
    )
    await mind.write("tools_obj", counted=0)
    source = "async def {0}(self, query):\n    await self.tools.count_()\n    return 'Well.'\n"
    await mind.learn(tamland_facet_=source.format("tamland_facet_"))
    await put(mind.uvm, "robin_prototype_obj", sage_facet_=source.format("sage_facet_"))
    told = await ask(mind.uvm, effort="council")
    assert (told["status"], [voice.get("failure") for voice in told["voices"]]) == ("done", [None] * 4)
    assert mind.slots("tools_obj")["counted"] == 2


async def test_eight_missions_of_methods_at_once(mind: MethodMind) -> None:
    """Each pays for its own calls once, every count arrives, and each answer is its own."""
    await mind.learn(**{slot: COUNTING.format(slot=slot) for slot in SLOTS})
    await mind.write(asked=0, heard=[])
    told = await asyncio.gather(*(ask(mind.uvm) for _ in range(8)))
    assert {each["status"] for each in told} == {"done"}
    assert mind.slots()["asked"] == len(mind.slots()["heard"]) == 24
    assert len(mind.bridge.history) == 40
    assert sum(each["cost"]["calls"] for each in told) == 40


async def test_a_failed_mission_pays_nothing_twice_when_it_is_asked_again(mind: MethodMind) -> None:
    """The weave was cut: what the methods asked is served to the mission that names the failed one as its ancestor."""
    await mind.learn(**{slot: COUNTING.format(slot=slot) for slot in SLOTS})
    await mind.write(asked=0, heard=[])
    mind.script.woven, woven = StreamCut("cut"), mind.script.woven
    mission = await submit(mind.uvm)
    with pytest.raises(StreamCut):
        await mind.uvm.missions.run(mission)
    assert mind.slots()["asked"] == 0
    mind.script.woven = woven
    again = await ask(mind.uvm, ancestor=mission)
    assert again["cost"]["calls"] == 1
    assert mind.slots()["asked"] == 3
