"""Methods as a small model writes them: how each of tests/data/guardian/small_models is called, and what it gives."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "data" / "guardian" / "small_models"
_CALL = re.compile(r"# (\w+)\((.*)\) -> (.*)")


@dataclass(frozen=True)
class Sample:
    """One source: the shape that it stands for, its call, and the result and slots that Python itself gives."""

    name: str
    selector: str
    args: list[Any]
    expected: Any
    slots: dict[str, Any]
    after: dict[str, Any]
    replies: list[str]
    source: str

    @property
    def shape(self) -> str:
        """The first word of its name."""
        return self.name.partition("_")[0]


def samples() -> list[Sample]:
    """All of them."""
    return [_read(path) for path in sorted(FOLDER.glob("*.txt"))]


def _read(path: Path) -> Sample:
    first, second, source = path.read_text(encoding="utf-8").split("\n", 2)
    found = _CALL.fullmatch(first)
    assert found is not None, path.name
    meta = json.loads(second.removeprefix("# "))
    args, slots = ast.literal_eval(f"[{found[2]}]"), meta["slots"]
    return Sample(
        path.stem,
        found[1],
        args,
        ast.literal_eval(found[3]),
        slots,
        meta.get("after", slots),
        meta.get("infer", []),
        source,
    )
