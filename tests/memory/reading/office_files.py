"""Zipped documents for tests, written by hand: DOCX, ODT, XLSX, ODS and EPUB of the XML that a test gives."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_NAMES = (
    f'xmlns:w="{_W}" xmlns:r="{_RELATIONS}" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:v="urn:schemas-microsoft-com:vml"'
    ' xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
    ' xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"'
)
SPREADSHEET = f'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="{_RELATIONS}"'
_ODF = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in [
        *((each, each) for each in ("office", "text", "table", "style", "manifest")),
        ("draw", "drawing"), ("svg", "svg-compatible"),
    ]
) + ' xmlns:xlink="http://www.w3.org/1999/xlink"'  # fmt: skip
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
EPUB = "application/epub+zip"


def zip_of(parts: Mapping[str, str | bytes]) -> bytes:
    """An archive of these parts."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            kept = zipfile.ZIP_STORED if name == "mimetype" else None
            archive.writestr(name, content, kept)
    return data.getvalue()


def _relations(targets: Mapping[str, str]) -> str:
    rows = (
        f'<Relationship Id="{own}" Type="{_RELATIONS}/{own.rstrip("0123456789")}" Target="{target}"/>'
        for own, target in targets.items()
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{"".join(rows)}</Relationships>'


def docx_of(body: str, **parts: str) -> bytes:
    """A DOCX with this body; further parts by the word of their type: `styles`, `footnotes`, `header`."""
    roots = {"header": "hdr", "footer": "ftr"}
    return zip_of(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": _relations({"officeDocument": "word/document.xml"}),
            "word/document.xml": f"<w:document {_NAMES}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": _relations({each: f"{each}.xml" for each in parts}),
            **{
                f"word/{each}.xml": f"<w:{roots.get(each, each)} {_NAMES}>{xml}</w:{roots.get(each, each)}>"
                for each, xml in parts.items()
            },
        }
    )


def paragraph(text: str, properties: str = "", run: str = "") -> str:
    """A paragraph of DOCX of one run."""
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:rPr>{run}</w:rPr><w:t>{text}</w:t></w:r></w:p>"


def odf_of(kind: str, body: str, automatic: str = "", **parts: str) -> bytes:
    """A document of ODF of a kind with this body and these styles of its own; `styles` is the part of the others."""
    root, own = (
        "text" if kind == ODT else "spreadsheet",
        f"<office:automatic-styles>{automatic}</office:automatic-styles>",
    )
    return zip_of(
        {
            "mimetype": kind,
            "content.xml": f"<office:document-content {_ODF}>{own}"
            f"<office:body><office:{root}>{body}</office:{root}></office:body></office:document-content>",
            **{
                f"{name}.xml": f"<office:document-styles {_ODF}>{xml}</office:document-styles>"
                for name, xml in parts.items()
            },
        }
    )


def xlsx_of(sheets: Mapping[str, str], states: Sequence[str] = (), *, strings: str = "", styles: str = "") -> bytes:
    """A workbook whose sheets have this content; `states` are those of its sheets, such as "hidden"."""
    named = enumerate(sheets)
    shown = [*states, *["visible"] * len(sheets)]
    rows = "".join(f'<sheet name="{name}" state="{shown[at]}" r:id="worksheet{at}"/>' for at, name in named)
    targets = {f"worksheet{at}": f"worksheets/sheet{at}.xml" for at in range(len(sheets))}
    parts = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": _relations({"officeDocument": "xl/workbook.xml"}),
        "xl/workbook.xml": f"<workbook {SPREADSHEET}><sheets>{rows}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": _relations(
            {**targets, "sharedStrings": "sharedStrings.xml", "styles": "styles.xml"}
        ),
        "xl/sharedStrings.xml": f"<sst {SPREADSHEET}>{strings}</sst>",
        "xl/styles.xml": f"<styleSheet {SPREADSHEET}>{styles}</styleSheet>",
    }
    for at, content in enumerate(sheets.values()):
        parts[f"xl/worksheets/sheet{at}.xml"] = f"<worksheet {SPREADSHEET}>{content}</worksheet>"
    return zip_of(parts)


def sheet_of(rows: Sequence[Sequence[str | float]]) -> str:
    """The content of a sheet: texts within its cells, and numbers."""
    lines = []
    for row in rows:
        cells = (
            f'<c t="inlineStr"><is><t>{each}</t></is></c>' if isinstance(each, str) else f"<c><v>{each}</v></c>"
            for each in row
        )
        lines.append(f"<row>{''.join(cells)}</row>")
    return f"<sheetData>{''.join(lines)}</sheetData>"


def epub_of(chapters: Mapping[str, str], title: str = "", **parts: str) -> bytes:
    """A book of these chapters, in their order; `encryption` is that part of it."""
    items = "".join(f'<item id="{name}" href="{name}.xhtml"/>' for name in chapters)
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{title}</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    return zip_of(
        {
            "mimetype": EPUB,
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OPS/book.opf"/></rootfiles></container>',
            "OPS/book.opf": package,
            **{f"OPS/{name}.xhtml": page for name, page in chapters.items() if page},
            **{f"META-INF/{name}.xml": xml for name, xml in parts.items()},
        }
    )
