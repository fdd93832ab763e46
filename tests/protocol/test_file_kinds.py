"""Files that are no text are told by what they are, with what makes a text of them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.protocol.brief import as_file, read_file
from batos.protocol.errors import BriefError
from batos.protocol.file_kinds import no_text


@pytest.mark.parametrize(
    ("name", "data", "what", "command"),
    [
        ("a b.rtf", b"{\\rtf1 Hello}", "a rich text file, not a text", "pandoc -t plain 'a b.rtf' | "),
        ("old.gz", b"\x1f\x8b\x08\0", "packed with gzip, not a text", "gzip -dc old.gz | "),
        ("x", b"\x7fELF\x02", "a program, not a text", "Give its content as text."),
    ],
)
def test_what_is_no_text_is_named(name: str, data: bytes, what: str, command: str) -> None:
    """Also where every byte of it is a letter."""
    with pytest.raises(BriefError) as caught:
        as_file(name, data)
    assert caught.value.message == f"{name} is {what}"
    assert command in caught.value.remedy
    assert caught.value.field == "attachments"


def test_an_archive_is_a_document_by_what_is_inside(tmp_path: Path) -> None:
    """Its name says nothing of it: a document is taken, and read by the server; a plain archive is refused."""
    for part in ("word/document.xml", "xl/workbook.xml", "photo.jpg"):
        with zipfile.ZipFile(tmp_path / "lease", "w") as archive:
            archive.writestr(part, "y")
        if part != "photo.jpg":
            assert not read_file(tmp_path / "lease", 10_000).is_text
    with pytest.raises(BriefError, match="lease is a zip archive, not a text") as caught:
        read_file(tmp_path / "lease", 10_000)
    assert caught.value.remedy == "Give its content as text."


def test_a_file_that_a_server_reads_is_taken() -> None:
    """A PDF is one; a picture is refused with its remedy."""
    assert as_file("a b.pdf", b"%PDF-1.4").ref.name == "a b.pdf"
    with pytest.raises(BriefError) as caught:
        as_file("a b.png", b"\x89PNG")
    assert "tesseract 'a b.png' -" in caught.value.remedy


@given(st.text())
def test_what_people_write_is_text(text: str) -> None:
    """Nothing is taken for another kind that does not begin with its bytes."""
    found = no_text("a.txt", text.encode("utf-8", "ignore"))
    assert found is None or text.startswith(("%PDF-", "%!PS", "{\\rtf", "BZh", "GIF8", "PK\3\4", "\x7fELF", "SQLite"))
