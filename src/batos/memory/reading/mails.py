"""Read mails: a file with one, or a mailbox with many; each mail that is enclosed in another is one of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.message import EmailMessage, Message
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import IO, Final, NamedTuple

from batos.memory.reading.other_text import decode
from batos.memory.reading.read_text import Emit, NoText, NotReadable, ReadText, UnreadPart, clean, moment_of, one_line
from batos.memory.reading.web_pages import text_of

#: The headers of a mail that stand above its text.
_SHOWN: Final = ("From", "To", "Cc", "Date", "Subject")
#: The line between two mails of a mailbox, behind an empty one; a header follows it. Words may begin with From, too.
_BETWEEN: Final = re.compile(
    rb"From (?:- |\S+ +)(?:.* )?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? .*\d:\d\d.*\d{4}|From \S+@\S+[^\S\n]*\n\Z"
)
_HEADER: Final = re.compile(rb"[!-9;-~]+:|\s*\Z")
#: A line of a mail that a mailbox marks, so that it is no line between two.
_MARKED: Final = re.compile(rb"^>(>*From )", re.MULTILINE)
#: A plain text of fewer words may only say that there is a page; so it does beside one of so many times its words.
_STUB, _FAR_MORE = 40, 4
#: Mails within mails at most; what is within these is named.
_DEEP: Final = 8


class _MailPart(NamedTuple):
    """A part of a mail: its type, its text with the doubts about it, and its name where it is attached."""

    kind: str
    text: str
    doubts: tuple[str, ...]
    name: str


def read(path: Path, emit: Emit) -> None:
    """Read a file with one mail, and those that are enclosed in it; or a page that a browser saved in that form."""
    mail = _parse(path.read_bytes())
    page = _page_of(mail)
    if page is None:
        _tell(mail, "", "", emit)
    else:
        emit(page)


def _page_of(mail: EmailMessage) -> ReadText | None:
    """Return the page that a file in the form of a mail, which nobody sent, is an archive of; None for a mail."""
    is_sent = any(name in mail for name in ("To", "Received", "Message-ID", "Delivered-To"))
    pages = [part for part in _leaves(mail) if part.get_content_type() == "text/html"]
    if is_sent or mail.get_content_type() not in {"multipart/related", "text/html"} or not pages:
        return None
    page, doubts = _decode_part(pages[0])
    title, text, left_out = text_of(page)
    if not text.strip():
        raise NoText("the page has no text")
    frames = [f"{len(pages) - 1} further page{'s' * (len(pages) > 2)} within the page"] if pages[1:] else []
    return ReadText(text, title or _header(mail, "Subject"), "text/html", left_out=(*doubts, *left_out, *frames))


def read_box(path: Path, emit: Emit) -> None:
    """Read a mailbox, mail by mail; one that cannot be read leaves the others."""
    number = 0
    with path.open("rb") as file:
        for number, data in enumerate(_split(file), 1):
            try:
                _tell(_parse(_MARKED.sub(rb"\1", data)), str(number), str(number), emit)
            except Exception as error:  # the parser of the standard library raises many kinds on broken mails
                emit(UnreadPart(str(number), _reason(error)))
    if not number:
        raise NotReadable("it is no mailbox: no line begins a mail")


def _split(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the mails of a mailbox without the lines between them."""
    mail: list[bytes] | None = None
    held, gap = b"", True
    for line in file:
        if held:  # a line between two mails, if a header follows
            if _HEADER.match(line):
                if mail is not None:
                    yield b"".join(mail)
                mail = []
            elif mail is not None:
                mail.append(held)
            held = b""
        if gap and line.startswith(b"From ") and (mail is None or _BETWEEN.match(line)):
            held = line
        elif mail is not None:
            mail.append(line)
        gap = not line.strip()
    if mail is not None:
        yield b"".join(mail)


def _parse(data: bytes) -> EmailMessage:
    return message_from_bytes(data, policy=policy.default)


def _tell(mail: EmailMessage, place: str, number: str, emit: Emit, depth: int = 0) -> None:
    """Hand on a mail and those that are enclosed in it; the own id of one among others is its place.

    Raises: NotReadable: it has neither a text nor a subject, nor a mail within.
    """
    enclosed = [part for part in _leaves(mail) if part.get_content_type() == "message/rfc822"]
    try:
        emit(_mail_of(mail, place, [] if depth < _DEEP else enclosed))
    except NoText:
        if not enclosed:
            raise
    for count, part in enumerate(enclosed if depth < _DEEP else (), 1):
        inner = f"{number}.{count}" if number else str(count)
        try:
            _tell(_unpack_enclosed(part), inner, inner, emit, depth + 1)
        except Exception as error:  # as above
            emit(UnreadPart(inner, _reason(error)))


def _unpack_enclosed(part: Message) -> EmailMessage:
    """Return the mail within a part; one that is packed, against the rules of mails, is unpacked."""
    inner = part.get_payload()
    found = inner[0] if isinstance(inner, list) and inner and isinstance(inner[0], Message) else None
    packed = part.get("Content-Transfer-Encoding", "").strip().lower() in {"base64", "quoted-printable"}
    if isinstance(found, EmailMessage) and not (packed and not found.keys()):
        return found
    holder: Message = Message()
    holder["Content-Transfer-Encoding"] = part.get("Content-Transfer-Encoding", "")
    holder.set_payload(found.get_payload() if found is not None else inner)
    data = holder.get_payload(decode=True)
    return _parse(data if isinstance(data, bytes) else b"")


def _leaves(mail: Message) -> Iterator[Message]:
    """Yield the parts of a mail that hold no others, but for mails within it."""
    waiting = [mail]
    while waiting:
        part = waiting.pop()
        inner = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(inner, list):
            waiting.extend(each for each in reversed(inner) if isinstance(each, Message))
        elif part.get_content_type() != "message/rfc822" or part is not mail:
            yield part


def _mail_of(mail: EmailMessage, place: str, unopened: list[Message]) -> ReadText:
    """Return a mail as a text of its headers and its body. Raises: NoText: it has neither."""
    heads = {name: _header(mail, name) for name in (*_SHOWN, "Message-ID", "References", "In-Reply-To")}
    parts, left_out = _texts(mail)
    body = "\n\n".join(_bodies(parts)).strip()
    if not body and not heads["Subject"]:
        raise NoText("the mail has no text")
    said_at = ""
    with suppress(ValueError, TypeError, IndexError, OverflowError):
        said_at = moment_of(parsedate_to_datetime(heads["Date"]))
    above = [f"{name}: {heads[name]}" for name in _SHOWN if heads[name]]
    above += [f"Attachment: {name}" for part in _leaves(mail) if (name := _file_name(part))]
    thread = (heads["References"] or heads["In-Reply-To"] or heads["Message-ID"]).split()
    is_plain = any(part.kind != "text/html" and not part.name and part.text.strip() for part in parts)
    doubts = [doubt for part in parts if part.kind != "text/html" or not is_plain for doubt in part.doubts]
    deep = ["a mail within it, too deep to be read"] if unopened else []
    return ReadText(
        "\n".join(above) + f"\n\n{clean(body)}",
        heads["Subject"], "message/rfc822", (heads["Message-ID"] or place) if place else "", "turn", said_at,
        heads["From"], thread[0] if thread else "", (*left_out, *deep, *dict.fromkeys(doubts)),
    )  # fmt: skip


def _texts(mail: EmailMessage) -> tuple[list[_MailPart], list[str]]:
    """Return the parts of a mail that are texts, and a phrase for each other one."""
    texts, left_out = [], []
    for part in _leaves(mail):
        kind, name = part.get_content_type(), _file_name(part)
        if part.get_content_maintype() == "text":
            texts.append(_text_part(part, name))
        elif kind in {"application/pkcs7-mime", "application/x-pkcs7-mime", "application/octet-stream"} and not name:
            left_out.append("a part that is encrypted, or of an unknown kind")
        elif kind != "message/rfc822" and not kind.startswith("application/pgp-") and (name or "image" not in kind):
            left_out.append(f"the attachment {name or kind} is not read: remember the file itself")
        elif name and kind != "message/rfc822":
            left_out.append(f"the attachment {name} is not read: remember the file itself")
    return texts, list(dict.fromkeys(left_out))


def _decode_part(part: Message) -> tuple[str, tuple[str, ...]]:
    """Return the text of a part, and the doubts about it."""
    data = part.get_payload(decode=True)
    data = data if isinstance(data, bytes) else b""
    try:
        return decode(data, str(part.get_content_charset() or ""))
    except NotReadable as error:
        return data.decode("ascii", "replace"), (str(error),)


def _text_part(part: Message, name: str) -> _MailPart:
    text, doubts = _decode_part(part)
    if str(part.get_param("format") or "").lower() == "flowed":
        text = _unflow(text, str(part.get_param("delsp") or "").lower() == "yes")
    if part.get_content_type() == "text/html":
        _, text, left_out = text_of(text)
        doubts = (*doubts, *left_out)
    return _MailPart(part.get_content_type(), text, doubts, name)


def _unflow(text: str, deletes_spaces: bool) -> str:
    """Join the lines of a text that flows (RFC 3676): one that ends in a space goes on in the next of its quotation.

    >>> _unflow("closed on Fri \\nday\\n-- \\nMaro", True)
    'closed on Friday\\n-- \\nMaro'
    """
    lines: list[str] = []
    depth = goes_on = 0
    for line in text.replace("\r\n", "\n").split("\n"):
        bare = line.lstrip(">")
        quoted = len(line) - len(bare)
        bare = bare.removeprefix(" ") if bare.startswith(" ") else bare
        flows = bare.endswith(" ") and bare != "-- "
        said = bare[:-1] if flows and deletes_spaces else bare
        if goes_on and quoted == depth and bare != "-- ":
            lines[-1] += said
        else:
            lines.append(f"{'>' * quoted}{' ' if quoted else ''}{said}")
        depth, goes_on = quoted, flows
    return "\n".join(lines)


def _bodies(parts: list[_MailPart]) -> Iterator[str]:
    """Yield the texts of a mail's parts: a text or the page beside it, then what is attached, with headings."""
    plain = "\n\n".join(each.text.strip() for each in parts if each.kind != "text/html" and not each.name).strip()
    pages = [each.text.strip() for each in parts if each.kind == "text/html" and not each.name]
    page = "\n\n".join(filter(None, pages))
    yield page if page and (not plain or _is_stub(plain, page)) else plain
    for each in parts:
        if each.name:
            yield f"## Attachment {each.name}\n\n{each.text.strip()}"


def _is_stub(plain: str, page: str) -> bool:
    """Test if a short text only says that there is a page: it has few words of it, or the page has far more."""
    words, said = set(plain.casefold().split()), page.casefold().split()
    is_short = len(plain.split()) < _STUB
    return is_short and (len(said) > _FAR_MORE * len(plain.split()) or 2 * len(words.intersection(said)) < len(words))


def _header(mail: EmailMessage, name: str) -> str:
    """Return a header in one line; one whose bytes are not ASCII, against the rules of mails, is decoded as a text."""
    try:
        raw = next((str(value) for key, value in mail.raw_items() if key.lower() == name.lower()), "")
        if raw.isascii():
            return one_line(mail.get(name) or "")
        text = decode(raw.encode("utf-8", "surrogateescape")).text
        return one_line(make_header(decode_header(text)))
    except Exception:  # a header that is broken is one that is not there
        return ""


def _file_name(part: Message) -> str:
    """Return the name of a part that is attached; "" where it is none, or has none."""
    with suppress(Exception):  # a part whose headers are broken has no name
        return one_line(part.get_filename() or "")
    return ""


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, NotReadable) else f"the mail is broken ({type(error).__name__})"
