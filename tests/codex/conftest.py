"""The codex and the daemon of tests/genesis."""

from __future__ import annotations

from tests.genesis.conftest import codex, connection, daemon, edit, folder, stage

__all__ = ["codex", "connection", "daemon", "edit", "folder", "stage"]
