"""The end of every bench: one JSON object as the last line of stdout, with the machine and the goals."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure and what it should be: `at_most` or `at_least` the goal. A value of None was not measured."""

    name: str
    value: float | None
    goal: float
    sense: Literal["at_most", "at_least"] = "at_most"

    @property
    def ok(self) -> bool:
        """Test if the figure was measured and meets its goal."""
        if self.value is None:
            return False
        return self.value <= self.goal if self.sense == "at_most" else self.value >= self.goal

    def as_dict(self) -> dict[str, Any]:
        """Return a goal as CONTRACT shows it."""
        return {"name": self.name, "value": self.value, "goal": self.goal, "ok": self.ok}


def machine() -> dict[str, Any]:
    """Return the machine on which this was measured, and its load (load average of one minute)."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # no Linux
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def report(values: Mapping[str, Any], goals: Sequence[Goal], json_file: Path | None = None) -> None:
    """Print the document on one line, and write it to `json_file` too; missed goals are told on stderr."""
    document = {**values, "machine": machine(), "goals": [goal.as_dict() for goal in goals]}
    for goal in goals:
        if not goal.ok:
            print(f"missed: {goal.name} is {goal.value}, the goal is {goal.sense} {goal.goal}", file=sys.stderr)
    if json_file is not None:
        json_file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(document), flush=True)
