"""Mails and mailboxes."""

from __future__ import annotations

import base64
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.reading.reads import read_all, texts_of

from batos.memory.reading import mails
from batos.memory.reading.read_text import NotReadable, ReadText, UnreadPart, format_of


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


def test_a_page_that_a_browser_saved_is_a_page(tmp_path: Path) -> None:
    """In the form of a mail that nobody sent; a mail with a page and its pictures stays a mail."""
    saved = EmailMessage()
    saved["From"], saved["Subject"], saved["Date"] = "<Saved by Blink>", "Oil", "Wed, 01 May 2024 12:00:00 +0200"
    saved.set_content("<title>Oil of Köln</title><nav>Home</nav><p>It is 10<sup>6</sup>.", subtype="html", cte="base64")
    saved.add_related(b"GIF89a", "image", "gif", cid="<a@b>")
    assert format_of("oil.mhtml", bytes(saved)[:4_096]) == "mail"
    (found,) = read_all(mails.read, tmp_path / "a.mht", bytes(saved))
    assert isinstance(found, ReadText)
    assert (found.title, found.text, found.kind, found.speaker) == ("Oil of Köln", "It is 10^6.", "document", "")
    saved["To"] = "ada@tower.example"
    (found,) = read_all(mails.read, tmp_path / "b.mht", bytes(saved))
    assert isinstance(found, ReadText)
    assert found.kind == "turn"


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


def test_a_mail_within_a_mail_is_one_of_its_own(tmp_path: Path) -> None:
    """Forwarded as attachments, one in the other: each has its writer, its place and its thread."""
    inner, middle, outer = mail("Mooring", "It costs 77.", "<1@x>"), mail("Fwd", "See below.", "<2@x>"), mail("FYI", "")
    middle.add_attachment(inner)
    outer.add_attachment(middle)
    found = read_all(mails.read, tmp_path / "a.eml", bytes(outer))
    assert [(each.place, each.title, each.conversation) for each in found if isinstance(each, ReadText)] == [
        ("", "FYI", ""), ("<2@x>", "Fwd", "<2@x>"), ("<1@x>", "Mooring", "<1@x>"),
    ]  # fmt: skip
    assert texts_of(found)[2].endswith("\n\nIt costs 77.")


def test_mails_within_mails_come_to_an_end(tmp_path: Path) -> None:
    """What is enclosed too deep is named by the last one that is read."""
    made = mail("0", "The innermost.")
    for number in range(1, 20):
        outer = mail(str(number), "Look:")
        outer.add_attachment(made)
        made = outer
    found = read_all(mails.read, tmp_path / "a.eml", bytes(made))
    assert len(found) == 9
    last = found[-1]
    assert isinstance(last, ReadText)
    assert last.left_out == ("a mail within it, too deep to be read",)


def test_an_enclosed_mail_that_is_packed_is_unpacked(tmp_path: Path) -> None:
    """Some programs pack it in base64, which the rules of mails forbid."""
    packed = base64.encodebytes(bytes(mail("Oil", "It is dear."))).decode()
    data = (
        f"Subject: Fwd\nMIME-Version: 1.0\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{packed}"
    )
    whole = f'Subject: Out\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"\n\n--x\n{data}\n--x--\n'
    texts = texts_of(read_all(mails.read, tmp_path / "a.eml", whole.encode()))
    assert texts[1].endswith("Subject: Oil\n\nIt is dear.")


def test_a_text_that_is_attached_is_read_and_another_file_is_named(tmp_path: Path) -> None:
    """The words of a mail are not all in its first part."""
    made = mail("Oil", "See the lists.")
    made.add_attachment("barrels,9\n", filename="oil.csv", subtype="csv")
    made.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="bill.pdf")
    (found,) = read_all(mails.read, tmp_path / "a.eml", bytes(made))
    assert isinstance(found, ReadText)
    assert found.text.endswith(
        "Attachment: oil.csv\nAttachment: bill.pdf\n\nSee the lists.\n\n## Attachment oil.csv\n\nbarrels,9"
    )
    assert found.left_out == ("the attachment bill.pdf is not read: remember the file itself",)


def test_a_page_is_read_where_the_text_only_says_that_there_is_one(tmp_path: Path) -> None:
    """A stub is no text; a text that says the same as the page is taken alone."""
    for times in (1, 20):
        made = mail("News", "Please view this mail in a browser.")
        made.add_alternative(f"<p>{'The lamp burns all night. ' * times}", subtype="html")
        (text,) = texts_of(read_all(mails.read, tmp_path / "a.eml", bytes(made)))
        assert "burns all night" in text
        assert "browser" not in text
    made = mail("Oil", "The oil is dear now, says Maro.")
    made.add_alternative("<p>The oil is <b>dear</b> now, says Maro.", subtype="html")
    (text,) = texts_of(read_all(mails.read, tmp_path / "a.eml", bytes(made)))
    assert text.endswith("The oil is dear now, says Maro.")


@pytest.mark.parametrize(
    ("lines", "delsp", "text"),
    [
        ("closed on Fri \nday", "yes", "closed on Friday"),
        ("closed on \nFriday", "no", "closed on Friday"),
        ("> said \n> so \nand more", "no", "> said so \nand more"),
        (" From here \non\n-- \nMaro", "no", "From here on\n-- \nMaro"),
    ],
)
def test_a_text_that_flows_is_joined(tmp_path: Path, lines: str, delsp: str, text: str) -> None:
    """Lines end where their writer ended them (RFC 3676): neither words nor quotations are torn or joined."""
    data = f"Subject: A\nContent-Type: text/plain; format=flowed; delsp={delsp}\n\n{lines}\n"
    (found,) = texts_of(read_all(mails.read, tmp_path / "a.eml", data.encode()))
    assert found.rstrip() == f"Subject: A\n\n{text}"


def test_a_line_that_begins_with_from_is_no_new_mail(tmp_path: Path) -> None:
    """Many programs leave it as it is, behind an empty line too; others mark it, and the mark is no word."""
    data = box(mail("One", "a\n\nFrom the harbour at 9:30 in 2024\nwe sailed.\n\n>From here on"), mail("Two", "b"))
    one, two = texts_of(read_all(mails.read_box, tmp_path / "a.mbox", data))
    assert one.endswith("From the harbour at 9:30 in 2024\nwe sailed.\n\nFrom here on")
    assert two.endswith("b")


def test_words_in_bytes_that_no_header_may_have_are_read(tmp_path: Path) -> None:
    """Old programs write subjects in the encoding of their country, and declare another than they use."""
    data = "Subject: Grüße\nFrom: Zoë <z@x>\nContent-Type: text/plain; charset=us-ascii\n\nKöln, schöne Grüße\n"
    for encoding in ("utf-8", "cp1252"):
        (found,) = read_all(mails.read, tmp_path / "a.eml", data.encode(encoding))
        assert isinstance(found, ReadText)
        assert (found.title, found.speaker) == ("Grüße", "Zoë <z@x>")
        assert found.text.rstrip().endswith("Köln, schöne Grüße")


@given(data=st.binary(max_size=200), heads=st.lists(st.text(max_size=20), max_size=5))
def test_any_mail_ends_well(reused_folder: Path, data: bytes, heads: list[str]) -> None:
    """Broken headers, charsets and parts are a text, or a reason."""
    path = reused_folder / "a.mbox"
    lines = "\n".join(f"{name}: {each}" for name, each in zip(("Subject", "Date", "Content-Type"), heads, strict=False))
    found = read_all(mails.read_box, path, b"From x\n" + lines.encode("utf-8", "replace") + b"\n\n" + data)
    assert found
