"""Caches that keep no long texts, so that what clients send is not held longer than needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

Made = TypeVar("Made")


def short(most: int, longest: int) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Return a decorator that caches `most` calls, but none whose first argument is longer than `longest`."""

    def remember(function: Callable[..., Made]) -> Callable[..., Made]:
        kept = lru_cache(maxsize=most)(function)

        @wraps(function)
        def ask(what: Any, *more: Any) -> Made:
            return kept(what, *more) if len(what) <= longest else function(what, *more)

        return ask

    return remember
