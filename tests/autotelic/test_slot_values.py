"""Values of slots that are redefined while running: checked as the codex checks them, kept by genesis, brought back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.autotelic import slot_kinds, slot_values
from batos.autotelic.slot_values import SlotWrite
from batos.genesis import graph, state_steps
from batos.genesis.adapters import repository
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import PILLARS
from batos.genesis.codex.declarations import state_slot
from batos.image.records import DIGESTS
from batos.image.roots import Root
from batos.minds.context_building import persona_of, thinking_of, voice_of
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import BatosError, BriefError, NotFound, Refused
from batos.records import redefinitions
from batos.records.redefinitions import ChangeOrigin
from motion_worlds_side import trial_world

ANN = ChangeOrigin("ann", "2026-11-30T12:00:00.000Z", "I want it")
KOAN = "ROBIN.sages_koan_protocol_.when"


async def test_a_persona_thinks_with_its_new_values_from_the_next_mission_on(tmp_path: Path) -> None:
    """Options, form, line and facets; the first value of the lineage is the codex's."""

    def look(root: Root) -> None:
        for slot, value in (("temperature", 0.3), ("form", "lean"), ("line", "You are ROBIN. Be brief.")):
            slot_values.redefine(root, f"robin.{slot}", value, ANN)
        slot_values.redefine(root, "ROBIN.facets", ["sage_facet_"], ANN)
        robin = persona_of(root, "robin")
        assert thinking_of(robin).options["temperature"] == 0.3
        assert (voice_of(robin).form, voice_of(robin).line) == ("lean", "You are ROBIN. Be brief.")
        assert own_slots(robin)["facets"] == ("sage_facet_",)
        first, second = redefinitions.list_values(root, "ROBIN.temperature")
        assert (first.number, first.origin.by, second.number, second.origin) == (0, "codex", 1, ANN)
        assert slot_values.redefine(root, "ROBIN.temperature", 0.3, ANN) is None

    async with trial_world(tmp_path) as world:
        await world.uvm.image.shared.apply(look)


async def test_a_redefined_value_stays_until_the_codex_says_something_else(tmp_path: Path) -> None:
    """Another genesis leaves it; a change of the same key in the codex takes its place, and the lineage says so."""
    async with trial_world(tmp_path) as world:
        reconciler = world.uvm.reconciler
        await world.give("ROBIN.temperature", 0.3)
        await world.give("ROBIN.form", "lean")
        await reconciler.run()
        assert (world.acting()["ROBIN.temperature"], world.acting()["ROBIN.form"]) == (0.3, "lean")
        file = world.uvm.settings.place / "codex" / "robin.toml"
        codices.install(file.parent)
        file.write_text(file.read_text(encoding="utf-8").replace("temperature = 0.8", "temperature = 0.6"))
        await reconciler.run()
        assert world.acting()["ROBIN.temperature"] == 0.6
        assert world.acting()["ROBIN.form"] == "lean"
        with world.uvm.image.snapshot() as root:
            told = slot_values.describe(root, "ROBIN.temperature")
        assert [(each["number"], each["value"]) for each in told["values"]] == [(0, 0.6), (1, 0.3)]
        await world.uvm.image.shared.apply(lambda root: slot_values.roll_back(root, "ROBIN.temperature", 0, ANN))
        assert world.acting()["ROBIN.temperature"] == 0.6
        await world.give("ROBIN.temperature", 0.1)
        with world.uvm.image.snapshot() as root:
            values = redefinitions.list_values(root, "ROBIN.temperature")
        assert [(each.number, each.value) for each in values] == [(0, 0.6), (1, 0.3), (2, 0.1)]
        file.write_text(file.read_text(encoding="utf-8").replace("top_p = 0.9", "top_p = 0.8"))
        await reconciler.run()
        assert (world.acting()["ROBIN.temperature"], world.acting()["ROBIN.top_p"]) == (0.1, 0.8)


async def test_genesis_leaves_a_slot_that_it_had_not_declared_before(tmp_path: Path) -> None:
    """In an image from before, form and steps were redefined before a genesis of this version knew them."""
    steps = state_steps.without_step(state_steps.default_steps("DECOMPOSING"), "divide")

    def look(root: Root) -> None:
        prototype = own_slots(root["orchestrator_obj"])[state_slot("DECOMPOSING")]
        for holder, slot in ((root["robin_prototype_obj"], "form"), (prototype, state_steps.STEPS)):
            delattr(holder, slot)
            setattr(holder, DIGESTS, {name: each for name, each in own_slots(holder)[DIGESTS].items() if name != slot})
        slot_values.redefine(root, "ROBIN.form", "lean", ANN)
        slot_values.redefine(root, "DECOMPOSING.steps", steps, ANN)
        for _ in range(2):
            graph.build(root, codices.parse(codices.read_shipped()).sound())
            for name, value in (("ROBIN.form", "lean"), ("DECOMPOSING.steps", steps)):
                assert slot_values.find_place(root, name).read() == value

    async with trial_world(tmp_path) as world:
        await world.uvm.image.shared.apply(look)


async def test_a_condition_that_is_none_is_told_with_those_that_are(tmp_path: Path) -> None:
    """The message names the word that was meant to be one."""
    async with trial_world(tmp_path) as world:
        with pytest.raises(BriefError, match="no condition `min_word`") as refused:
            await world.give(KOAN, {"min_word": 3})
        assert "min_words" in refused.value.remedy


async def test_a_model_that_acts_in_the_place_of_the_codexs_goes_with_it(tmp_path: Path) -> None:
    """As long as the codex names the same; the name is that of the daemon's list."""

    def look(root: Root) -> None:
        slot_values.redefine(root, "ROBIN.model", "qwen2.5", ANN)
        assert thinking_of(persona_of(root, "robin")).model == "qwen2.5:latest"
        graph.build(root, codex)
        assert slot_values.find_place(root, "ROBIN.model").read() == "qwen2.5:latest"
        graph.build(root, codices.parse({**texts, codices.MIND: other}).sound())
        assert thinking_of(persona_of(root, "robin")).model == "another:1b"

    texts = codices.read_shipped()
    codex = codices.parse(texts).sound()
    other = texts[codices.MIND].replace(codex.default_model, "another:1b")
    root = built()
    with pytest.raises(BriefError, match="cloud"):
        slot_values.redefine(root, "ROBIN.model", "gpt-oss:120b-cloud", ANN)
    look(root)


def test_an_adapter_is_one_that_genesis_made_a_model_with() -> None:
    """In any case of its letters; what lies in the folder only is none yet, and what is gone is none any more."""
    root = built()
    warm = {"persona": "ROBIN", "model": "batos-robin-warm:1"}
    for name, more in (("atlas", {"model": "batos-babs-atlas:1"}), ("late", {}), ("warm", warm)):
        proxy = UvmObject({"persona": "BABS", "present": True, "used": False, "name": name, **more})
        own_slots(root["pLLM_obj"])["lora_repository"][f"BABS/{name}"] = proxy
    place = slot_values.find_place(root, "babs.adapter")
    assert (place.read(), slot_kinds.list_adapters(place.holder)) == ("none", ("none", "atlas"))
    slot_values.redefine(root, place.name, "Atlas", ANN)
    assert repository.choice_of(root, "BABS") == "atlas"
    with pytest.raises(BriefError, match="late") as refused:
        slot_values.redefine(root, place.name, "late", ANN)
    assert "none, atlas" in refused.value.remedy
    levers_of = {each.name: each.others for each in slot_values.list_levers(root, ["qwen2.5:0.5b"])}
    assert levers_of["BABS.adapter"] == ((SlotWrite("BABS.adapter", "none"),),)
    names = [f"model:{number}" for number in range(9)]
    (tried,) = [each.others for each in slot_values.list_levers(root, names) if each.name == "mind.model"]
    assert [each[0].value for each in tried] == names[:3]
    assert levers_of["mind.model"] == (tuple(SlotWrite(f"{each}.model", "qwen2.5:0.5b") for each in PILLARS),)


def test_the_shelf_is_what_the_codex_declares_and_what_does_not_act() -> None:
    """No facet of another persona, none twice; protocols may all be off, and genesis leaves them so."""
    root = built()
    facets, protocols = (slot_values.find_place(root, f"BABS.{slot}") for slot in ("facets", "protocols"))
    assert (slot_values.list_shelf(facets), slot_values.list_shelf(protocols)) == (
        ["second_reading_facet_"], ["bare_value_protocol_"],
    )  # fmt: skip
    for slot, value in (("facets", []), ("facets", ["sage_facet_"]), ("protocols", ["bare_value_protocol_"] * 2)):
        with pytest.raises(BriefError, match="own"):
            slot_values.redefine(root, f"BABS.{slot}", value, ANN)
    slot_values.redefine(root, "BABS.protocols", [], ANN)
    slot_values.redefine(root, "mind.cycle_from", 12, ANN)
    with pytest.raises(BriefError, match="number of words"):
        slot_values.redefine(root, "mind.cycle_from", True, ANN)
    graph.build(root, codices.parse(codices.read_shipped()).sound())
    assert (protocols.read(), slot_values.find_place(root, "mind.cycle_from").read()) == ((), 12)


async def test_a_former_value_comes_back(tmp_path: Path) -> None:
    """The one before, or one by its number; 0 is the codex's."""

    def look(root: Root) -> None:
        place = slot_values.find_place(root, "BABS.temperature")
        first = place.read()
        for value in (0.5, 0.7):
            slot_values.redefine(root, place.name, value, ANN)
        slot_values.roll_back(root, place.name, None, ANN)
        assert place.read() == 0.5
        slot_values.roll_back(root, place.name, 0, ANN)
        assert place.read() == first
        with pytest.raises(NotFound, match="had no value 9"):
            slot_values.roll_back(root, place.name, 9, ANN)
        with pytest.raises(NotFound, match="no other value"):
            slot_values.roll_back(root, "BABS.line", None, ANN)

    async with trial_world(tmp_path) as world:
        await world.uvm.image.shared.apply(look)


async def test_the_condition_of_a_protocol_is_another_intent(tmp_path: Path) -> None:
    """An intent is never changed: the slot gets a new one, which is the same but for its condition."""

    def look(root: Root) -> None:
        place = slot_values.find_place(root, KOAN)
        before, former = own_slots(place.holder)[place.slot], place.read()
        slot_values.redefine(root, KOAN, {"min_words": 7, "efforts": ["cycle"]}, ANN)
        after = own_slots(place.holder)[place.slot]
        assert after is not before
        assert after.when == {"efforts": ("cycle",), "min_words": 7}
        assert {**after.as_dict(), "when": None} == {**before.as_dict(), "when": None}
        slot_values.roll_back(root, KOAN, 0, ANN)
        assert place.read() == former

    async with trial_world(tmp_path) as world:
        await world.uvm.image.shared.apply(look)


@pytest.mark.parametrize(
    "name", ["ROBIN.core_identity", "ROBIN.name", "mind.charter", "orchestrator_obj.house_rules", "ROBIN.num_ctx",
             "items.kept", "trials.t-1", "thresholds.FOCUS_USUAL", "ROBIN.persona_model", ""],
)  # fmt: skip
async def test_who_the_mind_is_and_what_judges_it_are_no_slots(tmp_path: Path, name: str) -> None:
    """The organisation, the judge, gold and thresholds: refused by their names, whoever asks."""
    async with trial_world(tmp_path) as world:
        with pytest.raises(Refused, match="may be redefined"):
            await world.give(name, 1)


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=600),
    st.lists(st.text(max_size=9), max_size=3), st.dictionaries(st.text(max_size=9), st.integers(), max_size=2),
)  # fmt: skip


@given(st.data())
def test_a_wrong_value_changes_nothing(data: st.DataObject) -> None:
    """Every value is taken as the codex would take it, or refused with the field."""
    root = built()
    places = list(slot_values.list_places(root))
    before = {each.name: each.read() for each in places}
    place = data.draw(st.sampled_from(places))
    try:
        place.kind.check(place.holder, place.slot, data.draw(values))
    except BatosError as refused:
        assert isinstance(refused, BriefError)
        assert refused.field == "value"
        assert refused.remedy
    assert {each.name: each.read() for each in places} == before


def built() -> Root:
    """The shipped graph, in no database."""
    root = Root()
    graph.build(root, codices.parse(codices.read_shipped()).sound())
    return root
