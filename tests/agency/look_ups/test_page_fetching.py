"""Fetching within limits: where a name leads, where a page leads, how much and how long."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Mapping, Sequence

import pytest
from tests.agency.look_ups.stub_web import PUBLIC, StubWeb, moved, reply, stub_web

from batos.agency.look_ups.page_fetching import FetchedPage
from batos.agency.look_ups.web_addresses import PublicGate, ServiceGate, parse_address
from batos.protocol.errors import LookUpFailed, Refused

HOST = "example.org"


async def fetch(web: StubWeb, url: str = f"http://{HOST}/a", **limits: float) -> FetchedPage:
    """A page by the public gate."""
    return await web.fetcher(**limits).fetch(parse_address(url), PublicGate(ports=[8080]))


async def test_a_page_is_fetched_as_it_is() -> None:
    """With its kind, its charset, the headers in small letters, and a name of ours told to the site."""
    async with stub_web({HOST: lambda target, _: reply("<p>ä", ETag='"1"')}) as web:
        page = await fetch(web, f"http://{HOST}/a?b=c")
        assert (page.status, page.media_type, page.charset) == (200, "text/html", "utf-8")
        assert (page.body, page.headers["etag"]) == ("<p>ä".encode(), '"1"')
        assert web.asked == [f"{HOST}/a?b=c"]
        assert web.headers[0]["user-agent"] == "batos/0 (test)"
        assert web.connected == [PUBLIC]


@pytest.mark.parametrize("ip", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "64:ff9b::7f00:1", "fe80::1%lo"])
async def test_a_name_that_leads_home_is_not_connected_to(ip: str) -> None:
    """Also where only one of its addresses does."""
    for names in ([ip], [PUBLIC, ip]):
        async with stub_web({HOST: lambda *_: reply("secret")}, names={HOST: names}) as web:
            with pytest.raises(Refused, match="not public"):
                await fetch(web)
            assert (web.connected, web.asked) == ([], [])


async def test_a_name_that_resolves_differently_the_second_time_reaches_nothing_else() -> None:
    """It is resolved once for each connection, and the connection is to the address that was checked."""
    answers = iter([[PUBLIC], ["127.0.0.1"], ["127.0.0.1"]])
    async with stub_web({HOST: lambda *_: moved("/b")}) as web:
        web.names[HOST] = lambda: next(answers)  # type: ignore[assignment]
        with pytest.raises(Refused, match="not public"):
            await fetch(web)
        assert web.connected == [PUBLIC]


async def test_a_connection_that_leads_elsewhere_is_left() -> None:
    """The peer is compared after the connection is made."""
    async with stub_web({HOST: lambda *_: reply("secret")}, peer="127.0.0.1") as web:
        with pytest.raises(Refused, match="reached at"):
            await fetch(web)
        assert web.asked == []


@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.1/", "http://home.example/", "http://example.org:22/", "http://0x7f.1/", "file:///etc/passwd"],
)
async def test_a_redirection_passes_the_gate_anew(location: str) -> None:
    """To an address of this machine, by number or by name, to another port, to a file."""
    async with stub_web({HOST: lambda *_: moved(location)}, names={"home.example": ["127.0.0.1"]}) as web:
        with pytest.raises(Refused):
            await fetch(web)
        assert web.asked == [f"{HOST}/a"]


async def test_redirections_are_followed_as_far_as_they_may() -> None:
    """Five, also from host to host; further headers go to the first host alone."""

    def count(target: str, _: Mapping[str, str]) -> bytes:
        number = int(target[1:] or 0)
        return moved(f"http://b.example/{number + 1}") if number < 4 else reply("there")

    async with stub_web({HOST: lambda *_: moved("http://b.example/0"), "b.example": count}) as web:
        fetcher = web.fetcher()
        page = await fetcher.fetch(parse_address(f"http://{HOST}/a"), PublicGate(), (), {"If-None-Match": "x"})
        assert (page.body, str(page.address)) == (b"there", "http://b.example/4")
        assert ["if-none-match" in each for each in web.headers] == [True, *[False] * 5]
        web.sites["b.example"] = lambda *_: moved("/again")
        with pytest.raises(LookUpFailed, match="one address to the next"):
            await fetch(web)


def chunked(*pieces: bytes) -> bytes:
    """An answer in pieces."""
    body = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in pieces)
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"


def raw_deflate(data: bytes) -> bytes:
    """Deflate without a frame, as some servers send it."""
    made = zlib.compressobj(wbits=-15)
    return made.compress(data) + made.flush()


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", gzip.compress(b"a text", mtime=0)),
        ("gzip", gzip.compress(b"a ", mtime=0) + gzip.compress(b"text", mtime=0)),
        ("deflate", zlib.compress(b"a text")),
        ("deflate", raw_deflate(b"a text")),
        ("identity", b"a text"),
    ],
    ids=["gzip", "two", "deflate", "raw", "none"],
)
async def test_encodings_are_undone(encoding: str, data: bytes) -> None:
    """Those that were asked for."""
    async with stub_web({HOST: lambda *_: reply(data, "text/plain", Content_Encoding=encoding)}) as web:
        assert (await fetch(web)).body == b"a text"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (reply(gzip.compress(b"0" * 2_000_000), Content_Encoding="gzip"), "unpacks to more"),
        (reply(b"0" * 200_000), "more than"),
        (chunked(*[b"0" * 1_000] * 200), "more than"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"0" * 90_000 + b"\r\n\r\n", "not reached"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000, "more than"),
        (reply(b"12345", Content_Encoding="gzip"), "does not unpack"),
        (reply(gzip.compress(b"a text" * 99)[:-20], Content_Encoding="gzip"), "cut off"),
        (reply(b"x", Content_Encoding="br"), "unknown encoding"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", "not reached"),
        (b"\x00\x01 no http", "not reached"),
        (b"", "not reached"),
    ],
    ids=["bomb", "long", "chunks", "head", "informed", "no gzip", "cut", "unknown", "short", "bytes", "nothing"],
)
async def test_what_is_too_much_or_damaged_is_told(answer: bytes, message: str) -> None:
    """Bombs, endless heads, cut bodies, bytes that are no HTTP."""
    async with stub_web({HOST: lambda *_: answer}) as web:
        with pytest.raises(LookUpFailed, match=message) as told:
            await fetch(web, wire=100_000, decoded=1_000_000)
        assert told.value.remedy


async def test_a_site_that_never_answers_is_left() -> None:
    """After the time for all of it, and after that for a connection."""
    async with stub_web({HOST: lambda *_: b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"}) as web:
        web.sites[HOST] = lambda *_: b""
        hold = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await hold.wait()
            writer.close()

        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            web.port = server.sockets[0].getsockname()[1]
            with pytest.raises(LookUpFailed, match="in time"):
                await fetch(web, whole=0.05)
            hold.set()

        async def never(host: str, port: int) -> Sequence[str]:
            await asyncio.Event().wait()
            return []

        web.resolve = never  # type: ignore[method-assign]
        with pytest.raises(LookUpFailed, match="in time"):
            await fetch(web, connect=0.05)


async def test_a_host_is_asked_one_thing_at_a_time_and_as_slowly_as_it_wishes() -> None:
    """The sleep between two requests is what its rules ask for."""
    async with stub_web({HOST: lambda *_: reply("x")}) as web:
        fetcher, slept = web.fetcher(), list[float]()
        now = 0.0

        async def sleep(seconds: float) -> None:
            nonlocal now
            slept.append(seconds)
            now += seconds

        fetcher.ticks, fetcher.sleep, fetcher.delays = lambda: now, sleep, {f"http://{HOST}": 2.0}
        address = parse_address(f"http://{HOST}/")
        await asyncio.gather(*(fetcher.fetch(address, PublicGate()) for _ in range(4)))
        assert (web.most_at_once, slept) == (1, [2.0] * 3)


async def test_the_first_address_that_answers_is_used() -> None:
    """As browsers do."""
    async with stub_web({HOST: lambda *_: reply("x")}, names={HOST: ["93.184.215.99", PUBLIC]}) as web:
        plain = web.connect

        async def connect(ip: str, port: int, name: str) -> object:
            if ip.endswith("99"):
                raise ConnectionRefusedError
            return await plain(ip, port, name)

        web.connect = connect  # type: ignore[method-assign,assignment]
        assert (await fetch(web)).body == b"x"


async def test_a_service_of_ones_own_is_reached_where_it_is() -> None:
    """By its grant's address, which leads nowhere else."""
    base = parse_address("http://127.0.0.1:8090/wiki")
    async with stub_web(
        {"127.0.0.1:8090": lambda target, _: moved("/other") if target.endswith("m") else reply("x")}
    ) as web:
        fetcher = web.fetcher()
        assert (await fetcher.fetch(base.at("/wiki/a"), ServiceGate(base))).body == b"x"
        with pytest.raises(Refused, match="is not of"):
            await fetcher.fetch(base.at("/wiki/m"), ServiceGate(base))
