"""Given files of mails, as common programs write them."""

from __future__ import annotations

import base64
import quopri
from collections.abc import Iterator, Sequence

from reading_case_side import GivenFile

Part = tuple[str, bytes]


def files() -> Iterator[GivenFile]:
    """Yield them."""
    yield from plain()
    yield from flowed_mails()
    yield from alternatives()
    yield from enclosed_mails()
    yield from odd_enclosures()
    yield from attached_files()


def mail(who: str, subject: str, day: int, content: bytes) -> bytes:
    """Return a mail of a day in March 2025; the content begins with its own headers."""
    name = who.partition(" ")[0].casefold()
    head = f"From: {who} <{name}@yard.example>\nTo: You <you@home.example>\nSubject: {subject}\n"
    head += (
        f"Date: {('Sat', 'Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri')[(day - 1) % 7]}, {day:02} Mar 2025 09:{day:02}:00"
        " +0100\n"
    )
    return head.encode() + f"Message-ID: <{name}.{day}@yard.example>\nMIME-Version: 1.0\n".encode() + content


def text(words: str, charset: str = "utf-8", more: str = "", encoding: str = "8bit", kind: str = "plain") -> bytes:
    """Return a part of text with its headers."""
    data = words.encode(charset)
    if encoding == "quoted-printable":
        data = quopri.encodestring(data)
    elif encoding == "base64":
        data = base64.encodebytes(data)
    return (
        f"Content-Type: text/{kind}; charset={charset}{more}\nContent-Transfer-Encoding: {encoding}\n\n".encode() + data
    )


def multipart(kind: str, parts: Sequence[bytes], mark: str = "=_part_1") -> bytes:
    """Return parts in one, with the header."""
    inner = b"".join(b"--%b\n%b\n" % (mark.encode(), part) for part in parts)
    return f'Content-Type: multipart/{kind}; boundary="{mark}"\n\n'.encode() + inner + f"--{mark}--\n".encode()


def attachment(name: str, data: bytes, media: str = "application/octet-stream") -> bytes:
    """Return an attached file."""
    head = (
        f'Content-Type: {media}; name="{name}"\nContent-Disposition: attachment;'
        f' filename="{name}"\nContent-Transfer-Encoding: base64\n\n'
    )
    return head.encode() + base64.encodebytes(data)


def plain() -> Iterator[GivenFile]:
    """Yield mails of one text, in several encodings."""
    words = "Hej! Färjan går från Öregrund klockan sju. Biljetten kostar 55 kronor."
    yield GivenFile(
        "eml-quoted.eml",
        "eml",
        mail(
            "Sture Holm", "=?utf-8?Q?F=C3=A4rjan_i_morgon?=", 4, text(words, "iso-8859-1", encoding="quoted-printable")
        ),
        ("Färjan går från Öregrund klockan sju.", "Färjan i morgon", "Sture Holm"),
        (),
        ("F=E4rjan", "=?utf-8"),
    )
    words = "Добрый день! Лодка Чайка продана за 900 рублей."
    yield GivenFile(
        "eml-base64-koi8.eml",
        "eml",
        mail(
            "Vera Lukina",
            "=?koi8-r?B?" + base64.b64encode("Лодка".encode("koi8-r")).decode() + "?=",
            5,
            text(words, "koi8-r", encoding="base64"),
        ),
        ("Лодка Чайка продана за 900 рублей.", "Vera Lukina"),
        (),
        ("=?koi8",),
    )
    wrong = text("Die Fähre nach Föhr fällt aus, Gebühr 8 €.", "utf-8").replace(b"charset=utf-8", b"charset=us-ascii")
    yield GivenFile(
        "eml-wrong-charset.eml",
        "eml",
        mail("Wiebke Jans", "Ausfall", 6, wrong),
        ("Die Fähre nach Föhr fällt aus, Gebühr 8 €.",),
        (),
        ("FÃ¤hre", "F��hre"),
    )
    unknown = text("The cooper of Ronda mends 6 casks.", "utf-8").replace(b"charset=utf-8", b"charset=unknown-8bit")
    yield GivenFile(
        "eml-unknown-charset.eml",
        "eml",
        mail("Paco Ruiz", "Casks", 7, unknown),
        ("The cooper of Ronda mends 6 casks.", ("2025-03-07", "07 Mar 2025")),
    )
    yield GivenFile(
        "eml-crlf.eml",
        "eml",
        mail("Nell Avery", "Hay", 8, text("Hay is 4 shillings a bale.\nFetch it by Sunday.")).replace(b"\n", b"\r\n"),
        ("Hay is 4 shillings a bale. Fetch it by Sunday.", "Nell Avery"),
    )


def flowed_mails() -> Iterator[GivenFile]:
    """Yield mails whose lines flow."""
    words = "The beam of the weighing house was replaced on Thurs \nday, and the old one was sa \nwn into planks.\n"
    yield GivenFile(
        "eml-flowed-delsp.eml",
        "eml",
        mail("Otis Bell", "Beam", 9, text(words, more="; format=flowed; delsp=yes")),
        ("on Thursday, and the old one was sawn into planks.",),
        (),
        ("Thurs day", "sa wn"),
    )
    words = (
        "> Who pays for \n> the new bell rope?\nThe parish does, all \n31 pounds of it.\n -- stuffed dash\n-- \nOtto,"
        " sexton of Yelland\n"
    )
    yield GivenFile(
        "eml-flowed-quote.eml",
        "eml",
        mail("Cleo Marsh", "Rope", 10, text(words, more="; format=flowed")),
        ("Who pays for the new bell rope?", "The parish does, all 31 pounds of it.", "-- stuffed dash"),
        (),
        ("for > the",),
    )
    words = "Vi ses p=C3=A5 s=\n=C3=B8ndag klokken 11=20\nved Nyhavns kran.\n"
    part = (
        "Content-Type: text/plain; charset=utf-8; format=flowed\nContent-Transfer-Encoding:"
        f" quoted-printable\n\n{words}".encode()
    )
    yield GivenFile(
        "eml-flowed-quoted.eml",
        "eml",
        mail("Mette Friis", "Kran", 11, part),
        ("Vi ses på søndag klokken 11 ved Nyhavns kran.",),
    )


def alternatives() -> Iterator[GivenFile]:
    """Yield mails with a text beside HTML."""
    html = text(
        "<html><body><p>Your parcel <b>RX 618</b> waits at the kiosk of Pirna until the 20th.</p><p"
        " style='display:none'>preheader filler words</p></body></html>",
        kind="html",
    )
    stub = text("Your mail program does not show HTML. Please view this message in a browser.")
    yield GivenFile(
        "eml-stub.eml",
        "eml",
        mail("Post Depot", "Parcel", 12, multipart("alternative", [stub, html])),
        (("Your parcel RX 618 waits at the kiosk of Pirna", "Your parcel **RX 618** waits at the kiosk of Pirna"),),
        (),
        ("preheader filler",),
    )
    both = multipart(
        "alternative",
        [
            text("The well of Trebnitz is 18 m deep."),
            text("<p>The well of <i>Trebnitz</i> is 18 m deep.</p>", kind="html"),
        ],
    )
    yield GivenFile(
        "eml-alternative.eml",
        "eml",
        mail("Jana Wolf", "Well", 13, both),
        ("The well of Trebnitz is 18 m deep.",),
        (),
        ("<p>", "<i>"),
    )
    only = text(
        "<div>Le four &agrave; chaux de Mons br&ucirc;le 2&nbsp;jours.<br>Apportez du bois.</div>",
        kind="html",
        encoding="quoted-printable",
    )
    yield GivenFile(
        "eml-only-html.eml",
        "eml",
        mail("Luc Petit", "Four", 14, only),
        ("Le four à chaux de Mons brûle 2 jours.", "Apportez du bois."),
        (),
        ("&agrave;", "<div>"),
    )
    empty = multipart(
        "alternative", [text("\n \n"), text("<p>The ice of Lake Siljan bears 3 horses.</p>", kind="html")]
    )
    yield GivenFile(
        "eml-empty-text.eml", "eml", mail("Anders Ek", "Ice", 15, empty), ("The ice of Lake Siljan bears 3 horses.",)
    )


def enclosed_mails() -> Iterator[GivenFile]:
    """Yield mails within mails."""
    inner = mail("Greta Munk", "Berth 26", 2, text("Berth 26 is let to the Falcon for 83 crowns a week."))
    middle = mail(
        "Halvor Dahl",
        "Fwd: Berth 26",
        3,
        multipart("mixed", [text("Greta's note is below."), b"Content-Type: message/rfc822\n\n" + inner], "=_inner"),
    )
    outer = mail(
        "Signe Moth",
        "Fwd: Fwd: Berth 26",
        16,
        multipart(
            "mixed",
            [
                text("For the file, Signe."),
                b"Content-Type: message/rfc822\nContent-Disposition: attachment\n\n" + middle,
            ],
        ),
    )
    yield GivenFile(
        "eml-forwarded-twice.eml",
        "eml",
        outer,
        (
            "For the file, Signe.",
            "Greta's note is below.",
            "Berth 26 is let to the Falcon for 83 crowns a week.",
            "Greta Munk",
            ("2025-03-02", "02 Mar 2025"),
        ),
    )


def odd_enclosures() -> Iterator[GivenFile]:
    """Yield mails within mails that are packed, or were returned."""
    digest = [
        b"\n" + mail(f"{who} Ravn", f"Issue {at}", at, text(f"Issue {at}: the {thing} of Ribe leans."))
        for at, (who, thing) in enumerate((("Ulla", "tower"), ("Knud", "chimney")), 20)
    ]
    yield GivenFile(
        "eml-digest.eml",
        "eml",
        mail("List Server", "Digest 9", 17, multipart("digest", digest)),
        ("Issue 20: the tower of Ribe leans.", "Issue 21: the chimney of Ribe leans.", "Ulla Ravn"),
    )
    encoded = (
        b'Content-Type: message/rfc822; name="old.eml"\nContent-Transfer-Encoding: base64\n\n'
        + base64.encodebytes(mail("Ebba Lind", "Oats", 1, text("Oats were 14 marks in Lund.")))
    )
    yield GivenFile(
        "eml-enclosed-base64.eml",
        "eml",
        mail("Rolf Krag", "Old mail", 18, multipart("mixed", [text("See the mail of Ebba."), encoded])),
        ("See the mail of Ebba.", "Oats were 14 marks in Lund."),
    )
    bounce = [
        text("Your message to tove@nowhere.example was not delivered."),
        (
            b"Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822;"
            b" tove@nowhere.example\nStatus: 5.1.1\n"
        ),
        b"Content-Type: message/rfc822\n\n"
        + mail("Me Myself", "Key", 19, text("Tove, the key of the loft is under brick 12.")),
    ]
    yield GivenFile(
        "eml-bounce.eml",
        "eml",
        mail("Mail Daemon", "Undelivered", 19, multipart("report", bounce)),
        ("was not delivered", "the key of the loft is under brick 12"),
    )


def attached_files() -> Iterator[GivenFile]:
    """Yield mails with attached files."""
    parts = [
        text("The survey of the dyke is attached."),
        attachment("dyke-survey.zip", b"PK\5\6" + bytes(18)),
        attachment("crest.jpg", b"\xff\xd8\xff\xe0" + bytes(50), "image/jpeg"),
    ]
    yield GivenFile(
        "eml-attachments.eml",
        "eml",
        mail("Tilda Bro", "Survey", 20, multipart("mixed", parts)),
        ("The survey of the dyke is attached.",),
        ("dyke-survey.zip", "crest.jpg"),
    )
    notes = text("Peat is cut at Store Vildmose from May on.").replace(
        b"Content-Transfer", b'Content-Disposition: attachment; filename="peat.txt"\nContent-Transfer'
    )
    named = (
        b"Content-Type: application/pdf\nContent-Disposition: attachment;\n filename*0*=utf-8''%C3%85rs;"
        b" filename*1*=regnskab.pdf\nContent-Transfer-Encoding: base64\n\nJVBERi0xLjQK\n"
    )
    yield GivenFile(
        "eml-attached-names.eml",
        "eml",
        mail("Bent Aagaard", "Papers", 21, multipart("mixed", [text("Two papers, Bent."), notes, named])),
        ("Two papers, Bent.",),
        ("Årsregnskab.pdf",),
    )
