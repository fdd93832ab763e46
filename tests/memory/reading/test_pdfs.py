"""The text of PDFs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.reading.pdf_files import SCAN, column, painted, pdf_of, said
from tests.memory.reading.reads import read_all, texts_of

from batos.memory.reading import pdfs
from batos.memory.reading.file_texts import FileTexts, ReadingLimits
from batos.memory.reading.pdfs import PAGE_END
from batos.memory.reading.read_text import NotReadable, ReadText
from batos.memory.segmentation import page_ends


def test_pages_are_one_text(tmp_path: Path) -> None:
    """Each page is apart from the next one, an empty one too, and the title is the document's."""
    found = read_all(pdfs.read, tmp_path / "a.pdf", pdf_of(["Maro winds the lamp.", "Oil is dear."], "The lamp"))
    assert found == [ReadText(f"Maro winds the lamp.{PAGE_END}Oil is dear.", "The lamp", "application/pdf")]
    (gap,) = texts_of(read_all(pdfs.read, tmp_path / "b.pdf", painted(COVER, "", said(50, 700, "The end."))))
    assert gap == f"A cover.{PAGE_END}{PAGE_END}The end."
    assert page_ends(gap) == (8, 11)


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
        (pdf_of(["Oil."]).replace(b"/Kids [7 0 R]", b"/Kids [2 0 R]"), "none of its pages"),
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
    assert PAGE_END.join(lines) == texts_of(read_all(pdfs.read, tmp_path / "a.pdf", pdf_of(lines)))[0]


def the_text(path: Path, data: bytes) -> ReadText:
    """The one text of a file."""
    (found,) = read_all(pdfs.read, path / "a.pdf", data)
    assert isinstance(found, ReadText)
    return found


COVER = said(50, 700, "A cover.")
COMMENT = "<< /Type /Annot /Subtype /Text /Contents (No.) /Rect [9 9 20 20] >>"


@pytest.mark.parametrize(
    ("data", "left_out"),
    [
        (painted(COVER, SCAN, SCAN), "2 of 3 pages have no text, as a scan has (2, 3): `ocrmypdf` adds it"),
        (painted(COVER, f"{SCAN} {said(50, 20, 'Scanned.')}"), "1 of 2 pages has little text beside a picture (2)"),
        (painted(COVER, ""), "1 of 2 pages is blank (2)"),
        (painted(COVER, attached="prices.csv"), "1 attached file (prices.csv)"),
        (painted(COVER, fields=[COMMENT]), "1 comment of readers"),
        (painted(COVER, "").replace(b"/Kids [7 0 R 9 0 R]", b"/Kids [7 0 R 3 0 R]"), "1 of 2 pages is broken (2)"),
        (painted(COVER + said(50, 600, "No.", before="1 g")), "1 of 1 pages has words that nobody sees (1)"),
    ],
)
def test_what_a_text_lacks_is_named(tmp_path: Path, data: bytes, left_out: str) -> None:
    """Pages, files and notes that are not in the text have a phrase each, with their numbers."""
    found = the_text(tmp_path, data)
    assert found.text.startswith("A cover.")
    assert found.left_out == (left_out,)


def test_a_head_and_a_foot_are_said_once(tmp_path: Path) -> None:
    """A line that stands above or below each page is no part of each, and numbers of pages are none of any."""
    pages = [
        said(50, 770, "Chronicle of Orrin", 9) + column(50, 700, [f"Here begins part {number} of", "the tale."])
        + said(50, 40, "Confidential", 9) + said(300, 20, f"{number}", 9) for number in range(4, 8)
    ]  # fmt: skip
    told = [f"Here begins part {number} of\nthe tale." for number in range(4, 8)]
    told[0] = f"Chronicle of Orrin\n{told[0]}"
    told[-1] = f"{told[-1]}\nConfidential"
    assert the_text(tmp_path, painted(*pages)).text == PAGE_END.join(told)


def test_titles_that_differ_by_a_number_stay(tmp_path: Path) -> None:
    """The first line of a page is its head only where it stands apart, in letters no larger than the text's."""
    pages = [said(50, 770, f"Part {at}", 20) + column(50, 700, ["Of a lamp", "and its oil"]) for at in range(1, 5)]
    text = the_text(tmp_path, painted(*pages)).text
    assert [f"Part {number}" in text for number in range(1, 5)] == [True] * 4


def test_the_child_names_what_is_left_out(reading: tuple[FileTexts, Path]) -> None:
    """What a text lacks comes through the pipe."""
    texts, folder = reading
    path = folder / "b.pdf"
    path.write_bytes(painted(COVER, SCAN))
    (found,) = texts.read(path, "pdf")
    assert isinstance(found, ReadText)
    assert found.left_out == ("1 of 2 pages has no text, as a scan has (2): `ocrmypdf` adds it",)
