"""The UVM: genesis, the check before thinking, recovery, and what is served while Ollama is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.image.open_image import dump
from tests.minds.scripted import QUESTION, Script, ask, kind, stepping, submit
from tests.waiting import a_moment

from batos.config import Settings
from batos.events import Events
from batos.genesis.codex.codex import PILLARS
from batos.image import roots
from batos.inference.ollama.bridge import Answer, ChatRequest, PullProgress
from batos.inference.ollama.catalogue import ModelRow
from batos.protocol.errors import (
    BatosError,
    BriefError,
    CodexError,
    ModelMissing,
    NotFound,
    OllamaTimeout,
    OllamaUnreachable,
)
from batos.routing.lexical import lessons_of
from batos.testing import ScriptedBridge, scripted_uvm, shipped_models
from batos.uvm import UVM, Seams, open_uvm

BASE, EMBEDDER = shipped_models()


class AwayBridge(ScriptedBridge):
    """A daemon that is not there."""

    def __init__(self, error: BatosError | None = None) -> None:
        super().__init__(Script())
        self.error = error or OllamaUnreachable("nothing listens")

    async def version(self) -> str:
        """Nothing answers."""
        raise self.error

    async def list(self) -> Sequence[ModelRow]:
        """Nothing answers."""
        raise self.error

    async def think(self, request: ChatRequest, on_token: Any = None, *, stream: bool = True) -> Answer:
        """Nothing answers."""
        self.history.append(request)
        raise self.error


class WatchedBridge(ScriptedBridge):
    """Remembers what was pulled and created."""

    def __init__(self, models: tuple[str, ...] = ()) -> None:
        super().__init__(Script(), models)
        self.pulled: list[str] = []
        self.created: list[str] = []

    async def pull(self, model: str) -> AsyncIterator[PullProgress]:  # type: ignore[override]  # an iterator is all it is
        """Remembered."""
        self.pulled.append(model)
        async for progress in super().pull(model):
            yield progress

    async def create(self, model: str, **given: Any) -> AsyncIterator[PullProgress]:  # type: ignore[override]  # the same
        """Remembered."""
        self.created.append(model)
        async for progress in super().create(model, **given):
            yield progress


@asynccontextmanager
async def opened(home: Path, bridge: ScriptedBridge) -> AsyncIterator[UVM]:
    """A UVM on an image in files, as a process opens it: nothing is done beforehand."""
    settings = Settings(home=home, user="tester")
    async with open_uvm(settings, Events(log=False), Seams(bridge=bridge)) as uvm:
        yield uvm


async def test_genesis_makes_everything_and_twice_changes_nothing(tmp_path: Path) -> None:
    """The first run pulls nothing that is there and makes four models; the second writes no object at all."""
    bridge = WatchedBridge()
    async with opened(tmp_path, bridge) as uvm:
        first = await uvm.readiness.genesis()
        assert first.changes
        assert len(bridge.created) == 4
        assert bridge.pulled == []
        before = dump(uvm.image)
        second = await uvm.readiness.genesis()
        assert second.changes == ()
        assert second.plan.is_satisfied
        assert len(bridge.created) == 4
        assert dump(uvm.image) == before
        assert all(name in root for root in [await _root(uvm)] for name in roots.OBJECTS)
        assert second.as_dict().keys() == {"plan", "done", "changes", "found", "audit", "audited_at"}


async def _root(uvm: UVM) -> Mapping[str, Any]:
    with uvm.image.snapshot() as root:
        return dict(root)


async def test_genesis_teaches_the_router(tmp_path: Path) -> None:
    """Genesis embeds the exemplars of personas and protocols; what comes after finds that learnt and embeds none."""
    bridge = ScriptedBridge(vectors=lambda text: [1.0, len(text) / 100, 0.5])
    async with opened(tmp_path, bridge) as uvm:
        await uvm.readiness.genesis()
        lessons = lessons_of(uvm.reconciler.codex().personas.values())
        exemplars = [text for each in lessons for text in each.questions]
        assert bridge.embedded == exemplars
        await uvm.readiness.check()
        await uvm.readiness.genesis()
        assert (await ask(uvm, effort="reflex"))["status"] == "done"
        # The answer is compared with its document by their vectors, since words do not carry it.
        assert bridge.embedded[: len(exemplars)] == exemplars
        assert not set(bridge.embedded[len(exemplars) :]) & set(exemplars)


async def test_genesis_in_a_new_process_changes_nothing_either(tmp_path: Path) -> None:
    """What was written is what is read: another process finds the image as the codex says it."""
    bridge = WatchedBridge()
    async with opened(tmp_path, bridge) as uvm:
        await uvm.readiness.genesis()
    async with opened(tmp_path, bridge) as uvm:
        assert (await uvm.readiness.genesis()).changes == ()


async def test_genesis_pulls_what_is_missing(tmp_path: Path) -> None:
    """Base and embedder are pulled when the daemon has neither."""
    bridge = WatchedBridge(("something:else",))
    async with opened(tmp_path, bridge) as uvm:
        await uvm.readiness.genesis()
    assert set(bridge.pulled) == {BASE, EMBEDDER}


async def test_the_check_makes_personas_without_pulling(tmp_path: Path) -> None:
    """A persona's model that was deleted behind our back is made again before a mission; nothing is pulled."""
    bridge = WatchedBridge()
    async with opened(tmp_path, bridge) as uvm:
        await uvm.readiness.genesis()
        gone = next(name for name in bridge.rows if name.startswith("batos-brick"))
        del bridge.rows[gone]
        bridge.created.clear()
        shown = await ask(uvm)
    assert bridge.created == [gone]
    assert bridge.pulled == []
    assert shown["status"] == "done"


async def test_the_check_is_enough_for_a_first_mission(tmp_path: Path) -> None:
    """With the bases there, asking works before anyone ran genesis: only what needs no network is done."""
    bridge = WatchedBridge()
    async with opened(tmp_path, bridge) as uvm:
        shown = await ask(uvm)
    assert shown["status"] == "done"
    assert len(bridge.created) == 4
    assert bridge.pulled == []


async def test_a_missing_base_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    """Gigabytes are not pulled by asking: the mission is failed and says what to run."""
    bridge = WatchedBridge((EMBEDDER,))
    async with opened(tmp_path, bridge) as uvm:
        with pytest.raises(ModelMissing) as raised:
            await uvm.readiness.check()
        assert raised.value.model == BASE
        assert "batos genesis" in raised.value.remedy
        mission = await submit(uvm)
        with pytest.raises(ModelMissing):
            await uvm.missions.run(mission)
        shown = uvm.readings.mission(mission)
        assert shown["status"] == "failed"
        assert "batos genesis" in shown["reason"]["remedy"]
    assert bridge.pulled == []


async def test_a_missing_embedder_keeps_nobody_from_asking(tmp_path: Path) -> None:
    """Without the embedder there is no search by meaning, and everything else."""
    bridge = WatchedBridge((BASE,))
    async with opened(tmp_path, bridge) as uvm:
        assert (await ask(uvm))["status"] == "done"


@pytest.mark.parametrize("error", [OllamaUnreachable("nothing listens"), OllamaTimeout("connect", 5.0)])
async def test_with_ollama_away_what_was_paid_is_served(tmp_path: Path, error: BatosError) -> None:
    """All five answers are in the journal when the process dies: the next one answers without any call."""
    async with scripted_uvm(tmp_path, ScriptedBridge(Script()), memory=False) as uvm:
        mission = await submit(uvm)
        await uvm.image.move(mission, "running")
        async with stepping(uvm, mission) as left:
            await left.machine.run(left.cycle)
            await uvm.journal.flush(mission)
    away = AwayBridge(error)
    async with opened(tmp_path, away) as uvm:
        assert await uvm.missions.recover() == [mission]
        shown = await uvm.missions.run(mission)
        again = await ask(uvm, ancestor=mission)
    assert shown["status"] == again["status"] == "done"
    assert (shown["cost"]["calls"], again["cost"]["calls"]) == (5, 0)
    assert shown["cost"]["from_journal"] == again["cost"]["from_journal"] == 5
    assert away.history == []


async def test_with_ollama_away_a_new_question_fails_with_a_remedy(tmp_path: Path) -> None:
    """Nothing was paid for it: FAILED, with how to start the daemon; the image lives on."""
    async with scripted_uvm(tmp_path, ScriptedBridge(Script()), memory=False):
        pass
    async with opened(tmp_path, AwayBridge()) as uvm:
        mission = await submit(uvm)
        with pytest.raises(OllamaUnreachable):
            await uvm.missions.run(mission)
        shown = uvm.readings.mission(mission)
    assert shown["status"] == "failed"
    assert "ollama serve" in shown["reason"]["remedy"]


async def test_with_ollama_away_a_new_image_is_untouched(tmp_path: Path) -> None:
    """Genesis cannot begin: the error is Ollama's, and no object was written."""
    async with opened(tmp_path, AwayBridge()) as uvm:
        before = dump(uvm.image)
        with pytest.raises(OllamaUnreachable):
            await uvm.readiness.genesis()
        assert dump(uvm.image) == before
        mission = await submit(uvm)
        with pytest.raises(OllamaUnreachable):
            await uvm.missions.run(mission)
        assert uvm.readings.mission(mission)["status"] == "failed"


async def test_recovery_queues_what_was_left_and_publishes_what_was_committed(tmp_path: Path) -> None:
    """One mission died while thinking, one between its commit and its publication, one was never begun."""
    async with scripted_uvm(tmp_path, ScriptedBridge(Script()), memory=False) as uvm:
        thinking, committed, queued = [await submit(uvm, f"{QUESTION} ({number})") for number in range(3)]
        await uvm.image.move(thinking, "running")
        await uvm.image.move(committed, "running")
        async with stepping(uvm, committed) as left:
            await left.machine.run(left.cycle)
            left.context.mission.thought.states = left.attempt.states
            await left.transaction.commit(left.context.mission.thought)
    bridge = ScriptedBridge(Script())
    async with opened(tmp_path, bridge) as uvm:
        assert await uvm.missions.recover() == [thinking, queued]
        assert uvm.readings.mission(committed)["status"] == "done"
        assert uvm.readings.mission(committed)["answer"]
        assert [uvm.readings.mission(each)["status"] for each in (thinking, queued)] == ["queued", "queued"]
        assert await uvm.missions.recover() == [thinking, queued]
        for mission in (thinking, queued):
            assert (await uvm.missions.run(mission))["status"] == "done"
        assert await uvm.missions.recover() == []
        with uvm.image.snapshot() as root:
            assert root[roots.STATISTICS]["missions"] == {"BRICK": 3}


async def test_a_changed_codex_acts_at_the_next_check(tmp_path: Path) -> None:
    """A house rule written into the home's codex is in the next mission's prompt, after a check and no genesis."""
    bridge = ScriptedBridge(Script())
    async with opened(tmp_path, bridge) as uvm:
        await ask(uvm)
        path = tmp_path / "codex" / "mind.toml"
        rules = path.read_text(encoding="utf-8").replace("- Answer every", "- Be brief.\n- Answer every", 1)
        path.write_text(rules, encoding="utf-8")
        await uvm.readiness.check()
        await ask(uvm)
    assert "- Be brief." in bridge.history[-1].messages[0]["content"]
    assert "- Be brief." not in bridge.history[0].messages[0]["content"]


def _codex_digest(uvm: UVM) -> str:
    with uvm.image.snapshot() as root:
        return str(root[roots.GENESIS]["codex_digest"])


async def test_memory_embeds_without_taking_up_a_changed_codex(tmp_path: Path) -> None:
    """`codex diff` shows a change until a mission begins, although parts of memory get vectors in between."""
    async with opened(tmp_path, ScriptedBridge(Script())) as uvm:
        await uvm.readiness.genesis()
        before = await uvm.embedder_finder.find()
        path = tmp_path / "codex" / "mind.toml"
        path.write_text(
            path.read_text(encoding="utf-8").replace("- Answer every", "- Be brief.\n- Answer every", 1), "utf-8"
        )
        known = _codex_digest(uvm)
        assert (await uvm.embedder_finder.find()).digest == before.digest
        assert _codex_digest(uvm) == known
        await uvm.readiness.check()
        assert _codex_digest(uvm) != known


async def test_a_broken_codex_stops_the_check_with_file_and_line(tmp_path: Path) -> None:
    """Nothing is written of a codex that cannot be read."""
    async with opened(tmp_path, ScriptedBridge(Script())) as uvm:
        await uvm.readiness.genesis()
        before = dump(uvm.image)
        (tmp_path / "codex" / "brick.toml").write_text("core_identity = 7\n", encoding="utf-8")
        with pytest.raises(CodexError, match=r"brick\.toml"):
            await uvm.readiness.check()
        assert dump(uvm.image) == before


async def test_no_more_missions_think_at_once_than_configured(tmp_path: Path) -> None:
    """Two at a time: of six the most that think together is two."""
    bridge = _Counting()
    settings = Settings(home=tmp_path, user="tester", image="memory://image", missions=2, parallel=2)
    async with open_uvm(settings, Events(log=False), Seams(bridge=bridge)) as uvm:
        await uvm.readiness.check()
        await asyncio.gather(*(ask(uvm, f"{number}?", (), effort="reflex") for number in range(6)))
    assert bridge.most == 2


class _Counting(ScriptedBridge):
    """Counts the calls that are under way; the first of them answers when a second has come."""

    def __init__(self) -> None:
        super().__init__(Script())
        self.now = self.most = 0
        self._two = asyncio.Event()

    async def think(self, request: ChatRequest, on_token: Any = None, *, stream: bool = True) -> Answer:
        """Answer as scripted, after every mission that may think beside this one had its chance to begin."""
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now == 2:
            self._two.set()
        await self._two.wait()
        await a_moment()
        self.now -= 1
        return await super().think(request, on_token, stream=stream)


async def test_every_persona_answers_over_its_own_facets(tmp_path: Path) -> None:
    """All four are whole: each decomposes for, delegates to and weaves its own three."""
    bridge = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        for persona, slots in PILLARS.items():
            shown = await ask(uvm, persona=persona)
            assert [voice["facet"] for voice in shown["voices"]] == list(slots)
            assert shown["route"]["personas"] == [persona]
            assert next(iter(shown["provenance"]["models"])).startswith(f"batos-{persona.lower()}:")


async def test_a_wrong_brief_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """No mission is made of a brief that is none, or that names an ancestor that is not there."""
    async with scripted_uvm(tmp_path) as uvm:
        before = dump(uvm.image)
        with pytest.raises(BriefError):
            await uvm.missions.submit({"text": ""})
        for field in ("conversation", "user"):
            with pytest.raises(BriefError, match=field):  # a number with more digits than Python writes
                await uvm.missions.submit({"text": "Hi", "conversation": "new", field: 10**5_000})
        with pytest.raises(NotFound):
            await uvm.missions.submit({"text": "Hi", "ancestor": "m-01ARZ3NDEKTSV4RRFFQ69G5FAV"})
        assert dump(uvm.image) == before
        assert uvm.readings.newest() == []


async def test_modes_of_deciding_are_the_personas(tmp_path: Path) -> None:
    """With `reason_field` in the codex every decision by a schema begins with reasoning; answers are plain text."""
    bridge = ScriptedBridge()
    told: list[str] = []

    def on_event(event: str, keys: Mapping[str, Any]) -> None:
        if event == "mission.token":
            told.append(keys["text"])

    async with scripted_uvm(tmp_path, bridge, events=Events(on_event, log=False)) as uvm:
        path = uvm.settings.home / "codex" / "brick.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('mode = "direct"', 'mode = "reason_field"'), encoding="utf-8")
        shown = await ask(uvm, files=())
    assert shown["status"] == "done"
    schemas = [request.schema for request in bridge.history if request.schema is not None]
    assert schemas
    assert all("a_reasoning" in schema["properties"] for schema in schemas)
    assert "".join(told) == shown["answer"]
    assert kind(bridge.history[0]) == "decomposition"


async def test_a_conversation_is_there_once_its_first_mission_is_accepted(tmp_path: Path) -> None:
    """Its next mission may be asked before the first is answered."""
    async with scripted_uvm(tmp_path) as uvm:
        first = await uvm.missions.submit({"text": "Where is the pier?", "conversation": "new"})
        name = uvm.readings.mission(first)["brief"]["conversation"]
        second = await uvm.missions.submit({"text": "And who built it?", "conversation": name})
        assert uvm.readings.mission(second)["brief"]["conversation"] == name


async def test_commits_are_told(tmp_path: Path) -> None:
    """Accepting and beginning, journaling and publishing are told as commits of their databases, with their changes."""
    heard: list[tuple[str, int]] = []

    def on_event(event: str, keys: Mapping[str, Any]) -> None:
        if event == "txn.commit" and "changes" in keys:
            heard.append((keys["what"], keys["changes"]))

    async with scripted_uvm(tmp_path, events=Events(on_event)) as uvm:
        heard.clear()
        await uvm.missions.ask({"text": "Where is the pier?", "effort": "reflex"})
    assert [what for what, _ in heard[:2]] == ["image", "journal"]
    assert "image" in [what for what, _ in heard[2:]]
    assert {what for what, _ in heard} == {"image", "journal"}
    assert all(changes >= 1 for _, changes in heard)


async def test_a_configured_effort_is_that_of_who_does_not_say(tmp_path: Path) -> None:
    """A cycle where the setting says so; a brief has the last word, and `auto` leaves it to the router."""
    bridge = ScriptedBridge()
    async with scripted_uvm(tmp_path, bridge, effort="cycle") as uvm:
        asked: dict[str, Any] = {"text": "Why does the harbour need a second pier beside the first one?"}
        efforts = [(await uvm.missions.ask({**asked, **said}))["route"]["effort"] for said in ({}, {"effort": "auto"})]
        assert efforts == ["cycle", "reflex"]
