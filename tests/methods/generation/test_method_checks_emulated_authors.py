"""What the emulator's authors write, tried as a coder's replies are: the good one passes, the others as they should."""

from __future__ import annotations

import json
import tomllib
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import pytest

from batos.cell.cell import Cell
from batos.events import Events
from batos.genesis.codex import codex
from batos.methods.generation import dialogue, lean_request
from batos.methods.generation.method_checks import REPLY
from batos.methods.generation.method_spec import Coder, MethodSpec
from batos.methods.generation.trial import Trial, TrialResult
from ollama_emulator.speech.authoring import hostile, orders
from ollama_emulator.speech.authoring.authors import AUTHORS, BROKEN, ENDLESS, write, write_plain

#: Attacks that are no fault of form: a cell ends them.
CONTAINED: Final = ("loop", "memory", "flood")
#: An attack beside the method, which is left out because the method does not use it.
LEFT_OUT: Final = "twin"
PLAIN: Final = {
    "count_words_(self, text)": "Count the words of a text.",
    "shout_(self, text)": "Give the text in upper case.",
    "mean_(self, numbers)": "The average of some numbers.",
    "tick_(self)": "Increment the counter.",
    "remember_(self, thing)": "Remember one more thing.",
    "add_up_(self, text)": "Convert each duration to seconds, and add them up.",
    "often_(self, text, part)": "How often the part stands in the text.",
    "label_(self, name, size=3)": "Format one line of both.",
    "initials_(self, text)": "The initials of a text.",
    "vowels_(self, text)": "The vowels of a text.",
    "backwards_(self, text)": "The text backwards.",
    "unique_(self, items)": "The unique ones of some items.",
    "fetch_(self, url)": "Answers {url, title, text} of a page.",
    "search_(self, query, limit)": "Answers a list of {title, url, excerpt}.",
}


def _declared() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every facet and protocol of the shipped codex, by kind."""
    for name, text in codex.read_shipped().items():
        persona = tomllib.loads(text)
        for kind, many in (("facet", "pillars"), ("protocol", "protocols")):
            for each in persona.get(many, ()):
                yield kind, {**each, "owner": f"{name}: {persona['core_identity']}"}


DECLARED: Final = {each["slot"]: (kind, each) for kind, each in _declared()}


def wanted(selector: str, signature: str, kind: Any, intent: str, **more: Any) -> MethodSpec:
    """A brief as a mission would make it."""
    return MethodSpec(
        holder="brick_prototype_obj",
        name="brick_prototype_obj",
        selector=selector,
        kind=kind,
        intent="0" * 64,
        text=intent.strip(),
        signature=signature,
        title=more.get("title", ""),
        inspiration=more.get("inspiration", ""),
        examples=(),
        owner=more.get("owner", ""),
        arguments=("str",),
        slots=(("charge", "int"), ("name", "str"), ("seen", "list")),
        messages=("infer_", "log_"),
        trust="model",
        coder=Coder("coder", "0" * 64, {"num_ctx": 4096}),
    )


def of_codex(slot: str) -> MethodSpec:
    """The brief for a facet or a protocol of the shipped codex."""
    kind, each = DECLARED[slot]
    told = {"title": each["name"], "inspiration": each["inspiration"], "owner": each["owner"]}
    return wanted(slot, each["signature"], kind, each["intent"], **told)


@pytest.fixture
async def cell() -> AsyncIterator[Cell]:
    """Two workers."""
    made = Cell(2)
    yield made
    await made.aclose()


async def tried(cell: Cell, brief: MethodSpec, author: str, number: int = 0) -> TrialResult:
    """An author's reply to a brief, as the trial judges it."""
    shape = orders.shape_of(REPLY.format)
    assert shape is not None
    order = orders.read(shape, dialogue.messages(brief, "The dialect.", REPLY.guide))
    return await Trial(brief, cell, Events(log=False)).reply(write(author, order, {}, number).text)


@pytest.mark.parametrize("slot", DECLARED)
async def test_every_intent_of_the_codex_becomes_a_method(cell: Cell, slot: str) -> None:
    """At the first attempt, in the words of that intent."""
    judged = await tried(cell, of_codex(slot), "good")
    assert judged.faults == ()
    assert len(judged.checks) == 2
    assert " ".join(DECLARED[slot][1]["intent"].split())[:40] in judged.source.replace("'\n        '", "")


@pytest.mark.parametrize("signature", PLAIN)
async def test_plain_intents_become_methods_whose_checks_tell_mutants(cell: Cell, signature: str) -> None:
    """A method that computes is held to what it computes."""
    brief = wanted(signature.partition("(")[0], signature, "method", PLAIN[signature])
    judged = await tried(cell, brief, "good")
    assert judged.faults == ()
    worth = await Trial(brief, cell, Events(log=False)).worth(judged)
    assert worth["made"] >= 1
    assert worth["killed"] >= worth["made"] / 2


@pytest.mark.parametrize("signature", PLAIN)
async def test_plain_requests_are_answered_in_their_form(cell: Cell, signature: str) -> None:
    """A method in a fence, and calls that check it, by the words of the request alone."""
    brief = wanted(signature.partition("(")[0], signature, "method", PLAIN[signature])
    replies = []
    for messages in (lean_request.method_messages(brief), lean_request.check_messages(brief)):
        order = orders.plain_order(None, messages)
        assert order is not None
        replies.append(write_plain("good", order, 0).text)
    source, lines = replies
    assert (await Trial(brief, cell, Events(log=False)).draft(source)).faults == ()
    assert source.startswith("```python\n")
    assert lines.count(f"{brief.selector}(") == 2
    assert orders.requested_selectors(None, lean_request.method_messages(brief)) == (brief.selector,)


@pytest.mark.parametrize("author", ["raises_later", "rubbish", "wasteful"])
async def test_who_is_bad_in_use_passes_the_trial(cell: Cell, author: str) -> None:
    """Only use shows it."""
    assert (await tried(cell, of_codex("guide_facet_"), author)).faults == ()


@pytest.mark.parametrize(
    ("author", "why"),
    [
        ("no_marker", "_p_changed"),
        ("failing_check", "check 1"),
        ("empty_checks", "checks"),
        ("null_checks", "None and changes nothing"),
        (BROKEN, "The reply is not valid"),
        (ENDLESS, "The reply is not valid"),
    ],
)
async def test_each_bad_author_is_told_what_is_wrong(cell: Cell, author: str, why: str) -> None:
    """In words that name it."""
    judged = await tried(cell, of_codex("guide_facet_"), author)
    assert why in " ".join(judged.faults)


@pytest.mark.parametrize("kind", hostile.ATTACKS)
async def test_no_attack_passes(cell: Cell, kind: str) -> None:
    """Form gives most of them away; the cell ends the others, and goes on working."""
    judged = await tried(cell, of_codex("guide_facet_"), f"hostile-{kind}")
    assert judged.faults
    assert bool(judged.refused) == (kind not in (*CONTAINED, LEFT_OUT))
    assert kind != LEFT_OUT or "install" not in judged.source
    assert (await tried(cell, of_codex("guide_facet_"), "good")).faults == ()


def test_every_author_is_tried_here() -> None:
    """A new one needs a place."""
    plain = {"good", "raises_later", "rubbish", "wasteful", "no_marker", "failing_check", "empty_checks", "null_checks"}
    assert set(AUTHORS) == plain | {BROKEN, ENDLESS, "hostile"} | {f"hostile-{kind}" for kind in hostile.ATTACKS}
    assert json.dumps(REPLY.format)
