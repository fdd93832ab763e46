"""What a mission is asked, as its runner reads it back from the image."""

from __future__ import annotations

import json
import pickle
from types import MappingProxyType
from typing import Any

from hypothesis import given
from tests.briefs import any_brief

from batos.image import roots
from batos.image.records import Brief, MissionRecord, Status
from batos.minds import context_building
from batos.objects.prototype import UvmObject
from batos.protocol.brief import MissionBrief

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
    absent = dict.fromkeys(MissionBrief.model_fields.keys() - stored.keys())
    assert MissionBrief.from_document({**absent, **stored}) == brief
