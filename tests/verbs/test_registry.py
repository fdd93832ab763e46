"""All verbs by name: what their arguments refuse, and the room of declarations, which loads no database."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from batos.protocol.errors import ProtocolError
from batos.verbs.registry import read_args


@pytest.mark.parametrize(
    ("verb", "args", "field"),
    [
        ("sumbit", {}, "verb"),
        ("submit", {}, "args.brief"),
        ("submit", {"brief": {}, "follow": 1}, "args.follow"),
        ("wait", {"mission": 3}, "args.mission"),
        ("wait", {"mission": "last", "seconds": -1}, "args.seconds"),
        ("attach", {"sha256": "A" * 64}, "args.sha256"),
        ("attach", {"sha256": "a" * 64 + "\n"}, "args.sha256"),
        ("attach", {"sha256": "a" * 64, "offset": -1}, "args.offset"),
        ("missions", {"limit": 0}, "args.limit"),
        ("missions", {"limit": "20"}, "args.limit"),
        ("hello", {"x": 1}, "args.x"),
        ("send", {"receiver": "a", "selector": "b", "arguments": [1] * 99}, "args.arguments"),
    ],
)
def test_what_a_verb_does_not_take_names_the_field(verb: str, args: dict[str, Any], field: str) -> None:
    """A wrong verb or argument is named; nothing is converted, nothing is left over."""
    with pytest.raises(ProtocolError) as refused:
        read_args(verb, args)
    assert refused.value.field == field


def test_a_verb_that_comes_near_is_named() -> None:
    """A slip of the fingers is told what was meant."""
    with pytest.raises(ProtocolError, match="did you mean 'submit'"):
        read_args("sumbit", {})


def test_the_declarations_load_no_database() -> None:
    """In a process of its own all verbs are imported, and no room of the mind is there."""
    script = "import sys, batos.verbs.registry; print(*sys.modules)"
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    rooms = {each.split(".")[1] for each in child.stdout.split() if each.startswith("batos.")}
    assert rooms <= {"file_kinds", "protocol", "terminal", "verbs"}
