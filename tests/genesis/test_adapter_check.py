"""Adapters before they become models: refused before anything is sent, told to the audit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.genesis.conftest import Edit
from tests.genesis.loras import MODELS, gguf_adapter
from tests.genesis.planning import plan
from tests.genesis.stages import patient
from tests.waiting import HANG

from batos.genesis import adapter_check
from batos.genesis.adapters.folder import discover, in_use
from batos.genesis.adapters.inventory import Adapter, AdapterFault, AdapterInventory
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.genesis.daemon_listing import DaemonModels, look
from batos.genesis.plan import Plan
from batos.genesis.provision import carry_out
from batos.inference.ollama.bridge import Bridge, ChatRequest
from batos.protocol.errors import AdapterError
from ollama_emulator.emulator import Emulator, Options

BASE = "llama3.1:8b-instruct-q4_K_M"


@dataclass(frozen=True, slots=True)
class Here:
    """An emulated daemon that has the tiny base under the name that the codex wants, and an adapters folder."""

    emulated: Emulator
    bridge: Bridge
    folder: Path
    codex: Codex

    def put(self, name: str, as_: str, persona: str = "alfred") -> None:
        """Put a file of the recordings into the folder."""
        gguf_adapter(self.folder / persona / as_, (MODELS / f"{name}.gguf").read_bytes())

    async def planned(self, inventory: AdapterInventory | None = None) -> Plan:
        return await plan(self.codex, "default", self.bridge, inventory or discover(self.folder))

    async def fused(self, todo: Plan) -> Plan:
        return await carry_out(todo, self.bridge, lambda _: None, gates=[adapter_check.gate(self.bridge)])

    def asked(self, since: int = 0) -> list[str]:
        """What was asked of the daemon, in order."""
        return [str(request["path"]) for request in list(self.emulated.requests)[since:]]


@pytest.fixture
async def here(tmp_path: Path, codex: Codex) -> AsyncIterator[Here]:
    """The base, with a runner that answers."""
    emulated = Emulator(Options(vram=0, models=("all-minilm:latest",)))
    async with emulated.serving() as url, patient(url) as bridge:
        digest = await bridge.upload_blob(MODELS / "tiny-a.gguf")
        async with httpx.AsyncClient(base_url=url, timeout=HANG, trust_env=False, verify=False) as http:  # no TLS
            made = {"model": BASE, "files": {"a.gguf": digest}, "stream": False}
            assert (await http.post("/api/create", json=made)).status_code == 200
        await bridge.think(ChatRequest(BASE, ({"role": "user", "content": "hello"},), {"num_ctx": 512}))
        yield Here(emulated, bridge, tmp_path / "adapters", codex)


async def runners(here: Here) -> list[str]:
    return [row.name for row in await here.bridge.ps()]


async def test_an_adapter_becomes_a_model(here: Here) -> None:
    """Both kinds are sent by digest and fused; the model carries one adapter on the unchanged base."""
    here.put("alfred-lora", "audit")
    place = here.folder / "robin" / "warm"
    place.mkdir(parents=True)
    for path in (MODELS / "peft" / "robin").iterdir():
        (place / path.name).write_bytes(path.read_bytes())
    done = await here.fused(await here.planned())
    assert not done.steps
    for persona, name in (("ALFRED", "audit"), ("ROBIN", "warm")):
        model = done.models[persona]
        assert model.startswith(f"batos-{persona.lower()}-{name}:")
        card = await here.bridge.show(model)
        assert len(card.adapters) == 1
        assert card.blob == (await here.bridge.show(BASE)).blob


BAD = [
    ("wrong-width-lora", "for 128 in"),
    ("wrong-arch-lora", "architecture qwen2"),
    ("tiny-a", "not an adapter but a model"),
]


@pytest.mark.parametrize(("name", "said"), BAD)
async def test_what_cannot_be_loaded_is_caught_before_it_costs_anything(here: Here, name: str, said: str) -> None:
    """Nothing is sent, made or loaded, and the runner that answers stays where it is."""
    here.put(name, "bad")
    before = len(here.emulated.requests)
    inventory = discover(here.folder)
    if inventory.faults:
        assert said in inventory.faults[0].what
        assert not inventory.adapters
    else:
        with pytest.raises(AdapterError, match=said):
            await here.fused(await here.planned(inventory))
    asked = here.asked(before)
    assert not [path for path in asked if path.startswith("/api/blobs") or path in ("/api/create", "/api/chat")]
    assert await runners(here) == [BASE]


async def test_an_adapter_on_an_adapter_is_caught(here: Here, folder: Path, edit: Edit) -> None:
    """A codex that names a model which carries one already has no base for another: nothing is made, nothing leaves."""
    digest = await here.bridge.upload_blob(MODELS / "babs-lora.gguf")
    async for _ in here.bridge.create("dressed", from_=BASE, adapters={"a.gguf": digest}):
        pass
    edit("mind.toml", f'default_model = "{BASE}"', 'default_model = "dressed"')
    here.put("alfred-lora", "audit")
    before = len(here.emulated.requests)
    todo = await plan(await asyncio.to_thread(codices.load, folder), "default", here.bridge, discover(here.folder))
    with pytest.raises(AdapterError, match="dressed carries an adapter itself"):
        await here.fused(todo)
    assert set(here.asked(before)) == {"/api/version", "/api/tags", "/api/show"}
    assert await runners(here) == [BASE]


async def test_a_base_is_asked_for_once(here: Here) -> None:
    """However many adapters are held against it; one that is not there is no fault of theirs."""
    for name in ("a", "b", "c"):
        here.put("alfred-lora", name)
    adapters = discover(here.folder).adapters
    before = len(here.emulated.requests)
    assert await adapter_check.unfit([(each, BASE) for each in adapters], here.bridge) == ()
    assert here.asked(before) == ["/api/show"]
    assert await adapter_check.unfit([(each, "nobody:latest") for each in adapters], here.bridge) == ()


async def test_a_plan_that_makes_nothing_asks_nothing(here: Here) -> None:
    """What is made was held against its base before."""
    here.put("alfred-lora", "audit")
    done = await here.fused(await here.planned())
    before = len(here.emulated.requests)
    await adapter_check.gate(here.bridge)(done)
    assert here.asked(before) == []


async def test_an_inventory_held_against_its_bases(here: Here) -> None:
    """What fits no base stands among the faults, after one look at each base; what the daemon has made stays."""
    here.put("alfred-lora", "audit")
    await here.fused(await here.planned())
    here.put("wrong-width-lora", "wide")
    here.put("babs-lora", "atlas", "babs")
    listed, inventory = await look(here.bridge), discover(here.folder)
    before = len(here.emulated.requests)
    found = await adapter_check.check_inventory(inventory, here.codex, "default", listed, here.bridge)
    assert here.asked(before) == ["/api/show"]
    assert [each.label for each in found.adapters] == ["BABS/atlas", "ALFRED/audit"]
    assert [each.label for each in found.faults] == ["ALFRED/wide"]
    newer = await adapter_check.check_inventory(
        inventory, here.codex, "default", replace(listed, version="0.40.0"), here.bridge
    )
    assert [each.label for each in newer.adapters] == ["ALFRED/audit"]
    assert (
        await adapter_check.check_inventory(inventory, here.codex, "default", DaemonModels("0.33.0", ()), here.bridge)
        == inventory
    )


VERSIONS = [("0.30.0", True), ("0.33.0-rc2", True), ("0.34.0", True), ("0.0.0", True), ("dev", True), ("0.34.1", False),
            ("v0.34.2-rc1", False), ("0.40.0", False), ("1.0.0", False)]  # fmt: skip


@pytest.mark.parametrize(("version", "makes"), VERSIONS)
async def test_a_daemon_that_takes_no_adapters_is_sent_none(here: Here, version: str, makes: bool) -> None:
    """Since 0.34.1 create refuses them: that is told before megabytes are uploaded, with the ways that are left."""
    here.put("alfred-lora", "audit")
    todo = await here.planned()
    newer = replace(todo, listed=replace(todo.listed, version=version))
    before = len(here.emulated.requests)
    if makes:
        await adapter_check.gate(here.bridge)(newer)
        return
    with pytest.raises(AdapterError, match=f"Ollama {version} makes no model with an adapter") as told:
        await adapter_check.gate(here.bridge)(newer)
    assert "merge_and_unload" in told.value.remedy
    assert here.asked(before) == []


def fault(name: str, what: str) -> AdapterFault:
    return AdapterFault("ROBIN", name, what, f"Mend {name}.", f"{name}.gguf")


def test_a_refusal_tells_everything() -> None:
    """The first fault with its remedy, the others beside it, each as data."""
    error = adapter_check.refusal([fault("a", "it is cut"), fault("b", "it is wide")])
    assert error.message == "ROBIN/a (a.gguf): it is cut"
    assert error.remedy.startswith("Mend a.")
    assert error.also == ("ROBIN/b (b.gguf): it is wide. Mend b.",)
    assert [each["name"] for each in error.faults] == ["a", "b"]
    assert error.exit_code == 2


def inventory_of(folder: Path, *places: str) -> AdapterInventory:
    for place in places:
        gguf_adapter(folder / "adapters" / place)
    return discover(folder / "adapters")


def test_what_does_not_fit_is_remembered_until_something_changes(tmp_path: Path) -> None:
    """Another adapter under its name, or another base, is looked at anew."""
    inventory = inventory_of(tmp_path, "robin/a", "robin/b")
    known = adapter_check.UnfitAdapters()
    bases = {"ROBIN": "0"}
    known.learn(adapter_check.refusal([fault("a", "it is wide"), fault("a", "it is deep")]), inventory, bases)
    left = known.apart(inventory, bases)
    assert [each.name for each in left.adapters] == ["b"]
    assert [each.what for each in left.faults] == ["it is wide", "it is deep"]
    assert known.apart(inventory, {"ROBIN": "1"}) == inventory
    gguf_adapter(tmp_path / "adapters" / "robin" / "a", (MODELS / "babs-lora.gguf").read_bytes())
    changed = discover(tmp_path / "adapters")
    assert known.apart(changed, bases) == changed
    known.learn(adapter_check.refusal([fault("gone", "it is wide")]), changed, bases)
    assert known.apart(changed, bases) == changed


def ids(found: Iterable[Any]) -> list[tuple[str, bool]]:
    return [(each.id, each.ok) for each in found]


def test_the_audit_hears_what_is_used_and_what_it_costs(tmp_path: Path, codex: Codex) -> None:
    """One persona with an adapter on the base that all share: every switch loads it again, which is said."""
    inventory = inventory_of(tmp_path, "robin/a")
    choices: dict[str, str | None] = {"ROBIN": "a", "BRICK": None, "BABS": None, "ALFRED": None}
    found = adapter_check.findings(inventory, choices, in_use(inventory, choices), codex)
    assert ids(found) == [("adapters.files", True), ("adapters.choice", True), ("adapters.reload", True)]
    assert "loads it again" in found[-1].what


def test_the_audit_hears_what_is_wrong(tmp_path: Path, codex: Codex) -> None:
    """A fault of the files, and a choice that is gone, each with what to do."""
    (tmp_path / "adapters" / "robin" / "a").mkdir(parents=True)
    inventory = discover(tmp_path / "adapters")
    found = adapter_check.findings(inventory, {"ROBIN": "gone", "BABS": "none"}, {}, codex)
    assert ids(found) == [("adapters.files", False), ("adapters.choice", False)]
    assert all(each.remedy for each in found)
    assert "batos adapters use ROBIN" in found[1].remedy


def test_nothing_is_said_where_nothing_is(codex: Codex) -> None:
    """Without adapters there are no findings about them."""
    assert adapter_check.findings(AdapterInventory(), {"ROBIN": None}, {}, codex) == []


def test_the_same_adapter_for_all_costs_nothing(tmp_path: Path, codex: Codex) -> None:
    """What is loaded again is a runner of other content: equal bytes under two names are one."""
    inventory = inventory_of(tmp_path, "robin/a", "brick/b", "babs/c", "alfred/d")
    used: dict[str, Adapter] = in_use(inventory, {})
    assert adapter_check.reload_cost(used, codex) == ""
    assert "ROBIN, BRICK, BABS and ALFRED share" in adapter_check.reload_cost({"ROBIN": used["ROBIN"]}, codex)
