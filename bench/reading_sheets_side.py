"""Given files of Excel and of LibreOffice Calc."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, TypeAlias
from xml.sax.saxutils import escape

from reading_case_side import DAMAGED, HIDDEN, GivenFile, make_archive

#: The content of a cell: a text, a number, a truth, or a number with the place of its form in _FORMS; None is empty.
Cell: TypeAlias = str | float | bool | tuple[float, int] | None

_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_R: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_KIND: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_FORMS: Final = (0, 14, 10, 164, 22, 9, 165, 166, 20, 167)
_XFS: Final = "".join(f'<xf numFmtId="{form}" applyNumberFormat="1"/>' for form in _FORMS)
_STYLES: Final = (
    f'{_XML}<styleSheet xmlns="{_MAIN}"><numFmts count="4"><numFmt numFmtId="164" formatCode="dd\\.mm\\.yyyy"/><numFmt'
    ' numFmtId="165" formatCode="[$-407]d\\.\\ mmmm\\ yyyy"/><numFmt numFmtId="166" formatCode="#,##0.00&quot;'
    ' kr&quot;"/><numFmt numFmtId="167" formatCode="&quot;Day &quot;0"/></numFmts><fonts'
    ' count="1"><font/></fonts><fills count="1"><fill><patternFill patternType="none"/></fill></fills>'
    '<borders count="1"><border/></borders><cellStyleXfs'
    f' count="1"><xf/></cellStyleXfs><cellXfs>{_XFS}</cellXfs></styleSheet>'
)
DATE, PERCENT, GERMAN_DATE, MOMENT, WHOLE_PERCENT, LONG_DATE, CROWNS, CLOCK, DAY = range(1, 10)
REMEDIES: Final = ("libreoffice", "soffice", "ssconvert", "xlsx", "csv")


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of a sheet, if it is shown, and XML in its parts."""

    rows: Sequence[Sequence[Cell]]
    state: str = "visible"
    columns: str = ""
    after: str = ""
    hidden_rows: tuple[int, ...] = ()


def files() -> Iterator[GivenFile]:
    """Yield them."""
    yield from workbooks()
    yield from hidden_cells()
    yield from numbers()
    yield from formulas()
    yield from odd_workbooks()
    yield from calc()


def serial(year: int, month: int, day: int) -> int:
    """Return the number by which Excel knows a day."""
    return (date(year, month, day) - date(1899, 12, 30)).days


def column(at: int) -> str:
    """Return the letters of a column.

    >>> column(0), column(25), column(26)
    ('A', 'Z', 'AA')
    """
    return (column(at // 26 - 1) if at >= 26 else "") + chr(ord("A") + at % 26)


def _cell(value: Cell, place: str, shared: dict[str, int]) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, tuple):
        return f'<c r="{place}" s="{value[1]}"><v>{value[0]!r}</v></c>'
    if isinstance(value, str):
        return (
            value.replace("@", place)
            if value.startswith("<c ")
            else f'<c r="{place}" t="s"><v>{shared.setdefault(value, len(shared))}</v></c>'
        )
    return f'<c r="{place}"><v>{value!r}</v></c>'


def _sheet(sheet: Sheet, shared: dict[str, int]) -> str:
    rows = []
    for number, row in enumerate(sheet.rows, 1):
        cells = "".join(_cell(value, f"{column(at)}{number}", shared) for at, value in enumerate(row))
        hidden = ' hidden="1"' if number in sheet.hidden_rows else ""
        rows.append(f'<row r="{number}"{hidden}>{cells}</row>')
    return (
        f'{_XML}<worksheet xmlns="{_MAIN}" xmlns:r="{_R}"><dimension'
        f' ref="A1:XFD1048576"/>{sheet.columns}<sheetData>{"".join(rows)}</sheetData>{sheet.after}</worksheet>'
    )


def xlsx(sheets: Mapping[str, Sheet | Sequence[Sequence[Cell]]], about: str = "", rich: str = "") -> bytes:
    """Return a workbook of Excel; `about` stands in the workbook's properties, `rich` is a shared text as XML."""
    shared: dict[str, int] = {}
    made = [each if isinstance(each, Sheet) else Sheet(each) for each in sheets.values()]
    texts = [_sheet(each, shared) for each in made]
    listed = "".join(
        f'<sheet name="{escape(name)}" sheetId="{at + 5}" state="{each.state}" r:id="rId{len(made) - at}"/>'
        for at, (name, each) in enumerate(zip(sheets, made, strict=True))
    )
    # The relations stand in another order than the sheets, as they do after a sheet was moved.
    related = "".join(
        f'<Relationship Id="rId{len(made) - at}" Type="{_R}/worksheet" Target="worksheets/sheet{len(made) - at}.xml"/>'
        for at in range(len(made))
    )
    strings = "".join(
        f'<si><t xml:space="preserve">{escape(each)}</t></si>' if each != "RICH" else f"<si>{rich}</si>"
        for each in shared
    )
    types = "".join(
        f'<Override PartName="/xl/worksheets/sheet{at + 1}.xml"'
        ' ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for at in range(len(made))
    )
    return make_archive(
        {
            "[Content_Types].xml": (
                f'{_XML}<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels"'
                ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml"'
                ' ContentType="application/xml"/><Override PartName="/xl/workbook.xml"'
                f' ContentType="{_KIND}.sheet.main+xml"/>'
                f'{types}<Override PartName="/xl/styles.xml" ContentType="{_KIND}.styles+xml"/>'
                f'<Override PartName="/xl/sharedStrings.xml" ContentType="{_KIND}.sharedStrings+xml"/></Types>'
            ),
            "_rels/.rels": (
                f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1"'
                f' Type="{_R}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
            ),
            "xl/workbook.xml": (
                f'{_XML}<workbook xmlns="{_MAIN}"'
                f' xmlns:r="{_R}"><workbookPr{about}/><sheets>{listed}</sheets></workbook>'
            ),
            "xl/_rels/workbook.xml.rels": (
                f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{related}<Relationship Id="rId91"'
                f' Type="{_R}/styles" Target="styles.xml"/><Relationship Id="rId92" Type="{_R}/sharedStrings"'
                ' Target="/xl/sharedStrings.xml"/></Relationships>'
            ),
            **{f"xl/worksheets/sheet{len(made) - at}.xml": text for at, text in enumerate(texts)},
            "xl/styles.xml": _STYLES,
            "xl/sharedStrings.xml": f'{_XML}<sst xmlns="{_MAIN}">{strings}</sst>',
        }
    )


def workbooks() -> Iterator[GivenFile]:
    """Yield workbooks of several sheets."""
    sheets: dict[str, Any] = {
        "Mieten": [
            ["Haus", "Mieter", "Miete"],
            ["Alte Färberei", "Korbinian Lutz", 612.5],
            ["Zollhaus", "Ottilie Brand", 488],
        ],
        "Schlüssel & Co": [["Tür", "Schlüssel"], ["Keller <Nord>", "Nr. 71"]],
        "Entwurf": Sheet([["Geheimer Abriss des Zollhauses", 2031]], "hidden"),
    }
    yield GivenFile(
        "xlsx-sheets.xlsx",
        "xlsx",
        xlsx(sheets),
        (
            "Mieten",
            "Alte Färberei",
            "Korbinian Lutz",
            "612.5",
            "Ottilie Brand",
            "Schlüssel & Co",
            "Keller <Nord>",
            "Nr. 71",
        ),
        ("Entwurf",),
        ("Geheimer Abriss", "&amp;"),
    )


def hidden_cells() -> Iterator[GivenFile]:
    """Yield workbooks with hidden sheets and rows."""
    deep: dict[str, Any] = {
        "Visible": [["Mill", "Grindrod"]],
        "Vault": Sheet([["Combination of the vault 4-9-2"]], "veryHidden"),
        "Third": [["Miller", "Tamsin Hoyle"]],
    }
    yield GivenFile(
        "xlsx-very-hidden.xlsx",
        "xlsx",
        xlsx(deep),
        ("Grindrod", "Tamsin Hoyle"),
        ("Vault",),
        ("Combination of the vault",),
    )
    rows: Sequence[Sequence[Cell]] = [
        ["crew", "wage"],
        ["Bosun Pike", 310],
        ["Stowaway Finch", 1],
        ["Cook Marrow", 295],
    ]
    part = Sheet(rows, hidden_rows=(3,))
    yield GivenFile(
        "xlsx-hidden-row.xlsx",
        "xlsx",
        xlsx({"Crew": part}),
        ("Bosun Pike", "Cook Marrow"),
        (HIDDEN,),
        ("Stowaway Finch",),
    )


def numbers() -> Iterator[GivenFile]:
    """Yield workbooks with dates, percents, formulas and truths."""
    rows: list[list[Cell]] = [
        ["event", "day", "share"],
        ["shearing", (serial(2024, 5, 17), DATE), (0.125, PERCENT)],
        ["dipping", (serial(2024, 9, 3), GERMAN_DATE), (0.4, WHOLE_PERCENT)],
        ["market", (serial(2025, 1, 30) + 0.75, MOMENT), None],
        ["fair", (serial(2023, 12, 24), LONG_DATE), (1234.5, CROWNS)],
        ["lambing", (45000, DAY), (0.34375, CLOCK)],
    ]
    wanted = (
        ("2024-05-17", "17.05.2024", "5/17/2024", "05-17-24"),
        ("12.5%", "12.50%", "12.5 %", "12.50 %"),
        ("2024-09-03", "03.09.2024"),
        ("40%", "40 %"),
        ("2025-01-30 18:00", "2025-01-30T18:00", "1/30/25 18:00"),
        ("2023-12-24", "24. Dezember 2023"),
        ("1234.5", "1,234.50"),
        ("45000", "Day 45000"),
        "08:15",
    )
    yield GivenFile(
        "xlsx-dates.xlsx",
        "xlsx",
        xlsx({"Farm": rows}),
        wanted,
        (),
        ("45429", "45538", "0.125", "0.34375", "2023-03-15"),
    )


def formulas() -> Iterator[GivenFile]:
    """Yield workbooks with days of another count, and with formulas."""
    old: list[list[Cell]] = [["founded", (serial(2019, 7, 8) - 1462, DATE)]]
    yield GivenFile(
        "xlsx-1904.xlsx",
        "xlsx",
        xlsx({"Guild of Bath": old}, ' date1904="1"'),
        (("2019-07-08", "08.07.2019", "7/8/2019", "07-08-19"),),
        (),
        ("2015-07-07",),
    )
    formulas: list[list[Cell]] = [
        ["oats", 14],
        ["barley", 27],
        ["sum of grain", '<c r="@"><f>SUM(B1:B2)</f><v>41</v></c>'],
        ["joined", '<c r="@" t="str"><f>A1&amp;" and rye"</f><v>oats and rye</v></c>'],
        ["broken", '<c r="@" t="e"><f>1/0</f><v>#DIV/0!</v></c>'],
        ["paid", True],
        ["inline", '<c r="@" t="inlineStr"><is><t>written by a script in Turku</t></is></c>'],
    ]
    yield GivenFile(
        "xlsx-formulas.xlsx",
        "xlsx",
        xlsx({"Grain": formulas}),
        ("sum of grain", "41", "oats and rye", "#DIV/0!", "written by a script in Turku"),
        (),
        ("SUM(B1:B2)",),
    )


def odd_workbooks() -> Iterator[GivenFile]:
    """Yield workbooks with texts of many forms, joined cells and sheets far apart, and damaged ones."""
    rich = (
        '<r><rPr><b/></rPr><t>Quay of </t></r><r><t xml:space="preserve">Otaru 3</t></r><rPh sb="0"'
        ' eb="1"><t>オタル</t></rPh>'
    )
    joined: list[list[Cell]] = [["berths", "summer", None], [None, "day", "night"], ["RICH", 18, 26]]
    merged = Sheet(joined, after='<mergeCells count="2"><mergeCell ref="A1:A2"/><mergeCell ref="B1:C1"/></mergeCells>')
    yield GivenFile(
        "xlsx-rich-text.xlsx", "xlsx", xlsx({"Berths": merged}, rich=rich), ("Quay of Otaru 3", "26"), (), ("オタル",)
    )
    far: list[list[Cell]] = [
        [*[None] * 30, "far corner of Sark"],
        *[[] for _ in range(400)],
        ["last row of Herm", (0.0, 0)],
    ]
    yield GivenFile(
        "xlsx-far-cells.xlsx", "xlsx", xlsx({"Far": far, "Nothing": []}), ("far corner of Sark", "last row of Herm")
    )
    whole = xlsx({"Cut": [["the lower third of Lundy"]]})
    yield GivenFile("xlsx-cut-short.xlsx", "xlsx", whole[: len(whole) * 2 // 3], (), (DAMAGED,))


def ods(tables: str, styles: str = "") -> bytes:
    """Return a workbook of Calc."""
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "text", "table", "style")
    )
    content = (
        f"{_XML}<office:document-content {names}"
        f' office:version="1.3"><office:automatic-styles>{styles}</office:automatic-styles><office:body>'
        f"<office:spreadsheet>{tables}</office:spreadsheet></office:body></office:document-content>"
    )
    media = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        f'{_XML}<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        "<manifest:file-entry"
        f' manifest:full-path="/" manifest:media-type="{media}"/><manifest:file-entry'
        ' manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>'
    )
    return make_archive({"mimetype": media, "content.xml": content, "META-INF/manifest.xml": manifest}, "mimetype")


def _table(name: str, rows: Sequence[Sequence[str]], about: str = "") -> str:
    inner = "".join(
        "<table:table-row>"
        + "".join(each if each.startswith("<") else _text(each) for each in row)
        + "</table:table-row>"
        for row in rows
    )
    return f'<table:table table:name="{name}" {about}>{inner}</table:table>'


def _text(words: str) -> str:
    return f'<table:table-cell office:value-type="string"><text:p>{words}</text:p></table:table-cell>'


def calc() -> Iterator[GivenFile]:
    """Yield workbooks of Calc, which may be refused."""
    number = '<table:table-cell office:value-type="float" office:value="{0}"><text:p>{0}</text:p></table:table-cell>'
    gap = '<table:table-cell table:number-columns-repeated="1020"/>'
    end = (
        '<table:table-row table:number-rows-repeated="1048500"><table:table-cell'
        ' table:number-columns-repeated="16384"/></table:table-row>'
    )
    data = ods(
        _table("Hauts", [["col", "mètres"], ["Col de la Croix Rousse", number.format(1778), gap]]).replace(
            "</table:table>", end + "</table:table>"
        )
        + _table("Bas", [["Pont d&apos;Aix", number.format(231)]])
    )
    yield GivenFile(
        "ods-sheets.ods", "ods", data, ("Col de la Croix Rousse", "1778", "Pont d'Aix", "231"), (), (), (REMEDIES,)
    )
    day = (
        '<table:table-cell office:value-type="date"'
        ' office:date-value="2022-11-05"><text:p>05/11/22</text:p></table:table-cell>'
    )
    share = (
        '<table:table-cell office:value-type="percentage" office:value="0.07"><text:p>7,00'
        " %</text:p></table:table-cell>"
    )
    yield GivenFile(
        "ods-dates.ods",
        "ods",
        ods(_table("Fêtes", [["bal de Sète", day, share]])),
        ("bal de Sète", ("2022-11-05", "05/11/22"), ("7,00 %", "7%", "7.00%", "7 %")),
        (),
        (),
        (REMEDIES,),
    )
    style = (
        '<style:style style:name="ta2" style:family="table"><style:table-properties'
        ' table:display="false"/></style:style>'
    )
    data = ods(
        _table("Open", [["guest list of Bergen"]])
        + _table("Kladde", [["draft of the bribe"]], 'table:style-name="ta2"'),
        style,
    )
    yield GivenFile(
        "ods-hidden.ods", "ods", data, ("guest list of Bergen",), ("Kladde",), ("draft of the bribe",), (REMEDIES,)
    )
