"""The texts of files that were sent: slices, whole files of any kind, and what is refused."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.memory.reading.pdf_files import pdf_of
from tests.waiting import HANG, until

from batos.memory.known_texts import Incoming
from batos.protocol.brief import AttachmentRef
from batos.protocol.errors import BriefError
from batos.server.dispatch.sent_files import OwnedPlace, SentFiles, SentTexts, contents_of
from batos.verbs.memory_verbs import RememberedFile

ANN = OwnedPlace("ann", "default")


async def texts(data: bytes, *files: dict[str, Any], limit: int = 2**20) -> list[Incoming]:
    """The texts of files with these bytes."""
    return (await sent(data, *files, limit=limit)).texts


async def sent(data: bytes, *files: dict[str, Any], limit: int = 2**20, seconds: int = 60) -> SentTexts:
    """The texts of files with these bytes, and what is unread."""

    async def content(ref: AttachmentRef, user: str | None) -> bytes:
        assert (ref.sha256, user) == (hashlib.sha256(data).hexdigest(), "sender")
        return data

    async def forget(_files: Iterable[str], _user: str) -> None:
        raise AssertionError

    asked = [file(data, **each) for each in files]
    return await SentFiles(content, forget, seconds).texts(asked, "sender", ANN, limit)


def file(data: bytes, **about: Any) -> RememberedFile:
    """A file with these bytes."""
    named = {"name": "a.txt", "media_type": "text/plain", "sha256": hashlib.sha256(data).hexdigest(), **about}
    return RememberedFile.model_validate(named)


async def test_slices_of_one_file_are_texts() -> None:
    """Each has what was told of it, and the digest of what it was taken from."""
    original = "0" * 64
    first, second = await texts(
        b"??# Oil\nIt burns.Gas.",
        {"span": [2, 17], "source": "/a", "original": original},
        {"span": [17, 21], "kind": "turn", "speaker": "ann", "said_at": "2024-05-01T10:00:00Z", "conversation": "c"},
    )
    assert (first.title, first.text, first.sha256, first.source) == ("Oil", "# Oil\nIt burns.", original, "/a")
    assert (second.text, second.kind, second.speaker, second.conversation) == ("Gas.", "turn", "ann", "c")
    assert second.said_at == "2024-05-01T10:00:00.000Z"
    assert second.sha256 == hashlib.sha256(b"Gas.").hexdigest()


async def test_a_whole_file_is_read_as_what_it_is() -> None:
    """A PDF, a page, text in another encoding, a log of turns; several files of one content too."""
    (pdf,) = await texts(pdf_of(["Maro winds the lamp."]), {"name": "a.pdf"})
    assert (pdf.text, pdf.media_type, pdf.title) == ("Maro winds the lamp.", "application/pdf", "a")
    (wide,) = await texts("Öl".encode("utf-16"), {})
    assert wide.text == "Öl"
    turns = await texts(b'{"role": "user", "content": "a"}\n' * 2, {"name": "a.jsonl", "source": "/a"})
    assert [(each.source, each.kind) for each in turns] == [("/a#1", "turn"), ("/a#2", "turn")]
    page = await texts(b"<html><title>Oil</title><p>Dear.", {}, {"title": "Mine"})
    assert [each.title for each in page] == ["Oil", "Mine"]


@pytest.mark.parametrize(
    ("data", "about", "told"),
    [
        (b"\x89PNG\r\n", {}, "a picture"),
        (b"%PDF-1.4", {}, "damaged PDF"),
        (b" \n", {}, "empty"),
        (b"abc", {"span": [5, 9]}, "empty"),
        (b"ab\xff", {"span": [0, 3]}, "not a text file"),
        (b"<html><p>" + b"lamp " * 9, {}, "more than 20 bytes"),
    ],
)
async def test_what_has_no_text_is_refused(data: bytes, about: dict[str, Any], told: str) -> None:
    """With the reason; so is a file that unpacks to far more than one text may have."""
    limit = 20 if told == "more than 20 bytes" else 2**20
    with pytest.raises(BriefError, match=told):
        await texts(data, about, limit=limit)


async def test_the_texts_of_a_file_are_bounded_together() -> None:
    """A log of a thousand turns is not taken whole where each text may have twenty bytes."""
    log = b"".join(b'{"role": "user", "content": "%d"}\n' % number for number in range(1_000))
    found = await texts(log, {"name": "a.jsonl"}, limit=20)
    assert 0 < sum(len(each.text) for each in found) <= 80


async def test_parts_that_cannot_be_read_are_told() -> None:
    """Each with its place in the file and the reason; of very many the first ones, and how many more there are."""
    good, bad = b'{"role": "user", "content": "Oil."}\n', b'{"role": "user", "content": \n'
    found = await sent(good + bad + good, {"name": "a.jsonl", "source": "/a"})
    assert [each.text for each in found.texts] == ["Oil.", "Oil."]
    assert [(each["source"], "JSON" in each["reason"]) for each in found.unread] == [("/a#line 2", True)]
    many = (await sent(good + bad * 300, {"name": "a.jsonl"})).unread
    assert (len(many), many[-1]) == (201, {"source": "a.jsonl", "reason": "100 more of its parts cannot be read"})


async def test_files_are_bounded_together() -> None:
    """Spans of one file may overlap, and one content may be named many times; the texts that are read count too."""
    whole, page = b"lamp " * 200, b"<html><p>" + b"lamp " * 190
    spans = [{"span": [start, 1_000]} for start in range(8)]
    assert len(await texts(whole, *spans, limit=1_000)) == 8
    for data, files in ((whole, [{}] * 9), (whole, [{"span": [0, 9_000]}] * 9), (page, [{}] * 5)):
        with pytest.raises(BriefError, match="8,000 bytes together") as refused:
            await texts(data, *files, limit=1_000)
        assert "several requests" in refused.value.remedy


def readers() -> list[int]:
    """The processes of this one that read files."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # a process that has just ended
            if _status(path.name, "PPid") == str(os.getpid()) and b"file_texts" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def _status(number: int | str, key: str) -> str:
    """One of the lines that the system has of a process; "" where that has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{number}/status").read_text("utf-8").splitlines():
            name, _, value = line.partition(":")
            if name == key:
                return value.split()[0]
    return ""


async def test_who_leaves_ends_the_reading() -> None:
    """A page that takes long is not read to its end for nobody: its reader is ended, even one that stands still."""
    # With so much time of its own nothing but the leave ends it while the test waits.
    reading = asyncio.ensure_future(sent(b"<html>" + b"<ul>" * 260_000, {}, seconds=10 * int(HANG)))
    (reader,) = await until(readers, "the reader")
    os.kill(reader, signal.SIGSTOP)
    await until(lambda: _status(reader, "State") == "T", "the halt of the reader")
    reading.cancel()
    await until(lambda: _status(reader, "State") != "T", "the end of the reader")
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert not readers()


def test_contents_are_told_by_their_origin() -> None:
    """The digest of a file that a text was taken from goes before that of what was sent."""
    (plain,), (taken,) = (contents_of([file(b"a", **each)], ANN) for each in ({}, {"original": "0" * 64}))
    assert (plain.sha256, taken.sha256) == (hashlib.sha256(b"a").hexdigest(), "0" * 64)
