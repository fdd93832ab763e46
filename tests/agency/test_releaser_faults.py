"""Effects that may have happened are never done again or called failed, and no effect keeps those behind it waiting."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.agency.acting import Acting, acting, by_hand, patient
from tests.agency.http_target import Target, listening
from tests.agency.test_releaser import killed

from batos.agency.records import effect_records
from batos.agency.records.effect_records import EffectData, SinkClass
from batos.agency.releaser import MOST_ATTEMPTS
from batos.agency.sinks import Check, EffectDelayed, EffectRefused, Outcome, Sink, check_nothing
from batos.care.verification import find_faults
from batos.image import roots
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import BriefError
from batos.uvm import EffectSeams, Seams


@pytest.fixture
def target() -> Iterator[Target]:
    """A program that listens."""
    with listening() as found:
        yield found


def nothing() -> None:
    """Let a sink go on."""


@dataclass
class FailingSink:
    """A sink that raises what its owner says before it prepares or reads back."""

    inner: Sink
    sink: SinkClass
    preparing: Callable[[], None]
    finding: Callable[[], None]

    def prepare(self, effect: EffectData) -> dict[str, Any]:
        """As the inner one, or raise."""
        self.preparing()
        return self.inner.prepare(effect)

    def release(self, effect: EffectData, check: Check = check_nothing) -> Outcome:
        """As the inner one."""
        return self.inner.release(effect, check)

    def find(self, effect: EffectData) -> Outcome | None:
        """As the inner one, or raise."""
        self.finding()
        return self.inner.find(effect)


def failing(
    grant: str,
    *,
    opening: Callable[[], None] = nothing,
    preparing: Callable[[], None] = nothing,
    finding: Callable[[], None] = nothing,
) -> Seams:
    """Sinks, of which that of one grant fails."""

    def sinks(capability: UvmObject) -> Sink:
        made = patient()(capability)
        if own_slots(capability)["name"] != grant:
            return made
        opening()
        return FailingSink(made, made.sink, preparing, finding)

    return Seams(effects=EffectSeams(sinks=sinks))


async def given_up(mind: Acting) -> list[str]:
    """The states of all effects, after as many passes as an effect is tried."""
    for _ in range(MOST_ATTEMPTS):
        states = await mind.states()
    return states


async def last_mission(mind: Acting) -> str:
    """The mission of the newest effect."""
    return str((await mind.ask("effects"))["effects"][0]["mission"])


# -- what may have happened


async def test_an_effect_that_cannot_be_read_back_now_is_not_done_again(tmp_path: Path, target: Target) -> None:
    """Killed after the append: while reading back fails it stays begun, and then what stands there is found."""
    await killed(tmp_path, target.url, "done", "notes")
    is_full = True

    def finding() -> None:
        if is_full:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async with acting(tmp_path, hold=by_hand(), memory=False, seams=failing("notes", finding=finding)) as mind:
        assert (await mind.states(), mind.lines()) == (["releasing"], ["A line."])
        is_full = False
        assert (await mind.states(), mind.lines()) == (["released"], ["A line."])


class Mount:
    """Takes the granted folder away before an effect is looked at, as at the start of a machine without its mounts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.away = folder, folder.with_name("unmounted")
        self.is_wanted = False

    async def hold(self, point: str, effect: str) -> None:
        """Take it away, unless it is wanted."""
        if not self.is_wanted and not self.away.exists():
            self.folder.rename(self.away)

    def bring_back(self) -> None:
        """Let it be there from now on."""
        self.is_wanted = True
        self.away.rename(self.folder)


async def test_an_effect_that_can_never_be_read_back_is_unknown(tmp_path: Path, target: Target) -> None:
    """Its folder is not mounted: a person is asked, and a retry does not do it a second time."""
    await killed(tmp_path, target.url, "done", "notes")
    mount = Mount(tmp_path / "folder")
    async with acting(tmp_path, memory=False, hold=by_hand(mount.hold)) as mind:
        assert await mind.states() == ["releasing"]
        assert await given_up(mind) == ["unknown"]
        mount.bring_back()
        again = await mind.send("notes", "log.txt", "A line.", ancestor=await last_mission(mind))
        assert (again["answer"], await mind.states(), mind.lines()) == ("repeated", ["unknown"], ["A line."])


async def test_a_folder_that_comes_back_is_read(tmp_path: Path, target: Target) -> None:
    """In time: nobody is asked."""
    await killed(tmp_path, target.url, "done", "notes")
    mount = Mount(tmp_path / "folder")
    async with acting(tmp_path, memory=False, hold=by_hand(mount.hold)) as mind:
        assert await mind.states() == ["releasing"]
        mount.bring_back()
        assert (await mind.states(), mind.lines()) == (["released"], ["A line."])


@pytest.mark.parametrize("then", [[503] * MOST_ATTEMPTS, [409] * MOST_ATTEMPTS, [400]])
async def test_a_post_whose_answer_was_lost_never_becomes_failed(
    tmp_path: Path, target: Target, then: list[int]
) -> None:
    """Whatever the program says of later posts: it did the first one."""
    told: list[str] = []
    async with acting(tmp_path, url=target.url) as mind:
        mind.uvm.events.subscribe(lambda event, _: told.append(event) if event.startswith("effect.") else None)
        target.answers = [0, *then]
        first = await mind.send("inbox", {"text": "Hello."})
        assert (await given_up(mind), told) == (["unknown"], ["effect.unknown"])
        target.answers = []
        assert (await mind.send("inbox", {"text": "Hello."}, ancestor=first["id"]))["answer"] == "repeated"
        assert len(target.done) == 1


async def test_a_post_whose_answer_was_lost_is_unknown_once_nobody_listens(tmp_path: Path) -> None:
    """The program ended after it did it."""
    with listening() as target:
        async with acting(tmp_path, hold=by_hand(), url=target.url, memory=False) as mind:
            target.answers = [0, *[503] * MOST_ATTEMPTS]
            await mind.send("inbox", {"text": "Hello."})
            assert await mind.states() == ["releasing"]
    async with acting(tmp_path, memory=False) as mind:
        assert await given_up(mind) == ["unknown"]


async def test_a_post_whose_answer_was_lost_is_unknown_once_its_grant_is_revoked(
    tmp_path: Path, target: Target
) -> None:
    """Nobody may ask the program any more."""
    async with acting(tmp_path, hold=by_hand(), url=target.url) as mind:
        target.answers = [0, *[503] * MOST_ATTEMPTS]
        await mind.send("inbox", {"text": "Hello."})
        assert await mind.states() == ["releasing"]
        await mind.ask("grants_revoke", name="inbox", user="tester")
        assert await mind.states() == ["unknown"]
        assert "revoked" in (await mind.ask("effects"))["effects"][0]["outcome"]["reason"]


async def test_a_program_that_is_still_at_it_is_asked_again(tmp_path: Path, target: Target) -> None:
    """409 under a key says that an earlier post under it is being done."""
    async with acting(tmp_path, url=target.url) as mind:
        target.answers = [409, 409]
        await mind.send("inbox", {"text": "Hello."})
        for _ in range(2):
            await mind.uvm.releaser.release_all()
        assert (await mind.states(), len(target.done)) == (["released"], 1)


async def test_an_undo_names_what_may_have_happened(tmp_path: Path, target: Target) -> None:
    """A post whose answer was lost is not withdrawn."""
    async with acting(tmp_path, hold=by_hand(), url=target.url) as mind:
        target.answers = [0, *[503] * MOST_ATTEMPTS]
        mission = await mind.send("inbox", {"text": "Hello."})
        assert await mind.states() == ["releasing"]
        (undone,) = (await mind.ask("undo", mission=mission["id"], user="tester"))["undone"]
        assert ["releasing as" in each for each in undone["effects"]] == [True]
        assert await given_up(mind) == ["unknown"]


# -- withdrawn while it is tried


@pytest.mark.parametrize("error", [EffectDelayed("busy"), EffectRefused("no")])
async def test_an_attempt_does_not_bring_back_what_was_withdrawn_meanwhile(tmp_path: Path, error: Exception) -> None:
    """An undo between the look at an effect and the record of its attempt."""
    told: list[str] = []
    missions: list[str] = []

    def preparing() -> None:
        raise error

    async def hold(point: str, effect: str) -> None:
        while missions:
            await mind.ask("undo", mission=missions.pop(), user="tester")

    async with acting(tmp_path, hold=hold, seams=failing("notes", preparing=preparing)) as mind:
        mind.uvm.events.subscribe(lambda event, _: told.append(event) if event.startswith("effect.") else None)
        async with mind.uvm.releaser._releasing:
            missions.append((await mind.send("notes", "log.txt", "A line."))["id"])
        assert (await mind.states(), told) == (["withdrawn"], [])
        assert find_faults(mind.uvm.image.db) == []


async def test_what_was_withdrawn_behind_another_one_does_not_happen(tmp_path: Path) -> None:
    """An undo while the effect before it is done, in a pass that has both in its list."""
    missions: list[str] = []

    async def hold(point: str, effect: str) -> None:
        while missions:
            await mind.ask("undo", mission=missions.pop(), user="tester")

    async with acting(tmp_path, hold=hold) as mind:
        async with mind.uvm.releaser._releasing:
            await mind.send("notes", "log.txt", "First.")
            missions.append((await mind.send("notes", "log.txt", "Second."))["id"])
        assert (await mind.states(), mind.lines()) == (["released", "withdrawn"], ["First."])


# -- one of several


def refuse_address() -> None:
    """Fail as a grant does whose address is none of this machine."""
    raise BriefError("no address of this machine", remedy="Give another.")


def fail() -> None:
    """Fail as nobody expected."""
    raise KeyError("path")


@pytest.mark.parametrize(
    ("how", "at_first"),
    [({"opening": refuse_address}, "failed"), ({"opening": fail}, "staged"), ({"preparing": fail}, "staged")],
)
async def test_an_effect_that_fails_as_nobody_expected_keeps_none_waiting(
    tmp_path: Path, target: Target, how: dict[str, Callable[[], None]], at_first: str
) -> None:
    """The one behind it happens at once; it is itself given up where a person sees it."""
    async with acting(tmp_path, hold=by_hand(), url=target.url, seams=failing("inbox", **how)) as mind:
        async with mind.uvm.releaser._releasing:
            await mind.send("inbox", {"n": 1})
            await mind.send("notes", "log.txt", "A line.")
        assert (await mind.states(), mind.lines()) == ([at_first, "released"], ["A line."])
        assert await given_up(mind) == ["failed", "released"]
        assert (await mind.ask("effects"))["effects"][-1]["outcome"]["error"]["message"]
        assert target.asked == []


async def test_a_name_without_an_effect_keeps_none_waiting(tmp_path: Path) -> None:
    """`batos check` takes it off the list."""
    async with acting(tmp_path) as mind:

        def damage(root: Root) -> None:
            root[roots.STAGED].insert("e-0-1")

        await mind.uvm.image.writer.apply(damage)
        await mind.send("notes", "log.txt", "A line.")
        assert (await mind.states(), mind.lines()) == (["released"], ["A line."])


async def test_an_effect_whose_words_were_erased_is_given_up(tmp_path: Path, target: Target) -> None:
    """One that may have happened is unknown; it is not tried with words that nobody has any more."""
    async with acting(tmp_path, hold=by_hand(), url=target.url) as mind:
        target.answers = [0, *[503] * MOST_ATTEMPTS]
        await mind.send("inbox", {"n": 1})
        assert await mind.states() == ["releasing"]
        async with mind.uvm.releaser._releasing:
            asked = len(target.asked)
            await mind.send("notes", "log.txt", "A line.")

            def erase(root: Root) -> None:
                for each in effect_records.list_all_effects(root):
                    each.update(payload={}, outcome=None)

            await mind.uvm.image.shared.apply(erase)
        assert await mind.states() == ["unknown", "failed"]
        assert (len(target.asked), mind.lines()) == (asked, [])
