"""Marks of chat templates in a text: each is broken, once, where a person sees it; all else stays as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.counting_bridge import CountedBridge, asked, desk

from batos.inference import marks
from batos.inference.ollama.bridge import ChatRequest
from batos.inference.session import Step

USUAL = (
    *("<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|end|>", "<|endoftext|>", "<|channel|>"),
    *("<｜User｜>", "<｜end▁of▁sentence｜>", "[|endofturn|]", "<s>", "</s>", "<bos>", "<eos>", "<pad>", "<unk>"),
    *(
        "<start_of_turn>",
        "<end_of_turn>",
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<unused7>",
        "<SPECIAL_12>",
    ),
    *("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "[SYSTEM_PROMPT]", "[TOOL_RESULTS]", "[gMASK]", "<fim_prefix>"),
    *("<EOS_TOKEN>", "<END_OF_TURN_TOKEN>", "<repo_name>", "<extra_id_0>", "[control_8]"),
)
OWN = ("<turn>", "User:", "### Instruction:", "@@x", "[user]", "~~")
pieces = st.sampled_from([*USUAL, *OWN, "<", "|", ">", "[", "]", "/", " ", "\n", "a", "User", "#", ":", "s", "~"])
texts = st.lists(pieces, max_size=12).map("".join)


@pytest.mark.parametrize("mark", USUAL)
def test_a_usual_mark_is_broken_by_one_blank(mark: str) -> None:
    """Visible to a person, and the same letters in the same order."""
    said = marks.break_marks(f"before{mark}after")
    assert mark not in said
    assert said.replace(" ", "") == f"before{mark}after"
    assert len(said) <= len(f"before{mark}after") + 2


@given(text=texts)
def test_no_mark_is_left_and_nothing_is_broken_twice(text: str) -> None:
    """However marks are put into one another: nothing but blanks is added, and what is broken stays as it is."""
    said = marks.break_marks(text, OWN)
    assert not [mark for mark in (*USUAL, *OWN) if mark in said]
    assert said.replace(" ", "") == text.replace(" ", "")
    assert marks.break_marks(said, OWN) == said


@pytest.mark.parametrize(
    "text",
    [
        *("a <| b", "x < y && y > z", "List<String>", "<p>so</p> <b>it</b> is", "[1] [link](x) v[0]", "[a|b]", "<a|b>"),
        *('<document id="1" name="a" digest="0a1b2c3d">', "</document 0a1b2c3d>", '<answer digest="0a1b2c3d">'),
        *("a user: said", "# Title", "{{ .Prompt }}", "2 << 3", "<", "[", ""),
    ],
)
def test_what_is_no_mark_stays(text: str) -> None:
    """Code, markup, lists and the fences of our own prompts."""
    assert marks.break_marks(text) == text


def test_a_models_own_marks_are_read_from_its_template_and_its_vocabulary() -> None:
    """Tags and labels that a template writes, control tokens of any form; no words, no blanks, no usual marks."""
    info = {
        "tokenizer.ggml.tokens": ["a", "<turn>", "@@ctl", "<h1>", "<|im_end|>", "control", "  ", "<used>"],
        "tokenizer.ggml.token_type": [1, 3, 3, 4, 3, 3, 4, 4],
    }
    template = "{{ if .System }}### System:\n{{ .System }}\n{{ end }}USER: {{ .Prompt }}<used> [ask]\nASSISTANT: "
    assert set(marks.marks_of(template, info)) == {
        "### System:",
        "USER:",
        "ASSISTANT:",
        "<used>",
        "[ask]",
        "<turn>",
        "@@ctl",
    }


def test_places_in_a_jinja_template_are_no_marks() -> None:
    """What a template computes with is not what it writes."""
    info = {"tokenizer.chat_template": "{% for m in messages[1:] %}{{ m['role'] + items[i] }}{% endfor %}"}
    assert marks.marks_of("", info) == ()


def test_labels_stay_readable() -> None:
    """A blank before the colon."""
    assert marks.break_marks("User: obey", ("User:",)) == "User : obey"


async def test_what_leaves_a_session_holds_no_mark_and_so_does_its_journal() -> None:
    """Every message, whatever its role; the journal has what was sent, under which it is found again."""
    messages = tuple({"role": role, "content": f"<|im_end|> {role} <turn>"} for role in ("system", "user", "assistant"))
    sent: list[str] = []

    def reply(request: ChatRequest) -> str:
        sent.extend(each["content"] for each in request.messages)
        return "So."

    async with desk() as made:
        bridge = CountedBridge(reply)
        session = made.session(bridge, marks={"robin": ("<turn>",)})
        await session.think(asked(messages=messages), Step("p#0"))
        assert sent == [f"< |im_end|> {role} < turn>" for role in ("system", "user", "assistant")]
        again = made.session(bridge, marks={"robin": ("<turn>",)})
        await again.think(asked(messages=messages), Step("p#0"))
        assert (len(sent), again.cost.from_journal) == (3, 1)
        assert [each["content"] for each in made.records()[0].request["messages"]] == sent
