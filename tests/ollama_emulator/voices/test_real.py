"""The real voice: what every voice keeps, and what only a real model shows."""

from __future__ import annotations

import base64
import json
import math
import os
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from hashlib import sha256
from operator import mul
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.living import found_model
from tests.ollama_emulator.clients import Client
from tests.ollama_emulator.voices.conformance import QUESTION, WINDOW, Door, VoiceConformance, door, emulator_process
from tests.ollama_emulator.voices.real_models import MODELS, started_with

from batos.inference.ollama.bridge import Bridge
from ollama_emulator.prompting.prompts import CheckedRequest
from ollama_emulator.prompting.rendering import Read
from ollama_emulator.requests import Fields
from ollama_emulator.voices import gguf_model
from ollama_emulator.voices.real import close_objects, completion

__all__ = ["door"]
SMOLLM2 = "smollm2:135m"
#: Texts of all-MiniLM-L6-v2 by its reference, as half-precision numbers.
VECTORS = Path(__file__).with_name("minilm_vectors.json")


def _asked(options: dict[str, Any], form: Any = None, most: int | None = 5) -> dict[str, Any]:
    """The request to llama.cpp for these options and this format."""
    return completion(CheckedRequest(options, form, Read((1, 2), [], ""), most), (1, 2), Fields("ChatRequest", b"{}"))


def test_options_have_the_daemons_defaults() -> None:
    """What a request does not name is the daemon's default; no seed is a random one."""
    asked = _asked({})
    assert (asked["temperature"], asked["top_k"], asked["top_p"], asked["repeat_penalty"]) == (0.8, 40, 0.9, 1.0)
    assert (asked["prompt"], asked["n_predict"], asked["n_keep"]) == ([1, 2], 5, 4)
    assert "seed" not in asked
    assert "json_schema" not in asked


def test_options_reach_llama_cpp() -> None:
    """Each option goes under llama.cpp's name; an empty stop sequence, which would stop at once, does not."""
    asked = _asked({"temperature": 0.0, "min_p": 0.1, "seed": 7, "stop": ["", "."], "num_keep": 9}, most=None)
    assert (asked["temperature"], asked["min_p"], asked["seed"], asked["stop"]) == (0.0, 0.1, 7, ["."])
    assert (asked["n_predict"], asked["n_keep"]) == (-1, 9)


@pytest.mark.parametrize(("form", "schema"), [("json", {"type": "object"}), ({"type": "string"}, {"type": "string"})])
def test_a_format_is_a_schema(form: Any, schema: dict[str, Any]) -> None:
    """A schema goes as it is, and "json" as that of any object."""
    sent = _asked({}, form)["json_schema"]
    assert {**sent, "x-guidance": None} == {**schema, "x-guidance": None}


def test_objects_are_closed_as_in_the_daemons_grammar() -> None:
    """Wherever a schema names properties it allows no others, unless it says so; the schema given stays as it is."""
    leaf = {"type": "object", "properties": {"a": {}}}
    open_one = {**leaf, "additionalProperties": True}
    given = {"properties": {"one": {"items": leaf}, "two": {"anyOf": [leaf, open_one]}}, "$defs": {"three": leaf}}
    shut = {**leaf, "additionalProperties": False}
    assert close_objects(given) == {
        "properties": {"one": {"items": shut}, "two": {"anyOf": [shut, open_one]}},
        "$defs": {"three": shut},
        "additionalProperties": False,
    }
    assert leaf == {"type": "object", "properties": {"a": {}}}


@pytest.mark.real
class TestRealVoice(VoiceConformance):
    """SmolLM2-135M, in a process of its own, with two slots."""

    @pytest.fixture(scope="class")
    @classmethod
    def url(cls) -> Iterator[str]:
        """An emulator with the real model."""
        with emulator_process("--gguf", "smollm2", "--parallel", "2") as url:
            yield url

    @pytest.fixture
    def model(self) -> str:
        """The name in the file's header."""
        return SMOLLM2

    async def test_it_answers_from_the_text(self, door: Door) -> None:
        """It finds the name in the sentence: the words are a model's, by its own template."""
        said = await door.chat({"num_predict": 40})
        assert "Okafor" in said["message"]["content"]

    async def test_an_object_has_its_keys_and_no_others(self, door: Door) -> None:
        """Hot or cold, the answer to a schema has the keys that are named, and ends."""
        several = {"type": "array", "items": {"type": "integer"}, "maxItems": 2}
        texts = {"type": "string", "maxLength": 20}
        form = {"type": "object", "properties": {"a": texts, "b": several}, "required": ["a", "b"]}
        for heat in (0, 1.5):
            said = await door.chat({"num_predict": 80, "temperature": heat}, format=form)
            assert list(json.loads(said["message"]["content"])) == ["a", "b"]

    async def test_it_says_what_it_is(self, door: Door) -> None:
        """The state and the listing say that a real and very small model answers, and how large it is."""
        shown = (await door.http.post("/api/show", json={"model": door.model})).json()
        assert "a real and very small model of 134.52M parameters" in shown["license"]
        assert shown["details"]["parameter_size"] == "134.52M"
        state = (await door.http.get("/_emulator/state")).json()
        assert state["voice"].startswith(f"{SMOLLM2}: a real and very small model")

    async def test_models_that_are_pulled_are_the_real_one(self, door: Door) -> None:
        """A model of the registry that writes is the file under another name, and an embedder the one of the cache."""
        for name in ("llama3.2:3b", "all-minilm"):
            assert (await door.http.post("/api/pull", json={"model": name, "stream": False})).status_code == 200
        rows = {row["name"]: row for row in (await door.http.get("/api/tags")).json()["models"]}
        assert rows["llama3.2:3b"]["details"] == rows[SMOLLM2]["details"]
        assert rows["all-minilm:latest"]["details"]["parameter_size"] == "22.47M"
        vector = (await door.http.post("/api/embed", json={"model": "all-minilm", "input": "a"})).json()
        assert len(vector["embeddings"][0]) == 384

    async def test_a_seed_repeats_an_answer(self, door: Door) -> None:
        """With a temperature the same seed gives the same text, another seed in time another."""
        hot = {"temperature": 1.5, "num_predict": 8}
        texts = [(await door.chat({**hot, "seed": seed}))["message"]["content"] for seed in (1, 1, 2, 3, 4)]
        assert texts[0] == texts[1]
        assert len(set(texts)) > 1

    async def test_log_probabilities_are_the_models(self, door: Door) -> None:
        """Each token has its own, and the alternatives that were asked for, the likeliest first."""
        said = await door.chat({"num_predict": 4}, logprobs=True, top_logprobs=3)
        entries = said["logprobs"]
        assert "".join(entry["token"] for entry in entries) == said["message"]["content"]
        for entry in entries:
            assert entry["logprob"] <= 0
            others = [other["logprob"] for other in entry["top_logprobs"]]
            assert len(others) == 3
            assert others == sorted(others, reverse=True)

    @pytest.mark.parametrize(
        ("fields", "told"),
        [({"think": True}, "thinking"), ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools")],
    )
    async def test_what_it_cannot_do_is_refused(self, door: Door, fields: dict[str, Any], told: str) -> None:
        """Thinking apart and calls of tools are refused by their names."""
        refused = await door.http.post("/api/chat", json=door.body({}, stream=False, **fields))
        assert refused.status_code == 400
        assert told in refused.json()["error"]

    @pytest.mark.parametrize(
        ("fault", "said"), [({"do": "text", "text": "Forty-two."}, "Forty-two."), ({"do": "broken_json"}, "")]
    )
    async def test_the_words_of_a_fault_are_invented(self, door: Door, fault: dict[str, Any], said: str) -> None:
        """A fault that puts words into an answer puts them here, too; afterwards the model answers again."""
        await door.http.post("/_emulator/fault", json=fault)
        assert said in (await door.chat())["message"]["content"]
        assert (await door.chat({"num_predict": 2}))["eval_count"] == 2

    async def test_a_killed_runner_starts_anew(self, door: Door) -> None:
        """The stream ends with the daemon's error; the next request loads the weights again."""
        await door.http.post("/_emulator/fault", json={"do": "kill_answer", "after": 2})
        async with door.http.stream("POST", "/api/chat", json=door.body({})) as reply:
            lines = [json.loads(line) async for line in reply.aiter_lines()]
        assert ["error" in line for line in lines] == [False, False, True]
        assert (await door.chat({"num_predict": 2}))["eval_count"] == 2


@pytest.mark.real
class TestEmbedder:
    """An embedder's file gives its own vectors."""

    @pytest.fixture
    async def client(self) -> AsyncIterator[Client]:
        """An emulator with the recorded embedder."""
        async with started_with(MODELS / "tiny-embed.gguf") as client:
            yield client

    async def test_vectors_are_the_models(self, client: Client) -> None:
        """They have the file's width and length 1, are the same for the same text, and others for another."""
        name = (await client.http.get("/api/tags")).json()["models"][0]["name"]
        reply = await client.post("/api/embed", model=name, input=["m m", "m m", "b"])
        assert reply.status_code == 200, reply.text
        one, same, other = reply.json()["embeddings"]
        assert sum(value * value for value in one) == pytest.approx(1, abs=1e-3)
        assert one == pytest.approx(same, abs=1e-4)
        assert one != pytest.approx(other, abs=1e-4)

    async def test_no_vector_is_invented_beside_a_model_that_writes(self, tmp_path: Path) -> None:
        """Where the cache has no embedder, one of the registry is there and refuses, with what brings a real one."""
        environ = {"XDG_CACHE_HOME": str(tmp_path)}
        async with started_with(MODELS / "tiny-a.gguf", environ=environ) as client:
            await client.post("/api/pull", model="all-minilm", stream=False)
            for path, text in (("/api/embed", {"input": "a"}), ("/api/embeddings", {"prompt": "a"})):
                refused = await client.post(path, model="all-minilm", **text)
                assert refused.status_code >= 500
                assert "`make real` brings all-minilm" in refused.json()["error"]

    async def test_vectors_are_those_of_the_reference(self) -> None:
        """In every script, and beyond the window: a cosine of 0.999 at least to what the model's own tokenizer and a
        second implementation of the encoder (bench/minilm_side.py) give.
        """
        recorded = json.loads(VECTORS.read_text(encoding="utf-8"))
        async with started_with(gguf_model.find("all-minilm")) as client:
            reply = await client.post(
                "/api/embed", model="all-minilm", input=[each["text"] for each in recorded.values()]
            )
        assert reply.status_code == 200, reply.text
        found = {
            name: _cosine(vector, struct.unpack("<384e", base64.b64decode(each["vector"])))
            for (name, each), vector in zip(recorded.items(), reply.json()["embeddings"], strict=True)
        }
        assert {name: cosine for name, cosine in found.items() if cosine < 0.999} == {}

    async def test_an_embedder_that_is_pulled_is_the_real_one(self, client: Client) -> None:
        """Any embedder of the registry is the file under its name."""
        await client.post("/api/pull", model="all-minilm", stream=False)
        rows = (await client.http.get("/api/tags")).json()["models"]
        assert len({row["details"]["parameter_size"] for row in rows}) == 1


@pytest.mark.real
async def test_an_adapter_is_refused() -> None:
    """A model with an adapter on the real weights says that this voice applies none."""
    async with started_with(MODELS / "tiny-a.gguf") as client:
        data = (MODELS / "babs-lora.gguf").read_bytes()
        digest = await _upload(client.http, data)
        name = (await client.http.get("/api/tags")).json()["models"][0]["name"]
        made = await client.post(
            "/api/create", model="babs", adapters={"a.gguf": digest}, stream=False, **{"from": name}
        )
        assert made.status_code == 200, made.text
        refused = await client.post("/api/chat", model="babs", messages=[{"role": "user", "content": QUESTION}])
        assert refused.status_code == 500
        assert "no adapter" in refused.json()["error"]


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    products = (math.fsum(map(mul, *pair)) for pair in ((one, other), (one, one), (other, other)))
    dot, first, second = products
    return dot / math.sqrt(first * second)


async def _upload(http: httpx.AsyncClient, data: bytes) -> str:
    """Upload a file and return its digest."""
    digest = "sha256:" + sha256(data).hexdigest()
    assert (await http.post(f"/api/blobs/{digest}", content=data)).status_code == 201
    return digest


@pytest.mark.live
class TestLiveDaemon(VoiceConformance):
    """A person's own daemon keeps the same."""

    @pytest.fixture
    def url(self) -> str:
        """The daemon that BATOS_LIVE_OLLAMA names."""
        return os.environ["BATOS_LIVE_OLLAMA"]

    @pytest.fixture
    async def model(self, url: str) -> str:
        """The smallest model there that writes."""
        async with Bridge(url) as bridge:
            return await found_model(bridge, window=WINDOW)
