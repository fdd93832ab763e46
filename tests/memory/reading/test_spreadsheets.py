"""XLSX and ODS: sheets as tables, numbers as they are shown, and what is hidden or too large."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import MOST, growth
from tests.memory.reading.office_files import ODS, odf_of, sheet_of, xlsx_of
from tests.memory.reading.reads import read_all

from batos.memory.reading.read_text import NotReadable, ReadText
from batos.memory.reading.spreadsheets import read_ods, read_xlsx


def xlsx(path: Path, data: bytes) -> ReadText:
    """What is read of a workbook of Excel."""
    (found,) = read_all(read_xlsx, path, data)
    assert isinstance(found, ReadText)
    return found


def ods(path: Path, body: str, automatic: str = "") -> ReadText:
    """What is read of a workbook of LibreOffice."""
    (found,) = read_all(read_ods, path, odf_of(ODS, body, automatic))
    assert isinstance(found, ReadText)
    return found


def ods_row(*cells: str, about: str = "") -> str:
    """A row of texts."""
    shown = "".join(f"<table:table-cell><text:p>{each}</text:p></table:table-cell>" for each in cells)
    return f"<table:table-row {about}>{shown}</table:table-row>"


def test_each_sheet_is_a_heading_and_a_table(tmp_path: Path) -> None:
    """Empty ones are not there, hidden ones are told."""
    sheets = {"Oil": sheet_of([["Name", "Crowns"], ["lamp|oil", 12]]), "Empty": sheet_of([]), "Old": sheet_of([["x"]])}
    found = xlsx(tmp_path / "a", xlsx_of(sheets, ["visible", "visible", "veryHidden"]))
    assert found.text == "## Oil\n\n| Name | Crowns |\n|---|---|\n| lamp\\|oil | 12 |"
    assert (found.left_out, found.media_type) == (("1 hidden sheet (Old)",), "text/markdown")


def test_a_sheet_has_lines_above_its_tables_and_several_of_them(tmp_path: Path) -> None:
    """An empty row within numbers is none between two tables."""
    rows: list[list[str | float]] = [
        ["Prices of 2026"],
        [],
        ["Name", "Crowns"],
        ["oil", 1],
        [],
        ["wick", 2],
        [],
        ["Place", "Keeper"],
        ["Oxna", "Maro"],
    ]
    text = xlsx(tmp_path / "a", xlsx_of({"A": sheet_of(rows)})).text
    head, one, two = text.split("\n\n", 3)[1:] if text.count("\n\n") == 3 else ("", "", text)
    assert head == "Prices of 2026"
    assert one == "| Name | Crowns |\n|---|---|\n| oil | 1 |\n| wick | 2 |"
    assert two == "| Place | Keeper |\n|---|---|\n| Oxna | Maro |"


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("General", "12", "12"), ("General", "12.0", "12"), ("General", "0.30000000000000004", "0.3"),
        ("General", "1234567890123", "1234567890123"), ("General", "8.3333333333333339", "8.3333333333"),
        ("0.0%", "0.125", "12.5%"), ("0%", "0.07", "7%"), ("#,##0.00", "1234.5", "1234.50"), ("0.0#", "2.50", "2.5"),
        ("0", "2.5000001", "3"), ('#,##0.00 "EUR"', "12", "12.00 EUR"), ("[$€-407]#,##0.00;[Red]-0", "-3.5", "-€3.50"),
        ("_-* #,##0.00\\ _€_-", "7", "7.00"), ("00000", "1067", "01067"), ("dd.mm.yy", "45000", "2023-03-15"),
        ("yyyy-mm-dd hh:mm", "45000.25", "2023-03-15 06:00"), ("hh:mm", "0.5", "12:00"),
        ("[h]:mm", "1.5", "36:00:00"), ("mmmm", "45000", "2023-03-15"), ("# ?/?", "0.5", "0.5"),
        ("0.00E+00", "12345.5", "12345.5"), ("@", "7", "7"),
        ("0", "no number", "no number"), ("dd.mm.yy", "1e300", "1e300"), ("0", "nan", "nan"),
        ("0.00", "-0.001", "0.00"),
    ],
)  # fmt: skip
def test_a_number_is_as_its_form_shows_it(tmp_path: Path, code: str, value: str, shown: str) -> None:
    """But days are ISO 8601, and thousands have no marks."""
    escaped = code.replace('"', "&quot;")
    forms = f'<numFmts><numFmt numFmtId="170" formatCode="{escaped}"/></numFmts>'
    styles = f'{forms}<cellXfs><xf/><xf numFmtId="170"/></cellXfs>'
    sheet = f'<sheetData><row><c s="1"><v>{value}</v></c></row></sheetData>'
    assert xlsx(tmp_path / "a", xlsx_of({"A": sheet}, styles=styles)).text == f"## A\n\n{shown}"


def test_cells_of_all_kinds_are_read(tmp_path: Path) -> None:
    """Texts that are shared, formatted or escaped, truths, errors; a formula without a value is told."""
    strings = "<si><r><t>Sha</t></r><r><t>re_x000D_</t></r><rPh><t>SPOKEN</t></rPh></si><si><t>two\nlines</t></si>"
    cells = '<c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c>'
    cells += '<c t="str"><f>A1</f><v>sum</v></c><c><f>A1</f></c><c t="s"><v>9</v></c><c t="d"><v>2026-03-01</v></c>'
    found = xlsx(tmp_path / "a", xlsx_of({"A": f"<sheetData><row>{cells}</row></sheetData>"}, strings=strings))
    assert found.text == "## A\n\n| Share | two lines | TRUE | #N/A | sum | 2026-03-01 |\n|---|---|---|---|---|---|"
    assert found.left_out == ("1 formula without a value",)


def test_hidden_rows_and_columns_are_left_out_and_told(tmp_path: Path) -> None:
    """They are not seen, so they are not read."""
    rows = '<row r="1"><c r="A1"><v>1</v></c><c r="B1"><v>2</v></c></row>'
    rows += '<row r="2" hidden="1"><c r="A2"><v>3</v></c></row>'
    sheet = f'<cols><col min="2" max="3" hidden="1"/></cols><sheetData>{rows}</sheetData>'
    found = xlsx(tmp_path / "a", xlsx_of({"A": sheet}))
    assert (found.text, found.left_out) == ("## A\n\n1", ("1 cell of a hidden column", "1 hidden row"))


def test_boxes_beside_the_cells_are_told(tmp_path: Path) -> None:
    """With pictures and charts: their words are in no cell."""
    space = "http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"
    box = f'<x:wsDr xmlns:x="{space}"><x:sp><x:txBody/></x:sp><x:sp><x:txBody/></x:sp></x:wsDr>'
    parts = {"xl/drawings/drawing1.xml": box, "xl/media/a.png": "x", "xl/charts/chart1.xml": "<a/>"}
    data = io.BytesIO(xlsx_of({"A": sheet_of([["x"]])}))
    with zipfile.ZipFile(data, "a") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert xlsx(tmp_path / "a", data.getvalue()).left_out == ("1 picture", "1 chart", "2 text frames")
    shapes = "<table:shapes><draw:frame><draw:text-box><text:p>x</text:p></draw:text-box></draw:frame></table:shapes>"
    found = ods(tmp_path / "a", f"<table:table table:name='A'>{shapes}{ods_row('a')}</table:table>")
    assert (found.text, found.left_out) == ("## A\n\na", ("1 text frame",))


def test_a_cell_over_several_rows_is_said_in_each(tmp_path: Path) -> None:
    """So each row is found by it; the row behind them is not its own."""
    shown = "## A\n\n| Place | Well |\n|---|---|\n| North | a |\n| North | b |\n|  | c |"
    rows: list[list[str | float]] = [["Place", "Well"], ["North", "a"], ["", "b"], ["", "c"]]
    merged = "<mergeCells><mergeCell ref='A1:B1'/><mergeCell ref=\"A2:A3\"/></mergeCells>"
    assert xlsx(tmp_path / "a", xlsx_of({"A": sheet_of(rows) + merged})).text == shown
    body = ods_row("Place", "Well") + ods_row("North", "a").replace("-cell>", '-cell table:number-rows-spanned="2">', 1)
    body += "".join(
        f"<table:table-row><table:covered-table-cell/><table:table-cell><text:p>{each}</text:p></table:table-cell>"
        "</table:table-row>"
        for each in "bc"
    )
    assert ods(tmp_path / "a", f'<table:table table:name="A">{body}</table:table>').text == shown


def test_a_cell_far_away_takes_no_room(tmp_path: Path) -> None:
    """In the last row and column of a sheet."""
    far = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    found = xlsx(tmp_path / "a", xlsx_of({"A": f"<sheetData>{far}</sheetData>"}))
    assert found.text == "## A\n\n1\n\n2"


def test_a_sheet_that_is_very_large_is_told(tmp_path: Path) -> None:
    """Its first rows are read, and how many they are."""
    rows = ods_row("lamp " * 1_000, about='table:number-rows-repeated="100000"')
    found = ods(tmp_path / "a", f"<table:table table:name='A'>{rows}</table:table>")
    assert 2**21 < len(found.text) < 2**23
    (told,) = found.left_out
    assert told == "what stands behind the first 838 rows of A: it is too large"


def test_cells_of_ods_are_as_they_are_shown(tmp_path: Path) -> None:
    """But days are ISO 8601; comments are told, and empty cells to the end of a sheet are nothing."""
    share = (
        '<table:table-cell office:value-type="percentage"><office:annotation><text:p>NOTE</text:p></office:annotation>'
    )
    share += "<text:p>12,5 %</text:p></table:table-cell>"
    day = '<table:table-cell office:value-type="date" office:date-value="2026-03-01T00:00:00">'
    day += "<text:p>1.3.</text:p></table:table-cell>"
    rest = '<table:table-cell table:number-columns-repeated="16380"/>'
    rows = ods_row("Share", "Day") + f"<table:table-row>{share}{day}{rest}</table:table-row>"
    rows += '<table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row>'
    found = ods(tmp_path / "a", f'<table:table table:name="A">{rows}</table:table>')
    assert found.text == "## A\n\n| Share | Day |\n|---|---|\n| 12,5 % | 2026-03-01 |"
    assert found.left_out == ("1 comment",)


def test_what_ods_hides_is_left_out_and_told(tmp_path: Path) -> None:
    """Sheets by their style, rows and columns by themselves."""
    hidden = '<style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
    columns = '<table:table-column/><table:table-column table:visibility="collapse"/>'
    rows = ods_row("a", "SECRET") + ods_row("SECRET", about='table:visibility="filter"')
    body = f'<table:table table:name="A">{columns}{rows}</table:table>'
    body += f'<table:table table:name="H" table:style-name="h">{rows}</table:table>'
    found = ods(tmp_path / "a", body, hidden)
    assert found.text == "## A\n\na"
    assert found.left_out == ("1 hidden sheet (H)", "1 cell of a hidden column", "1 hidden row")


def test_a_workbook_without_cells_is_told(tmp_path: Path) -> None:
    """With what it has instead."""
    with pytest.raises(NotReadable, match=r"no cells; left out: 1 hidden sheet \(A\)"):
        xlsx(tmp_path / "a", xlsx_of({"A": sheet_of([["x"]])}, ["hidden"]))


@given(
    code=st.text('0#?.,%-_* \\[]$€"hmsydE/@;r', max_size=14), value=st.floats() | st.text("0123456789.e-", max_size=9)
)
def test_any_form_shows_any_number(reused_folder: Path, code: str, value: float | str) -> None:
    """Without a fault."""
    escaped = code.replace("&", "").replace('"', "&quot;")
    styles = (
        f'<numFmts><numFmt numFmtId="170" formatCode="{escaped}"/></numFmts><cellXfs><xf numFmtId="170"/></cellXfs>'
    )
    sheet = f"<sheetData><row><c t='str'><v>x</v></c><c><v>{value}</v></c></row></sheetData>"
    assert xlsx(reused_folder / "any", xlsx_of({"A": sheet}, styles=styles)).text.startswith("## A")


def test_a_long_sheet_is_read_in_a_time_that_grows_with_it(tmp_path: Path) -> None:
    """Rows of cells."""
    for size in (100, 800):
        row: list[str | float] = ["oil", 1.5]
        rows: list[list[str | float]] = [["Name", "Crowns"], *[row] * size]
        (tmp_path / str(size)).write_bytes(xlsx_of({"A": sheet_of(rows)}))
    assert growth(lambda size: read_xlsx(tmp_path / str(size), lambda read: None), 100) < MOST
