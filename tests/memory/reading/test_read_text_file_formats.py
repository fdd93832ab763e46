"""Formats of files by name and first bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.memory.reading.file_texts import READERS
from batos.memory.reading.read_text import format_of, text_format


@pytest.mark.parametrize(
    ("name", "head", "format_"),
    [
        ("a.md", b"# The lamp", "plain"),
        ("main.py", b"print('lamp')\n", "plain"),
        ("report", b"%PDF-1.7\n", "pdf"),
        ("page", b"\xef\xbb\xbf\n<!-- saved --><!DOCTYPE html><p>", "html"),
        ("page.HTM", b"<p>lamp", "html"),
        ("old.txt", "Lamp".encode("utf-16"), "other_text"),
        ("Inbox", b"From a@b.c Mon Jan  1 00:00:00 2024\nSubject: x\n\nHi", "mbox"),
        ("one.txt", b"From: a@b.c\nTo: d@e.f\nSubject: x\n\nHi", "mail"),
        ("logs.db", b"SQLite format 3\0", "llm_logs"),
        ("chat.jsonl", b'{"role": "user"', "chats"),
        ("export.zip", b"PK\3\4....", "chats"),
        ("lease", b"PK\3\4....", "archive"),
        ("old.doc", b"\xd0\xcf\x11\xe0....", "archive"),
        ("orchard.ipynb", b'{"cells": []}', "notebook"),
        ("orchard.json", b'{"cells": [{"cell_type": "code"', "notebook"),
        ("people.vcf", b"BEGIN:VCARD\r\n", "cards"),
        ("dates", b"\xef\xbb\xbfbegin:vcalendar\n", "cards"),
    ],
)
def test_a_format_is_told(name: str, head: bytes, format_: str) -> None:
    """First bytes that are sure go before an ending."""
    assert format_of(name, head) == format_


@pytest.mark.parametrize(
    ("name", "head"), [("x.png", b"\x89PNG\r\n"), ("x.rtf", b"{\\rtf1"), ("x.bin", b"\x7fELF"), ("x.dat", b"a\0\0b\0c")]
)
def test_no_text_has_a_reason(name: str, head: bytes) -> None:
    """A reason is a sentence, so it has a blank."""
    assert " " in format_of(name, head)


def test_what_is_not_read_names_its_remedy() -> None:
    """The command that makes a text of it, with the file's own name."""
    assert format_of("a b.rtf", b"{\\rtf1") == "it is a rich text file, not a text: `pandoc -t plain 'a b.rtf'`"
    assert format_of("x.gif", b"GIF89a") == "it is a picture, not a text"


@pytest.mark.parametrize("between", [b"", b"\n", b"-->"])
def test_many_comments_are_told_at_once(between: bytes) -> None:
    """A text that begins with 500 comments is no page, and a page behind them is one.

    A search that went back for each of them would fail as a hang.
    """
    head = (b"<!---->" + between) * 500
    assert format_of("notes.md", head + b"The lamp.") == "plain"
    assert format_of("page", b"<!---->\n" * 500 + b"<!doctype html>") == "html"


def test_text_with_data_is_read_by_a_reader() -> None:
    """So that base64 is left out; all other text is as it is."""
    assert text_format(b"![lamp](data:image/png;base64,AAAA)") == "other_text"
    assert text_format(b"The lamp.") == "plain"


@given(name=st.text(max_size=20), head=st.binary(max_size=80))
def test_any_file_has_a_format_or_a_reason(name: str, head: bytes) -> None:
    """There is a reader for each format but plain text."""
    told = format_of(name, head)
    assert told == "plain" or told in READERS or " " in told
