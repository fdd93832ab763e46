"""The room of all that crosses a door: whoever reads it loads no database and no room of the system."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import batos.protocol

_MODULES = [each.name for each in pkgutil.iter_modules(batos.protocol.__path__, "batos.protocol.")]
#: Rooms and files below the protocol, which are all of batos that its modules may load.
_BELOW = {"batos", "batos.protocol.brief", "batos.protocol", *_MODULES}


def _loaded_by(modules: list[str]) -> set[str]:
    script = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(child.stdout.split())


def test_the_whole_room_loads_no_database() -> None:
    """In a process of its own all its modules are imported, and ZODB, its containers and its parts are not there."""
    loaded = _loaded_by(_MODULES)
    assert set(_MODULES) <= loaded
    databases = {"ZODB", "persistent", "BTrees", "transaction", "zc", "zodburi"}
    assert not databases & {each.partition(".")[0] for each in loaded}


def test_the_room_loads_no_other_room() -> None:
    """All that it takes of the system is the kinds of files."""
    assert {each for each in _loaded_by(_MODULES) if each.partition(".")[0] == "batos"} <= _BELOW


def test_documents_payloads_and_errors_load_no_library() -> None:
    """They are types of the language alone: the innermost rooms name them, the guardian among them."""
    light = [each for each in _MODULES if each.endswith(("_documents", "_payloads", ".errors"))]
    assert len(light) > 9
    assert "pydantic" not in _loaded_by(light)
