"""The plan says what is missing between the codex and what the daemon lists, and changes nothing."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.genesis.conftest import Edit, HandDaemon
from tests.genesis.planning import plan

from batos.genesis.adapters.inventory import Adapter, AdapterInventory
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.genesis.persona_models import GenesisRecord, model_record
from batos.genesis.plan import Plan, with_deletions
from batos.protocol.errors import OllamaUnfit

BASE = "llama3.1:8b-instruct-q4_K_M"


WARM = Adapter("ROBIN", "warm", "gguf", {"adapter.gguf": Path("warm.gguf")}, {"adapter.gguf": f"sha256:{'a' * 64}"},
               8, 16.0, "llama", None, size=4_096)  # fmt: skip
WISE = Adapter("ROBIN", "wise", "gguf", {"adapter.gguf": Path("wise.gguf")}, {"adapter.gguf": f"sha256:{'b' * 64}"},
               8, 16.0, "llama", None, size=1_024)  # fmt: skip


def remembering(found: Plan) -> GenesisRecord:
    """What an image knows that wrote down everything the daemon lists of this plan."""
    made = {name: model_record(recipe, row, "then") for name, recipe in found.recipes.items()
            if (row := found.listed.row(name)) is not None}  # fmt: skip
    labels = {adapter.label: adapter.digest for adapter in found.inventory.adapters}
    return GenesisRecord(found.codex.digest, found.profile, True, made, found.models, labels)


async def complete(codex: Codex, daemon: HandDaemon, inventory: AdapterInventory = AdapterInventory()) -> Plan:  # noqa: B008  # a frozen value
    """The daemon has everything that is wanted; the plan that says so."""
    daemon.has(BASE)
    daemon.has("all-minilm")
    for name in (await plan(codex, "default", daemon, inventory)).recipes:
        daemon.has(name)
    return await plan(codex, "default", daemon, inventory)


async def test_nothing_there(codex: Codex, daemon: HandDaemon) -> None:
    """On an empty daemon one pull serves all personas, their models wait for it, and the embedder is optional."""
    found = await plan(codex, "default", daemon)
    assert [(step.kind, step.name, step.optional) for step in found.steps] == [
        ("pull", BASE, False),
        *[("create", None, False)] * 4,
        ("pull", "all-minilm:latest", True),
    ]
    assert found.steps[0].reason == "ROBIN, BRICK, BABS, ALFRED and the coder think with it"
    assert (found.is_satisfied, found.needs_pull, found.models) == (False, True, {})
    assert daemon.asked == ["version", "list"]


async def test_base_there(codex: Codex, daemon: HandDaemon) -> None:
    """With the base there, what remains is each persona's model, under a name of 12 hex digits."""
    daemon.has(BASE)
    daemon.has("all-minilm")
    found = await plan(codex, "default", daemon)
    assert [step.persona for step in found.steps] == ["ROBIN", "BRICK", "BABS", "ALFRED"]
    assert [step.name for step in found.steps] == list(found.models.values())
    assert all(re.fullmatch(rf"batos-{name.lower()}:[0-9a-f]{{12}}", model) for name, model in found.models.items())
    assert not found.needs_pull


async def test_all_there(codex: Codex, daemon: HandDaemon) -> None:
    """When everything is there the plan is satisfied; names are compared without case, as the daemon does."""
    daemon.has(BASE.upper())
    daemon.has("all-minilm")
    for model in (await plan(codex, "default", daemon)).models.values():
        daemon.has(model.upper())
    found = await plan(codex, "default", daemon)
    assert (found.steps, found.is_satisfied, found.stale) == ((), True, ())


async def test_missing_embedder_is_optional(codex: Codex, daemon: HandDaemon) -> None:
    """A missing embedder alone leaves the plan satisfied, though it would pull."""
    daemon.has(BASE)
    for model in (await plan(codex, "default", daemon)).models.values():
        daemon.has(model)
    found = await plan(codex, "default", daemon)
    assert (found.is_satisfied, found.needs_pull) == (True, True)
    (step,) = found.steps
    assert "router uses words alone" in step.reason


async def test_deleted_model_is_planned_again(codex: Codex, daemon: HandDaemon) -> None:
    """A persona's model that somebody deleted is made again under the same name."""
    daemon.has(BASE)
    models = (await plan(codex, "default", daemon)).models
    for model in models.values():
        daemon.has(model)
    del daemon.rows[models["BABS"]]
    found = await plan(codex, "default", daemon)
    assert [step.name for step in found.steps if not step.optional] == [models["BABS"]]
    assert found.models == models


async def test_changed_codex_is_another_model(codex: Codex, daemon: HandDaemon, folder: Path, edit: Edit) -> None:
    """A changed identity, option or base makes another name for that persona; the old model is named as stale."""
    daemon.has(BASE)
    before = (await plan(codex, "default", daemon)).models
    for model in before.values():
        daemon.has(model)
    daemon.has("batos-robin:handmade")
    edit("robin.toml", "the heart of this mind", "the warm heart of this mind")
    edit("brick.toml", "temperature = 0.4", "temperature = 0.5")
    found = await plan(await asyncio.to_thread(codices.load, folder), "default", daemon)
    assert {name for name in before if before[name] != found.models[name]} == {"ROBIN", "BRICK"}
    assert set(found.stale) == {before["ROBIN"], before["BRICK"]}
    assert found.steps[0].reason == "codex, base or adapter changed since the model of ROBIN was made"
    daemon.rows[BASE] = daemon.rows["batos-robin:handmade"]
    assert not set(found.models.values()) & set((await plan(codex, "default", daemon)).models.values())


async def test_decision_mode_is_no_parameter(codex: Codex, daemon: HandDaemon, folder: Path, edit: Edit) -> None:
    """How decisions are asked for is ours: it changes no model's name and is no parameter."""
    daemon.has(BASE)
    before = await plan(codex, "default", daemon)
    edit("robin.toml", 'mode = "direct"', 'mode = "two_phase"')
    after = await plan(await asyncio.to_thread(codices.load, folder), "default", daemon)
    assert before.models == after.models
    assert "mode" not in after.recipes[after.models["ROBIN"]].parameters


async def test_personas_with_models_of_their_own(codex: Codex, daemon: HandDaemon, folder: Path, edit: Edit) -> None:
    """Each different base and the coder is one pull, whichever persona names it."""
    edit("brick.toml", "# BRICK:", 'model = "qwen2.5-coder:7b"\n# BRICK:')
    edit("mind.toml", "# coder =", 'coder = "qwen2.5-coder:7b"\n# coder =')
    found = await plan(await asyncio.to_thread(codices.load, folder), "default", daemon)
    pulls = {step.name: step.reason for step in found.steps if step.kind == "pull" and not step.optional}
    assert pulls == {
        BASE: "ROBIN, BABS and ALFRED think with it",
        "qwen2.5-coder:7b": "BRICK and the coder think with it",
    }


async def test_profile(codex: Codex, daemon: HandDaemon) -> None:
    """The profile decides which base is pulled."""
    found = await plan(codex, "small", daemon)
    assert found.steps[0].name == "llama3.2:3b-instruct-q4_K_M"


@pytest.mark.parametrize("version", ["0.29.9", "0.5.7", "v0.12.0-rc1"])
async def test_old_daemon(codex: Codex, daemon: HandDaemon, version: str) -> None:
    """A daemon whose wire is not ours is refused before anything else is asked."""
    daemon.speaks = version
    with pytest.raises(OllamaUnfit, match=re.escape(version)):
        await plan(codex, "default", daemon)
    assert daemon.asked == ["version"]


@pytest.mark.parametrize("version", ["0.30.0", "0.33.0-rc2", "1.0.1", "0.0.0", "custom"])
async def test_fit_daemon(codex: Codex, daemon: HandDaemon, version: str) -> None:
    """Newer daemons, and builds that carry no version, are taken as they are."""
    daemon.speaks = version
    assert (await plan(codex, "default", daemon)).version == version


async def test_plain_data(codex: Codex, daemon: HandDaemon) -> None:
    """A plan is plain data for --json."""
    shown = json.loads(json.dumps((await plan(codex, "default", daemon)).as_dict()))
    assert shown["codex"] == codex.digest
    assert shown["steps"][0] == {
        "kind": "pull",
        "name": BASE,
        "label": f"pull {BASE}",
        "reason": "ROBIN, BRICK, BABS, ALFRED and the coder think with it",
        "size": None,
        "persona": None,
        "adapter": None,
        "optional": False,
    }


async def test_image_that_knows_everything(codex: Codex, daemon: HandDaemon) -> None:
    """When the daemon lists what the image wrote down, nothing is to be done."""
    known = remembering(await complete(codex, daemon))
    found = await plan(codex, "default", daemon, known=known)
    assert (found.steps, found.stale) == ((), ())


async def test_image_that_knows_nothing(codex: Codex, daemon: HandDaemon) -> None:
    """Models that somebody else made under our names are made again, and the image is to be written."""
    await complete(codex, daemon)
    found = await plan(codex, "default", daemon, known=GenesisRecord())
    assert [step.kind for step in found.steps] == ["create"] * 4 + ["graph"]
    assert "this image did not make it for ROBIN" in found.steps[0].reason
    assert found.steps[-1].reason == "nothing is in it yet"
    found = await plan(codex, "default", daemon, known=GenesisRecord(codex_digest=codex.digest))
    assert found.steps[-1].reason == "its root is not complete and it lacks the personas' models"


async def test_model_with_another_digest(codex: Codex, daemon: HandDaemon) -> None:
    """A model of ours that somebody changed is made again under the same name; one that was deleted too."""
    before = await complete(codex, daemon)
    known = remembering(before)
    changed, deleted = before.models["BABS"], before.models["BRICK"]
    daemon.rows[changed] = daemon.rows[BASE]
    del daemon.rows[deleted]
    daemon.has(changed)
    daemon.rows[changed] = type(daemon.rows[changed])(changed, "f" * 64, 1)
    found = await plan(codex, "default", daemon, known=known)
    assert [(step.name, step.reason) for step in found.steps] == [
        (deleted, "the model of BRICK was deleted"),
        (changed, "the model of BABS is not the one that was made: somebody changed it"),
    ]


async def test_base_that_was_deleted(codex: Codex, daemon: HandDaemon) -> None:
    """Without its base's name a model still thinks: it is known, and only the base is pulled again."""
    before = await complete(codex, daemon)
    del daemon.rows[BASE]
    found = await plan(codex, "default", daemon, known=remembering(before))
    assert found.models == before.models
    assert [(step.kind, step.name) for step in found.steps] == [("pull", BASE)]
    del daemon.rows[before.models["BABS"]]
    found = await plan(codex, "default", daemon, known=remembering(before))
    assert set(found.models) == {"ROBIN", "BRICK", "ALFRED"}
    assert [(step.kind, step.persona) for step in found.steps[:2]] == [("pull", None), ("create", "BABS")]


async def test_base_that_was_renewed_and_deleted(codex: Codex, daemon: HandDaemon) -> None:
    """With models of two bases of one name there, each persona stays with the one that it thinks with."""
    first = await complete(codex, daemon)
    old = remembering(first)
    daemon.rows[BASE] = type(daemon.rows[BASE])(BASE, "e" * 64, 1)
    for name in (await plan(codex, "default", daemon)).recipes:
        daemon.has(name)
    second = await plan(codex, "default", daemon)
    assert set(first.models.values()).isdisjoint(second.models.values())
    renewed = remembering(second)
    del daemon.rows[BASE]
    for known, wanted in ((renewed, second), (replace(renewed, used=old.used), first)):
        both = replace(known, models={**old.models, **renewed.models})
        assert (await plan(codex, "default", daemon, known=both)).models == wanted.models
    later = {name: replace(made, at="then, later") for name, made in renewed.models.items()}
    unused = replace(renewed, used={}, models={**old.models, **later})
    assert (await plan(codex, "default", daemon, known=unused)).models == second.models


async def test_adapters_are_models_of_their_own(codex: Codex, daemon: HandDaemon) -> None:
    """Each adapter is sent once and makes a model beside the persona's plain one; the first is what it thinks with."""
    daemon.has(BASE)
    found = await plan(codex, "default", daemon, AdapterInventory((WARM, WISE)))
    uploads = [(step.name, step.size) for step in found.steps_of("upload")]
    assert uploads == [("robin/warm", 4_096), ("robin/wise", 1_024)]
    families = [step.label.partition(":")[0] for step in found.steps_of("create")]
    assert families[:3] == ["create batos-robin", "create batos-robin-warm", "create batos-robin-wise"]
    assert len(families) == 6
    assert found.models["ROBIN"].startswith("batos-robin-warm:")
    assert found.recipe_of("ROBIN") is found.recipes[found.models["ROBIN"]]


@pytest.mark.parametrize(("choice", "family"), [("none", "batos-robin"), ("wise", "batos-robin-wise")])
async def test_chosen_adapter(codex: Codex, daemon: HandDaemon, choice: str, family: str) -> None:
    """A persona thinks with the adapter that was chosen for it, or with its plain base; all are made all the same."""
    daemon.has(BASE)
    found = await plan(codex, "default", daemon, AdapterInventory((WARM, WISE)), {"ROBIN": choice})
    assert found.models["ROBIN"].partition(":")[0] == family
    assert len(found.recipes) == 6


async def test_adapter_of_another_content(codex: Codex, daemon: HandDaemon) -> None:
    """Another content under the same name is another model; the old one is stale, as is that of an adapter gone."""
    before = await complete(codex, daemon, AdapterInventory((WARM, WISE)))
    known = remembering(before)
    other = Adapter(**{**{name: getattr(WARM, name) for name in Adapter.__slots__},
                       "digests": {"adapter.gguf": f"sha256:{'c' * 64}"}})  # fmt: skip
    found = await plan(codex, "default", daemon, AdapterInventory((other,)), known=known)
    assert [step.kind for step in found.steps] == ["upload", "create", "graph"]
    assert "adapter changed since the model of ROBIN with the adapter warm was made" in found.steps[1].reason
    assert set(found.stale) == {before.models["ROBIN"], *(name for name in before.recipes if "wise" in name)}


async def test_prune(codex: Codex, daemon: HandDaemon, folder: Path, edit: Edit) -> None:
    """Pruned is what this image made and nobody wants or uses; what others made or changed is left to them."""
    before = await complete(codex, daemon)
    known = remembering(before)
    for name in ("batos-robin:0123456789ab", "batos-brick:handmade", "mine:latest"):
        daemon.has(name)
    for persona in ("robin", "brick", "babs"):
        edit(f"{persona}.toml", "temperature = ", "top_k = 7\ntemperature = ")
    row = daemon.rows[before.models["BRICK"]]
    daemon.rows[row.name] = type(row)(row.name, "f" * 64, 1)
    found = await plan(await asyncio.to_thread(codices.load, folder), "default", daemon, known=known)
    mine = {before.models[persona] for persona in ("ROBIN", "BRICK", "BABS")}
    assert set(found.stale) == {*mine, "batos-robin:0123456789ab"}
    assert not found.steps_of("delete")
    deletes = with_deletions(found, {before.models["BABS"]}).steps_of("delete")
    assert [step.name for step in deletes] == [before.models["ROBIN"]]


async def test_models_that_are_gone_are_forgotten(codex: Codex, daemon: HandDaemon, folder: Path, edit: Edit) -> None:
    """What the image remembers, nobody wants and the daemon no longer has is taken out of the image."""
    before = await complete(codex, daemon)
    edit("robin.toml", "temperature = ", "top_k = 7\ntemperature = ")
    changed = await asyncio.to_thread(codices.load, folder)
    after = await plan(changed, "default", daemon)
    daemon.has(after.models["ROBIN"])
    both = remembering(await plan(changed, "default", daemon)).with_models(remembering(before).models)
    found = await plan(changed, "default", daemon, known=both)
    assert not found.steps
    del daemon.rows[before.models["ROBIN"]]
    found = await plan(changed, "default", daemon, known=both)
    assert [(step.kind, step.reason) for step in found.steps] == [("graph", "it names models that are gone")]
