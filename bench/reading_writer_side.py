"""Given files of LibreOffice Writer, as zipped XML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from reading_case_side import DAMAGED, HIDDEN, PICTURE, GivenFile, make_archive

_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def files() -> Iterator[GivenFile]:
    """Yield them."""
    yield from writer()
    yield from changed_letters()
    yield from writer_tables()


def odt(body: str, styles: str = "", more: Mapping[str, str | bytes] | None = None) -> bytes:
    """Return a document of Writer with this body and its own styles."""
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{rest}:1.0"'
        for name, rest in (
            ("office", "office"),
            ("text", "text"),
            ("table", "table"),
            ("style", "style"),
            ("draw", "drawing"),
            ("fo", "xsl-fo-compatible"),
            ("svg", "svg-compatible"),
        )
    )
    content = (
        f'{_XML}<office:document-content {names} xmlns:dc="http://purl.org/dc/elements/1.1/"'
        ' xmlns:xlink="http://www.w3.org/1999/xlink"'
        f' office:version="1.3"><office:automatic-styles>{styles}</office:automatic-styles><office:body><office:text>'
        f"{body}</office:text></office:body></office:document-content>"
    )
    manifest = (
        f"{_XML}<manifest:manifest"
        ' xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry'
        ' manifest:full-path="/" manifest:media-type="application/vnd.oasis.opendocument.text"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>'
    )
    return make_archive(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": content,
            "META-INF/manifest.xml": manifest,
            **(more or {}),
        },
        "mimetype",
    )


def writer() -> Iterator[GivenFile]:
    """Yield documents of Writer with headings, lists and blanks."""
    body = (
        '<text:h text:outline-level="1">Saltbrenneriet</text:h><text:p>Panden rummer<text:s'
        ' text:c="3"/>900<text:tab/>liter lage.<text:line-break/>Ilden passes af Asger.</text:p>'
    )
    body += (
        "<text:list><text:list-item><text:p>Tre læs tørv</text:p></text:list-item><text:list-item><text:p>En tønde"
        " sand</text:p></text:list-item></text:list>"
    )
    yield GivenFile(
        "odt-heading.odt",
        "odt",
        odt(body),
        ("Saltbrenneriet", "Panden rummer 900 liter lage. Ilden passes af Asger.", "Tre læs tørv", "En tønde sand"),
        (),
        ("rummer900", "tørvEn"),
    )
    raised = (
        '<style:style style:name="T3" style:family="text"><style:text-properties style:text-position="super'
        ' 58%"/></style:style>'
    )
    body = (
        '<text:p>De molen maalt 3 · 10<text:span text:style-name="T3">5</text:span> korrels<text:note text:id="ftn1"'
        ' text:note-class="footnote"><text:note-citation>8</text:note-citation><text:note-body><text:p>Volgens Teunis'
        " de Bak.</text:p></text:note-body></text:note> per dag, al sinds 1764<text:note"
        ' text:note-class="endnote"><text:note-citation>2</text:note-citation><text:note-body><text:p>Archief van'
        " Hoorn.</text:p></text:note-body></text:note>.</text:p>"
    )
    yield GivenFile(
        "odt-notes.odt",
        "odt",
        odt(body, raised),
        (("10^5 korrels", "10⁵ korrels"), "Volgens Teunis de Bak.", "Archief van Hoorn."),
        (),
        ("105 korrels", "17642"),
    )
    frame = (
        '<text:p>Die Glocke läutet um fünf.<draw:frame draw:name="Rahmen1"><draw:text-box><text:p>Kasten: Pfand 30'
        ' Groschen.</text:p></draw:text-box></draw:frame></text:p><text:p><draw:frame draw:name="Bild1"><draw:image'
        ' xlink:href="Pictures/1.png"/></draw:frame></text:p>'
    )
    yield GivenFile(
        "odt-frames.odt",
        "odt",
        odt(frame, more={"Pictures/1.png": b"\x89PNG\r\n\x1a\n" + bytes(30)}),
        ("Die Glocke läutet um fünf.", "Kasten: Pfand 30 Groschen."),
        (PICTURE,),
    )


def changed_letters() -> Iterator[GivenFile]:
    """Yield documents of Writer with tracked changes and hidden text."""
    about = (
        "<office:change-info><dc:creator>Eva</dc:creator><dc:date>2024-01-05T09:00:00</dc:date></office:change-info>"
    )
    body = (
        f'<text:tracked-changes><text:changed-region text:id="c1"><text:deletion>{about}<text:p>eighty'
        " florins</text:p></text:deletion></text:changed-region><text:changed-region"
        f' text:id="c2"><text:insertion>{about}</text:insertion></text:changed-region></text:tracked-changes>'
    )
    body += (
        '<text:p>The tithe of Maarn is <text:change text:change-id="c1"/><text:change-start text:change-id="c2"/>ninety'
        ' florins<text:change-end text:change-id="c2"/> and a goose.</text:p>'
    )
    yield GivenFile(
        "odt-changes.odt",
        "odt",
        odt(body),
        ("The tithe of Maarn is ninety florins and a goose.",),
        (),
        ("eighty florins",),
    )
    style = (
        '<style:style style:name="T1" style:family="text"><style:text-properties'
        ' text:display="none"/></style:style><style:style style:name="P1"'
        ' style:family="paragraph"><style:text-properties text:display="none"/></style:style>'
    )
    body = (
        '<text:p>The falconer keeps 4<text:span text:style-name="T1"> (and steals)</text:span> hawks.</text:p><text:p'
        ' text:style-name="P1">Dismiss the falconer.</text:p><text:p>He feeds them <text:hidden-text'
        ' text:condition="ooow:1" text:string-value="poison"'
        ' text:is-hidden="true">poison</text:hidden-text>hares.</text:p>'
    )
    yield GivenFile(
        "odt-hidden.odt",
        "odt",
        odt(body, style),
        ("The falconer keeps 4 hawks.", "He feeds them hares."),
        (HIDDEN,),
        ("and steals", "Dismiss the falconer", "poison"),
    )


def writer_tables() -> Iterator[GivenFile]:
    """Yield documents of Writer with a table whose cells are joined, and one that asks for a password."""

    def cell(words: str, about: str = "") -> str:
        return f"<table:table-cell {about}><text:p>{words}</text:p></table:table-cell>"

    covered = "<table:covered-table-cell/>"
    rows = [
        cell("loom") + cell("weaver") + cell("ells"),
        cell("Upper loft", 'table:number-rows-spanned="2"') + cell("Maj-Britt") + cell("46"),
        covered + cell("Torbjörn") + cell("39"),
        cell("Cellar") + cell("empty since Lent", 'table:number-columns-spanned="2"') + covered,
    ]
    table = (
        '<table:table table:name="T"><table:table-column table:number-columns-repeated="3"/>'
        + "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
        + "</table:table>"
    )
    yield GivenFile(
        "odt-table.odt",
        "odt",
        odt(table),
        (
            "| Upper loft | Maj-Britt | 46 |",
            ("| Upper loft | Torbjörn | 39 |", "| | Torbjörn | 39 |"),
            "empty since Lent",
        ),
    )
    parts: dict[str, str | bytes] = {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": bytes(range(256)) * 8,
    }
    parts["META-INF/manifest.xml"] = (
        b'<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry'
        b' manifest:full-path="content.xml" manifest:media-type="text/xml"'
        b' manifest:size="2048"><manifest:encryption-data/></manifest:file-entry></manifest:manifest>'
    )
    yield GivenFile(
        "odt-password.odt", "odt", make_archive(parts, "mimetype"), (), (("password", "encrypt", "locked", *DAMAGED),)
    )
