"""Thoughts are parted from what a model says, wherever its pieces begin and end."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.inference.thoughts import ReplyParts, ThoughtFilter, part, part_values

THOUGHT, SAID = "Perhaps 999 sheep.", "The farm has 41 sheep."


@pytest.mark.parametrize(
    "reply",
    [
        "<think>\n{}\n</think>\n\n{}",
        "<THINKING>{}</THINKING>{}",
        "\n<thought>\n{}\n</thought>\n{}",
        "{}\n</think>\n\n{}",
        "{}</think>{}",
        "[THINK]{}[/THINK]{}",
        "◁think▷{}◁/think▷{}",
        "<seed:think>{}</seed:think>{}",
        "<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>{}<|END_RESPONSE|>",
        "<|begin_of_thought|>\n{}\n<|end_of_thought|>\n\n<|begin_of_solution|>{}<|end_of_solution|>",
        "<think>{}</think>\n<answer>{}</answer>\n",
        "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
        "<|start|>assistant<|channel|>commentary<|message|>{}<|channel|>final<|message|>{}<|end|>",
        "<|channel>thought\n{}<channel|>{}",
        "analysis{}assistantfinal{}",
        "Here is my thought process: {}\nHere is my response: {}",
        "<think>{}</think>{}<|im_end|>\n",
        "<think>{}</thinking>{}",
    ],
)
def test_marks_of_many_models_part_a_reply(reply: str) -> None:
    """The thought is no part of what is said, and is kept."""
    said, thought, _ = part(reply.format(THOUGHT, SAID))
    assert said.strip() == SAID
    assert THOUGHT in thought


@pytest.mark.parametrize(
    "reply",
    [
        "{}<|im_end|>\n<|im_start|>user\nAnd cows?<|im_end|>\n<|im_start|>assistant\nNone.",
        "{}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n999.",
        "<|im_start|>assistant\n{}<|im_end|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\n{}<|eot_id|>",
        "<start_of_turn>model\n{}<end_of_turn>\n<start_of_turn>user\nAnd cows?",
        "{}</s>",
        "{}</s> [INST] And cows? [/INST] 999",
        "assistant: {}",
        "Assistant:\n{}",
        "assistant\n\n{}",
    ],
)
def test_what_frames_a_turn_is_no_part_of_it(reply: str) -> None:
    """Marks of a turn, a name before it, and the turns that a model invents behind its own."""
    assert part(reply.format(SAID)).said.strip() == SAID


@pytest.mark.parametrize("mark", ["<think>", "[THINK]\n", "<|channel|>analysis<|message|>", "analysis", "<|channel|>"])
def test_a_thought_that_never_ends_says_nothing(mark: str) -> None:
    """Neither does one of which only the name of its channel came."""
    assert part(mark + THOUGHT).said == ""


@pytest.mark.parametrize(
    "reply",
    [
        "The tag `<think>` opens a thought, and `</think>` ends it.",
        'Write "<think>" before it and "</think>" behind it.',
        "Models write <think> and </think> around what they think.",
        "```\n<think>\nhm\n</think>\n```\nThat is all.",
        "~~~html\n<thought>x</thought>\n~~~",
        "if a < b and c[i] > [1] then <b>so</b>",
        "A mark such as <|im_end|> ends a turn.",
        "analysis of the harvest: good",
        "<answer>41</answer>",
        "The price was <s>40</s>",
        "The assistant: a good man. <|im_start|> begins a turn.",
        "Assistants are dear.",
        "assistant",
        "x <",
        "",
        " \n",
    ],
)
def test_what_a_reply_speaks_of_is_said(reply: str) -> None:
    """Marks in code, in quotes and amid a sentence, and signs that are no marks."""
    assert part(reply) == ReplyParts(reply)


def test_thoughts_without_a_first_mark_may_end_twice() -> None:
    """Behind a pair a last mark without a first one is dropped, and what was said stays."""
    assert part("one\n</think>\ntwo\n</think>\nSo 41.").said == "So 41."
    assert part("<think>one</think>\nSo 41.\n</think>").said.strip() == "So 41."


MARKS = """<think> </think> < think > </ [THINK] [/THINK] [ ` ``` . so 1 <|channel|> analysis final <|message|> <|end|>
<|start|>assistant | { " <|im_end|> <answer> </answer> A assistantfinal ◁ think▷ <|channel>
</s> <s> <|im_start|> <|start_header_id|> <|end_header_id|> [INST]"""
WORDS = ("\n", " ", "Here is my thought process:", "assistant:")
PIECES = st.lists(st.sampled_from([*MARKS.split(), *WORDS]), max_size=14)


@given(PIECES, st.data(), st.booleans())
def test_the_parts_are_the_same_wherever_pieces_end(marks: list[str], data: st.DataObject, structured: bool) -> None:
    """Heard in any pieces, a reply has the parts that it has as a whole."""
    text = "".join(marks)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=len(text) + 1)) | {0, len(text)})
    assert _heard(text, cuts, structured=structured) == _heard(text, [0, len(text)], structured=structured)


@given(PIECES)
def test_nothing_is_added(marks: list[str]) -> None:
    """What is said and what is thought stand in the reply; a text without a mark's sign is said whole."""
    text = "".join(marks)
    said, thought, _ = part(text)
    assert len(said) + len(thought) <= len(text)
    plain = (
        text.translate({ord(each): None for each in "<[◁"})
        .replace("analysis", "")
        .replace("Here", "")
        .replace("assistant", "")
    )
    assert part(plain) == ReplyParts(plain)


def test_texts_within_json_are_parted() -> None:
    """A reply by a schema keeps its form; other values, and code that names a mark, stay as they are."""
    value = {"answer": f"<think>{THOUGHT}</think>\n{SAID}", "n": 3, "code": 's.split("</think>")', "all": [f"{SAID}"]}
    said, thought, _ = part_values(json.dumps(value))
    assert json.loads(said) == {**value, "answer": SAID}
    assert thought == THOUGHT
    escaped = '{"answer": "\\u003cthink\\u003e1\\u003c/think\\u003e2"}'
    assert json.loads(part_values(escaped).said) == {"answer": "2"}
    for same in ('{"a": "b"}', "no json <think>", "[1, 2]"):
        assert part_values(same) == ReplyParts(same)


def test_json_is_said_as_it_comes() -> None:
    """A thought before it is parted; its own texts are left to `part_values`."""
    body = '{"answer": "so\\n</think>\\n41"}'
    assert _heard(f"<think>hm</think>{body}", [0], structured=True) == (body, "hm")
    assert _heard(body, [0], structured=True) == (body, "")


def _heard(text: str, cuts: list[int], *, structured: bool) -> tuple[str, str]:
    heard, said, thought = ThoughtFilter(structured=structured), "", ""
    ends = [*cuts[1:], len(text)]
    for parted in (*(heard.add(text[start:end]) for start, end in zip(cuts, ends, strict=True)), heard.end()):
        if parted.turned:
            said, thought = "", thought + said
        said, thought = said + parted.said, thought + parted.thought
    return said, thought
