"""What the image remembers of models comes back as it was written, and a second writing changes nothing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from persistent.mapping import PersistentMapping
from ZODB.Connection import Connection

from batos.genesis import graph, persona_models
from batos.genesis.codex.codex import Codex
from batos.genesis.persona_models import GenesisRecord, MadeModel, Recipe
from batos.image import roots
from batos.image.roots import Root, root_of
from batos.inference.ollama.catalogue import ModelRow

MADE = MadeModel("ROBIN", "d" * 64, "llama3.1:8b", "b" * 64, "e" * 64, None, "monday")

digests = st.text("0123456789abcdef", min_size=64, max_size=64)
entries = st.builds(
    MadeModel,
    persona=st.sampled_from(["ROBIN", "BRICK"]),
    digest=digests,
    base=st.just("llama3.1:8b"),
    base_digest=digests,
    recipe=digests,
    adapter=st.none() | st.just("warm"),
    at=st.just("monday"),
)
ledgers = st.dictionaries(st.sampled_from([f"batos-robin:{number:012x}" for number in range(5)]), entries)


def rooted() -> Root:
    """As much of a root as the ledger needs."""
    return {roots.GENESIS: PersistentMapping()}


@given(first=ledgers, second=ledgers)
def test_what_is_written_is_known(first: dict[str, MadeModel], second: dict[str, MadeModel]) -> None:
    """After any two writings the second is known, whole; written again it changes nothing."""
    root = rooted()
    persona_models.record(root, first)
    changes = persona_models.record(root, second)
    after = persona_models.read_record(root).models
    assert after.keys() == second.keys()
    assert (changes == []) == (first == second)
    assert persona_models.record(root, second) == []
    assert {name: replace(made, at="") for name, made in after.items()} == {
        name: replace(made, at="") for name, made in second.items()
    }


def test_the_time_is_that_of_the_first_writing() -> None:
    """The same model seen again keeps the time at which it was made; another digest has its own."""
    root = rooted()
    persona_models.record(root, {"a": MADE})
    assert persona_models.record(root, {"a": replace(MADE, at="tuesday")}) == []
    assert persona_models.read_record(root).models["a"].at == "monday"
    assert persona_models.record(root, {"a": replace(MADE, digest="f" * 64, at="tuesday")}) == [
        "genesis.models.a changed"
    ]
    assert persona_models.read_record(root).models["a"].at == "tuesday"
    assert persona_models.record(root, {}) == ["genesis.models.a forgotten"]


def test_what_an_older_version_wrote_is_not_known() -> None:
    """A digest alone does not say what it was made of: such a model is made again."""
    root = rooted()
    root[roots.GENESIS]["models"] = {"a": "d" * 64}
    assert persona_models.read_record(root).models == {}
    assert persona_models.record(root, {"a": MADE}) == ["genesis.models.a recorded"]


def test_an_image_before_its_genesis(connection: Connection) -> None:
    """It knows nothing, and reading it writes nothing."""
    assert persona_models.read_record(root_of(connection)) == GenesisRecord()
    assert persona_models.last_audit(root_of(connection)) is None
    assert not connection._registered_objects


def test_an_image_after_its_genesis(connection: Connection, codex: Codex) -> None:
    """It knows its codex, its profile, that it is complete, and which model each persona uses."""
    root = root_of(connection)
    graph.build(root, codex, "small")
    graph.record_models(root, {"ROBIN": "batos-robin:0a"})
    found = persona_models.read_record(root)
    assert (found.codex_digest, found.profile, found.complete) == (codex.digest, "small", True)
    assert found.used == {"ROBIN": "batos-robin:0a"}


def test_of_a_recipe() -> None:
    """Everything that went into a model is written down with what came out."""
    recipe = Recipe("ROBIN", "llama3.1:8b", "b" * 64, "You are ROBIN.", {"num_ctx": 4096})
    made = persona_models.model_record(recipe, ModelRow(recipe.name, "d" * 64, 1), "monday")
    assert made == replace(MADE, recipe=recipe.digest)
    assert recipe.name.endswith(made.recipe[:12])


def test_trusting() -> None:
    """What this very run has made is believed beside what was known."""
    known = GenesisRecord(models={"a": MADE}).with_models({"b": MADE})
    assert known.models == {"a": MADE, "b": MADE}
