"""The emulator and the users of tests/cli."""

from __future__ import annotations

from tests.cli.conftest import grown, ollama, user

__all__ = ["grown", "ollama", "user"]
