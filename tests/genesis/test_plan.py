"""The plan says what is missing between the codex and what the daemon lists, and changes nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.genesis.conftest import Edit, HandDaemon

from batos.errors import OllamaUnfit
from batos.genesis import codex as codices
from batos.genesis.codex import Codex
from batos.genesis.plan import plan

BASE = "llama3.1:8b-instruct-q4_K_M"


async def test_nothing_there(codex: Codex, daemon: HandDaemon) -> None:
    """On an empty daemon one pull serves all personas, their models wait for it, and the embedder is optional."""
    found = await plan(codex, "default", daemon)
    assert [(step.kind, step.name, step.optional) for step in found.steps] == [
        ("pull", BASE, False),
        *[("create", None, False)] * 4,
        ("pull", "all-minilm:latest", True),
    ]
    assert found.steps[0].reason == "ROBIN, BRICK, BABS, ALFRED and the coder think with it"
    assert (found.satisfied, found.needs_pull, found.models) == (False, True, {})
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
    assert (found.steps, found.satisfied, found.stale) == ((), True, ())


async def test_missing_embedder_is_optional(codex: Codex, daemon: HandDaemon) -> None:
    """A missing embedder alone leaves the plan satisfied, though it would pull."""
    daemon.has(BASE)
    for model in (await plan(codex, "default", daemon)).models.values():
        daemon.has(model)
    found = await plan(codex, "default", daemon)
    assert (found.satisfied, found.needs_pull) == (True, True)


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
    found = await plan(codices.load(folder), "default", daemon)
    assert {name for name in before if before[name] != found.models[name]} == {"ROBIN", "BRICK"}
    assert set(found.stale) == {before["ROBIN"], before["BRICK"]}
    assert found.steps[0].reason == "ROBIN's codex or base is not what its model was made of"
    daemon.rows[BASE] = daemon.rows["batos-robin:handmade"]
    assert not set(found.models.values()) & set((await plan(codex, "default", daemon)).models.values())


async def test_decision_mode_is_no_parameter(codex: Codex, daemon: HandDaemon, folder: Path, edit: Edit) -> None:
    """How decisions are asked for is ours: it changes no model's name and is no parameter."""
    daemon.has(BASE)
    before = await plan(codex, "default", daemon)
    edit("robin.toml", 'mode = "direct"', 'mode = "two_phase"')
    after = await plan(codices.load(folder), "default", daemon)
    assert before.models == after.models
    assert "mode" not in after.recipes["ROBIN"].parameters


async def test_personas_with_models_of_their_own(codex: Codex, daemon: HandDaemon, folder: Path, edit: Edit) -> None:
    """Each different base and the coder is one pull, whichever persona names it."""
    edit("brick.toml", "# BRICK:", 'model = "qwen2.5-coder:7b"\n# BRICK:')
    edit("mind.toml", "# coder =", 'coder = "qwen2.5-coder:7b"\n# coder =')
    found = await plan(codices.load(folder), "default", daemon)
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
        "reason": "ROBIN, BRICK, BABS, ALFRED and the coder think with it",
        "size": None,
        "persona": None,
        "optional": False,
    }
