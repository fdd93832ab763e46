"""Files that are read in a process with limits, hostile ones among them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.memory.reading.pdf_files import bomb_of, pdf_of
from tests.waiting import HANG, wait_until

from batos.memory.reading.file_texts import FileTexts, ReadingLimits
from batos.memory.reading.read_text import Format, Read, ReadText, UnreadPart

#: A file may take as long as it likes.
PATIENT = ReadingLimits(2**20, seconds=int(HANG))
GOOD = pdf_of(["Maro winds the lamp."])


def read(texts: FileTexts, path: Path, data: bytes, format_: Format) -> list[Read]:
    """All that is read of a file with these bytes."""
    path.write_bytes(data)
    return list(texts.read(path, format_))


def reason(found: list[Read]) -> str:
    """The one reason for which nothing was read."""
    (only,) = found
    assert isinstance(only, UnreadPart)
    return only.reason


def test_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    """One process reads files of all formats, and tells which of them is broken."""
    with FileTexts(PATIENT) as texts:
        assert read(texts, tmp_path / "a.pdf", GOOD, "pdf") == [
            ReadText("Maro winds the lamp.", media_type="application/pdf")
        ]
        assert reason(read(texts, tmp_path / "b.pdf", b"%PDF-1.4", "pdf")) == "it is a damaged PDF"
        page = read(texts, tmp_path / "c.html", b"<title>Oil</title><p>Dear.", "html")
        assert page == [ReadText("Dear.", "Oil", "text/html")]
        assert "No such file" in reason(list(texts.read(tmp_path / "gone", "html")))


@pytest.mark.parametrize("piece", [b"(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj ", b"q ", b"[[[[[[[[[[[[[[[["])
def test_a_bomb_ends_at_the_limit_of_memory(tmp_path: Path, piece: bytes) -> None:
    """A PDF of a megabyte that unpacks to gigabytes is skipped, and the next one is read."""
    with FileTexts(replace(PATIENT, memory=2**27)) as texts:
        why = reason(read(texts, tmp_path / "bomb.pdf", bomb_of(piece, 3_000), "pdf"))
        assert why in {"reading it takes more than 128 MiB of memory", "it is a damaged PDF"} or "pages" in why
        assert len(read(texts, tmp_path / "a.pdf", GOOD, "pdf")) == 1


def test_a_file_that_takes_long_ends_at_the_limit_of_time(tmp_path: Path) -> None:
    """Computing and waiting are both bounded; without the limit the second would fail as a hang."""
    with FileTexts(ReadingLimits(2**20, seconds=1)) as texts:
        deep = read(texts, tmp_path / "deep.html", b"<div>" * 100_000, "html")
        os.mkfifo(tmp_path / "pipe")
        waits = list(texts.read(tmp_path / "pipe", "html"))
        assert reason(deep) == reason(waits) == "reading it took longer than 1 s"


def test_a_text_that_is_too_long_is_told(tmp_path: Path) -> None:
    """The limit of a text holds for what comes out of a file."""
    with FileTexts(replace(PATIENT, text_bytes=1_000)) as texts:
        assert "more than 1000 bytes" in reason(read(texts, tmp_path / "a.html", b"<p>" + b"lamp " * 900, "html"))


def test_texts_stream(tmp_path: Path) -> None:
    """The first text of a file is there before the last one is read; whoever stops ends the reading."""
    lines = b"".join(b'{"role": "user", "content": "lamp %d"}\n' % number for number in range(20_000))
    (tmp_path / "a.jsonl").write_bytes(lines)
    with FileTexts(PATIENT) as texts:
        found = texts.read(tmp_path / "a.jsonl", "chats")
        first = next(found)
        assert isinstance(first, ReadText)
        assert first.text == "lamp 0"
        found.close()
        assert len(read(texts, tmp_path / "b.pdf", GOOD, "pdf")) == 1


def test_a_place_is_taken_once(tmp_path: Path) -> None:
    """A mail that bears another one's id has a place of its own, so it cannot stand in for that one."""
    mails = b"".join(b"From x@y.z\nMessage-ID: <1@x>\nSubject: %d\n\nlamp\n\n" % number for number in range(3))
    with FileTexts(PATIENT) as texts:
        found = read(texts, tmp_path / "a.mbox", mails, "mbox")
    assert [each.place for each in found] == ["<1@x>", "<1@x>~2", "<1@x>~3"]


def test_no_id_is_that_of_a_numbered_one(tmp_path: Path) -> None:
    """A message may have the very id that another one gets by its number."""
    ids = ("a", "a", "a~2", "a", "a~2", "a~3")
    lines = b"".join(b'{"role": "user", "content": "lamp", "id": "%s"}\n' % each.encode() for each in ids)
    with FileTexts(PATIENT) as texts:
        found = read(texts, tmp_path / "a.jsonl", lines, "chats")
    assert [each.place for each in found] == ["a", "a~2", "a~2~2", "a~3", "a~2~3", "a~3~2"]


def test_bytes_are_read_like_a_file() -> None:
    """What came over the wire is read in the same process."""
    with FileTexts(PATIENT) as texts:
        found, unread = texts.read_bytes("../../a.pdf", GOOD, "pdf")
        assert ([each.text for each in found], unread) == (["Maro winds the lamp."], [])
        _, (told,) = texts.read_bytes("old.doc", b"\xd0\xcf\x11\xe0", "archive")
        assert told.reason.endswith("`soffice --headless --convert-to pdf old.doc`")
        assert texts.read_bytes("a.png", b"\x89PNG", "it is a picture, not a text") == (
            [],
            [UnreadPart("", "it is a picture, not a text")],
        )


_READS = """
import sys
from pathlib import Path
from batos.memory.reading.file_texts import FileTexts, ReadingLimits
with FileTexts(ReadingLimits(2**20, seconds=1)) as texts:
    print(len(list(texts.read(Path(sys.argv[1]), "pdf"))), texts._process.pid, flush=True)
    list(texts.read(Path(sys.argv[2]), "html"))
"""


def test_a_kill_leaves_no_process(tmp_path: Path) -> None:
    """The reading process ends by itself where the one that asked was killed, in the middle of a file too."""
    (tmp_path / "a.pdf").write_bytes(GOOD)
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-c", _READS, str(tmp_path / "a.pdf"), str(tmp_path / "pipe")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout is not None
        line = asker.stdout.readline()
        assert line, f"the process ended with {asker.wait()}"
        count, number = line.split()
        asker.kill()
    assert count == "1"
    wait_until(lambda: not Path(f"/proc/{number}").exists(), "the end of the reading process")


async def test_who_leaves_before_a_process_starts_starts_none() -> None:
    """A thread that is on its way when nobody waits any more reads nothing."""
    began, go = threading.Event(), threading.Event()
    with FileTexts(ReadingLimits(10_000)) as texts:

        def work() -> object:
            began.set()
            go.wait()
            return texts.read_bytes("lamp.pdf", GOOD, "pdf")

        reading = asyncio.ensure_future(texts.in_thread(work))
        await asyncio.to_thread(began.wait)
        reading.cancel()
        asyncio.get_running_loop().call_later(0.0, go.set)
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert texts._process is None
