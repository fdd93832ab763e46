"""The prototype graph is built once, changed only where the codex changed, and never undoes what was learnt."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs
from tests.genesis.conftest import Edit
from tests.image.installing import install
from ZODB.Connection import Connection

from batos.genesis import graph
from batos.genesis.codex import codex as codices
from batos.genesis.codex import declarations
from batos.genesis.codex.codex import Codex
from batos.image import roots
from batos.image.records import DIGESTS
from batos.image.roots import Root, named_objects, root_of
from batos.objects.method import Intent, Primitive
from batos.objects.mirror import Mirror
from batos.objects.prototype import UvmObject, own_slots, parents_of
from batos.records import methods


def written(connection: Connection) -> int:
    """How many objects the current transaction would write."""
    return len(connection._registered_objects) + len(connection._added)


def commit(connection: Connection) -> None:
    """Commit and begin again, with nothing kept in memory."""
    connection.transaction_manager.commit()
    connection.cacheMinimize()
    connection.transaction_manager.begin()


def test_root_is_complete(connection: Connection, codex: Codex) -> None:
    """After the first build the root has every object and every record by its name."""
    root = root_of(connection)
    changes = graph.build(root, codex)
    assert set(root) == {*roots.OBJECTS, *roots.RECORDS}
    assert "robin_prototype_obj.sage_facet_ made" in changes
    assert root[roots.GENESIS]["codex_digest"] == codex.digest
    assert dict(root[roots.GENESIS]["codex_texts"]) == dict(codex.texts)


def test_personas_delegate(connection: Connection, codex: Codex) -> None:
    """Each persona delegates to pLLM_obj, then traits_obj, and answers their primitives as its own."""
    root = root_of(connection)
    graph.build(root, codex)
    for name in codex.personas:
        persona = named_objects(root)[declarations.prototype_name(name)]
        assert [one is other for one, other in zip(parents_of(persona), (root["pLLM_obj"], root["traits_obj"]),
                                                   strict=True)] == [True, True]  # fmt: skip
        assert (persona.name, persona.infer_, persona.log_) == (
            name,
            Primitive("llm.infer"),
            Primitive("traits.log"),
        )


def test_slots_of_a_persona(connection: Connection, codex: Codex) -> None:
    """A persona's slots are what the codex says, and every facet and protocol is an Intent of its kind."""
    root = root_of(connection)
    graph.build(root, codex)
    commit(connection)
    for name, persona in codex.personas.items():
        slots = own_slots(named_objects(root)[declarations.prototype_name(name)])
        assert slots["core_identity"] == persona.core_identity
        assert slots["prompts"] == dict(persona.prompts)
        assert slots["options"] == codex.options_for(name)
        assert slots["model"] == codex.default_model
        assert slots["facets"] == tuple(facet.slot for facet in persona.pillars if not facet.shelved)
        assert slots["protocols"] == tuple(protocol.slot for protocol in persona.protocols if not protocol.shelved)
        for kind, intents in (("facet", persona.pillars), ("protocol", persona.protocols)):
            for declared in intents:
                intent = slots[declared.slot]
                assert isinstance(intent, Intent)
                assert (intent.kind, intent.text, intent.name) == (kind, declared.intent, declared.name)
                assert intent.when == (None if declared.when is None else dict(declared.when))


def test_state_machine(connection: Connection, codex: Codex) -> None:
    """The orchestrator holds six states that answer their message, and a cycle whose clone is idle."""
    root = root_of(connection)
    graph.build(root, codex)
    orchestrator = root["orchestrator_obj"]
    for state, selector in declarations.STATES.items():
        prototype = getattr(orchestrator, declarations.state_slot(state))
        assert prototype.name == state
        assert getattr(prototype, selector) == Primitive(f"psm.{state.lower()}")
    cycle = orchestrator.cognitive_cycle_obj.clone()
    assert parents_of(cycle)[0] is orchestrator.idle_state_obj
    assert cycle.synthesize_response_for_ == Primitive("psm.idle")
    assert (orchestrator.charter, orchestrator.house_rules) == (codex.charter, codex.house_rules)


def test_tools_are_reached_from_everywhere(connection: Connection, codex: Codex, folder: Path, edit: Edit) -> None:
    """Every object has `tools`; what is declared absent stands there as an intent, and no method may write its slot."""
    root = root_of(connection)
    graph.build(root, codex)
    holder = root[roots.TOOLS]
    assert all(root[name].tools is holder for name in roots.OBJECTS if name != "genesis_obj")
    assert holder.text_agent.kind == "prototype"
    assert set(getattr(holder, DIGESTS)) == {"text_agent"}
    edit("mind.toml", "Both compute,", "Both compute, and that is all,")
    changes = graph.build(root, codices.load(folder))
    assert sorted(changes) == ["genesis.codex_digest recorded", "tools_obj.text_agent changed"]
    assert "that is all" in holder.text_agent.text


def test_second_run_writes_nothing(connection: Connection, codex: Codex) -> None:
    """A second build, also through a cold cache, changes nothing and has nothing to commit."""
    graph.build(root_of(connection), codex)
    graph.record_models(root_of(connection), {"ROBIN": "batos-robin:0123456789ab"})
    commit(connection)
    assert graph.build(root_of(connection), codex) == []
    assert graph.record_models(root_of(connection), {"ROBIN": "batos-robin:0123456789ab"}) == []
    assert written(connection) == 0


def _serials(root: Root) -> dict[str, bytes]:
    """Load every prototype object; return the revision of each by its name."""
    objects = [(name, named_objects(root)[name]) for name in roots.OBJECTS]
    for _, each in objects:
        each._p_activate()
    return {name: each._p_serial for name, each in objects}


def test_changed_codex_changes_its_slots(connection: Connection, codex: Codex, folder: Path, edit: Edit) -> None:
    """A changed intent and a changed option change exactly their slots; other records keep their revision."""
    root = root_of(connection)
    graph.build(root, codex)
    commit(connection)
    before = _serials(root)
    edit("robin.toml", "Be deeply kind, and simple.", "Be very deeply kind, and simple.")
    edit("robin.toml", "temperature = 0.8", "temperature = 0.7")
    changes = graph.build(root, codices.load(folder))
    assert sorted(changes) == [
        "genesis.codex_digest recorded",
        "robin_prototype_obj.options changed",
        "robin_prototype_obj.still_point_facet_ changed",
    ]
    commit(connection)
    assert root["robin_prototype_obj"].still_point_facet_.text.startswith("Be very deeply")
    after = _serials(root)
    assert [name for name in roots.OBJECTS if before[name] != after[name]] == ["robin_prototype_obj"]


def test_learnt_method_stays(connection: Connection, codex: Codex, folder: Path, edit: Edit) -> None:
    """A method installed where the codex declares an intent stays until that intent is written anew."""
    root = root_of(connection)
    graph.build(root, codex)
    commit(connection)
    robin = root["robin_prototype_obj"]
    learnt = install(root, robin, "sage_facet_", "async def sage_facet_(self, query):\n    return query\n")
    robin.prompts = {**robin.prompts, "reflex": "tuned: $query"}
    commit(connection)
    edit("robin.toml", "Be deeply kind, and simple.", "Be very deeply kind, and simple.")
    graph.build(root, codices.load(folder))
    assert robin.sage_facet_ is learnt
    assert robin.prompts["reflex"] == "tuned: $query"
    edit("robin.toml", "Show lightly what is already whole.", "x")
    edit("robin.toml", "Give acceptance and company", "Give company")
    told = "robin_prototype_obj.sage_facet_ changed; revision 1 of its method is retired"
    assert told in graph.build(root, codices.load(folder))
    assert isinstance(robin.sage_facet_, Intent)
    lineage = methods.lineage_of(root, robin, "sage_facet_")
    assert lineage is not None
    assert (lineage.active, lineage.intent) == (0, robin.sage_facet_)
    assert lineage.retired[1]["reason"] == methods.ANEW


def test_identity_is_always_the_codex(connection: Connection, codex: Codex) -> None:
    """Who a persona is, and the charter, are as declared after every build, whatever was written over them."""
    root = root_of(connection)
    graph.build(root, codex)
    root["brick_prototype_obj"].core_identity = "You are somebody else."
    root["orchestrator_obj"].charter = "Anything goes."
    assert graph.build(root, codex) == [
        "orchestrator_obj.charter changed",
        "brick_prototype_obj.core_identity changed",
    ]


def test_a_protocol_is_given_what_it_declares(connection: Connection, codex: Codex, folder: Path, edit: Edit) -> None:
    """Each word that a codex may have for it stands in the intent."""
    root = root_of(connection)
    graph.build(root, codex)
    given = "audit"
    for word in ("ledger", "counters", "cem"):
        edit("alfred.toml", f'given = "{given}"', f'given = "{word}"')
        graph.build(root, codices.load(folder))
        assert own_slots(root["alfred_prototype_obj"])["system_integrity_audit_protocol_"].given == word
        given = word


def test_undeclared_intent_goes(connection: Connection, codex: Codex, folder: Path, edit: Edit) -> None:
    """A protocol taken out of the codex goes, with the method that was learnt for it, which stays readable."""
    root = root_of(connection)
    graph.build(root, codex)
    robin = root["robin_prototype_obj"]
    commit(connection)
    install(root, robin, "lantern_protocol_", "async def lantern_protocol_(self, answer):\n    return answer\n")
    for old in ("sages_koan", "lantern"):
        edit("robin.toml", f'slot = "{old}_protocol_"', f'slot = "{old}_two_protocol_"')
        edit("robin.toml", f'signature = "{old}_protocol_(', f'signature = "{old}_two_protocol_(')
    changes = graph.build(root, codices.load(folder))
    assert "robin_prototype_obj.sages_koan_protocol_ removed" in changes
    assert "robin_prototype_obj.lantern_protocol_ removed; revision 1 of its method is retired" in changes
    assert not {"sages_koan_protocol_", "lantern_protocol_"} & set(own_slots(robin))
    assert robin.protocols == ("receptive_resonance_protocol_", "sages_koan_two_protocol_", "lantern_two_protocol_")
    assert graph.build(root, codices.load(folder)) == []
    lineage = methods.lineage_of(root, robin, "lantern_protocol_")
    assert lineage is not None
    assert lineage.retired[1]["reason"] == methods.NO_MORE
    assert lineage.revisions[1].source.startswith("async def lantern")


def test_deleted_slot_comes_back(connection: Connection, codex: Codex) -> None:
    """A declared slot that is gone is written again."""
    root = root_of(connection)
    graph.build(root, codex)
    del root["alfred_prototype_obj"].triggers
    assert graph.build(root, codex) == ["alfred_prototype_obj.triggers made"]


def test_wrong_parents_are_mended(connection: Connection, codex: Codex) -> None:
    """A persona that delegates elsewhere delegates to pLLM_obj and traits_obj again."""
    root = root_of(connection)
    graph.build(root, codex)
    root["babs_prototype_obj"] = UvmObject(own_slots(root["babs_prototype_obj"]), parents=(root["traits_obj"],))
    with capture_logs() as logs:
        assert graph.build(root, codex) == ["babs_prototype_obj delegates anew"]
    assert [(log["event"], log["by"], log["why"]) for log in logs] == [
        ("object.reparented", "genesis", "the prototype graph")
    ]


def test_profile_is_written(connection: Connection, codex: Codex) -> None:
    """Another profile changes the models of personas and pLLM_obj, and is recorded."""
    root = root_of(connection)
    graph.build(root, codex)
    changes = graph.build(root, codex, "small")
    assert "genesis.profile recorded" in changes
    assert {named_objects(root)[declarations.prototype_name(name)].model for name in codex.personas} == {
        "llama3.2:3b-instruct-q4_K_M"
    }
    assert root["pLLM_obj"].coder == "llama3.2:3b-instruct-q4_K_M"


def test_graph_can_be_looked_at(connection: Connection, codex: Codex) -> None:
    """A mirror describes every object of the graph as plain data."""
    root = root_of(connection)
    graph.build(root, codex)
    for name in roots.OBJECTS:
        assert isinstance(Mirror(root[name]).describe(), dict)
