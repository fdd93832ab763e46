"""ALFRED's audit finds what is missing or wrong in codex, image and models, and touches nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.genesis.conftest import Edit, HandDaemon
from tests.genesis.planning import plan
from tests.image.installing import install
from ZODB.Connection import Connection

from batos.genesis import graph, measuring, persona_models
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.genesis.integrity import Finding, audit
from batos.genesis.measuring import Measure
from batos.genesis.plan import Plan
from batos.genesis.provision import carry_out
from batos.image.roots import root_of
from batos.inference.ollama.catalogue import ModelRow
from batos.objects.method import Method
from batos.objects.prototype import UvmObject, own_slots


def wrong(findings: tuple[Finding, ...]) -> dict[str, str]:
    """What is not well, by id; each has a remedy."""
    assert all(finding.remedy for finding in findings if not finding.ok)
    return {finding.id: finding.what for finding in findings if not finding.ok}


def record(root: Any, made: Plan) -> None:
    """Write models and digests down, as genesis does."""
    graph.record_models(root, made.models)
    rows = ((name, recipe, made.listed.row(name)) for name, recipe in made.recipes.items())
    persona_models.record(
        root, {name: persona_models.model_record(recipe, row, "now") for name, recipe, row in rows if row is not None}
    )


async def test_all_is_well(connection: Connection, codex: Codex, daemon: HandDaemon) -> None:
    """After a whole genesis nothing is wrong, and the audit wrote nothing."""
    root = root_of(connection)
    graph.build(root, codex)
    made = await carry_out(await plan(codex, "default", daemon), daemon, lambda progress: None)
    record(root, made)
    connection.transaction_manager.commit()
    connection.transaction_manager.begin()
    findings = audit(root, codex, made)
    assert wrong(findings) == {}
    models = {"models.made", "models.recorded", "models.digests"}
    expected = {
        "codex.digest",
        "image.root",
        "image.identities",
        "image.states",
        "persona.robin",
        "window.alfred",
        *models,
    }
    assert {finding.id for finding in findings} >= expected
    assert not connection._registered_objects
    assert findings[0].as_dict()["ok"] is True


async def test_before_genesis(connection: Connection, codex: Codex, daemon: HandDaemon) -> None:
    """On an empty image and daemon the audit says so, and needs neither to be there."""
    found = wrong(audit(root_of(connection), codex, await plan(codex, "default", daemon)))
    assert set(found) == {"codex.digest", "image.root", "models.pull", "models.create"}
    assert found["image.root"] == "the image is still empty"
    assert set(wrong(audit(root_of(connection), codex, None))) == {"codex.digest", "image.root", "models.listed"}


def test_learnt_methods_are_where_they_act(connection: Connection, codex: Codex) -> None:
    """A persona with learnt methods is sound; a slot that holds another than the active one is found."""
    root = root_of(connection)
    graph.build(root, codex)
    connection.transaction_manager.commit()
    connection.transaction_manager.begin()
    brick = root["brick_prototype_obj"]
    first = install(root, brick, "guide_facet_", "one")
    install(root, brick, "guide_facet_", "two")
    findings = {finding.id: finding for finding in audit(root, codex, None)}
    assert findings["image.methods"].ok
    assert findings["image.methods"].what == "1 methods are active, of 1 slots that ever had one"
    assert findings["persona.brick"].ok
    assert "1 of them learnt" in findings["persona.brick"].what
    brick.guide_facet_ = first
    assert "brick_prototype_obj.guide_facet_" in wrong(audit(root, codex, None))["image.methods"]


def test_damage_is_found(connection: Connection, codex: Codex, folder: Path, edit: Edit) -> None:
    """A changed codex, a lost pillar, other parents and a lost state are each found where they are."""
    root = root_of(connection)
    graph.build(root, codex)
    del root["robin_prototype_obj"].sage_facet_
    root["robin_prototype_obj"].core_method = "Shout."
    root["babs_prototype_obj"] = UvmObject(own_slots(root["babs_prototype_obj"]))
    del root["orchestrator_obj"].failed_state_obj
    edit("alfred.toml", "# ALFRED:", 'model = "other"\n# ALFRED:')
    found = wrong(audit(root, codices.load(folder), None))
    assert set(found) == {"codex.digest", "persona.robin", "persona.babs", "image.states", "models.listed"}
    assert "sage_facet_ is missing" in found["persona.robin"]
    assert "core_method" in found["persona.robin"]
    assert "FAILED" in found["image.states"]


async def test_learnt_method_is_a_pillar(connection: Connection, codex: Codex) -> None:
    """A pillar that has become a method is there; the finding counts it."""
    root = root_of(connection)
    graph.build(root, codex)
    root["robin_prototype_obj"].sage_facet_ = Method(
        "sage_facet_", "async def sage_facet_(self, query):\n    return 1\n"
    )
    (finding,) = (one for one in audit(root, codex, None) if one.id == "persona.robin")
    assert finding.ok
    assert "1 of them learnt" in finding.what


def test_window(codex: Codex, connection: Connection, folder: Path, edit: Edit) -> None:
    """A window that the fixed texts would half fill is found before a mission meets it."""
    for name in ("robin", "brick", "babs", "alfred"):
        edit(f"{name}.toml", "num_ctx = 4096", "num_ctx = 1792")
    found = wrong(audit(root_of(connection), codices.load(folder), None))
    assert {"window.robin", "window.brick", "window.babs", "window.alfred"} <= set(found)


def test_a_small_window_has_room_for_the_lean_form(
    codex: Codex, connection: Connection, folder: Path, edit: Edit
) -> None:
    """A persona whose prompts have that form has only its line in each of them."""
    root = root_of(connection)
    for name in ("robin", "brick", "babs", "alfred"):
        edit(f"{name}.toml", "num_ctx = 4096", "num_ctx = 1792")
    changed = codices.load(folder)
    graph.build(root, changed)
    graph.record_forms(root, dict.fromkeys(changed.personas, "lean"))
    assert not [each for each in wrong(audit(root, changed, None)) if each.startswith("window.")]


async def test_models_not_recorded(connection: Connection, codex: Codex, daemon: HandDaemon) -> None:
    """Models that are made and unknown to the image are found."""
    root = root_of(connection)
    graph.build(root, codex)
    made = await carry_out(await plan(codex, "default", daemon), daemon, lambda progress: None)
    found = wrong(audit(root, codex, made))
    assert set(found) == {"models.recorded", "models.digests"}
    assert "ROBIN, BRICK, BABS, ALFRED" in found["models.recorded"]


async def test_models_of_another_digest(connection: Connection, codex: Codex, daemon: HandDaemon) -> None:
    """A model that was changed after it was written down is found by its digest."""
    root = root_of(connection)
    graph.build(root, codex)
    made = await carry_out(await plan(codex, "default", daemon), daemon, lambda progress: None)
    record(root, made)
    name = made.models["BRICK"]
    daemon.rows[name] = ModelRow(name, "f" * 64, 1)
    found = wrong(audit(root, codex, await plan(codex, "default", daemon)))
    assert set(found) == {"models.digests"}
    assert name in found["models.digests"]


def test_what_others_found_is_told(connection: Connection, codex: Codex) -> None:
    """Findings of those who looked at adapters and memory stand behind ALFRED's own, as they are."""
    extra = Finding("budget.fits", False, "it does not fit", "Take a smaller one.")
    assert audit(root_of(connection), codex, None, extra=[extra])[-1] is extra


def test_an_audit_is_kept_when_it_differs(connection: Connection, codex: Codex) -> None:
    """The last audit has its findings and since when they hold; the same findings again write nothing."""
    root = root_of(connection)
    assert persona_models.last_audit(root) is None
    graph.build(root, codex)
    found = [Finding("codex.digest", True, "well").as_dict()]
    assert persona_models.keep_audit(root, found, "monday") == "monday"
    assert persona_models.keep_audit(root, found, "tuesday") == "monday"
    assert persona_models.last_audit(root) == {"at": "monday", "findings": found}
    assert persona_models.keep_audit(root, [], "wednesday") == "wednesday"


def test_a_window_is_told_by_what_the_base_counts(codex: Codex, connection: Connection) -> None:
    """Bytes by the base's own density, once it was measured; the share of the answer is told beside the window."""
    root = root_of(connection)
    graph.build(root, codex)
    (guessed,) = (each.what for each in audit(root, codex, None) if each.id == "window.babs")
    measuring.record_measures(root, {"d": Measure(codex.default_model, 1_000, 200, (), ("completion",))})
    (counted,) = (each.what for each in audit(root, codex, None) if each.id == "window.babs")
    assert "by estimate; the window has 4096, of which an answer may take 1024" in guessed
    assert "as its base counts them" in counted
    tokens = [int(re.findall(r"about (\d+) tokens", what)[0]) for what in (guessed, counted)]
    assert tokens[0] * 0.2 == pytest.approx(tokens[1] * 0.35, abs=1)


async def test_a_base_that_cannot_do_what_it_is_named_for(
    connection: Connection, codex: Codex, daemon: HandDaemon
) -> None:
    """An embedder that is to think, and a model that is to embed: named with who was to use it."""
    root = root_of(connection)
    graph.build(root, codex)
    made = await carry_out(await plan(codex, "default", daemon), daemon, lambda progress: None)
    record(root, made)
    digests = {name: made.listed.row(name) for name in (codex.default_model, codex.embedder)}
    measuring.record_measures(
        root,
        {
            row.digest: Measure(name, 1, 1, (), ("completion",) if name == codex.embedder else ("embedding",))
            for name, row in digests.items()
            if row is not None
        },
    )
    found = [each for each in audit(root, codex, made) if each.id == "models.capable"]
    assert [each.ok for each in found] == [False, False]
    assert "ROBIN, BRICK, BABS, ALFRED" in found[0].what
    assert "embeds nothing" in found[1].what
