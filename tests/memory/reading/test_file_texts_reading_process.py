"""The process that reads: what it answers line by line, and what its children may not do."""

from __future__ import annotations

import io
import json
import random
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.memory.reading.office_files import docx_of, paragraph
from tests.memory.reading.pdf_files import pdf_of
from tests.waiting import HANG

from batos.memory.reading.file_texts import READERS

_MAIN = "from batos.memory.reading.file_texts import main; main()"


def answers(*asked: dict[str, Any]) -> list[dict[str, Any]]:
    """All lines that the process answers to requests."""
    lines = "".join(f"{json.dumps(each)}\n" for each in asked)
    ended = subprocess.run([sys.executable, "-c", _MAIN], input=lines, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines() if line]


def request(path: Path, format_: str, **limits: int) -> dict[str, Any]:
    """A request to read a file."""
    return {"path": str(path), "format": format_, "text_bytes": 2**20, "memory": 2**30, "seconds": int(HANG), **limits}


def test_each_request_ends_with_a_line(tmp_path: Path) -> None:
    """Texts come first, then how it ended."""
    (tmp_path / "a.txt").write_bytes("Öl".encode("utf-16"))
    first, end, second, again = answers(*[request(tmp_path / "a.txt", "other_text")] * 2)
    assert first == second
    assert first["text"]["text"] == "Öl"
    assert end == again == {"end": ""}


def test_an_archive_that_unpacks_to_far_more_ends(tmp_path: Path) -> None:
    """All texts of a file together are bounded by its size: a few of them come, then the reason."""
    row = json.dumps({"role": "user", "content": "lamp " * 800_000})
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", f"[{', '.join([row] * 20)}]")
    *texts, last, _ = answers(request(tmp_path / "a.zip", "chats", text_bytes=2**23))
    assert 0 < len(texts) < 20
    assert last["unread"]["reason"] == "it unpacks to far more than its own size"


def test_every_format_has_a_reader() -> None:
    """The table names modules and functions that are there."""
    for module, function in READERS.values():
        found = __import__(f"batos.memory.reading.{module}", fromlist=[function])
        assert callable(getattr(found, function))


def log_database() -> bytes:
    """A database as `llm` keeps its logs."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("create table conversations (id text, name text, model text)")
        database.execute(
            "create table responses"
            " (id text, model text, prompt text, response text, datetime_utc text, conversation_id)"
        )
        database.execute("insert into conversations values ('c', 'oil', 'm')")
        database.executemany("insert into responses values (?, 'm', 'why?', 'so', '2026-01-01', 'c')", [["1"], ["2"]])
        database.commit()
        return database.serialize()


def chat_archive() -> bytes:
    """A zip archive with a file of conversations."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([{"role": "user", "content": "Oil is dear."}]))
    return data.getvalue()


MAIL = b"""From ann@x Thu Jan  1 00:00:00 2026
From: Ann <ann@x>
Subject: =?utf-8?q?=C3=96l?=
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: base64

PHA+T2lsPC9wPg==
--b--
"""
WHOLE: dict[str, bytes] = {
    "other_text": "Öl ist teuer.".encode("utf-16"),
    "html": b"<title>Oil</title><table><tr><th>a<td>b</table><ul><li>x<ul><li>y</ul></ul><pre>c</pre>",
    "pdf": pdf_of(["Oil is dear."]),
    "mail": MAIL.partition(b"\n")[2],
    "mbox": MAIL * 2,
    "chats": chat_archive(),
    "llm_logs": log_database(),
    "archive": docx_of(paragraph("Oil is dear.") * 9, footnotes="<w:footnote/>"),
    "notebook": b'{"cells": [{"cell_type": "code", "source": ["x"], "outputs": [{"text": "42"}]}], "metadata": {}}',
    "cards": b"BEGIN:VCARD\r\nFN;ENCODING=QUOTED-PRINTABLE:J=C3=B6rg=\r\n M=\r\nTEL:+49\r\nEND:VCARD\r\n" * 2,
}


@pytest.mark.parametrize("format_", sorted(READERS))
def test_a_damaged_file_of_any_format_ends_well(tmp_path: Path, format_: str) -> None:
    """Bytes are changed, cut off, doubled and put elsewhere: no reader crashes, hangs, or is silent about it."""
    chance = random.Random(format_)
    whole = WHOLE[format_]
    asked = []
    for number in range(80):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            at, size = chance.randrange(len(data) + 1), chance.randint(0, 40)
            junk = chance.choice((chance.randbytes(size), bytes(size), bytes(data[:size]), b"9" * size, b"\xff" * size))
            data[at : at + chance.choice((0, size, len(data)))] = junk
        path = tmp_path / str(number)
        path.write_bytes(data)
        asked.append(request(path, format_))
    told = answers(*asked)
    assert [each["end"] for each in told if "end" in each] == [""] * len(asked)
    texts = [each["text"]["text"] for each in told if "text" in each]
    assert not any("\ud800" <= character <= "\udfff" for text in texts for character in text)
