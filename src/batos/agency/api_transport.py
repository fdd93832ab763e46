"""Sends the checked requests of described APIs by their grants: the kernel names host and secret, never a method."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from batos import home_folder
from batos.agency.apis.api_operations import ApiRequest, Json
from batos.agency.apis.method_sources import MOST_BODY
from batos.agency.look_ups.page_fetching import Fetcher, FetchLimits
from batos.agency.look_ups.web_addresses import AddressGate, PublicGate, ServiceGate, WebAddress, parse_address
from batos.protocol.errors import BriefError

#: The folder of the home that holds a file for each secret, named as its grant.
SECRETS: Final = "secrets"
#: The slot of a grant with the header of its secret.
SECRET_HEADER: Final = "secret_header"  # noqa: S105 - the name of a slot
#: The longest wait in seconds that a service asks for and gets, once.
_MOST_WAIT: Final = 3
#: Headers of a reply that a method is given.
_KEPT: Final = ("content-type", "retry-after", "link", "x-next-page", "x-total-count")


def _fetcher() -> Fetcher:
    return Fetcher("batos", limits=FetchLimits(wire=MOST_BODY, decoded=MOST_BODY, redirections=0))


@dataclass(frozen=True, slots=True)
class ApiSender:
    """Sends requests, with the secrets of one home; it follows no redirection."""

    home: Path
    fetcher: Fetcher = field(default_factory=_fetcher)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def read_secret(self, name: str) -> str:
        """Return the secret of a grant. Raises: BriefError: the home has none, or not for its owner alone."""
        place = self.home / SECRETS / name
        try:
            kept, why = home_folder.read(place).decode("ascii").strip(), "it is empty"
        except (OSError, ValueError) as error:
            kept, why = "", getattr(error, "strerror", None) or "it is no plain line"
        if not kept or not kept.isprintable():
            remedy = f"(umask 077; mkdir -p {place.parent}; cat > {place}) reads it from stdin; the secret is one line."
            raise BriefError(f"the secret of {name} is not in {place}: {why}", field="secret_header", remedy=remedy)
        return kept

    async def send(self, grant: Mapping[str, object], request: ApiRequest) -> dict[str, Json]:
        """Return the reply to a request: {status, headers, body, address}.

        Where the service asks to wait for some seconds, it is asked once more.

        Raises: Refused: the address goes beyond the grant. LookUpFailed: the service does not answer, or with too much.
        BriefError: the home has no secret for it.
        """
        base = parse_address(str(grant["target"]))
        header = str(grant.get(SECRET_HEADER) or "")
        secret = await asyncio.to_thread(self.read_secret, str(grant["name"])) if header else ""
        more = {header: secret} if header else {}
        address = base.at(request.target)
        page = await self.fetcher.fetch(address, gate_of(base), ("application/json",), more)
        wait = page.headers.get("retry-after", "")
        if page.status in (429, 503) and wait.isdigit() and int(wait) <= _MOST_WAIT:
            await self.sleep(int(wait))
            page = await self.fetcher.fetch(address, gate_of(base), ("application/json",), more)
        body = page.body.decode(page.charset or "utf-8", "replace")
        for each in {secret, secret.rpartition(" ")[2]}:  # some services repeat what they were given
            body = body.replace(each, "(secret)") if len(each) >= 4 else body
        kept: dict[str, Json] = {name: page.headers[name] for name in _KEPT if name in page.headers}
        return {"status": page.status, "headers": kept, "body": body, "address": str(address)}


def gate_of(base: WebAddress) -> AddressGate:
    """Return the gate of an API: a service of this machine by its address, any other by its public host."""
    return ServiceGate(base) if is_own(base) else PublicGate((base.host,), ports=(base.port,))


def is_own(address: WebAddress) -> bool:
    """Test if an address is of this machine: what is asked there does not leave it."""
    return address.is_literal and ipaddress.ip_address(address.host).is_loopback
