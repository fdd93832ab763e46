"""The scripted mind of tests/minds, and the databases of tests/image."""

from __future__ import annotations

from tests.image.conftest import databases, postgres
from tests.minds.conftest import mind

__all__ = ["databases", "mind", "postgres"]
