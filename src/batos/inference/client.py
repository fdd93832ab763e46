"""The one import of Ollama's client, which builds a client of its own and fails on some proxy settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_MISLEADING = ("OLLAMA_HOST", "OLLAMA_API_KEY", *_PROXIES, *(name.upper() for name in _PROXIES))


@contextmanager
def bare_environment() -> Iterator[None]:
    """Hide the variables that the import trips over, such as ALL_PROXY=socks5://... or a mistyped OLLAMA_HOST."""
    hidden = {name: os.environ.pop(name) for name in _MISLEADING if name in os.environ}
    try:
        yield
    finally:
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
