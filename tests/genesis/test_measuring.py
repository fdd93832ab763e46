"""What is measured of a base: once for each digest, kept in the image, and what missions make of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.genesis.conftest import HandDaemon
from tests.genesis.stages import Stage
from ZODB.Connection import Connection

from batos.genesis import measuring
from batos.genesis.adapters.inventory import AdapterInventory
from batos.genesis.codex.codex import Codex
from batos.genesis.daemon_listing import look
from batos.genesis.measuring import Measure
from batos.genesis.persona_models import GenesisRecord
from batos.genesis.plan import Plan, compare
from batos.genesis.provision import StepProgress
from batos.image import roots
from batos.inference import model_names
from batos.inference.ollama.catalogue import ModelCard
from batos.minds.context_building import ratio_of
from batos.protocol.brief import as_file
from batos.protocol.errors import OllamaUnreachable


@dataclass(slots=True)
class MarkedDaemon(HandDaemon):
    """A daemon whose models have a template, a vocabulary and what they can."""

    cards: list[str] = field(default_factory=list)

    async def show(self, model: str, *, verbose: bool = False) -> ModelCard:
        card = await HandDaemon.show(self, model, verbose=verbose)
        self.cards.append(f"{model} {verbose}")
        can = ("embedding",) if "minilm" in model else ("completion",)
        info = {"tokenizer.ggml.tokens": ["a", "<turn>"], "tokenizer.ggml.token_type": [1, 3]}
        return ModelCard(model, can, info, card.modelfile, "", "USER: {{ .Prompt }}", "llama", "", "")


async def planned(codex: Codex, daemon: HandDaemon, *models: str) -> Plan:
    """What is to be done where the daemon has these models."""
    for model in models:
        daemon.has(model_names.with_tag(model), 1_000)
    return compare(codex, "default", await look(daemon), AdapterInventory(), {}, GenesisRecord())


async def taken(plan: Plan, daemon: HandDaemon, known: dict[str, Measure] | None = None) -> tuple[Any, list[str]]:
    """What is measured, and what was told."""
    told: list[StepProgress] = []
    found = await measuring.take(plan, daemon, known or {}, told.append)
    return found, [f"{each.step}: {each.status}" for each in told]


async def test_each_base_is_measured_once(codex: Codex) -> None:
    """One card and one count for the base that four personas share; the embedder is looked at and not counted."""
    daemon = MarkedDaemon()
    plan = await planned(codex, daemon, codex.default_model, codex.embedder)
    found, told = await taken(plan, daemon)
    base, embedder = found.values()
    assert daemon.cards == [f"{codex.default_model} True", f"{codex.embedder} True"]
    assert [each for each in daemon.asked if each.startswith("count")] == [f"count {plan.models['ROBIN']}"]
    assert (base.name, base.tokens, base.size // 4) == (codex.default_model, base.size // 4, base.tokens)
    assert base.size > 2_000
    assert base.marks == ("USER:", "<turn>")
    assert (embedder.tokens, embedder.capabilities) == (0, ("embedding",))
    assert told[-1] == f"measure {codex.default_model}: success"
    again, told = await taken(plan, daemon, found)
    assert (again, told, len(daemon.cards)) == (found, [], 2)


async def test_another_base_of_the_same_name_is_measured_anew(codex: Codex) -> None:
    """What was known of the old digest is not kept."""
    daemon = MarkedDaemon()
    plan = await planned(codex, daemon, codex.default_model)
    found, _ = await taken(plan, daemon)
    known = {"another digest": next(iter(found.values()))}
    again, _ = await taken(plan, daemon, known)
    assert again == found


async def test_a_daemon_that_does_not_count_fails_nothing(codex: Codex) -> None:
    """It is told, what it said otherwise is kept, and the next genesis asks again for what is missing alone."""
    daemon = MarkedDaemon()
    plan = await planned(codex, daemon, codex.default_model)
    daemon.refused[plan.models["ROBIN"]] = OllamaUnreachable("gone")
    found, told = await taken(plan, daemon)
    (measure,) = found.values()
    assert (measure.tokens, measure.marks) == (0, ("USER:", "<turn>"))
    assert told[-1] == f"measure {codex.default_model}: left: gone"
    daemon.refused.clear()
    again, _ = await taken(plan, daemon, found)
    assert next(iter(again.values())).tokens > 0
    assert len(daemon.cards) == 1


def test_what_is_known_stands_in_the_image(connection: Connection) -> None:
    """As it was given; what is no base any more is forgotten; the same again changes nothing."""
    root: Any = connection.root()
    roots.prepare(root)
    one = Measure("m:1", 400, 100, ("<turn>",), ("completion",))
    assert measuring.record_measures(root, {"d1": one}) == ["genesis.bases.m:1 measured"]
    assert measuring.recorded_measures(root) == {"d1": one}
    assert measuring.record_measures(root, {"d1": one}) == []
    assert measuring.record_measures(root, {}) == ["genesis.bases.m:1 forgotten"]


def test_a_ratio_is_the_models_own_else_its_bases_else_the_first(connection: Connection) -> None:
    """What one persona's model measured serves the others of its base; another base learns nothing of it."""
    root: Any = connection.root()
    roots.prepare(root)
    root[roots.GENESIS]["models"] = {
        name: {"base_digest": digest} for name, digest in {"robin": "d1", "brick": "d1", "other": "d2"}.items()
    }
    assert ratio_of(root, "brick") == 0.35
    measuring.record_measures(root, {"d1": Measure("base", 1_000, 250, (), ("completion",))})
    assert ratio_of(root, "brick") == ratio_of(root, "base:latest") == pytest.approx(1.1 * 0.25)
    assert ratio_of(root, "other") == 0.35
    root[roots.STATISTICS]["measured"] = {"robin": (3_000, 1_150)}
    assert ratio_of(root, "brick") == pytest.approx(1.1 * 1_400 / 4_000)
    assert ratio_of(root, "robin") == pytest.approx(1.1 * 1_150 / 3_000)


def test_marks_go_by_the_models_name(connection: Connection) -> None:
    """Of those made of a base and of the base itself; who has none is not there."""
    root: Any = connection.root()
    roots.prepare(root)
    root[roots.GENESIS]["models"] = {"robin": {"base_digest": "d1"}, "other": {"base_digest": "d2"}}
    plain = Measure("plain", 1, 1, (), ())
    measuring.record_measures(root, {"d1": Measure("base", 1, 1, ("<turn>",), ()), "d2": plain})
    assert measuring.recorded_marks(root) == {"robin": ("<turn>",), "base:latest": ("<turn>",)}


async def test_the_first_question_leaves_out_nothing_that_fits(stage: Stage) -> None:
    """Some three passages in a window of 4,096, by a persona that never answered: all are shown, as at the second."""
    harbour = "\n\n".join(
        f"Part {number}. " + "The old harbour wall was built of granite. " * 24 for number in range(3)
    )
    with stage.uvm.image.snapshot() as root:
        assert ratio_of(root, stage.model("ALFRED")) < 0.3
    files = (as_file("harbour.txt", harbour.encode()),)
    for persona in ("ALFRED", "BABS"):
        shown = await stage.uvm.missions.ask(
            {"text": "What was the wall built of?", "persona": persona, "effort": "cycle"}, files=files
        )
        assert shown["provenance"]["omitted"]["passages"] == 0
        assert len({each.get("start") for each in shown["provenance"]["recalled"]}) == 3
