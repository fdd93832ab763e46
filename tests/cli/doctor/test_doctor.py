"""The doctor finds each thing that can be wrong, says what to do and where it is explained, and changes nothing."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cli.damaged_homes import (
    AILMENTS,
    MODELS,
    Ail,
    Patient,
    codex_changed,
    new_adapter,
    unfit_adapter,
    untrained_window,
)
from tests.cli.doctor.test_home_checks import HERE as ELSEWHERE
from tests.cli.processes import User
from tests.image.questions import made
from tests.inference.conftest import PATIENT
from tests.inference.raw_server import reply, serving

from batos.approvals import documents
from batos.cli.doctor.doctor import examine
from batos.cli.verbs.system_verbs import page
from batos.genesis.integrity import Finding
from batos.inference.ollama.bridge import Bridge
from batos.objects.method import Intent
from batos.uvm import open_uvm
from ollama_emulator.emulator import Emulator, Options

PAGE = Path(__file__).resolve().parents[3] / "docs" / "errors.md"

#: Every finding, by area: `<area>.<what>`; those of a persona or a window are named for the persona.
FINDINGS: Mapping[str, tuple[str, ...]] = {
    "ollama": ("answers", "version", "environment"),
    "models": (
        "listed", "pull", "upload", "create", "made", "stale", "recorded", "digests", "capable", "trained", "window",
        "files", "loads",
    ),
    "vram": ("budget", "spill"),
    "codex": ("files", "digest"),
    "persona": ("<name>",),
    "window": ("<name>",),
    "adapters": ("files", "choice", "doubt", "reload"),
    "image": (
        "opens", "held", "reads", "pair", "index", "tail", "cut", "root", "identities", "states", "methods", "moment",
        "files", "journal", "effects", "erasure",
    ),
    "missions": ("waiting",),
    "home": ("private", "files", "writable", "server"),
    "disk": ("home", "store"),
    "clock": ("sane",),
    "cell": ("runs",),
}  # fmt: skip

#: What is told and is never wrong.
NOTES = {"models.made", "models.stale", "adapters.doubt", "adapters.reload", "image.held"}


def known() -> set[str]:
    """Every finding's id; what is named for a persona is here ROBIN's."""
    return {f"{area}.{what}".replace("<name>", "robin") for area, each in FINDINGS.items() for what in each}


def general(id_: str) -> str:
    """An id as `known` has it."""
    area, _, _ = id_.partition(".")
    return f"{area}.robin" if area in ("persona", "window") else id_


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home after its genesis, and the store of its daemon."""
    folder = tmp_path_factory.mktemp("healthy")
    asyncio.run(_grow(folder))
    return folder


async def _grow(folder: Path) -> None:
    emulator = Emulator(Options(store=folder / "store", models=MODELS))
    async with emulator.serving() as url, Bridge(url, deadlines=PATIENT) as bridge:
        (folder / "home").mkdir(mode=0o700)
        async with open_uvm(Patient(folder / "home", bridge).settings) as uvm:
            report = await uvm.readiness.genesis()
    assert all(finding.ok for finding in report.findings)


@pytest.fixture
async def patient(healthy: Path, tmp_path: Path) -> AsyncIterator[Patient]:
    """A healthy home of one's own, and a daemon whose card has two GiB."""
    for name in ("home", "store"):
        await asyncio.to_thread(shutil.copytree, healthy / name, tmp_path / f"its {name}")
    home = tmp_path / "its home"
    # Copies are readable as the umask says.
    await asyncio.to_thread(_close, home)
    emulator = Emulator(Options(store=tmp_path / "its store", vram=2.0))
    async with emulator.serving() as url, Bridge(url, deadlines=PATIENT) as bridge:
        yield Patient(home, bridge)


def _close(home: Path) -> None:
    for path in (home, *home.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)


def digests(home: Path) -> Mapping[str, str]:
    """Every file of a home, by what is in it."""
    files = (path for path in home.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


async def examined(patient: Patient) -> tuple[Finding, ...]:
    """What the doctor finds; all of it is known, and what is wrong has a remedy. No file is changed."""
    before = await asyncio.to_thread(digests, patient.home)
    runners = await patient.bridge.ps()
    found = await examine(patient.settings, patient.environ)
    assert {general(each.id) for each in found} <= known()
    assert all(each.remedy for each in found if not each.ok)
    assert await asyncio.to_thread(digests, patient.home) == before
    assert await patient.bridge.ps() == runners
    return found


async def test_health(patient: Patient) -> None:
    """After a genesis nothing is wrong, everything that can be looked at was, and nothing was loaded or written."""
    found = await examined(patient)
    assert [each for each in found if not each.ok] == []
    seen = {general(each.id) for each in found}
    faults = ("listed", "pull", "upload", "create", "stale", "trained", "window")
    absent = {*(f"models.{what}" for what in faults), "image.reads", "disk.store"}
    absent |= {id_ for id_ in known() if id_.startswith("adapters.")}
    assert seen == known() - absent


CASES = [pytest.param(id_, ail, id=f"{id_} {ail.__name__}") for id_, ails in AILMENTS.items() for ail in ails]


@pytest.mark.parametrize(("id_", "ail"), CASES)
async def test_what_is_wrong_is_found(patient: Patient, id_: str, ail: Ail) -> None:
    """In its wrong state a finding is wrong, and looking leaves it so."""
    await ail(patient)
    found = await examined(patient)
    assert id_ in {each.id for each in found if not each.ok}, [each.id for each in found if not each.ok]


def test_everything_is_shown_to_be_found() -> None:
    """No finding is known that no test has seen wrong, but those that are only told."""
    assert {*AILMENTS, *ELSEWHERE, "ollama.version", "cell.runs"} == known() - NOTES


def test_every_finding_has_its_page() -> None:
    """Each finding is explained once in docs/errors.md, under the anchor that is printed; nothing else is there."""
    anchors = re.findall(r'<a id="([a-z-]+)"></a>', PAGE.read_text(encoding="utf-8"))
    assert sorted(anchors) == sorted(page(id_).partition("#")[2] for id_ in known())


@pytest.mark.parametrize(("version", "wrong"), [("0.24.0", True), ("0.33.0", False), ("0.99.1", False), ("dev", False)])
async def test_the_daemons_version(patient: Patient, version: str, wrong: bool) -> None:
    """A daemon older than 0.30 is not asked for more; a newer one than was tested is told and no fault."""
    async with serving(reply({"version": version}), reply({"models": []}), reply({"models": []})) as server:
        patient.given["ollama_host"] = server.url
        found = {each.id: each for each in await examine(patient.settings, {})}
    assert found["ollama.answers"].ok
    assert found["ollama.version"].ok is not wrong
    assert ("newer than" in found["ollama.version"].what) == (version == "0.99.1")


async def test_what_fits_no_base_is_told_once(patient: Patient) -> None:
    """An adapter of which genesis would make nothing is one finding, and none says that a genesis would help."""
    await unfit_adapter(patient)
    found = await examined(patient)
    assert [each.id for each in found if not each.ok] == ["adapters.files"]


async def test_models_that_nobody_thinks_with(patient: Patient) -> None:
    """After a change of the codex the models of before are told, with the verb that deletes them."""
    old = await patient.model()
    await codex_changed(patient)
    async with open_uvm(patient.settings) as uvm:
        await uvm.readiness.check()
    told = {each.id: each for each in await examined(patient)}["models.stale"]
    assert told.ok
    assert old in told.what
    assert "--prune" in told.what


async def test_a_window_that_was_not_trained_is_told_once(patient: Patient) -> None:
    """However many runners one base has, by its adapters."""
    await untrained_window(patient)
    await new_adapter(patient)
    found = await examined(patient)
    assert [each.id for each in found].count("models.trained") == 1


async def test_beside_its_owner(patient: Patient) -> None:
    """While another process has the image open everything is looked at all the same, and it is said who has it."""
    async with open_uvm(patient.settings) as uvm:
        await uvm.missions.submit({"text": "Why?"})
        found = {each.id: each for each in await examine(patient.settings, {})}
    assert [each for each in found.values() if not each.ok] == []
    assert "process" in found["image.held"].what
    assert "under way" in found["missions.waiting"].what


async def test_what_waits_for_a_person_is_not_left_undone(patient: Patient) -> None:
    """It is told beside, and nothing is wrong with it; a mission that was left behind is, as ever."""
    wish = Intent("say hello", "say_(self)")
    async with open_uvm(patient.settings) as uvm:
        mission = await uvm.missions.submit({"text": "Why?"})

        def declare(root: Any) -> None:
            root["traits_obj"].say_ = wish

        await uvm.image.writer.apply(declare)
        name = await uvm.approvals.ask(made("traits_obj", "say_", wish, "def say_(self):\n    return 1\n"), mission)
        await uvm.image.move(mission, "waiting", documents.approval_error([name], "say_"))
    found = {each.id: each for each in await examine(patient.settings, {})}["missions.waiting"]
    assert found.ok
    assert "1 mission awaiting your approval" in found.what
    async with open_uvm(patient.settings) as uvm:
        await uvm.missions.submit({"text": "And why not?"})
    found = {each.id: each for each in await examine(patient.settings, {})}["missions.waiting"]
    assert (found.ok, found.what) == (False, "1 mission unfinished")


async def test_a_compaction_that_waits_is_not_left_undone(patient: Patient) -> None:
    """The next turn of its conversation goes on with it; nothing is wrong with that."""
    message = {"receiver": f"c-{'0' * 26}", "selector": "compact_"}
    origin = {"door": "kernel", "client": "compaction"}
    async with open_uvm(patient.settings) as uvm:
        await uvm.missions.submit({"text": "Compact.", "message": message, "origin": origin})
    found = {each.id: each for each in await examine(patient.settings, {})}["missions.waiting"]
    assert found.ok
    assert "1 compaction" in found.what


async def test_before_the_first_genesis(tmp_path: Path, patient: Patient) -> None:
    """A home that is not there yet is not made; codex and image are missing, and one remedy does for both."""
    patient.home = tmp_path / "nothing" / "yet"
    found = {each.id: each for each in await examine(patient.settings, {}) if not each.ok}
    assert set(found) == {"codex.files", "image.opens"}
    assert all("batos genesis" in each.remedy for each in found.values())
    assert not (tmp_path / "nothing").exists()


async def test_a_password_is_not_shown(patient: Patient) -> None:
    """Neither the image's address nor what a driver says of it has the password."""
    patient.given |= {"image": "postgres://ada:secret@127.0.0.1:9/x", "journal": "postgres://ada:secret@127.0.0.1:9/y"}
    found = await examine(patient.settings, {})
    assert "image.opens" in {each.id for each in found if not each.ok}
    assert "secret" not in str(found)


def test_the_verb(user: User) -> None:
    """What is wrong, what to do and where it is explained: for people, and as data for programs; the exit code is 1."""
    user.home.chmod(0o755)
    told = user.run("doctor")
    assert told.code == 1
    assert "WRONG  home.private" in told.out
    assert "See `batos help home-private`." in told.out
    document = user.run("doctor", "--json")
    assert document.code == 1
    assert document.document["data"]["ok"] is False
    (wrong,) = [each for each in document.document["data"]["findings"] if not each["ok"]]
    assert wrong["id"] == "home.private", wrong
    assert wrong["page"] == "docs/errors.md#home-private"
    assert wrong["remedy"].startswith("chmod 700")
