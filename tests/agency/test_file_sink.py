"""The sink of files: appends below its folder alone, and can be read back whatever happened in the middle."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agency.sink_laws import SinkLaws

from batos.agency.file_sink import FileSink
from batos.agency.payloads import append_payload, path_parts
from batos.agency.records.effect_records import EffectData
from batos.agency.sinks import EffectDelayed, EffectRefused, Sink
from batos.protocol.errors import ObjectError


def appending(path: str, text: str = "A line.") -> EffectData:
    """An effect that appends."""
    payload = {"path": path, "text": f"{text}\n"}
    return {"effect": "e-1-1", "key": "k", "operation": "effect.append", "payload": payload, "before": None}


class TestLaws(SinkLaws):
    """A file sink is a queryable sink."""

    @pytest.fixture
    def sink(self, tmp_path: Path) -> Sink:
        """One that appends to a folder."""
        return FileSink(tmp_path)

    def effect(self) -> EffectData:
        """A line of a file that is not there yet."""
        return appending("log.txt")

    def count(self, tmp_path: Path) -> int:
        """How often the line stands there."""
        file = tmp_path / "log.txt"
        return file.read_text().count("A line.\n") if file.exists() else 0


def writing(path: str, text: str = "A line.\n") -> EffectData:
    """An effect that writes a whole new file."""
    payload = {"path": path, "text": text}
    return {"effect": "e-1-1", "key": "k", "operation": "effect.write", "payload": payload, "before": None}


class TestLawsOfNewFiles(TestLaws):
    """A sink that writes a new file is a queryable one too."""

    def effect(self) -> EffectData:
        """A file that is not there yet."""
        return writing("log.txt")


def test_no_file_is_written_over(tmp_path: Path) -> None:
    """Neither one that was there before, nor one that another program made right before it happened."""
    sink, effect = FileSink(tmp_path), writing("log.txt")
    effect["before"] = sink.prepare(effect)
    for there in ("Another's.\n", ""):
        (tmp_path / "log.txt").write_text(there)
        with pytest.raises(EffectRefused, match="there already"):
            sink.release(effect)
        with pytest.raises(EffectRefused, match="there already"):
            sink.prepare(writing("log.txt"))
        assert (tmp_path / "log.txt").read_text() == there


@pytest.mark.parametrize("left", ["", "A l", "A line.\n"])
def test_a_new_file_that_a_kill_cut_off_is_completed(left: str, tmp_path: Path) -> None:
    """What stands there is the beginning of what this effect was about to write."""
    sink, effect = FileSink(tmp_path), writing("log.txt")
    effect["before"], effect["attempts"] = sink.prepare(effect), 1
    (tmp_path / "log.txt").write_text(left)
    assert sink.find(effect) is not None
    assert (tmp_path / "log.txt").read_text() == "A line.\n"


@pytest.mark.parametrize("other", ["Another's.\n", "A line.\nAnd more.\n"])
def test_a_new_file_with_another_text_tells_nothing(other: str, tmp_path: Path) -> None:
    """It may have been written and changed since, or not: nobody knows, and nothing is written over."""
    sink, effect = FileSink(tmp_path), writing("log.txt")
    effect["before"], effect["attempts"] = sink.prepare(effect), 1
    (tmp_path / "log.txt").write_text(other)
    with pytest.raises(EffectDelayed, match="another text"):
        sink.find(effect)
    effect["attempts"] = 2
    with pytest.raises(EffectRefused, match="there already"):
        sink.release(effect)
    assert (tmp_path / "log.txt").read_text() == other


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


@pytest.mark.parametrize("how", ["no folder", "no folder in it", "link", "shorter", "gone"])
def test_what_cannot_be_read_back_is_not_called_undone(how: str, tmp_path: Path) -> None:
    """Nothing was said about the text where its file, as it was, could not be opened."""
    folder, file = tmp_path / "granted", tmp_path / "granted" / "sub" / "log.txt"
    file.parent.mkdir(parents=True)
    file.write_text("before\n")
    sink, effect = FileSink(folder), appending("sub/log.txt")
    effect["before"] = sink.prepare(effect)
    sink.release(effect)
    if how == "no folder":
        folder.rename(tmp_path / "unmounted")
    elif how == "no folder in it":
        file.parent.rename(tmp_path / "unmounted")
    elif how == "shorter":
        file.write_text("")
    else:
        file.rename(tmp_path / "moved.txt")
        if how == "link":
            file.symlink_to(tmp_path / "moved.txt")
    with pytest.raises(EffectDelayed):
        sink.find(effect)


def rotated(tmp_path: Path) -> tuple[FileSink, EffectData]:
    """A sink, and an effect that it did to a log that was then rotated; the new log is longer already."""
    sink, file, effect = FileSink(tmp_path), tmp_path / "log.txt", appending("log.txt")
    file.write_text("before\n")
    effect["before"] = sink.prepare(effect)
    sink.release(effect)
    file.rename(tmp_path / "log.txt.1")
    file.write_text("Another's line.\n" * 3)
    return sink, effect


def test_a_rotated_file_that_has_grown_again_is_not_called_undone(tmp_path: Path) -> None:
    """The text stands in the one that was moved away."""
    sink, effect = rotated(tmp_path)
    with pytest.raises(EffectDelayed, match="another file"):
        sink.find(effect)


def test_a_record_without_its_file_s_identity_is_read_by_the_size_alone(tmp_path: Path) -> None:
    """As an earlier version noted it."""
    sink, effect = rotated(tmp_path)
    effect["before"] = {"size": (effect["before"] or {})["size"]}
    assert sink.find(effect) is None


def test_a_file_that_never_was_has_nothing(tmp_path: Path) -> None:
    """Its folder is there, and it was not there before."""
    effect = appending("log.txt")
    effect["before"] = FileSink(tmp_path).prepare(effect)
    assert FileSink(tmp_path).find(effect) is None


@pytest.mark.parametrize("other", ["", "Another's.\n"])
def test_an_append_that_fails_and_is_not_taken_back_is_not_called_undone(other: str, tmp_path: Path) -> None:
    """A file that may not grow: its beginning is cut off again, unless another program appended meanwhile."""
    sink, file, effect = FileSink(tmp_path), tmp_path / "log.txt", appending("log.txt")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def check() -> None:
        file.write_text(other)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(other) + 4, before[1]))

    effect["before"] = sink.prepare(effect)
    try:
        with pytest.raises(Exception, match=r"was not taken back|cannot be written") as failed:
            sink.release(effect, check)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert isinstance(failed.value, EffectRefused) == (not other)
    assert file.read_text() == (f"{other}A li" if other else "")
