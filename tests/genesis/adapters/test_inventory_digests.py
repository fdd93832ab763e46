"""Digests that are computed once for each content of a file."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from tests.genesis.ticks import change_just_now, wait_for_a_tick

from batos.genesis.adapters.inventory import Digests


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def aged(path: Path, data: bytes, seconds: int = 60) -> Path:
    """A file that was written some time ago."""
    path.write_bytes(data)
    then = path.stat().st_mtime_ns - seconds * 10**9
    os.utime(path, ns=(then, then))
    return path


def test_a_digest_is_the_files(tmp_path: Path) -> None:
    """It is sha256 in the daemon's form, with the colon."""
    path = aged(tmp_path / "a", b"abc")
    assert Digests().digest(path) == digest_of(b"abc")


def test_a_file_is_read_once(tmp_path: Path) -> None:
    """What is written down is believed by the stat alone, also in another process: here of a file nobody may read."""
    known = tmp_path / "known.json"
    path = aged(tmp_path / "a", b"abc")
    first = Digests(known)
    first.digest(path)
    first.save()
    rows = json.loads(known.read_text())["files"]
    rows[str(path)][4] = digest_of(b"believed")
    known.write_text(json.dumps({"v": 1, "files": rows}))
    assert Digests(known).digest(path) == digest_of(b"believed")


@pytest.mark.parametrize("how", ["size", "time", "inode"])
def test_a_changed_file_is_read_again(tmp_path: Path, how: str) -> None:
    """Another size, time or inode is another content."""
    known = tmp_path / "known.json"
    path = aged(tmp_path / "a", b"abc")
    first = Digests(known)
    first.digest(path)
    first.save()
    before = path.stat()
    if how == "inode":
        aged(tmp_path / "b", b"xyz").replace(path)
        os.utime(path, ns=(before.st_mtime_ns, before.st_mtime_ns))
    else:
        path.write_bytes(b"xyz" if how == "time" else b"wxyz")
        if how == "size":
            os.utime(path, ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert Digests(known).digest(path) == digest_of(path.read_bytes())


def test_a_file_that_just_changed_is_not_written_down(tmp_path: Path) -> None:
    """It may change again within the same tick of its clock, and nothing would tell."""
    known = tmp_path / "known.json"
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    change_just_now(path)
    digests = Digests(known)
    digests.digest(path)
    digests.save()
    assert json.loads(known.read_text())["files"] == {}


def test_a_change_that_keeps_its_time(tmp_path: Path) -> None:
    """Another content of the same size under the old time of change is found by the system's own."""
    path = aged(tmp_path / "a", b"abc")
    stat = path.stat()
    digests = Digests()
    digests.digest(path)
    wait_for_a_tick(path)
    path.write_bytes(b"xyz")
    os.utime(path, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
    assert digests.digest(path) == digest_of(b"xyz")


def test_files_that_are_gone_are_dropped(tmp_path: Path) -> None:
    """Only what was asked for stays written down."""
    known = tmp_path / "known.json"
    paths = [aged(tmp_path / name, name.encode()) for name in "ab"]
    first = Digests(known)
    for path in paths:
        first.digest(path)
    first.save()
    second = Digests(known)
    second.digest(paths[0])
    second.save()
    assert list(json.loads(known.read_text())["files"]) == [str(paths[0])]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"v": 2}', '{"v": 1, "files": []}', '{"v": 1, "files": {"a": 1}}',
     '{"v": 1, "files": {"a": []}}', '{"v": 1, "files": {"a": [1, 2, "x", "y"]}}',
     '{"v": 1, "files": {"a": [1, 2, 3, "md5:0"]}}', "[" * 100_000],
)  # fmt: skip
def test_a_damaged_record_is_none(tmp_path: Path, text: str) -> None:
    """What cannot be read costs reading the files again, and nothing else."""
    known = tmp_path / "known.json"
    known.write_text(text)
    path = aged(tmp_path / "a", b"abc")
    digests = Digests(known)
    assert digests.digest(path) == digest_of(b"abc")
    digests.save()
    assert list(json.loads(known.read_text())["files"]) == [str(path)]


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """What is remembered is a convenience."""
    digests = Digests(tmp_path / "absent" / "known.json")
    digests.digest(aged(tmp_path / "a", b"abc"))
    digests.save()
    assert not (tmp_path / "absent").exists()


def test_a_pipe_where_digests_are_remembered_is_not_waited_for(tmp_path: Path) -> None:
    """Nothing is known then, and what is written down takes its place."""
    known, weights = tmp_path / "known.json", tmp_path / "lora.gguf"
    os.mkfifo(known)
    weights.write_bytes(b"weights")
    os.utime(weights, (0, 0))
    digests = Digests(known)
    assert digests.digest(weights).startswith("sha256:")
    digests.save()
    assert known.is_file()
