"""Given files of EPUB, whose chapters stand in another order than they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reading_case_side import GivenFile, make_archive
from reading_texts_side import PICTURE_URI, PIXELS

_CONTAINER: Final = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="{}" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def files() -> Iterator[GivenFile]:
    """Yield them."""
    yield from books()
    yield from odd_books()
    yield from locked_books()


def chapter(title: str, body: str) -> str:
    """Return a chapter of a book."""
    return (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"'
        ' xmlns:epub="http://www.idpf.org/2007/ops">'
        f"<head><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>"
    )


def epub(
    opf: str,
    chapters: Mapping[str, str],
    spine: Sequence[str],
    title: str,
    more: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """Return a book whose package stands at `opf`, with its chapters in the order of `spine`."""
    folder = opf.rpartition("/")[0]
    items = "".join(
        f'<item id="i{at}" href="{name.replace(" ", "%20")}" media-type="application/xhtml+xml"/>'
        for at, name in enumerate(chapters)
    )
    refs = "".join(f'<itemref idref="i{list(chapters).index(name)}"/>' for name in spine)
    package = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0"'
        ' unique-identifier="u"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:identifier"
        f' id="u">urn:{title}</dc:identifier><dc:title>{title}</dc:title><dc:language>en</dc:language></metadata>'
        f"<manifest>{items}</manifest><spine>{refs}</spine></package>"
    )
    inside = {f"{folder}/{name}" if folder else name: text for name, text in chapters.items()}
    return make_archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": _CONTAINER.format(opf),
            opf: package,
            **inside,
            **(more or {}),
        },
        "mimetype",
    )


def books() -> Iterator[GivenFile]:
    """Yield books of several chapters."""
    chapters = {
        "text/a-last.xhtml": chapter("The return", "<p>At the end the pilot Rennie sold the cutter.</p>"),
        "text/b-first.xhtml": chapter("The storm", "<p>It began with a storm off Foula.</p>"),
        "nav.xhtml": chapter(
            "Contents", '<nav epub:type="toc"><ol><li><a href="text/b-first.xhtml">The storm</a></li></ol></nav>'
        ),
    }
    data = epub(
        "OEBPS/package/content.opf", chapters, ["text/b-first.xhtml", "text/a-last.xhtml"], "The Cutter of Foula"
    )
    ordered = "It began with a storm off Foula.", "At the end the pilot Rennie sold the cutter."
    yield GivenFile("epub-nested.epub", "epub", data, ("The Cutter of Foula", "The storm", *ordered))
    yield GivenFile(
        "epub-order.epub",
        "epub",
        epub(
            "content.opf",
            {
                "1.xhtml": chapter("Two", "<p>and was found by Thora.</p>"),
                "2.xhtml": "<html xmlns='http://www.w3.org/1999/xhtml'><body><p>The ring was lost</p></body></html>",
            },
            ["2.xhtml", "1.xhtml"],
            "Ring",
        ),
        ("The ring was lost", "and was found by Thora."),
        (),
        ("by Thora. The ring was lost",),
    )
    unlisted = chapter("Draft", "<p>A draft that no reader turns to.</p>")
    data = epub(
        "EPUB/p.opf",
        {"c 1.xhtml": chapter("Löwenzahn", "<p>Der Löwenzahn blüht auf Feld 63.</p>"), "draft.xhtml": unlisted},
        ["c 1.xhtml"],
        "Felder",
    )
    yield GivenFile(
        "epub-blank-in-name.epub",
        "epub",
        data,
        ("Löwenzahn", "Der Löwenzahn blüht auf Feld 63."),
        (),
        ("no reader turns to",),
    )


def odd_books() -> Iterator[GivenFile]:
    """Yield books with pictures, hidden words and a chapter that is missing."""
    data = epub(
        "OPS/b.opf",
        {
            "one.xhtml": chapter(
                "Plates",
                f'<p>Plate 5 shows a stoat.</p><img alt="" src="{PICTURE_URI}"/><p style="display:none">secret of the'
                " printer</p><p>It weighs 10<sup>2</sup> grams.</p>",
            )
        },
        ["one.xhtml"],
        "Mammals",
        {"OPS/stoat.png": b"\x89PNG\r\n\x1a\n" + bytes(64)},
    )
    yield GivenFile(
        "epub-pictures.epub",
        "epub",
        data,
        ("Plate 5 shows a stoat.", ("10^2 grams", "10² grams")),
        (),
        (PIXELS[:40], "secret of the printer", "102 grams"),
    )


def locked_books() -> Iterator[GivenFile]:
    """Yield books that lack a chapter, or lock one."""
    parts = {
        "x.xhtml": chapter("Ebb", "<p>Ebb at Brest is at 04:17.</p>"),
        "y.xhtml": chapter("Flood", "<p>Flood at Brest is at 10:31.</p>"),
    }
    data = epub("OPS/b.opf", parts, ["x.xhtml", "y.xhtml", "x.xhtml"], "Tides").replace(b"OPS/y.xhtml", b"OPS/z.xhtml")
    yield GivenFile(
        "epub-missing-chapter.epub",
        "epub",
        data,
        ("Ebb at Brest is at 04:17.",),
        (("y.xhtml", "chapter", "missing", "not there"),),
    )
    locked = (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData'
        ' xmlns="http://www.w3.org/2001/04/xmlenc#"><CipherData><CipherReference'
        ' URI="OPS/k.xhtml"/></CipherData></EncryptedData></encryption>'
    )
    data = epub(
        "OPS/b.opf",
        {"k.xhtml": "\x07\x11locked words\x03", "f.xhtml": chapter("Free", "<p>The preface is free to read.</p>")},
        ["f.xhtml", "k.xhtml"],
        "Locked",
        {"META-INF/encryption.xml": locked},
    )
    yield GivenFile(
        "epub-locked.epub",
        "epub",
        data,
        ("The preface is free to read.",),
        (("k.xhtml", "encrypted", "locked", "protected", "chapter"),),
        ("locked words",),
    )
