"""The process that reads: what it answers line by line, and what its children may not do."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from batos.memory.reading.reading_process import READERS

_MAIN = "from batos.memory.reading.reading_process import main; main()"


def answers(*asked: dict[str, Any]) -> list[dict[str, Any]]:
    """All lines that the process answers to requests."""
    lines = "".join(f"{json.dumps(each)}\n" for each in asked)
    ended = subprocess.run([sys.executable, "-c", _MAIN], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in ended.stdout.splitlines() if line]


def request(path: Path, format_: str, **limits: int) -> dict[str, Any]:
    """A request to read a file."""
    return {"path": str(path), "format": format_, "text_bytes": 2**20, "memory": 2**30, "seconds": 5, **limits}


def test_each_request_ends_with_a_line(tmp_path: Path) -> None:
    """Texts come first, then how it ended."""
    (tmp_path / "a.txt").write_bytes("Öl".encode("utf-16"))
    first, end, second, again = answers(*[request(tmp_path / "a.txt", "other_text")] * 2)
    assert first == second
    assert first["text"]["text"] == "Öl"
    assert end == again == {"end": ""}


def test_an_archive_that_unpacks_to_far_more_ends(tmp_path: Path) -> None:
    """All texts of a file together are bounded by its size: a few of them come, then the reason."""
    row = json.dumps({"role": "user", "content": "lamp " * 800_000})
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", f"[{', '.join([row] * 20)}]")
    *texts, last, _ = answers(request(tmp_path / "a.zip", "chats", text_bytes=2**23))
    assert 0 < len(texts) < 20
    assert last["unread"]["reason"] == "it unpacks to far more than its own size"


def test_every_format_has_a_reader() -> None:
    """The table names modules and functions that are there."""
    for module, function in READERS.values():
        found = __import__(f"batos.memory.reading.{module}", fromlist=[function])
        assert callable(getattr(found, function))
