"""The machine that a process runs on: its id stays when its name changes, and is not the system's own."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from batos.image.nodes.lease import this_host


def test_a_machine_is_known_by_its_id_under_each_name(tmp_path: Path) -> None:
    """Two ids are two machines; a digest is kept, since the id itself is nobody's business."""
    file = tmp_path / "machine-id"
    file.write_text("0123456789abcdef0123456789abcdef\n")
    one, renamed = this_host(file, "one"), this_host(file, "another")
    assert (one.id, one.name, renamed.name) == (renamed.id, "one", "another")
    assert one.id not in file.read_text()
    file.write_text("f" * 32)
    assert this_host(file, "one").id != one.id


@pytest.mark.parametrize("content", [None, b"", b"uninitialized\n", b"\xff\xfe"])
def test_without_an_id_its_name_tells_it_apart(content: bytes | None, tmp_path: Path) -> None:
    """The file is not there, or has none yet, or cannot be read."""
    file = tmp_path / "machine-id"
    if content is not None:
        file.write_bytes(content)
    assert this_host(file, "one").id != this_host(file, "another").id
    assert this_host(file) == this_host(file, socket.gethostname())
