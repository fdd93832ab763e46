"""The one import of Ollama's client, which builds a client of its own and fails on some proxy settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

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
