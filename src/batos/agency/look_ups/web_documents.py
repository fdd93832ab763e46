"""Documents of the world: the text that is read out of a page, the page as it was, and where a quote stands in it."""

from __future__ import annotations

import base64
import codecs
import hashlib
import html
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from batos.agency.look_ups.page_fetching import MEDIA, FetchedPage
from batos.memory.reading.file_texts import FileTexts, ReadingLimits
from batos.memory.reading.other_text import decode
from batos.memory.reading.read_text import NotReadable, clean, one_line
from batos.protocol.errors import LookUpFailed

#: The most characters of a text and of a page that are kept, and the most bytes of one that is no text.
MOST_TEXT, MOST_PAGE, MOST_BYTES = 1_000_000, 3_000_000, 3 * 2**20
_FORMATS: Final = {"text/html": "html", "application/xhtml+xml": "html", "application/pdf": "pdf"}
_SHOWN: Final = re.compile(
    r"<!--.*?-->|<(script|style|template)\b.*?</\1\s*>|<[^>]*>|(&[#\w]{1,32};?)|([^<&]+)|[<&]",
    re.DOTALL | re.IGNORECASE,
)
_PDF_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class Document:
    """A text of the world. `at` is when it was read (ISO 8601 UTC), `digest` the SHA-256 of the page's bytes.

    `page` is the page as it was, in base64 where it is no text. `source` says more of where it is from: a revision, a
    licence. `left_out` has a phrase for each part of the page that the text lacks.
    """

    title: str
    text: str
    address: str
    at: str
    media_type: str = "text/plain"
    page: str = ""
    digest: str = ""
    source: str = ""
    left_out: tuple[str, ...] = ()
    etag: str = ""
    last_modified: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the document as plain data."""
        return {**asdict(self), "left_out": [*self.left_out]}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Document:
        """Return a document of plain data."""
        return cls(**{**told, "left_out": tuple(told.get("left_out", ()))})


def read_document(page: FetchedPage, at: str) -> Document:
    """Return the document of a page; in a thread, since it may start a process that reads.

    Raises: LookUpFailed: its kind is not read, or it has no text.
    """
    if page.media_type not in MEDIA:
        what = f"{page.address} is {page.media_type or 'of no kind that it tells'}, which is not read"
        raise LookUpFailed(what, remedy="Text, HTML, PDF, JSON and XML are read.")
    title, left_out, format_ = "", list[str](), _FORMATS.get(page.media_type, "")
    if format_ == "pdf":
        kept = base64.b64encode(page.body).decode() if len(page.body) <= MOST_BYTES else ""
        title, text = _read_by(format_, page, page.body, left_out)
    else:
        kept = text = _decode(page)
        if format_:
            title, text = _read_by(format_, page, codecs.BOM_UTF8 + kept.encode("utf-8", "replace"), left_out)
        if len(kept) > MOST_PAGE:
            left_out.append(f"the page is kept up to its character {MOST_PAGE:,} of {len(kept):,}")
            kept = kept[:MOST_PAGE]
    if len(text) > MOST_TEXT:
        left_out.append(f"all behind the first {MOST_TEXT:,} of {len(text):,} characters")
        text = text[:MOST_TEXT]
    return Document(
        title or one_line(page.address.path.rsplit("/", 1)[-1]) or page.address.host, text, str(page.address), at,
        page.media_type, kept, hashlib.sha256(page.body).hexdigest(), "", tuple(left_out),
        page.headers.get("etag", ""), page.headers.get("last-modified", ""),
    )  # fmt: skip


def _read_by(format_: str, page: FetchedPage, data: bytes, left_out: list[str]) -> tuple[str, str]:
    """Return title and text that the reader of a format finds, and note what it leaves out."""
    with FileTexts(ReadingLimits(4 * MOST_TEXT, seconds=_PDF_SECONDS)) as reader:
        texts, unread = reader.read_bytes("page", data, format_)
    left_out += [phrase for each in texts for phrase in each.left_out] + [each.reason for each in unread if texts]
    if not texts:
        raise LookUpFailed(f"{page.address} has no text: {unread[0].reason}")
    return texts[0].title, "\n\n".join(each.text for each in texts)


def _decode(page: FetchedPage) -> str:
    """Return the text of a page: by its header, its mark, its own words about it, else as UTF-8."""
    if page.charset and not page.body.startswith(codecs.BOM_UTF8):
        with suppress(LookupError, ValueError):
            return clean(page.body.decode(page.charset))
    declared = re.search(rb"(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{1,40})", page.body[:2_048])
    try:
        return clean(decode(page.body, declared[1].decode("ascii", "replace") if declared else "").text)
    except NotReadable as error:
        raise LookUpFailed(f"{page.address} is no text: {error}") from error


def json_of(page: FetchedPage) -> Any:
    """Return the value of a page of JSON. Raises: LookUpFailed: it is none."""
    try:
        return json.loads(page.body)
    except (ValueError, RecursionError) as error:
        raise LookUpFailed(f"{page.address.origin} answered what is no JSON") from error


def find_in_page(page: str, quote: str) -> tuple[int, int] | None:
    """Return the span of a quote in a page as it was; None where it does not stand there.

    Letters and digits alone are compared: blanks, marks of lines, tags and soft hyphens are not a quote's.

    >>> page = "<p>The <b>lamp</b> burns&nbsp;bl&ouml;d.<script>lamp</script>"
    >>> page[slice(*find_in_page(page, "lamp burns blöd"))]
    'lamp</b> burns&nbsp;bl&ouml;d'
    """
    letters: list[str] = []
    places: list[tuple[int, int]] = []
    for found in _SHOWN.finditer(page):
        start, end = found.span()
        if found[2]:
            told = [each for each in html.unescape(found[2]) if each.isalnum()]
            letters += told
            places += [(start, end)] * len(told)
        elif found[3]:
            inside = [(each, at) for at, each in enumerate(found[3], start) if each.isalnum()]
            letters += [each for each, _ in inside]
            places += [(at, at + 1) for _, at in inside]
    looked_for = "".join(each for each in quote if each.isalnum())
    at = "".join(letters).find(looked_for) if looked_for else -1
    return None if at < 0 else (places[at][0], places[at + len(looked_for) - 1][1])
