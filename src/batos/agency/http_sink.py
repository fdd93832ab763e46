"""The sink that posts JSON to one address: of a program of this machine, or of another host by https."""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from batos.agency.look_ups.web_addresses import is_public
from batos.agency.records.effect_records import EffectData, SinkClass
from batos.agency.sinks import Check, EffectDelayed, EffectRefused, Outcome, check_nothing
from batos.protocol.errors import BriefError

#: Seconds that a program may take to answer, in all.
TIMEOUT: Final = 10.0
#: Bytes of an answer that are read, and characters of it that are kept.
_READ, _KEPT = 64 * 1024, 500
#: The header that carries the key (draft-ietf-httpapi-idempotency-key-header).
KEY_HEADER: Final = "Idempotency-Key"


def check_address(url: str) -> str:
    """Return an address if effects may be posted to it: of this machine by http, or of another host by https.

    Raises: BriefError: it is no such one.
    """
    remedy = "Give one like http://127.0.0.1:8080/inbox, or https://example.org/inbox."
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise BriefError(f"{url!r} is no address", field="target", remedy=remedy) from None
    has_more = any((parts.username, parts.password, parts.query, parts.fragment))
    is_known = is_local(url) and port is not None if parts.scheme == "http" else _is_host(host)
    if parts.scheme not in ("http", "https") or not is_known or has_more or not _is_plain(url):
        raise BriefError(f"{url!r} is no address of this machine, and none by https", field="target", remedy=remedy)
    return url


def is_local(url: str) -> bool:
    """Test if an address is one of this machine: http, and a loopback address as its host."""
    parts = urlsplit(url)
    try:
        return parts.scheme == "http" and ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


def _is_host(name: str) -> bool:
    """Test if a host is given by a name of several parts: an address would be no one's whom a certificate names."""
    return "." in name.strip(".") and not name.rpartition(".")[2].isdigit() and ":" not in name


def _is_plain(url: str) -> bool:
    return url.isascii() and url.isprintable() and " " not in url


#: Opens a connection to a host and a port, within some seconds.
Dial: TypeAlias = Callable[[tuple[str, int], float], socket.socket]


class HttpSink:
    """Posts JSON to one address; it follows no redirection and uses no proxy.

    The receiving program does what comes under one key once. `sink` is `blind` for a program that does not know keys.
    A host beyond this machine is reached by https alone, and only at an address that `is_allowed` lets pass. `dial`
    opens a connection to a host and a port, within some seconds.
    """

    def __init__(
        self,
        url: str,
        sink: SinkClass = "keyed",
        timeout: float = TIMEOUT,
        *,
        dial: Dial = socket.create_connection,
        is_allowed: Callable[[str], bool] = is_public,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._url, self._timeout = check_address(url), timeout
        self._dial, self._is_allowed, self._tls = dial, is_allowed, tls
        self.sink: SinkClass = sink

    def prepare(self, effect: EffectData) -> dict[str, object]:
        """Return nothing: the key is all that is needed."""
        return {}

    def release(self, effect: EffectData, check: Check = check_nothing) -> Outcome:
        """Post the data and return status and answer.

        Raises: EffectRefused: the program refused it (300 to 499), or its address is not public. EffectDelayed: nobody
        listens, or the program says that it cannot now. HTTPException, OSError: nobody knows; so too after 409 from a
        program that knows keys.
        """
        path, body = urlsplit(self._url).path or "/", json.dumps(effect["payload"]["data"], ensure_ascii=False).encode()
        with closing(self._connect()) as connection:
            headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
            connection.putrequest("POST", path)
            for name, value in {**headers, KEY_HEADER: effect["key"]}.items():
                connection.putheader(name, value)
            with _cut_after(connection.sock, self._timeout):
                check()
                connection.endheaders(body)
                answer = connection.getresponse()
                text = _read_begin(answer).decode("utf-8", "replace")
        if answer.status == 409 and self.sink == "keyed":  # it is at it since an earlier post under this key
            raise http.client.HTTPException(f"{self._url} is still at it ({answer.status})")
        return _judge(self._url, answer.status, text)

    def _connect(self) -> http.client.HTTPConnection:
        """Open a connection, of which nothing is sent before the address that answers is checked.

        Raises: EffectRefused, EffectDelayed.
        """
        parts = urlsplit(self._url)
        host, is_here = str(parts.hostname), is_local(self._url)
        kind = http.client.HTTPConnection if is_here else http.client.HTTPSConnection
        connection = kind(host, parts.port, timeout=self._timeout)
        try:
            connection.sock = self._dial((host, connection.port), self._timeout)
            if not is_here:
                self._check_peer(connection.sock.getpeername()[0])
                tls = self._tls or ssl.create_default_context()
                connection.sock = tls.wrap_socket(connection.sock, server_hostname=host)
        except OSError as error:
            connection.close()
            what = f"nobody listens at {self._url}: {error.strerror or error}"
            raise EffectDelayed(what, remedy="Start the program that listens there.") from error
        except EffectRefused:
            connection.close()
            raise
        return connection

    def _check_peer(self, address: str) -> None:
        if not self._is_allowed(address):
            what = f"{self._url} leads to {address}, which is no public address"
            raise EffectRefused(what, remedy="Grant a program of this machine by its own address, http://127.0.0.1:...")

    def find(self, effect: EffectData) -> Outcome | None:
        """Return nothing: a program is asked again with the key, it cannot be asked what it did."""
        return None


def _read_begin(answer: http.client.HTTPResponse) -> bytes:
    """Return the beginning of an answer's text, or what came of it: its status is there, so the program decided."""
    found = b""
    with suppress(OSError, http.client.HTTPException):
        while len(found) < _READ and (piece := answer.read1(_READ - len(found))):
            found += piece
    return found


@contextmanager
def _cut_after(connection: socket.socket, seconds: float) -> Iterator[None]:
    """Cut a connection after some seconds: its own timeout is for each read, and an answer may come byte by byte."""

    def cut() -> None:
        with suppress(OSError):  # it is closed already
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _judge(url: str, status: int, text: str) -> Outcome:
    """Return the outcome of an answer. Raises: EffectRefused, EffectDelayed: the program did nothing."""
    if 200 <= status < 300:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return {"status": status, "answer": text[:_KEPT], "sha256": digest}
    if status in (429, 503):
        raise EffectDelayed(f"{url} cannot take it now ({status})", remedy="It is tried again.")
    if 300 <= status < 500:
        raise EffectRefused(
            f"{url} refused it: {status} {text[:_KEPT]!r}", remedy="See the program that listens there."
        )
    raise http.client.HTTPException(f"{url} answered {status}")
