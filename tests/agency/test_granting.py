"""Grants: what may be granted, to whom, and that nothing happens in the world without one."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agency.acting import BRIEF, FACET, WRITES, acting
from tests.image.installing import install
from tests.image.open_image import open_image
from tests.waiting import HANG

from batos.agency import granting
from batos.agency.effect_questions import find_reason_to_ask
from batos.agency.payloads import append_payload, is_order
from batos.agency.records import effect_records
from batos.agency.records.effect_records import EffectData
from batos.client import addresses
from batos.client.addresses import ServerRecord
from batos.config import Settings
from batos.guardian.audit import audit
from batos.guardian.policy import SHIPPED
from batos.image import roots, storage
from batos.image.guards import WHOLE, protected_changes
from batos.image.roots import Root
from batos.inference.ollama.bridge import ChatRequest
from batos.inference.ollama.chat import Answer
from batos.protocol.errors import BatosError, BriefError, NotFound, ObjectError, Refused
from batos.server.dispatch.guests import limit_guest
from batos.testing import ScriptedBridge, plain_reply


async def test_a_method_acts_by_a_grant_that_its_mission_names(tmp_path: Path) -> None:
    """After the commit, once; a retry of the mission does not do it again."""
    async with acting(tmp_path) as mind:
        first = await mind.uvm.missions.ask(BRIEF)
        assert first["status"] == "done"
        assert await mind.states() == ["released"]
        assert mind.lines() == ["Asked: Word q1? (What holds a pier?)"]
        again = await mind.uvm.missions.ask({**BRIEF, "ancestor": first["id"]})
        assert again["status"] == "done"
        assert (await mind.states(), len(mind.lines())) == (["released"], 1)
        other = await mind.uvm.missions.ask(BRIEF)
        assert (other["status"], await mind.states(), len(mind.lines())) == ("done", ["released"] * 2, 2)


async def test_without_the_grant_in_its_brief_nothing_is_reached(tmp_path: Path) -> None:
    """Neither by a method nor by a message; of another user's grant, or of one that is not there, none is accepted."""
    async with acting(tmp_path) as mind:
        brief = {name: value for name, value in BRIEF.items() if name != "grants"}
        assert (await mind.uvm.missions.ask(brief))["status"] == "done"  # the facet failed, its intent answered
        with pytest.raises(BatosError, match="holds no capability"):
            await mind.send("notes", "log.txt", "x", grants=None)
        for fields in ({"grants": ["absent"]}, {"grants": ["notes"], "user": "somebody"}):
            with pytest.raises(NotFound, match="no grant"):
                await mind.uvm.missions.submit({**BRIEF, **fields})
        assert (await mind.states(), mind.lines()) == ([], [])


class NeverAnswering(ScriptedBridge):
    """A daemon that never answers what a method asks once it has staged its effect."""

    def __init__(self, respond: Callable[[ChatRequest], Any]) -> None:
        super().__init__(respond)
        self.came = asyncio.Event()

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """As any, but for that."""
        if "Word q1?" in str(request.messages):
            self.came.set()
            await asyncio.Event().wait()
        return await super().think(request, on_token, stream=stream)


async def test_a_thought_that_fails_or_is_cancelled_did_nothing(tmp_path: Path) -> None:
    """Whatever its methods staged before."""
    bridge = NeverAnswering(plain_reply)
    async with acting(tmp_path, bridge=bridge) as mind:
        mission = await mind.uvm.missions.submit(BRIEF)
        await mind.uvm.missions.begin(mission)
        await bridge.came.wait()
        await mind.ask("cancel", mission=mission, user="tester")
        assert (await mind.states(), mind.lines()) == ([], [])


async def test_what_a_method_staged_before_it_failed_is_dropped(tmp_path: Path) -> None:
    """The mission goes on without it; two equal effects of one mission are one."""
    again = "    said = await notes.append_('log.txt', 'Asked: ' + query)\n"
    failing = WRITES.replace("    return", f"{again}    raise ValueError\n    return")
    twice = WRITES.replace("    return", f"{again}    return")
    async with acting(tmp_path) as mind:
        for source, lines in ((failing, 0), (twice, 1)):

            def learn(root: Root, source: str = source) -> None:
                install(root, root["brick_prototype_obj"], FACET, source)

            await mind.uvm.image.writer.apply(learn)
            assert (await mind.uvm.missions.ask(BRIEF))["status"] == "done"
            await mind.states()
            assert len(mind.lines()) == lines


async def test_a_dream_holds_no_live_capability(tmp_path: Path) -> None:
    """It shows what it would have done, and neither its end nor its promotion does it. Nor does a replay."""
    async with acting(tmp_path) as mind:
        dream = await mind.ask("dream_new", brief=BRIEF)
        (shown,) = (await mind.ask("dream_diff", dream="last"))["effects"]
        assert shown.startswith("notes: append")
        await mind.ask("dream_promote", dream=dream["id"])
        assert (await mind.states(), mind.lines()) == ([], [])
        real = await mind.uvm.missions.ask(BRIEF)
        assert await mind.states() == ["released"]
        await mind.ask("replay", mission=real["id"])
        assert (await mind.states(), len(mind.lines())) == (["released"], 1)


async def test_an_effect_whose_grant_the_brief_does_not_name_is_not_staged(tmp_path: Path) -> None:
    """A thought of a stranger's mind may say anything."""
    async with acting(tmp_path, memory=False) as mind:
        sent = await mind.send("notes", "log.txt", "A line.")
        assert await mind.states() == ["released"]

        def change(root: Root) -> str:
            record = roots.mission_record(root, sent["id"])
            record.brief.drop_grants()
            (first,) = effect_records.list_all_effects(root, sent["id"])
            effect_records.fold(
                root,
                sent["id"],
                cast("EffectData", {**first, "number": 9, "fingerprint": "1" * 64}),
                find_reason_to_ask,
            )
            return str(root[roots.EFFECTS][f"e-{sent['id'][2:]}-09"]["state"])

        assert await mind.uvm.image.shared.apply(change) == "failed"
        assert (await mind.states(), mind.lines()) == (["released", "failed"], ["A line."])


async def test_an_undo_withdraws_what_waits_and_names_what_happened(tmp_path: Path) -> None:
    """A redo stages again what it withdrew; what happened in the world is never done twice."""
    async with acting(tmp_path) as mind:
        async with mind.uvm.releaser._releasing:
            waits = await mind.send("notes", "log.txt", "A line.")
            told = await mind.ask("undo", mission=waits["id"], user="tester")
            assert told["undone"][0]["effects"] == []
        assert (await mind.states(), mind.lines()) == (["withdrawn"], [])
        assert (await mind.ask("redo", user="tester"))["left"] == []
        assert (await mind.states(), mind.lines()) == (["released"], ["A line."])
        told = await mind.ask("undo", mission=waits["id"], user="tester")
        (line,) = told["undone"][0]["effects"]
        assert (line.startswith("notes: append 8 bytes to log.txt (released"), mind.lines()) == (True, ["A line."])
        again = await mind.send("notes", "log.txt", "A line.", ancestor=waits["id"])
        assert (again["answer"], mind.lines()) == ("repeated", ["A line."])


async def test_a_redo_releases_without_another_mission(tmp_path: Path) -> None:
    """Where nothing else is done, somebody has to look for what it staged again."""
    released = asyncio.Event()
    async with acting(tmp_path) as mind:
        async with mind.uvm.releaser._releasing:
            waits = await mind.send("notes", "log.txt", "A line.")
            await mind.ask("undo", mission=waits["id"], user="tester")
        mind.uvm.events.subscribe(lambda event, keys: released.set() if event == "effect.released" else None)
        await mind.ask("redo", user="tester")
        await asyncio.wait_for(released.wait(), HANG)
        assert mind.lines() == ["A line."]


@pytest.mark.parametrize("target", ["relative", "/absent/folder", "/", "HOME", "HOME/blobs", "FILE"])
def test_what_is_no_folder_of_its_own_is_not_granted(tmp_path: Path, target: str) -> None:
    """Above all not the home: an effect could change the mind itself."""
    home = tmp_path / "home"
    (home / "blobs").mkdir(parents=True)
    (tmp_path / "file").write_text("x")
    given = target.replace("HOME", str(home)).replace("FILE", str(tmp_path / "file"))
    with pytest.raises((BriefError, Refused)):
        granting.check_target("file", given, home)
    link = tmp_path / "link"
    link.symlink_to(home)
    with pytest.raises(Refused):
        granting.check_target("file", str(link), home)


@pytest.mark.parametrize(
    "path",
    ".env .git/config a/.hidden/x Makefile makefile setup.py sub/conftest.py run.sh x.PY tool.exe a.desktop "
    "package.json .. ./x node_modules/x.txt a.bat. ".split(),
)
def test_what_programs_take_orders_from_is_out_of_reach(path: str) -> None:
    """Hidden files, those of builds and systems, and scripts: what is appended there would be run by somebody."""
    with pytest.raises(ObjectError):
        append_payload([path, "x"])


@pytest.mark.parametrize("path", ["notes.txt", "a/b.md", "Makefile of the boat.txt", "data.csv", "python"])
def test_files_that_people_read_are_in_reach(path: str) -> None:
    """Whatever is in their names."""
    assert append_payload([path, "x"])["path"] == path
    assert not is_order(path.rpartition("/")[2])


def test_what_marks_an_object_that_no_method_writes_is_written_by_none() -> None:
    """The guardian's list has it, so that audit and write buffer refuse it before the voter of a commit does."""
    assert all(each & SHIPPED.kernel_slots for each in WHOLE)
    for slot in ("granted_at", "mission"):
        verdict = audit(f"def mark_(self):\n    self.{slot} = 1\n    self._p_changed = True\n")
        assert not verdict.accepted
        assert any(slot in str(fault) for fault in verdict.faults)


@pytest.mark.parametrize("port", [0, 7717, 7718, 11434, 7799, 7800])
async def test_no_port_of_the_mind_or_of_its_models_is_granted(tmp_path: Path, port: int) -> None:
    """By it calls would be made that no journal has: of the settings, and of a server that listens elsewhere."""
    settings = Settings(home=tmp_path)
    note = ServerRecord(1, "1", "", "tcp://127.0.0.1:7799", "tcp://127.0.0.1:7800", "plain", "plain", "0.1")
    addresses.write_record(tmp_path, note)
    ports = granting.own_ports(settings)
    with pytest.raises(Refused, match=f"port {port}"):
        granting.check_target("http", f"http://127.0.0.1:{port}/x", tmp_path, (), ports)
    assert granting.check_target("http", "http://127.0.0.1:8080/x", tmp_path, (), ports)[1] == "keyed"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has these folders")
@pytest.mark.parametrize("target", ["/proc", "/sys", "/proc/self/cwd", "/proc/sys/kernel"])
def test_no_switch_of_the_machine_is_granted(tmp_path: Path, target: str) -> None:
    """What is appended there turns the machine's switches, or reaches another folder; a link is what it leads to."""
    if target == "/proc/self/cwd":
        assert granting.check_target("file", target, tmp_path / "home") == (str(Path.cwd()), "queryable")
    else:
        with pytest.raises(Refused, match="switches of the machine"):
            granting.check_target("file", target, tmp_path / "home")


@pytest.mark.parametrize("place", ["home", "home/codex", "."])
def test_the_home_is_not_granted_by_a_second_place_that_it_is_mounted_at(tmp_path: Path, place: str) -> None:
    """Nor a folder in it, nor one that holds it: a mount is no link, and has another path."""
    home, mounted = tmp_path / "own" / "home", tmp_path / "mounted"
    (home / "codex" / "inner").mkdir(parents=True)
    mounted.mkdir()
    mount = ["mount", "--bind", str(tmp_path / "own" / place), str(mounted)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount")
    try:
        for target in [mounted, *([mounted / "inner"] if place.endswith("codex") else [])]:
            with pytest.raises(Refused, match="the home of this mind"):
                granting.check_target("file", str(target), home)
    finally:
        subprocess.run(["umount", mounted], check=True)


async def test_no_place_of_the_image_is_granted(tmp_path: Path) -> None:
    """Nor one that holds it, where image and journal are in folders of their own; what lies beside them may be."""
    data, away, notes = (tmp_path / name for name in ("data", "away", "data/notes"))
    for folder in (data / "blobs" / "tmp", away, notes):
        folder.mkdir(parents=True)
    image = f"file://{data / 'mind.fs'}?blobstorage_dir={data / 'blobs'}"
    async with acting(tmp_path, memory=False, image=image, journal=f"file://{away / 'calls.fs'}") as mind:
        for target in (data, away, data / "blobs", data / "blobs" / "tmp"):
            with pytest.raises(Refused, match="of this mind, or holds it, or lies in it") as refused:
                await mind.ask("grants_add", kind="file", target=str(target), name="data", user="tester")
            assert refused.value.field == "target"
        await mind.ask("grants_add", kind="file", target=str(notes), name="beside", user="tester")


def test_the_caches_of_a_server_are_places_of_the_image() -> None:
    """Those of blobs and of records, as the URI names them."""
    found = storage.data_places("postgres://batos@db/image?blob_dir=/srv/blobs&cache_local_dir=/srv/cache")
    assert found == [Path("/srv/blobs"), Path("/srv/cache")]
    assert storage.data_places("zeo://127.0.0.1:1?var=/srv/var&client=a") == [Path("/srv/var/a.zec")]
    assert storage.data_places("memory://image") == []


async def test_no_method_writes_a_capability(tmp_path: Path) -> None:
    """All of its slots are the kernel's; the source of a method that acts passes the guardian."""
    async with acting(tmp_path) as mind:
        with mind.uvm.image.transaction("m-1") as transaction:
            capability = transaction.root[roots.GRANTS]["notes"]
            capability.target = "/"
            assert protected_changes(transaction.committed_slots(capability) or {}, vars(capability)) == ["target"]
    assert audit(WRITES).accepted


def test_names_are_made_of_targets() -> None:
    """Of a folder's name or a port; a wrong one is refused."""
    assert granting.name_for("file", "/srv/My Notes/") == "my_notes"
    assert granting.name_for("http", "http://127.0.0.1:8080") == "http_8080"
    for name in ("", "Notes", "1a", "a-b", "a" * 64):
        with pytest.raises(BriefError):
            granting.check_name(name)


def test_a_guest_neither_grants_nor_settles() -> None:
    """It sees the effects of its own missions."""
    for verb in ("grants_add", "grants_revoke", "effects_settle"):
        with pytest.raises(Refused):
            limit_guest(verb, {}, "key laptop 0a1b")
    assert limit_guest("effects", {}, "key laptop 0a1b")["user"] == "key laptop"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(("new", "retry", "fail", "withdraw")), st.integers(0, 2)), max_size=12))
def test_of_equal_effects_of_a_lineage_one_happens(steps: list[tuple[str, int]]) -> None:
    """Whatever fails, is withdrawn and retried in between: it is staged again only if it did not happen."""
    asyncio.run(_lineage(steps))


async def _lineage(steps: list[tuple[str, int]]) -> None:
    async with open_image(None) as image:
        happened: dict[tuple[str, str], int] = {}
        last = ""

        def change(root: Root) -> None:
            nonlocal last
            for number, (what, which) in enumerate(steps):
                mission = f"m-{number:026d}"
                ancestor = last if what != "new" and last else None
                image.insert(
                    root,
                    {"text": "?", "user": "u", "attachments": [], "id": mission, "ancestor": ancestor, "grants": ["g"]},
                    "",
                    {},
                )
                payload = {"path": "a", "text": str(which)}
                fingerprint = effect_records.fingerprint_of("oid:0x1", "effect.append", payload)
                effect = EffectData(grant="g", oid="oid:0x1", operation="effect.append", payload=payload)
                for _ in range(2):  # a publication that is repeated adds nothing
                    effect_records.fold(
                        root, mission, {**effect, "fingerprint": fingerprint, "number": 1}, lambda *_: ""
                    )
                made = effect_records.find_effect(root, f"e-{mission[2:]}-01")
                key = effect_records.lineage_of(root, mission), fingerprint
                if made["state"] == "staged":
                    if what == "fail":
                        effect_records.become(root, made, "failed", "")
                    elif what == "withdraw":
                        assert effect_records.withdraw(root, mission, "") == [made["effect"]]
                    else:
                        effect_records.become(root, made, "released", "")
                        happened[key] = happened.get(key, 0) + 1
                else:
                    assert (made["state"], happened.get(key)) == ("repeated", 1)
                last = mission
            assert effect_records.list_waiting(root) == []
            assert len(root[roots.FIRED]) == len(happened)

        await image.writer.apply(change)
        assert set(happened.values()) <= {1}
