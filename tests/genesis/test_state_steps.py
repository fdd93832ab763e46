"""The steps of the machine's states as data: what is sound, what is refused, and what genesis does with them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.genesis.sound_steps import behaviours, sound_steps
from tests.genesis.test_graph import commit
from ZODB.Connection import Connection

from batos.genesis import graph, state_steps
from batos.genesis.codex.codex import Codex
from batos.genesis.codex.declarations import STATES, state_slot
from batos.genesis.state_steps import (
    STEPS,
    TABLE,
    Steps,
    check_steps,
    default_steps,
    steps_of,
    with_bound_value,
    without_step,
)
from batos.image.records import DIGESTS
from batos.image.roots import Root, root_of
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import ObjectError

STATED = pytest.mark.parametrize("state", [*TABLE])


def prototype(root: Root, state: str) -> UvmObject:
    """The prototype of a state."""
    found = own_slots(root["orchestrator_obj"])[state_slot(state)]
    assert isinstance(found, UvmObject)
    return found


def refused(state: str, value: object) -> ObjectError:
    """The error with which a value is refused."""
    with pytest.raises(ObjectError) as raised:
        check_steps(state, value)
    assert raised.value.remedy
    assert raised.value.field
    return raised.value


@STATED
def test_the_default_is_sound_and_each_state_can_be_changed(state: str) -> None:
    """Two steps at least of each working state can be moved, bounded or left out."""
    steps = default_steps(state)
    assert check_steps(state, steps) == steps
    assert state in STATES
    pliable = [each for each in TABLE[state] if each.bounds or not each.is_required]
    assert len(pliable) >= 2


@given(st.sampled_from([*TABLE]).flatmap(lambda state: st.tuples(st.just(state), sound_steps(state))))
def test_sound_steps_stay_as_they_are_and_cross_json(drawn: tuple[str, Steps]) -> None:
    """A check changes nothing of sound steps, and lists from JSON become the same tuples."""
    state, steps = drawn
    assert check_steps(state, steps) == steps
    assert check_steps(state, json.loads(json.dumps(steps))) == steps


_ATOMS = st.none() | st.booleans() | st.integers(-3, 120) | st.floats() | st.text(max_size=4)
_NAMES = st.sampled_from(["recall", "divide", "combine", "delegate", "most", "mode", "quorum", "auto", "nothing"])
_JUNK = st.recursive(
    _ATOMS | _NAMES, lambda inner: st.lists(inner, max_size=4) | st.tuples(_NAMES, inner), max_leaves=12
)


@given(st.sampled_from([*TABLE]), _JUNK)
def test_anything_else_is_refused_in_one_way(state: str, value: Any) -> None:
    """Whatever is given becomes steps that are sound, or the one error with its remedy."""
    try:
        steps = check_steps(state, value)
    except ObjectError as fault:
        assert fault.remedy
    else:
        assert check_steps(state, steps) == steps


@pytest.mark.parametrize(
    ("state", "value", "named"),
    [
        ("IDLE", (("recall", ()), ("rules", ()), ("divide", ())), "divide"),
        ("IDLE", (("recall", ()), ("rules", ()), ("rules", ())), "twice"),
        ("IDLE", (("rules", ()),), "recall"),
        ("IDLE", (("rules", ()), ("recall", ())), "before"),
        ("DECOMPOSING", (("compute", ()), ("divide", ())), "before"),
        ("SYNTHESIZING", (("combine", ()), ("protocol", ()), ("withhold", ())), "before"),
        ("SYNTHESIZING", (("combine", ()), ("repair", ())), "withhold"),
        ("IDLE", (("recall", (("most", 0),)), ("rules", ())), "recall.most"),
        ("IDLE", (("recall", (("most", True),)), ("rules", ())), "True"),
        ("IDLE", (("recall", (("most", 8.0),)), ("rules", ())), "8.0"),
        ("IDLE", (("recall", (("most", "8"),)), ("rules", ())), "'8'"),
        ("IDLE", (("recall", (("most", 8), ("most", 8))), ("rules", ())), "twice"),
        ("IDLE", (("recall", (("least", 8),)), ("rules", ())), "least"),
        ("SYNTHESIZING", (("combine", (("mode", "blend"),)), ("withhold", ())), "blend"),
        ("DELEGATING", "delegate", "no pair"),
        ("DELEGATING", (("delegate",),), "no pair"),
        ("DELEGATING", {"delegate": ()}, "no pair"),
    ],
)
def test_a_fault_is_named(state: str, value: object, named: str) -> None:
    """Unknown, twice, missing, out of order, out of range, of another kind, no list: the message says which."""
    assert named in refused(state, value).message


@pytest.mark.parametrize("state", ["COMPLETE", "FAILED", "idle", ""])
def test_only_working_states_have_steps(state: str) -> None:
    """COMPLETE and FAILED do what they do."""
    with pytest.raises(ObjectError, match="no working state"):
        check_steps(state, ())


def test_a_bound_that_is_not_given_has_its_default() -> None:
    """An image from before a bound was known goes on as before."""
    steps = check_steps("IDLE", [["recall", [["focus", 3]]], ["rules", []]])
    assert steps == (("recall", (("most", 8), ("room", 100), ("focus", 3))), ("rules", ()))


@STATED
def test_changes_are_values(state: str) -> None:
    """Each changes what was asked for and nothing else, and refuses what is not there."""
    steps = default_steps(state)
    for step in TABLE[state]:
        assert [name for name, _ in without_step(steps, step.name)] == [
            each.name for each in TABLE[state] if each is not step
        ]
        for bound in step.bounds:
            other = next(each for each in bound.allowed if each != bound.default)
            changed = with_bound_value(steps, step.name, bound.name, other)
            assert with_bound_value(changed, step.name, bound.name, bound.default) == steps != changed
            assert check_steps(state, changed) == changed
    with pytest.raises(ObjectError):
        without_step(steps, "nothing")
    with pytest.raises(ObjectError):
        with_bound_value(steps, steps[0][0], "nothing", 1)


def test_genesis_declares_the_steps_and_keeps_what_was_redefined(connection: Connection, codex: Codex) -> None:
    """A redefinition stays until its declaration changes; a second run writes nothing."""
    root = root_of(connection)
    assert "idle_state_obj.steps made" in graph.build(root, codex)
    assert steps_of(root["orchestrator_obj"]).redefined_states() == {}
    commit(connection)
    fewer = without_step(default_steps("DECOMPOSING"), "divide")
    assert state_steps.redefine(root["orchestrator_obj"], "DECOMPOSING", fewer) == fewer
    commit(connection)
    assert graph.build(root, codex) == []
    assert steps_of(root["orchestrator_obj"]).steps["DECOMPOSING"] == fewer
    assert [step for step, _ in steps_of(root["orchestrator_obj"]).redefined_states()["DECOMPOSING"]] == [
        "recall_for_parts", "use_tools_for_parts", "compute",
    ]  # fmt: skip


def test_unsound_steps_are_refused_when_they_are_written(connection: Connection, codex: Codex) -> None:
    """Nothing of them is in the image then."""
    root = root_of(connection)
    graph.build(root, codex)
    with pytest.raises(ObjectError, match="no step 'recall'"):
        state_steps.redefine(root["orchestrator_obj"], "IDLE", without_step(default_steps("IDLE"), "recall"))
    assert own_slots(prototype(root, "IDLE"))[STEPS] == default_steps("IDLE")


def test_steps_that_this_version_does_not_know_are_refused_until_genesis(connection: Connection, codex: Codex) -> None:
    """Nothing takes their place unasked: reading them names the remedy, which helps."""
    root = root_of(connection)
    graph.build(root, codex)
    setattr(prototype(root, "DELEGATING"), STEPS, (("divine", ()),))
    with pytest.raises(ObjectError, match="divine") as raised:
        steps_of(root["orchestrator_obj"])
    assert "batos genesis" in raised.value.remedy
    assert graph.build(root, codex) == ["delegating_state_obj.steps changed"]
    assert steps_of(root["orchestrator_obj"]).redefined_states() == {}


def test_an_image_from_before_has_the_declared_steps(connection: Connection, codex: Codex) -> None:
    """Without the slot the default holds, and genesis writes it."""
    root = root_of(connection)
    graph.build(root, codex)
    for state in TABLE:
        holder = prototype(root, state)
        delattr(holder, STEPS)
        setattr(holder, DIGESTS, {slot: each for slot, each in own_slots(holder)[DIGESTS].items() if slot != STEPS})
    commit(connection)
    assert steps_of(root["orchestrator_obj"]).redefined_states() == {}
    assert graph.build(root, codex) == [f"{state_slot(state)}.steps made" for state in TABLE]


@given(behaviours())
def test_redefined_states_are_told(drawn: dict[str, Steps]) -> None:
    """The record of a mission has the states whose steps are not the declared ones, and no other."""
    told = state_steps.MachineSteps(drawn).redefined_states()
    assert set(told) == {state for state, steps in drawn.items() if steps != default_steps(state)}
