"""Read mails: a file with one, or a mailbox with many."""

from __future__ import annotations

import mailbox
from contextlib import closing, suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final

from batos.memory.reading.other_text import decode
from batos.memory.reading.read_text import Emit, NoText, NotReadable, ReadText, UnreadPart, clean, moment_of, one_line
from batos.memory.reading.web_pages import text_of

#: The headers of a mail that stand above its text.
_SHOWN: Final = ("From", "To", "Cc", "Date", "Subject")


def read(path: Path, emit: Emit) -> None:
    """Read a file with one mail."""
    emit(mail_of(path.read_bytes(), ""))


def read_box(path: Path, emit: Emit) -> None:
    """Read a mailbox, mail by mail; one that cannot be read leaves the others."""
    with closing(mailbox.mbox(path, create=False)) as box:
        count = 0
        for number, key in enumerate(box.iterkeys(), 1):
            count += 1
            try:
                emit(mail_of(box.get_bytes(key), str(number)))
            except Exception as error:  # the parser of the standard library raises many kinds on broken mails
                emit(UnreadPart(str(number), _reason(error)))
    if not count:
        raise NotReadable("it is no mailbox: no line begins a mail")


def mail_of(data: bytes, place: str) -> ReadText:
    """Return a mail as a text of its headers and its body; its own id is its place among others.

    Raises: NotReadable: it has neither.
    """
    mail = message_from_bytes(data, policy=policy.default)
    heads = {name: _header(mail, name) for name in (*_SHOWN, "Message-ID", "References", "In-Reply-To")}
    body = _body(mail).strip()
    if not body and not heads["Subject"]:
        raise NoText("the mail has no text")
    said_at = ""
    with suppress(ValueError, TypeError, IndexError, OverflowError):
        said_at = moment_of(parsedate_to_datetime(heads["Date"]))
    named = [f"Attachment: {name}" for name in _attachment_names(mail)]
    above = [f"{name}: {heads[name]}" for name in _SHOWN if heads[name]]
    thread = (heads["References"] or heads["In-Reply-To"] or heads["Message-ID"]).split()
    return ReadText(
        "\n".join([*above, *named]) + f"\n\n{clean(body)}",
        heads["Subject"], "message/rfc822", (heads["Message-ID"] or place) if place else "", "turn", said_at,
        heads["From"], thread[0] if thread else "",
    )  # fmt: skip


def _header(mail: EmailMessage, name: str) -> str:
    try:
        return one_line(mail.get(name) or "")
    except Exception:  # a header that is broken is one that is not there
        return ""


def _body(mail: EmailMessage) -> str:
    found = mail.get_body(("plain", "html"))
    if found is None:
        return ""
    data = found.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    try:
        text = decode(data, str(found.get_content_charset() or ""))
    except NotReadable:
        text = data.decode("ascii", "replace")
    return text_of(text)[1] if found.get_content_type() == "text/html" else text


def _attachment_names(mail: EmailMessage) -> list[str]:
    with suppress(Exception):  # a mail whose parts are broken has none that can be named
        return [name for each in mail.iter_attachments() if (name := one_line(each.get_filename() or ""))]
    return []


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, NotReadable) else f"the mail is broken ({type(error).__name__})"
