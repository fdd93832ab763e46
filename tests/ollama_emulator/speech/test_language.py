"""What the emulator says: sentences of the prompt, the same every time, and that it is no model."""

from __future__ import annotations

import json
import re
from math import sqrt
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from tests.ollama_emulator.clients import CHAT_MODEL, EMBEDDER, Client, Start
from tests.ollama_emulator.schemas.test_instances import HARBOUR

from ollama_emulator.go import json as gojson
from ollama_emulator.speech import embedding, language, tokens
from ollama_emulator.speech.sources import gather, sentences


@given(st.text(max_size=400))
def test_pieces_make_up_the_text(text: str) -> None:
    """Nothing is lost or added when a text is cut into pieces."""
    assert "".join(tokens.pieces(text)) == text


@given(st.text(max_size=400))
def test_sentences_are_verbatim_and_on_one_line(text: str) -> None:
    """Each is a span of the text that holds no newline."""
    for sentence in sentences(text, 1):
        assert sentence.text in text
        assert "\n" not in sentence.text


def test_a_number_with_a_point_does_not_end_a_sentence() -> None:
    """3.5 is one number."""
    assert [one.text for one in sentences("It is 3.5 m high. It leans.", 1)] == ["It is 3.5 m high.", "It leans."]


def test_the_question_is_the_one_that_is_marked_or_asked() -> None:
    """A marked question goes before a sentence that asks, and this before the last paragraph."""
    asked = "You are BRICK. Be literal.\n\nHow long is it?\n\nIt is Monday."
    assert gather([{"role": "user", "content": asked}], ()).question == "How long is it?"
    marked = asked + "\n<question>Who built the harbour</question>\n"
    assert gather([{"role": "user", "content": marked}], ()).question == "Who built the harbour"


@given(st.text(min_size=1, max_size=200), st.integers(0, 120))
def test_an_answer_is_never_too_long_and_says_what_it_is(text: str, longest: int) -> None:
    """It begins with the notice, or as much of it as there is room for."""
    said = language.answer(gather([{"role": "user", "content": text}], ()), longest)
    assert len(said) <= longest
    assert said.startswith(language.NOTICE) or language.NOTICE.startswith(said)


async def test_free_text_is_drawn_from_the_evidence(client: Client) -> None:
    """The sentence that answers is found, streamed piece by piece, and the same the second time."""
    text = HARBOUR + "\nWhen was the lamp replaced?"
    whole = (await client.chat(text))["message"]["content"]
    assert "The lamp was replaced in 1931" in whole
    messages = [{"role": "user", "content": text}]
    lines = await client.lines("/api/chat", model=CHAT_MODEL, messages=messages)
    assert "".join(line["message"]["content"] for line in lines) == whole
    assert len(lines) > 10
    assert lines[-1]["done"]


async def test_an_empty_format_is_none(client: Client) -> None:
    """`"format": {}` asks for words, as no format does."""
    text = HARBOUR + "\nWhen was the lamp replaced?"
    free, empty = await client.chat(text), await client.chat(text, format={})
    assert empty["message"]["content"] == free["message"]["content"]


async def test_counts_follow_from_the_request(client: Client) -> None:
    """Without a vocabulary: four bytes a token, one for each of five marks and one in front; an end in the answer."""
    first = await client.chat("y" * 400)
    again = await client.chat("y" * 400)
    assert first["prompt_eval_count"] == again["prompt_eval_count"] == 1 + 5 + 105
    assert first["eval_count"] == len(tokens.pieces(first["message"]["content"])) + 1


async def test_num_predict_and_the_window_end_an_answer(client: Client) -> None:
    """`length` is the reason, and prompt and answer fill the window exactly where it may not slide."""
    cut = await client.chat(options={"num_predict": 2})
    assert (cut["done_reason"], cut["eval_count"]) == ("length", 2)
    client.emulator.faults.add({"do": "repeat"})
    full = await client.chat(options={"num_ctx": 256, "num_predict": 4000}, shift=False)
    assert full["done_reason"] == "length"
    assert full["prompt_eval_count"] + full["eval_count"] == 256


async def test_history_is_dropped_in_silence_unless_forbidden(client: Client) -> None:
    """The oldest messages go first; with truncate false the same request is a 400 with its counts."""
    messages = [{"role": "user", "content": "old " * 2000}, {"role": "user", "content": "What is new?"}]
    body: dict[str, Any] = {"model": CHAT_MODEL, "messages": messages, "options": {"num_ctx": 512}, "stream": False}
    silent = (await client.http.post("/api/chat", json=body)).json()
    assert silent["prompt_eval_count"] < 50
    refused = await client.http.post("/api/chat", json={**body, "truncate": False})
    inner = json.loads(refused.json()["error"])["error"]
    assert (refused.status_code, inner["type"], inner["n_ctx"]) == (400, "exceed_context_size_error", 512)
    assert inner["n_prompt_tokens"] > 2000


async def test_a_thinking_model_thinks_unless_told_not_to(start: Start) -> None:
    """Thinking comes first, in a field of its own; other models refuse to."""
    async with start(models=("qwen3:4b", CHAT_MODEL)) as client:
        assert (await client.chat(model="qwen3:4b"))["message"]["thinking"]
        assert "thinking" not in (await client.chat(model="qwen3:4b", think=False))["message"]
        messages = [{"role": "user", "content": "x"}]
        refused = await client.post("/api/chat", model=CHAT_MODEL, messages=messages, think=True)
        assert refused.json() == {"error": f'"{CHAT_MODEL}" does not support thinking'}


async def test_a_tool_is_called_when_the_question_names_it(client: Client) -> None:
    """With arguments that its schema allows, and no text."""
    parameters = {"type": "object", "properties": {"place": {"type": "string", "maxLength": 20}}}
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": parameters}}]
    message = (await client.chat("Please look_up the harbour.", tools=tools))["message"]
    assert message["tool_calls"][0]["function"]["name"] == "look_up"
    assert set(message["tool_calls"][0]["function"]["arguments"]) == {"place"}
    assert "tool_calls" not in (await client.chat("Say something.", tools=tools))["message"]


async def test_generate_answers_a_prompt(client: Client) -> None:
    """In `response`, with a `context` unless raw."""
    reply = (await client.post("/api/generate", model=CHAT_MODEL, prompt="What is water?", stream=False)).json()
    assert reply["response"].startswith(language.NOTICE)
    assert reply["context"]
    raw = await client.post("/api/generate", model=CHAT_MODEL, prompt="x", raw=True, stream=False)
    assert "context" not in raw.json()


def _near(one: list[float], two: list[float]) -> float:
    return sum(a * b for a, b in zip(one, two, strict=True))


def test_similar_texts_are_near() -> None:
    """A text is nearer to its rephrasing than to another text, and every vector has length one."""
    vectors = [
        embedding.embed(text, 384)
        for text in ("The harbour was built in 1874.", "When was the harbour built?", "Medlar grows in the orchard.")
    ]
    assert _near(vectors[0], vectors[1]) > _near(vectors[0], vectors[2]) + 0.2
    assert all(abs(sqrt(_near(vector, vector)) - 1) < 1e-6 for vector in vectors)


async def test_embed_gives_one_vector_a_text(client: Client) -> None:
    """In order, of the model's width; shortened they have length one again."""
    reply = (await client.post("/api/embed", model=EMBEDDER, input=["water", "stone", ""])).json()
    assert [len(vector) for vector in reply["embeddings"]] == [384] * 3
    alone = (await client.post("/api/embed", model=EMBEDDER, input="stone")).json()
    assert alone["embeddings"][0] == reply["embeddings"][1]
    short = (await client.post("/api/embed", model=EMBEDDER, input="stone", dimensions=8)).json()["embeddings"][0]
    assert len(short) == 8
    assert abs(_near(short, short) - 1) < 1e-6


async def test_a_chat_model_does_not_embed(client: Client) -> None:
    """501, and only after it was loaded."""
    reply = await client.post("/api/embed", model=CHAT_MODEL, input="x")
    assert reply.status_code == 501
    assert client.emulator.scheduler.loads == 1


@given(st.integers(0, 10**15), st.sampled_from(["ns", "us", "ms", "s"]))
def test_durations_are_read_as_go_reads_them(count: int, unit: str) -> None:
    """A count and a unit."""
    scale = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}[unit]
    if count * scale < 2**63:
        assert gojson.duration(f"{count}{unit}") == count * scale


@pytest.mark.parametrize(
    ("text", "ns"),
    [("1h30m", 5400 * 10**9), ("1.5s", 1500 * 10**6), ("-2m", -120 * 10**9), ("+0", 0), (".5s", 5 * 10**8)],
)
def test_durations_of_several_parts(text: str, ns: int) -> None:
    """Parts add up, a sign stands in front, a fraction may lack its whole."""
    assert gojson.duration(text) == ns


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip # noqa: E501
def test_json_is_what_json_was(value: Any) -> None:
    """What is encoded in Go's manner decodes to itself, on one line, without the signs that HTML reads."""
    text = gojson.encode(value)
    assert json.loads(text) == value
    assert not re.search("[<>&\u2028\u2029\n]", text)


def test_when_it_was_asked_is_no_question() -> None:
    """The line in which BAT OS tells the time is not quoted, however short the question; such words elsewhere are."""
    clock = "Asked at 2026-01-02T03:04:05.678Z."
    gathered = gather([{"role": "user", "content": f"You are ROBIN.\n\nhi\n\n{clock}"}], ())
    assert "Asked at" not in language.answer(gathered) + gathered.question
    quoted = gather([{"role": "user", "content": f"Does the log say {clock[:-1]}?"}], ())
    assert "Asked at" in quoted.question


def test_how_to_reply_is_not_what_is_talked_about() -> None:
    """The list of keys and the clock at the end of a prompt are never quoted as an answer."""
    keys = "Reply with:\n`answer`: (text)\n`unanswered`: the numbers that stay open"
    gathered = gather([{"role": "user", "content": f"hi\n\n{keys}\n\nAsked at 2026-01-02T03:04:05.678Z."}], ())
    assert "stay open" not in language.answer(gathered) + gathered.question


def test_what_failed_before_is_not_talked_about() -> None:
    """The line of BAT OS that says why an earlier attempt failed is no question and never quoted."""
    told = 'An earlier attempt at this failed.\n<failure digest="0badf00d">\nthe time was over\n</failure 0badf00d>'
    gathered = gather([{"role": "user", "content": f"hi\n\nAsked at 2026-01-02T03:04:05.678Z.\n\n{told}"}], ())
    assert not {"earlier", "time", "over"} & set((language.answer(gathered) + gathered.question).split())


def test_a_follow_up_is_answered_from_what_the_person_said() -> None:
    """By a word that both have, the newest first; no line of a persona, no earlier question and no answer is said."""
    told = [
        {"role": "system", "content": "A boat is a house rule."},
        {"role": "user", "content": "My boat is called Lark."},
        {"role": "assistant", "content": "Your boat is a kite."},
        {"role": "user", "content": "No, the boat is called Wren. Is a boat a kite?"},
        {"role": "assistant", "content": "It is a boat."},
    ]
    task = "You are ROBIN, who likes a boat.\n\nThe message:\n{}\n\nAnswer at once. Name each boat."
    asked = gather([*told, {"role": "user", "content": task.format("What is my boat called?")}], ())
    assert [one.text for one in asked.spoken] == ["No, the boat is called Wren.", "My boat is called Lark."]
    assert asked.question == "What is my boat called?"
    said = gather([*told, {"role": "user", "content": task.format("I sold my boat.")}], ())
    assert [one.text for one in said.spoken] == ["I sold my boat."]
    other = gather([*told, {"role": "user", "content": task.format("How do tides work?")}], ())
    assert [one.text for one in other.spoken] == ["How do tides work?"]


def test_a_text_and_a_question_are_read_from_the_lean_form() -> None:
    """The sentences below `Text:` are the evidence, and the question has no label."""
    message = {"role": "user", "content": "Text:\nThe lamp burns.\nGulls cry.\n\nQuestion: Does it burn? Why?"}
    found = gather([message], ())
    assert [each.text for each in found.evidence] == ["The lamp burns.", "Gulls cry."]
    assert found.question == "Does it burn? Why?"
