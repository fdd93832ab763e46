"""All verbs by name: what their arguments refuse, and the room of declarations, which loads no database."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from batos.protocol.errors import ProtocolError
from batos.server.dispatch.reads import Reader
from batos.verbs.all_verbs import NOUNS, VERBS, read_args
from batos.verbs.wire_verb import WireVerb


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
    script = "import sys, batos.verbs.all_verbs; print(*sys.modules)"
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    rooms = {each.split(".")[1] for each in child.stdout.split() if each.startswith("batos.")}
    assert rooms <= {"protocol", "terminal", "verbs"}


ROOM = Path(__file__).resolve().parents[2] / "src" / "batos"
IMPORT = re.compile(r"^from batos\.verbs\.\w+ import (\([^)]*\)|[^\n]+)", re.MULTILINE)
#: The verbs that a file of the command line names, since their command does more than ask once.
BY_HAND = frozenset(
    """
    approve curate erase forget genesis grants_add grants_show heartbeat heartbeat_pause heartbeat_resume
    memories memories_edit
    method_redefine method_show missions rate recall redo replay resume show status turns undo wait why
    """.split()
)


@cache
def names_in(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", " ".join(IMPORT.findall(path.read_text(encoding="utf-8")))))


def readers(name: str) -> list[str]:
    """The rooms of the files that import a declaration, but the client, whose calls are a choice."""
    paths = (path.relative_to(ROOM) for path in ROOM.rglob("*.py") if name in names_in(path))
    return [path.parts[0] for path in paths if path.parts[0] != "client"]


def test_a_verb_touches_two_files() -> None:
    """Its declaration and its handler: parser, help, completion, wire, rights and text follow from these."""
    names = {each.name: name for noun in NOUNS for name, each in vars(noun).items() if isinstance(each, WireVerb)}
    rooms = {verb: readers(name) for verb, name in names.items()}
    assert rooms.keys() == VERBS.keys()
    assert {verb for verb, found in rooms.items() if "cli" in found} == BY_HAND
    typed = {verb for verb, each in VERBS.items() if each.typed}
    assert {verb: found for verb, found in rooms.items() if verb in typed - BY_HAND and found != ["server"]} == {}


def test_only_what_reads_is_asked_of_an_image_that_is_only_read() -> None:
    """The declarations and the handlers agree about which verbs these are."""
    reader: Any = None
    assert {verb for verb, each in VERBS.items() if each.reads} == set(Reader(reader).verbs())
