"""Every exchange recorded with a real daemon is met by the bridge: with the value it holds, or the error it is."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.inference.conftest import PATIENT, MakeBridge
from tests.inference.raw_server import CLOSE, HOLD, Script, Step, serving
from tests.inference.recorded_calls import (
    FRAMINGS,
    CallOutcome,
    Exchange,
    Framing,
    body_of,
    every,
    framed,
    last_of,
    meet,
    scripts,
)
from tests.inference.rules import RULES, rule_for
from tests.waiting import HANG

from batos.inference.ollama.bridge import Bridge, Deadlines
from batos.inference.ollama.chat import checked_model
from batos.inference.ollama.client import clean
from batos.protocol.errors import BatosError, ContextOverflow, OllamaError, RequestRejected, UsageError

EXCHANGES = every()
#: For servers that do not answer to the end; one that does, and is late, makes an error of ours too.
SHORT = Deadlines(connect=HANG, load=0.05, first_token=0.05, between_tokens=0.05, reply=0.05, progress=0.05, drain=0.05)


def test_every_exchange_has_a_rule_and_every_rule_an_exchange() -> None:
    """No recorded answer is left out of the table, and nothing stands in it that was not recorded."""
    held = Counter(rule_for(exchange.said) for exchange in EXCHANGES)
    assert sum(held.values()) == len(EXCHANGES) == 495
    assert set(held) == set(RULES)


def test_what_the_bridge_would_not_ask() -> None:
    """Names without a model, and those that the daemon takes for another source, are refused before they are sent."""
    given: list[Any] = [exchange.asked.get("model") for exchange in EXCHANGES]
    refused = set()
    for name in (each for each in given if isinstance(each, str)):
        try:
            checked_model(name)
        except UsageError as error:
            assert error.field == "model"
            refused.add(name)
    assert refused == {"", "x:cloud", "x:local"}


def _upload(folder: Path) -> Path:
    file = folder / "upload"
    file.write_bytes(b"some bytes")
    return file


def _think(exchange: Exchange, met: CallOutcome, _: Path) -> None:
    parts = [json.loads(line) for line in body_of(exchange).splitlines()]
    last = parts[-1]
    text = clean("".join(part["message"].get("content", "") for part in parts))
    assert (met.value.text, met.heard) == (text, text)
    assert met.value.thinking == "".join(part["message"].get("thinking", "") for part in parts)
    assert met.value.done_reason == last["done_reason"]
    assert met.value.prompt_tokens == last.get("prompt_eval_count", 0)
    assert met.value.answer_tokens == last.get("eval_count", 0)
    assert met.value.load_seconds == last.get("load_duration", 0) / 1e9
    assert met.value.total_seconds == last.get("total_duration", 0) / 1e9


def _embed(exchange: Exchange, met: CallOutcome, _: Path) -> None:
    said = last_of(exchange)
    assert met.value.vectors == said["embeddings"]
    assert met.value.prompt_tokens == said["prompt_eval_count"]


def _rows(exchange: Exchange, met: CallOutcome, _: Path) -> None:
    said = last_of(exchange)["models"]
    assert [(row.name, row.digest, row.size) for row in met.value] == [
        (row["name"], row["digest"], row["size"]) for row in said
    ]
    if exchange.kind == "ps":
        assert [(row.size_vram, row.context_length) for row in met.value] == [
            (row["size_vram"], row["context_length"]) for row in said
        ]
    else:
        details = [row["details"] for row in said]
        assert [(row.family, row.quantization, row.parent) for row in met.value] == [
            (each["family"], each["quantization_level"], each["parent_model"]) for each in details
        ]


def _show(exchange: Exchange, met: CallOutcome, _: Path) -> None:
    said, card = last_of(exchange), met.value
    assert card.capabilities == tuple(said["capabilities"])
    assert set(card.info) == set(said["model_info"])
    assert (card.template, card.parameters) == (said.get("template", ""), said.get("parameters", ""))
    assert re.fullmatch(r"<models>/blobs/sha256-[0-9a-f]{64}", card.blob)
    assert len(card.adapters) == said["modelfile"].count("\nADAPTER ")
    architecture = said["model_info"]["general.architecture"]
    assert card.trained_window == said["model_info"][f"{architecture}.context_length"]


def _steps(exchange: Exchange, met: CallOutcome, _: Path) -> None:
    said = [json.loads(line) for line in body_of(exchange).splitlines()]
    assert [(step.status, step.digest, step.total, step.completed) for step in met.value] == [
        (each["status"], each.get("digest"), each.get("total"), each.get("completed")) for each in said
    ]
    assert met.value[-1].status == "success"


def _is(value: object) -> Callable[[Exchange, CallOutcome, Path], None]:
    def check(_: Exchange, met: CallOutcome, __: Path) -> None:
        assert met.value is value

    return check


def _uploaded(_: Exchange, met: CallOutcome, file: Path) -> None:
    assert met.value == f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"


def _version(exchange: Exchange, met: CallOutcome, _: Path) -> None:
    assert met.value == last_of(exchange)["version"]


def _had(exchange: Exchange, met: CallOutcome, _: Path) -> None:
    assert met.value is (exchange.row["response"]["status"] == 200)


VALUES: dict[str, Callable[[Exchange, CallOutcome, Path], None]] = {
    "think": _think,
    "embed": _embed,
    "list": _rows,
    "ps": _rows,
    "show": _show,
    "pull": _steps,
    "create": _steps,
    "delete": _is(None),
    "load": _is(None),
    "unload": _is(True),
    "has": _had,
    "upload": _uploaded,
    "version": _version,
}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("kind", VALUES)
async def test_exchanges(
    bridge_to: MakeBridge, tmp_path: Path, subtests: pytest.Subtests, kind: str, framing: Framing
) -> None:
    """However its bytes are framed and cut, each answer is its value, or its error with advice, retry and field."""
    file = _upload(tmp_path)
    async with serving() as server:
        heard, unheard = (bridge_to(server.url, deadlines=each) for each in (replace(PATIENT, drain=0.05), SHORT))
        for exchange in (each for each in EXCHANGES if each.kind == kind):
            server.play(*scripts(exchange, framing))
            bridge = unheard if framed(exchange, framing) is HOLD else heard
            with subtests.test(f"{exchange.file}-{exchange.number}"):
                await _meets_its_rule(exchange, bridge, file)


async def _meets_its_rule(exchange: Exchange, bridge: Bridge, file: Path) -> None:
    rule = rule_for(exchange.said)
    if rule.kind is None:
        met = await meet(exchange, bridge, file)
        await asyncio.to_thread(VALUES[exchange.kind], exchange, met, file)
        return
    with pytest.raises(BatosError) as failed:
        await meet(exchange, bridge, file)
    error = failed.value
    assert type(error) is rule.kind
    assert error.message
    assert (error.retry, error.as_dict()["retry"]) == (rule.retry, rule.retry)
    assert re.search(rule.remedy, error.remedy), error.remedy
    if rule.field is not None and rule.field.endswith("."):
        assert (error.field or "").startswith(rule.field)
    else:
        assert error.field == rule.field
    if isinstance(error, ContextOverflow) and "n_ctx" in exchange.said:
        counts = json.loads(json.loads(exchange.row["response"]["text"])["error"])["error"]
        assert (error.prompt_tokens, error.window) == (counts["n_prompt_tokens"], counts["n_ctx"])
    if isinstance(error, RequestRejected):
        streamed = exchange.lines is not None
        assert error.status == (None if streamed else exchange.row["response"]["status"])


#: One of each kind of answer: what is drawn from when bytes are damaged.
KINDS = list({(rule_for(each.said), each.kind): each for each in EXCHANGES}.values())


def damaged(data: st.DataObject, script: Script) -> Script:
    """A script whose bytes come in any segments, end anywhere, or have one byte that is another."""
    steps = [script] if not isinstance(script, list | tuple) else script
    whole = b"".join(step for step in steps if isinstance(step, bytes))
    harm = data.draw(st.sampled_from(["cut", "another byte", "a byte more", "none"]))
    at = data.draw(st.integers(0, max(0, len(whole) - 1)))
    if harm == "cut":
        whole = whole[:at]
    elif harm != "none":
        kept = at + 1 if harm == "another byte" else at
        whole = whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[kept:]
    ends = sorted({0, len(whole), *data.draw(st.lists(st.integers(0, len(whole)), max_size=8))})
    parts: list[Step] = []
    for start, end in pairwise(ends):
        parts += [whole[start:end], 0.0]
    return [*parts, data.draw(st.sampled_from([CLOSE, HOLD]))]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_a_value_or_one_of_our_errors(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Cut anywhere, one byte changed or added, in any segments, closed or left open: a value or an OllamaError."""
    exchange = data.draw(st.sampled_from(KINDS), label="exchange")
    said = scripts(exchange, "recorded")
    place = data.draw(st.integers(0, len(said) - 1))
    said[place] = damaged(data, said[place])
    asyncio.run(_value_or_error(exchange, said, _upload(tmp_path_factory.mktemp("files"))))


async def _value_or_error(exchange: Exchange, said: list[Any], file: Path) -> None:
    async with serving(*said) as server, Bridge(server.url, deadlines=SHORT) as bridge:
        try:
            async with asyncio.timeout(HANG):
                await meet(exchange, bridge, file)
        except OllamaError as error:
            assert error.message
            assert error.remedy
