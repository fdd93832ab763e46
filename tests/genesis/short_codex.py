"""A codex that takes little to learn, for the tests that do not look at what a router learns of it."""

from __future__ import annotations

import re
from pathlib import Path

from batos.genesis.codex import codex as codices

#: The exemplars of one persona, the first of them as a group.
_MANY_EXEMPLARS = re.compile(r"(^exemplars = \[\n(?:    .*\n){22})(?:    .*\n)+\]", re.MULTILINE)


def short_codex(home: Path) -> None:
    """Put the shipped codex into a home, with so few exemplars that the router learns them in three requests."""
    folder = home / "codex"
    codices.install(folder)
    for path in folder.glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(_MANY_EXEMPLARS.sub(r"\1]", text), encoding="utf-8")
