"""Reads what is packed in another notation: zip archives by what is in them, e-books, notebooks, cards, calendars."""

from __future__ import annotations

import importlib
import json
import posixpath
import quopri
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from batos.memory.reading.other_text import DecodedText, decode, without_data
from batos.memory.reading.read_text import Emit, NoText, NotReadable, ReadText, clean, one_line
from batos.memory.reading.web_pages import text_of
from batos.memory.reading.zipped_documents import LOCKED, ZippedDocument, name_left_out

#: Elements that XHTML may close at once, and which swallow the rest of a page of HTML.
_CLOSED: Final = re.compile(r"<(title|script|style|iframe|textarea|noscript|object|svg)\b([^<>]*)/>", re.IGNORECASE)
#: Elements and names that stand around a page's text are a part of a book's.
_AROUND: Final = re.compile(
    r"(</?)(?:aside|nav|header|footer|form)\b[^<>]*>|\s(?:class|id|role)=(?:\"[^\"]*\"|'[^']*')"
)
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
#: Kinds of what a cell of a notebook put out, the best one first.
_SHOWN: Final = ("text/markdown", "text/plain", "text")


#: Begin of a part's name, or an archive's own type -> the module and the function that reads it.
_READERS: Final = {
    "application/vnd.oasis.opendocument.text": ("written_documents", "read_odt"),
    "application/vnd.oasis.opendocument.spreadsheet": ("spreadsheets", "read_ods"),
    "application/epub+zip": ("packed_texts", "read_book"),
    "META-INF/container.xml": ("packed_texts", "read_book"),
    "word/document": ("written_documents", "read_docx"),
    "xl/workbook.xml": ("spreadsheets", "read_xlsx"),
    "workbook.xml": ("spreadsheets", "read_xlsx"),
    "conversations.json": ("chats", "read"),
}
#: The same of those that are not read, and names in the older container -> the kind, the ending that a command gives.
_UNREAD: Final = {
    "ppt/presentation": ("slides", "pdf"),
    "application/vnd.oasis.opendocument.presentation": ("slides", "pdf"),
    "application/vnd.oasis.opendocument.graphics": ("a drawing", "pdf"),
    "xl/workbook.bin": ("a binary workbook", "xlsx"),
    "Index/Document.iwa": ("a document of iWork: export it as DOCX or PDF", ""),
}
_OLD: Final = {
    "WordDocument": ("an old Word document", "docx"),
    "Workbook": ("an old workbook", "xlsx"),
    "Book": ("an old workbook", "xlsx"),
    "PowerPoint Document": ("old slides", "pdf"),
    "__nameid_version1.0": ("a mail of Outlook: save it as .eml", ""),
}


def read_archive(path: Path, emit: Emit) -> None:
    """Read a file by what is inside of it. Raises: NotReadable: it is nothing that has a text here."""
    with path.open("rb") as file:
        if file.read(4) == b"\xd0\xcf\x11\xe0":
            raise _reason_of_old(path)
    archive = ZippedDocument(path)
    inside = [*archive.names]
    if archive.has("mimetype"):
        inside.insert(0, archive.part("mimetype")[:200].decode("ascii", "replace").strip())
    for mark, (module, function) in _READERS.items():
        if any(each.startswith(mark.casefold()) for each in inside):
            read: Callable[[Path, Emit], None] = getattr(
                importlib.import_module(f"batos.memory.reading.{module}"), function
            )
            return read(path, emit)
    kinds = (kind for mark, kind in _UNREAD.items() if any(each.startswith(mark.casefold()) for each in inside))
    unpack = f"it is a zip archive: unpack it (`unzip {shlex.quote(path.name)}`), and remember its folder"
    raise next((_reason_for(kind, path) for kind in kinds), NoText(unpack))


def _reason_of_old(path: Path) -> NotReadable:
    """Return what a file in the container of older programs is: its first folder of names has it."""
    data = path.read_bytes()
    size = 1 << min(int.from_bytes(data[30:32], "little"), 12)
    at = (int.from_bytes(data[48:52], "little") + 1) * size
    names = data[at : at + 4 * size]
    if "EncryptedPackage".encode("utf-16-le") in data:
        return NotReadable(LOCKED)
    kinds = (kind for mark, kind in _OLD.items() if f"{mark}\0".encode("utf-16-le") in names)
    return _reason_for(next(kinds, ("an office document of the old kind", "pdf")), path)


def _reason_for(kind: tuple[str, str], path: Path) -> NoText:
    command = f": `soffice --headless --convert-to {kind[1]} {shlex.quote(path.name)}`" if kind[1] else ""
    return NoText(f"it is {kind[0]}, which is not read here{command}")


def read_book(path: Path, emit: Emit) -> None:
    """Read an e-book chapter by chapter as one text."""
    archive = ZippedDocument(path)
    title, chapters = _chapters(archive)
    locked = {each.casefold() for each in _find_locked(archive)}
    texts, missing = [], [each for each in chapters if each.casefold() in locked]
    if chapters and len(missing) == len(chapters):
        raise NotReadable("its seller locked it (DRM): only the seller's own program opens it")
    left_out = [f"{len(missing)} of {len(chapters)} chapters are locked (DRM)"] if missing else []
    for each in (each for each in chapters if each not in missing):
        try:
            text, doubts = _chapter(archive.part(each))
        except NotReadable as error:
            text, doubts = "", (str(error),)
        texts.append(text)
        left_out += (f"{posixpath.basename(each)}: {doubt}" for doubt in doubts)
    text = "\n\n".join(filter(None, texts))
    if not text:
        raise NotReadable("; ".join(left_out) or "the book has no text: its pages are pictures")
    pictures = sum(each.filename.lower().endswith((".jpg", ".jpeg", ".png", ".gif")) for each in archive.names.values())
    left_out += name_left_out(Counter(picture=pictures))
    emit(ReadText(text, title, "text/markdown", left_out=tuple(left_out)))


def _chapter(data: bytes) -> DecodedText:
    decoded, doubts = decode(data)
    page = _CLOSED.sub(r"<\1\2></\1>", decoded)
    return DecodedText(text_of(_AROUND.sub(lambda found: f"{found[1]}div>" if found[1] else " ", page)).text, doubts)


def _chapters(archive: ZippedDocument) -> tuple[str, list[str]]:
    """Return a book's title, and its chapters in the order in which they are read."""
    events = archive.events("META-INF/container.xml")
    package = next((each.about["full-path"] for each in events if "full-path" in each.about), "")
    title, items, spine, is_title = "", dict[str, str](), list[str](), False
    for kind, name, about in archive.events(package):
        own = name.rpartition(":")[2]
        if not kind:
            title += name if is_title else ""
        elif own == "title":
            is_title = kind == "<" and not title
        elif own == "item" and about:
            place = posixpath.join(posixpath.dirname(package), unquote(about.get("href", "")))
            items[about.get("id", "")] = posixpath.normpath(place)
        elif own == "itemref" and about:
            spine.append(about.get("idref", ""))
    return one_line(title), list(dict.fromkeys(items[each] for each in spine if each in items))


def _find_locked(archive: ZippedDocument) -> Iterator[str]:
    """Yield the parts that are locked; fonts that are only mixed up are among them."""
    name = "META-INF/encryption.xml"
    for event in archive.events(name) if archive.has(name) else ():
        if event.kind == "<" and event.name.endswith(":CipherReference"):
            yield posixpath.normpath(unquote(event.about.get("URI", "")))


def read_notebook(path: Path, emit: Emit) -> None:
    """Read a notebook: text as it is, code and what it printed in fences. Raises: NotReadable: it is none."""
    try:
        written, doubts = decode(path.read_bytes())
        book = json.loads(written)
        cells = book.get("cells") or [cell for sheet in book.get("worksheets", []) for cell in sheet.get("cells", [])]
        about = book.get("metadata", {})
        language = str((about.get("language_info") or about.get("kernelspec") or {}).get("name") or "python")
        left_out: Counter[str] = Counter()
        parts = [part for cell in cells for part in _cell(cell, language.removesuffix("3"), left_out)]
    except (ValueError, AttributeError, TypeError, KeyError):
        raise NotReadable("it is no notebook, or a damaged one") from None
    text, data = without_data(clean("\n\n".join(filter(str.strip, parts))).strip())
    if not text:
        raise NotReadable("the notebook has no text")
    emit(ReadText(text, "", "text/markdown", left_out=(*doubts, *name_left_out(left_out), *data)))


def _cell(cell: dict[str, Any], language: str, left_out: Counter[str]) -> Iterator[str]:
    """Yield the texts of a cell."""
    text = _join(cell.get("source", cell.get("input", "")))
    left_out["picture"] += len(cell.get("attachments") or ())
    if cell.get("cell_type") != "code":
        level = cell.get("level", 1) if cell.get("cell_type") == "heading" else 0
        yield f"{'#' * level} {text}" if level else text
        return
    yield _fence(text, language)
    for output in cell.get("outputs") or ():
        data = output.get("data", output)
        left_out["picture"] += any(each.startswith("image/") or each in {"png", "jpeg", "svg"} for each in data)
        shown = next((data[kind] for kind in _SHOWN if kind in data), "")
        if output.get("output_type") in {"error", "pyerr"}:
            shown = f"{output.get('ename', '')}: {output.get('evalue', '')}"
        if "text/markdown" in data:
            yield _join(shown)
        elif shown:
            yield _fence(_COLOURS.sub("", _join(shown)), "")
        elif "text/html" in data:
            yield text_of(_join(data["text/html"]))[1]


def _join(lines: Any) -> str:
    return lines if isinstance(lines, str) else "".join(map(str, lines))


def _fence(text: str, language: str) -> str:
    mark = "`" * max(3, 1 + max((len(each) for each in re.findall("`{3,}", text)), default=0))
    return f"{mark}{language}\n{text.rstrip()}\n{mark}" if text.strip() else ""


class _CardLine(NamedTuple):
    """A line of a card or of a calendar."""

    name: str
    options: dict[str, str]
    value: str
    doubts: tuple[str, ...] = ()


#: Lines of cards and calendars that programs tell each other.
_TECHNICAL: Final = frozenset(
    "VERSION PRODID UID REV CALSCALE METHOD DTSTAMP CREATED LAST-MODIFIED SEQUENCE TRANSP CLASS PROFILE".split()
)
#: The parts that are no entries of their own, and how lines are called.
_NO_ENTRIES: Final = frozenset("VCALENDAR VTIMEZONE STANDARD DAYLIGHT VALARM VFREEBUSY".split())
_CALLED: Final = {"DTSTART": "Start", "DTEND": "End", "TEL": "Phone", "ADR": "Address", "ORG": "Organization",
                  "BDAY": "Birthday", "RRULE": "Repeats", "URL": "URL"}  # fmt: skip
_MOMENT: Final = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d):?(\d\d)(Z?))?")
_CARD_LINE: Final = re.compile(rb"(?:[\w-]+\.)?([\w-]+)((?:;(?:[^\":;]|\"[^\"]*\")*)*):(.*)", re.DOTALL)
_OPTION: Final = re.compile(r";((?:[^\";]|\"[^\"]*\")+)")
_PRINTABLE: Final = re.compile(rb"[^:]*QUOTED-PRINTABLE", re.IGNORECASE)


def read_cards(path: Path, emit: Emit) -> None:
    """Read a file of cards or of a calendar: each entry is a heading with its lines."""
    lines: list[str] = []
    left_out: Counter[str] = Counter()
    within: list[str] = []
    entry: list[_CardLine] = []
    doubts: dict[str, None] = {}
    for line in _unfold(path.read_bytes()):
        doubts |= dict.fromkeys(line.doubts)
        if line.name == "BEGIN":
            within.append(line.value.upper())
            entry = entry if within[-1] in _NO_ENTRIES else []
        elif line.name == "END" and within:
            lines += () if within.pop() in _NO_ENTRIES else _entry(entry, left_out)
        elif within and within[-1] not in _NO_ENTRIES:
            entry.append(line)
    if not lines:
        raise NotReadable("it has no card and no event")
    emit(ReadText(clean("\n".join(lines)).strip(), left_out=(*doubts, *name_left_out(left_out))))


def _unfold(data: bytes) -> Iterator[_CardLine]:
    """Yield the lines of a file as they were before they were folded and encoded."""
    lines: list[bytearray] = []
    for raw in data.splitlines():
        if lines and lines[-1].endswith(b"=") and _PRINTABLE.match(lines[-1]):
            lines[-1][-1:] = raw
        elif lines and raw[:1] in {b" ", b"\t"}:
            lines[-1] += raw[1:]
        else:
            lines.append(bytearray(raw))
    for line in lines:
        if (found := _CARD_LINE.fullmatch(line)) is not None:
            options = (each.partition("=") for each in _OPTION.findall(_decode_value(found[2]).text))
            told = {key.upper() if sign else "TYPE": (word or key).strip('"') for key, sign, word in options}
            value = quopri.decodestring(found[3]) if _PRINTABLE.match(line) else found[3]
            text, doubts = _decode_value(value, told.get("CHARSET", ""))
            yield _CardLine(found[1].decode("ascii").upper(), told, text.strip(), doubts)


def _decode_value(data: bytes, charset: str = "") -> DecodedText:
    try:
        return decode(data, charset)
    except NotReadable:
        return DecodedText(data.decode("latin-1"), ("its encoding is not known: read as latin-1",))


def _entry(entry: list[_CardLine], left_out: Counter[str]) -> Iterator[str]:
    """Yield a card or an event as a heading and a line for each of its values."""
    named = {each.name: _plain(each) for each in entry}
    heading = next((each for each in ("FN", "SUMMARY", "N") if named.get(each)), "")
    yield from ("", f"## {one_line(named.get(heading, 'Without a name'))}", "")
    for line in entry:
        is_data = line.options.get("ENCODING", "").upper() in {"B", "BASE64"} or ";base64," in line.value
        if is_data:
            left_out["picture" if line.name in {"PHOTO", "LOGO"} else "attachment"] += 1
        elif line.name not in _TECHNICAL | {heading, "N"} and not line.name.startswith("X-") and line.value:
            told = (line.options.get(each, "") for each in ("CN", "TZID"))
            about = ", ".join(filter(None, (*told, line.options.get("TYPE", "").lower())))
            called = _CALLED.get(line.name, line.name.capitalize())
            yield f"- {called}{f' ({about})' if about else ''}: {_plain(line)}"


def _plain(line: _CardLine) -> str:
    """Return a value as people write it."""
    if (found := _MOMENT.fullmatch(line.value)) is not None:
        year, month, day, hour, minute, _, zone = found.groups()
        return f"{year}-{month}-{day}" + (f" {hour}:{minute}" if hour else "") + (" UTC" if zone else "")
    value = line.value
    if line.name in {"N", "ADR", "ORG", "GEO"}:
        value = ", ".join(filter(None, map(str.strip, re.split(r"(?<!\\);", value))))
    value = re.sub(r"\\([nN,;\\])", lambda found: "\n  " if found[1] in "nN" else found[1], value)
    return re.sub("(?i)\\Amailto:", "", value)
