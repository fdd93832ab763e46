"""Given files of plain text, Markdown, CSV, TSV, cards and calendars, and files that are no text."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from typing import Final

from reading_case_side import PICTURE, GivenFile

#: A picture of one pixel, as base64 of many lines would begin.
PIXELS: Final = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 12).decode()
PICTURE_URI: Final = f"data:image/png;base64,{PIXELS}"
UNDECODED: Final = ("byte", "utf-8", "encod", "decod")


def files() -> Iterator[GivenFile]:
    """Yield them."""
    yield from texts()
    yield from national_texts()
    yield from short_texts()
    yield from markdown()
    yield from tables()
    yield from cards()
    yield from vcalendars()
    yield from refused_files()


def texts() -> Iterator[GivenFile]:
    """Yield texts that are not plain UTF-8."""
    late = b"Plain words of the ferry's log, page after page.\n" * 3000
    yield GivenFile(
        "text-late-latin.txt",
        "text",
        late + "Owed to Íñigo Peña: 318 crowns.\n".encode("latin-1"),
        ("Owed to Íñigo Peña: 318 crowns.",),
        (),
        ("Pe�a", "PeÃ±a"),
    )
    broken = "Die Mühle schließt am 3. Mai.\nDie Bäckerin zahlt 14 € Miete.\nSäge und Öl liegen im Schuppen.\n".encode()
    yield GivenFile(
        "text-broken-bytes.txt",
        "text",
        broken.replace(b"Mai", b"Mai\xff") + b"Der Hof hat \xfe sieben T\xc3\xbcren.\n",
        ("Die Mühle schließt am 3. Mai", "Die Bäckerin zahlt 14 € Miete.", "sieben Türen"),
        (UNDECODED,),
        ("MÃ¼hle", "Ă"),
    )
    cut = ("Ærlig talt koster båden 77 kroner om ugen. " * 40 + "Slutningen på sagen er rød").encode()[:-1]
    yield GivenFile(
        "text-cut-character.txt",
        "text",
        cut[:-1] + b"\xc3",
        ("Ærlig talt koster båden 77 kroner om ugen.", "Slutningen på sagen"),
        (UNDECODED,),
        ("bÃ¥den", "Ć"),
    )


def national_texts() -> Iterator[GivenFile]:
    """Yield texts in encodings of other scripts."""
    russian = (
        "Договор аренды причала.\nАрендатор платит 410 рублей в месяц до сентября.\n"
        "Ключ от склада хранится у Натальи Орловой.\nСторож закрывает ворота в девять вечера.\n"
    )
    yield GivenFile(
        "text-koi8.txt",
        "text",
        russian.encode("koi8-r"),
        ("Арендатор платит 410 рублей в месяц", "у Натальи Орловой"),
        (),
        ("дПЗПЧПТ",),
    )
    wide = "Inventory of the boathouse\r\nSeven oars, two of them cracked.\r\nThe anchor weighs 31 kilograms.\r\n"
    yield GivenFile(
        "text-utf16-no-mark.txt",
        "text",
        wide.encode("utf-16-le"),
        ("Seven oars, two of them cracked.", "The anchor weighs 31 kilograms."),
        (),
        ("S\0e",),
    )
    yield GivenFile(
        "text-utf16-big.txt",
        "text",
        b"\xfe\xff" + "Zápis: kotva stojí 59 korun.\r\nŽebřík je v kůlně.".encode("utf-16-be"),
        ("Zápis: kotva stojí 59 korun.", "Žebřík je v kůlně."),
    )


def short_texts() -> Iterator[GivenFile]:
    """Yield texts of one code page, and what a power cut leaves."""
    windows = "“The quay is closed”, said the warden – it costs 12 € a day.\r\nCafé Liège opens at six…\r\n"
    yield GivenFile(
        "text-windows.txt",
        "text",
        windows.encode("cp1252"),
        ("“The quay is closed”", "it costs 12 € a day", "Café Liège opens at six…"),
        (),
        ("\x93", "CafÃ©"),
    )
    log = b"".join(b"2024-03-%02d 06:00 pump %d started, 8%d litres\n" % (day, day, day) for day in range(1, 29))
    yield GivenFile(
        "text-nul-log.log",
        "text",
        log + b"\0" * 64 + b"2024-03-29 06:12 pump 29 failed: valve stuck\n",
        ("2024-03-07 06:00 pump 7 started, 87 litres", "pump 29 failed: valve stuck"),
        (("nul", "byte"),),
        ("\0",),
    )
    dos = (
        "Kaufvertrag über eine Säge\r\nDer Käufer zahlt 95 Mark. Die Übergabe ist am Mühlbach.\r\nGrüße, Jörg"
        " Schäfer\r\n"
    )
    yield GivenFile(
        "text-windows-german.txt",
        "text",
        dos.encode("cp1252"),
        ("Kaufvertrag über eine Säge", "Der Käufer zahlt 95 Mark.", "Grüße, Jörg Schäfer"),
    )
    japanese = "桟橋の鍵は佐藤さんが持っています。\n料金は一日四百二十円です。\n門は九時に閉まります。\n" * 3
    yield GivenFile(
        "text-shift-jis.txt", "text", japanese.encode("cp932"), ("料金は一日四百二十円です。", "桟橋の鍵は佐藤さん")
    )
    yield GivenFile(
        "text-mark.txt", "text", b"\xef\xbb\xbf" + "Łódź płaci 64 złote.\n".encode(), ("Łódź płaci 64 złote.",)
    )


def markdown() -> Iterator[GivenFile]:
    """Yield Markdown, some with pictures within."""
    yield GivenFile(
        "markdown-data-uri.md",
        "markdown",
        f"# Kiln\n\nFiring takes 19 hours.\n\n![Glaze sample]({PICTURE_URI})\n\nThe glaze is celadon.\n".encode(),
        ("Firing takes 19 hours.", "The glaze is celadon."),
        (PICTURE,),
        (PIXELS[:40], PIXELS[400:440]),
    )
    yield GivenFile(
        "markdown-data-reference.md",
        "markdown",
        f"Plan of the weir: ![][plan]\n\nThe weir is 23 metres wide.\n\n[plan]: <{PICTURE_URI}>\n".encode(),
        ("Plan of the weir", "The weir is 23 metres wide."),
        (PICTURE,),
        (PIXELS[:40],),
    )
    yield GivenFile(
        "markdown-img-tag.md",
        "markdown",
        f'Map of the moor\n\n<img alt="moor" src="{PICTURE_URI}">\n\nThe path begins at stone 46.\n'.encode(),
        ("Map of the moor", "The path begins at stone 46."),
        (PICTURE,),
        (PIXELS[:40],),
    )
    yield GivenFile(
        "markdown-front-matter.md",
        "markdown",
        b"---\ntitle: Sheep count\ndate: 2023-10-02\n---\n\n# Count\n\n- Orrin: 41 sheep\n- Tarn: 38 sheep\n",
        ("Sheep count", "Orrin: 41 sheep", "Tarn: 38 sheep"),
    )
    yield GivenFile(
        "markdown-code.md",
        "markdown",
        b"Run this:\n\n```sh\nferryctl --berth 14 <<EOF\n<b>not HTML</b>\nEOF\n```\n\nThen wait for the bell.\n",
        ("ferryctl --berth 14 <<EOF", "<b>not HTML</b>", "Then wait for the bell."),
    )
    yield GivenFile(
        "markdown-table.md",
        "markdown",
        "| Étage | Loyer |\n|---|---:|\n| premier | 512 € |\n| deuxième | 487 € |\n\nLe bail finit en juin.\n".encode(),
        ("| premier | 512 € |", "| deuxième | 487 € |", "Le bail finit en juin."),
    )


def tables() -> Iterator[GivenFile]:
    """Yield rows with commas, semicolons and tabulators."""
    yield GivenFile(
        "csv-quotes.csv",
        "csv",
        b'item,price,remark\r\n"Lamp, brass",44,"says ""mended"""\r\nWick,3,"two\r\nlines"\r\n',
        ("Lamp, brass", "44", ('says ""mended""', 'says "mended"'), "Wick"),
    )
    yield GivenFile(
        "csv-semicolons.csv",
        "csv",
        "Ort;Miete;Datum\r\nGroßröhrsdorf;1.234,50;03.04.2024\r\n".encode("cp1252"),
        ("Großröhrsdorf", "1.234,50", "03.04.2024"),
    )
    yield GivenFile(
        "csv-excel-mark.csv",
        "csv",
        b"\xef\xbb\xbf" + "sep=;\r\nnom;âge\r\nZoé Fabre;37\r\n".encode(),
        ("Zoé Fabre", "37"),
    )
    rows = "".join(f"Hamlet-{n},{n * 3 % 71},{n * 13 % 997}\n" for n in range(1500))
    yield GivenFile("csv-many-rows.csv", "csv", f"hamlet,wells,deficit\n{rows}".encode(), ("Hamlet-1499", "Hamlet-777"))
    bad = "rok,sklizeň\n2021,84 žoků\n2022,".encode() + b"\xff" + " 91 žoků\n".encode()
    yield GivenFile("csv-broken-byte.csv", "csv", bad, ("84 žoků", "91 žoků"), (UNDECODED,), ("Å¾",))
    yield GivenFile(
        "tsv-plain.tsv",
        "tsv",
        b"berth\tboat\tfee\n17\tHeron of Lund\t210\n18\tGrey Teal\t\n",
        ("Heron of Lund", "Grey Teal"),
    )
    wide = "\ufeffName\tOrt\tBetrag\r\nBjörn Åkesson\tMalmö\t1 090\r\n".encode("utf-16-le")
    yield GivenFile("tsv-utf16.tsv", "tsv", wide, ("Björn Åkesson", "Malmö"), (), ("B\0",))
    yield GivenFile(
        "tsv-postgres.tsv",
        "tsv",
        b"id\tnote\n1\tfirst\\nsecond half\n2\t\\N\n3\tbell of Varde\n",
        ("second half", "bell of Varde"),
    )


def cards() -> Iterator[GivenFile]:
    """Yield cards of persons."""
    old = (
        "BEGIN:VCARD\r\nVERSION:2.1\r\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg\r\nFN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:J=C3=B6rg"
        " M=C3=BCller\r\nTEL;CELL:+49 171 555 0142\r\nNOTE;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Schl=C3=BCssel liegt"
        " unter der =\r\nT=C3=BCrmatte links\r\nEND:VCARD\r\n"
    )
    yield GivenFile(
        "cards-quoted.vcf",
        "cards",
        old.encode(),
        ("Jörg Müller", "+49 171 555 0142", "Schlüssel liegt unter der Türmatte links"),
        (),
        ("M=C3=BC", "T=C3"),
    )
    photo = "\r\n ".join(PIXELS[at : at + 74] for at in range(0, len(PIXELS), 74))
    new = (
        "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Astrid Lindqvist\r\nORG:Yard of"
        f" Ystad;Sails\r\nEMAIL;TYPE=INTERNET:astrid@ystad.example\r\nPHOTO;ENCODING=b;TYPE=PNG:{photo}\r\nNOTE:Likes"
        " rye bread\\, plain\\; the long line of this not\r\n e is folded"
        " here\r\nEND:VCARD\r\nBEGIN:VCARD\r\nVERSION:3.0\r\nFN:Emil"
        " Brodersen\r\nTEL;TYPE=HOME:040-5550199\r\nEND:VCARD\r\n"
    )
    yield GivenFile(
        "cards-photo.vcf",
        "cards",
        new.encode(),
        (
            "Astrid Lindqvist",
            "astrid@ystad.example",
            "rye bread, plain; the long line of this note is folded here",
            "Emil Brodersen",
        ),
        ((*PICTURE, "photo"),),
        (PIXELS[:40], PIXELS[740:780]),
    )
    four = (
        "BEGIN:VCARD\nVERSION:4.0\nFN:Siân"
        " Prydderch\nitem1.TEL;VALUE=uri:tel:+44-1970-555-018\nBDAY:19840229\nNOTE:Holds the spare\n  key of shed"
        " 9\nEND:VCARD\n"
    )
    yield GivenFile(
        "cards-four.vcf",
        "cards",
        four.encode(),
        ("Siân Prydderch", "+44-1970-555-018", "Holds the spare key of shed 9"),
    )


def vcalendars() -> Iterator[GivenFile]:
    """Yield calendars."""
    event = (
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Example//EN\r\nBEGIN:VEVENT\r\nUID:a1@example\r\nDTSTART;TZID=Europe/Oslo:20240611T183000\r\n"
        "SUMMARY:Årsmøte i båtforeningen\\, sal 3\r\nDESCRIPTION:Bring the ledger.\\nThe treasurer speaks fir\r\n"
        " st.\r\nLOCATION:Tjuvholmen\r\n"
        "BEGIN:VALARM\r\nTRIGGER:-PT15M\r\nACTION:DISPLAY\r\nEND:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    yield GivenFile(
        "cards-event.ics",
        "cards",
        event.encode(),
        ("Årsmøte i båtforeningen, sal 3", "The treasurer speaks first.", ("2024-06-11", "20240611"), "Tjuvholmen"),
        (),
        ("ledger.\\n",),
    )
    quoted = (
        "BEGIN:VCALENDAR\r\nVERSION:1.0\r\nBEGIN:VEVENT\r\nDTSTART:20230918T070000Z\r\nSUMMARY;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:Z=C3=A1vod"
        " lod=C3=AD u p=C5=\r\n=99=C3=ADstavu\r\nEND:VEVENT\r\nBEGIN:VJOURNAL\r\nSUMMARY:Tar the hull of the"
        " Kestrel\r\nDTSTART:20231001\r\nEND:VJOURNAL\r\nEND:VCALENDAR\r\n"
    )
    yield GivenFile(
        "cards-quoted.ics",
        "cards",
        quoted.encode(),
        ("Závod lodí u přístavu", "Tar the hull of the Kestrel"),
        (),
        ("=C3=A1vod",),
    )


def refused_files() -> Iterator[GivenFile]:
    """Yield files that are no text, whose refusal names a remedy."""
    remedies = ("pandoc", "libreoffice", "soffice", "textutil", "unrtf", "save it as")
    yield GivenFile(
        "refused-letter.rtf",
        "refused",
        rb"{\rtf1\ansi\deff0{\fonttbl{\f0 Arial;}}\f0 The lease ends in {\b August}.\par}",
        (),
        (remedies,),
        ("fonttbl",),
    )
    yield GivenFile(
        "refused-named-doc.doc", "refused", rb"{\rtf1\ansi Rent of the shed is 66.\par}", (), (remedies,), ("rtf1",)
    )
    office = (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
        + bytes(16)
        + b"\x3e\x00\x03\x00\xfe\xff\x09\x00"
        + bytes(1504)
        + "Old letter".encode("utf-16-le")
    )
    yield GivenFile("refused-old.doc", "refused", office, (), (("antiword", "catdoc", *remedies),))
    yield GivenFile("refused-picture.png", "refused", base64.b64decode(PIXELS), (), (("tesseract", "ocr"),))
    yield GivenFile(
        "refused-photo.jpg",
        "refused",
        b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0" + zlib.compress(PIXELS.encode()),
        (),
        (("tesseract", "ocr"),),
    )
    yield GivenFile(
        "refused-packed.txt.gz",
        "refused",
        b"\x1f\x8b\x08\0\0\0\0\0\0\3" + zlib.compress(b"The tide table.")[2:-4] + bytes(8),
        (),
        (("gzip", "gunzip"),),
    )
