"""MCP at the HTTP door: the SDK's client in both eras, the rules of the wire, and hostile messages."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.http.conftest import OpenDoor
from tests.waiting import HANG

from batos.client.keys import Keyring
from batos.server.mcp.mcp_tools import TOOLS

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
ABLE = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}


@pytest.fixture(scope="module")
def guest(door: OpenDoor) -> str:
    return Keyring(door.home).new("host", "tcp://127.0.0.1:1").http_key


def post(door: OpenDoor, message: Any, key: str | None = None, **headers: str) -> Any:
    """A message that is posted; a modern one with the headers that its body asks for."""
    shown = {"content-type": "application/json"}
    params = message.get("params") if isinstance(message, dict) else None
    if isinstance(params, dict) and "_meta" in params:
        named = params.get("name") or params.get("uri")
        given = {"mcp-protocol-version": "2026-07-28", "mcp-method": message.get("method"), "mcp-name": named}
        shown |= {key: each for key, each in given.items() if isinstance(each, str) and each.isascii()}
    with door.client(key) as client:
        return client.post("/mcp", content=json.dumps(message), headers={**shown, **headers})


def call(door: OpenDoor, tool: str, arguments: dict[str, Any], key: str | None = None, **params: Any) -> dict[str, Any]:
    """The result of a tool, by the modern era."""
    meant = {"_meta": ABLE, "name": tool, "arguments": arguments, **params}
    reply = post(door, {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": meant}, key)
    told = [json.loads(each.partition("data: ")[2]) for each in reply.text.split("\n\n") if "data: " in each]
    assert told[-1]["id"] == 7
    result: dict[str, Any] = told[-1]["result"]
    return result


# -- the SDK's client


@asynccontextmanager
async def sdk_client(door: OpenDoor, key: str, mode: str, **more: Any) -> AsyncIterator[Any]:
    """The SDK's client of a door."""
    mcp = pytest.importorskip("mcp", reason="needs mcp: pip install batos[dev]")
    http = importlib.import_module("httpx2").AsyncClient(headers={"authorization": f"Bearer {key}"}, timeout=HANG)
    transport = importlib.import_module("mcp.client.streamable_http")
    line = transport.streamable_http_client(f"{door.url}/mcp", http_client=http)
    async with http, mcp.Client(line, mode=mode, **more) as found:
        yield found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_mcp_the_sdk_asks_reads_and_lists(door: OpenDoor, guest: str, mode: str) -> None:
    """Tools with progress, resources, templates and prompts, in both eras."""

    async def talk() -> None:
        heard: list[str] = []

        async def on_progress(_done: float, _total: float | None, line: str | None) -> None:
            heard.append(line or "")

        async with sdk_client(door, guest, mode) as client:
            assert [each.name for each in (await client.list_tools()).tools] == [*TOOLS]
            asked = {"question": "How do tides work?", "effort": "reflex"}
            answer = await client.call_tool("ask", asked, progress_callback=on_progress)
            assert not answer.is_error
            mission = answer.structured_content["mission"]
            assert answer.structured_content["answer"] in answer.content[0].text
            again = await client.call_tool("wait", {"mission": mission})
            assert again.structured_content == answer.structured_content
            assert not (await client.call_tool("remember", {"text": "Maro winds the lamp.", "title": "Lamp"})).is_error
            assert "Maro" in (await client.call_tool("recall", {"query": "lamp"})).content[0].text
            listed = (await client.list_resources()).resources
            document = next(each.uri for each in listed if each.uri.startswith("batos://documents/"))
            assert (await client.read_resource(document)).contents[0].text
            assert mission in (await client.read_resource(f"batos://missions/{mission}")).contents[0].text
            assert (await client.list_resource_templates()).resource_templates
            prompts = (await client.list_prompts()).prompts
            assert {"robin", "brick.absurd_synthesis_protocol"} <= {each.name for each in prompts}
            prompt = await client.get_prompt("robin", {"text": "Why?"})
            assert "Why?" in prompt.messages[0].content.text

    asyncio.run(talk())


@pytest.mark.parametrize(("says", "goes"), [("accept", True), ("decline", False)])
def test_mcp_a_person_says_yes_before_a_deed(door: OpenDoor, guest: str, says: Any, goes: bool) -> None:
    """The SDK's client asks the person at it, shows what would go, and only a yes does the deed."""

    async def talk() -> tuple[Any, str]:
        seen: list[str] = []

        async def elicit(_context: Any, params: Any) -> Any:
            seen.append(params.message)
            return importlib.import_module("mcp_types").ElicitResult(
                action=says, content={"yes": True} if goes else None
            )

        async with sdk_client(door, guest, "auto", elicitation_callback=elicit) as client:
            asked = await client.call_tool("ask", {"question": "Which lamp is lit?", "effort": "reflex"})
            mission = asked.structured_content["mission"]
            undone = await client.call_tool("undo", {"mission": mission})
            assert len(seen) == 1
            assert mission in seen[0]
            return undone, mission

    undone, mission = asyncio.run(talk())
    assert undone.is_error is not goes
    assert (door.mission(mission)["status"] == "undone") is goes


SCENARIOS = ("server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection")


@pytest.mark.skipif("BATOS_MCP_SUITE" not in os.environ, reason="BATOS_MCP_SUITE=1 fetches MCP's own suite by npx")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_conformance_by_the_suite_of_the_protocol(door: OpenDoor, guest: str, scenario: str) -> None:
    """The scenarios of the official suite that need no fixtures of its own."""
    suite = ["npx", "-y", "-p", "node@22", "-p", "@modelcontextprotocol/conformance@0.1.16", "conformance", "server"]
    address = f"{door.url}/key/{guest}/mcp"
    told = subprocess.run(
        [*suite, "--url", address, "--scenario", scenario], capture_output=True, text=True, check=False
    )
    assert "0 failed" in told.stdout, told.stdout + told.stderr


# -- the wire


def test_mcp_a_modern_request_is_held_against_its_headers(door: OpenDoor) -> None:
    """A version, method or name that is another in the header is refused, and what is not spoken is named."""
    good = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
    assert post(door, good).json()["result"]["resultType"] == "complete"
    for header in ("mcp-protocol-version", "mcp-method"):
        reply = post(door, good, **{header: "other"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32020)
    named = {"_meta": META, "uri": "batos://missions"}
    reply = post(door, {**good, "method": "resources/read", "params": named}, **{"mcp-name": "other"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32020)
    old = {**good, "params": {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}}}
    reply = post(door, old)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32022)
    assert reply.json()["error"]["data"]["supported"] == ["2026-07-28"]
    found = post(door, {**good, "method": "server/discover"}).json()["result"]
    assert found["supportedVersions"] == ["2026-07-28"]
    assert (found["ttlMs"], found["cacheScope"]) == (60_000, "private")


def test_mcp_the_era_before_begins_with_a_handshake(door: OpenDoor) -> None:
    """A known version is taken, another answered with ours; no session; notifications have no reply."""
    hello = {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
    reply = post(door, hello)
    assert reply.json()["result"]["protocolVersion"] == "2025-06-18"
    assert "mcp-session-id" not in reply.headers
    hello["params"] = {"protocolVersion": "1999-01-01"}
    assert post(door, hello).json()["result"]["protocolVersion"] == "2025-11-25"
    noted = post(door, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (noted.status_code, noted.content) == (202, b"")
    assert post(door, {"jsonrpc": "2.0", "id": 2, "method": "ping"}).json()["result"] == {}
    reply = post(door, {"jsonrpc": "2.0", "id": 2, "method": "sampling/createMessage"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, -32601)
    with door.client() as client:
        assert client.get("/mcp").status_code == client.delete("/mcp").status_code == 405
        assert client.post("/mcp", content="{}", headers={"content-type": "text/plain"}).status_code == 415
    with door.client("wrong") as client:
        assert client.post("/mcp", json=hello).status_code == 401


def test_mcp_a_yes_is_for_one_call_and_once(door: OpenDoor, guest: str) -> None:
    """The mark of a question is of no use for other arguments, for another client, or a second time."""
    mission = call(door, "ask", {"question": "What is a reef?", "effort": "reflex"}, guest)["structuredContent"][
        "mission"
    ]
    asked = call(door, "undo", {"mission": mission}, guest)
    assert asked["resultType"] == "input_required"
    yes = {
        "requestState": asked["requestState"],
        "inputResponses": {"confirm": {"action": "accept", "content": {"yes": True}}},
    }
    assert call(door, "undo", {"mission": mission}, **yes)["isError"]
    assert call(door, "undo", {"mission": "last"}, guest, **yes)["isError"]
    assert door.mission(mission)["status"] == "done"
    assert not call(door, "undo", {"mission": mission}, guest, **yes)["isError"]
    assert door.mission(mission)["status"] == "undone"
    assert call(door, "undo", {"mission": mission}, guest, **yes)["isError"]


def test_mcp_a_client_that_asks_nobody_is_told_the_command(door: OpenDoor, guest: str) -> None:
    """No deed without a person: neither of the modern era without elicitation, nor of the one before."""
    legacy = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": "undo", "arguments": {"mission": "last"}},
    }
    call(door, "ask", {"question": "What is a tide pool?", "effort": "reflex"}, guest)
    assert "batos undo last" in post(door, legacy, guest).text


def test_mcp_what_a_host_sends_is_foreign_and_what_a_person_types_is_not(door: OpenDoor, guest: str) -> None:
    """By the key: also of a system text. A guest sees its own alone."""
    person = Keyring(door.home).new("phone", "tcp://127.0.0.1:1", person=True).http_key
    for key, trust in ((guest, "external"), (person, "user")):
        call(door, "remember", {"text": f"The cat of {trust} is called Miso."}, key)
        found = call(door, "recall", {"query": f"cat of {trust}"}, key)["structuredContent"]["recalled"]
        assert [each["trust"] for each in found if trust in each["text"]] == [trust]
        asked = call(door, "ask", {"question": "Hello? My dog is called Rex.", "effort": "reflex"}, key)
        assert door.mission(asked["structuredContent"]["mission"])["trust"]["brief"] == trust
    assert (
        "Miso"
        not in call(door, "recall", {"query": "cat Miso"}, Keyring(door.home).new("x", "tcp://h:1").http_key)[
            "content"
        ][0]["text"]
    )


def test_mcp_a_long_question_is_waited_for_elsewhere(door: OpenDoor, guest: str) -> None:
    """`ask` hands back the mission when its time is over, and `wait` goes on; bad arguments are told as results."""
    asked = call(door, "ask", {"question": "What is an atoll?", "effort": "reflex", "wait_seconds": 0}, guest)
    mission = asked["structuredContent"]["mission"]
    assert call(door, "wait", {"mission": mission}, guest)["structuredContent"]["status"] == "done"
    assert call(door, "ask", {"question": 7}, guest)["isError"]
    assert call(door, "ask", {"question": "Why?", "model": "x"}, guest)["isError"]
    assert call(door, "forget", {"documents": []}, guest)["isError"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=8), each, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["tools/call", "resources/read", "prompts/get", "tools/list", "initialize", "server/discover"])
MESSAGES = st.fixed_dictionaries(
    {}, optional={
        "jsonrpc": st.just("2.0") | JSON, "id": JSON | st.integers(), "method": NAMES | JSON,
        "params": JSON | st.fixed_dictionaries({}, optional={
            "_meta": st.sampled_from([META, ABLE]) | JSON, "name": st.sampled_from([*TOOLS]) | JSON,
            "arguments": JSON, "uri": st.sampled_from(["batos://missions", "batos://missions/x", "batos://"]) | JSON,
            "requestState": JSON, "inputResponses": JSON,
        }),
    },
)  # fmt: skip


def test_mcp_whatever_is_sent_is_answered(door: OpenDoor, guest: str) -> None:
    """With a reply of JSON-RPC, and none of them is a fault of ours."""

    @settings(max_examples=80)
    @given(message=MESSAGES | JSON)
    def check(message: Any) -> None:
        reply = post(door, message, guest)
        assert reply.status_code in (200, 202, 400, 404)
        assert "-32603" not in reply.text

    check()
