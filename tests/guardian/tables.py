"""Tables of method sources under tests/data/guardian: each entry is headed by `=== name`."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "data" / "guardian"
HEAD = re.compile(r"^=== (.+)\n", re.MULTILINE)


def table(name: str) -> dict[str, str]:
    """The sources of one table by their names."""
    parts = HEAD.split((FOLDER / f"{name}.txt").read_text(encoding="utf-8"))[1:]
    named = dict(zip(parts[::2], parts[1::2], strict=True))
    assert len(named) == len(parts) // 2, "a name is used twice"
    return named
