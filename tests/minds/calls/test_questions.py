"""The budget of a prompt: fitted before it is sent, compacted once by the daemon's counts, or refused with reasons."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.counting_bridge import CountedBridge, replied
from tests.minds.conftest import Mind
from tests.minds.scripted import (
    BAD,
    GOOD,
    INSPIRATIONS,
    LAMP,
    QUESTION,
    WINDS,
    Script,
    ask,
    begun,
    change,
    kind,
    stepping,
    submit,
)

from batos.cli.render.mission import notes_text
from batos.image import roots
from batos.inference.cost import LEAST_RATIO
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.memory.evidence import Evidence, Past
from batos.memory.passages import passages
from batos.memory.search.recall import recall, shown_size
from batos.minds import prompt
from batos.minds.calls import decisions, questions
from batos.minds.context import Thinking
from batos.minds.prompt import MARGIN
from batos.minds.results import Task
from batos.minds.trace import ratio
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError, ContextOverflow, Runaway
from batos.protocol.mission_documents import MissionDocument

WINDOW = 4096

#: Paragraphs that say nothing about the question, but for the first.
LONG = as_file(
    "log.txt",
    "\n\n".join(
        [f"{WINDS}.", *(f"Entry {number}. " + "The sea was calm and grey all day. " * 20 for number in range(40))]
    ).encode(),
)


class Daemon:
    """Refuses prompts beyond the window, as a daemon that counts a token for so many bytes; keeps what it refused."""

    def __init__(self, script: Script, bytes_a_token: float, window: int = WINDOW) -> None:
        self.script = script
        self.bytes_a_token = bytes_a_token
        self.window = window
        self.refused: list[ChatRequest] = []

    def __call__(self, request: ChatRequest) -> str | BatosError:
        """The script's reply, or the 400 with exact counts."""
        tokens = int(prompt.size(request.messages) / self.bytes_a_token)
        if tokens >= self.window:
            self.refused.append(request)
            return ContextOverflow(tokens, self.window)
        return self.script(request)


async def test_what_fits_is_sent_once(mind: Mind) -> None:
    """A prompt within the window meets no refusal, and its evidence fits beside the largest task."""
    mind.bridge.respond = daemon = Daemon(mind.script, 3.5)
    shown = await ask(mind.uvm, files=(LONG,))
    assert daemon.refused == []
    assert shown["provenance"]["omitted"]["passages"] > 0
    for request in mind.bridge.history:
        assert prompt.size(request.messages) / 3.5 + request.options["num_predict"] <= WINDOW


async def test_an_overflow_is_compacted_by_the_counts_and_tried_again_once(mind: Mind) -> None:
    """Where text is denser than was thought the daemon refuses once, and what it counted decides what goes."""
    mind.bridge.respond = daemon = Daemon(mind.script, 1.2)
    shown = await ask(mind.uvm, files=(LONG,), effort="reflex")
    assert shown["status"] == "done"
    assert [kind(request) for request in daemon.refused] == ["woven"]
    retried = mind.bridge.history[1]
    assert retried.messages[-1] == daemon.refused[0].messages[-1]
    assert retried.messages[1] != daemon.refused[0].messages[1]
    assert prompt.size(retried.messages) / 1.2 + decisions.WHOLE.num_predict <= WINDOW


async def test_what_never_fits_fails_saying_what_was_left_out(mind: Mind) -> None:
    """When rules, persona and question alone are too long, the second refusal is the mission's reason."""
    mind.bridge.respond = daemon = Daemon(mind.script, 0.06)
    with pytest.raises(ContextOverflow, match=r"left out already: .* passages, 0 turns") as raised:
        await ask(mind.uvm, files=(LONG,), effort="reflex")
    assert raised.value.window == WINDOW
    assert raised.value.prompt_tokens is not None
    assert len(daemon.refused) == 2
    assert all(QUESTION in request.messages[-1]["content"] for request in daemon.refused)
    assert all("Be logical" in request.messages[-1]["content"] for request in daemon.refused[:1])


async def test_nothing_to_leave_out_is_not_tried_again(mind: Mind) -> None:
    """Without evidence a refusal is final at once: the same bytes would be refused again."""
    mind.bridge.respond = daemon = Daemon(mind.script, 0.06)
    with pytest.raises(ContextOverflow, match="persona and question never are"):
        await ask(mind.uvm, files=(), effort="reflex")
    assert len(daemon.refused) == 1


async def test_an_overflow_without_counts_is_compacted_too(mind: Mind) -> None:
    """A daemon that names no numbers is taken to have counted twice the window."""
    refused: list[ChatRequest] = []

    def respond(request: ChatRequest) -> str | BatosError:
        if not refused:
            refused.append(request)
            return ContextOverflow(None, None)
        return mind.script(request)

    mind.bridge.respond = respond
    shown = await ask(mind.uvm, files=(LONG,))
    assert shown["status"] == "done"
    assert prompt.size(mind.bridge.history[1].messages) < prompt.size(refused[0].messages)


async def test_recall_goes_before_turns_and_turns_before_parts(mind: Mind) -> None:
    """Compaction takes passages first, then the oldest turns, then shortens parts, with a notice, and no more."""
    conversation = await begun(mind.uvm)
    for _ in range(2):
        await ask(mind.uvm, effort="reflex", conversation=conversation)
    mission = await submit(mind.uvm, conversation=conversation)
    async with stepping(mind.uvm, mission) as opened:
        context = opened.context
        evidence = recall(context.mission.passages, context.mission.past, QUESTION, 100_000)
        assert (len(evidence.passages), len(evidence.turns)) == (1, 2)
        parts = [prompt.ShownPart(1, "F", "why", "x" * 500)]

        def shorter(excess: int) -> tuple[Task, int]:
            shortened, lost = prompt.shorten(parts, excess)
            return prompt.weave_task(context.mind.voice, QUESTION, shortened), lost

        question = questions.Question("p#0", prompt.weave_task(context.mind.voice, QUESTION, parts), shorter=shorter)
        call = questions._Call(context.mission.shared.with_evidence(evidence), question, "guide")
        whole = prompt.size(call.messages(context))
        sizes = [shown_size(evidence.passages), evidence.turns[0].size, evidence.turns[1].size]
        for gone, expected in {
            1: (0, 2, 0),
            sizes[0] + 1: (0, 1, 0),
            sizes[0] + sizes[1] + 1: (0, 0, 0),
            sum(sizes) + 200: (0, 0, 1),
        }.items():
            lighter = call.lighter(context, whole - gone)
            left = lighter.shared.evidence
            assert (len(left.passages), len(left.turns), lighter.shortened) == expected
            assert prompt.size(lighter.messages(context)) <= whole - gone
        first = evidence.turns[0].mission
        assert [turn.mission for turn in call.lighter(context, whole - sizes[0] - 1).shared.evidence.turns] != [first]


async def test_parts_are_shortened_as_the_last_resort(mind: Mind) -> None:
    """A weave whose parts alone are too long is woven from shortened ones, and provenance says how many."""
    mind.script.part = "The clockwork is wound. " * 37
    mind.bridge.respond = daemon = Daemon(mind.script, 0.9)
    shown = await ask(mind.uvm, files=())
    assert shown["status"] == "done"
    assert shown["provenance"]["omitted"]["parts"] == 3
    woven = next(
        request for request in mind.bridge.history if kind(request) == "woven" and request not in daemon.refused
    )
    assert woven.messages[-1]["content"].count("(shortened for want of room)") == 3
    assert QUESTION in woven.messages[-1]["content"]


async def test_an_answer_is_judged_by_all_that_was_recalled(mind: Mind) -> None:
    """A citation of a document that the weave no longer had room for stands: the facets were shown it."""

    def respond(request: ChatRequest) -> str | BatosError:
        if kind(request) == "woven" and "lamp.txt" in request.messages[1]["content"]:
            return ContextOverflow(5_000, WINDOW)
        return mind.script(request)

    mind.bridge.respond = respond
    shown = await ask(mind.uvm)
    assert shown["provenance"]["gate"]["ok"]
    assert shown["provenance"]["omitted"]["passages"] == 1
    assert [each["quote"] for each in shown["provenance"]["citations"]] == [LAMP.data.decode().partition("\n")[0]]


async def test_num_predict_is_the_decisions_bound_within_half_the_window(mind: Mind) -> None:
    """Every call says how long its answer may be; none may take more than half of the window."""
    mind.script.woven = BAD
    await ask(mind.uvm)
    for request in mind.bridge.history:
        assert 1 <= request.options["num_predict"] <= request.options["num_ctx"] // 2
    small = Thinking("m", {"num_ctx": 1024}, "direct")
    assert small.answer_tokens(decisions.WHOLE) == 512


@pytest.mark.parametrize(("written", "sent"), [(6_000, 6_000), (100, decisions.WHOLE.num_predict)])
async def test_the_codexs_num_predict_is_sent(mind: Mind, written: int, sent: int) -> None:
    """As it stands there, or what the decision can need where that is more; evidence is kept from no more than that."""
    await change(mind.uvm, lambda root: _options(root, {"num_ctx": 16_384, "num_predict": written}))
    await ask(mind.uvm, effort="reflex")
    assert [request.options["num_predict"] for request in mind.bridge.history] == [sent]
    thinking = Thinking("m", {"num_ctx": 16_384, "num_predict": written}, "direct")
    assert thinking.reserved_tokens(decisions.WHOLE) == decisions.WHOLE.num_predict


def _options(root: Any, options: dict[str, Any]) -> None:
    persona = root["brick_prototype_obj"]
    persona.options = {**persona.options, **options}


async def test_a_cut_answer_takes_the_room_of_evidence_when_the_window_is_full(mind: Mind) -> None:
    """Asked with more room, then with fewer passages: the answer comes, and what was left out is told."""

    def dense(request: ChatRequest) -> Answer:
        tokens = int(prompt.size(request.messages) / 3)
        limit = min(request.options["num_predict"], WINDOW - tokens)
        said = "字" * 1_700
        if limit < 1_900:
            return replied(said[:limit], done_reason="length", prompt_tokens=tokens, answer_tokens=limit)
        return replied(said, prompt_tokens=tokens, answer_tokens=1_900)

    mind.bridge.think = CountedBridge(dense).think  # type: ignore[method-assign]
    shown = await ask(mind.uvm, files=(LONG,), effort="reflex")
    assert shown["answer"] == "字" * 1_700
    assert shown["provenance"]["omitted"]["passages"] > 0
    sent = sorted(
        (record.request for record in mind.uvm.journal.read([shown["id"]])),
        key=lambda each: -prompt.size(each["messages"]),
    )
    assert prompt.size(sent[-1]["messages"]) / 3 + 1_900 <= WINDOW < prompt.size(sent[0]["messages"]) / 3 + 1_900


@pytest.mark.parametrize("fault", ["no JSON", "labels", "alike", "runaway", "endless"])
async def test_a_question_that_cannot_be_divided_is_answered_all_the_same(mind: Mind, fault: str) -> None:
    """Each part is given the question itself; the asker is told, and why."""
    faults: dict[str, str | BatosError] = {
        "no JSON": "none",
        "labels": json.dumps(dict(zip(("q1", "q2", "q3"), INSPIRATIONS, strict=True))),
        "alike": json.dumps(dict.fromkeys(("q1", "q2", "q3"), QUESTION)),
        "runaway": Runaway("blanks", 65),
        "endless": "{" + "1.1" * 9_000,
    }

    def respond(request: ChatRequest) -> str | BatosError:
        if kind(request) == "decomposition":
            return faults[fault]
        return mind.script(request)

    mind.bridge.respond = respond
    shown = await ask(mind.uvm)
    assert shown["status"] == "done"
    assert {voice["query"] for voice in shown["voices"]} == {QUESTION}
    combined = shown["provenance"]["combined"]
    assert combined["undivided"]
    assert combined["undivided"] in shown["provenance"]["changes"][0]["what"]
    (ruled,) = mind.told("mission.rule")
    assert ruled["path"] == "brick/decomposing#0"
    assert (ruled["decision"], ruled["why"]) == ("division", combined["undivided"])
    assert [kind(request) for request in mind.bridge.history].count("decomposition") == 2
    assert "each was given the whole question" in notes_text(cast("MissionDocument", shown), voices=False)


async def test_the_ratio_is_learnt_from_what_was_counted(mind: Mind) -> None:
    """After a mission the publisher has bytes and tokens of the model, and the next mission begins with their ratio."""
    await ask(mind.uvm)
    with mind.uvm.image.snapshot() as root:
        (size, tokens) = next(iter(root[roots.STATISTICS]["measured"].values()))
    mission = await submit(mind.uvm)
    async with stepping(mind.uvm, mission) as opened:
        assert opened.context.ratio == pytest.approx(1.1 * tokens / size)
    assert ratio(0, 0, 0.35) == ratio(10, 0, 0.35) == 0.35


@given(
    window=st.integers(1, 64).map(lambda size: 256 * size), tokens=st.floats(0.01, 4), question=st.text(max_size=2_000)
)
def test_room_is_never_negative_and_evidence_stays_within_it(window: int, tokens: float, question: str) -> None:
    """Whatever the window, the density and the question: room is 0 or more, and what is recalled takes no more."""
    context: Any = _context(window, tokens, question)
    room = questions.room_for_evidence(context, [(Task(question), decisions.WHOLE), (Task("other"), decisions.PART)])
    assert room >= 0
    candidates = _some(question)
    found = recall(candidates, Past(), question, room)
    bare = prompt.size(prompt.compose(context.mission.shared, context.mind.voice, Task(question)))
    full = prompt.size(prompt.compose(context.mission.shared.with_evidence(found), context.mind.voice, Task(question)))
    assert full - bare <= room + prompt.EVIDENCE_SIZE
    if found.passages:
        guide = Task(prompt.with_guide(question, decisions.WHOLE.guide))
        size = prompt.size(prompt.compose(context.mission.shared.with_evidence(found), context.mind.voice, guide))
        spent = size * max(tokens, LEAST_RATIO) + context.mind.thinking.answer_tokens(decisions.WHOLE)
        assert spent <= window - MARGIN + 1


def _some(question: str) -> Any:
    return passages([("a.txt", "0" * 64, LONG.data.decode()), ("b.txt", "1" * 64, f"It is said: {question}.")])


def _context(window: int, tokens: float, question: str) -> Any:
    """As much of a running mission as the budget needs."""
    voice = prompt.PersonaPrompt("BRICK", "You are BRICK.", "Deconstruction.", {})
    shared = prompt.SharedContext("Charter.", "Rules.", Evidence(), "2026-01-02T03:04:05.678Z")
    thinking = Thinking("m", {"num_ctx": window}, "direct")
    mission, mind = SimpleNamespace(shared=shared), SimpleNamespace(voice=voice, thinking=thinking)
    return SimpleNamespace(mission=mission, mind=mind, ratio=tokens)


async def test_a_long_question_is_never_cut(mind: Mind) -> None:
    """A question that leaves no room for documents is asked whole, without them."""
    question = "Why does the lamp burn so low tonight, keeper? " * 190
    mind.script.woven = GOOD
    shown = await ask(mind.uvm, question.strip(), effort="reflex")
    assert question.strip() in mind.bridge.history[0].messages[-1]["content"]
    assert shown["provenance"]["omitted"]["passages"] == 1
