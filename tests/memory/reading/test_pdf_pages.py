"""What is seen on a page of a PDF, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.reading.pdf_files import SCAN, column, field, painted, said
from tests.memory.reading.reads import read_all, texts_of

from batos.memory.reading import pdfs
from batos.memory.reading.file_texts import FileTexts, ReadingLimits

LEFT = ["The committee met on the", "third of March. It found", "that the pump had been", "worn out by sand."]
RIGHT = ["The ferry was another", "matter. Its owner could", "show no licence. She was", "fined 340 crowns."]
WORD = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=9)


def text_of(path: Path, data: bytes) -> str:
    """The text of a file."""
    return texts_of(read_all(pdfs.read, path / "a.pdf", data))[0]


def by_line(left: Sequence[str], right: Sequence[str]) -> str:
    """Two columns, painted line by line."""
    return "\n".join(
        said(50, 700 - 14 * at, one) + said(320, 700 - 14 * at, other)
        for at, (one, other) in enumerate(zip(left, right, strict=True))
    )


def test_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    """The left one, then the right one, below the heading above both, whichever way they were painted."""
    head = said(50, 740, "Of pumps and ferries, as the committee of Vellbrook had it", 18)
    expected = "\n".join(["Of pumps and ferries, as the committee of Vellbrook had it", *LEFT, *RIGHT])
    for page in (
        by_line(LEFT, RIGHT),
        column(50, 700, LEFT) + column(320, 700, RIGHT),
        column(320, 700, RIGHT) + column(50, 700, LEFT),
    ):
        assert text_of(tmp_path, painted(head + page)) == expected


def test_columns_that_are_painted_at_once_are_told_by_their_gap(tmp_path: Path) -> None:
    """A gap within one order of painting is a gutter too."""
    lines = "\n".join(
        f"BT /F1 10 Tf 1 0 0 1 50 {700 - 14 * at} Tm [({one}) {-1000 * (25 - len(one) / 2.2):.0f} ({other})] TJ ET"
        for at, (one, other) in enumerate(zip(LEFT, RIGHT, strict=True))
    )
    assert text_of(tmp_path, painted(lines)) == "\n".join([*LEFT, *RIGHT])


def test_a_page_on_its_side_is_read_as_it_is_held(tmp_path: Path) -> None:
    """Words that run upward are read in their own lines and columns."""
    assert text_of(tmp_path, painted(f"q 0 1 -1 0 800 0 cm {by_line(LEFT, RIGHT)} Q")) == "\n".join([*LEFT, *RIGHT])


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([("3 x 10", 12, 0), ("6", 7, 5), (" litres", 12, 0)], "3 x 10^6 litres"),
        ([("H", 12, 0), ("2", 7, -3), ("O is wet", 12, 0)], "H2O is wet"),
        ([("30 m", 12, 0), ("2", 7, 5), (" of oil", 12, 0)], "30 m^2 of oil"),
        ([("10", 12, 0), ("-6", 7, 5), (" g", 12, 0)], "10^-6 g"),
        ([("10", 12, 0), ("9", 12, 6), (" g", 12, 0)], "10^9 g"),
        ([("the 19", 12, 0), ("th", 7, 5), (" day", 12, 0)], "the 19th day"),
    ],
)
def test_raised_digits_are_no_digits_of_the_number(
    tmp_path: Path, parts: list[tuple[str, float, float]], text: str
) -> None:
    """A power has its sign, and lowered digits are as they were."""
    orders = " ".join(f"/F1 {size} Tf {rise} Ts ({word}) Tj" for word, size, rise in parts)
    assert text_of(tmp_path, painted(f"BT 50 700 Td {orders} ET")) == text


def test_the_mark_of_a_note_is_no_digit(tmp_path: Path) -> None:
    """A raised number that a line below begins with is the mark of it."""
    page = "BT 50 700 Td /F1 12 Tf (Built in 1954) Tj /F1 7 Tf 5 Ts (1) Tj /F1 12 Tf 0 Ts (, by [Maro]*.) Tj ET "
    note = "BT 50 60 Td /F1 6 Tf 3 Ts (1) Tj 0 Ts /F1 8 Tf ( See the ledger.) Tj ET"
    assert text_of(tmp_path, painted(page + note)) == "Built in 1954 [1], by [Maro]*.\n[1] See the ledger."


@pytest.mark.parametrize(
    "hidden",
    [
        said(50, 600, "Nobody reads this.", before="1 1 1 rg"),
        said(50, 600, "Nobody reads this.", before="0.97 g"),
        said(50, 600, "Nobody reads this.", before="3 Tr"),
        said(50, 600, "Nobody reads this.", 0.05),
        said(900, 600, "Nobody reads this."),
        said(50, -30, "Nobody reads this."),
        "0 g 40 590 300 20 re f " + said(50, 600, "Nobody reads this."),
        said(50, 600, "Nobody reads this.") + "0 g 40 590 300 30 re f ",
    ],
)
def test_what_nobody_sees_is_no_text(tmp_path: Path, hidden: str) -> None:
    """Words of the colour of their ground, unpainted, without size, off the page, or covered are left out."""
    assert text_of(tmp_path, painted(said(50, 700, "Oil is dear.") + hidden)) == "Oil is dear."


def test_white_words_on_a_dark_ground_are_seen(tmp_path: Path) -> None:
    """The ground counts, be it filled or a picture."""
    box = "0 g 40 590 300 20 re f " + said(50, 595, "In the box.", before="1 g")
    picture = "q 300 0 0 30 40 500 cm /I1 Do Q " + said(50, 510, "On the picture.", before="1 g")
    assert text_of(tmp_path, painted(box + picture)) == "In the box.\nOn the picture."


def test_the_text_behind_a_scan_is_its_text(tmp_path: Path) -> None:
    """What a program read from a picture is unpainted, and yet what the page says."""
    assert text_of(tmp_path, painted(SCAN + said(50, 700, "Oil is dear.", before="3 Tr"))) == "Oil is dear."


def test_fields_are_read_beside_their_labels(tmp_path: Path) -> None:
    """What was written into a form stands where a person wrote it."""
    page = column(50, 700, ["Tenant:", "Rent:", "From:"], 20)
    values = [("Ivo Trask", 700), ("340 crowns", 676), ("1 May", 652)]
    fields = [field(f"f{y}", value, f"200 {y - 4} 400 {y + 16}") for value, y in values]
    assert text_of(tmp_path, painted(page, fields=fields)) == "Tenant: Ivo Trask\nRent: 340 crowns\nFrom: 1 May"


@given(words=st.lists(WORD, min_size=1, max_size=120), width=st.integers(3, 12), turned=st.booleans())
def test_no_word_of_a_page_is_lost(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], width: int, turned: bool
) -> None:
    """A page of one column has all its words, also where it was painted from its foot."""
    lines = [" ".join(words[at : at + width]) for at in range(0, len(words), width)]
    shown = [said(50, 780 - 13 * at, line, 8) for at, line in enumerate(lines)]
    data = painted("\n".join(reversed(shown) if turned else shown))
    text = text_of(tmp_path_factory.mktemp("page"), data)
    assert Counter(text.split()) == Counter(words)
    assert turned or text == "\n".join(lines)


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FileTexts, Path]]:
    """A process that reads, and a folder for what it reads."""
    with FileTexts(ReadingLimits(2**20, seconds=5)) as texts:
        yield texts, tmp_path_factory.mktemp("pages")


@given(place=st.floats(0, 1), junk=st.binary(max_size=40), cut=st.booleans())
def test_a_page_that_somebody_changed_ends_well(
    reading: tuple[FileTexts, Path], place: float, junk: bytes, cut: bool
) -> None:
    """Fields, pictures, columns and hidden words that are damaged end with a text or a reason."""
    texts, folder = reading
    page = by_line(LEFT, RIGHT) + said(50, 500, "No.", before="1 g") + SCAN
    whole = painted(page, SCAN, fields=[field("a", "b", "9 9 90 20")], attached="c.csv")
    at = int(place * len(whole))
    path = folder / "a.pdf"
    path.write_bytes(whole[:at] + junk + (b"" if cut else whole[at + len(junk) :]))
    assert list(texts.read(path, "pdf"))
