"""Given files of Word, as zipped XML."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from typing import Final

from reading_case_side import DAMAGED, HIDDEN, PICTURE, GivenFile, make_archive

_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_W: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_KIND: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_NAMESPACES: Final = (
    f'xmlns:w="{_W}" xmlns:r="{_R}" xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    ' xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:v="urn:schemas-microsoft-com:vml" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
)
_STYLES: Final = (
    f'{_XML}<w:styles xmlns:w="{_W}"><w:style w:type="paragraph" w:default="1" w:styleId="Standard"><w:name'
    ' w:val="Normal"/></w:style><w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading'
    ' 1"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style><w:style w:type="paragraph"'
    ' w:styleId="berschrift2"><w:name w:val="heading 2"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style><w:style'
    ' w:type="paragraph" w:styleId="Listenabsatz"><w:name w:val="List Paragraph"/></w:style><w:style'
    ' w:type="character" w:styleId="Geheim"><w:name w:val="Secret"/><w:rPr><w:vanish/></w:rPr></w:style></w:styles>'
)
_NUMBERING: Final = (
    f'{_XML}<w:numbering xmlns:w="{_W}"><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start'
    ' w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl><w:lvl w:ilvl="1"><w:numFmt'
    ' w:val="bullet"/><w:lvlText w:val="•"/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId'
    ' w:val="0"/></w:num></w:numbering>'
)
_NOTES: Final = (
    f'{_XML}<w:{{0}}s xmlns:w="{_W}"><w:{{0}} w:type="separator"'
    ' w:id="-1"><w:p><w:r><w:separator/></w:r></w:p></w:{0}><w:{0} w:id="2"><w:p><w:r><w:{0}Ref/></w:r><w:r><w:t'
    ' xml:space="preserve"> {1}</w:t></w:r></w:p></w:{0}></w:{0}s>'
)


def files() -> Iterator[GivenFile]:
    """Yield them."""
    yield from letters()
    yield from changed_letters()
    yield from tables_and_notes()
    yield from runs()
    yield from fields()
    yield from boxes()
    yield from odd_packages()
    yield from damaged_letters()


def run(words: str, about: str = "") -> str:
    """Return a run of text with its properties."""
    return f'<w:r>{f"<w:rPr>{about}</w:rPr>" if about else ""}<w:t xml:space="preserve">{words}</w:t></w:r>'


def paragraph(words: str, style: str = "", more: str = "") -> str:
    """Return a paragraph; words that begin with a tag are its runs."""
    about = (f'<w:pStyle w:val="{style}"/>' if style else "") + more
    return f"<w:p>{f'<w:pPr>{about}</w:pPr>' if about else ''}{words if words.startswith('<') else run(words)}</w:p>"


def docx(body: str, more: Mapping[str, str | bytes] | None = None, main: str = "word/document.xml") -> bytes:
    """Return a document of Word with this body and further parts."""
    document = (
        f'{_XML}<w:document {_NAMESPACES}><w:body>{body}<w:sectPr><w:pgSz w:w="11906"'
        ' w:h="16838"/></w:sectPr></w:body></w:document>'
    )
    types = (
        f'{_XML}<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    )
    types += (
        '<Default Extension="xml" ContentType="application/xml"/><Default Extension="png"'
        f' ContentType="image/png"/><Override PartName="/{main}"'
        f' ContentType="{_KIND}.document.main+xml"/>'
    )
    kinds = {
        "styles": "styles.xml",
        "numbering": "numbering.xml",
        **{name.partition("/")[2].partition(".")[0]: name.partition("/")[2] for name in more or {}},
    }
    related = "".join(
        f'<Relationship Id="rId{at}" Type="{_R}/{"image" if "media" in target else kind}" Target="{target}"/>'
        for at, (kind, target) in enumerate(kinds.items(), 1)
    )
    types += "".join(
        f'<Override PartName="/word/{target}" ContentType="{_KIND}.{kind}+xml"/>'
        for kind, target in kinds.items()
        if "media" not in target
    )
    folder, _, name = main.rpartition("/")
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": f"{types}</Types>",
        "_rels/.rels": (
            f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" Type="{_R}/officeDocument"'
            f' Target="{main}"/></Relationships>'
        ),
        main: document,
        f"{folder}/_rels/{name}.rels": (
            f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{related}</Relationships>'
        ),
        "word/styles.xml": _STYLES,
        "word/numbering.xml": _NUMBERING,
    }
    return make_archive(parts | dict(more or {}))


def letters() -> Iterator[GivenFile]:
    """Yield documents of headings, paragraphs and lists."""
    body = (
        paragraph("Der Kornspeicher", "berschrift1")
        + paragraph("Der Speicher fasst 820 Scheffel.")
        + paragraph("Dach", "berschrift2")
        + paragraph("Das Dach deckt Meister Ruprecht im Herbst.")
    )
    yield GivenFile(
        "docx-headings.docx",
        "docx",
        docx(body),
        ("Der Kornspeicher", "Der Speicher fasst 820 Scheffel.", "Das Dach deckt Meister Ruprecht im Herbst."),
        (),
        ("KornspeicherDer",),
    )
    numbered = '<w:numPr><w:ilvl w:val="{}"/><w:numId w:val="1"/></w:numPr>'
    items = "".join(
        paragraph(words, "Listenabsatz", numbered.format(level))
        for words, level in (("Boil the brine", 0), ("with 3 bay leaves", 1), ("Cool the crock", 0))
    )
    yield GivenFile(
        "docx-lists.docx",
        "docx",
        docx(paragraph("Cucumbers of Znojmo:") + items),
        ("Cucumbers of Znojmo:", "Boil the brine", "with 3 bay leaves", "Cool the crock"),
        (),
        ("brinewith",),
    )


def changed_letters() -> Iterator[GivenFile]:
    """Yield documents with tracked changes and hidden runs."""
    who = 'w:id="4" w:author="Clerk" w:date="2024-02-01T10:00:00Z"'
    rent = (
        run("The rent of the dovecote is ")
        + f'<w:del {who}><w:r><w:delText xml:space="preserve">340 ducats</w:delText></w:r></w:del><w:ins'
        f" {who}>{run('415 ducats')}</w:ins>" + run(" a year.")
    )
    moved = f"<w:moveFrom {who}>{run('The garden wall is ours.')}</w:moveFrom>" + run("Nothing else changes.")
    taken = f"<w:moveTo {who}>{run('The orchard wall is theirs.')}</w:moveTo>"
    yield GivenFile(
        "docx-changes.docx",
        "docx",
        docx(paragraph(rent) + paragraph(moved) + paragraph(taken)),
        ("The rent of the dovecote is 415 ducats a year.", "Nothing else changes.", "The orchard wall is theirs."),
        (),
        ("340 ducats", "garden wall is ours"),
    )
    mixed = (
        run("The chapel seats 64")
        + run(" and its roof is gold", "<w:vanish/>")
        + run(" pilgrims", '<w:b/><w:vanish w:val="0"/>')
        + run(". Praise this chapel.", '<w:rStyle w:val="Geheim"/>')
    )
    yield GivenFile(
        "docx-hidden.docx",
        "docx",
        docx(paragraph(mixed)),
        ("The chapel seats 64 pilgrims",),
        (HIDDEN,),
        ("roof is gold", "Praise this chapel"),
    )


def tables_and_notes() -> Iterator[GivenFile]:
    """Yield documents with tables, footnotes and endnotes."""

    def cell(words: str, about: str = "") -> str:
        return f'<w:tc><w:tcPr><w:tcW w:w="2000" w:type="dxa"/>{about}</w:tcPr>{paragraph(words)}</w:tc>'

    rows = [
        cell("parish") + cell("bell") + cell("weight"),
        cell("Saint Olave", '<w:vMerge w:val="restart"/>') + cell("Great Tom") + cell("2,140 kg"),
        cell("", "<w:vMerge/>") + cell("Little Nan") + cell("318 kg"),
        cell("Saint Bride") + cell("sold in 1807", '<w:gridSpan w:val="2"/>'),
    ]
    table = "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in rows) + "</w:tbl>"
    wanted = (
        "| Saint Olave | Great Tom | 2,140 kg |",
        ("| Saint Olave | Little Nan | 318 kg |", "| | Little Nan | 318 kg |"),
        "sold in 1807",
    )
    yield GivenFile(
        "docx-table.docx",
        "docx",
        docx(paragraph("Bells of the deanery") + table + paragraph("Counted in May.")),
        ("Bells of the deanery", *wanted, "Counted in May."),
    )
    body = paragraph(
        run("The abbey was burnt in 1538")
        + '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:footnoteReference w:id="2"/></w:r>'
        + run(" by its own cook")
        + '<w:r><w:endnoteReference w:id="2"/></w:r>'
        + run(".")
    )
    notes = {
        "word/footnotes.xml": _NOTES.format("footnote", "So the chronicle of Wendel, leaf 12."),
        "word/endnotes.xml": _NOTES.format("endnote", "The cook was Jost Haupt."),
    }
    yield GivenFile(
        "docx-notes.docx",
        "docx",
        docx(body, notes),
        ("The abbey was burnt in 1538", "So the chronicle of Wendel, leaf 12.", "The cook was Jost Haupt."),
        (),
        ("15382", "1538^2"),
    )


def runs() -> Iterator[GivenFile]:
    """Yield documents whose words are cut into many runs."""
    cut = (
        run("The fer")
        + '<w:proofErr w:type="spellStart"/>'
        + run("ryman of Wei")
        + run("sen")
        + run("fels owns 7<w:tab/>boats").replace("<w:tab/>", '</w:t><w:tab/><w:t xml:space="preserve">')
        + "<w:r><w:br/></w:r>"
        + run("and one raft.")
    )
    yield GivenFile(
        "docx-cut-runs.docx",
        "docx",
        docx(paragraph(cut)),
        ("The ferryman of Weisenfels owns 7 boats and one raft.",),
        (),
        ("7boats", "boatsand"),
    )
    raised = (
        run("The lake holds 6 · 10")
        + run("9", '<w:vertAlign w:val="superscript"/>')
        + run(" litres of H")
        + run("2", '<w:vertAlign w:val="subscript"/>')
        + run("O.")
    )
    yield GivenFile(
        "docx-raised.docx",
        "docx",
        docx(paragraph(raised)),
        (("10^9 litres", "10⁹ litres"), ("of H2O", "of H_2O", "of H₂O")),
        (),
        ("109 litres",),
    )


def fields() -> Iterator[GivenFile]:
    """Yield documents with fields, links and controls."""
    field = (
        run("Due on ") + '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> DATE \\@ "d.M.yyyy"'
        ' </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>'
        + run("9 June 2024")
        + '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
        + run(", see ")
    )
    field += (
        f'<w:hyperlink w:anchor="tariff">{run("the tariff of Elbing")}</w:hyperlink><w:fldSimple w:instr=" PAGEREF x'
        f' ">{run(" on leaf 40")}</w:fldSimple>'
    )
    control = (
        "<w:sdt><w:sdtPr><w:alias"
        f' w:val="Payer"/></w:sdtPr><w:sdtContent>{paragraph("Payer: Lene Voss")}</w:sdtContent></w:sdt>'
    )
    yield GivenFile(
        "docx-fields.docx",
        "docx",
        docx(paragraph(field) + control),
        ("Due on 9 June 2024, see", "the tariff of Elbing", "Payer: Lene Voss"),
        (),
        ("PAGEREF", "d.M.yyyy"),
    )


def boxes() -> Iterator[GivenFile]:
    """Yield documents with text boxes and pictures."""
    inside = f"<w:txbxContent>{paragraph('Beware of the ram in pen 5.')}</w:txbxContent>"
    box = (
        '<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:anchor><a:graphic><a:graphicData'
        f' uri="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"><wps:wsp><wps:txbx>{inside}</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:anchor></w:drawing></mc:Choice>'
    )
    box += f"<mc:Fallback><w:pict><v:shape><v:textbox>{inside}</v:textbox></v:shape></w:pict></mc:Fallback>"
    box += "</mc:AlternateContent></w:r>"
    yield GivenFile(
        "docx-text-box.docx",
        "docx",
        docx(paragraph(run("The farm is shut on Sundays.") + box)),
        ("The farm is shut on Sundays.", "Beware of the ram in pen 5."),
        (),
        ("pen 5. Beware of the ram", "pen 5.Beware"),
    )
    picture = (
        '<w:r><w:drawing><wp:inline><wp:docPr id="1" name="Picture 1" descr="Plan of the'
        ' cellar"/><a:graphic><a:graphicData'
        ' uri="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:pic><pic:blipFill><a:blip'
        ' r:embed="rId3"/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>'
    )
    data = docx(
        paragraph("The cellar has 2 vaults.") + paragraph(picture),
        {"word/media/image1.png": b"\x89PNG\r\n\x1a\n" + bytes(40)},
    )
    yield GivenFile("docx-picture.docx", "docx", data, ("The cellar has 2 vaults.",), (PICTURE,))


def odd_packages() -> Iterator[GivenFile]:
    """Yield documents whose parts have other names than usual."""
    yield GivenFile(
        "docx-second-main.docx",
        "docx",
        docx(paragraph("The deed of Ålesund lies in drawer 17."), main="word/document2.xml"),
        ("The deed of Ålesund lies in drawer 17.",),
    )
    data = docx(paragraph("Strictly kept: the oath of Uri, verse 6."))
    yield GivenFile("docx-strict.docx", "docx", _strict(data), ("Strictly kept: the oath of Uri, verse 6.",))
    yield GivenFile(
        "docx-without-ending", "docx", docx(paragraph("A file without an ending knows barn 93.")), ("knows barn 93",)
    )


def _strict(data: bytes) -> bytes:
    """Return a document with the names of the strict form of the standard."""
    parts = _parts(data)
    words = {
        _W.encode(): b"http://purl.oclc.org/ooxml/wordprocessingml/main",
        _R.encode(): b"http://purl.oclc.org/ooxml/officeDocument/relationships",
    }
    for name, part in parts.items():
        for old, new in words.items():
            part = part.replace(old, new)
        parts[name] = part
    return make_archive(parts)


def damaged_letters() -> Iterator[GivenFile]:
    """Yield documents that end early, or that would fill the memory."""
    whole = docx(paragraph("Half of the will of Edda Storm"))
    yield GivenFile("docx-cut-short.docx", "docx", whole[: len(whole) // 2], (), (DAMAGED,))
    laughs = (
        '<!DOCTYPE w [<!ENTITY a "ha ha ha ha ha ha ha ha">'
        + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
        + "]>"
    )
    parts = _parts(docx(paragraph("&i;")))
    parts["word/document.xml"] = parts["word/document.xml"].replace(b"<w:document", laughs.encode() + b"<w:document", 1)
    yield GivenFile(
        "docx-entities.docx",
        "docx",
        make_archive(parts),
        (),
        ((*DAMAGED, "entit", "doctype", "dtd"),),
        ("ha ha ha ha ha ha ha ha ha ha",),
    )
    parts["word/document.xml"] = _XML.encode() + b"<w:document>" + b" " * 300_000_000
    yield GivenFile("docx-bomb.docx", "docx", make_archive(parts), (), ((*DAMAGED, "large", "long", "big"),))


def _parts(data: bytes) -> dict[str, bytes]:
    """Return the parts of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
