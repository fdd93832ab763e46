"""Where an effect happens: on the machine on which it was granted, whichever node publishes, and in no node's home."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.agency.acting import LASTING, Acting, acting
from tests.image.open_image import child
from tests.image.servers import zeo_server, zeo_uri
from tests.waiting import HANG, until

from batos.agency.records import effect_records
from batos.agency.releaser import is_waited_for
from batos.events import Events
from batos.image.image import Opening
from batos.image.nodes.lease import HostIdentity
from batos.objects.prototype import own_slots
from batos.protocol.effect_documents import EffectList
from batos.uvm import Seams
from batos.verbs.effect_verbs import effects_text

#: Seconds of a lease after which what a killed node had is taken over.
SHORT = 2.0

#: Opening is a burst of CPU.
pytestmark = pytest.mark.blocks_loop


@pytest.fixture
def image(tmp_path: Path) -> Iterator[str]:
    """An image that several machines reach."""
    served = tmp_path / "served"
    served.mkdir()
    with zeo_server(served) as port:
        yield zeo_uri(port)


def machine(image: str, name: str, lease: float = LASTING) -> dict[str, Any]:
    """What opens a node of a machine, with a home of its own if it gets a place of its own."""

    def opening(usual: Opening) -> Opening:
        return replace(usual, host=HostIdentity(name, f"host-{name}"))

    seams = Seams(opening=opening)
    return {"image": image, "journal": "", "lease": lease, "memory": False, "seams": seams}


async def publishes(mind: Acting) -> None:
    """Let a node have the part of the publisher."""
    async with mind.uvm.image.publishing.here():
        pass


def released_at(events: Events) -> list[str]:
    """What a node releases from now on."""
    found: list[str] = []

    def hear(event: str, keys: Mapping[str, Any]) -> None:
        if event == "effect.released":
            found.append(keys["effect"])

    events.subscribe(hear)
    return found


async def until_released(mind: Acting) -> None:
    """Wait until the only effect is released, while this node looks on."""

    def is_released() -> bool:
        with mind.uvm.image.snapshot() as root:
            return [each["state"] for each in effect_records.list_all_effects(root)] == ["released"]

    await until(is_released, "the release")


async def test_an_effect_happens_where_it_was_granted_though_another_machine_publishes(
    tmp_path: Path, image: str
) -> None:
    """A node of that machine takes the part of the publisher for it."""
    async with (
        acting(tmp_path / "a", **machine(image, "a")) as first,
        acting(tmp_path / "b", **machine(image, "b")) as second,
    ):
        released = [released_at(mind.uvm.events) for mind in (first, second)]
        await publishes(second)
        await second.send("notes", "log.txt", "A line.")
        await until_released(second)
        await until(lambda: released[0], "the event of the release")  # it is told behind the commit
        assert (first.lines(), [len(each) for each in released]) == (["A line."], [1, 0])


async def test_of_two_nodes_of_a_machine_the_publisher_does_its_effects(tmp_path: Path, image: str) -> None:
    """The other one does not take the part from it; a node of another machine has nothing to do with them."""
    nodes = [acting(tmp_path / f"{number}", **machine(image, name)) for number, name in enumerate("aab")]
    async with nodes[0] as first, nodes[1] as second, nodes[2] as third:
        await publishes(second)
        async with first.uvm.releaser._releasing, second.uvm.releaser._releasing:
            await second.send("notes", "log.txt", "A line.")
            assert [is_waited_for(each.uvm.image) for each in (first, second, third)] == [False] * 3
            await publishes(third)
            assert [is_waited_for(each.uvm.image) for each in (first, second, third)] == [True, True, False]


@pytest.mark.parametrize("approver", ["a", "b"])
async def test_an_effect_that_is_approved_at_another_node_happens(tmp_path: Path, image: str, approver: str) -> None:
    """Whoever approves takes the part of the publisher; a node of the grant's machine does the effect, once."""
    async with (
        acting(tmp_path / "node", **machine(image, "a")) as first,
        acting(tmp_path / "other", **machine(image, approver)) as second,
    ):
        folder = tmp_path / "watched"
        folder.mkdir()
        await first.ask("grants_add", kind="file", target=str(folder), name="watched", user="tester")
        origin = {"door": "schedule", "client": "a test"}
        await first.send("watched", "log.txt", "A line.", selector="append_", yes=False, origin=origin)
        released = [released_at(mind.uvm.events) for mind in (first, second)]
        await second.ask("approve", approvals=await second.asked())
        await until(lambda: released[0] or released[1], "the event of the release")
        assert (folder / "log.txt").read_text() == "A line.\n"
        assert [len(each) for each in released] == ([0, 1] if approver == "a" else [1, 0])


async def test_an_effect_waits_for_its_machine_without_an_attempt(tmp_path: Path, image: str) -> None:
    """Others see what it waits for; the next node of the machine does it at its start."""
    async with acting(tmp_path / "a", **machine(image, "a")):
        pass
    async with acting(tmp_path / "b", **machine(image, "b")) as second:
        await second.send("notes", "log.txt", "A line.")
        assert await second.states() == ["staged"]
        told = await second.ask("effects")
        assert [(each["attempts"], each["host"]) for each in told["effects"]] == [(0, "host-a")]
        assert "waits for host-a" in effects_text(cast("EffectList", told))
    async with acting(tmp_path / "a", **machine(image, "a")) as first:
        await until_released(first)
        assert first.lines() == ["A line."]
        assert (await first.ask("effects"))["effects"][0]["host"] == ""


async def test_an_effect_that_was_begun_is_read_back_on_its_machine(tmp_path: Path, image: str) -> None:
    """Killed after the append: a node of another machine, whose file has no such text, appends nothing."""
    with child(Path(__file__).with_name("script_machine.py"), tmp_path / "a", image, "a", LASTING) as process:
        assert await asyncio.to_thread(process.wait, HANG) == -signal.SIGKILL
    kept, log = tmp_path / "a" / "kept", tmp_path / "a" / "folder" / "log.txt"
    log.rename(kept)  # the folder of this path on the other machine has no such file
    async with acting(tmp_path / "b", **machine(image, "b", SHORT)) as second:
        await publishes(second)
        assert await second.states() == ["releasing"]
        assert (await second.ask("effects"))["effects"][0]["host"] == "host-a"
        assert not log.exists()
    kept.rename(log)
    async with acting(tmp_path / "a", **machine(image, "a")) as first:
        await until_released(first)
        assert first.lines() == ["A line."]


async def test_a_grant_of_an_earlier_version_is_bound_to_no_machine(tmp_path: Path, image: str) -> None:
    """The node that publishes does its effects, as before."""
    async with acting(tmp_path / "a", **machine(image, "a")) as first:

        def unbind(root: Any) -> None:
            capability = root["grants"]["notes"]
            del capability.machine, capability.host

        await first.uvm.image.writer.apply(unbind)
        async with acting(tmp_path / "b", **machine(image, "b")) as second:
            await publishes(second)
            await second.send("notes", "log.txt", "A line.")
            assert await second.states() == ["released"]


async def test_a_revoked_grant_of_a_machine_that_is_gone_ends_its_effects(tmp_path: Path, image: str) -> None:
    """A person who will not bring the machine back is not left with what waits for it."""
    async with acting(tmp_path / "a", **machine(image, "a")):
        pass
    async with acting(tmp_path / "b", **machine(image, "b")) as second:
        await second.send("notes", "log.txt", "A line.")
        assert await second.states() == ["staged"]
        await second.ask("grants_revoke", name="notes", user="tester")
        assert await second.states() == ["failed"]


async def test_a_grant_reaches_no_home_of_the_node_that_releases(tmp_path: Path, image: str) -> None:
    """Another home on the same machine: the granting node could not know it."""
    async with acting(tmp_path / "a", **machine(image, "a")) as first:
        folder = tmp_path / "b" / "home"
        folder.mkdir(parents=True)
        await first.ask("grants_add", kind="file", target=str(folder), name="away", user="tester")
        async with acting(tmp_path / "b", **machine(image, "a")) as second:
            await publishes(second)
            message = {"receiver": "away", "selector": "append_", "arguments": ["log.txt", "A line."]}
            await second.uvm.missions.ask({"message": message, "user": "tester", "grants": ["away"]})
            assert await second.states() == ["failed"]
            error = (await second.ask("effects"))["effects"][0]["outcome"]["error"]
            assert "the home of this mind" in error["message"]
            assert not (folder / "log.txt").exists()


async def test_a_grant_of_an_image_in_a_file_is_bound_to_no_machine(tmp_path: Path) -> None:
    """Its machine is the one that has the file, also when a person moves it."""
    async with acting(tmp_path, memory=False) as mind:
        with mind.uvm.image.snapshot() as root:
            assert "machine" not in own_slots(root["grants"]["notes"])
        assert [each["host"] for each in (await mind.ask("grants"))["grants"]] == [""]
