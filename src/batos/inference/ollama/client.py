"""The one import of Ollama's client, which builds a client of its own, and checks of what the daemon sends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from batos.protocol.errors import WireError

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_MISLEADING = ("OLLAMA_HOST", "OLLAMA_API_KEY", *_PROXIES, *(name.upper() for name in _PROXIES))
#: Where httpx finds certificates. In a folder they are read when one is asked for, instead of all at once (30 ms).
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@contextmanager
def bare_environment() -> Iterator[None]:
    """Hide the variables that the import trips over, such as ALL_PROXY=socks5://... or a mistyped OLLAMA_HOST.

    The client that it builds for itself is never asked anything, so it is spared the reading of all certificates.
    """
    hidden = {name: os.environ.pop(name) for name in (*_MISLEADING, *_CERTIFICATES) if name in os.environ}
    os.environ["SSL_CERT_DIR"] = os.devnull
    try:
        yield
    finally:
        del os.environ["SSL_CERT_DIR"]
        os.environ.update(hidden)


with bare_environment():
    from ollama import (
        AsyncClient,
        ChatResponse,
        ListResponse,
        ProcessResponse,
        ProgressResponse,
        ResponseError,
        ShowResponse,
    )

__all__ = [
    "AsyncClient",
    "ChatResponse",
    "ListResponse",
    "ProcessResponse",
    "ProgressResponse",
    "ResponseError",
    "ShowResponse",
]


#: The largest whole number that every JSON reader holds exactly; no count, size or duration (ns) comes near it.
MOST = 2**53


def check_count(value: int | None, what: str) -> int:
    """Return a count from the daemon, 0 if it names none.

    Raises: WireError: the count is negative or beyond 2**53.
    """
    if value is None:
        return 0
    if 0 <= value <= MOST:
        return int(value)
    raise WireError(f"Ollama reports an impossible {what}: {'less than 0' if value < 0 else 'more than 2**53'}")


def clean(text: str | None) -> str:
    """Replace lone surrogates, which no file or terminal can hold, by U+FFFD; return "" for None."""
    if not text or text.isascii():
        return text or ""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
