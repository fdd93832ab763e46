"""The scripted mind of tests/minds."""

from __future__ import annotations

from tests.minds.conftest import mind

__all__ = ["mind"]
