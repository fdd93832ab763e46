"""Chat logs of several programs."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.reading.reads import read_all, texts_of

from batos.memory.reading import chats
from batos.memory.reading.read_text import NotReadable, ReadText, UnreadPart

JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "messages", "mapping", "chat", "history", "parent", "id", "message"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def read(path: Path, *values: Any) -> list[ReadText | UnreadPart]:
    """What is read of a file with a value on each line."""
    return read_all(chats.read, path, "\n".join(map(json.dumps, values)).encode())


def told(found: list[ReadText | UnreadPart]) -> list[tuple[str, str]]:
    """Who said what."""
    return [(each.speaker, each.text) for each in found if isinstance(each, ReadText)]


def test_lines_of_messages_are_turns(tmp_path: Path) -> None:
    """Each has its number, its moment and its conversation; what a program said to a model is nobody's word."""
    found = read(
        tmp_path / "a.jsonl",
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is the oil?", "timestamp": 1_700_000_000, "session_id": "s1"},
        {"role": "assistant", "content": [{"type": "text", "text": "In the cellar."}], "session_id": "s1"},
    )
    assert told(found) == [("user", "Where is the oil?"), ("assistant", "In the cellar.")]
    first = found[0]
    assert isinstance(first, ReadText)
    assert (first.place, first.kind, first.conversation) == ("s1/1", "turn", "s1")
    assert first.said_at == "2023-11-14T22:13:20.000Z"


def test_a_broken_line_leaves_the_others(tmp_path: Path) -> None:
    """A log whose writer was killed in the middle of a line is read."""
    data = b'{"role": "user", "content": "a"}\n{"role": "us\n{"role": "user", "content": "c"}\n'
    found = read_all(chats.read, tmp_path / "a.jsonl", data)
    assert told(found) == [("user", "a"), ("user", "c")]
    assert UnreadPart("line 2", "it is not JSON") in found


def chatgpt(name: str) -> dict[str, Any]:
    """A conversation as ChatGPT exports it, with a branch that was given up."""

    def node(ident: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [text]}
        message = {"id": ident, "author": {"role": role}, "content": content, "create_time": 1_700_000_000.5}
        return {"id": ident, "parent": parent, "message": message}

    nodes = [
        {"id": "root", "parent": None, "message": None},
        node("s", "root", "system", "hidden"),
        node("q", "s", "user", "Where is the oil?"),
        node("old", "q", "assistant", "I do not know."),
        node("new", "q", "assistant", "In the cellar."),
    ]
    return {
        "conversation_id": name, "title": "Oil", "current_node": "new", "mapping": {each["id"]: each for each in nodes}
    }  # fmt: skip


def test_an_export_of_chatgpt_is_read(tmp_path: Path) -> None:
    """The branch that was shown last is what was said, in a file or in the archive."""
    data = json.dumps([chatgpt("c1"), chatgpt("c2")]).encode()
    plain = read_all(chats.read, tmp_path / "conversations.json", data)
    assert told(plain) == [("user", "Where is the oil?"), ("assistant", "In the cellar.")] * 2
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", data)
    packed: list[ReadText | UnreadPart] = []
    chats.read(tmp_path / "export.zip", packed.append)
    assert packed == plain
    assert isinstance(plain[0], ReadText)
    assert (plain[0].title, plain[0].place) == ("Oil", "c1/q")


def test_an_archive_without_conversations_is_told(tmp_path: Path) -> None:
    """Other archives are not unpacked."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    found: list[ReadText | UnreadPart] = []
    with pytest.raises(NotReadable):
        chats.read(tmp_path / "a.zip", found.append)


@pytest.mark.parametrize("as_list", [True, False])
def test_an_export_of_open_webui_is_read(tmp_path: Path, as_list: bool) -> None:
    """Messages stand in a list, or in a history with parents."""
    messages = {
        "1": {"id": "1", "parentId": None, "role": "user", "content": "Where is the oil?", "timestamp": 1_700_000_000},
        "2": {"id": "2", "parentId": "1", "role": "assistant", "content": "In the cellar."},
    }
    inner: dict[str, Any] = {"title": "Oil", "history": {"messages": messages, "currentId": "2"}}
    if as_list:
        inner["messages"] = list(messages.values())
    found = read_all(chats.read, tmp_path / "a.json", json.dumps([{"id": "w", "title": "Oil", "chat": inner}]).encode())
    assert told(found) == [("user", "Where is the oil?"), ("assistant", "In the cellar.")]


def test_what_llm_prints_is_read(tmp_path: Path) -> None:
    """A row of `llm logs --json` is a question and its answer."""
    row = {"id": "r", "conversation_id": "c", "conversation_name": "Oil", "prompt": "Where?", "response": "Here."}
    found = read_all(chats.read, tmp_path / "a.json", json.dumps([row], indent=2).encode())
    assert told(found) == [("user", "Where?"), ("assistant", "Here.")]


@pytest.mark.parametrize("data", [b'{"name": "lamp", "version": 1}', b"[1, 2, 3]", b"{ not json", b'"a"'])
def test_other_json_is_plain_text(tmp_path: Path, data: bytes) -> None:
    """A file of settings holds no conversation, and is remembered as it is."""
    assert texts_of(read_all(chats.read, tmp_path / "a.json", data)) == [data.decode()]


@pytest.mark.parametrize("as_turn", [True, False])
def test_data_in_base64_are_left_out_and_told(tmp_path: Path, as_turn: bool) -> None:
    """Within what somebody said, and within other JSON."""
    words = "The lamp: data:image/png;base64," + "iVBORw0K" * 20
    data = {"role": "user", "content": words} if as_turn else {"lamp": words}
    (found,) = read_all(chats.read, tmp_path / "a.json", json.dumps([data]).encode())
    assert isinstance(found, ReadText)
    assert found.text in {"The lamp: image/png", '[{"lamp": "The lamp: image/png"}]'}
    assert found.left_out == ("1 piece of data in base64 (image/png)",)


@given(values=st.lists(JSON, max_size=4))
def test_any_json_ends_well(reused_folder: Path, values: list[Any]) -> None:
    """Parents that lead in circles and fields of other kinds are read without an end that never comes."""
    path = reused_folder / "a.json"
    read_all(chats.read, path, json.dumps(values).encode())


def test_parents_in_a_circle_end(tmp_path: Path) -> None:
    """A history that somebody made up has no first message."""
    messages = {"1": {"parentId": "2", "role": "user", "content": "a"}, "2": {"parentId": "1", "role": "u"}}
    found = read(tmp_path / "a.json", {"chat": {"history": {"messages": messages, "currentId": "1"}}})
    assert all(text == "a" for _, text in told(found))


@pytest.mark.parametrize(
    "content",
    [
        "<think>\nPerhaps 999.\n</think>\n\nThere are 41.",
        "Perhaps 999.\n</think>\n\nThere are 41.",
        '<details type="reasoning" done="true">\n<summary>Thought</summary>\n> Perhaps 999.\n</details>\nThere are 41.',
        [{"type": "thinking", "text": "Perhaps 999."}, {"type": "text", "text": "There are 41."}],
    ],
)
def test_thoughts_of_a_model_are_not_read(tmp_path: Path, content: Any) -> None:
    """Only what it said is a turn; the same marks in a person's words are that person's."""
    asked = "What does <think> do?\n</think>"
    found = read(
        tmp_path / "a.jsonl",
        {"role": "user", "content": asked},
        {"role": "assistant", "content": content},
        {"role": "assistant", "channel": "analysis", "content": "Perhaps 999."},
        {"role": "assistant", "content": "<think>Perhaps 999, and no answer."},
    )
    assert told(found) == [("user", asked), ("assistant", "There are 41.")]


def test_thoughts_in_rows_of_llm_are_not_read(tmp_path: Path) -> None:
    """A row's response is a model's word too."""
    found = read(tmp_path / "a.jsonl", {"prompt": "How many?", "response": "<think>999?</think>There are 41."})
    assert told(found) == [("user", "How many?"), ("assistant", "There are 41.")]


def test_a_session_of_llama_cpp_is_the_branch_that_was_chosen(tmp_path: Path) -> None:
    """Its lines are one conversation each; a message of another branch is left out, and two sessions are two."""

    def lines(name: str, chosen: str) -> list[dict[str, object]]:
        told = [("m0", None, "system", ""), ("m1", "m0", "user", f"{name}?"), ("m2", "m1", "assistant", "Wrong."),
                ("m3", "m1", "assistant", f"{name}!")]  # fmt: skip
        messages = [
            {"convId": name, "id": each, "parent": parent, "role": role, "content": text, "timestamp": 1715667200000}
            for each, parent, role, text in told
        ]
        session: dict[str, object] = {"type": "session", "id": name, "name": name, "currNode": chosen}
        wrapped: list[dict[str, object]] = [{"type": "message", "message": each} for each in messages]
        return [session, *wrapped]

    data = "".join(f"{json.dumps(each)}\n" for each in [*lines("peat", "m3"), *lines("turf", "m3")])
    found = read_all(chats.read, tmp_path / "a.jsonl", data.encode())
    assert texts_of(found) == ["peat?", "peat!", "turf?", "turf!"]
    assert {each.conversation for each in found if isinstance(each, ReadText)} == {"peat", "turf"}
