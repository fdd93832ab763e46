"""What is read of a prompt: recorded counts, what is left out, what does not fit, and the prompt itself on request."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.ollama_emulator.clients import Client, started
from tests.ollama_emulator.recordings import CHATML, MODELS, exchange, known

TEMPLATED = "{{ if .System }}S: {{ .System }}\n{{ end }}U: {{ .Prompt }}\nA: "
TOOLED = "{{ if .Tools }}T: {{ .Tools }}{{ end }}{{ range .Messages }}{{ .Role }}: {{ .Content }}\n{{ end }}A: "
_MADE: tuple[dict[str, Any], ...] = (
    {"model": "robin", "from": "base-a", "system": "You are ROBIN.", "parameters": {"num_ctx": 512}},
    {"model": "templated", "from": "base-a", "system": "You are T.", "template": TEMPLATED},
    {"model": "tooled", "from": "base-a", "template": TOOLED},
    {
        "model": "shots",
        "from": "base-a",
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
    },
)


THINKER = (
    "{{ range .Messages }}<|im_start|>{{ .Role }}\n{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}"
    "{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n"
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a daemon with the recorded bases and models, made once: each test has a copy."""
    folder = tmp_path_factory.mktemp("made")
    asyncio.run(_make(folder))
    return folder


@pytest.fixture
async def daemon(store: Path, tmp_path: Path) -> AsyncIterator[Client]:
    """A daemon with the recorded bases and models, without a GPU; its answers are those of random weights."""
    async with _started(store, tmp_path, endless=True) as client:
        yield client


@asynccontextmanager
async def _started(store: Path, tmp_path: Path, *, endless: bool) -> AsyncIterator[Client]:
    own = shutil.copytree(store, tmp_path / "store")
    async with started(models=(), endless=endless, vram=0, store=own) as client:
        yield client


async def _make(folder: Path) -> None:
    async with started(models=(), vram=0, store=folder) as client:
        for model, file in (("base-a", "tiny-a"), ("base-b", "tiny-b"), ("embedder", "tiny-embed")):
            data = (MODELS / f"{file}.gguf").read_bytes()
            digest = "sha256:" + sha256(data).hexdigest()
            await client.http.post(f"/api/blobs/{digest}", content=data)
            await client.lines("/api/create", model=model, files={f"{file}.gguf": digest})
        for described in _MADE:
            await client.lines("/api/create", **described)


async def _last(client: Client, path: str, request: dict[str, Any]) -> dict[str, Any]:
    reply = await client.http.post(path, json=request)
    found: dict[str, Any] = json.loads(reply.text.splitlines()[-1])
    return found


_CHATS = (
    *(233, 234, 235, 237, 241, 254, 255, 256, 261, 262, 263, 264, 270, 271, 275, 276, 281),
    *(282, 284, 285, 287, 288, 289, 291, 294, 295, 296, 301, 302, 338, 430, 442, 448),
)


@pytest.mark.parametrize("number", _CHATS)
async def test_a_recorded_chat_counts_the_same(daemon: Client, number: int) -> None:
    """Prompts cut and whole, by every kind of template; and the answer's tokens where a limit ended it."""
    request, recorded = exchange(number)
    reply = await _last(daemon, "/api/chat", request)
    assert reply["prompt_eval_count"] == recorded["prompt_eval_count"]
    if recorded["done_reason"] == "length":
        assert (reply["done_reason"], reply["eval_count"]) == ("length", recorded["eval_count"])


@pytest.mark.parametrize("number", [283, 286, 290, 293, 297, 298, 299, 300, 303, 305, 307, 311, 313, 315, 317])
async def test_a_recorded_prompt_that_does_not_fit_is_refused_with_the_same_counts(daemon: Client, number: int) -> None:
    """The nested text with n_prompt_tokens and n_ctx, letter by letter: windows go by 256 up to what was trained."""
    request, recorded = exchange(number)
    reply = await daemon.http.post("/api/chat", json=request)
    assert (reply.status_code, reply.json()) == (400, recorded)


@pytest.mark.parametrize("number", [319, 320, 325, 327, 339, 349])
async def test_a_recorded_generate_counts_the_same(daemon: Client, number: int) -> None:
    """Raw, by template, and by the weights' own; its context is the ids of the prompt and of what was said."""
    request, recorded = exchange(number)
    reply = await _last(daemon, "/api/generate", request)
    assert reply["prompt_eval_count"] == recorded["prompt_eval_count"]
    assert ("context" in reply) == ("context" in recorded)
    asked = recorded["prompt_eval_count"] - 1
    assert reply.get("context", [])[:asked] == recorded.get("context", [])[:asked]


@pytest.mark.parametrize("number", [350, 351, 354, 359, 362, 363, 364, 366])
async def test_a_recorded_embedding_counts_the_same(daemon: Client, number: int) -> None:
    """Cut to the window by default, refused in the daemon's words where it may not be."""
    request, recorded = exchange(number)
    reply = (await daemon.http.post("/api/embed", json=request)).json()
    assert reply.get("prompt_eval_count") == recorded.get("prompt_eval_count")
    assert reply.get("error") == recorded.get("error")


@pytest.mark.parametrize("number", [279, 280])
async def test_the_prompt_is_shown_instead_of_an_answer(daemon: Client, number: int) -> None:
    """Every field as recorded, but the time."""
    request, recorded = exchange(number)
    reply = await _last(daemon, "/api/chat", request)
    assert {**reply, "created_at": ""} == {**recorded, "created_at": ""}
    assert [row["name"] for row in await daemon.ps()] == [f"{request['model']}:latest"]


async def test_the_prompt_of_a_generate_is_shown_as_one_object(daemon: Client) -> None:
    """Even where a stream was asked for; raw it is the prompt itself, by another template what that writes."""
    asked = {"model": "robin", "prompt": "x", "_debug_render_only": True}
    assert (await _last(daemon, "/api/generate", asked))["_debug_info"]["rendered_template"] == (
        "<|im_start|>system\nYou are ROBIN.<|im_end|>\n<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"
    )
    for more, text in (
        ({"raw": True}, "x"),
        ({"system": "S", "template": "{{ .System }}|{{ .Prompt }}|"}, "S|x|"),
        ({"model": "base-b"}, "[user] x | [assistant] "),
        ({"model": "base-b", "system": "S"}, "[system] S | [user] x | [assistant] "),
        ({"model": "shots", "context": [318, 340]}, "Yo<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"),
    ):
        reply = await _last(daemon, "/api/generate", {**asked, **more})
        assert reply["_debug_info"] == {"rendered_template": text}
        assert (reply["response"], reply["done"]) == ("", False)


async def test_a_template_that_fails_is_a_500_with_gos_words(daemon: Client) -> None:
    """Where the request brings it, and where it does not suit the values."""
    for template, wrong in (
        ("{{ .Nope", "template: :1: unclosed action"),
        ("{{ range .Messages }}{{ .Nope }}{{ end }}", "can't evaluate field Nope in type *template.templateMessage"),
    ):
        reply = await daemon.post("/api/generate", model="robin", prompt="x", template=template, stream=False)
        assert reply.status_code == 500
        assert reply.json()["error"].endswith(wrong)


async def test_the_oldest_messages_are_left_out_and_the_systems_kept(daemon: Client) -> None:
    """As many as have to go; a result of a tool never without the answer that called it."""
    call = [{"function": {"name": "look", "arguments": {}}}]
    talk = [
        {"role": "system", "content": "keep"},
        {"role": "user", "content": "a" * 200},
        {"role": "assistant", "content": "b", "tool_calls": call},
        {"role": "tool", "content": "c" * 120},
        {"role": "user", "content": "last"},
    ]
    fields = {"model": "robin", "messages": talk, "options": {"num_ctx": 256}, "_debug_render_only": True}
    reply = await _last(daemon, "/api/chat", fields)
    text = reply["_debug_info"]["rendered_template"]
    assert "aaa" not in text
    assert [word in text for word in ("keep", "\nb<", "ccc", "last")] == [True] * 4
    whole = await _last(daemon, "/api/chat", {**fields, "truncate": False})
    assert "aaa" in whole["_debug_info"]["rendered_template"]


async def test_a_prompt_keeps_its_first_tokens_and_loses_its_middle(daemon: Client) -> None:
    """Half of what is not kept stays free: of 256 with num_keep 4 and one in front 131 are read, with 100 179."""
    talk = [{"role": "user", "content": "m" * 3000}]
    for keep, count in ((None, 131), (100, 179), (0, 129), (-1, 255)):
        options = {"num_ctx": 256, "num_predict": 1} | ({} if keep is None else {"num_keep": keep})
        reply = await _last(daemon, "/api/chat", {"model": "robin", "messages": talk, "options": options})
        assert reply["prompt_eval_count"] == count


async def test_a_prompt_is_not_cut_where_the_window_may_not_slide(daemon: Client) -> None:
    """With shift off and truncation on the daemon refuses it in other words than the runner."""
    talk = [{"role": "user", "content": "m" * 3000}]
    reply = await daemon.post("/api/chat", model="robin", messages=talk, options={"num_ctx": 256}, shift=False)
    assert reply.status_code == 400
    assert reply.json()["error"].startswith("the prompt is longer than the context length currently available")


async def test_images_are_counted_and_refused_by_a_model_of_text(daemon: Client) -> None:
    """Shown in the prompt by marks, and 400 when it is to be answered."""
    talk = [{"role": "user", "content": "see [img]", "images": ["aGk=", "aGk="]}]
    shown = await _last(daemon, "/api/chat", {"model": "robin", "messages": talk, "_debug_render_only": True})
    assert "[img-1]see [img-0]" in shown["_debug_info"]["rendered_template"]
    assert shown["_debug_info"]["image_count"] == 2
    reply = await daemon.post("/api/generate", model="robin", prompt="x", images=["aGk="], stream=False)
    assert reply.status_code == 400
    assert "model does not support multimodal requests" in reply.json()["error"]


async def test_zero_tokens_are_one_where_the_runner_writes_the_prompt(daemon: Client) -> None:
    """num_predict 0 goes on for ever only by a template; natively the runner stops behind the first token."""
    talk = [{"role": "user", "content": "x"}]
    reply = await _last(daemon, "/api/chat", {"model": "base-b", "messages": talk, "options": {"num_predict": 0}})
    assert (reply["done_reason"], reply["eval_count"]) == ("length", 1)


async def test_log_probabilities_come_for_every_piece(daemon: Client) -> None:
    """With as many alternatives as were asked for, the piece itself first, and the bytes of each."""
    talk = [{"role": "user", "content": "x"}]
    fields = {"model": "robin", "messages": talk, "options": {"num_predict": 3}, "logprobs": True, "stream": False}
    reply = await _last(daemon, "/api/chat", {**fields, "top_logprobs": 4})
    found = reply["logprobs"]
    assert "".join(one["token"] for one in found) == reply["message"]["content"]
    assert [len(one["top_logprobs"]) for one in found] == [4, 4, 4]
    for one in found:
        assert one["top_logprobs"][0] == {key: one[key] for key in ("token", "logprob", "bytes")}
        ordered = [other["logprob"] for other in one["top_logprobs"]]
        assert ordered == sorted(ordered, reverse=True)
        assert bytes(one["bytes"]).decode() == one["token"]
    assert "top_logprobs" not in (await _last(daemon, "/api/chat", fields))["logprobs"][0]


async def test_a_context_goes_before_the_next_prompt(daemon: Client) -> None:
    """The ids of the last exchange are text again, and count."""
    first = await _last(daemon, "/api/generate", {"model": "robin", "prompt": "x", "options": {"num_predict": 2}})
    fields = {"model": "robin", "prompt": "y", "context": first["context"], "options": {"num_predict": 2}}
    second = await _last(daemon, "/api/generate", fields)
    assert second["context"][: len(first["context"])] == first["context"]
    assert second["prompt_eval_count"] > len(first["context"])
    assert known("tiny-a").decode(first["context"]).startswith(CHATML[CHATML.index("<") : CHATML.index("{{ .Role")])


@pytest.mark.parametrize("tok_s", [0.0, 5000.0])
async def test_thoughts_come_piece_by_piece_before_the_answer(tok_s: float) -> None:
    """Each in a line of its own; they count, and a limit that they use up leaves no answer."""
    async with started(models=("qwen3:4b",), tok_s=tok_s) as client:
        fields: dict[str, Any] = {"model": "qwen3:4b", "messages": [{"role": "user", "content": "What is water?"}]}
        *lines, last = await client.lines("/api/chat", **fields)
        thoughts = [line["message"]["thinking"] for line in lines if "thinking" in line["message"]]
        said = [line["message"]["content"] for line in lines if "thinking" not in line["message"]]
        assert len(thoughts) > 3
        assert all(said)
        assert last["eval_count"] == len(thoughts) + len(said) + 1
        whole = await _last(client, "/api/chat", {**fields, "stream": False})
        assert (whole["message"]["thinking"], whole["message"]["content"]) == ("".join(thoughts), "".join(said))
        short = await _last(client, "/api/chat", {**fields, "stream": False, "options": {"num_predict": 3}})
        assert (short["done_reason"], short["eval_count"], short["message"]["content"]) == ("length", 3, "")
        silent = await _last(client, "/api/chat", {**fields, "stream": False, "think": False})
        assert "thinking" not in silent["message"]


@pytest.mark.parametrize("tok_s", [0.0, 5000.0])
async def test_a_call_of_a_tool_comes_before_the_last_line(tok_s: float) -> None:
    """By a template of the daemon's in a line of its own, without words; its tokens count."""
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    async with started(models=("llama3.2:3b",), tok_s=tok_s) as client:
        talk = [{"role": "user", "content": "Please look at the water."}]
        *lines, last = await client.lines("/api/chat", model="llama3.2:3b", messages=talk, tools=[tool])
        assert [line["message"]["tool_calls"][0]["function"]["name"] for line in lines] == ["look"]
        assert last["message"] == {"role": "assistant", "content": ""}
        assert (last["done_reason"], last["eval_count"] > 1) == ("stop", True)


async def test_a_sibling_on_a_runner_without_templates_is_written_as_chatml(daemon: Client) -> None:
    """base-b has a template of its own, but its runner was started for a model whose prompts the daemon writes."""
    await daemon.lines("/api/create", model="own", **{"from": "base-b"}, template=TEMPLATED)
    talk = [{"role": "user", "content": "x"}]
    await _last(daemon, "/api/chat", {"model": "own", "messages": talk, "options": {"num_predict": 1}})
    fields = {"model": "base-b", "messages": talk, "_debug_render_only": True}
    shown = await _last(daemon, "/api/chat", fields)
    assert shown["_debug_info"]["rendered_template"] == "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"
    await _last(daemon, "/api/chat", {"model": "base-b", "messages": [], "keep_alive": 0})
    shown = await _last(daemon, "/api/chat", fields)
    assert shown["_debug_info"]["rendered_template"] == "[user] x | [assistant] "


_FORM = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def test_a_format_is_asked_for_once_a_model_has_thought(store: Path, tmp_path: Path) -> None:
    """By the daemon's own template that is a second request: its prompt holds the thoughts, and they count no more."""
    fields = {"model": "thinker", "messages": [{"role": "user", "content": "Is water wet?"}], "stream": False}
    async with _started(store, tmp_path, endless=False) as client:
        await client.lines("/api/create", model="thinker", **{"from": "base-a"}, template=THINKER)
        plain = await _last(client, "/api/chat", {**fields, "options": {"num_predict": 500}})
        formed = await _last(client, "/api/chat", {**fields, "format": _FORM})
    thoughts = len(known("tiny-a").encode(formed["message"]["thinking"]))
    assert formed["prompt_eval_count"] > plain["prompt_eval_count"] + thoughts
    assert formed["eval_count"] < 10
    assert json.loads(formed["message"]["content"]).keys() == {"n"}


async def test_random_weights_open_no_thought_and_call_no_tool(daemon: Client) -> None:
    """So a model that could think only talks, the daemon never comes to its format, and tools are not called."""
    await daemon.lines("/api/create", model="thinker", **{"from": "base-a"}, template=THINKER)
    await daemon.lines("/api/create", model="begun", **{"from": "base-a"}, template=THINKER + "<think>\n")
    talk = {"messages": [{"role": "user", "content": "look"}], "stream": False, "options": {"num_predict": 12}}
    for form in (None, _FORM, {"type": "odd"}, "xml"):
        spoken = await _last(daemon, "/api/chat", {**talk, "model": "thinker", "format": form})
        assert (list(spoken["message"]), spoken["eval_count"]) == (["role", "content"], 12)
    begun = await _last(daemon, "/api/chat", {**talk, "model": "begun"})
    assert (begun["message"]["content"], bool(begun["message"]["thinking"]), begun["eval_count"]) == ("", True, 12)
    formed = await daemon.post("/api/chat", **talk, model="thinker", format={"type": "odd"}, think=False)
    assert formed.status_code == 400
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    told = await _last(daemon, "/api/chat", {**talk, "model": "tooled", "tools": [tool]})
    assert "tool_calls" not in told["message"]


@pytest.mark.parametrize("model", ["robin", "base-b"])
@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("num_keep", -2, "Field 'n_keep': Value must be between -1 <= value <= 2147483647, but got -2"),
        ("repeat_last_n", -1, "Field 'repeat_last_n': Value must be between 0 <= value <= 2147483647, but got -1"),
    ],
)
async def test_a_number_beyond_the_runners_limits_is_refused(
    daemon: Client, model: str, option: str, value: int, told: str
) -> None:
    """Two options have hard limits; the rest is brought within them without a word."""
    talk = [{"role": "user", "content": "x"}]
    reply = await daemon.post("/api/chat", model=model, messages=talk, options={option: value, "num_predict": 2})
    assert reply.status_code == 400
    assert json.loads(reply.json()["error"])["error"]["message"] == told
    within = {"num_keep": -1, "repeat_last_n": 0, "top_k": -1, "temperature": -1, "top_p": 7, "num_predict": 2}
    assert (await daemon.post("/api/chat", model=model, messages=talk, options=within)).status_code == 200


async def test_a_window_beyond_all_numbers_is_the_least(daemon: Client) -> None:
    """What Go cannot hold as an int becomes its least one, and a window has four tokens at least."""
    await daemon.post("/api/chat", model="base-b", messages=[], options={"num_ctx": 1e30})
    assert [row["context_length"] for row in await daemon.ps()] == [4]


@pytest.mark.parametrize(("asked", "read"), [(0, 47), (-7, 47), (4, 22)])
async def test_natively_nothing_is_left_out_for_a_window_of_no_size(daemon: Client, asked: int, read: int) -> None:
    """The runner has its least window, of which 256 tokens really fit, and the daemon has none to fit messages to."""
    talk = [{"role": "user", "content": "y"}, {"role": "assistant", "content": "z"}, {"role": "user", "content": "x"}]
    fields = {"model": "base-b", "messages": talk, "options": {"num_ctx": asked, "num_predict": 1}}
    assert (await _last(daemon, "/api/chat", fields))["prompt_eval_count"] == read


@pytest.mark.parametrize(("token", "told"), [(372, 372), (-1, 2**64 - 1)])
async def test_a_context_of_tokens_that_there_are_not_is_a_500(daemon: Client, token: int, told: int) -> None:
    """In the words of whoever looked behind the end of the vocabulary."""
    reply = await daemon.post("/api/generate", model="robin", prompt="x", context=[5, token])
    assert reply.status_code == 500
    error = reply.json()["error"]
    assert error.startswith("detokenize error: ")
    inner = json.loads(error.removeprefix("detokenize error: "))["error"]
    assert inner["message"] == f"vector::_M_range_check: __n (which is {told}) >= this->size() (which is 372)"
