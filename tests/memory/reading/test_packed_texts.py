"""E-books, notebooks, cards and calendars."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.reading.office_files import epub_of, zip_of
from tests.memory.reading.reads import read_all

from batos.memory.reading.packed_texts import read_book, read_cards, read_notebook
from batos.memory.reading.read_text import NotReadable, ReadText


def book(path: Path, data: bytes) -> ReadText:
    """What is read of an e-book."""
    (found,) = read_all(read_book, path, data)
    assert isinstance(found, ReadText)
    return found


def notebook(path: Path, *cells: dict[str, object], **about: object) -> ReadText:
    """What is read of a notebook of these cells."""
    (found,) = read_all(read_notebook, path, json.dumps({"cells": cells, "metadata": about}).encode())
    assert isinstance(found, ReadText)
    return found


def cards(path: Path, *lines: bytes) -> ReadText:
    """What is read of a file of these lines."""
    (found,) = read_all(read_cards, path, b"\r\n".join(lines))
    assert isinstance(found, ReadText)
    return found


def test_a_book_is_read_in_its_order(tmp_path: Path) -> None:
    """Chapters of XHTML, with the title that the book gives; notes and asides belong to it."""
    one = "<?xml version='1.0'?><html><head><title/><script src='x'/></head><body><h1>One</h1><p>It began."
    one += "<aside epub:type='footnote'>A note.</aside><div class='footer'>In the end.</div></body></html>"
    found = book(tmp_path / "a", epub_of({"z": one, "a": "<h1>Two</h1><p>It ended."}, "The lamp &amp; I"))
    assert found.text == "# One\n\nIt began.\n\nA note.\n\nIn the end.\n\n# Two\n\nIt ended."
    assert (found.title, found.left_out) == ("The lamp & I", ())


def test_chapters_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """Those that are missing, those that a seller locked, and pictures; a book that is all locked has a reason."""
    encryption = "<e xmlns:c='http://www.w3.org/2001/04/xmlenc#'>{}</e>"
    one = encryption.format("<c:CipherReference URI='OPS/b.xhtml'/><c:CipherReference URI='OPS/font.ttf'/>")
    pages = {"a": "<p>It began.", "b": "<p>xx", "c": ""}
    found = book(tmp_path / "a", epub_of(pages, encryption=one))
    assert found.text == "It began."
    assert found.left_out == (
        "1 of 3 chapters are locked (DRM)",
        "c.xhtml: its part OPS/c.xhtml is missing or damaged",
    )
    with pytest.raises(NotReadable, match="its seller locked it"):
        book(tmp_path / "a", epub_of({"b": "x"}, encryption=one))
    with pytest.raises(NotReadable, match="its pages are pictures"):
        book(tmp_path / "a", epub_of({"b": "<img src='x'>"}))
    with pytest.raises(NotReadable, match="missing or damaged"):
        book(tmp_path / "a", zip_of({"META-INF/container.xml": "<a/>"}))


def test_a_notebook_is_text_and_code(tmp_path: Path) -> None:
    """Code stands in fences with what it printed; pictures and data are told and no text."""
    picture = {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": ["<Figure>"]}}
    printed = {"output_type": "stream", "text": ["42 \x1b[31mbaskets\x1b[0m\n"]}
    failed = {"output_type": "error", "ename": "KeyError", "evalue": "14", "traceback": ["x"]}
    table = {"output_type": "execute_result", "data": {"text/html": "<table><tr><th>a<th>b<tr><td>1<td>2</table>"}}
    data = "data:image/png;base64," + "iVBORw0K" * 20
    found = notebook(
        tmp_path / "a",
        {"cell_type": "markdown", "source": ["# Orchard\n", f"![tree]({data})"], "attachments": {"a.png": {}}},
        {"cell_type": "code", "source": "print(14 * 3)", "outputs": [printed, picture, failed, table]},
        {"cell_type": "code", "source": "```", "outputs": []},
        {"cell_type": "raw", "source": ""},
        language_info={"name": "python"},
    )
    assert found.text == (
        "# Orchard\n![tree](image/png)\n\n```python\nprint(14 * 3)\n```\n\n```\n42 baskets\n```\n\n"
        "```\n<Figure>\n```\n\n```\nKeyError: 14\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n````python\n```\n````"
    )
    assert found.left_out == ("2 pictures", "1 piece of data in base64 (image/png)")


def test_an_older_notebook_is_read(tmp_path: Path) -> None:
    """Its cells stand in sheets, and have other names."""
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Oil"},
        {"cell_type": "code", "input": ["x"], "outputs": [{"output_type": "pyout", "text": ["1"], "png": "AAAA"}]},
    ]
    (found,) = read_all(read_notebook, tmp_path / "a", json.dumps({"worksheets": [{"cells": cells}]}).encode())
    assert isinstance(found, ReadText)
    assert (found.text, found.left_out) == ("## Oil\n\n```python\nx\n```\n\n```\n1\n```", ("1 picture",))


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"cells": []}', b'{"cells": [1]}', b'{"cells": {"a": 1}}', b"\xff\0"])
def test_what_is_no_notebook_is_told(tmp_path: Path, data: bytes) -> None:
    """Of no cells, of others, or no JSON at all."""
    with pytest.raises(NotReadable):
        read_all(read_notebook, tmp_path / "a", data)


def test_a_card_is_read_whatever_its_notation(tmp_path: Path) -> None:
    """Quoted-printable that is broken in a letter, folded lines, groups, kinds; pictures are told."""
    found = cards(
        tmp_path / "a",
        b"BEGIN:VCARD", b"VERSION:2.1", b"N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg;;;",
        b"FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:J=C3=B6rg M=C3=", b"=BCller", b"TEL;CELL:+49 171 1",
        b"item1.EMAIL;TYPE=HOME:joerg@", b" example.org", b"ADR;HOME:;;Mill Lane 12;Oxna;;1067;", b"X-ID:9",
        b"NOTE:Pays\\, but late\\nin May", b"PHOTO;ENCODING=BASE64;JPEG:/9j/4AAQ", b" SkZJRg==", b"", b"END:VCARD",
        b"BEGIN:VCARD", b"FN;ISO-8859-1;CHARSET=ISO-8859-1:Zo\xeb", b"BDAY:19800301", b"END:VCARD",
    )  # fmt: skip
    assert found.text == (
        "## Jörg Müller\n\n- Phone (cell): +49 171 1\n- Email (home): joerg@example.org\n"
        "- Address (home): Mill Lane 12, Oxna, 1067\n- Note: Pays, but late\n  in May\n\n"
        "## Zoë\n\n- Birthday: 1980-03-01"
    )
    assert found.left_out == ("1 picture",)


#: The part of a calendar that is to be done.
TASK = b"VTO" + b"DO"


def test_a_calendar_is_read_event_by_event(tmp_path: Path) -> None:
    """With days as people write them, and without what programs tell each other."""
    found = cards(
        tmp_path / "a",
        b"BEGIN:VCALENDAR", b"BEGIN:VTIMEZONE", b"TZID:Europe/Berlin", b"END:VTIMEZONE", b"BEGIN:VEVENT", b"UID:1",
        b"SUMMARY:The chimney swe", b" ep", b"DTSTART;TZID=Europe/Berlin:20260301T090000", b"DTEND:20260301T100000Z",
        b'ATTENDEE;CN="Maro: keeper":mailto:maro@x', b"BEGIN:VALARM", b"DESCRIPTION:ring", b"END:VALARM", b"END:VEVENT",
        b"BEGIN:" + TASK, b"DUE;VALUE=DATE:20260401", b"END:" + TASK, b"END:VCALENDAR",
    )  # fmt: skip
    assert found.text == (
        "## The chimney sweep\n\n- Start (Europe/Berlin): 2026-03-01 09:00\n- End: 2026-03-01 10:00 UTC\n"
        "- Attendee (Maro: keeper): maro@x\n\n## Without a name\n\n- Due: 2026-04-01"
    )


def test_a_file_without_entries_is_told(tmp_path: Path) -> None:
    """It has a card's first line, and no card."""
    with pytest.raises(NotReadable, match="no card"):
        cards(tmp_path / "a", b"BEGIN:VCARD", b"FN:x")


LINES = st.sampled_from(
    [b"BEGIN:VCARD", b"END:VCARD", b"BEGIN:VEVENT", b"END:VEVENT", b"FN:x", b" y", b"N;ENCODING=QUOTED-PRINTABLE:=C3=",
     b"SUMMARY;CHARSET=idna:x", b"ADR:;;\\;", b"TEL;TYPE", b'A;B=":":c', b"DTSTART:99999999", b":", b";;:"]
)  # fmt: skip


@given(lines=st.lists(LINES | st.binary(max_size=12), max_size=20))
def test_lines_in_any_order_are_read_or_refused(reused_folder: Path, lines: list[bytes]) -> None:
    """A text or a reason."""
    try:
        cards(reused_folder / "any", *lines)
    except NotReadable as error:
        assert str(error)


JSONS = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from("cells cell_type source outputs data text metadata worksheets input level attachments".split()),
        inner, max_size=4,
    ),
)  # fmt: skip


@given(value=JSONS)
def test_any_json_is_a_notebook_or_none(reused_folder: Path, value: object) -> None:
    """A text or a reason."""
    try:
        read_all(read_notebook, reused_folder / "any", json.dumps(value).encode())
    except NotReadable as error:
        assert str(error)
