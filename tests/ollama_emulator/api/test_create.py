"""POST /api/create beyond what was recorded: the order of checks, statuses, and what comes of the parts."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest
from tests.ollama_emulator.clients import CHAT_MODEL, EMBEDDER, Client, Start
from tests.ollama_emulator.recordings import MODELS

_NOWHERE = "sha256:" + "0" * 64


async def _upload(client: Client, name: str) -> str:
    data = (MODELS / name).read_bytes()
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    assert (await client.http.post(f"/api/blobs/{digest}", content=data)).status_code in (200, 201)
    return digest


async def _refused(client: Client, **fields: Any) -> tuple[int, str, int, str]:
    """Status and error of a whole reply, and of a stream: its error is in the only or in the last line."""
    whole = await client.post("/api/create", model="made", stream=False, **fields)
    streamed = await client.post("/api/create", model="made", **fields)
    last = json.loads(streamed.text.splitlines()[-1])
    return whole.status_code, whole.json()["error"], streamed.status_code, last["error"]


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({"from": CHAT_MODEL, "files": {"a//b": _NOWHERE}}, 400, "file path must be relative"),
        ({"from": CHAT_MODEL, "draft_quantize": "q8_0"}, 400, "--draft-quantize requires a DRAFT model"),
        ({"from": CHAT_MODEL, "adapters": {"a.gguf": ""}}, 400, "invalid digest format"),
        ({"from": "a b"}, 400, "invalid model name"),
        ({"from": "x:cloud:local"}, 400, "invalid model name"),
        ({"files": {}}, 400, "unknown type"),
        ({"files": {"readme.md": _NOWHERE}}, 400, "unknown type"),
        ({"from": CHAT_MODEL, "adapters": {"config.json": _NOWHERE}}, 400, "unknown type"),
        ({"from": CHAT_MODEL, "info": {"context_length": "many"}}, 400, 'info field "context_length" must be a number'),
        (
            {"from": CHAT_MODEL, "info": {"capabilities": [1]}},
            400,
            'info field "capabilities" element 0 must be a string',
        ),
        ({"from": CHAT_MODEL, "license": 5}, 500, "json: cannot unmarshal number into Go value of type []string"),
        ({"from": CHAT_MODEL, "license": [5]}, 500, "json: cannot unmarshal number into Go value of type string"),
        ({"from": CHAT_MODEL, "quantize": "q8_0"}, 500, "quantization is only supported for F16, BF16 and F32 models"),
        ({"from": CHAT_MODEL, "template": "{{ .Nope"}, 400, "template error: template: :1: unclosed action"),
        ({"from": CHAT_MODEL, "remote_host": "http://[x"}, 400, "bad remote"),
        (
            {"from": CHAT_MODEL, "adapters": {"../a.safetensors": _NOWHERE}},
            400,
            "file path must be relative: ../a.safetensors",
        ),
        ({"from": CHAT_MODEL, "adapters": {"a.safetensors": "sha256:zz"}}, 400, "invalid digest format"),
    ],
)
async def test_what_is_refused_before_the_first_line(
    client: Client, fields: dict[str, Any], status: int, error: str
) -> None:
    """With its status, streamed or whole."""
    assert await _refused(client, **fields) == (status, error, status, error)


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({"files": {"model.safetensors": _NOWHERE}}, 500, "open config.json: no such file or directory"),
        (
            {"from": CHAT_MODEL, "adapters": {"a.safetensors": _NOWHERE}},
            400,
            "open adapter_config.json: no such file or directory",
        ),
        (
            {"files": {"a.gguf": _NOWHERE}},
            500,
            f"open /emulator/models/blobs/sha256-{'0' * 64}: no such file or directory",
        ),
        ({"from": CHAT_MODEL, "draft_files": {"a.gguf": "sha256:zz"}}, 400, "invalid digest format"),
    ],
)
async def test_what_is_refused_after_the_first_line(
    client: Client, fields: dict[str, Any], status: int, error: str
) -> None:
    """200 and an error line in a stream, a status of its own when whole."""
    assert await _refused(client, **fields) == (status, error, 200, error)


async def test_adapters_are_looked_at_before_weights_are_quantised(client: Client) -> None:
    """The lines come in the daemon's order, the adapter's layer behind the base's."""
    base, adapter = await _upload(client, "tiny-a.gguf"), await _upload(client, "babs-lora.gguf")
    await client.lines("/api/create", model="base", files={"tiny-a.gguf": base})
    made = await client.lines(
        "/api/create", model="small", **{"from": "base", "adapters": {"b.gguf": adapter}, "quantize": "q8_0"}
    )
    assert [line["status"] for line in made[:2]] == ["parsing GGUF", "verifying conversion"]
    assert made[-1] == {"status": "success"}
    shown = (await client.post("/api/show", model="small")).json()
    assert shown["details"]["quantization_level"] == "Q8_0"
    assert shown["details"]["parent_model"] == ""
    assert f"ADAPTER /emulator/models/blobs/{adapter.replace(':', '-')}" in shown["modelfile"]


async def test_a_base_and_an_adapter_in_one_files(client: Client) -> None:
    """The architecture is named twice in show, tags and ps, the size is both layers'; an adapter alone can nothing."""
    base, adapter = await _upload(client, "tiny-a.gguf"), await _upload(client, "babs-lora.gguf")
    await client.lines("/api/create", model="both", files={"tiny-a.gguf": base, "babs-lora.gguf": adapter})
    await client.lines("/api/create", model="plain", files={"tiny-a.gguf": base})
    await client.lines("/api/create", model="above", **{"from": "plain", "adapters": {"b.gguf": adapter}})
    await client.lines("/api/create", model="alone", files={"babs-lora.gguf": adapter})
    await client.lines("/api/generate", model="both", prompt="hi", options={"num_predict": 1})
    rows = {row["name"]: row for row in (await client.http.get("/api/tags")).json()["models"]}
    [running] = (await client.http.get("/api/ps")).json()["models"]
    shown = (await client.post("/api/show", model="both")).json()
    twice = [rows["both:latest"], running, shown]
    assert [each["details"]["families"] for each in twice] == [["llama", "llama"]] * 3
    assert [rows[f"{name}:latest"]["details"]["families"] for name in ("plain", "above")] == [["llama"]] * 2
    assert rows["both:latest"]["size"] > rows["plain:latest"]["size"] + 7_000
    assert "capabilities" not in rows["alone:latest"]


async def test_a_model_given_as_an_adapter_is_the_model_that_runs(client: Client) -> None:
    """It is re-written as any upload, becomes a second layer of weights, and is named as the base."""
    base, other = await _upload(client, "tiny-a.gguf"), await _upload(client, "tiny-embed.gguf")
    await client.lines("/api/create", model="base", files={"a.gguf": base})
    made = await client.lines("/api/create", model="odd", **{"from": "base", "adapters": {"x.gguf": other}})
    assert [line["status"] for line in made[:2]] == ["parsing GGUF", "verifying conversion"]
    shown = (await client.post("/api/show", model="odd")).json()
    assert shown["capabilities"] == ["embedding"]
    assert "FROM /emulator/models/blobs/sha256-a94eda4d" in shown["modelfile"]


async def test_a_broken_peft_configuration_is_told_in_gos_words(client: Client) -> None:
    """An alpha that is no whole number, and a configuration that is no object."""
    weights = await _upload(client, "peft/robin/adapter_model.safetensors")
    for config, said in (
        (b'{"lora_alpha": 16.0}', "number 16.0 into Go struct field AdapterParameters.lora_alpha of type uint32"),
        (b"[]", "array into Go value of type convert.AdapterParameters"),
    ):
        digest = "sha256:" + hashlib.sha256(config).hexdigest()
        await client.http.post(f"/api/blobs/{digest}", content=config)
        adapters = {"adapter_model.safetensors": weights, "adapter_config.json": digest}
        _, error, status, _ = await _refused(client, **{"from": CHAT_MODEL, "adapters": adapters})
        assert (status, error) == (200, f"json: cannot unmarshal {said}")


async def test_parameters_are_merged_and_layers_inherited(client: Client) -> None:
    """System and template stay unless replaced, parameters go key by key, licences add up."""
    await client.lines(
        "/api/create",
        model="one",
        **{"from": CHAT_MODEL, "system": "A", "parameters": {"seed": 1, "top_k": 5}, "license": "MIT"},
    )
    await client.lines(
        "/api/create", model="two", **{"from": "one", "parameters": {"seed": 2, "mirostat": None}, "license": ["BSD"]}
    )
    shown = (await client.post("/api/show", model="two")).json()
    assert shown["system"] == "A"
    assert shown["license"] == "MIT\nBSD"
    assert shown["details"]["parent_model"] == "one:latest"
    for line in (
        "seed                           2",
        "top_k                          5",
        "mirostat                       <nil>",
    ):
        assert line in shown["parameters"]


async def test_messages_keep_what_the_daemon_keeps(client: Client) -> None:
    """Roles in small letters, calls of tools in Go's order; what is empty is left out."""
    call = {"function": {"arguments": {"b": 1, "a": 2}, "name": "f"}}
    messages = [{"content": "x", "role": "USER"}, {"role": "assistant", "tool_calls": [call], "thinking": ""}]
    await client.lines("/api/create", model="shots", **{"from": CHAT_MODEL, "messages": messages})
    shown = (await client.post("/api/show", model="shots")).json()
    assert shown["messages"] == [{"role": "user", "content": "x"}, {"role": "assistant", "content": ""}]
    manifest = client.emulator.daemon.all()[0].manifest
    layer = next(layer for layer in manifest.layers if layer.media.endswith("messages"))
    assert b'"tool_calls":[{"function":{"name":"f","arguments":{"b":1,"a":2}}}]' in client.emulator.store.content(
        layer.digest
    )


async def test_renderer_parser_and_requirement_are_kept(client: Client) -> None:
    """In the configuration of the model and of what is made from it, unless that says otherwise."""
    await client.lines(
        "/api/create", model="one", **{"from": CHAT_MODEL, "renderer": "r", "parser": "p", "requires": "0.1.0"}
    )
    await client.lines("/api/create", model="two", **{"from": "one", "parser": "q"})
    shown = (await client.post("/api/show", model="two")).json()
    assert shown["requires"] == "0.1.0"
    assert "\nRENDERER r\nPARSER q\n" in shown["modelfile"]


async def test_a_model_of_another_machine_has_no_weights(client: Client) -> None:
    """Its details are refused while the cloud is off, and tags name where it is."""
    made = await client.lines("/api/create", model="far", **{"from": "gpt-oss:20b", "remote_host": "example.com"})
    assert made[-1] == {"status": "success"}
    row = (await client.http.get("/api/tags")).json()["models"][0]
    assert (row["remote_model"], row["remote_host"]) == ("gpt-oss:20b", "http://example.com:11434")
    for path in ("/api/show", "/api/chat", "/api/generate"):
        assert (await client.post(path, model="far")).status_code == 403


async def test_models_made_at_once_do_not_take_each_others_layers(client: Client) -> None:
    """A layer that one replaces while another is about to refer to it is there in the end."""
    old, new = {"parameters": {"seed": 1}}, {"parameters": {"seed": 2}}
    for _ in range(5):
        await client.lines("/api/create", model="a", **{"from": CHAT_MODEL, **old})
        await asyncio.gather(
            client.lines("/api/create", model="a", **{"from": CHAT_MODEL, **new}),
            *(client.lines("/api/create", model=f"b{n}", **{"from": CHAT_MODEL, **old}) for n in range(4)),
        )
        for name in ("a", "b0", "b3"):
            assert (await client.post("/api/show", model=name)).status_code == 200


async def test_two_stores_are_equal(start: Start) -> None:
    """The same uploads and creates give the same digests, whatever the time."""
    digests = []
    for _ in range(2):
        async with start(models=(EMBEDDER,)) as client:
            base = await _upload(client, "tiny-b.gguf")
            await client.lines("/api/create", model="b", files={"b.gguf": base}, system="x")
            digests.append({model.name.display: model.manifest.digest for model in client.emulator.daemon.all()})
    assert digests[0] == digests[1]
