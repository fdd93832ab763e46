"""DOCX and ODT: structure, notes, tracked changes, and what is hidden or left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import MOST, growth
from tests.memory.reading.office_files import ODT, docx_of, odf_of, paragraph
from tests.memory.reading.reads import read_all

from batos.memory.reading.read_text import NotReadable, ReadText
from batos.memory.reading.written_documents import read_docx, read_odt

NUMBERS = (
    '<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>'
    '<w:abstractNum w:abstractNumId="1">'
    '<w:lvl w:ilvl="0"><w:numFmt w:val="upperRoman"/><w:lvlText w:val="§ %1"/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:start w:val="2"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl>'
    '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="3"><w:abstractNumId w:val="1"/>'
    '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>'
)
STYLES = (
    '<w:style w:styleId="Titel"><w:name w:val="Title"/></w:style>'
    '<w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>'
    '<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="berschrift2"/></w:style>'
    '<w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/><w:rPr><w:vanish/></w:rPr></w:style>'
)


def docx(path: Path, body: str, **parts: str) -> ReadText:
    """What is read of a DOCX with this body."""
    (found,) = read_all(read_docx, path, docx_of(body, **parts))
    assert isinstance(found, ReadText)
    return found


def odt(path: Path, body: str, automatic: str = "", **parts: str) -> ReadText:
    """What is read of an ODT with this body."""
    (found,) = read_all(read_odt, path, odf_of(ODT, body, automatic, **parts))
    assert isinstance(found, ReadText)
    return found


def item(text: str, number: int, depth: int = 0) -> str:
    """An item of a list in DOCX."""
    return paragraph(text, f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>')


def run(text: str, properties: str = "") -> str:
    """A run of DOCX."""
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


LOWERED = '<w:vertAlign w:val="subscript"/>'


def raised(text: str) -> str:
    """Raised words of DOCX."""
    return run(text, '<w:vertAlign w:val="superscript"/>')


def row(*cells: str, about: str = "") -> str:
    """A row of a table in DOCX."""
    return f"<w:tr>{about}{''.join(f'<w:tc>{each}</w:tc>' for each in cells)}</w:tr>"


def test_headings_are_told_by_their_style(tmp_path: Path) -> None:
    """Whatever a style is called in a language, or whatever it is based on; the title is that of the document."""
    body = paragraph("The lease", '<w:pStyle w:val="Titel"/>') + paragraph("Rent", '<w:pStyle w:val="berschrift2"/>')
    body += paragraph("Heat", '<w:pStyle w:val="Mine"/>') + paragraph("Oil", '<w:outlineLvl w:val="2"/>')
    found = docx(tmp_path / "a", body + paragraph("It is dear."), styles=STYLES)
    assert found.text == "# The lease\n\n## Rent\n\n## Heat\n\n### Oil\n\nIt is dear."
    assert (found.title, found.left_out) == ("The lease", ())


def test_lists_have_their_signs_and_numbers(tmp_path: Path) -> None:
    """As they are shown: each level counts anew, and a list that begins at a number begins there."""
    body = item("a", 1) + item("b", 1, 1) + item("c", 1) + item("d", 2) + item("e", 2, 1) + item("f", 2, 1)
    body += item("g", 2) + item("h", 2, 1) + item("i", 3)
    shown = "- a\n  - b\n- c\n§ I d\n  I.b) e\n  I.c) f\n§ II g\n  II.b) h\n§ VII i"
    assert docx(tmp_path / "a", body, numbering=NUMBERS).text == shown


def test_tracked_changes_are_as_they_were_made(tmp_path: Path) -> None:
    """Insertions are read, deletions are not; what was moved stands where it is now."""
    body = f"<w:p>{run('The rent is ')}<w:del>{run('x')}<w:r><w:delText>GONE</w:delText></w:r></w:del>"
    body += (
        f"<w:ins>{run('450')}</w:ins><w:moveFrom>{run('AWAY')}</w:moveFrom><w:moveTo>{run(' crowns')}</w:moveTo></w:p>"
    )
    body += f"<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>{run('One ')}</w:p><w:p>{run('two.')}</w:p>"
    body += paragraph("Three.", '<w:pPrChange><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:pPrChange>')
    found = docx(tmp_path / "a", body)
    assert (found.text, found.left_out) == ("The rent is 450 crowns\n\nOne two.\n\nThree.", ("1 tracked deletion",))


def test_hidden_text_is_left_out_and_told(tmp_path: Path) -> None:
    """Of a run, and of a style; what is not hidden any more is read."""
    body = paragraph("SECRET", run="<w:vanish/>") + paragraph("seen", run='<w:vanish w:val="false"/>')
    found = docx(tmp_path / "a", body + paragraph("SECRET", '<w:pStyle w:val="Loop"/>'), styles=STYLES)
    assert (found.text, found.left_out) == ("seen", ("hidden text",))


def test_words_in_a_line_are_whole(tmp_path: Path) -> None:
    """Powers, ordinals, breaks, tabs, and hyphens that only show where a word may be parted."""
    body = f"<w:p>{run('10')}{raised('1')}{raised('2')}{run(' m')}{raised('3')}{run(' H')}"
    body += f"{run('2', LOWERED)}{run('O 1')}{raised('st')}<w:r><w:br/></w:r>"
    body += f"{run('A')}<w:r><w:tab/></w:r>{run('mon&#173;th e')}<w:r><w:noBreakHyphen/></w:r>{run('mail')}</w:p>"
    assert docx(tmp_path / "a", body).text == "10^12 m^3 H2O 1st\nA month e-mail"


def test_tables_have_a_head_and_merged_cells(tmp_path: Path) -> None:
    """A cell over several rows is said in each; one over several columns once. Deleted rows are gone."""
    restart, goes_on = '<w:tcPr><w:vMerge w:val="restart"/></w:tcPr>', "<w:tcPr><w:vMerge/></w:tcPr>"
    body = row(*map(paragraph, ("Place", "Name", "Crowns"))) + row(
        restart + paragraph("North"), paragraph("A|b") + paragraph("c"), paragraph("1")
    )
    body += row(goes_on + paragraph(""), '<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>' + paragraph("both"))
    body += row(paragraph("GONE"), about="<w:trPr><w:del/></w:trPr>")
    found = docx(tmp_path / "a", f"<w:tbl>{body}</w:tbl>")
    assert found.text == "| Place | Name | Crowns |\n|---|---|---|\n| North | A\\|b c | 1 |\n| North | both |  |"
    assert found.left_out == ("1 deleted or hidden row",)


def test_notes_boxes_and_edges_are_read(tmp_path: Path) -> None:
    """A note stands behind its paragraph, a box too (and once), what stands above all pages behind the text."""
    box = f"<w:txbxContent>{paragraph('In a box.')}</w:txbxContent>"
    body = f'<w:p>{run("The rent")}<w:r><w:footnoteReference w:id="2"/></w:r>{run(" rises.")}<w:r><mc:AlternateContent>'
    body += f"<mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    notes = f'<w:footnote w:type="separator" w:id="0"/><w:footnote w:id="2">{paragraph("In May.")}</w:footnote>'
    parts = {"footnotes": notes, "header": paragraph("Acme Ltd"), "footer": paragraph("- 2 -")}
    found = docx(tmp_path / "a", body + paragraph("End."), **parts)
    assert found.text == "The rent[^1] rises.\n\nIn a box.\n\n[^1]: In May.\n\nEnd.\n\nAcme Ltd"


def test_what_has_no_words_is_told(tmp_path: Path) -> None:
    """Pictures (but what they are called), comments, objects."""
    body = '<w:p><w:r><wp:docPr descr="A lamp"/><pic:pic/></w:r><w:r><w:commentReference/></w:r>'
    body += "<w:r><w:object><v:imagedata/></w:object></w:r></w:p><w:p><w:r><w:pict><v:imagedata/></w:pict></w:r></w:p>"
    found = docx(tmp_path / "a", body)
    assert (found.text, found.left_out) == ("A lamp", ("2 pictures", "1 comment", "1 embedded object"))
    with pytest.raises(NotReadable, match="no text; left out: 1 picture"):
        docx(tmp_path / "a", "<w:p><w:r><pic:pic/></w:r></w:p>")


AUTOMATIC = (
    '<style:style style:name="S" style:family="text"><style:text-properties text:display="none"/></style:style>'
    '<style:style style:name="P" style:parent-style-name="S"/>'
    '<style:style style:name="U"><style:text-properties style:text-position="super 58%"/></style:style>'
    '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="a"'
    ' style:num-suffix=")" text:start-value="3"/><text:list-level-style-bullet text:level="2"/></text:list-style>'
)


def test_structure_of_odt_is_kept(tmp_path: Path) -> None:
    """Headings, lists with their numbers, tables, blanks that are counted, and breaks."""
    body = (
        '<text:h text:outline-level="2">Rent</text:h>'
        '<text:p>It<text:s text:c="3"/>is\n 450<text:line-break/>crowns.</text:p>'
        '<text:list text:style-name="L"><text:list-item><text:p>one</text:p><text:list><text:list-item>'
        "<text:p>in</text:p>"
        "</text:list-item></text:list></text:list-item><text:list-item><text:p>two</text:p><text:p>goes on</text:p>"
        "</text:list-item></text:list><table:table><table:table-header-rows><table:table-row>"
        "<table:table-cell><text:p>A</text:p></table:table-cell><table:table-cell><text:p>B</text:p></table:table-cell>"
        "</table:table-row></table:table-header-rows><table:table-row>"
        '<table:table-cell table:number-columns-spanned="2">'
        "<text:p>x</text:p></table:table-cell><table:covered-table-cell/></table:table-row></table:table>"
    )
    found = odt(tmp_path / "a", body, AUTOMATIC)
    assert found.text.startswith("## Rent\n\nIt is 450\ncrowns.\n\nc) one\n  - in\nd) two\n")
    assert found.text.endswith("goes on\n\n| A | B |\n|---|---|\n| x |  |")


def test_what_odt_hides_is_left_out_and_told(tmp_path: Path) -> None:
    """Hidden runs, paragraphs and sections, tracked deletions, comments and pictures."""
    body = (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>GONE</text:p></text:deletion>"
        '</text:changed-region></text:tracked-changes><text:p>Seen<text:span text:style-name="S">SECRET</text:span>'
        "<office:annotation><text:p>COMMENT</text:p></office:annotation></text:p>"
        '<text:p text:style-name="P">SECRET</text:p>'
        '<text:section text:display="none"><text:p>SECRET</text:p></text:section>'
        '<text:p><drawing:frame><drawing:image xlink:href="a"/><svg:desc>A lamp</svg:desc></drawing:frame></text:p>'
    )
    found = odt(tmp_path / "a", body.replace("drawing:", "draw:"), AUTOMATIC)
    assert found.text == "Seen\n\nA lamp"
    assert found.left_out == ("1 tracked deletion", "hidden text", "1 comment", "1 picture")


def test_notes_boxes_and_edges_of_odt_are_read(tmp_path: Path) -> None:
    """As those of DOCX."""
    body = (
        "<text:p>10<text:span text:style-name='U'>6</text:span><text:note><text:note-citation>1</text:note-citation>"
        "<text:note-body><text:p>In May.</text:p></text:note-body></text:note> rises<draw:frame><draw:text-box>"
        "<text:p>In a box.</text:p></draw:text-box></draw:frame></text:p>"
    )
    found = odt(tmp_path / "a", body, AUTOMATIC, styles="<style:header><text:p>Acme Ltd</text:p></style:header>")
    assert found.text == "10^6[^1] rises\n\nIn a box.\n\n[^1]: In May.\n\nAcme Ltd"


TAGS = st.sampled_from(
    "w:p w:r w:t w:tbl w:tr w:tc w:txbxContent w:pPr w:rPr w:tcPr w:trPr w:del w:ins w:vMerge w:vanish w:numPr w:numId"
    " text:p text:h text:span text:list text:list-item text:note text:note-body text:section table:table"
    " table:table-row table:table-cell table:covered-table-cell draw:text-box draw:frame office:annotation"
    " text:tracked-changes".split()
)
XML = st.recursive(
    st.text("ab<&1 ", max_size=4).map(lambda text: text.replace("&", "&amp;").replace("<", "&lt;")),
    lambda inner: st.tuples(TAGS, st.lists(inner, max_size=4)).map(
        lambda each: f"<{each[0]}>{''.join(each[1])}</{each[0]}>"
    ),
    max_leaves=20,
)  # fmt: skip


@given(body=XML)
def test_elements_in_any_order_are_read_or_refused(reused_folder: Path, body: str) -> None:
    """A row without a table, a cell without a row: a text or a reason."""
    path = reused_folder / "any"
    for reader, data in ((read_docx, docx_of(body)), (read_odt, odf_of(ODT, body))):
        try:
            read_all(reader, path, data)
        except NotReadable as error:
            assert str(error)


def test_a_long_document_is_read_in_a_time_that_grows_with_it(tmp_path: Path) -> None:
    """Paragraphs, tables and notes alike."""
    table = f"<w:tbl>{row(paragraph('a'), paragraph('b')) * 4}</w:tbl>"
    for size in (20, 160):
        (tmp_path / str(size)).write_bytes(docx_of((paragraph("The lamp.") * 4 + table) * size))
    assert growth(lambda size: read_docx(tmp_path / str(size), lambda read: None), 20) < MOST
