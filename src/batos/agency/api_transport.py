"""Sends the checked requests of described APIs by their grants: the kernel names host and secret, never a method."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from batos import private_files
from batos.agency.apis.operations import ApiRequest, Json
from batos.agency.apis.sources import MOST_BODY
from batos.agency.sinks import check_address
from batos.protocol.errors import BriefError, ObjectError, Refused

#: The folder of the home that holds a file for each secret, named as its grant.
SECRETS: Final = "secrets"
#: The slots of a grant for an API: the header of its secret, and that it was granted to change things.
SECRET_HEADER, WRITES = "secret_header", "writes"
#: Seconds that a connection, and the longest wait that a service asks for, may take.
_SECONDS, _MOST_WAIT = 15.0, 3.0
#: Headers of a reply that a method is given.
_KEPT: Final = ("content-type", "retry-after", "link", "x-next-page", "x-total-count")


@dataclass(frozen=True, slots=True)
class ApiSender:
    """Sends requests, with the secrets of one home."""

    home: Path

    def check_secret(self, name: str) -> None:
        """Check that the home has a secret for a grant. Raises: BriefError: it has none, or not for its owner alone."""
        try:
            kept = private_files.read(self.home / SECRETS / name).strip()
        except OSError as error:
            kept, why = b"", error.strerror or "it cannot be read"
        else:
            why = "it is empty"
        if not kept or not kept.isascii() or b"\n" in kept:
            place = self.home / SECRETS / name
            remedy = f"(umask 077; mkdir -p {place.parent}; cat > {place}) reads it from stdin; the secret is one line."
            raise BriefError(f"the secret of {name} is not in {place}: {why}", field="secret_header", remedy=remedy)

    async def send(self, grant: Mapping[str, object], request: ApiRequest) -> dict[str, Json]:
        """Return the reply to a request: {status, headers, body, address}.

        No redirection is followed; where the service asks to wait for some seconds, it is asked once more.

        Raises: Refused: the grant does not allow it, or the service does not answer.
        """
        headers = {"Accept": "application/json", "User-Agent": "batos", "Connection": "close"}
        name, header = str(grant["name"]), str(grant.get(SECRET_HEADER) or "")
        if header:
            self.check_secret(name)
            headers[header] = private_files.read(self.home / SECRETS / name).decode("ascii").strip()
        reply = await asyncio.to_thread(_exchange, str(grant["target"]), request, headers)
        told = dict(reply["headers"]) if isinstance(reply["headers"], dict) else {}
        wait = str(told.get("retry-after", ""))
        if reply["status"] in (429, 503) and wait.isdigit() and int(wait) <= _MOST_WAIT:
            await asyncio.sleep(int(wait))
            reply = await asyncio.to_thread(_exchange, str(grant["target"]), request, headers)
        return reply


def check_api_address(target: str) -> str:
    """Return the address of an API's host as it is kept: without a path.

    Raises: BriefError, Refused: it is none of this machine.
    """
    parts = urlsplit(check_address(target))
    return f"{parts.scheme}://{parts.netloc}"


def _exchange(target: str, request: ApiRequest, headers: Mapping[str, str]) -> dict[str, Json]:
    """Send a request and read at most MOST_BODY bytes of the reply. Raises: Refused."""
    parts = urlsplit(target)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
    body = None if request.body is None else json.dumps(request.body).encode()
    kind = {} if body is None else {"Content-Type": "application/json"}
    try:
        connection.request(request.method, request.target, body, {**headers, **kind})
        answer = connection.getresponse()
        read = answer.read(MOST_BODY + 1)
    except (OSError, http.client.HTTPException) as error:
        what = f"{target} does not answer: {type(error).__name__}"
        raise Refused(what, remedy="See whether the service runs, and what `batos grants` names.") from error
    finally:
        connection.close()
    if len(read) > MOST_BODY:
        raise Refused(f"{target} answered with more than {MOST_BODY:,} bytes", remedy="Ask for a part of it.")
    kept: dict[str, Json] = {name: value for name in _KEPT if (value := answer.getheader(name)) is not None}
    text = read.decode("utf-8", "replace")
    return {
        "status": answer.status,
        "headers": kept,
        "body": _scrub(text, headers),
        "address": f"{target}{request.target}",
    }


def _scrub(text: str, headers: Mapping[str, str]) -> str:
    """Return a reply without the secret, which some services repeat."""
    for name, value in headers.items():
        if name not in ("Accept", "User-Agent", "Connection"):
            for each in {value, value.rpartition(" ")[2]}:
                text = text.replace(each, "(secret)") if len(each) >= 4 else text
    return text


def refuse_writes(grant: Mapping[str, object], request: ApiRequest) -> None:
    """Check that a request only reads, or that its grant allows more. Raises: ObjectError."""
    if request.method not in ("GET", "HEAD") and not grant.get(WRITES):
        what = f"{request.method} {request.path} changes something, and the grant is for reading"
        raise ObjectError(what, remedy="Operations that change something are not offered.")
