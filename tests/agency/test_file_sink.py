"""The sink of files: appends below its folder alone, and can be read back whatever happened in the middle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agency.sink_laws import SinkLaws

from batos.agency.file_sink import FileSink
from batos.agency.payloads import append_payload, path_parts
from batos.agency.sinks import EffectRefused, Sink
from batos.errors import ObjectError


def appending(path: str, text: str = "A line.") -> dict[str, Any]:
    """An effect that appends."""
    payload = {"path": path, "text": f"{text}\n"}
    return {"effect": "e-1-1", "key": "k", "operation": "effect.append", "payload": payload, "before": None}


class TestLaws(SinkLaws):
    """A file sink is a queryable sink."""

    @pytest.fixture
    def sink(self, tmp_path: Path) -> Sink:
        """One that appends to a folder."""
        return FileSink(tmp_path)

    def effect(self) -> dict[str, Any]:
        """A line of a file that is not there yet."""
        return appending("log.txt")

    def count(self, tmp_path: Path) -> int:
        """How often the line stands there."""
        file = tmp_path / "log.txt"
        return file.read_text().count("A line.\n") if file.exists() else 0


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../x", "a//x", ".", "a\0b", "a\nb", "x" * 300, "a/" * 9 + "b"])
def test_a_path_that_is_none_below_the_folder_is_refused(path: str, tmp_path: Path) -> None:
    """When it is staged, and by the sink itself."""
    with pytest.raises(ObjectError):
        append_payload([path, "x"])
    with pytest.raises(EffectRefused):
        FileSink(tmp_path).release(appending(path))


@given(st.text(max_size=40))
def test_no_name_leads_out_of_the_folder(path: str) -> None:
    """Whatever is taken is a list of plain names."""
    try:
        parts = path_parts(path)
    except ObjectError:
        return
    assert all(part not in ("", ".", "..") and "/" not in part and "\0" not in part for part in parts)
    assert not os.path.normpath("/".join(("granted", *parts))).startswith("..")


def test_links_and_what_is_no_file_are_refused(tmp_path: Path) -> None:
    """A link to a file or a folder outside, a pipe, a folder; nothing outside is touched."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "secret.txt").write_text("kept")
    (inside / "file.txt").symlink_to(outside / "secret.txt")
    (inside / "folder").symlink_to(outside)
    (inside / "sub").mkdir()
    os.mkfifo(inside / "pipe")
    sink = FileSink(inside)
    for path in ("file.txt", "folder/secret.txt", "folder/new.txt", "pipe", "sub"):
        with pytest.raises(EffectRefused):
            sink.release(appending(path))
    assert (outside / "secret.txt").read_text() == "kept"
    assert [each.name for each in outside.iterdir()] == ["secret.txt"]
    with pytest.raises(EffectRefused, match="not there"):
        sink.release(appending("absent/x.txt"))
    sink.release(appending("sub/x.txt"))
    assert (inside / "sub" / "x.txt").read_text() == "A line.\n"


def test_a_text_that_was_cut_is_completed(tmp_path: Path) -> None:
    """Its beginning stands behind the size that was noted."""
    sink, file = FileSink(tmp_path), tmp_path / "log.txt"
    file.write_text("before\n")
    effect = appending("log.txt")
    effect["before"] = sink.prepare(effect)
    file.write_text("before\nA li")
    assert sink.find(effect) == {"bytes": 8, "completed": 4}
    assert file.read_text() == "before\nA line.\n"


def test_an_equal_text_from_before_is_not_taken_for_it(tmp_path: Path) -> None:
    """What another program appends beside it does not hide it."""
    sink, file = FileSink(tmp_path), tmp_path / "log.txt"
    file.write_text("A line.\n")
    effect = appending("log.txt")
    effect["before"] = sink.prepare(effect)
    assert sink.find(effect) is None
    with file.open("a") as other:
        other.write("Another's.\n")
    assert sink.find(effect) is None
    sink.release(effect)
    assert sink.find(effect) == {"bytes": 8, "found": True}
