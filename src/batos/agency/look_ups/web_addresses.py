"""The gate of addresses: which a look-up may reach, by their form, and by what their names resolve to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Protocol
from urllib.parse import quote, urljoin, urlsplit

import idna

from batos.protocol.errors import Refused

_PORTS: Final = {"http": 80, "https": 443}
_NAT64: Final = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_SIX_TO_FOUR: Final = ipaddress.ip_network("2002::/16")
#: The last label of a host that a resolver may take for a number: `127.1`, `0x7f.1`, `2130706433`.
_NUMBER: Final = re.compile(r"(?:\d+|0x[0-9a-f]*)", re.IGNORECASE)
#: The signs that a path and a query keep; everything else is written by percent signs.
_KEPT: Final = "/%:=&?~+!$,;'@()*[]|-._"
#: The most characters of an address.
LONGEST: Final = 2_048


def is_public(text: str) -> bool:
    """Test if an IP address is one of the public internet, also where another is written within it.

    >>> is_public("93.184.215.14"), is_public("64:ff9b::7f00:1"), is_public("100.64.0.1")
    (True, False, False)
    """
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        if found.teredo is not None or found in _NAT64[1]:
            return False
        within = found.ipv4_mapped
        if found in _NAT64[0] or int(found) >> 32 == 0:
            within = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        elif found in _SIX_TO_FOUR:
            within = ipaddress.IPv4Address((int(found) >> 80) & 0xFFFFFFFF)
        if within is not None:
            return is_public(str(within))
    return found.is_global and not found.is_multicast and not found.is_reserved


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An http address: `host` is ASCII in small letters, or an IP address; `target` is its path with the query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Return host and port as the header Host has them: without the scheme's own port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Return the address without a path."""
        return f"{self.scheme}://{self.authority}"

    @property
    def path(self) -> str:
        """Return the path without the query."""
        return self.target.partition("?")[0]

    @property
    def is_literal(self) -> bool:
        """Test if the host is an IP address."""
        return _is_ip(self.host)

    def __str__(self) -> str:
        """Return the address as text."""
        return f"{self.origin}{self.target}"

    def at(self, target: str) -> WebAddress:
        """Return the address of another path of the same origin."""
        return replace(self, target=target)

    def join(self, location: str) -> WebAddress:
        """Return where a redirection of this address leads. Raises: Refused: to no address, or from https to http."""
        found = parse_address(urljoin(str(self), location))
        if self.scheme == "https" and found.scheme == "http":
            raise _refusal(f"{self} leads to {found.origin}, which is not encrypted", "Name an address of https.")
        return found


def parse_address(text: str) -> WebAddress:
    """Return an address in its one form. Raises: Refused: it is none of http or https, or is written to deceive."""
    if len(text) > LONGEST or not text.isprintable() or "\\" in text or " " in text.strip():
        raise _refusal(f"{text[:80]!r} is no address", "Give one like https://example.org/page.")
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as error:
        raise _refusal(f"{text[:80]!r} is no address: {error}", "Give one like https://example.org/page.") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise _refusal(f"{text[:80]!r} is no address of http or https", "Give one like https://example.org/page.")
    if parts.username is not None or parts.password is not None:
        raise _refusal("an address with a user's name in it is not fetched", "Leave out what stands before the @.")
    target = quote(parts.path or "/", safe=_KEPT) + (f"?{quote(parts.query, safe=_KEPT)}" if parts.query else "")
    return WebAddress(parts.scheme, _host_of(parts.hostname), _PORTS[parts.scheme] if port is None else port, target)


def _host_of(name: str) -> str:
    """Return a host in its one form. Raises: Refused: it is no name that a resolver takes as it is written."""
    if _is_ip(name):
        return str(ipaddress.ip_address(name))
    try:
        host = idna.encode(name.rstrip("."), uts46=True).decode("ascii").lower()
    except idna.IDNAError:
        raise _refusal(f"{name[:80]!r} is no name of a host", "Write the name as its site does.") from None
    if _is_ip(host) or _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise _refusal(f"{name[:80]!r} is a number, which hides where it leads", "Name the host by its name.")
    return host


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _refusal(what: str, remedy: str) -> Refused:
    return Refused(what, field="address", remedy=remedy)


class AddressGate(Protocol):
    """Decides which addresses a look-up may reach. Every address of a redirection passes it anew."""

    def check(self, address: WebAddress) -> None:
        """Raise Refused where an address goes beyond the grant."""
        ...

    def admits(self, ip: str) -> bool:
        """Test if a connection to an IP address, to which the name resolved, may be made."""
        ...


@dataclass(frozen=True, slots=True)
class PublicGate:
    """Lets through the public internet: of `hosts` alone and below `paths` alone, where any are named.

    A host that begins with `*.` stands for all below it. A `host` may have been granted as an IP address.
    """

    hosts: Collection[str] = ()
    paths: Collection[str] = ()
    ports: Collection[int] = ()

    def check(self, address: WebAddress) -> None:
        """Raise Refused: host, path or port is not granted, or the host is an IP address that is not granted."""
        if address.port not in (80, 443, *self.ports):
            raise _refusal(f"port {address.port} is not granted", "Grant it with --ports.")
        if (self.hosts or address.is_literal) and not any(_matches(address.host, each) for each in self.hosts):
            raise _refusal(f"{address.host} is not granted", "Grant the host: `batos grants add fetch ... --hosts`.")
        if self.paths and not any(is_below(address.path, each) for each in self.paths):
            raise _refusal(f"{address.path[:80]} is below no granted path", "Grant it with --paths.")

    def admits(self, ip: str) -> bool:
        """Test if an IP address is public."""
        return is_public(ip)


@dataclass(frozen=True, slots=True)
class ServiceGate:
    """Lets through one service that a person named, wherever it is: its own host and port, below its path."""

    base: WebAddress

    def check(self, address: WebAddress) -> None:
        """Raise Refused: the address is of another service."""
        if address.origin != self.base.origin or not is_below(address.path, self.base.path):
            raise _refusal(f"{address} is not of {self.base}", "A granted service is left for no other address.")

    def admits(self, ip: str) -> bool:
        """Test if an IP address is one: the person knows where the service is."""
        return _is_ip(ip.partition("%")[0])


def _matches(host: str, granted: str) -> bool:
    return host.endswith(granted[1:]) if granted.startswith("*.") else host == granted


def is_below(path: str, folder: str) -> bool:
    """Test if a path is a granted one, or below it; one that climbs, also in percent signs, is below none.

    >>> is_below("/3/library", "/3"), is_below("/30", "/3"), is_below("/3/%2e%2e/x", "/3")
    (True, False, False)
    """
    plain = path.replace("%2e", ".").replace("%2E", ".").replace("%2f", "/").replace("%2F", "/")
    if ".." in plain.split("/"):
        return False
    top = folder.rstrip("/")
    return plain == top or plain.startswith(f"{top}/")
