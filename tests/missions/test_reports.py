"""Reports: a mission in every status, lists, prompts and objects, as plain data."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import islice
from types import SimpleNamespace
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from BTrees.OOBTree import OOBTree
from hypothesis import given
from hypothesis import strategies as st
from tests.minds.conftest import Mind
from tests.minds.scripted import Script, WaitingBridge, ask, begun, kind, submit

from batos.image import roots
from batos.image.ownership import DOOR, NOBODYS_DOORS
from batos.missions import reports
from batos.protocol.errors import NotFound, StreamCut
from batos.protocol.evidence_documents import PromptDocument
from batos.protocol.image_documents import SampleDocument
from batos.protocol.mission_documents import MissionDocument, MissionLineDocument

ALWAYS = {"id", "status", "brief", "accepted_at", "trust", "states", "cost"}
ANSWERED = {"answer", "voices", "route", "provenance", "tid"}
COST = {"calls", "embeds", "prompt_tokens", "answer_tokens", "seconds", "waited", "loads", "from_journal", "wasted"} | {
    "learning"
}


async def test_a_queued_mission_has_its_brief_and_no_more(mind: Mind) -> None:
    """Accepted and not begun."""
    mission = await submit(mind.uvm)
    shown = mind.uvm.readings.mission(mission)
    assert shown.keys() == ALWAYS
    assert (shown["id"], shown["status"], shown["states"]) == (mission, "queued", [])
    assert shown["brief"]["id"] == mission
    json.dumps(shown)


async def test_a_running_mission_says_so(mind: Mind) -> None:
    """While it thinks its status is `running`, and nothing of its thought is visible."""
    bridge = WaitingBridge(Script())
    bridge.rows = mind.bridge.rows
    mind.uvm.readiness.bridge = bridge
    mission = await submit(mind.uvm)
    running = asyncio.create_task(mind.uvm.missions.run(mission))
    await bridge.let(1)
    await bridge.arrived(4)
    shown = mind.uvm.readings.mission(mission)
    assert shown.keys() == ALWAYS
    assert shown["status"] == "running"
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_done_mission_has_all_of_the_contract(mind: Mind) -> None:
    """Answer, voices, route, cost, states, commit and provenance."""
    shown = await ask(mind.uvm)
    assert shown.keys() == ALWAYS | ANSWERED
    assert shown["route"].keys() == {"personas", "effort", "confidence", "reason", "scores"}
    assert shown["cost"].keys() == COST
    assert shown["tid"].startswith("tid:0x")
    assert all(each.keys() == {"state", "at"} for each in shown["states"])
    voice = {"facet", "persona", "name", "query", "answer", "known", "citations"}
    assert all(each.keys() == voice for each in shown["voices"])


def untyped(value: object, kind: Any) -> list[str]:
    """The keys of a document that its type does not name, at any depth; those that it promises and lacks, too."""
    if isinstance(value, list):
        return [key for each in value for inner in get_args(kind) for key in untyped(each, inner)]
    kinds = [one for one in (kind, *get_args(kind)) if is_typeddict(one)]
    if not isinstance(value, dict) or not kinds:
        return []
    if len(kinds) > 1:
        return min((untyped(value, one) for one in kinds), key=len)
    hints = get_type_hints(kinds[0])
    full = get_type_hints(kinds[0], include_extras=True)
    promised = {name for name, hint in full.items() if get_origin(hint) is not NotRequired}
    wrong = [*(value.keys() - hints.keys()), *(promised - value.keys() if kinds[0].__total__ else ())]
    return wrong + [key for name in value.keys() & hints.keys() for key in untyped(value[name], hints[name])]


async def test_the_types_name_every_key(mind: Mind) -> None:
    """Of an answered mission, its line in a list and its prompts: what mypy holds readers to is what there is."""
    shown = await ask(mind.uvm)
    assert untyped(shown, MissionDocument) == []
    assert untyped(mind.uvm.readings.newest(), list[MissionLineDocument]) == []
    assert untyped(mind.uvm.readings.prompts(shown["id"]), list[PromptDocument]) == []
    shown["provenance"]["gate"]["faults"].append({"check": "length"})
    assert untyped({**shown, "costs": {}}, MissionDocument) == ["costs", "what"]


async def test_a_failed_mission_has_its_reason_and_what_it_cost(mind: Mind) -> None:
    """No answer, but route, states and cost: what was spent is told, and what ran."""
    mind.bridge.respond = lambda request: StreamCut("cut") if kind(request) == "part" else mind.script(request)
    mission = await submit(mind.uvm)
    with pytest.raises(StreamCut):
        await mind.uvm.missions.run(mission)
    shown = mind.uvm.readings.mission(mission)
    assert shown.keys() == ALWAYS | {"reason", "route", "provenance"}
    assert shown["reason"].keys() == {"code", "message", "remedy", "retry"}
    assert shown["cost"]["calls"] == 4
    assert [each["as"] for each in shown["provenance"]["methods"]] == ["interpreted intent"] * 3
    json.dumps(shown)


async def test_the_list_has_a_line_each_newest_first(mind: Mind) -> None:
    """Id, status, times, user and a short text; as many as were asked for."""
    ids = [await submit(mind.uvm, f"Question {number}\nwith  blanks " + "and more " * 20) for number in range(5)]
    lines = mind.uvm.readings.newest(3)
    assert [line["id"] for line in lines] == sorted(ids, reverse=True)[:3]
    assert lines[0].keys() == {"id", "status", "at", "accepted_at", "user", "text"}
    assert len(lines[0]["text"]) == 80
    assert "with blanks and more" in lines[0]["text"]
    assert len(mind.uvm.readings.newest(100)) == 5
    assert mind.uvm.readings.newest(0) == []
    json.dumps(lines)


async def test_what_the_mind_asks_itself_is_nobodys_last_question(mind: Mind) -> None:
    """The newest mission of a person is the one that this person asked, whatever was asked in their name since."""
    first, second = [await submit(mind.uvm, f"Question {number}") for number in range(2)]
    await submit(mind.uvm, "Write a question.", origin={"door": DOOR, "client": "items d-1"})
    with mind.uvm.image.snapshot() as root:
        user = roots.mission_record(root, first).brief.value["user"]
        assert reports.resolve_mission(root, "last", user) == second
        assert reports.resolve_mission(root, "last-1", user) == first
        listed = [each["id"] for each in reports.mission_lines(root, 9, None, None, NOBODYS_DOORS)]
        assert listed == [second, first]
        assert len(reports.mission_lines(root, 9, None, None)) == 3


ulids = st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=3, max_size=3).map(lambda text: f"m-01M7Z{text}")


@given(ids=st.sets(ulids, max_size=40), most=st.integers(0, 50))
def test_paging_gives_the_largest_ids_in_order(ids: set[str], most: int) -> None:
    """Whatever ids there are: the newest `most` of them, each once, newest first."""
    root: Any = {roots.MISSIONS: OOBTree(dict.fromkeys(ids, (None, None, None)))}
    found: Iterator[Any] = islice(reports.newest(root), most)
    assert [name for name, _ in found] == sorted(ids, reverse=True)[:most]


def test_before_genesis_there_is_no_object_at_all() -> None:
    """Whoever looks for one is told what makes them, and no other name."""
    with pytest.raises(NotFound, match="the image is still empty") as raised:
        reports.inspect_object({roots.MISSIONS: OOBTree()}, "robin_prototype_obj")
    assert "batos genesis" in raised.value.remedy


async def test_prompts_are_the_exact_ones(mind: Mind) -> None:
    """Every call with what was sent and what came, in order."""
    shown = await ask(mind.uvm)
    prompts = mind.uvm.readings.prompts(shown["id"])
    assert len(prompts) == 5
    assert prompts[0].keys() == {
        "path", "model", "digest", "state", "messages", "format", "options",
        "response", "tokens", "started", "ended", "key",
    }  # fmt: skip
    sent = {json.dumps(list(request.messages), sort_keys=True) for request in mind.bridge.history}
    assert {json.dumps(each["messages"], sort_keys=True) for each in prompts} == sent
    assert {each["state"] for each in prompts} == {"done"}
    json.dumps(prompts)


async def test_objects_are_inspected_by_every_name_they_have(mind: Mind) -> None:
    """Root names, oids, missions and conversations; a slot with who holds it."""
    conversation = await begun(mind.uvm)
    shown = await ask(mind.uvm, conversation=conversation)
    brick = mind.uvm.readings.inspect("brick_prototype_obj")
    assert mind.uvm.readings.inspect(brick["oid"])["slots"] == brick["slots"]
    assert mind.uvm.readings.inspect(shown["id"])["slots"]["answer"] == shown["answer"]
    assert mind.uvm.readings.inspect(conversation)["slots"]["user"] == "tester"
    slot = mind.uvm.readings.inspect("brick_prototype_obj.infer_")
    assert slot == {
        "object": "brick_prototype_obj",
        "slot": "infer_",
        "holder": "pLLM_obj",
        "value": {"primitive": "llm.infer"},
    }
    assert mind.uvm.readings.inspect(f"{brick['oid']}.name")["value"] == "BRICK"
    assert mind.uvm.readings.inspect(f"{shown['id']}.recall_")["holder"] == "traits_obj"
    for name in roots.OBJECTS:
        json.dumps(mind.uvm.readings.inspect(name))


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "nobody",
        "nobody.slot",
        "missions",
        "brick_prototype_obj.",
        "brick_prototype_obj.no_such_slot",
        "brick_prototype_obj.parent*",
        "brick_prototype_obj._p_jar",
        "brick_prototype_obj.__class__",
        "m-01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "c-01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "oid:0xffffff",
        "oid:-1",
        "oid:0x1ffffffffffffffffff",
        "oid:",
        "oid:zz",
        "oid:0x1",
    ],
)
async def test_what_is_not_there_is_not_found(mind: Mind, name: str) -> None:
    """A wrong name, an oid of nothing or of a record, and a slot that is none: NotFound with a remedy."""
    with pytest.raises(NotFound) as raised:
        mind.uvm.readings.inspect(name)
    assert raised.value.remedy
    assert raised.value.field == "object"


@pytest.mark.parametrize("mission", ["", "m-1", "nobody", "m-01ARZ3NDEKTSV4RRFFQ69G5FAV"])
async def test_a_mission_that_is_not_there_is_not_found(mind: Mind, mission: str) -> None:
    """Showing it, its prompts, or running it."""
    for look in (mind.uvm.readings.mission, mind.uvm.readings.prompts):
        with pytest.raises(NotFound) as raised:
            look(mission)
        assert raised.value.remedy
    with pytest.raises(NotFound):
        await mind.uvm.missions.run(mission)
    assert mind.told("mission.failed") == []


@given(name=st.text(max_size=30) | st.text("oid:0x123456789abcdef._mc-", max_size=20))
def test_any_reference_is_found_or_not_found(name: str) -> None:
    """Whatever is asked for, nothing but NotFound is raised."""
    jar = SimpleNamespace(get=lambda oid: None)
    root: Any = _Root({roots.MISSIONS: OOBTree(), roots.CONVERSATIONS: OOBTree()})
    root._p_jar = jar
    with pytest.raises(NotFound):
        reports.inspect_object(root, name)


class _Root(dict[str, Any]):
    """A root with a connection that has nothing."""

    _p_jar: Any


def test_a_runner_that_several_models_share_is_sampled_once() -> None:
    """Whichever of them was served last: else one runner of a small card would be told as four."""
    rows = [
        ("brick", "alfred", 5),
        ("robin", "alfred", 4),
        ("alfred", "alfred", 3),
        ("coder", "coder", 2),
        ("coder", "x", 1),
    ]
    samples = [
        SampleDocument(model=model, runner=runner, at=f"{at}", where="gpu", size=1, size_vram=1, context_length=None)
        for model, runner, at in rows
    ]
    assert [(each["model"], each["at"]) for each in reports.newest_samples(samples)] == [("brick", "5"), ("coder", "2")]
