"""Zipped documents: parts and XML within limits, and what a file in an archive is refused for."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.reading.office_files import (
    ODS,
    ODT,
    SPREADSHEET,
    docx_of,
    epub_of,
    odf_of,
    paragraph,
    sheet_of,
    xlsx_of,
    zip_of,
)  # fmt: skip
from tests.memory.reading.reads import read_all, texts_of
from tests.waiting import HANG

from batos.memory.reading.file_texts import FileTexts, ReadingLimits
from batos.memory.reading.packed_texts import read_archive
from batos.memory.reading.read_text import NotReadable, ReadText, UnreadPart
from batos.memory.reading.zipped_documents import ZippedDocument

PATIENT = ReadingLimits(2**20, seconds=int(HANG))


def nested(tags: str, words: str, times: int = 10_000) -> str:
    """Words within elements that stand within each other, so many times."""
    begin = "".join(f"<{tag}>" for tag in tags.split())
    end = "".join(f"</{tag}>" for tag in reversed(tags.split()))
    return begin * times + words + end * times


LEASE = "<text:p>The rent is 450.</text:p>"
DOCUMENTS: dict[str, bytes] = {
    "docx": docx_of(paragraph("The rent is 450.")),
    "odt": odf_of(ODT, LEASE),
    "root": zip_of({
        "_rels/.rels": '<a><b Id="1" Type="x/officeDocument" Target="workbook.xml"/></a>',
        "workbook.xml": f'<workbook {SPREADSHEET}><sheets><sheet name="Rent" r:id="1"/></sheets></workbook>',
        "_rels/workbook.xml.rels": '<a><b Id="1" Type="x/worksheet" Target="sheet.xml"/></a>',
        "sheet.xml": f"<worksheet {SPREADSHEET}>{sheet_of([['The rent is 450.']])}</worksheet>",
    }),
    "xlsx": xlsx_of({"Rent": sheet_of([["Rent"], ["The rent is 450."]])}),
    "ods": odf_of(ODS, nested("table:table table:table-row table:table-cell", LEASE, 1)),
    "epub": epub_of({"one": f"<p>{LEASE}"}),
}  # fmt: skip


def events_of(path: Path, xml: str) -> list[tuple[str, str]]:
    """The kinds and names of what a part of XML holds."""
    path.write_bytes(zip_of({"a.xml": xml}))
    return [(kind, name) for kind, name, _ in ZippedDocument(path).events("a.xml")]


def reason_of(path: Path, data: bytes) -> str:
    """The reason for which a file is not read: through the process that reads."""
    path.write_bytes(data)
    with FileTexts(PATIENT) as texts:
        (found,) = texts.read(path, "archive")
    assert isinstance(found, UnreadPart)
    return found.reason


@pytest.mark.parametrize("kind", sorted(DOCUMENTS))
def test_a_document_is_told_by_what_is_inside(tmp_path: Path, kind: str) -> None:
    """Without any ending, and with that of another one."""
    for name in ("lease", "lease.txt", "lease.docx"):
        found = read_all(read_archive, tmp_path / name, DOCUMENTS[kind])
        (text,) = texts_of(found)
        assert "The rent is 450." in text
        with FileTexts(PATIENT) as texts:
            assert list(texts.read(tmp_path / name, "archive")) == found


@pytest.mark.parametrize("kind", sorted(DOCUMENTS))
@given(data=st.data())
def test_a_broken_archive_is_a_reason(reused_folder: Path, kind: str, data: st.DataObject) -> None:
    """Cut off, or with bytes of others: a text or a reason, and nothing else."""
    whole = bytearray(DOCUMENTS[kind])
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=4)):
        whole[at] = data.draw(st.integers(0, 255))
    path = reused_folder / kind
    try:
        read_all(read_archive, path, bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    except NotReadable as error:
        assert str(error)


def old_container(stream: str) -> bytes:
    """The first bytes of the container of older programs, with a stream of a name."""
    head = bytearray(512)
    head[:4], head[30:32], head[48:52] = b"\xd0\xcf\x11\xe0", (9).to_bytes(2, "little"), bytes(4)
    return bytes(head) + f"Root Entry\0{stream}\0".encode("utf-16-le").ljust(512, b"\0")


SLIDES = {"mimetype": "application/vnd.oasis.opendocument.presentation"}


@pytest.mark.parametrize(
    ("data", "what", "ending"),
    [
        (zip_of({"ppt/presentation.xml": "x"}), "slides", "pdf"),
        (zip_of(SLIDES), "slides", "pdf"),
        (zip_of({"xl/workbook.bin": "x"}), "a binary workbook", "xlsx"),
        (old_container("WordDocument"), "an old Word document", "docx"),
        (old_container("Workbook"), "an old workbook", "xlsx"),
        (old_container("x"), "an office document of the old kind", "pdf"),
        (b"\xd0\xcf\x11\xe0", "an office document of the old kind", "pdf"),
    ],
)
def test_what_is_not_read_has_a_remedy(tmp_path: Path, data: bytes, what: str, ending: str) -> None:
    """What it is, and the command that makes something of it that is read."""
    command = f"soffice --headless --convert-to {ending} a"
    assert reason_of(tmp_path / "a", data) == f"it is {what}, which is not read here: `{command}`"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (zip_of({"photo.jpg": "x"}), "it is a zip archive: unpack it (`unzip a`), and remember its folder"),
        (old_container("EncryptedPackage"), "it is locked with a password: save it without one, in its own program"),
        (b"PK\3\4", "it is a damaged archive: save or download it again"),
    ],
)
def test_what_cannot_be_read_has_a_remedy(tmp_path: Path, data: bytes, reason: str) -> None:
    """By hand, where no command helps."""
    assert reason_of(tmp_path / "a", data) == reason


def test_an_encrypted_document_is_locked(tmp_path: Path) -> None:
    """ODF tells it in its manifest, or is one locked part; a zip archive in the part itself."""
    space = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    locked = f'<m:manifest xmlns:m="{space}"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>'
    for parts in ({"META-INF/manifest.xml": locked}, {"encrypted-package": "x"}):
        for kind in (ODT, ODS):
            assert "password" in reason_of(tmp_path / "a", zip_of({"mimetype": kind, **parts}))
    data = bytearray(DOCUMENTS["docx"])
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        begin = -1
        while (begin := data.find(mark, begin + 1)) >= 0:
            data[begin + at] |= 1
    assert "password" in reason_of(tmp_path / "a", bytes(data))


def test_namespaces_are_told_by_their_last_words(tmp_path: Path) -> None:
    """The strict and the usual names of a space are one, whatever their prefix in a file."""
    spaces = ("purl.oclc.org/ooxml/wordprocessingml/main", "schemas.openxmlformats.org/wordprocessingml/2006/main")
    for space in spaces:
        assert events_of(tmp_path / "a", f'<q:p xmlns:q="http://{space}">x</q:p>') == [
            ("<", "w:p"),
            ("", "x"),
            (">", "w:p"),
        ]
    drawing = "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
    assert events_of(tmp_path / "a", f'<p xmlns="{drawing}"/>')[0] == ("<", "drawing:p")


ENTITIES = '<!DOCTYPE a [<!ENTITY b "lol"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><a>&c;</a>'


@pytest.mark.parametrize(
    ("xml", "reason"), [(ENTITIES, "entities"), ("<a><b></a>", "no XML to its end"), ("", "no XML"), ("<a", "no XML")]
)
def test_strange_xml_is_refused(tmp_path: Path, xml: str, reason: str) -> None:
    """Entities that grow into each other never do, and neither is a file of this machine read."""
    with pytest.raises(NotReadable, match=reason):
        events_of(tmp_path / "a", xml)
    with pytest.raises(NotReadable, match="entities"):
        events_of(tmp_path / "a", '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><a>&b;</a>')


def test_a_bomb_ends(tmp_path: Path) -> None:
    """An archive of a megabyte that unpacks to a gigabyte is not unpacked to its end; the next file is read."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_rels/.rels", "<a/>")
        with archive.open("word/document.xml", "w", force_zip64=True) as part:
            for _ in range(300):
                part.write(b" " * 2**20)
    assert len(zlib.compress(data.getvalue())) < 2**20
    assert reason_of(tmp_path / "a", data.getvalue()) == "it unpacks to far more than its own size"


@pytest.mark.parametrize(
    "data",
    [
        docx_of(nested("w:tbl w:tr w:tc", paragraph("lamp"))),
        docx_of(nested("w:p w:r w:txbxContent", paragraph("lamp"))),
        odf_of(ODT, nested("table:table table:table-row table:table-cell", "<text:p>lamp</text:p>")),
        odf_of(ODT, nested("text:list text:list-item", "<text:p>lamp</text:p>")),
        xlsx_of({"a": nested("sheetData row c", "lamp")}),
        odf_of(ODS, nested("table:table table:table-row table:table-cell", "<text:p>lamp</text:p>")),
    ],
)
def test_what_is_nested_ten_thousand_times_ends(tmp_path: Path, data: bytes) -> None:
    """Its words are read, or it is told within the limits: the process lives on."""
    (tmp_path / "deep").write_bytes(data)
    with FileTexts(PATIENT) as texts:
        (found,) = texts.read(tmp_path / "deep", "archive")
        assert not isinstance(found, ReadText) or "lamp" in found.text
        (tmp_path / "good").write_bytes(DOCUMENTS["odt"])
        (found,) = texts.read(tmp_path / "good", "archive")
        assert isinstance(found, ReadText)


def test_names_that_lead_elsewhere_lead_nowhere(tmp_path: Path) -> None:
    """A part is found by its name in the archive alone, and nothing is unpacked to a folder."""
    target = tmp_path / "secret.xml"
    target.write_text("<p>SECRET</p>")
    relations = f'<Relationships><Relationship Id="a" Type="x/officeDocument" Target="../..{target}"/></Relationships>'
    data = zip_of({"_rels/.rels": relations, "word/document.xml": "<a/>", "../../up.xml": "<a/>"})
    assert "missing" in reason_of(tmp_path / "a", data)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "secret.xml"]


def test_parts_are_found_as_programs_name_them(tmp_path: Path) -> None:
    """In other letters, with strokes that lean back, and relative to the part that names them."""
    (tmp_path / "a").write_bytes(
        zip_of(
            {
                "Word\\Document.xml": "<a/>",
                "word/_rels/document.xml.rels": "<r><s Id='1' Type='x/y' Target='../b.xml'/></r>",
            }
        )
    )
    archive = ZippedDocument(tmp_path / "a")
    assert archive.part("word/document.xml") == b"<a/>"
    assert list(archive.list_related("word/document.xml")) == [("1", "y", "b.xml")]
