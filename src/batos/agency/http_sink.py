"""A sink that posts to a program on this machine, with a key by which that program knows what it was asked before."""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

from batos.agency.records.capabilities import SinkClass
from batos.agency.records.staged_effects import EffectData
from batos.agency.sinks import Check, EffectDelayed, EffectRefused, Outcome, check_nothing
from batos.protocol.errors import BriefError

#: Seconds that a program may take to answer, in all.
TIMEOUT: Final = 10.0
#: Bytes of an answer that are read, and characters of it that are kept.
_READ, _KEPT = 64 * 1024, 500
#: The header that carries the key (draft-ietf-httpapi-idempotency-key-header).
KEY_HEADER: Final = "Idempotency-Key"


def check_address(url: str) -> str:
    """Return an address if it is one of this machine: http, a loopback host and a port.

    Raises: BriefError: it is another.
    """
    remedy = "Give one like http://127.0.0.1:8080/inbox."
    try:
        parts = urlsplit(url)
        port = parts.port
        is_local = ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        port, is_local = None, False
    has_more = any((parts.username, parts.password, parts.query, parts.fragment)) if is_local else False
    if parts.scheme != "http" or not is_local or port is None or has_more or not _is_plain(url):
        raise BriefError(f"{url!r} is no address of this machine", field="target", remedy=remedy)
    return url


def _is_plain(url: str) -> bool:
    return url.isascii() and url.isprintable() and " " not in url


class HttpSink:
    """Posts JSON to one address of this machine; it follows no redirection and uses no proxy.

    The receiving program does what comes under one key once. `sink` is `blind` for a program that does not know keys.
    """

    def __init__(self, url: str, sink: SinkClass = "keyed", timeout: float = TIMEOUT) -> None:
        self._url, self._timeout = check_address(url), timeout
        self.sink: SinkClass = sink

    def prepare(self, effect: EffectData) -> dict[str, object]:
        """Return nothing: the key is all that is needed."""
        return {}

    def release(self, effect: EffectData, check: Check = check_nothing) -> Outcome:
        """Post the data and return status and answer.

        Raises: EffectRefused: the program refused it (300 to 499). EffectDelayed: nobody listens, or the program says
        that it cannot now. HTTPException, OSError: nobody knows; so too after 409 from a program that knows keys.
        """
        parts = urlsplit(self._url)
        body = json.dumps(effect["payload"]["data"], ensure_ascii=False).encode()
        with closing(http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=self._timeout)) as connection:
            try:
                connection.connect()
            except OSError as error:
                what = f"nobody listens at {self._url}: {error.strerror or error}"
                raise EffectDelayed(what, remedy="Start the program that listens there.") from error
            headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
            connection.putrequest("POST", parts.path or "/")
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
