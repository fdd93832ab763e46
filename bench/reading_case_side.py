"""A file for bench/reading.py with what its readers must find, tell and leave out, and folders of such files."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

EXPECTED: Final = "expected.jsonl"
#: A phrase, or several of which one is enough.
Phrase: TypeAlias = str | tuple[str, ...]
#: Words for text that is there and that nobody sees.
HIDDEN: Final = ("hidden", "invisible", "not shown", "nobody sees")
#: Words for a picture that is left out.
PICTURE: Final = ("picture", "image")
#: Words of a reason why a file could not be read.
DAMAGED: Final = (
    "damaged",
    "broken",
    "could not",
    "cannot",
    "too ",
    "not a ",
    "is no ",
    "its reader was ended",
    "has no text",
)
_DAY: Final = (2024, 5, 6, 7, 8, 10)


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file: `found` stands in its texts, `told` in what is said to be left out, and `absent` nowhere in the texts.

    Where it gives no text at all, and `refused` is not empty, the words of this must be told instead of all else.
    """

    file: str
    format: str
    data: bytes
    found: tuple[Phrase, ...] = ()
    told: tuple[Phrase, ...] = ()
    absent: tuple[str, ...] = ()
    refused: tuple[Phrase, ...] = ()

    def as_line(self) -> str:
        """Return its line of the list of what is expected."""
        row: dict[str, Any] = {"file": self.file, "format": self.format}
        row |= {"found": self.found, "told": self.told, "absent": self.absent}
        return json.dumps(row | ({"refused": self.refused} if self.refused else {}), ensure_ascii=False)


def make_archive(parts: Mapping[str, str | bytes], stored: str = "") -> bytes:
    """Return an archive of these parts in their order, always the same bytes; the one named `stored` is not packed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            entry = zipfile.ZipInfo(name, _DAY)
            entry.compress_type = zipfile.ZIP_STORED if name == stored else zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, compresslevel=1)
    return out.getvalue()


def write_files(folder: Path, files: Iterable[GivenFile]) -> None:
    """Write files, and the list of what is expected of them."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for each in files:
        (folder / each.file).write_bytes(each.data)
        lines.append(each.as_line() + "\n")
    (folder / EXPECTED).write_text("".join(lines), encoding="utf-8")


def read_files(folder: Path) -> Iterator[GivenFile]:
    """Yield the files of a folder by its list of what is expected."""
    for line in (folder / EXPECTED).read_text(encoding="utf-8").splitlines():
        if line.strip():
            row = json.loads(line)
            yield GivenFile(
                file=row["file"],
                format=row["format"],
                data=(folder / row["file"]).read_bytes(),
                found=_phrases(row.get("found", [])),
                told=_phrases(row.get("told", [])),
                absent=tuple(row.get("absent", [])),
                refused=_phrases(row.get("refused", [])),
            )


def _phrases(given: Iterable[str | list[str]]) -> tuple[Phrase, ...]:
    return tuple(each if isinstance(each, str) else tuple(each) for each in given)
