"""Effects that ask before: nothing happens without a yes, a yes is for one use, and a no ends it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agency.acting import FACET, Acting, acting
from tests.agency.http_target import Target, listening
from tests.image.installing import install
from tests.image.open_image import child, open_image
from tests.waiting import HANG

from batos.agency import effect_questions
from batos.agency.records import effect_records
from batos.agency.records.effect_records import EffectData
from batos.image import roots
from batos.image.roots import Root
from batos.objects.prototype import reference
from batos.protocol.errors import NotFound, Refused
from batos.records import approvals
from batos.records.approvals import ApprovalState
from batos.uvm import Seams

#: A method that writes down what it recalls: of what a person remembered from outside, it is foreign.
NOTES_EVIDENCE = (
    f"async def {FACET}(self, query):\n"
    "    notes = await self.capability_('notes')\n"
    "    found = await self.recall_(query)\n"
    "    return await notes.append_('log.txt', 'Read: ' + str(len(found)))\n"
)
QUESTION = {"text": "What does the keeper of Fell Holm wind?", "persona": "BRICK", "effort": "cycle", "user": "tester"}


@pytest.fixture
def target() -> Iterator[Target]:
    """A program that listens."""
    with listening() as found:
        yield found


async def state_of(mind: Acting, mission: str = "last") -> str:
    """The state of a mission's only effect, once what can be released is."""
    await mind.uvm.releaser.release_all()
    (effect,) = (await mind.ask("effects", mission=mission, user="tester"))["effects"]
    return str(effect["state"])


async def remember_file(mind: Acting, text: str) -> None:
    """Let the mind remember a file, which came from outside."""
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()
    await mind.ask("attach", user="tester", sha256=digest, data=base64.b64encode(data).decode())
    file = {"name": "holm.txt", "media_type": "text/plain", "sha256": digest, "source": "/holm.txt"}
    await mind.ask("remember", files=[file], user="tester")


async def test_what_cannot_be_looked_at_again_asks_with_its_exact_arguments(tmp_path: Path, target: Target) -> None:
    """Also under a standing grant; the question holds all that is going to happen, and a second yes does nothing."""
    async with acting(tmp_path, url=target.url) as mind:
        sent = await mind.send("dark", {"text": "Hello, Fell Holm."}, yes=False)
        assert (await state_of(mind), target.done) == ("asking", {})
        (name,) = await mind.asked()
        told = await mind.ask("approvals", approval=name)
        assert (told["object"], told["selector"]) == ("dark", "post_")
        assert told["effects"] == [f"e-{sent['id'][2:]}-01"]
        assert 'data: {"text": "Hello, Fell Holm."}' in told["source"]
        assert target.url in told["source"]
        answered = await mind.ask("approve", approvals=[name], user="tester")
        assert answered["approved"][0]["effects"] == told["effects"]
        assert (await state_of(mind), len(target.asked)) == ("released", 1)
        with pytest.raises(Refused, match="was approved by tester"):
            await mind.ask("approve", approvals=[name], user="tester")
        assert (await state_of(mind), len(target.asked)) == ("released", 1)


async def test_a_yes_releases_without_another_mission(tmp_path: Path, target: Target) -> None:
    """Where nothing else is done, the answer itself wakes the releaser."""
    released = asyncio.Event()
    async with acting(tmp_path, url=target.url) as mind:
        mind.uvm.events.subscribe(lambda event, keys: released.set() if event == "effect.released" else None)
        await mind.send("dark", {"n": 1})
        await asyncio.wait_for(released.wait(), HANG)
        assert len(target.asked) == 1


async def test_after_a_no_nothing_happens_and_a_retry_may_ask_anew(tmp_path: Path, target: Target) -> None:
    """While it waits, an equal one of its lineage is only told that it waits."""
    async with acting(tmp_path, url=target.url) as mind:
        first = await mind.send("dark", {"n": 1}, yes=False)
        equal = await mind.send("dark", {"n": 1}, yes=False, ancestor=first["id"])
        assert (equal["answer"], len(await mind.asked())) == ("repeated", 1)
        (name,) = await mind.asked()
        await mind.ask("reject", approval=name, why="Not today.", user="tester")
        assert await state_of(mind, first["id"]) == "not_done"
        (effect,) = (await mind.ask("effects", mission=first["id"]))["effects"]
        assert "Not today." in effect["outcome"]["reason"]
        again = await mind.send("dark", {"n": 1}, yes=False, ancestor=equal["id"])
        assert (again["answer"], await state_of(mind, again["id"])) == ("staged", "asking")
        assert target.asked == []


async def test_a_question_that_nobody_answers_lapses(tmp_path: Path, target: Target) -> None:
    """Its effect did not happen, and a late yes does nothing."""
    now = [datetime(2026, 11, 30, 17, tzinfo=UTC)]
    async with acting(tmp_path, url=target.url, seams=Seams(clock=lambda: now[0])) as mind:
        await mind.send("dark", {"n": 1}, yes=False)
        (name,) = await mind.asked()
        now[0] += timedelta(days=365)
        with pytest.raises(Refused, match="has expired"):
            await mind.ask("approve", approvals=[name], user="tester")
        assert (await state_of(mind), target.asked) == ("not_done", [])


async def test_an_undo_takes_the_question_back_and_a_redo_asks_it_again(tmp_path: Path, target: Target) -> None:
    """What was not approved is not staged by a redo."""
    async with acting(tmp_path, url=target.url) as mind:
        sent = await mind.send("dark", {"n": 1}, yes=False)
        for keep in ([], ["methods"]):
            await mind.ask("undo", mission=sent["id"], user="tester", keep=keep)
            assert (await state_of(mind, sent["id"]), await mind.asked()) == ("withdrawn", [])
            await mind.ask("redo", user="tester")
            assert await state_of(mind, sent["id"]) == "asking"
        (name,) = await mind.asked()
        assert target.asked == []
        await mind.ask("approve", approvals=[name], user="tester")
        assert (await state_of(mind, sent["id"]), len(target.asked)) == ("released", 1)


async def test_several_are_approved_as_one(tmp_path: Path, target: Target) -> None:
    """Those of a mission, or those that match; those of others go on waiting."""
    async with acting(tmp_path, url=target.url) as mind:
        one = await mind.send("dark", {"n": 1}, yes=False)
        await mind.send("dark", {"n": 2}, yes=False)
        await mind.ask("approve", all_of=one["id"], user="tester")
        assert await mind.states() == ["released", "asking"]
        with pytest.raises(NotFound, match="asks nothing"):
            await mind.ask("approve", all_of=one["id"], user="tester")
        await mind.ask("approve", matching="dark.post_", user="tester")
        assert (await mind.states(), len(target.asked)) == (["released"] * 2, 2)


@pytest.mark.parametrize(("given", "state"), [(True, "asking"), (False, "released")])
async def test_what_is_made_from_foreign_text_asks(tmp_path: Path, given: bool, state: str) -> None:
    """A file came from outside: whatever a thought stages that was shown it asks, also by a grant of a folder."""
    async with acting(tmp_path) as mind:

        def learn(root: Root) -> None:
            install(root, root["brick_prototype_obj"], FACET, NOTES_EVIDENCE)

        await mind.uvm.image.writer.apply(learn)
        if given:
            text = "The keeper of Fell Holm winds the lamp every four hours."
            await remember_file(mind, text)
        await mind.uvm.missions.ask({**QUESTION, "grants": ["notes"]})
        assert (await state_of(mind), bool(mind.lines())) == (state, not given)


async def test_a_person_s_own_words_need_no_yes_whatever_the_mind_remembers(tmp_path: Path) -> None:
    """A message is made of nothing else."""
    async with acting(tmp_path) as mind:
        await remember_file(mind, "The keeper winds the lamp.")
        await mind.send("notes", "log.txt", "The keeper winds the lamp.", yes=False)
        assert await state_of(mind) == "released"


async def test_erased_words_are_in_no_question(tmp_path: Path, target: Target) -> None:
    """And what waited with them does not happen."""
    async with acting(tmp_path, url=target.url) as mind:
        sent = await mind.send("dark", {"text": "Rumpelstiltskin"}, yes=False)
        (name,) = await mind.asked()
        await mind.ask("erase", target=sent["id"], user="tester")
        assert "Rumpelstiltskin" not in str(await mind.ask("approvals", approval=name))
        assert (await state_of(mind, sent["id"]), target.asked) == ("withdrawn", [])


@pytest.mark.parametrize("point", ["begun", "voted", "finished"])
async def test_a_kill_in_the_answer_leaves_a_question_or_one_effect(tmp_path: Path, target: Target, point: str) -> None:
    """The yes and the staging are one commit: the effect happens once, never before, and never twice."""
    with child(Path(__file__).with_name("script_asking.py"), tmp_path, target.url, point) as process:
        assert await asyncio.to_thread(process.wait, HANG) == -signal.SIGKILL
    assert target.asked == []
    async with acting(tmp_path, memory=False) as mind:
        await mind.uvm.releaser.release_all()
        asked = await mind.asked()
        assert len(asked) == (point != "finished")
        assert len(target.asked) == (point == "finished")
        if asked:
            await mind.ask("approve", approvals=asked, user="tester")
        assert (await mind.states(), len(target.asked)) == (["released"], 1)


OPERATIONS = ("send", "retry", "yes", "no", "late", "undo", "redo", "release")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 3)), max_size=14))
def test_nothing_happens_without_its_own_yes(steps: list[tuple[str, int]]) -> None:
    """Of any order of answers, undoing and releasing: an effect happens only after its own yes, and once a lineage."""
    asyncio.run(_live(steps))


async def _live(steps: list[tuple[str, int]]) -> None:
    async with open_image(None) as image:
        world = _Answers()

        def change(root: Root) -> None:
            capability = effect_records.add_capability(root, "g", "http", "http://127.0.0.1:9/x", "blind", ("u", ""))
            roots.connection_of(root).add(capability)
            for number, (what, which) in enumerate(steps):
                world.step(root, image, number, what, which)
            for name in world.happened:
                assert world.said[name] == "approved"
            assert len({world.lineages[each] for each in world.happened}) == len(world.happened)

        await image.writer.apply(change)


class _Answers:
    """Missions with one effect each, whose questions are answered in any order."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.lineages: dict[str, tuple[str, str]] = {}
        self.said: dict[str, str] = {}
        self.happened: list[str] = []

    def step(self, root: Root, image: Any, number: int, what: str, which: int) -> None:
        """Take one step."""
        if what in ("send", "retry"):
            self._send(root, image, number, what == "retry")
        elif what == "release":
            for name in effect_records.list_waiting(root):
                effect_records.become(root, effect_records.find_effect(root, name), "released", "")
                self.happened.append(name)
        elif self.effects:
            self._answer(root, self.effects[which % len(self.effects)], what)

    def _send(self, root: Root, image: Any, number: int, is_retry: bool) -> None:
        mission, before = f"m-{number:026d}", self.effects[-1][2:-3] if is_retry and self.effects else None
        brief = {
            "text": "?", "user": "u", "attachments": [], "id": mission, "grants": ["g"],
            "ancestor": before and f"m-{before}",
        }  # fmt: skip
        image.insert(root, brief, "", {})
        capability = effect_records.find_capability(root, "g")
        assert capability is not None
        payload = {"data": "same"}
        oid = reference(capability)
        effect = EffectData(
            grant="g", oid=oid, operation="effect.post", payload=payload, nonce=effect_records.nonce_of(capability),
            fingerprint=effect_records.fingerprint_of(oid, "effect.post", payload), trust="user", number=1,
        )  # fmt: skip
        made = effect_records.fold(root, mission, effect, effect_questions.find_reason_to_ask)
        name = f"e-{mission[2:]}-01"
        self.effects.append(name)
        self.lineages[name] = effect_records.lineage_of(root, mission), effect["fingerprint"]
        if made is not None:
            asked = effect_questions.question_about(root, made, "")
            question = approvals.ApprovalQuestion(f"a-{number:04d}", asked, "1", "5")
            made["approval"] = approvals.ask(root, question).name

    def _answer(self, root: Root, name: str, what: str) -> None:
        effect = effect_records.find_effect(root, name)
        asked, mission = effect.get("approval", ""), effect["mission"]
        if what == "undo":
            effect_records.withdraw(root, mission, "2")
        elif what == "redo" and effect["state"] == "withdrawn":
            effect_records.restage(root, [name])
        elif what in ("yes", "no", "late"):
            said: ApprovalState | None = None
            if what == "yes":
                said = approvals.approve(root, asked, "u", "2")
            elif what == "no":
                said = approvals.reject(root, asked, "u", "no", ("2", "9"))
            else:
                said = approvals.expire(root, asked, "6")
            if said is not None:
                if said.changed:
                    self.said[name] = said.word
                effect_questions.settle(root, said, "2")
