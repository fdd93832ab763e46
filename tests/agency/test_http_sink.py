"""The sink of programs: posts to one address of this machine, with a key."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.agency.http_target import Target, listening
from tests.agency.sink_laws import SinkLaws
from tests.waiting import HANG

from batos.agency.http_sink import Dial, HttpSink, check_address, is_local
from batos.agency.records.effect_records import EffectData, SinkClass
from batos.agency.sinks import EffectDelayed, EffectRefused, Sink
from batos.protocol.errors import BriefError

EFFECT: EffectData = {
    "effect": "e-1-1", "key": "key-1", "operation": "effect.post", "payload": {"data": {"text": "Grüße"}}, "before": {},
}  # fmt: skip


@pytest.fixture
def target() -> Iterator[Target]:
    """A program that listens."""
    with listening() as found:
        yield found


def patient(url: str, sink: SinkClass = "keyed") -> HttpSink:
    """A sink that waits for an answer as long as it takes."""
    return HttpSink(url, sink, HANG)


class TestLaws(SinkLaws):
    """A sink of a program is a keyed sink."""

    @pytest.fixture
    def sink(self, target: Target) -> Sink:
        """One that posts to the program."""
        self.target = target
        return patient(target.url)

    def effect(self) -> EffectData:
        """Some data."""
        return EFFECT.copy()

    def count(self, tmp_path: Path) -> int:
        """What the program did."""
        return len(self.target.done)


REMOTE = "https://inbox.example.org/inbox"
#: A certificate of that name, with its key.
PEM = Path(__file__).parents[1] / "data" / "tls" / "inbox.example.org.pem"


def dialling(port: int) -> Dial:
    """What opens a connection to a port of this machine, whatever it is asked for."""

    def dial(_address: tuple[str, int], timeout: float) -> socket.socket:
        return socket.create_connection(("127.0.0.1", port), timeout)

    return dial


class TestLawsOfRemoteHosts(TestLaws):
    """A sink of a program on another host is a keyed sink too: the name's certificate is looked at."""

    @pytest.fixture
    def sink(self) -> Iterator[Sink]:
        """One that posts by TLS."""
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(PEM)
        known = ssl.create_default_context(cafile=str(PEM))
        with listening(tls) as self.target:
            dial = dialling(urlsplit(self.target.url).port or 0)
            yield HttpSink(REMOTE, "keyed", HANG, dial=dial, is_allowed=lambda _address: True, tls=known)


def test_a_name_that_leads_into_the_own_net_is_told_nothing(target: Target) -> None:
    """The address that answers is checked before a byte is sent; so is the certificate before the data is."""
    dial = dialling(urlsplit(target.url).port or 0)
    with pytest.raises(EffectRefused, match=r"leads to 127\.0\.0\.1"):
        HttpSink(REMOTE, "keyed", HANG, dial=dial).release(EFFECT)
    with pytest.raises(EffectDelayed, match="nobody listens"):
        HttpSink(REMOTE, "keyed", HANG, dial=dial, is_allowed=lambda _address: True).release(EFFECT)
    assert target.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/x", "https://[::1]/x", "https://2130706433/x", "https://localhost/x", "http://example.org/x",
        "https://me@example.org/x", "https://example.org/x?key=1", "https://example.org/#x", "ftp://example.org/x",
        "https:///x", "https://10.0.0.1/x", "https://example.org:99999/x", "https://exa mple.org/x",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_host_is_refused(url: str) -> None:
    """A host has a name of several parts, which its certificate has too."""
    with pytest.raises(BriefError):
        check_address(url)


def test_hosts_by_name_are_taken() -> None:
    """By https alone, at any port."""
    for url in (REMOTE, "https://example.org", "https://example.org:8443/a/b"):
        assert check_address(url) == url
        assert not is_local(url)


def test_an_answer_is_kept_in_short(target: Target) -> None:
    """The status, the beginning of the text, and its digest."""
    outcome = patient(target.url).release(EFFECT)
    assert (outcome["status"], outcome["answer"], len(str(outcome["sha256"]))) == (200, "taken", 64)
    assert target.asked == [("key-1", {"text": "Grüße"})]


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, EffectRefused), (302, EffectRefused), (429, EffectDelayed), (503, EffectDelayed)],
)
def test_what_the_program_refuses_did_not_happen(target: Target, status: int, error: type[Exception]) -> None:
    """And a redirection is not followed."""
    target.answers = [status]
    with pytest.raises(error):
        patient(target.url).release(EFFECT)
    assert len(target.asked) == 1


def test_nobody_knows_after_a_fault_of_the_program_or_a_lost_answer(target: Target) -> None:
    """Any other error says neither that it happened nor that it did not; nor does 409, which says that it is at it."""
    for status in (500, 0, 409):
        target.answers = [status]
        with pytest.raises((http.client.HTTPException, OSError)):
            patient(target.url).release(EFFECT)


def test_a_program_that_knows_no_keys_refuses_by_409(target: Target) -> None:
    """It cannot speak of an earlier post under the key."""
    target.answers = [409]
    with pytest.raises(EffectRefused):
        patient(target.url, "blind").release(EFFECT)


@contextmanager
def endless(head: bytes, piece: bytes) -> Iterator[str]:
    """A program that begins its answer with some bytes, and says others again and again until it is cut off."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        leaving = threading.Event()

        def talk() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(65_536)
                connection.sendall(head)
                while not leaving.wait(0.005):  # any pace: no timeout of a single read ends it
                    connection.sendall(piece)

        thread = threading.Thread(target=talk)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/x"
        finally:
            leaving.set()
            thread.join()


@pytest.mark.parametrize("piece", [b"HTTP/1.1 100 Continue\r\n\r\n", b"x"])
def test_an_answer_that_never_ends_is_cut(piece: bytes) -> None:
    """However often a little of it comes; nobody knows what became of the effect."""
    with endless(b"", piece) as url, pytest.raises((http.client.HTTPException, OSError)):
        HttpSink(url, timeout=0.2).release(EFFECT)  # any pace: it is to run out


def test_a_text_that_never_ends_is_cut_and_what_came_is_kept() -> None:
    """The status was there: the program took it. It may be there late, so the limit is widened until it is in time."""
    outcome: dict[str, Any] = {}
    for seconds in (0.2, 5.0, HANG):  # any pace: the text never ends, and the last limit is met by all but a hang
        with endless(b"HTTP/1.1 200 OK\r\n\r\nx", b"x") as url, suppress(http.client.HTTPException, OSError):
            outcome = HttpSink(url, timeout=seconds).release(EFFECT)
            break
    assert (outcome["status"], set(outcome["answer"])) == (200, {"x"})


def test_a_header_that_never_ends_is_cut() -> None:
    """Whether its status counts depends on how the connection broke."""
    with endless(b"HTTP/1.1 200 OK\r\nA: ", b"x") as url, suppress(http.client.HTTPException, OSError):
        assert HttpSink(url, timeout=0.2).release(EFFECT)["answer"] == ""  # any pace: it is to run out


def test_where_nobody_listens_it_is_tried_later() -> None:
    """The remedy says what to start."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/x"
        with pytest.raises(EffectDelayed, match="nobody listens"):
            patient(url).release(EFFECT)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com:80/", "http://192.168.1.2:80/", "https://127.0.0.1:443/", "http://127.0.0.1/x",
        "http://localhost.evil.com:1/", "http://127.0.0.1:99999/", "http://u:p@127.0.0.1:1/", "file:///etc/passwd",
        "http://0.0.0.0:80/", "http://127.0.0.1:1/a b", "http://127.0.0.1:1/?q=1", "", "http://[::2]:1/",
        "http://169.254.169.254:80/latest", "http://127.0.0.1:1/\r\nX: y", "http://127.0.0.1:1/ä", "http://2130706433:80/",
        "http://0x7f.1:80/", "http://127.0.0.1.:80/", "http://[::ffff:8.8.8.8]:80/",
    ],
)  # fmt: skip
def test_only_a_program_of_this_machine_is_an_address(url: str) -> None:
    """Nothing else is ever connected to."""
    with pytest.raises(BriefError):
        check_address(url)


def test_both_loopbacks_are_addresses() -> None:
    """Of either version."""
    assert check_address("http://127.0.0.1:8080/inbox")
    assert check_address("http://[::1]:8080/inbox")
