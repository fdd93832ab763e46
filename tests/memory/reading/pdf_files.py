"""PDFs for tests, written by hand: pages of text, of painted words, and of far more than their size."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
_IMAGE = (
    b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>"
)
#: A picture that fills a page.
SCAN = " q 600 0 0 800 0 0 cm /I1 Do Q "


def pdf_of(lines: Iterable[str], title: str = "") -> bytes:
    """A PDF with one page for each line."""
    return painted(*(said(50, 700, line) for line in lines), title=title)


def said(x: float, y: float, text: str, size: float = 12, before: str = "") -> str:
    """What paints a text at a place, after other orders."""
    return f" BT {before} /F1 {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET "


def column(x: float, y: float, lines: Iterable[str], size: float = 12) -> str:
    """What paints lines below each other."""
    return "\n".join(said(x, y - 1.2 * size * number, line, size) for number, line in enumerate(lines))


def painted(*pages: str, title: str = "", fields: Sequence[str] = (), attached: str = "") -> bytes:
    """A PDF of pages that are painted so; the first has these fields, and a file of this name is attached."""
    return _pdf([zlib.compress(page.encode("cp1252")) for page in pages], title, fields, attached)


def field(name: str, value: str, box: str) -> str:
    """A field of a form with a text in it; `box` is left, bottom, right, top."""
    return f"<< /Type /Annot /Subtype /Widget /FT /Tx /T ({name}) /V ({value}) /Rect [{box}] /F 4 >>"


def bomb_of(piece: bytes, times: int) -> bytes:
    """A PDF of one page whose content is a piece that comes so many thousand times."""
    packer = zlib.compressobj(9)
    packed = [packer.compress(b"BT /F1 12 Tf ")]
    packed += [packer.compress(piece * 1_000) for _ in range(times)]
    return _pdf([b"".join([*packed, packer.compress(b" ET"), packer.flush()])], "")


def _pdf(pages: Sequence[bytes], title: str, fields: Sequence[str] = (), attached: str = "") -> bytes:
    numbers = range(7, 7 + 2 * len(pages), 2)
    kids = " ".join(f"{number} 0 R" for number in numbers)
    places = " ".join(f"{numbers.stop + number} 0 R" for number in range(len(fields)))
    form = f"/AcroForm << /Fields [{places}] >>" if fields else ""
    file = f"<< /Type /Filespec /F ({attached}) /UF ({attached}) /EF << /F 6 0 R >> >>"
    names = f"/Names << /EmbeddedFiles << /Names [({attached}) {file}] >> >>" if attached else ""
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {form} {names} >>".encode("cp1252"),
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        _FONT,
        f"<< /Title ({title}) >>".encode("latin-1"),
        _IMAGE + b"\nstream\n\x80\nendstream",
        b"<< /Type /EmbeddedFile /Length 4 >>\nstream\noil\n\nendstream",
    ]
    for number, packed in zip(numbers, pages, strict=True):
        about = f"/Parent 2 0 R /MediaBox [0 0 600 800] /Contents {number + 1} 0 R"
        about += f" /Annots [{places}]" if fields and number == numbers.start else ""
        used = "<< /Font << /F1 3 0 R >> /XObject << /I1 5 0 R >> >>"
        objects.append(f"<< /Type /Page {about} /Resources {used} >>".encode())
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed))
    return _file([*objects, *(each.encode("cp1252") for each in fields)])


def _file(objects: Sequence[bytes]) -> bytes:
    out, places = b"%PDF-1.4\n", []
    for number, data in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, data)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    trailer = b"trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n%s%s" % (size, table, trailer)
