"""The guard: hosts, pages, keys; what it refuses it refuses also with a right key."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.http.conftest import ASKED, OpenDoor, copied_door
from tests.waiting import HANG, wait_until

from batos.client.keys import Keyring
from batos.config import Settings
from batos.protocol.errors import ConfigError
from batos.server.http import http_door as doors
from ollama_emulator.emulator import Options

OPEN = {"/": b"Ollama is running", "/healthz": b'{"ok":true}'}


def raw(door: OpenDoor, head: str, body: bytes = b"") -> tuple[int, bytes]:
    """Send a request as bytes; the status and the whole reply."""
    host, port = door.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=HANG) as line:
        line.sendall(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n" + body)
        line.shutdown(socket.SHUT_WR)
        reply = b""
        while piece := line.recv(65_536):
            reply += piece
    return int(reply.split(b" ", 2)[1]), reply


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "0.0.0.0", "[::2]", "batos"]
)
def test_a_foreign_host_is_refused_with_a_right_key(door: OpenDoor, host: str) -> None:
    """Which is what a page that rebinds its own name to this machine sends."""
    with door.client(host=host) as client:
        assert client.get("/v1/models").status_code == 403
        assert client.get("/healthz").status_code == 403


def test_a_request_names_one_host(door: OpenDoor) -> None:
    """None and two are refused, whatever else is right."""
    key = f"Authorization: Bearer {door.token}\n"
    assert raw(door, f"GET /v1/models HTTP/1.1\n{key}")[0] == 400
    assert raw(door, f"GET /v1/models HTTP/1.1\nHost: 127.0.0.1\nHost: 127.0.0.1\n{key}")[0] == 400
    assert raw(door, f"GET /v1/models HTTP/1.1\nHost: localhost\nConnection: close\n{key}")[0] == 200


@pytest.mark.parametrize("headers", [{"origin": "http://evil"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}])
def test_a_foreign_page_is_refused_with_a_right_key(door: OpenDoor, headers: dict[str, str]) -> None:
    """By its origin, and by what browsers say of where a request comes from."""
    with door.client(**headers) as client:
        assert client.post("/v1/chat/completions", json={"messages": [ASKED]}).status_code == 403
        assert "access-control-allow-origin" not in client.options("/v1/models").headers


def test_without_a_key_only_the_sign_of_life_is_open(door: OpenDoor) -> None:
    """Every other path is 401 in its own form, and says how to send a key."""
    for path, body in OPEN.items():
        assert httpx.get(f"{door.url}{path}").content == body
    told = httpx.get(f"{door.url}/v1/models")
    assert (told.status_code, told.headers["www-authenticate"]) == (401, "Bearer")
    assert told.json()["error"]["code"] == "invalid_api_key"
    assert "/key/KEY" in httpx.get(f"{door.url}/api/tags").json()["error"]
    assert httpx.get(f"{door.url}/metrics").status_code == 401
    assert httpx.get(f"{door.url}/v1/models", headers={"authorization": f"Bearer {door.token.swapcase()}"}).is_error
    assert httpx.get(f"{door.url}/v1/models", headers={"authorization": f"Basic {door.token}"}).is_error
    assert httpx.get(f"{door.url}/v1/models?key={door.token}").is_error


def test_a_key_may_stand_in_three_places(door: OpenDoor) -> None:
    """In either header, or in the path for clients that send no header."""
    assert httpx.get(f"{door.url}/v1/models", headers={"x-api-key": door.token}).status_code == 200
    assert httpx.get(f"{door.url}/v1/models", headers={"authorization": f"bearer {door.token}"}).status_code == 200
    assert httpx.get(f"{door.url}/key/{door.token}/api/tags").status_code == 200
    assert httpx.head(f"{door.url}/key/{door.token}/").status_code == 200
    assert httpx.get(f"{door.url}/key/wrong/api/tags").status_code == 401


def test_a_guest_asks_as_itself_until_its_key_is_revoked(door: OpenDoor) -> None:
    """What it may not is refused, others' missions are not found, and a revoked key ends a connection."""
    ring = Keyring(door.home)
    guest = ring.new("laptop", "tcp://127.0.0.1:1").http_key
    reply = door.chat(ASKED, key=guest)
    mine = reply.headers["x-batos-mission"]
    assert door.mission(mine)["brief"]["user"] == "key laptop"
    others = door.chat(ASKED).headers["x-batos-mission"]
    with door.client(guest) as client:
        assert client.get(f"/m/{mine}").status_code == 200
        assert client.get(f"/m/{others}").status_code == 404
        assert client.post(f"/v1/responses/resp_{others[2:]}/cancel").status_code == 404
        ring.revoke("laptop")
        assert client.get("/v1/models").status_code == 401


def test_a_stream_of_a_revoked_key_ends(grown_door_home: Path, tmp_path: Path) -> None:
    """Within a second or so: its connection is cut, and its mission is cancelled."""
    with copied_door(grown_door_home, tmp_path, Options(tok_s=2)) as door:
        guest = Keyring(door.home).new("laptop", "tcp://127.0.0.1:1").http_key
        body = {"model": "batos:reflex", "messages": [ASKED], "stream": True}
        with door.client(guest) as client, client.stream("POST", "/v1/chat/completions", json=body) as reply:
            pieces = reply.iter_bytes()
            assert next(pieces)
            Keyring(door.home).revoke("laptop")
            with pytest.raises(httpx.RemoteProtocolError):
                list(pieces)
        mission = reply.headers["x-batos-mission"]
        wait_until(lambda: door.mission(mission)["status"] == "cancelled", "the end of the mission")


def test_a_listed_page_may_ask(grown_door_home: Path, tmp_path: Path) -> None:
    """Its origin is echoed, its question before the request is answered without a key, a listed name is a host."""
    listed: dict[str, Any] = {
        "http_origins": "http://localhost:3000, https://ours.example",
        "http_hosts": "batos.home.arpa",
    }
    with copied_door(grown_door_home, tmp_path, **listed) as door:
        origin = {"origin": "http://localhost:3000"}
        asked = httpx.options(f"{door.url}/v1/models", headers=origin)
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, origin["origin"])
        assert httpx.get(f"{door.url}/v1/models", headers=origin).status_code == 401
        with door.client(host="batos.home.arpa:7719", **origin) as client:
            reply = client.get("/v1/models")
        assert (reply.status_code, reply.headers["vary"]) == (200, "Origin")
        assert httpx.options(f"{door.url}/v1/models", headers={"origin": "https://evil"}).status_code == 403


@pytest.mark.parametrize("given", [{"http": "0.0.0.0:7719"}, {"http": "nowhere"}, {"http": "127.0.0.1"}])
def test_beyond_this_machine_it_needs_a_certificate(tmp_path: Path, given: dict[str, Any]) -> None:
    """Or a proxy that is named to have one; what is no address is refused by the setting's name."""
    with pytest.raises(ConfigError) as refused:
        doors.address_of(Settings(home=tmp_path, **given))
    assert refused.value.field == "http"
    behind = Settings(home=tmp_path, http="0.0.0.0:7719", http_proxy="tls")
    assert doors.address_of(behind).is_wildcard


def test_a_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    """By the setting's name."""
    (tmp_path / "cert.pem").write_text("none")
    with pytest.raises(ConfigError) as refused:
        doors.tls_of(Settings(home=tmp_path, http_cert=str(tmp_path / "cert.pem")))
    assert refused.value.field == "http_cert"
    assert isinstance(refused.value.__cause__, ssl.SSLError)


def test_a_taken_port_is_refused_with_the_remedy(grown_door_home: Path, tmp_path: Path, door: OpenDoor) -> None:
    """It is never another one: clients are configured by it."""
    with (
        pytest.raises(ConfigError, match="nothing can listen") as refused,
        copied_door(grown_door_home, tmp_path, http=door.url.removeprefix("http://")),
    ):
        pass
    assert "--http" in refused.value.remedy
