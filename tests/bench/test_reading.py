"""The bench of reading: its own files are what they should be, and what is missed, untold or false is counted."""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pypdfium2
import pytest

import reading
from reading_case_side import EXPECTED, GivenFile, Phrase, read_files, write_files
from reading_files_side import given_files

#: Files that are damaged, or that no well-formed part may be expected of.
DAMAGED = ("cut-short", "bomb", "entities", "circle", "locked", "password")


@pytest.fixture(scope="module")
def files() -> list[GivenFile]:
    """The files that the bench makes."""
    return list(given_files())


def phrases(given: tuple[Phrase, ...]) -> list[str]:
    return [each for one in given for each in ([one] if isinstance(one, str) else one)]


def test_the_files_are_many_and_always_the_same(files: list[GivenFile]) -> None:
    """There are at least 120 of 18 formats beside those that are refused, with one name each and the same bytes."""
    assert files == list(given_files())
    assert len({each.file for each in files}) == len(files) >= 120
    assert len({each.format for each in files} - {"refused"}) == 18
    assert all(each.found or each.told or each.refused for each in files)


def test_a_phrase_is_of_one_file(files: list[GivenFile]) -> None:
    """A phrase that must be found stands for one file; days and bare numbers may stand for more."""
    counted = Counter(phrase for each in files for phrase in {*phrases(each.found)} if len(phrase) > 10)
    assert [phrase for phrase, times in counted.items() if times > 1] == []


def test_the_files_are_well_formed(files: list[GivenFile], tmp_path: Path) -> None:
    """But for those that are damaged by intent, parts of archives are XML and documents open in a reader of PDF."""
    whole = [each for each in files if not any(word in each.file for word in DAMAGED)]
    for each in whole:
        if each.data.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(each.data)) as archive:
                for name in archive.namelist():
                    if name.endswith((".xml", ".rels", ".opf", ".xhtml")):
                        ElementTree.fromstring(archive.read(name))
        elif each.data.startswith(b"%PDF"):
            (tmp_path / each.file).write_bytes(each.data)
            with pypdfium2.PdfDocument(tmp_path / each.file) as document:
                assert len(document) > 0


def test_files_that_were_written_are_read_back(files: list[GivenFile], tmp_path: Path) -> None:
    """A folder that --write made is one that --data takes."""
    write_files(tmp_path, files)
    assert list(read_files(tmp_path)) == files


def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert reading.main(["--data", str(folder)]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return document


def test_what_is_wrong_is_counted_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """White space is one blank, words are told in any case, and a list asks for one of its phrases."""
    (tmp_path / "a.md").write_text("The oar\n  is red.\n\nIt is new.", encoding="utf-8")
    (tmp_path / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    rows: list[dict[str, Any]] = [
        {
            "file": "a.md",
            "format": "markdown",
            "found": ["oar is red", ["It is old.", "It is new."], "the mast"],
            "absent": ["is new", "is blue"],
        },
        {"file": "b.png", "format": "refused", "told": ["PICTURE", "a song"]},
    ]
    (tmp_path / EXPECTED).write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    document = run(tmp_path, capsys)
    assert (document["found"], document["told"], document["false"], document["ended"]) == (0.6667, 0.5, 0.5, 0)
    assert document["by_format"]["refused"] == {"files": 1, "found": None, "told": 0.5, "false": 0.0, "ended": 0}
    assert document["wrong"] == [
        {"file": "a.md", "missed": ["the mast"], "false": ["is new"]}, {"file": "b.png", "untold": ["a song"]},
    ]  # fmt: skip


def test_a_file_may_be_refused_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a file may be refused, only the words of its refusal count, if it has no text."""
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    row = {"file": "a.png", "format": "ods", "found": ["a cell"], "told": ["a sheet"], "refused": ["picture"]}
    (tmp_path / EXPECTED).write_text(json.dumps(row), encoding="utf-8")
    document = run(tmp_path, capsys)
    assert (document["found"], document["told"], document["wrong"]) == (None, 1.0, [])
