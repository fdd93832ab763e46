"""Given files of mailboxes, as common programs write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reading_case_side import GivenFile
from reading_mails_side import attachment, mail, multipart, text

_START: Final = b"From - Fri Mar 14 07:00:00 2025\nX-Mozilla-Status: 0001\n"


def files() -> Iterator[GivenFile]:
    """Yield them."""
    yield from boxes()
    yield from odd_boxes()
    yield from enclosing_boxes()


def entry(words: str, number: int) -> bytes:
    """Return a mail as a mailbox has it."""
    return (
        b"From keeper@yard.example Mon Mar  3 09:00:00 2025\n"
        + mail(f"Keeper Nr{number}", f"Line {number}", number % 28 + 1, text(words))
        + b"\n\n"
    )


def boxes() -> Iterator[GivenFile]:
    """Yield mailboxes."""
    first, second = (
        b"From sexton@yard.example Tue Mar 11 09:00:00 2025\n",
        b"From MAILER-DAEMON Wed Mar 12 10:00:00 2025\n",
    )
    one = mail(
        "Ida Sand",
        "Lamp oil",
        11,
        text("Dear all,\n\nFrom Monday on the lamp oil costs 23 pence.\n\nFrom here to Fakse it is cheaper.\n"),
    )
    two = mail("Ove Krog", "Re: Lamp oil", 12, text(">From my stock I sell at 21 pence.\n"))
    wanted = (
        "From Monday on the lamp oil costs 23 pence.",
        "From here to Fakse it is cheaper.",
        "From my stock I sell at 21 pence.",
        "Ove Krog",
    )
    yield GivenFile(
        "mbox-unescaped-from.mbox", "mbox", first + one + b"\n" + second + two + b"\n", wanted, (), (">From my stock",)
    )
    folded = (
        b"From MAILER Mon Mar  3 10:00:00 2025\nReturn-Path:\n <bounce+7@disc.example>\n"
        + mail("Disc Forum", "Digest of boats", 3, text("The sloop Vita has a new mast of larch.\n"))
        + b"\n"
    )
    yield GivenFile("mbox-folded-first.mbox", "mbox", folded, ("The sloop Vita has a new mast of larch.", "Disc Forum"))
    gmail = (
        b"From 1823456789@xxx Thu Mar 13 08:00:00 +0000 2025\nX-GM-THRID: 1823456789\nX-Gmail-Labels: Inbox,Unread\n"
    )
    data = (
        gmail
        + mail("Aino Laine", "Sauna", 13, text("Saunan kiuas painaa 90 kiloa.\n")).replace(b"\n", b"\r\n")
        + b"\r\n"
        + gmail
        + mail("Eero Salo", "Puut", 14, text("Koivupuut maksavat 66 euroa.\n"))
    )
    yield GivenFile(
        "mbox-gmail.mbox", "mbox", data, ("Saunan kiuas painaa 90 kiloa.", "Koivupuut maksavat 66 euroa.", "Eero Salo")
    )


def odd_boxes() -> Iterator[GivenFile]:
    """Yield mailboxes with an attachment, and with a mail without a day."""
    parts = multipart(
        "mixed", [text("Chart attached, Pia."), attachment("kattegat.pdf", b"%PDF-1.4 nothing", "application/pdf")]
    )
    data = (
        _START
        + mail("Pia Lund", "Chart", 14, parts)
        + b"\n"
        + _START
        + mail("Kaj Blom", "Tar", 15, text("Two barrels of tar, 88 marks."))
        + b"\n"
    )
    yield GivenFile(
        "mbox-thunderbird.mbox",
        "mbox",
        data,
        ("Chart attached, Pia.", "Two barrels of tar, 88 marks."),
        ("kattegat.pdf",),
    )
    data = (
        _START
        + b"Subject: no date\nFrom: nobody\n\nA note without a day, about 5 geese.\n\n"
        + _START
        + mail("Lars Due", "Geese", 16, text("Six geese, not five."))
    )
    yield GivenFile("mbox-no-date.mbox", "mbox", data, ("A note without a day, about 5 geese.", "Six geese, not five."))


def enclosing_boxes() -> Iterator[GivenFile]:
    """Yield mailboxes with an enclosed mail, and with a byte that is no letter."""
    fwd = mail(
        "Nis Holt",
        "Fwd",
        17,
        multipart(
            "mixed",
            [
                text("Look, from Kirsten."),
                b"Content-Type: message/rfc822\n\n" + mail("Kirsten Vad", "Net", 1, text("The net tore at buoy 44.")),
            ],
        ),
    )
    yield GivenFile(
        "mbox-forwarded.mbox",
        "mbox",
        _START + fwd + b"\n",
        ("Look, from Kirsten.", "The net tore at buoy 44.", "Kirsten Vad"),
    )
    yield GivenFile(
        "mbox-broken-byte.mbox",
        "mbox",
        _START
        + mail("Liv Aas", "Smørrebrød", 18, text("Brødet på bordet koster 7 øre. ~ Slut.")).replace(b"~", b"\xff")
        + b"\n",
        ("Brødet på bordet koster 7 øre.",),
        (("byte", "decod", "encod", "utf-8"),),
        ("BrÃ¸det",),
    )
