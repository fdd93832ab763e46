"""bench/wire.py around its comparer: recordings, groups, faults, registries, the table of what is left out."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import wire
from wire_compare import compare
from wire_daemon import Daemon
from wire_exchange import Exchange, Recording, Reply
from wire_ledger import Ledger
from wire_registry import Ports, infer, registries
from wire_replay import Outcome, Replay, fault_of, in_order, nth_of, span

CORPUS = Path(__file__).resolve().parents[1] / "data" / "ollama-wire"
MOST_LEFT_OUT = 0


def recording(name: str = "exchanges.jsonl") -> Recording:
    return Recording.read(CORPUS / name, CORPUS / "models")


def exchange(n: int = 1, text: str = "", status: int | None = 200, **given: Any) -> Exchange:
    """An exchange with `/api/tags`, or what is given."""
    request = given.pop("request", {"method": "GET", "path": "/api/tags"})
    return Exchange(n, "made", "", request, Reply(status, {}, text), **given)


def test_what_is_left_out_only_gets_less() -> None:
    """The table of exchanges that cannot be replayed is as long as it says here, which may only be lowered."""
    assert sum(map(len, wire.UNREPLAYABLE.values())) <= MOST_LEFT_OUT
    known = {recording(name).digest for name in ("exchanges.jsonl", "limits.jsonl")}
    assert wire.UNREPLAYABLE.keys() <= known  # by the digest of the file: no other recording loses an exchange to it


def test_recordings_are_read_whole() -> None:
    """Every exchange of the files is there; those of one group come together, all others alone."""
    found = recording()
    assert len(found.exchanges) == 477
    batches = list(found.batches())
    assert sum(map(len, batches)) == 477
    assert sorted(len(batch) for batch in batches if len(batch) > 1) == [2, 3, 4, 4, 6]


def test_a_recording_tells_how_fast_its_daemon_was() -> None:
    """Version, load time and speed come from the replies."""
    found = recording()
    assert found.version() == "0.33.0-rc2"
    assert 0.2 < found.load_seconds() < 0.3
    assert 1000 < found.tokens_per_second() < 10_000
    asked, said = {"method": "PUT", "path": "/api/version"}, replace(found.exchanges[0].reply, text="405 method")
    refused = replace(found.exchanges[0], request=asked, reply=said)
    assert replace(found, exchanges=(refused, *found.exchanges)).version() == "0.33.0-rc2"
    nothing = Recording((), "", CORPUS / "models")
    assert (nothing.version(), nothing.load_seconds(), nothing.tokens_per_second()) == (None, 0.25, 2000.0)


def _asking(request: str = "", response: str = "", **more: str) -> str:
    fields = {"request": f'{{"method": "GET", "path": "/"{request}}}', "response": f"{{{response}}}", **more}
    inner = ", ".join(f'"{name}": {value}' for name, value in fields.items())
    return f"{{{inner}}}"


@pytest.mark.parametrize(
    "line",
    [
        *("[]", "{", '{"n": 1}', '{"n": 1, "scenario": "x", "request": {}, "response": {}}', "[" * 100_000, "9" * 5000),
        '{"request": {"method": "GET", "path": "/\\u001b[31m"}}',
        '{"request": {"method": "GET\\r\\n", "path": "/"}}',
        _asking(', "headers": {"a": 1}'),
        _asking(', "headers": {"a": "b\\r\\nc"}'),
        _asking(', "blob": "../../etc/passwd"'),
        _asking(', "blob": "/etc/passwd"'),
        _asking(response='"status": "200"'),
        _asking(response='"status": 200, "lines": [5]'),
        _asking(response='"status": 200, "text": {}'),
        _asking(response='"status": 200, "line_ms": ["x"], "lines": ["{}"]'),
        _asking(response='"status": 200, "ms": NaN'),
        _asking(response='"status": 200, "ms": -1'),
        _asking(n="1e300"),
        _asking(group="[]"),
        _asking(cut_by_client_after_lines='"x"'),
    ],
)
def test_a_line_that_is_no_exchange_is_named(line: str, tmp_path: Path) -> None:
    """A file that is no recording is refused with the number of the line."""
    path = tmp_path / "wrong.jsonl"
    path.write_text("\n" + line + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        Recording.read(path, CORPUS / "models")


def test_those_that_were_served_arrive_before_those_that_were_not() -> None:
    """Within a few milliseconds nobody knows the order, but the outcome does; later ones stay later."""
    busy = "server busy, please try again.  maximum pending requests exceeded"
    group = [
        exchange(1, busy, 503, group="g", sent_ms=0.2),
        exchange(2, "{}", group="g", sent_ms=0.1),
        exchange(3, "{}", group="g", sent_ms=0.9),
        exchange(4, "{}", group="g", sent_ms=100.0),
    ]
    assert [one.n for one in in_order(group)] == [2, 3, 1, 4]


def test_registries_are_inferred_from_what_was_pulled() -> None:
    """A port that answered has its models, layers known by digest are those files, others are of their size."""
    found = infer(recording())
    assert found.keys() == {5055}
    (name, text), *others = found[5055].manifests.items()
    assert (name, others) == ("library/tiny:v1", [])
    document = json.loads(text)
    assert [layer["size"] for layer in document["layers"]] == [229984, 390000]
    assert document["layers"][0]["digest"].startswith("sha256:03381ca18425")
    assert document["config"]["size"] == 206
    slow = [layer.rate for layer in found[5055].layers.values() if layer.rate]
    assert len(slow) == 1
    assert 100_000 < slow[0] < 300_000


def test_ports_are_exchanged_both_ways() -> None:
    """A recorded port is another one here, in what is sent and in what comes back."""
    ports = Ports({5055: 40001})
    assert ports.outward("http://127.0.0.1:5055/library/tiny:v1") == "http://127.0.0.1:40001/library/tiny:v1"
    assert ports.inward('Get "http://localhost:40001/v2/"') == 'Get "http://localhost:5055/v2/"'
    assert ports.outward("127.0.0.1:50555/x 127.0.0.1:80") == "127.0.0.1:50555/x 127.0.0.1:80"


async def test_a_registry_redirects_and_resumes() -> None:
    """Layers come by way of a redirect to `localhost`, from any byte on; what is not there is 404, TLS is refused."""
    found = await asyncio.to_thread(recording)
    # a client that verifies loads certificates, which holds the loop for nothing here
    async with registries(found, speed=1000.0) as ports, httpx.AsyncClient(trust_env=False, verify=False) as http:
        url = f"http://127.0.0.1:{ports.here[5055]}/v2/library/tiny"
        manifest = (await http.get(f"{url}/manifests/v1")).json()
        layer = manifest["layers"][1]
        moved = await http.get(f"{url}/blobs/{layer['digest']}")
        assert (moved.status_code, httpx.URL(moved.headers["location"]).host) == (307, "localhost")
        address = moved.headers["location"].replace("localhost", "127.0.0.1")
        part = await http.get(address, headers={"range": f"bytes={layer['size'] - 10}-"})
        assert (part.status_code, len(part.content)) == (206, 10)
        head = await http.head(f"{url}/blobs/{layer['digest']}")
        assert head.headers["content-length"] == str(layer["size"])
        assert (await http.get(f"{url}/manifests/other")).status_code == 404
        reader, writer = await asyncio.open_connection("127.0.0.1", ports.here[5055])
        writer.write(b"\x16\x03\x01\x00\x05hello")
        refused = await reader.read()
        assert refused
        assert not refused.startswith((b"HTTP/", b"\x15", b"\x16")), "a daemon in Go says then that it is no TLS"
        writer.close()
        with pytest.raises(httpx.ConnectError):
            await http.get(f"http://127.0.0.1:{ports.here[5056]}/")


class Answering(httpx.AsyncBaseTransport):
    """A daemon that answers what a test gives it, and remembers what it was asked."""

    def __init__(self, replies: dict[str, list[tuple[int, str]]]) -> None:
        self.replies = replies
        self.asked: list[tuple[str, str, str]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = (await request.aread()).decode()
        self.asked.append((request.method, request.url.path, body))
        if request.url.path.startswith("/_emulator"):
            return httpx.Response(200, json={})
        left = self.replies[request.url.path]
        status, text = left.pop(0) if len(left) > 1 else left[0]
        return httpx.Response(status, stream=httpx.ByteStream(text.encode()), headers=told(text).headers)


def replay_of(exchanges: list[Exchange], daemon: Answering, *, emulated: bool = True) -> Replay:
    http = httpx.AsyncClient(transport=daemon, base_url="http://daemon")
    return Replay(Daemon(http, "/store", emulated), Recording(tuple(exchanges), "", CORPUS / "models"))


def told(text: str, status: int = 200) -> Reply:
    """A recorded reply as `Answering` sends it."""
    headers = {"content-type": "application/json; charset=utf-8", "content-length": str(len(text))}
    return Reply(status, headers, text)


async def test_equal_requests_take_the_nearest_reply() -> None:
    """Which of equal requests of a group wins is free; that as many win is not."""
    sent = {"method": "POST", "path": "/api/show", "json": {"model": "x"}}
    group = [
        replace(exchange(1, request=sent, group="g"), reply=told('{"error":"busy"}', 503)),
        replace(exchange(2, request=sent, group="g", sent_ms=0.1), reply=told('{"done":true}')),
    ]
    right = Answering({"/api/show": [(200, '{"done":true}'), (503, '{"error":"busy"}')]})
    assert [outcome.differences for outcome in await replay_of(group, right).run()] == [(), ()]
    wrong = Answering({"/api/show": [(200, '{"done":true}')]})
    outcomes = await replay_of(group, wrong).run()
    assert [bool(outcome.differences) for outcome in outcomes] == [True, False]


async def test_ps_is_asked_until_a_keep_alive_has_run_out() -> None:
    """/api/ps may take as long as the recorder waited; another path is asked once."""
    row = json.dumps({"models": [{"name": "a", "expires_at": "2026-01-01T00:00:00Z"}]})
    for path, asked in (("/api/ps", 3), ("/api/tags", 1)):
        one = replace(exchange(1, request={"method": "GET", "path": path}), reply=told('{"models":[]}'))
        daemon = Answering({path: [(200, row), (200, row), (200, '{"models":[]}')]})
        (outcome,) = await replay_of([one], daemon).run()
        assert bool(outcome.differences) == (path == "/api/tags")
        assert len(daemon.asked) == asked


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        ("an error was encountered while running the model: unexpected EOF", "kill_answer"),
        ("llama-server process has terminated: signal: killed", "kill_load"),
    ],
)
async def test_a_killed_runner_is_killed_again(error: str, fault: str) -> None:
    """A reply that tells of a kill has one ordered before it; a real daemon cannot be asked for it."""
    sent = {"method": "POST", "path": "/api/chat", "json": {"model": "x"}}
    text = json.dumps({"error": error})
    one = replace(exchange(1, request=sent), reply=told(text, 500))
    daemon = Answering({"/api/chat": [(500, text)]})
    assert [outcome.differences for outcome in await replay_of([one], daemon).run()] == [()]
    assert daemon.asked[0][1] == "/_emulator/fault"
    assert json.loads(daemon.asked[0][2])["do"] == fault
    (left,) = await replay_of([one], daemon, emulated=False).run()
    assert left.unsent


async def test_the_store_of_the_daemon_is_put_in() -> None:
    """`<models>` of a recorded request is the path of this daemon's store; where that is unknown it is not sent."""
    sent = {"method": "POST", "path": "/api/create", "json": {"from": "<models>/blobs/x"}}
    one = replace(exchange(1, request=sent), reply=told("{}"))
    daemon = Answering({"/api/create": [(200, "{}")]})
    replay = replay_of([one], daemon)
    await replay.run()
    assert "/store/blobs/x" in daemon.asked[0][2]
    replay.daemon.root = None
    assert (await replay.run())[0].unsent


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [(2, 2.0), (0.5, 0.5), ("2s", 2.0), ("1m30s", 90.0), ("500ms", 0.5), ("x", None), ("-1", None), (True, None)],
)
def test_a_keep_alive_is_read_as_the_daemon_reads_it(asked: Any, seconds: float | None) -> None:
    """Numbers are seconds, texts have units; what is neither says nothing of how long to wait."""
    assert span(asked) == seconds
    assert wire.keep_alive_seconds({"OLLAMA_KEEP_ALIVE": "2"}) == wire.keep_alive_seconds({"OLLAMA_KEEP_ALIVE": "2s"})


async def test_a_blob_that_is_not_there_is_left_out_by_name() -> None:
    """An upload of a file that the models do not have is told, and is no agreement."""
    one = exchange(1, request={"method": "POST", "path": "/api/blobs/sha256:x", "blob": "none.gguf"})
    (outcome,) = await replay_of([one], Answering({})).run()
    assert "none.gguf" in outcome.unsent


def test_a_client_that_gave_up_wants_no_reply() -> None:
    """A reply where the recorder had none within its time is a difference; none is none."""
    gone = exchange(1, status=None)
    assert compare(gone, Reply(None, fault="gave up after 1 s"), Ledger()) == []
    assert compare(gone, Reply(200, {}, "{}", fault="gave up after 1 s"), Ledger()) == []  # its headers had come
    assert compare(gone, Reply(200, {}, "{}"), Ledger())
    assert compare(gone, Reply(None, fault="ReadError"), Ledger())


def test_the_report_counts_what_was_left_out_as_no_agreement() -> None:
    """`agreement` is of all exchanges of the file, by scenario too, and is 1 only when each agrees."""
    outcomes = [
        Outcome(exchange(1)),
        Outcome(exchange(2), ("status 500 instead of 200",)),
        Outcome(exchange(3), unsent="why"),
        Outcome(replace(exchange(4), scenario="other")),
    ]
    found = wire.document(outcomes)
    assert (found["exchanges"], found["agreement"]) == (4, 0.5)
    assert found["by_scenario"] == {"made": 0.3333, "other": 1.0}
    assert [one["n"] for one in found["differences"]] == [2]
    assert [one["n"] for one in found["unreplayable"]] == [3]
    assert wire.agreement([Outcome(exchange(n)) for n in range(20_000)] + outcomes[1:2]) < 1


def test_a_daemon_is_not_asked_for_what_only_an_emulator_can_be_told() -> None:
    """A runner that was killed from outside counts against an emulator; what else was not sent counts against both."""
    killed = Outcome(replace(exchange(1), scenario="faults"), unsent="nobody kills it")
    other = Outcome(exchange(2), unsent="why")
    fine = Outcome(exchange(3))

    def reached(*outcomes: Outcome, live: bool) -> list[float | None]:
        return [each.value for each in wire.goals(outcomes, live=live)]

    assert reached(killed, fine, live=True) == [1.0, 0]
    assert reached(killed, fine, live=False) == [0.5, 1]
    assert reached(other, fine, live=True) == [0.5, 1]


def test_a_wrong_variable_or_file_fails_the_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be measured ends with 1 and a reason, without a document."""
    assert wire.main(["--env", "NAME"]) == 1
    assert wire.main(["--exchanges", str(tmp_path / "none.jsonl")]) == 1
    captured = capsys.readouterr()
    assert "NAME=VALUE" in captured.err
    assert captured.out == ""


def test_what_a_recording_may_leave_out_is_made_up(tmp_path: Path) -> None:
    """Numbers, scenarios, headers and times: an exchange is read without them, and headers are then not compared."""
    path = tmp_path / "bare.jsonl"
    whole = {"request": {"method": "GET", "path": "/"}, "response": {"status": 200, "text": "x"}}
    lines = {"request": {"method": "POST", "path": "/api/pull"}, "response": {"status": 200, "lines": ["{}"] * 3}}
    timed = {**lines, "response": {"status": 200, "lines": ["{}"] * 3, "ms": 30}}
    path.write_text("\n".join(map(json.dumps, (whole, lines, timed))), encoding="utf-8")
    first, second, third = Recording.read(path, CORPUS / "models").exchanges
    assert [first.n, second.n, first.scenario] == [1, 2, ""]
    assert compare(first, Reply(200, {"content-type": "text/odd"}, "x"), Ledger()) == []
    assert (second.reply.line_ms, third.reply.line_ms) == ((60.0, 120.0, 180.0), (10.0, 20.0, 30.0))


def test_a_kill_is_read_from_what_the_daemon_said() -> None:
    """With its words, and with the place of the request that it struck among those sent together."""
    load = "llama-server process has terminated: signal: terminated"
    group = [
        exchange(1, '{"done":true}', group="g", sent_ms=0.1),
        exchange(2, json.dumps({"error": load}), 500, group="g", sent_ms=20.0),
        exchange(3, json.dumps({"error": "an error was encountered while running the model: EOF"}), 500, group="g"),
    ]
    first, second, third = group
    assert fault_of(first) == {}
    assert fault_of(second) == {"do": "kill_load", "error": load}
    assert fault_of(third)["do"] == "kill_answer"
    assert [nth_of(one, group) for one in (second, third)] == [2, 1]
    misfit = exchange(4, json.dumps({"error": "llama-server process has terminated: exit status 1"}), 500)
    assert fault_of(misfit) == {}


def test_a_text_that_is_none_and_a_schema_of_odd_parts_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lone surrogate has digests and is printed; parts of a schema that are no objects say nothing of an answer."""
    path = tmp_path / "odd.jsonl"
    odd = {"request": {"method": "POST", "path": "/api/generate", "json": {"prompt": "\ud800"}}, "note": "\udfff"}
    path.write_text(json.dumps({**odd, "response": {"status": 200, "text": "{}"}}), encoding="utf-8")
    found = Recording.read(path, CORPUS / "models")
    assert found.known_digests()
    wire._tell(Outcome(found.exchanges[0], ("differs",)))
    assert "\\udfff" in capsys.readouterr().out
    forms: list[dict[str, Any]] = [
        {"items": [{}]},
        {"properties": {"a": True}, "required": 5},
        {"properties": {"a": []}},
    ]
    for form in forms:
        request = {"method": "POST", "path": "/api/chat", "json": {"format": form}}
        answer = json.dumps({"message": {"content": '{"a": [1]}'}, "done": True, "done_reason": "stop"})
        one = exchange(1, answer, request=request)
        assert compare(one, Reply(200, {}, answer), Ledger()) == []
