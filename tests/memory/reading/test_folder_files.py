"""Files to be remembered: in order, without hidden and ignored ones, and with a reason for each that is skipped."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from batos.memory.reading.file_texts import FileTexts, ReadingLimits
from batos.memory.reading.folder_files import FileReader, SkippedFile, TextToSend, count


@pytest.fixture
def skipped() -> list[SkippedFile]:
    """What the reader skipped."""
    return []


@pytest.fixture
def reader(skipped: list[SkippedFile]) -> Iterator[FileReader]:
    """A reader of texts of at most 100 bytes."""
    with FileTexts(ReadingLimits(100)) as texts:
        yield FileReader(100, texts, skipped.append)


def texts_of(reader: FileReader, path: Path) -> list[TextToSend]:
    """All texts of a file or a folder."""
    return [text for found in reader.find(path) for text in reader.read(found)]


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    """Write files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def test_a_folder_is_read_in_the_order_of_its_names(
    reader: FileReader, skipped: list[SkippedFile], tmp_path: Path
) -> None:
    """Folders within it too. What is hidden or made by machines is counted, what is no text or a link is told."""
    for name in ("b.txt", "a.txt", "deep/c.txt", ".git/config", "__pycache__/x.txt", "deep/.d"):
        write(tmp_path, {name: name})
    write(tmp_path, {"z.bin": b"\0\1", "empty.txt": ""})
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "round").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "deep" / "pipe")
    found = texts_of(reader, tmp_path)
    assert [each.data.decode() for each in found] == ["a.txt", "b.txt", "deep/c.txt"]
    assert found[0].about["source"] == str((tmp_path / "a.txt").resolve())
    assert found[0].about["original"] == hashlib.sha256(b"a.txt").hexdigest()
    told = {Path(each.source).name: each.is_text for each in skipped}
    assert told == {"empty.txt": False, "gone.txt": True, "pipe": False, "z.bin": False, "round": False}
    assert reader.left_out == {"hidden": 2, "machine-made": 1}
    assert count(FileReader(100, reader.texts), tmp_path) == (7, 22)


def test_links_do_not_lead_out_of_the_folder(reader: FileReader, skipped: list[SkippedFile], tmp_path: Path) -> None:
    """A folder of a stranger may have a link to a key of its reader; a link within the folder is followed."""
    write(tmp_path, {"key": "secret", "given/a.txt": "a"})
    folder = tmp_path / "given"
    (folder / "out.txt").symlink_to(tmp_path / "key")
    (folder / "within.txt").symlink_to(folder / "a.txt")
    assert [each.data for each in texts_of(reader, folder)] == [b"a", b"a"]
    assert [(Path(each.source).name, each.is_text) for each in skipped] == [("out.txt", False)]
    assert [each.data for each in texts_of(reader, folder / "out.txt")] == [b"secret"]


def test_ignored_files_are_left_out_unless_all_are_wanted(reader: FileReader, tmp_path: Path) -> None:
    """As `.gitignore` says; a file that was named is read whatever it says."""
    write(tmp_path, {".gitignore": "*.log\n", "a.log": "a", "b.txt": "b", "deep/c.log": "c"})
    assert [each.data for each in texts_of(reader, tmp_path)] == [b"b"]
    assert reader.left_out == {"hidden": 1, "ignored": 2}
    assert [each.data for each in texts_of(reader, tmp_path / "a.log")] == [b"a"]
    reader.every = True
    assert {each.data for each in texts_of(reader, tmp_path)} == {b"*.log\n", b"a", b"b", b"c"}


def test_a_link_that_may_not_be_looked_at_ends_nothing(
    reader: FileReader, skipped: list[SkippedFile], tmp_path: Path
) -> None:
    """As one into a folder that is closed to this user: it is told with the reason, and the rest goes on."""
    write(tmp_path, {"a.txt": "a", "c.txt": "c"})
    (tmp_path / "b.txt").symlink_to("x" * 300)  # which every system refuses, whoever asks
    (tmp_path / "loop").symlink_to("loop")
    assert [text.data for text in texts_of(reader, tmp_path)] == [b"a", b"c"]
    assert [(Path(each.source).name, each.is_text) for each in skipped] == [("b.txt", True), ("loop", True)]
    assert [each.reason for each in skipped] == [os.strerror(errno.ENAMETOOLONG), os.strerror(errno.ELOOP)]


def test_a_file_that_was_named_must_be_one(reader: FileReader, skipped: list[SkippedFile], tmp_path: Path) -> None:
    """Then what is no text has failed, as what is too long has anywhere."""
    write(tmp_path, {"z.bin": b"\0\1", "long.txt": "x" * 101})
    for name in ("z.bin", "long.txt", "none.txt"):
        assert texts_of(reader, tmp_path / name) == []
    assert [each.is_text for each in skipped] == [True, True, True]
    assert "more than 100 bytes" in skipped[1].reason


def test_a_named_file_that_its_reader_finds_no_text_in_has_failed(
    reader: FileReader, skipped: list[SkippedFile], tmp_path: Path
) -> None:
    """Only the reader opens a page: in a folder one without words is no failure, and by its name it is one."""
    write(tmp_path, {"a.html": "<p></p>"})
    for place in (tmp_path, tmp_path / "a.html"):
        assert texts_of(reader, place) == []
    assert [(each.reason, each.is_text) for each in skipped] == [
        ("the page has no text", False),
        ("the page has no text", True),
    ]


def test_a_socket_is_told_as_such(
    reader: FileReader, skipped: list[SkippedFile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot even be opened; in a folder it is no failure."""
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("a.txt")
        assert texts_of(reader, tmp_path) == []
    assert [(each.reason[:13], each.is_text) for each in skipped] == [("it is no file", False)]


def test_files_of_many_texts_have_places(reader: FileReader, skipped: list[SkippedFile], tmp_path: Path) -> None:
    """Each turn is a text with its own digest and source; a part that is broken is told beside the file's name."""
    rows = [json.dumps({"role": "user", "content": word}) for word in ("oil", "gas")]
    lines = rows[0], "{broken", rows[1]
    write(tmp_path, {"a.jsonl": "\n".join(lines)})
    first, second = texts_of(reader, tmp_path)
    source = str((tmp_path / "a.jsonl").resolve())
    assert [each.about["source"] for each in (first, second)] == [f"{source}#1", f"{source}#2"]
    assert first.about["original"] != second.about["original"]
    assert (first.about["kind"], first.about["speaker"]) == ("turn", "user")
    assert skipped == [SkippedFile(f"{tmp_path / 'a.jsonl'}#line 2", "it is not JSON", True)]


def test_a_chosen_source_and_title_are_kept(reader: FileReader, tmp_path: Path) -> None:
    """The title is the file's, not that of each of its parts."""
    reader.own = {"source": "notes", "title": "Oil"}
    write(tmp_path, {"a.txt": "a", "b.jsonl": json.dumps({"role": "user", "content": "x"})})
    (whole,), (part,) = texts_of(reader, tmp_path / "a.txt"), texts_of(reader, tmp_path / "b.jsonl")
    assert (whole.about["source"], whole.about["title"]) == ("notes", "Oil")
    assert (part.about["source"], part.about["title"]) == ("notes#1", "x")


def test_a_long_path_is_told_from_others(reader: FileReader, tmp_path: Path) -> None:
    """A source has at most 4,096 characters; a digest stands for the rest."""
    write(tmp_path, {"a.txt": "a"})
    sources = set()
    for end in "xy":
        reader.own = {"source": "s" * 5_000 + end}
        (text,) = texts_of(reader, tmp_path / "a.txt")
        sources.add(str(text.about["source"]))
    assert len(sources) == 2
    assert {len(each) for each in sources} == {4_096}


def test_what_changes_while_it_is_read_is_skipped(
    reader: FileReader, skipped: list[SkippedFile], tmp_path: Path
) -> None:
    """A long file is read when it is its turn: it may be gone, or another one, by then."""
    reader.limit = 2**20
    for number, change in enumerate((b"\xff", None)):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(b"lamp " * 60_000)
        (found,) = reader.find(path)
        path.unlink() if change is None else path.write_bytes(change)
        assert list(reader.read(found)) == []
    assert [each.reason for each in skipped] == ["it changed while it was read", "No such file or directory"]
