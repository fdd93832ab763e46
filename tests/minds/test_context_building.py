"""What a mission is asked, as its runner reads it back from the image."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from tests.briefs import any_brief

from batos.image import roots
from batos.image.records import Brief, MissionRecord, Status
from batos.minds import context_building
from batos.objects.prototype import UvmObject
from batos.protocol.brief import FIELDS, MissionBrief, parse
from batos.protocol.errors import BriefError, ModelMissing
from batos.testing import ScriptedBridge, scripted_uvm

AT = "2026-11-21T09:30:00.000Z"


def root_with(**stored: dict[str, Any]) -> Any:
    """A root with these missions alone, of which nothing was thought yet."""
    records = {
        name: MissionRecord(Brief(value, AT), Status("done", AT), UvmObject({})) for name, value in stored.items()
    }
    return MappingProxyType({roots.MISSIONS: records})


@given(brief=any_brief())
def test_the_runner_gets_the_brief_that_the_door_made(brief: MissionBrief) -> None:
    """After the image kept it: the same value, of the same types, though nothing is parsed a second time."""
    stored = {"id": "m-one", **brief.as_document()}
    record = pickle.loads(pickle.dumps(Brief(json.loads(json.dumps(stored)), AT)))
    root = root_with() if brief.ancestor is None else root_with(**{brief.ancestor: {"text": "another", "user": "me"}})
    asked = context_building.question_of(root, record)
    assert asked.brief == brief
    assert repr(asked.brief) == repr(brief)
    assert asked.asked_at == AT


@given(brief=any_brief())
def test_a_field_of_another_version_is_left_out(brief: MissionBrief) -> None:
    """An image that a newer version wrote to is read all the same; a field that is null there is absent."""
    stored = {**brief.as_document(), "colour": {"of": "the lamp"}}
    absent = dict.fromkeys(set(FIELDS) - stored.keys())
    assert MissionBrief.from_document({**absent, **stored}) == brief


@pytest.mark.parametrize("effort", ["reflex", "cycle", "council"])
async def test_a_question_names_its_own_model_and_options(tmp_path: Path, effort: str) -> None:
    """They go before the codex's in each call of a persona, its record has them, and the next question has none."""
    bridge = ScriptedBridge.saying("The lamp burns oil.")
    bridge.rows["other:1b"] = replace(next(iter(bridge.rows.values())), name="other:1b")
    own = {"model": "other:1b", "temperature": 0.25, "seed": 7, "system": "Speak like a keeper of lights."}
    async with scripted_uvm(tmp_path, bridge) as uvm:
        told = await uvm.missions.ask({"text": "What burns in the lamp?", "effort": effort, **own})
        asked = list(bridge.history)
        bridge.history.clear()
        await uvm.missions.ask({"text": "What burns in the stove?", "effort": effort})
    assert asked
    assert {each.model for each in asked} == {"other:1b"}
    assert {each.options["seed"] for each in asked} == {7}
    assert {each.options["temperature"] for each in asked} <= {0.25, 0.0}  # a small model decides at 0
    assert "keeper of lights" in str(asked[-1].messages)
    assert {name: told["brief"][name] for name in own} == own
    assert not any(each.model == "other:1b" or "keeper of lights" in str(each.messages) for each in bridge.history)


async def test_a_model_that_is_not_there_is_told_with_the_way_to_it(tmp_path: Path) -> None:
    """Genesis does not bring what only a question names."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying("The lamp burns oil.")) as uvm:
        with pytest.raises(ModelMissing) as caught:
            await uvm.missions.ask({"text": "What burns?", "effort": "reflex", "model": "none:1b"})
    assert "ollama pull none:1b" in caught.value.remedy


@pytest.mark.parametrize(
    ("field", "value"), [("temperature", 3), ("temperature", "hot"), ("seed", -1), ("seed", 1.5), ("system", " ")]
)
def test_an_option_that_no_model_takes_is_refused(field: str, value: object) -> None:
    """By the name of its field."""
    with pytest.raises(BriefError) as caught:
        parse({"text": "Why?", "user": "ada", field: value})
    assert caught.value.field == field
