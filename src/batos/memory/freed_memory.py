"""Gives memory that is free back to the system: what many small commits leave behind is scattered, and is not given."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


def give_back() -> bool:
    """Give free memory of this process back to the system; return False where the C library cannot."""
    trim = _find_trim()
    return trim is not None and bool(trim(0))


@cache
def _find_trim() -> Any:
    """Return the function of the GNU C library that does it; None for another library."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
