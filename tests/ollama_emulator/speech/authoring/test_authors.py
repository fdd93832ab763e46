"""What authors write: methods that fit their wish and keep their checks, and what each bad one does wrong."""

from __future__ import annotations

import ast
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ollama_emulator.clients import CHAT_MODEL, Client, Start
from tests.ollama_emulator.speech.authoring.ordering import FORM, FORM_OF_MANY, GUIDE, MOST, asking, decoded
from tests.ollama_emulator.speech.authoring.test_orders import API

from ollama_emulator.emulator_errors import OptionError
from ollama_emulator.options import DaemonSettings, Options
from ollama_emulator.speech.authoring import authors, hostile, orders
from ollama_emulator.speech.authoring.authors import AUTHORS, Roster, write
from ollama_emulator.speech.language import NOTICE

PLAIN = {
    "count_words_(self, text)": ("Count the words of a text.", "len(text.split())"),
    "vowels_(self, text)": ("How many are there?", "aeiou"),
    "shout_(self, text)": ("Give the text in upper case.", "text.upper()"),
    "mean_(self, numbers)": ("The average of some numbers.", "sum(numbers) / len(numbers)"),
    "tick_(self)": ("Increment the counter.", "self.charge += 1"),
    "remember_(self, thing)": ("Remember one more thing.", "self.seen = [*self.seen, thing]"),
    "add_up_(self, text)": ("Convert each duration to seconds, and add them up.", "re.findall"),
    "often_(self, text, part)": ("How often the part stands in the text.", "text.count(part)"),
    "label_(self, name, size=3)": ("Format one line of both.", "{name} | {size}"),
    "fetch_(self, url)": ("Answers {url, title, text} of a page.", '"url": url'),
    "search_(self, query, limit)": ("Answers a list of {title, url}.", "[:limit]"),
    "muse_(self, mood)": ("Say something kind.", "await self.infer_("),
}
SLOTS = ["name: str", "charge: int", "seen: list"]


def _written(
    author: str, signature: str, intent: str, kind: str = "method", number: int = 0
) -> tuple[str, list[dict[str, Any]]]:
    shape = orders.shape_of(FORM)
    assert shape is not None
    order = orders.read(shape, asking(signature, intent, SLOTS, kind))
    return decoded(write(author, order, {"checks": [], "source": ""}, number).text)


def _method(source: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    found = ast.parse(source).body[-1]
    assert isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)
    return found


@pytest.mark.parametrize("signature", PLAIN)
def test_a_plain_method_is_written_by_the_words_of_its_intent(signature: str) -> None:
    """It has the signature asked for, says that no model wrote it, and has two checks that ask for something."""
    intent, has = PLAIN[signature]
    source, checks = _written("good", signature, intent)
    assert has in source
    assert f"def {signature}:" in source
    assert (ast.get_docstring(_method(source)) or "").startswith(NOTICE)
    assert len(checks) == 2
    assert all(check["result"] is not None or check["slots"] for check in checks)
    assert ("self._p_changed = True" in source) == any(check["slots"] for check in checks)


@pytest.mark.parametrize("kind", ["facet", "protocol"])
def test_a_facet_asks_in_the_words_of_its_intent(kind: str) -> None:
    """Its checks say what is thought, and that this is what comes of it."""
    signature = f"guide_{kind}_(self, query)"
    source, checks = _written("good", signature, GUIDE, kind)
    texts = [node.value for node in ast.walk(_method(source)) if isinstance(node, ast.Constant)]
    assert " ".join(GUIDE.split()) in " ".join(str(text) for text in texts)
    assert isinstance(_method(source), ast.AsyncFunctionDef)
    for check in checks:
        assert check["replies"] == {"infer_": [check["result"]]}
        assert len(check["arguments"]) == 1
    other, _ = _written("good", signature, "Say it in one word.", kind)
    assert source != other


@given(st.text(max_size=3000), st.sampled_from(["facet", "protocol", "method"]))
def test_any_intent_becomes_source_that_a_reply_has_room_for(intent: str, kind: str) -> None:
    """It parses, is printable, and is no longer than a reply may hold."""
    source, checks = _written("good", f"ask_{kind}_(self, query)", intent, kind)
    assert _method(source).name == f"ask_{kind}_"
    assert len(source) <= 1999
    assert source.replace("\n", "").isprintable()
    assert all(len(json.dumps(part)) <= MOST[name] for check in checks for name, part in check.items())


@given(st.sampled_from(sorted(PLAIN)), st.sampled_from(sorted(AUTHORS)), st.integers(0, 2**40))
def test_every_author_writes_what_can_be_read(signature: str, author: str, number: int) -> None:
    """All but those whose reply is broken give a method of the name that was asked for, the same every time."""
    shape = orders.shape_of(FORM)
    assert shape is not None
    order = orders.read(shape, asking(signature, PLAIN[signature][0], SLOTS))
    reply = write(author, order, {}, number)
    assert write(author, order, {}, number) == reply
    if author not in (authors.BROKEN, authors.ENDLESS):
        source, _ = decoded(reply.text)
        functions = [
            node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        assert functions[0].name == signature.partition("(")[0]


def test_who_forgets_the_marker_writes_a_slot_without_it() -> None:
    """Where the method writes nothing by itself, it writes one."""
    for signature, intent in (("tick_(self)", "Increment the counter."), ("guide_facet_(self, query)", GUIDE)):
        source, _ = _written("no_marker", signature, intent, "")
        assert "self." in source
        assert "_p_changed" not in source


def test_checks_may_fail_be_none_or_ask_for_nothing() -> None:
    """Three authors, each with one fault of checks."""
    intent = PLAIN["count_words_(self, text)"][0]
    _, good = _written("good", "count_words_(self, text)", intent)
    _, failing = _written("failing_check", "count_words_(self, text)", intent)
    assert [each["result"] for each in good] == [3, 6]
    assert [each["result"] for each in failing] == ["nothing of the kind", 6]
    assert _written("empty_checks", "count_words_(self, text)", intent)[1] == []
    source, nothing = _written("null_checks", "count_words_(self, text)", intent)
    assert [each["result"] for each in nothing] == [None, None]
    assert "if not text:" in source
    assert "pass" not in source


@pytest.mark.parametrize("author", ["raises_later", "rubbish", "wasteful"])
def test_who_is_bad_in_use_knows_what_is_checked(author: str) -> None:
    """The checks are those of the good author; whatever else is asked takes another way."""
    good, checks = _written("good", "guide_facet_(self, query)", GUIDE, "facet")
    bad, same = _written(author, "guide_facet_(self, query)", GUIDE, "facet")
    assert same == checks
    assert bad != good
    assert repr([check["arguments"][0] for check in checks]) in bad


def test_hostile_methods_are_of_every_kind() -> None:
    """By the number of what is asked, or the one that is named."""
    signature, intent = "guide_facet_(self, query)", GUIDE
    kinds = list(hostile.ATTACKS)
    written = [_written("hostile", signature, intent, "facet", at)[0] for at in range(len(kinds))]
    assert written == [_written(f"hostile-{kind}", signature, intent, "facet")[0] for kind in kinds]
    assert len(set(written)) == len(kinds)


def test_of_several_methods_the_last_has_the_fault() -> None:
    """So that it shows whether all of them are kept or none."""
    shape = orders.shape_of(FORM_OF_MANY)
    assert shape is not None
    order = orders.read(shape, [{"role": "user", "content": f"Api:\n{API}"}])
    found = json.loads(write("no_marker", order, {"a_methods": []}, 0).text)["a_methods"]
    assert [method["a_selector"] for method in found] == ["search_", "fetch_"]
    assert ["self.last_call" in method["b_source"] for method in found] == [False, True]
    assert [list(method) for method in found] == [["a_selector", "b_source", "c_checks"]] * 2


def test_a_roster_is_used_up_to_its_last_name() -> None:
    """Which then stays."""
    roster = Roster(("no_marker", "good"))
    assert [roster.next() for _ in range(4)] == ["no_marker", "good", "good", "good"]


@pytest.mark.parametrize("names", [(), ("good", "genius")])
def test_an_author_that_there_is_not_is_refused(names: tuple[str, ...]) -> None:
    """With the names of those that there are."""
    with pytest.raises(OptionError) as refused:
        DaemonSettings.read(Options(authors=names))
    assert refused.value.field == "author"
    assert "no_marker" in refused.value.remedy


# -- over the wire


async def test_a_request_for_code_is_answered_with_code(client: Client) -> None:
    """Streamed or whole, by chat or generate: the same method for the same request."""
    messages = asking("guide_facet_(self, query)", GUIDE, SLOTS, "facet", "The Guide")
    fields: dict[str, Any] = {"messages": messages, "format": FORM}
    first = (await client.chat(**fields))["message"]["content"]
    again = (await client.chat(**fields))["message"]["content"]
    source, checks = decoded(first)
    assert first == again
    assert list(json.loads(first)) == ["checks", "source"]
    assert "async def guide_facet_(self, query):" in source
    assert len(checks) == 2
    said = await client.post(
        "/api/generate", model=CHAT_MODEL, prompt=messages[1]["content"], format=FORM, stream=False
    )
    assert decoded(said.json()["response"]) == (source, checks)


async def test_authors_take_turns_and_only_for_code(start: Start) -> None:
    """What asks for no code uses none of them up."""
    messages = asking("tick_(self)", "Increment the counter.", SLOTS)
    async with start(authors=("broken_json", "no_marker", "good")) as client:
        await client.chat("What is water?")
        texts = [(await client.chat(messages=messages, format=FORM))["message"]["content"] for _ in range(4)]
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(texts[0])
    assert ["_p_changed" in text for text in texts[1:]] == [False, True, True]


async def test_a_fault_names_an_author_for_one_method(client: Client) -> None:
    """It strikes no other request, and uses up no author."""
    client.emulator.faults.add({"match": {"selector": "tick_"}, "do": "author", "author": "hostile-import"})
    client.emulator.faults.add({"match": {"selector": "tick_", "nth": 2}, "do": "status", "status": 503})
    await client.chat("What is water?")
    texts = []
    for signature in ("tock_(self)", "tick_(self)"):
        messages = asking(signature, "Increment the counter.", SLOTS)
        texts.append((await client.chat(messages=messages, format=FORM))["message"]["content"])
    assert ["import os" in text for text in texts] == [False, True]
    body = {"model": CHAT_MODEL, "messages": asking("tick_(self)", "x"), "format": FORM, "stream": False}
    statuses = [(await client.http.post("/api/chat", json=body)).status_code for _ in range(2)]
    assert statuses == [200, 503]


async def test_a_method_without_end_goes_on_to_its_limit(client: Client) -> None:
    """No two pieces beside each other are the same, so that only the limit ends it."""
    client.emulator.faults.add({"do": "author", "author": "endless"})
    messages = asking("guide_facet_(self, query)", GUIDE, SLOTS, "facet")
    body = {"model": CHAT_MODEL, "messages": messages, "format": FORM, "options": {"num_predict": 900}}
    lines = await client.lines("/api/chat", **body)
    pieces = [line["message"]["content"] for line in lines[:-1]]
    assert (lines[-1]["done_reason"], len(pieces)) == ("length", 900)
    assert not any(one == other for one, other in pairwise(pieces[500:]))
