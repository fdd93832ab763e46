"""Mails and mailboxes."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.reading.reads import read_all, texts_of

from batos.memory.reading import mails
from batos.memory.reading.read_text import NotReadable, ReadText, UnreadPart


def mail(subject: str, body: str, ident: str = "", **heads: str) -> EmailMessage:
    """A mail."""
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "Maro <maro@tower.example>", "ada@tower.example", subject
    made["Date"] = "Wed, 01 May 2024 12:00:00 +0200"
    if ident:
        made["Message-ID"] = ident
    for name, value in heads.items():
        made[name.replace("_", "-")] = value
    made.set_content(body)
    return made


def box(*found: EmailMessage) -> bytes:
    """A mailbox of mails."""
    return b"".join(b"From x@y.z Wed May  1 12:00:00 2024\n" + bytes(each) + b"\n" for each in found)


def test_a_mail_is_a_text_with_its_headers(tmp_path: Path) -> None:
    """Who wrote it, when, and to what it answers is told beside it."""
    data = bytes(mail("Oil", "It is dear.", "<2@x>", References="<1@x>"))
    (found,) = read_all(mails.read, tmp_path / "a.eml", data)
    assert isinstance(found, ReadText)
    assert found.text.endswith("Subject: Oil\n\nIt is dear.")
    assert (found.title, found.speaker, found.conversation) == ("Oil", "Maro <maro@tower.example>", "<1@x>")
    assert found.said_at == "2024-05-01T10:00:00.000Z"


def test_a_page_stands_in_where_there_is_no_plain_text(tmp_path: Path) -> None:
    """A mail in HTML alone is read as a page; attachments are named."""
    made = mail("Oil", "")
    made.set_content("<p>It is <b>dear</b>.", subtype="html")
    made.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="bill.pdf")
    (text,) = texts_of(read_all(mails.read, tmp_path / "a.eml", bytes(made)))
    assert text.endswith("Attachment: bill.pdf\n\nIt is dear.")


def test_a_mailbox_is_read_mail_by_mail(tmp_path: Path) -> None:
    """Each has its own id as its place, else its number; an empty one leaves the others."""
    data = box(mail("One", "a", "<1@x>"), mail("", " "), mail("Three", "c"))
    one, two, three = read_all(mails.read_box, tmp_path / "a.mbox", data)
    assert isinstance(one, ReadText)
    assert isinstance(three, ReadText)
    assert (one.place, two, three.place) == ("<1@x>", UnreadPart("2", "the mail has no text"), "3")


def test_a_mailbox_without_a_mail_is_told(tmp_path: Path) -> None:
    """A file with the ending of one may be something else."""
    with pytest.raises(NotReadable):
        read_all(mails.read_box, tmp_path / "a.mbox", b"no mail\n")


@given(data=st.binary(max_size=200), heads=st.lists(st.text(max_size=20), max_size=5))
def test_any_mail_ends_well(tmp_path_factory: pytest.TempPathFactory, data: bytes, heads: list[str]) -> None:
    """Broken headers, charsets and parts are a text, or a reason."""
    path = tmp_path_factory.getbasetemp() / "a.mbox"
    lines = "\n".join(f"{name}: {each}" for name, each in zip(("Subject", "Date", "Content-Type"), heads, strict=False))
    found = read_all(mails.read_box, path, b"From x\n" + lines.encode("utf-8", "replace") + b"\n\n" + data)
    assert found
