"""What the router does before any handler: redirects, methods, hosts, origins."""

from __future__ import annotations

import asyncio

import pytest
from tests.ollama_emulator.clients import Client, Start


@pytest.mark.parametrize(
    ("method", "path", "status", "location"),
    [
        ("GET", "/api/tags/", 301, "/api/tags"),
        ("POST", "/api/chat/", 307, "/api/chat"),
        ("DELETE", "/api/tags/", 404, None),
        ("GET", "/nothing/", 404, None),
        ("POST", f"/api/blobs/sha256:{'0' * 64}/", 307, f"/api/blobs/sha256:{'0' * 64}"),
        ("GET", "/api/blobs/x", 405, None),
        ("GET", "/v1/models/a/b", 404, None),
        ("GET", "/api/t%61gs", 200, None),
    ],
)
async def test_a_slash_too_many_leads_on(
    client: Client, method: str, path: str, status: int, location: str | None
) -> None:
    """Where the path without it is one for the method; else it is no path."""
    reply = await client.http.request(method, path)
    assert (reply.status_code, reply.headers.get("location")) == (status, location)


async def test_a_path_is_cleaned(client: Client) -> None:
    """Needless slashes and dots are answered with the way to the clean path."""
    host, _, port = client.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET //api/./x/..//tags HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    reply = (await reader.read()).decode()
    writer.close()
    assert reply.startswith("HTTP/1.1 301 Moved Permanently\r\n")
    assert reply.endswith('\r\n\r\n<a href="/api/tags">Moved Permanently</a>.\n\n')


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("[::1]:1", 200),
        ("192.168.1.5", 200),
        ("box.local:1", 200),
        ("8.8.8.8", 403),
        ("evil.com", 403),
    ],
)
async def test_a_loopback_listener_answers_local_hosts(client: Client, host: str, status: int) -> None:
    """Private addresses and local names; others get an empty 403, for any path."""
    reply = await client.http.get("/api/version", headers={"host": host})
    assert reply.status_code == status
    assert (await client.http.get("/nothing", headers={"host": host})).status_code == (404 if status == 200 else 403)


async def test_pages_of_other_origins(client: Client) -> None:
    """Local ones and applications are told so, also in streams; a preflight is answered, others are refused."""
    for origin in ("http://localhost:3000", "app://obsidian.md"):
        reply = await client.http.get("/api/version", headers={"origin": origin})
        assert (reply.headers["access-control-allow-origin"], reply.headers["vary"]) == (origin, "Origin")
    reply = await client.http.post("/api/pull", json={"model": "nope"}, headers={"origin": "http://127.0.0.1"})
    assert reply.headers["access-control-allow-origin"] == "http://127.0.0.1"
    preflight = await client.http.request("OPTIONS", "/api/chat", headers={"origin": "https://localhost"})
    assert (preflight.status_code, preflight.headers["access-control-max-age"]) == (204, "43200")
    assert (preflight.content, "content-length" in preflight.headers) == (b"", False)
    assert (await client.http.get("/api/version", headers={"origin": "http://localhost.evil.com"})).status_code == 403
    assert (await client.http.get("/api/version", headers={"origin": client.url})).headers.get("vary") is None


async def test_options_of_a_named_host(client: Client) -> None:
    """204 where the host is a name, 405 where it is a number, as the daemon's check of hosts has it."""
    assert (await client.http.request("OPTIONS", "/api/tags", headers={"host": "localhost"})).status_code == 204
    assert (await client.http.request("OPTIONS", "/api/tags")).status_code == 405
    reply = await client.http.request("OPTIONS", "/api/tags", headers={"origin": "http://localhost"})
    assert (reply.status_code, reply.headers["allow"]) == (204, "HEAD, GET")


async def test_more_origins_are_let_in_by_the_environment(start: Start) -> None:
    """One by one, or with a star for anything in one place."""
    async with start(environ={"OLLAMA_ORIGINS": "https://a.example, https://*.b.example"}) as client:
        for origin, status in (("https://a.example", 200), ("https://x.b.example", 200), ("https://b.example", 403)):
            assert (await client.http.get("/api/version", headers={"origin": origin})).status_code == status
