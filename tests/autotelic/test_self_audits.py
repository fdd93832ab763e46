"""ALFRED's eyes: one brief for each figure that rose, known to its person and to no guest, and audits when asked."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.care.byte_scan import files_with
from tests.care.secret_mind import SECRET
from tests.history.test_as_of_past_questions import Door

from batos.autotelic.heartbeat import Allowance, Expense
from batos.autotelic.model_missions import ModelMissions
from batos.autotelic.self_audits import _AUDITS, _FIGURES, SelfAudits, find_figure
from batos.genesis.codex import codex as codices
from batos.image import roots
from batos.image.roots import Root
from batos.inference.ollama.bridge import ChatRequest
from batos.inference.ollama.catalogue import ModelRow
from batos.minds import own_figures
from batos.protocol.brief import File, MissionBrief
from batos.protocol.errors import OllamaUnreachable
from batos.records import own_briefs
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams

ROSE = "On 2026-11-30 there were 60 conflicts of commits in 12 missions."


class SayingBridge(ScriptedBridge):
    """A model that says this about whatever it is asked, or is away."""

    def __init__(self, says: str = "There were 60 conflicts of commits.") -> None:
        super().__init__(self._reply)
        self.says, self.is_away = says, False

    def _reply(self, request: ChatRequest) -> str:
        return self.says

    async def version(self) -> str:
        """Nothing answers while it is away."""
        self._answer()
        return await super().version()

    async def list(self) -> Sequence[ModelRow]:
        """Nothing answers while it is away."""
        self._answer()
        return await super().list()

    def _answer(self) -> None:
        if self.is_away:
            raise OllamaUnreachable("nothing answers")


@dataclass
class Days:
    """A mind with a known history of days, whose clock is set by hand."""

    uvm: UVM
    bridge: SayingBridge
    door: Door
    now: list[datetime] = field(default_factory=list)

    async def count(self, days: int, **counts: int) -> None:
        """Go on by so many days, of each of which the counters have this."""
        for _ in range(days):
            self.now[0] += timedelta(days=1)
            day = self.now[0].isoformat()[:10]
            told = {"asked": {"ended": 12, "tokens": 120}, "calls": 12, **counts}

            def write(root: Root, day: str = day, told: Mapping[str, Any] = told) -> None:
                root[roots.COUNTERS]["days"] = {**root[roots.COUNTERS].get("days", {}), day: told}

            await self.uvm.image.shared.apply(write)

    def own(self) -> list[dict[str, Any]]:
        """The missions that the mind asked itself, the oldest first."""
        found = [self.uvm.readings.mission(each["id"]) for each in self.uvm.readings.newest()]
        return [dict(each) for each in reversed(found) if each["brief"]["origin"]["door"] == "kernel"]

    async def beat(self) -> list[dict[str, Any]]:
        """The alarms that stand after a beat."""
        return list((await self.door("heartbeat_now"))["alarms"])


@asynccontextmanager
async def mind(home: Path, days: int = 24, **settings: Any) -> AsyncIterator[Days]:
    """A mind that knows so many days without trouble, up to 2026-11-29."""
    now, bridge = [datetime(2026, 11, 29, 12, tzinfo=UTC) - timedelta(days=days)], SayingBridge()
    seams = Seams(clock=lambda: now[0])
    async with scripted_uvm(home, bridge, seams=seams, user="ann", **settings) as uvm:
        told = Days(uvm, bridge, Door(uvm), now)
        await told.count(days)
        yield told


async def test_a_day_with_conflicts_is_a_brief_to_alfred(tmp_path: Path) -> None:
    """It is asked once while the alarm stands; status, show and why say what rose, who asked, and why that is one."""
    async with mind(tmp_path) as told:
        assert await told.beat() == []
        await told.count(1, conflicts=60)
        (alarm,) = await told.beat()
        (asked,) = told.own()
        assert (alarm["figure"], alarm["day"], alarm["mission"]) == ("conflicts", "2026-11-30", asked["id"])
        assert alarm["facts"][0] == ROSE
        assert alarm["answered"]
        assert asked["answer"] == "There were 60 conflicts of commits."
        assert asked["route"]["personas"] == ["ALFRED"]
        (recalled,) = asked["provenance"]["recalled"]
        assert (recalled["name"], recalled["trust"]) == ("counters", "tool")
        assert asked["provenance"]["sentences"][0]["state"] == "carried"
        assert asked["cost"]["calls"] == 1
        assert (await told.door("status"))["heartbeat"]["alarms"] == [alarm]
        assert asked["id"] in [each["id"] for each in (await told.door("missions", mind=True))["missions"]]
        why = await told.door("why", what=asked["id"])
        assert "asked by the mind itself: alarm conflicts" in why["text"]
        assert any(ROSE in each["text"] and "is an alarm" in each["text"] for each in why["because"])
        await told.count(1, conflicts=60)
        assert [each["mission"] for each in await told.beat()] == [asked["id"]]
        assert told.own() == [asked]


async def test_an_alarm_ends_and_another_day_may_have_one_again(tmp_path: Path) -> None:
    """When the figure is as usual again; on the day of an alarm there is no second one of its figure."""
    async with mind(tmp_path) as told:
        await told.count(1, conflicts=60)
        await told.beat()
        told.now[0] += timedelta(hours=1)
        await told.uvm.image.shared.apply(end_alarms)
        assert await told.beat() == []
        await told.count(8)
        assert await told.beat() == []
        await told.count(1, conflicts=90)
        assert [each["day"] for each in await told.beat()] == ["2026-12-09"]
        assert len(told.own()) == 2


def end_alarms(root: Root) -> None:
    """As if the figures had been as usual meanwhile."""
    known = own_briefs.list_alarms(root)
    own_briefs.put_alarms(root, {name: {**each, "standing": False} for name, each in known.items()})


async def test_a_wrong_figure_is_replaced(tmp_path: Path) -> None:
    """The computed sentences stand in the place of an answer with another number."""
    async with mind(tmp_path) as told:
        told.bridge.says = "There were 4711 conflicts of commits."
        await told.count(1, conflicts=60)
        await told.beat()
        assert told.own()[0]["answer"].startswith(ROSE)
        assert "4711" not in told.own()[0]["answer"]


async def test_where_no_model_answers_the_alarm_is_shown_and_asked_about_later(tmp_path: Path) -> None:
    """Nor is one asked where the budget of the day is spent."""
    async with mind(tmp_path) as told:
        await told.count(1, conflicts=60)
        told.bridge.is_away = True
        (alarm,) = await told.beat()
        assert (alarm["mission"], alarm["answered"]) == (None, False)
        told.bridge.is_away = False
        watch = audits(told.uvm).watch
        await watch(Allowance(left=Expense(100.0, 0, 0)))
        assert told.own() == []
        spent = Allowance()
        assert await watch(spent) == "conflicts rose"
        assert (spent.calls, len(told.own())) == (1, 1)


class Died(BaseException):
    """The process ended."""


@pytest.mark.parametrize("point", ["decided", "accepted", "answered"])
async def test_a_kill_between_decision_and_mission_sends_it_once(tmp_path: Path, point: str) -> None:
    """Before the mission was accepted, before it was begun, or before its answer was written down with the alarm."""
    async with mind(tmp_path, memory=False) as told:

        async def die(brief: Mapping[str, Any], files: Sequence[File]) -> Mapping[str, Any]:
            if point == "accepted":
                await told.uvm.missions.submit(brief, files, begin=False)
            if point == "answered":
                await told.uvm.missions.ask(brief, files)
            raise Died

        await told.count(1, conflicts=60)
        with pytest.raises(Died):
            await audits(told.uvm, die).watch(Allowance())
    async with mind(tmp_path, 0, memory=False) as told:
        with told.uvm.image.snapshot() as root:
            assert [each["mission"] for each in own_briefs.list_standing(root)] == [None]
        (alarm,) = await told.beat()
        assert [each["id"] for each in told.own()] == [alarm["mission"]]
        assert told.own()[0]["cost"]["calls"] == 1


def audits(uvm: UVM, ask: Any = None) -> SelfAudits:
    """What a server has."""
    missions = ModelMissions(ask or uvm.missions.ask, uvm.readiness.answers, uvm.readiness.check)
    return SelfAudits(uvm.image, uvm.clock, uvm.reconciler, uvm.counters.snapshot, uvm.rates, missions, "ann")


async def test_a_guest_sees_no_alarm_and_no_figure_of_it(tmp_path: Path) -> None:
    """Neither by status and heartbeat, nor by a brief that names the kernel's door."""
    async with mind(tmp_path) as told:
        await told.count(1, conflicts=60)
        assert await told.beat()
        for verb in ("status", "heartbeat"):
            found = await told.door(verb, user="key bob")
            assert found.get("heartbeat", found)["alarms"] == []
        brief = {"text": "What rose?", "user": "key bob", "origin": {"door": "kernel", "client": "alarm conflicts"}}
        with told.uvm.image.snapshot() as root:
            assert own_briefs.find_facts(root, MissionBrief.from_document({**brief, "user": "ann", "attachments": []}))
            assert own_briefs.find_facts(root, MissionBrief.from_document({**brief, "attachments": []})) == ()


async def test_an_erased_brief_leaves_no_word_of_its_answer(tmp_path: Path) -> None:
    """The figure stays, as the counters do; the alarm is not answered any more."""
    async with mind(tmp_path / "home", memory=False) as told:
        told.bridge.says = f"There were 60 conflicts of commits; {SECRET}."
        await told.count(1, conflicts=60)
        (alarm,) = await told.beat()
        assert SECRET in told.own()[0]["answer"]
        await told.door("erase", target=alarm["mission"], user="ann")
        assert await asyncio.to_thread(files_with, tmp_path, SECRET.encode()) == set()
        (left,) = (await told.door("heartbeat"))["alarms"]
        assert left["facts"] == alarm["facts"]


async def test_erased_words_leave_the_facts_of_alarms(tmp_path: Path) -> None:
    """A finding may name a tool by the words of whoever wished for it."""
    async with mind(tmp_path / "home", memory=False) as told:

        def put(root: Root) -> None:
            own_briefs.put_facts(root, "alarm audit", [("audit", f"image.methods: {SECRET}_", None)])

        await told.uvm.missions.ask({"text": f"Make {SECRET}.", "effort": "reflex"})
        await told.uvm.image.shared.apply(put)
        await told.door("erase", target=SECRET, user="ann")
        assert await asyncio.to_thread(files_with, tmp_path, SECRET.encode()) == set()


async def test_a_check_that_fails_is_an_alarm_without_a_history(tmp_path: Path) -> None:
    """The audit is computed anew by each beat, and its alarm ends when all checks hold."""
    async with mind(tmp_path) as told:
        await told.uvm.image.shared.apply(lambda root: root[roots.GENESIS].update(codex_digest="0" * 64))
        (alarm,) = await told.beat()
        assert (alarm["figure"], alarm["answered"]) == ("audit", True)
        assert "the image holds the codex 000000000000" in alarm["facts"][1]
        assert await told.beat() == []  # the mission's own check has brought the codex into the image again


async def test_a_person_has_the_running_system_audited(tmp_path: Path) -> None:
    """While the heartbeat is off: two missions by ALFRED's protocols beside what is computed, anew each time."""
    async with mind(tmp_path) as told:
        told.bridge.says = "All checks hold."
        found = await told.door("trials_audit")
        assert told.door.told.count("audit.step") == 3
        assert found["ok"]
        assert found["error"] is None
        assert all(each["ok"] for each in found["findings"])
        assert any("conflict" in each for each in found["figures"])
        slots = []
        for each, name in zip(found["audits"], _AUDITS, strict=True):
            assert each["name"] == name
            shown = await told.door("show", mission=each["mission"])
            slots.append(shown["provenance"]["gate"]["protocol"]["slot"])
            assert shown["answer"] == each["answer"]
        assert slots == ["system_integrity_audit_protocol_", "cognitive_efficiency_audit_protocol_"]
        held = len(found["findings"])
        assert found["audits"][0]["answer"] == f"In the integrity audit {held} of {held} checks hold."
        again = await told.door("trials_audit")
        assert {each["mission"] for each in again["audits"]}.isdisjoint(each["mission"] for each in found["audits"])


async def test_without_a_model_the_computed_findings_stand_alone(tmp_path: Path) -> None:
    """The error says why; what can be computed without Ollama is there."""
    async with mind(tmp_path) as told:
        told.bridge.is_away = True
        found = await told.door("trials_audit")
        assert found["audits"] == []
        assert found["error"]["code"] == OllamaUnreachable.code
        assert {each["id"] for each in found["findings"] if not each["ok"]} == {"models.listed"}
        assert found["figures"]
        assert told.own() == []


def of(figure: str) -> str:
    """A figure, with a check or a code where it has one for each."""
    return figure + {"gate": ".numbers", "failures": ".timed_out"}.get(figure, "")


@pytest.mark.parametrize("figure", _FIGURES)
async def test_the_codex_knows_the_briefs_by_their_words(tmp_path: Path, figure: str) -> None:
    """The headline of each is an exemplar of ALFRED's, and the words alone lead to him."""
    title = find_figure(of(figure)).title
    assert title in tomllib.loads(codices.read_shipped()["alfred.toml"])["exemplars"]
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        text = f"Internal alarm of 2026-11-30. {title}. Report what rose, and what it was before."
        asked = await uvm.missions.ask({"text": text, "effort": "reflex", "policy": {"memory": "none"}})
        assert asked["route"]["personas"] == [own_figures.KEEPER]
