"""What every voice keeps, invented or real: one suite, inherited, over the wire of a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.waiting import HANG

WINDOW = 1024
TEXT = "The pier of Tarn Quay was built in 1911. Maud Okafor closed the breach in it with sunken barges."
QUESTION = f"Text: {TEXT}\n\nQuestion: Who closed the breach in the pier?"
#: A value of a schema that leaves no room for other words.
COLOURS = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
}


@contextmanager
def emulator_process(*flags: str) -> Iterator[str]:
    """The address of an emulator in a process of its own, which ends as a signal tells it."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OLLAMA_")}
    command = [sys.executable, "-m", "ollama_emulator", "--port", "0", "--control", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://\S+", line)
            assert found is not None, f"it said {line!r}, and ended with {None if line else process.wait(HANG)}"
            yield found[0]
        finally:
            process.terminate()
            assert process.wait(HANG) == 0


@dataclass(frozen=True, slots=True)
class Door:
    """A daemon with a voice, and the model there that answers."""

    http: httpx.AsyncClient
    model: str

    async def chat(self, options: Mapping[str, Any] | None = None, text: str = QUESTION, **fields: Any) -> Any:
        """A whole chat reply, which has to be 200."""
        reply = await self.http.post("/api/chat", json=self.body(options or {}, text, stream=False, **fields))
        assert reply.status_code == 200, reply.text
        return reply.json()

    def body(self, options: Mapping[str, Any], text: str = QUESTION, **fields: Any) -> dict[str, Any]:
        """The body of a chat, at temperature 0 and seed 1."""
        given = {"temperature": 0, "seed": 1, "num_ctx": WINDOW, "num_predict": 12, **options}
        return {"model": self.model, "messages": [{"role": "user", "content": text}], "options": given, **fields}


@pytest.fixture
async def door(url: str, model: str) -> AsyncIterator[Door]:
    """The daemon of the suite's class."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=HANG, verify=False) as http:
        yield Door(http, model)


class VoiceConformance:
    """The facts of a voice. A subclass has the fixtures `url` and `model`."""

    async def test_an_answer_has_words_and_counts(self, door: Door) -> None:
        """A whole reply has a text, a reason, and the counts and times of prompt and answer."""
        reply = await door.chat()
        assert (reply["done"], reply["message"]["role"]) == (True, "assistant")
        assert reply["message"]["content"].strip()
        assert reply["done_reason"] in ("stop", "length")
        assert len(QUESTION) / 8 < reply["prompt_eval_count"] < len(QUESTION)
        assert 0 < reply["eval_count"] <= 12
        assert reply["prompt_eval_duration"] > 0 < reply["eval_duration"]

    async def test_a_stream_is_the_same_answer_in_lines(self, door: Door) -> None:
        """The pieces joined are the whole answer; the last line alone is done and has the counts."""
        whole = await door.chat()
        async with door.http.stream("POST", "/api/chat", json=door.body({})) as reply:
            lines = [json.loads(line) async for line in reply.aiter_lines()]
        assert "".join(line["message"]["content"] for line in lines) == whole["message"]["content"]
        assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
        assert lines[-1]["eval_count"] == whole["eval_count"]
        assert lines[-1]["prompt_eval_count"] == whole["prompt_eval_count"]

    async def test_a_limit_ends_an_answer(self, door: Door) -> None:
        """With `num_predict` an answer has no more tokens, and says that it was cut."""
        reply = await door.chat({"num_predict": 3})
        assert (reply["eval_count"], reply["done_reason"]) == (3, "length")

    async def test_a_stop_sequence_ends_an_answer(self, door: Door) -> None:
        """The text ends before the sequence, which is not sent."""
        text = (await door.chat())["message"]["content"]
        stop = text.strip()[3:7]
        cut = await door.chat({"stop": [stop]})
        assert cut["message"]["content"] == text[: text.index(stop)]
        assert cut["done_reason"] == "stop"

    async def test_a_schema_is_kept(self, door: Door) -> None:
        """An answer to a schema is a value of it; one to "json" is an object."""
        for _ in range(2):
            said = await door.chat({"num_predict": 60}, format=COLOURS)
            assert json.loads(said["message"]["content"])["colour"] in ("red", "blue")
        loose = await door.chat({"num_predict": 200}, "Name a colour as a JSON object.", format="json")
        assert loose["done_reason"] == "length" or isinstance(json.loads(loose["message"]["content"]), dict)

    async def test_a_generated_answer_is_one_to_its_raw_prompt(self, door: Door) -> None:
        """A raw prompt is read as it is, without a template: a few words are a few tokens."""
        body = {"model": door.model, "prompt": "One, two, three,", "raw": True, "stream": False}
        options = {"num_ctx": WINDOW, "num_predict": 4, "temperature": 0}
        reply = (await door.http.post("/api/generate", json={**body, "options": options})).json()
        assert reply["response"]
        assert reply["prompt_eval_count"] <= 8

    async def test_a_prompt_that_does_not_fit_is_refused(self, door: Door) -> None:
        """With `truncate` off the refusal has the counts; with it on the middle is left out, and the answer comes."""
        long = " ".join(f"word{number}" for number in range(WINDOW))
        body = door.body({}, long, stream=False)
        refused = await door.http.post("/api/chat", json={**body, "truncate": False})
        assert refused.status_code == 400
        told = json.loads(refused.json()["error"])["error"]
        assert told["type"] == "exceed_context_size_error"
        assert told["n_prompt_tokens"] > told["n_ctx"] == WINDOW
        assert (await door.chat(text=long))["prompt_eval_count"] < WINDOW

    async def test_a_wrong_option_is_refused(self, door: Door) -> None:
        """An option of another type is refused by its name."""
        refused = await door.http.post("/api/chat", json=door.body({"top_k": "many"}, stream=False))
        assert refused.status_code == 500
        assert "top_k" in refused.json()["error"]

    async def test_answers_run_beside_each_other(self, door: Door) -> None:
        """Several requests at once are all answered, each with its own limit."""
        replies = await asyncio.gather(*(door.chat({"num_predict": many}) for many in (2, 3, 4)))
        assert [reply["eval_count"] for reply in replies] == [2, 3, 4]

    async def test_a_client_that_leaves_frees_its_slot(self, door: Door) -> None:
        """An answer without end stops when its client is gone, and the next one is given."""
        endless = door.body({"num_predict": -1, "temperature": 1.5, "stop": []}, "Count from one to a million.")
        for _ in range(3):
            async with door.http.stream("POST", "/api/chat", json=endless) as reply:
                async for _line in reply.aiter_lines():
                    break
        assert (await door.chat({"num_predict": 2}))["eval_count"] == 2

    async def test_an_unload_frees_the_model(self, door: Door) -> None:
        """A keep-alive of 0 ends the runner; the next request loads it again."""
        await door.chat({"num_predict": 2}, keep_alive=0)
        rows: list[Any] = [None]

        async def listed() -> None:
            rows[:] = (await door.http.get("/api/ps")).json()["models"]

        await listed()
        async with asyncio.timeout(HANG):
            while any(row["name"] == door.model for row in rows):
                await asyncio.sleep(0.05)  # any pace: it is looked at again
                await listed()
        await door.chat({"num_predict": 2})
        await listed()
        assert any(row["name"] == door.model for row in rows)

    async def test_a_model_that_writes_gives_no_vectors(self, door: Door) -> None:
        """Its refusal is the daemon's."""
        refused = await door.http.post("/api/embed", json={"model": door.model, "input": "a"})
        assert refused.status_code in (500, 501)
        assert "embed" in refused.json()["error"]
