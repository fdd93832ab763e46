"""A message as a mission: values answer themselves, intents think once, the kernel's own is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.conversations.written_turns import exchanges, write_turns
from tests.image.open_image import passed
from tests.minds.conftest import Mind
from tests.minds.scripted import GOOD, LAMP, WINDS, ask, change, kind

from batos.cli.render.mission import notes_text
from batos.genesis.codex.codex import PILLARS
from batos.image import roots
from batos.objects.method import Primitive
from batos.objects.mirror import Mirror
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError, CellMissing, MessageNotUnderstood, NotFound, ObjectError, Runaway
from batos.protocol.mission_documents import MissionDocument

FACET = PILLARS["BRICK"][0]
PROTOCOL = "rogues_gallery_protocol_"
WOUND = "How often does the keeper wind the clockwork?"


async def sent(mind: Mind, receiver: str, selector: str, *arguments: Any, **brief: Any) -> dict[str, Any]:
    """Send a message as a mission; the mission."""
    message = {"receiver": receiver, "selector": selector, "arguments": list(arguments)}
    files = brief.pop("files", ())
    return dict(await mind.uvm.missions.ask({"text": f"{receiver} {selector}", "message": message, **brief}, files))


def result(shown: dict[str, Any]) -> Any:
    """What the message was answered, as data."""
    return shown["provenance"]["message"]["result"]


async def test_a_value_answers_itself_without_a_call(mind: Mind) -> None:
    """Text is the answer as it stands; numbers, lists and objects are its JSON, references as `inspect` shows them."""
    told = await sent(mind, "brick_prototype_obj", "name")
    assert (told["status"], told["answer"], result(told), told["cost"]["calls"]) == ("done", "BRICK", "BRICK", 0)
    facets = await sent(mind, "brick_prototype_obj", "facets")
    assert json.loads(facets["answer"]) == result(facets) == list(PILLARS["BRICK"])
    state = await sent(mind, "orchestrator_obj", "idle_state_obj")
    assert state["answer"].startswith("oid:0x")
    assert mind.bridge.history == []
    assert mind.told("mission.routed")[0]["reason"] == "a message to brick_prototype_obj"


async def test_receivers_are_named_as_for_inspect(mind: Mind) -> None:
    """A root name, a mission, a conversation or an oid; what is none of these is not found."""
    asked = await ask(mind.uvm, conversation="new")
    oid = mind.uvm.readings.inspect("brick_prototype_obj")["oid"]
    assert (await sent(mind, asked["id"], "answer"))["answer"] == asked["answer"]
    assert (await sent(mind, asked["brief"]["conversation"], "user"))["answer"] == "tester"
    assert (await sent(mind, oid, "name"))["answer"] == "BRICK"
    with pytest.raises(NotFound, match="did you mean brick_prototype_obj"):
        await sent(mind, "brick", "name")
    for far in ("nosuch", "last", "oid:0x1"):
        with pytest.raises(NotFound) as raised:
            await sent(mind, far, "name")
        assert "did you mean" not in raised.value.message


async def test_what_is_read_is_no_more_trusted_than_where_it_stands(mind: Mind) -> None:
    """The answer of a mission over a document is external, and so is the answer that repeats it."""
    asked = await ask(mind.uvm)
    assert asked["trust"]["lineage"] == "external"
    assert (await sent(mind, asked["id"], "answer"))["trust"]["lineage"] == "external"
    assert (await sent(mind, "brick_prototype_obj", "name"))["trust"]["lineage"] == "model"


async def test_an_intent_is_interpreted_by_its_persona_in_one_call(mind: Mind) -> None:
    """A facet answers a text under its persona's voice and model, with citations, judged as every answer."""
    told = await sent(mind, "brick_prototype_obj", FACET, "How is the lamp kept?", files=(LAMP,))
    assert told["cost"]["calls"] == len(mind.bridge.history) == 1
    assert (told["answer"], result(told)) == (f"{WINDS}.", {"answer": f"{WINDS}.", "known": True})
    assert told["provenance"]["citations"][0]["quote"].startswith(WINDS)
    assert told["provenance"]["methods"][0]["selector"] == FACET
    assert told["provenance"]["gate"]["ok"]
    assert (told["route"]["personas"], told["trust"]["lineage"]) == (["BRICK"], "external")
    assert "How is the lamp kept?" in mind.bridge.history[0].messages[-1]["content"]


@pytest.mark.parametrize("length", [300, 900, 1_200])
async def test_what_an_intent_recalls_is_shown_also_where_parts_vote(mind: Mind, length: int) -> None:
    """Room is left for the answer: of what the mission names as recalled the prompt leaves nothing out."""
    lines = [f"{number}. The keeper burns oil. {'So it is. ' * 60}" for number in range(60)]
    long = as_file("long.txt", "\n\n".join(lines).encode())
    question = "How? ".ljust(length, "x")
    told = await sent(mind, "brick_prototype_obj", FACET, question, files=(long,), policy={"combine": "vote"})
    (request,) = mind.bridge.history
    assert kind(request) == "part"
    shown = [each for each in request.messages if "long.txt" in each["content"]]
    recalled = told["provenance"]["recalled"]
    assert recalled
    assert told["provenance"]["omitted"]["passages"] > 0
    text = long.data.decode()
    for each in recalled:
        assert any(text[each["start"] : each["start"] + each["length"]] in one["content"] for one in shown)


async def test_a_protocol_changes_the_text_that_it_is_given(mind: Mind) -> None:
    """A key protocol is an intent too."""
    told = await sent(mind, "brick_prototype_obj", PROTOCOL, "The lamp burns.")
    assert told["answer"] == f"{WINDS}. So be it."
    assert [kind(request) for request in mind.bridge.history] == ["changed"]


@pytest.mark.parametrize(
    ("reply", "calls"),
    [(Runaway("blanks", 65), 2), ("", 2), (WOUND, 1)],
    ids=["runaway", "empty", "the question again"],
)
async def test_where_a_reply_is_of_no_use_a_rule_answers(mind: Mind, reply: str | BatosError, calls: int) -> None:
    """The evidence is quoted, or nothing was found; the mission is done, and the rule is told."""
    mind.bridge.respond = lambda request: reply
    told = await sent(mind, "brick_prototype_obj", FACET, WOUND, files=(LAMP,))
    assert told["answer"].startswith("> ")
    assert WINDS in told["answer"]
    assert result(told) == {"answer": told["answer"], "known": True}
    assert len(mind.bridge.history) == calls
    assert [each["decision"] for each in told["provenance"]["rules"]] == ["answer"]
    assert "by rule: answer" in notes_text(cast("MissionDocument", told), voices=False)
    nothing = await sent(mind, "brick_prototype_obj", FACET, WOUND)
    assert result(nothing) == {"answer": "Nothing was found.", "known": False}


async def test_a_protocol_without_words_of_use_leaves_the_text(mind: Mind) -> None:
    """The text that it was given is the answer, and the rule is told."""
    mind.bridge.respond = lambda request: Runaway("blanks", 65)
    told = await sent(mind, "brick_prototype_obj", PROTOCOL, "The lamp burns.")
    assert (told["status"], told["answer"]) == ("done", "The lamp burns.")
    assert [(each["path"], each["decision"]) for each in told["provenance"]["rules"]] == [
        ("brick/protocol/rogues_gallery#0", "reply")
    ]


async def test_an_intent_is_shown_the_conversation_and_is_no_turn_of_it(mind: Mind) -> None:
    """With a conversation its turns are the evidence; the message itself is not added to them."""
    name = await write_turns(mind.uvm, exchanges(2))
    told = await sent(mind, "brick_prototype_obj", FACET, "Which jars?", conversation=name)
    assert [each["turn"] for each in told["provenance"]["recalled"]] == [1, 2]
    assert mind.uvm.readings.turns(name)["count"] == 2


async def test_a_message_to_the_orchestrator_runs_a_cycle(mind: Mind) -> None:
    """`start_cognitive_cycle_for_` is a question like any other: routed by its text, all states, its answer."""
    mind.script.woven = "It burns."
    mind.script.part = "It burns."
    told = await sent(mind, "orchestrator_obj", "start_cognitive_cycle_for_", "How does the lamp burn?", effort="cycle")
    assert told["answer"] == result(told) == "It burns."
    assert [each["state"] for each in told["states"]][-2:] == ["COMPLETE", "IDLE"]
    assert told["cost"]["calls"] >= 5
    assert mind.told("mission.routed")[-1]["reason"] != "a message to orchestrator_obj"


async def test_infer_takes_a_text_as_a_reflex_of_its_persona(mind: Mind) -> None:
    """The kernel's own form of `infer_` takes no plain data; a persona is asked the text in one call."""
    mind.script.woven = "It burns."
    told = await sent(mind, "robin_prototype_obj", "infer_", "Why does it burn?")
    assert (told["answer"], told["cost"]["calls"], told["route"]["personas"]) == ("It burns.", 1, ["ROBIN"])
    with pytest.raises(ObjectError, match=r"^pLLM_obj is no persona"):
        await sent(mind, "pLLM_obj", "infer_", "Why?")


async def test_recall_gives_what_is_there_as_data(mind: Mind) -> None:
    """Passages and turns within the bytes that are asked for, as untrusted as they are, without a call."""
    told = await sent(mind, "babs_prototype_obj", "recall_", "oil", 2_000, files=(LAMP,))
    assert "clockwork" in result(told)["passages"][0]["text"]
    assert told["trust"]["lineage"] == "external"
    none = await sent(mind, "knowledge_catalog_obj", "search_", "oil", 0, files=(LAMP,))
    assert (result(none)["passages"], result(none)["omitted"]["passages"]) == ([], 1)
    assert mind.bridge.history == []


async def test_turns_are_read_by_a_message_too(mind: Mind) -> None:
    """A conversation answers `turns_` with a page, to its user alone."""
    name = await write_turns(mind.uvm, exchanges(5), trust="external")
    told = await sent(mind, name, "turns_", -2)
    assert [each["position"] for each in result(told)["turns"]] == [4, 5]
    assert told["trust"]["lineage"] == "external"
    with pytest.raises(NotFound, match="there is no object"):
        await sent(mind, name, "turns_", user="anna")


async def test_what_is_not_understood_says_what_is_near(mind: Mind) -> None:
    """A typo costs nothing and names the selector that was meant."""
    with pytest.raises(MessageNotUnderstood) as raised:
        await sent(mind, "brick_prototype_obj", FACET.replace("facet", "facett"), "x")
    assert (raised.value.exit_code, FACET in raised.value.remedy) == (1, True)
    assert mind.bridge.history == []


@pytest.mark.parametrize(
    "selector", ["parent*", "_parents", "_slots", "clone", "__class__", "_doesNotUnderstand_", "_p_jar", "_v_x"]
)
async def test_what_is_the_kernels_is_no_selector(mind: Mind, selector: str) -> None:
    """Neither parents nor Python's or the database's names are reached by a message."""
    with pytest.raises(MessageNotUnderstood) as raised:
        await sent(mind, "brick_prototype_obj", selector)
    assert "OBJECT" not in raised.value.remedy


@pytest.mark.parametrize(
    ("receiver", "selector", "arguments"),
    [
        ("orchestrator_obj", "start_cognitive_cycle_for_", []),
        ("orchestrator_obj", "start_cognitive_cycle_for_", [" "]),
        ("orchestrator_obj", "start_cognitive_cycle_for_", ["a", "b"]),
        ("brick_prototype_obj", FACET, []),
        ("brick_prototype_obj", FACET, [12]),
        ("brick_prototype_obj", FACET, ["x" * 20_001]),
        ("brick_prototype_obj", "infer_", [{"evidence": 1}, 2, 3]),
        ("brick_prototype_obj", "recall_", []),
        ("brick_prototype_obj", "recall_", ["x", "y"]),
        ("brick_prototype_obj", "recall_", ["x", -1]),
        ("brick_prototype_obj", "recall_", ["x", True]),
        ("brick_prototype_obj", "name", ["x"]),
    ],
)
async def test_arguments_that_make_no_sense_are_told(
    mind: Mind, receiver: str, selector: str, arguments: list[Any]
) -> None:
    """Whatever plain data comes: an ObjectError, no call, and never an internal one."""
    with pytest.raises(ObjectError) as raised:
        await sent(mind, receiver, selector, *arguments)
    assert raised.value.code == "object"
    assert mind.bridge.history == []


@pytest.mark.parametrize("selector", ["synthesize_response_for_", "_process_synthesis_"])
async def test_a_step_of_the_machine_is_refused(mind: Mind, selector: str) -> None:
    """The states of a cycle take no message from outside."""
    oid = mind.uvm.readings.inspect("orchestrator_obj.idle_state_obj")["value"]
    other = mind.uvm.readings.inspect("orchestrator_obj.failed_state_obj")["value"]
    receiver = oid if selector.startswith("synthesize") else other
    with pytest.raises(ObjectError, match=f"of {receiver} is the kernel's own"):
        await sent(mind, receiver, selector, "x")
    with pytest.raises(ObjectError, match=r"^brick_prototype_obj does not understand 'nobody_'"):
        await sent(mind, "brick_prototype_obj", "nobody_")


@pytest.mark.parametrize("arguments", [(), ("",), (1,), ("Who?", 1), ("Who?", "Where?")], ids=str)
async def test_an_intent_is_told_one_text(mind: Mind, arguments: tuple[Any, ...]) -> None:
    """Anything else is refused before a call; the number of a sub-query is a mind's to send, and nobody else's."""
    with pytest.raises(ObjectError, match="needs its subject, in one text") as raised:
        await sent(mind, "brick_prototype_obj", FACET, *arguments)
    assert "one text" in raised.value.remedy
    assert mind.bridge.history == []


async def test_a_method_needs_a_cell(mind: Mind) -> None:
    """Generated source is not run, whoever sends its selector."""
    method = passed("sing_for_", "def sing_for_(self, who): return 1/0")
    await change(mind.uvm, lambda root: setattr(root["brick_prototype_obj"], "sing_for_", method))
    runner = (await mind.uvm.readiness.ready()).runner
    runner.methods = replace(runner.methods, cell=None)
    with pytest.raises(CellMissing, match="no cell to run it in"):
        await sent(mind, "brick_prototype_obj", "sing_for_", "Anna")


async def test_an_unknown_kernel_function_is_refused(mind: Mind) -> None:
    """A primitive that takes no plain data is not run on it."""
    await change(mind.uvm, lambda root: setattr(root["brick_prototype_obj"], "dance_", Primitive("traits.dance")))
    with pytest.raises(ObjectError, match=r"traits\.dance"):
        await sent(mind, "brick_prototype_obj", "dance_")


async def test_nothing_but_the_thought_is_written(mind: Mind) -> None:
    """After messages of every kind each root object is as it was, and no object has another parent."""

    def all_of_it() -> dict[str, Any]:
        with mind.uvm.image.snapshot() as root:
            return {name: Mirror(root[name]).describe() for name in roots.OBJECTS}

    before = all_of_it()
    mind.script.woven = GOOD
    await sent(mind, "brick_prototype_obj", "prompts")
    await sent(mind, "brick_prototype_obj", FACET, "What is there?")
    await sent(mind, "brick_prototype_obj", "log_", "a word", 2, None)
    await sent(mind, "brick_prototype_obj", "codex_digests")
    assert all_of_it() == before


async def test_an_answer_that_is_no_answer_any_more_is_refused(mind: Mind) -> None:
    """A slot of megabytes is not an answer: it says where to look instead."""
    await change(mind.uvm, lambda root: setattr(root["brick_prototype_obj"], "saga", "x" * 300_000))
    with pytest.raises(ObjectError, match="300000 characters") as raised:
        await sent(mind, "brick_prototype_obj", "saga")
    assert "batos inspect" in raised.value.remedy
