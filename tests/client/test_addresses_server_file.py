"""The server's note: whole or not there, and never mistaken for another process's."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from batos.client import addresses
from batos.client.addresses import ServerRecord
from batos.protocol.errors import DiskFull


def mine(**change: object) -> ServerRecord:
    given = {"pid": os.getpid(), "born": addresses.birth_time(os.getpid()) or "", "started": "now", "bind": "tcp://127.0.0.1:1",
             "events": "tcp://127.0.0.1:2", "bind_by": "plain", "events_by": "plain", "batos": "0"}  # fmt: skip
    return ServerRecord(**{**given, **change})  # type: ignore[arg-type]  # what a test puts wrong


def test_a_note_is_read_as_it_was_written_for_its_owner_alone(tmp_path: Path) -> None:
    """Written, it is there whole; removed, it is gone; nothing else lies about."""
    assert addresses.running_server(tmp_path) is None
    addresses.write_record(tmp_path, mine())
    assert (tmp_path / "server.json").stat().st_mode & 0o777 == 0o600
    assert addresses.running_server(tmp_path) == mine()
    addresses.remove_record(tmp_path, mine(started="before"))
    assert addresses.running_server(tmp_path) == mine()
    addresses.remove_record(tmp_path, mine())
    assert list(tmp_path.iterdir()) == []


def test_a_note_of_a_process_that_ended_is_ignored(tmp_path: Path) -> None:
    """Its number may be free, or another's by now: that one was born at another time."""
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    addresses.write_record(tmp_path, mine(pid=int(done.stdout)))
    assert addresses.running_server(tmp_path) is None
    addresses.write_record(tmp_path, mine(born="1"))
    if Path("/proc/self/stat").exists():
        assert addresses.running_server(tmp_path) is None
    addresses.write_record(tmp_path, mine(pid=0))
    assert addresses.running_server(tmp_path) is None
    addresses.write_record(tmp_path, mine(pid=2**70))
    assert addresses.running_server(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "null", '{"pid": 1}', "[" * 100_000])
def test_what_is_no_note_is_none(tmp_path: Path, text: str) -> None:
    """A file that cannot be understood is no server."""
    (tmp_path / "server.json").write_text(text, encoding="utf-8")
    assert addresses.read_record(tmp_path) is None


@pytest.mark.parametrize(
    "change",
    [
        {"pid": "1"},
        {"pid": True},
        {"bind": None},
        {"more": 1},
        {"bind": "tcp://192.0.2.1:1"},
        {"bind": "tcp://x"},
        {"events_by": "null"},
    ],
)
def test_a_note_of_wrong_types_is_none(tmp_path: Path, change: dict[str, object]) -> None:
    """Each field is what it should be, or the note is none; one by which the token would leave the machine is none."""
    addresses.write_record(tmp_path, mine())
    found = json.loads((tmp_path / "server.json").read_text("utf-8"))
    (tmp_path / "server.json").write_text(json.dumps({**found, **change}), encoding="utf-8")
    assert addresses.read_record(tmp_path) is None


def test_what_is_no_small_file_is_not_read(tmp_path: Path) -> None:
    """A pipe is not waited for, an endless file and a long one are not read, nor is a folder."""
    path = tmp_path / "server.json"
    os.mkfifo(path)
    assert addresses.read_record(tmp_path) is None
    path.unlink()
    path.symlink_to("/dev/zero")
    assert addresses.read_record(tmp_path) is None
    path.unlink()
    path.write_text(json.dumps(asdict(mine())) + " " * 70_000)
    assert addresses.read_record(tmp_path) is None
    path.unlink()
    path.mkdir()
    assert addresses.read_record(tmp_path) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_strangers_note_is_none(tmp_path: Path) -> None:
    """Who may write into a home, or owns it, cannot send its clients, and their token, elsewhere."""
    addresses.write_record(tmp_path, mine())
    os.chown(tmp_path / "server.json", 4321, -1)
    assert addresses.read_record(tmp_path) is None
    os.chown(tmp_path, 4321, -1)
    assert addresses.read_record(tmp_path) is None


def test_a_full_disk_is_told_as_one(tmp_path: Path) -> None:
    """Not as a fault of ours; nothing lies about afterwards."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, before[1]))
    try:
        with pytest.raises(DiskFull, match="no room"):
            addresses.write_record(tmp_path, mine())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []
