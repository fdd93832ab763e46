"""Sinks do effects in the world: their protocol, one that writes files, and one that posts to a program.

A sink works in a thread and may block. Its three functions are called in this order for an attempt; after each of them
the releaser writes a commit:

- `prepare` reads what is needed to recognise the effect afterwards, and changes nothing;
- `release` does the effect; right before that it calls `check`, which raises where this process may not do it any more;
- `find` is asked by a releaser that finds an attempt which was begun and has no outcome.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import ipaddress
import json
import os
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol, TypeAlias
from urllib.parse import urlsplit

from batos.agency.payloads import path_parts
from batos.agency.records.effect_records import EffectData, SinkClass
from batos.objects.prototype import UvmObject
from batos.protocol.errors import BatosError, BriefError, ObjectError, Refused

#: The outcome of an effect, as plain data.
Outcome: TypeAlias = dict[str, object]
#: Raises EffectDelayed where this process may not do the effect any more.
Check: TypeAlias = Callable[[], None]


def check_nothing() -> None:
    """Let an effect happen."""


class EffectRefused(BatosError):
    """An effect that did not happen and will not: its target does not allow it."""


class EffectDelayed(BatosError):
    """An attempt in which nothing happened, and another may go well: its target is not there, or cannot be read, now.

    The releaser finds out if an earlier attempt happened.
    """

    retry = True


class Sink(Protocol):
    """A target of effects.

    A keyed sink is told the key, and does an effect of one key once however often it is asked. A queryable one can be
    read back. Of a blind one nobody can know; one that declares no class is taken for blind.
    """

    sink: SinkClass

    def prepare(self, effect: EffectData) -> dict[str, object]:
        """Return what `find` needs to recognise the effect, as plain data. Raises: EffectRefused, EffectDelayed."""
        ...

    def release(self, effect: EffectData, check: Check = check_nothing) -> Outcome:
        """Do the effect and return what came of it; `check` is called right before it happens, as late as can be.

        Raises: EffectRefused, EffectDelayed: this attempt changed nothing. After any other error nobody knows.
        """
        ...

    def _write_new(self, effect: EffectData, data: bytes) -> None:
        """Write a file that is not there yet, or the rest of one that an earlier attempt began."""
        is_first = effect.get("attempts", 1) <= 1
        with self._open(effect, os.O_RDWR | os.O_APPEND | os.O_CREAT | (os.O_EXCL if is_first else 0)) as file:
            found = _read_from(file, data)
            _refuse_other(effect, found, is_begun=True)
            _append(file, data[len(found) :], len(found))

    def find(self, effect: EffectData) -> Outcome | None:
        """Return what came of an effect that was begun; None: its target was read, and it surely did not happen.

        Only a queryable sink is asked. Raises: EffectDelayed: the target cannot be read now.
        """
        ...


#: Makes the sink of a capability.
SinkFactory: TypeAlias = Callable[[UvmObject], Sink]


def class_of(sink: Sink) -> SinkClass:
    """Return the class that a sink declares; `blind` for one that declares none, since it cannot be taken back."""
    declared: SinkClass = getattr(sink, "sink", "blind")
    return declared if declared in ("keyed", "queryable") else "blind"


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


#: Address blocks whose addresses stand for one of the old kind, which `is_global` does not look at.
_NAT64, _SIX_TO_FOUR = ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("2002::/16")


def is_public(text: str) -> bool:
    """Test if an address is one of the open net.

    >>> is_public("93.184.216.34"), is_public("127.0.0.1"), is_public("64:ff9b::7f00:1"), is_public("::ffff:10.0.0.1")
    (True, False, False, False)
    """
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.teredo:
            return False
        inner = int(address) if address in _NAT64 else int(address) >> 80 if address in _SIX_TO_FOUR else None
        address = address.ipv4_mapped or (address if inner is None else ipaddress.IPv4Address(inner & 0xFFFFFFFF))
    return address.is_global and not address.is_multicast and not address.is_reserved


def _is_plain(url: str) -> bool:
    return url.isascii() and url.isprintable() and " " not in url


class HttpSink:
    """Posts JSON to one address; it follows no redirection and uses no proxy.

    The receiving program does what comes under one key once. `sink` is `blind` for a program that does not know keys.
    A host beyond this machine is reached by https alone, and only at an address that `is_allowed` lets pass.
    """

    def __init__(
        self,
        url: str,
        sink: SinkClass = "keyed",
        timeout: float = TIMEOUT,
        is_allowed: Callable[[str], bool] = is_public,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._url, self._timeout = check_address(url), timeout
        self._is_allowed, self._tls = is_allowed, tls
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
            connection.sock = socket.create_connection((host, connection.port), self._timeout)
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


#: Errors after which a later attempt may go well.
_PASSING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
#: Bytes behind the place of an append that are searched for it, since other programs append too.
_SEARCHED: Final = 16 * 2**20

#: Raises Refused for a folder in which nothing may be written here.
Guard: TypeAlias = Callable[[Path], None]


def guard_nothing(folder: Path) -> None:
    """Let a folder be opened."""


class _FolderMissingError(FileNotFoundError):
    """A folder of a path is not there, perhaps only now: what stands in it cannot be known."""


class _LeftoverError(Exception):
    """An append that failed and may have left something in the file."""


class FileSink:
    """Appends texts to regular files below a folder, and writes whole new ones there, never over one that is there.

    No link is followed below the folder, and nothing is created but files.
    """

    sink: SinkClass = "queryable"

    def __init__(self, folder: Path, guard: Guard = guard_nothing) -> None:
        """Create it. `guard` is asked each time before the folder is opened."""
        self._folder, self._guard = folder, guard

    def prepare(self, effect: EffectData) -> dict[str, object]:
        """Return the size of the file, behind which what is appended stands, and what tells it from another.

        A new file is not there yet, or has the beginning that an earlier attempt at the same effect left.

        Raises: EffectRefused, EffectDelayed.
        """
        try:
            with self._open(effect, os.O_RDONLY) as file:
                found = os.fstat(file)
                if _is_whole(effect):
                    _refuse_other(effect, _read_from(file, _data(effect)), is_begun=effect["before"] is not None)
                    return {"size": 0}
                return {"size": found.st_size, **_identity(found)}
        except FileNotFoundError:
            return {"size": 0}

    def release(self, effect: EffectData, check: Check = check_nothing) -> Outcome:
        """Append the text, or write it as a new file, and see that it is on the disk.

        Raises: EffectRefused, EffectDelayed: nothing of it stands there. After any other error something may.
        """
        data = _data(effect)
        try:
            if _is_whole(effect):
                check()  # before there is a file
                self._write_new(effect, data)
            else:
                with self._open(effect, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
                    begun = os.fstat(file).st_size
                    check()
                    _append(file, data, begun)
        except FileNotFoundError as error:
            what = f"{effect['payload']['path']}: a folder of this path is not there"
            raise EffectRefused(what, remedy="Make the folder, then ask again.") from error
        return {"bytes": len(data)}

    def _write_new(self, effect: EffectData, data: bytes) -> None:
        """Write a file that is not there yet, or the rest of one that an earlier attempt began."""
        is_first = effect.get("attempts", 1) <= 1
        with self._open(effect, os.O_RDWR | os.O_APPEND | os.O_CREAT | (os.O_EXCL if is_first else 0)) as file:
            found = _read_from(file, data)
            _refuse_other(effect, found, is_begun=True)
            _append(file, data[len(found) :], len(found))

    def find(self, effect: EffectData) -> Outcome | None:
        """Return what came of an effect: the text stands behind the size that was noted, or is the whole new file.

        None: it surely does not.

        Of a text that was cut in the middle the rest is appended.

        Raises: EffectDelayed: folder or file cannot be opened now, or the file is not the one whose size was noted.
        """
        data, before = _data(effect), effect["before"] or {}
        size = int(before.get("size", 0))
        try:
            with self._open(effect, os.O_RDWR | os.O_APPEND) as file:
                now = os.fstat(file)
                if any(before.get(name, value) != value for name, value in _identity(now).items()):
                    raise _unreadable(effect, "it is another file than it was")
                if now.st_size < size:
                    raise _unreadable(effect, "it is shorter than it was")
                found = os.pread(file, _SEARCHED + len(data), size)
                if found == data if _is_whole(effect) else data in found:
                    return {"bytes": len(data), "found": True}
                if _is_whole(effect) and not data.startswith(found):
                    raise _unreadable(effect, "it has another text than it was given")
                if (found or _is_whole(effect)) and data.startswith(found):
                    _append(file, data[len(found) :], size + len(found))
                    return {"bytes": len(data), "completed": len(data) - len(found)}
        except _FolderMissingError as error:
            raise _unreadable(effect, "its folder is not there") from error
        except FileNotFoundError as error:
            if size:
                raise _unreadable(effect, "it is not there any more") from error
        except EffectRefused as error:
            raise EffectDelayed(error.message, remedy=error.remedy) from error
        return None

    @contextmanager
    def _open(self, effect: EffectData, flags: int) -> Iterator[int]:
        """Open the effect's file, folder by folder without following a link.

        Raises: FileNotFoundError: it, or a folder, is not there. EffectRefused, EffectDelayed: it cannot be opened, or
        what was done with it failed and left nothing.
        """
        path = effect["payload"]["path"]
        held: list[int] = []
        try:
            *folders, name = path_parts(path)
            self._guard(self._folder)
            held.append(os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
            for each in folders:
                held.append(os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held[-1]))
            # Not blocking: a pipe in the place of a file would wait for its reader for ever.
            held.append(os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644, dir_fd=held[-1]))
            _refuse_strange(path, os.fstat(held[-1]))
            if flags & os.O_CREAT:  # before anything is written: an error after that would say that nothing was
                os.fsync(held[-2])
            yield held[-1]
        except ObjectError as error:
            raise EffectRefused(error.message, remedy="Name a file below the granted folder.") from error
        except Refused as error:
            raise EffectRefused(error.message, remedy=error.remedy) from error
        except FileNotFoundError as error:
            if len(held) <= len(folders):  # none was opened but folders, and not all of them
                raise _FolderMissingError(*error.args) from error
            raise
        except FileExistsError as error:
            raise _there_already(effect) from error
        except OSError as error:
            kind = EffectDelayed if error.errno in _PASSING else EffectRefused
            remedy = "Make room, or see to the file's permissions."
            raise kind(f"{path} cannot be written: {error.strerror}", remedy=remedy) from error
        finally:
            for file in held:
                os.close(file)


def _refuse_strange(path: str, found: os.stat_result) -> None:
    """Raise EffectRefused for what is no plain file of its own: a pipe, a program, or a file with a second name."""
    why = "no regular file" if not stat.S_ISREG(found.st_mode) else "a program" if found.st_mode & 0o111 else ""
    why = why or ("a file with a second name, which may stand in another folder" if found.st_nlink > 1 else "")
    if why:
        raise EffectRefused(f"{path} is {why}", remedy="Name another file.")


def _is_whole(effect: EffectData) -> bool:
    """Test if an effect writes a whole new file."""
    return effect["operation"] == "effect.write"


def _read_from(file: int, data: bytes) -> bytes:
    """Return the beginning of a file, a byte more than the data may have."""
    return os.pread(file, len(data) + 1, 0)


def _refuse_other(effect: EffectData, found: bytes, *, is_begun: bool) -> None:
    """Raise EffectRefused for a file that is there already, unless an earlier attempt may have left it so."""
    if not is_begun or not _data(effect).startswith(found):
        raise _there_already(effect)


def _there_already(effect: EffectData) -> EffectRefused:
    what = f"{effect['payload']['path']} is there already, and no file is written over"
    return EffectRefused(what, remedy="Name a new file, or append to this one.")


def _unreadable(effect: EffectData, why: str) -> EffectDelayed:
    what = f"{effect['payload']['path']} cannot be read back: {why}"
    return EffectDelayed(what, remedy="Bring back the folder, or the file, as it was.")


def _identity(found: os.stat_result) -> dict[str, int]:
    """Return what tells a file from another one under its name: a log that was rotated may have grown again."""
    return {"device": found.st_dev, "inode": found.st_ino}


def _data(effect: EffectData) -> bytes:
    return str(effect["payload"]["text"]).encode()


def _append(file: int, data: bytes, size: int) -> None:
    """Append all bytes and see that they are on the disk.

    Raises: OSError: nothing of them stands there. _LeftoverError: something may, and is found there, whole or cut.
    """
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    except OSError as error:
        if written := len(data) - len(left):
            _take_back(file, written, size, error)
        raise


def _take_back(file: int, written: int, size: int, why: OSError) -> None:
    """Cut off what was appended behind a size. Raises: _LeftoverError: another program appended too, or it fails."""
    with suppress(OSError):
        if os.fstat(file).st_size == size + written:
            os.ftruncate(file, size)
            return
    raise _LeftoverError(f"an append failed and was not taken back: {why.strerror}") from why
