"""Caches of what texts come to, which hold no long text: what clients send stays no longer than it is needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

Made = TypeVar("Made")


def short(most: int, longest: int) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Cache as `lru_cache` of `most` entries; a call whose first argument is longer than `longest` is not kept."""

    def remembered(function: Callable[..., Made]) -> Callable[..., Made]:
        kept = lru_cache(maxsize=most)(function)

        @wraps(function)
        def asked(what: Any, *more: Any) -> Made:
            return kept(what, *more) if len(what) <= longest else function(what, *more)

        return asked

    return remembered
