"""The text of PDFs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.reading.pdf_files import pdf_of
from tests.memory.reading.reads import read_all, texts_of

from batos.memory.reading import pdfs
from batos.memory.reading.file_texts import FileTexts, ReadingLimits
from batos.memory.reading.read_text import NotReadable, ReadText


def test_pages_are_one_text(tmp_path: Path) -> None:
    """Each page is apart from the next one by an empty line, and the title is the document's."""
    found = read_all(pdfs.read, tmp_path / "a.pdf", pdf_of(["Maro winds the lamp.", "Oil is dear."], "The lamp"))
    assert found == [ReadText("Maro winds the lamp.\n\nOil is dear.", "The lamp", "application/pdf")]


def test_a_title_that_a_program_gave_is_none(tmp_path: Path) -> None:
    """The name of a file that was printed says nothing."""
    (found,) = read_all(pdfs.read, tmp_path / "a.pdf", pdf_of(["Oil."], "Microsoft Word - x.docx"))
    assert isinstance(found, ReadText)
    assert found.title == ""


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pdf_of([""]), "pages without text"),
        (b"%PDF-1.4\nnothing", "damaged PDF"),
        (pdf_of(["Oil."]).replace(b"/Kids [5 0 R]", b"/Kids [2 0 R]"), "none of its pages"),
    ],
)
def test_what_has_no_text_is_told(tmp_path: Path, data: bytes, reason: str) -> None:
    """A scan, a broken file and a tree of pages that leads back to itself have reasons that differ."""
    with pytest.raises(NotReadable, match=reason):
        read_all(pdfs.read, tmp_path / "a.pdf", data)


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FileTexts, Path]]:
    """A process that reads, and a folder for what it reads."""
    with FileTexts(ReadingLimits(2**20, seconds=5)) as texts:
        yield texts, tmp_path_factory.mktemp("pdfs")


@given(place=st.floats(0, 1), junk=st.binary(max_size=40), cut=st.booleans())
def test_a_file_that_somebody_changed_ends_well(
    reading: tuple[FileTexts, Path], place: float, junk: bytes, cut: bool
) -> None:
    """Whatever stands in a PDF, something is told of it: its text, or why there is none."""
    texts, folder = reading
    whole = pdf_of(["Maro winds the lamp.", "Oil is dear."])
    at = int(place * len(whole))
    path = folder / "a.pdf"
    path.write_bytes(whole[:at] + junk + (b"" if cut else whole[at + len(junk) :]))
    assert list(texts.read(path, "pdf"))


def test_words_are_found(tmp_path: Path) -> None:
    """A page of many lines keeps them all."""
    lines = [f"Line {number}." for number in range(30)]
    assert "\n\n".join(lines) == texts_of(read_all(pdfs.read, tmp_path / "a.pdf", pdf_of(lines)))[0]
