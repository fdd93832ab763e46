"""PDFs for tests, written by hand: a page of text, and pages whose content unpacks to far more than its size."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def pdf_of(lines: Iterable[str], title: str = "") -> bytes:
    """A PDF with one page for each line."""
    pages = [zlib.compress(f"BT /F1 12 Tf 50 700 Td ({line}) Tj ET".encode("latin-1")) for line in lines]
    return _pdf(pages, title)


def bomb_of(piece: bytes, times: int) -> bytes:
    """A PDF of one page whose content is a piece that comes so many thousand times."""
    packer = zlib.compressobj(9)
    packed = [packer.compress(b"BT /F1 12 Tf ")]
    packed += [packer.compress(piece * 1_000) for _ in range(times)]
    return _pdf([b"".join([*packed, packer.compress(b" ET"), packer.flush()])], "")


def _pdf(pages: Sequence[bytes], title: str) -> bytes:
    numbers = range(5, 5 + 2 * len(pages), 2)
    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        _FONT,
        f"<< /Title ({title}) >>".encode("latin-1"),
    ]
    for number, packed in zip(numbers, pages, strict=True):
        about = f"/Parent 2 0 R /MediaBox [0 0 600 800] /Contents {number + 1} 0 R"
        objects.append(f"<< /Type /Page {about} /Resources << /Font << /F1 3 0 R >> >> >>".encode())
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed))
    out, places = b"%PDF-1.4\n", []
    for number, data in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, data)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    trailer = b"trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n%s%s" % (size, table, trailer)
