"""Addresses and sizes as people write them: parses them, and hides passwords when they are shown."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

#: The port of an address that names none, by its scheme.
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9._:%-]+")
_PLACE = re.compile(r"[A-Za-z0-9_.:%/~\[\]-]+")  # host, port and path: no blank, no query
_USERINFO = ("@", "\uff20", "\ufe6b")  # also as other writings have it, which URLs fold into it


def has_userinfo(address: str) -> bool:
    """Test if an address has, or may have, a user and password before its host: then it must not be shown."""
    return any(sign in address for sign in _USERINFO)


def daemon_url(value: str) -> str:
    """Return the URL for a value of `OLLAMA_HOST`, with scheme and port filled in as Ollama's own tools do.

    The address on which a daemon listens everywhere (0.0.0.0, [::]) becomes one of this machine. Blanks and quotes
    around the value are left out. Raises ValueError if the value is no address.

    >>> daemon_url("127.0.0.1")
    'http://127.0.0.1:11434'
    >>> daemon_url("http://box:8080/"), daemon_url('"box"'), daemon_url("[::]")
    ('http://box:8080', 'http://box:11434', 'http://localhost:11434')
    """
    if has_userinfo(value):
        raise ValueError("an Ollama address without a user and password")
    given = value.strip().strip("\"'").strip() or "127.0.0.1"
    scheme, separator, rest = given.partition("://")
    if not separator:
        scheme, rest = "http", f"[{given}]" if given.count(":") > 1 and "[" not in given else given
    scheme = scheme.lower()
    try:
        split = urlsplit(f"{scheme}://{rest}")
        port, host = split.port, split.hostname or "127.0.0.1"
        if scheme not in _PORTS or not rest or not _HOST.fullmatch(host) or not _PLACE.fullmatch(rest):
            raise ValueError("not an address")
        host = _reachable(host)
    except ValueError as error:
        raise ValueError("where an Ollama daemon listens: host, host:port or http://host:port") from error
    if port is None:
        port = _PORTS[scheme] if separator else 11434
    return f"{scheme}://{host}:{port}{split.path.rstrip('/')}"


def _reachable(host: str) -> str:
    """Return the host as a URL writes it.

    Raises: ValueError: the text is no host.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if ":" in host or not all(0 < len(label) < 64 for label in host.rstrip(".").split(".")):
            raise
        return host
    if address.is_unspecified:
        # A daemon that listens everywhere may do so in the older protocol alone: a name is tried in both.
        return "localhost" if address.version == 6 else "127.0.0.1"
    return f"[{address}]" if address.version == 6 else str(address)


#: Names of secrets among a storage URI's keywords, or in a keyword that holds keywords.
_SECRET = re.compile(r"((?:password|passwd|pwd|secret|token)(?:=|%3D))[^&;\s]+", re.IGNORECASE)
#: A password before the host: it may hold every sign but a blank, so the last `@` ends it.
_PASSWORD = re.compile(r"(://[^:/?#\s]*:)\S*(?=@)")


def mask_passwords(uri: str) -> str:
    """Replace the passwords in a storage URI by `***`.

    >>> mask_passwords("postgres://ada:secret@box/image?sslmode=require")
    'postgres://ada:***@box/image?sslmode=require'
    >>> mask_passwords("zeo://box:9001?username=ada&password=secret")
    'zeo://box:9001?username=ada&password=***'
    """
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1***", uri))


_UNITS = {"": 1 << 30, "g": 1 << 30, "gib": 1 << 30, "gb": 10**9, "m": 1 << 20, "mib": 1 << 20, "mb": 10**6}
_SIZE = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([A-Za-z]{0,3})\s*", re.ASCII)

#: No card has more than this, in bytes.
MOST_BYTES = 1 << 50


def bytes_of(text: str) -> int:
    """Parse a size and return bytes; a number without a unit counts GiB.

    >>> bytes_of("8") == bytes_of("8GiB") == 8 * 2**30
    True
    >>> bytes_of("6500MiB")
    6815744000

    Raises: ValueError: the text is no size.
    """
    found = _SIZE.fullmatch(text)
    unit = _UNITS.get(found[2].lower()) if found else None
    size = float(found[1]) * unit if found and unit else -1.0
    if not 0 <= size <= MOST_BYTES:
        raise ValueError("a size such as 8, 8GiB or 6500MiB")
    return round(size)
