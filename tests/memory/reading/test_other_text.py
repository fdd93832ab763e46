"""Text in other encodings than UTF-8."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import MOST, growth
from tests.memory.reading.reads import read_all, texts_of

from batos.memory.reading import chats, other_text, packed_texts, web_pages
from batos.memory.reading.other_text import decode
from batos.memory.reading.read_text import Emit, NotReadable, ReadText, format_of, text_format

POLISH = "Latarnik wszedł po schodach i zapalił wielką lampę. Zażółć gęślą jaźń. "
RUSSIAN = "Смотритель маяка поднялся по лестнице и зажёг большую лампу. "
JAPANESE = "灯台守は毎晩四時間ごとにランプを巻き上げる。"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Café déjà vu, naïve façade."),
        ("cp1252", "Der Wärter stieg die Treppe hinauf und zündete die große Lampe an. „Schön“, sagte er."),
        ("cp1252", "Fyrvaktaren gick uppför trappan och tände den stora lampan. På ön är det mörkt."),
        ("cp1250", POLISH * 3),
        ("iso8859-2", POLISH * 3),
        ("cp1251", RUSSIAN * 2),
        ("koi8-r", RUSSIAN * 2),
        ("cp1253", "Ο φαροφύλακας ανέβηκε τις σκάλες και άναψε τη μεγάλη λάμπα. " * 3),
        ("cp1254", "Fener bekçisi merdivenlerden çıktı ve büyük lambayı yaktı. Şişli ığdır. " * 3),
        ("cp1255", "שומר המגדלור עלה במדרגות והדליק את המנורה הגדולה. " * 3),
        ("cp1256", "صعد حارس المنارة الدرج وأضاء المصباح الكبير. " * 3),
        ("shift_jis", JAPANESE * 5),
        ("shift_jis", "渡し船の日誌です。今日は風が強い。\n" * 3),
        ("utf-16-le", RUSSIAN),
        ("utf-16-be", RUSSIAN),
        ("utf-16-le", "灯塔看守人每四个小时给灯上一次发条。\n灯很亮。\n"),
        ("euc-jp", JAPANESE * 5),
        ("gb18030", "灯塔看守人每四个小时给灯上一次发条。" * 5),
        ("big5", "燈塔看守人每四個小時給燈上一次發條。" * 5),
        ("euc-kr", "등대지기는 네 시간마다 램프를 감는다. " * 5),
        ("utf-16", "Maro winds the lamp."),
        ("utf-32", "Maro winds the lamp."),
    ],
)
def test_a_text_is_told_by_how_it_looks(encoding: str, text: str) -> None:
    """Letters come out as they were, in usual encodings."""
    assert decode(text.encode(encoding)).text == text


def test_a_file_in_wide_letters_of_any_script_is_a_text() -> None:
    """Without a mark too; a picture or a program is none."""
    for text in (RUSSIAN, POLISH, "Ο φαροφύλακας ανέβηκε.\n"):
        for encoding in ("utf-16-le", "utf-16-be"):
            assert format_of("a.txt", text.encode(encoding)) == "other_text"
    assert "NUL" in format_of("a.dat", bytes(range(256)) * 16)


def test_a_declared_encoding_goes_before_its_looks() -> None:
    """A page or a mail says what it is in."""
    assert decode("Ĉiu lampo.".encode("iso8859-3"), "iso8859-3").text == "Ĉiu lampo."


def test_a_long_file_is_told_by_its_beginning(tmp_path: Path) -> None:
    """A character that the sample cuts in two does no harm."""
    text = JAPANESE * 4_000
    assert texts_of(read_all(other_text.read, tmp_path / "a.txt", text.encode("shift_jis"))) == [text]


@pytest.mark.parametrize(
    ("data", "text", "doubt"),
    [
        ("Café 12 € \xff Zoë".encode().replace(b"\xc3\xbf", b"\xff"), "Café 12 € \ufffd Zoë", "1 place is not UTF-8"),
        (b"one line, and\n" * 9 + b"\0" * 4_096 + b"more", "one line, and\n" * 9 + "more", "4,096 NUL bytes"),
        (b"plain words\n" * 9_000 + "José Peña".encode("latin-1"), "plain words\n" * 9_000 + "José Peña", "cp1252"),
        ("Zoë winds the lamp".encode("utf-16-le"), "Zoë winds the lamp", ""),
        ("Zoë winds the lamp".encode("utf-16-be"), "Zoë winds the lamp", ""),
        (
            "große Grüße aus Köln. ".encode("cp1252") * 999 + b"\x81",
            "große Grüße aus Köln. " * 999 + "\ufffd",
            "1 place",
        ),
    ],
)
def test_a_text_with_a_fault_is_read_and_its_fault_told(data: bytes, text: str, doubt: str) -> None:
    """A few bytes spoil nothing but themselves, and what is guessed or lost is told."""
    found = decode(data)
    assert found.text == text
    assert doubt in "".join(found.doubts)
    assert bool(found.doubts) is bool(doubt)


@pytest.mark.parametrize(
    ("read", "name", "data"),
    [
        (web_pages.read, "a.html", b"<p>The lamp of Caf\xc3\xa9 \xc3\xa9t\xc3\xa9 burns \xff oil.</p>"),
        (chats.read, "a.txt", b"The lamp of Caf\xc3\xa9 \xc3\xa9t\xc3\xa9 burns \xff oil."),
        (packed_texts.read_cards, "a.vcf", b"BEGIN:VCARD\nFN:Caf\xc3\xa9 \xc3\xa9t\xc3\xa9 \xff\nTEL:1\nEND:VCARD"),
        (
            packed_texts.read_notebook,
            "a.ipynb",
            b'{"cells": [{"cell_type": "markdown", "source": "Caf\xc3\xa9 \xc3\xa9t\xc3\xa9 \xff oil"}]}',
        ),
    ],
)
def test_every_reader_tells_what_its_bytes_lost(
    read: Callable[[Path, Emit], None], name: str, data: bytes, tmp_path: Path
) -> None:
    """A page, a log, a card and a notebook say where a byte was none of their encoding."""
    (found,) = read_all(read, tmp_path / name, data)
    assert isinstance(found, ReadText)
    assert "\ufffd" in found.text
    assert any("1 place is not UTF-8" in each for each in found.left_out)


@given(text=st.text(st.characters(min_codepoint=0xC0, max_codepoint=0x24F), min_size=20), at=st.integers(0, 19))
def test_one_byte_does_not_spoil_a_text(text: str, at: int) -> None:
    """A text of letters beyond ASCII with a byte that is none of UTF-8 loses nothing."""
    whole = text[:at] + "\ufffd" + text[at:]
    data = text[:at].encode() + b"\xff" + text[at:].encode()
    assert decode(data).text == whole


@pytest.mark.parametrize("data", [bytes(range(256)) * 4, os.urandom(4_000), b"\x93lamp\x94 \x00\x01\x02\xff" * 9])
def test_no_text_is_refused(data: bytes) -> None:
    """Bytes that are no text are not made one."""
    with pytest.raises(NotReadable):
        decode(data)


@given(data=st.binary(max_size=300), declared=st.text(max_size=12))
def test_any_bytes_are_a_text_or_none(data: bytes, declared: str) -> None:
    """A name of an encoding that a stranger declares does no harm either."""
    try:
        text = decode(data, declared).text
    except NotReadable:
        return
    assert "\0" not in text
    text.encode()


LAMP = "iVBORw0K" * 400
WRAPPED_LAMP = f"  {'iVBORw0K' * 8}\n" * 7


@pytest.mark.parametrize(
    ("text", "shown", "told"),
    [
        (f"![lamp](data:image/png;base64,{LAMP}) burns", "![lamp](image/png) burns",
         "1 piece of data in base64 (image/png)"),
        (f"[a]: <data:;base64,{LAMP}>\n\nOil", "[a]: <data>\n\nOil", "1 piece of data in base64 (data)"),
        (f'{{"a": "{LAMP}==", "b": "Oil"}}', '{"a": "data", "b": "Oil"}', "1 piece of data in base64 (data)"),
        (f"data:font/woff2;charset=utf-8;base64,{LAMP}%3D data:x/y;base64,{LAMP}", "font/woff2 x/y",
         "2 pieces of data in base64 (font/woff2, x/y)"),
        (f"name: lamp\nphoto: |\n{WRAPPED_LAMP}Zz9=\nend: 1", "name: lamp\nphoto: |\ndata\nend: 1",
         "1 piece of data in base64 (data)"),
        (f"-----BEGIN KEY-----\n{WRAPPED_LAMP}-----END KEY-----", "-----BEGIN KEY-----\ndata\n-----END KEY-----",
         "1 piece of data in base64 (data)"),
    ],
)  # fmt: skip
def test_data_in_base64_are_left_out_and_told(tmp_path: Path, text: str, shown: str, told: str) -> None:
    """Of pictures within Markdown, and of values in JSON."""
    (found,) = read_all(other_text.read, tmp_path / "a.md", text.encode())
    assert isinstance(found, ReadText)
    assert (found.text, found.left_out) == (shown, (told,))


@pytest.mark.parametrize(
    "text",
    [
        "data:image/png;base64,",
        "ACGT" * 1_000,
        "a-long/path" * 300,
        "0123456789abcdef" * 300,
        f"{'0123456789abcdef' * 4}\n" * 9,
    ],
)  # fmt: skip
def test_what_looks_like_data_is_text(text: str) -> None:
    """A mention of base64, genes, paths, and numbers to the base of 16."""
    assert other_text.without_data(text) == (text, ())
    assert text_format(text.encode()) == ("other_text" if ";base64," in text else "plain")


def test_data_are_found_in_a_time_that_grows_with_the_text() -> None:
    """Runs of letters that are nearly long enough are looked at once."""
    run = ("aB3/" * 499 + " ") * 40
    assert growth(lambda size: other_text.without_data(run * size), 4) < MOST
