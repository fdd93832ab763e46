"""Batches that are sent to be remembered: how large they become, what is asked before, and a server without room."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from batos.cli.doors.door import Door
from batos.cli.remembering.remember_verb import KEPT, TEXTS, MemorySender
from batos.cli.render.memory_texts import RememberProgress
from batos.memory.reading.folder_files import FoundFile, SkippedFile, TextToSend
from batos.protocol.brief import File
from batos.protocol.errors import Busy
from batos.terminal.console import Console


class _Door:
    """Remembers all that it is sent, as a server does, and knows some digests already."""

    def __init__(self, known: Sequence[str] = (), busy: int = 0) -> None:
        self.known = known
        self.busy = busy
        self.sent: list[File] = []
        self.texts: list[list[bytes]] = []
        self.asked: list[Mapping[str, Any]] = []

    async def attach(self, files: Sequence[File]) -> list[dict[str, Any]]:
        """Keep a file, if there is room."""
        if self.busy:
            self.busy -= 1
            raise Busy("too much is being sent already")
        self.sent += files
        return []

    async def call(self, verb: str, args: Mapping[str, Any] | None = None, *_more: Any) -> dict[str, Any]:
        """Answer as a dispatcher does."""
        assert args is None or len(json.dumps(args).encode()) < 2**20
        if verb == "hello":
            return {"limits": {"attachment_bytes": 2**20}}
        assert args is not None
        self.asked.append(args)
        if args.get("check"):
            return {"remembered": [_line(each, "known") for each in args["files"] if each["sha256"] in self.known]}
        data = {each.ref.sha256: each.data for each in self.sent}
        self.texts.append([data[each["sha256"]][slice(*each.get("span", (0, None)))] for each in args["files"]])
        return {"remembered": [_line(each, "new") for each in args["files"]]}


def _line(file: Mapping[str, Any], state: str) -> dict[str, Any]:
    return {"document": "d-1", "title": "t", "source": file.get("source", ""), "chunks": 2, "state": state}


def sender_of(door: _Door) -> MemorySender:
    """A sender whose progress nobody sees."""
    return MemorySender(
        cast("Door", door),
        {"owner": "ann"},
        RememberProgress(Console(io.StringIO(), io.StringIO(), as_json=True, has_colour=False), quiet=True),
        pause=0,
    )


def text(data: bytes, source: str = "/a") -> TextToSend:
    """A text of a file."""
    return TextToSend(data, {"name": "a.txt", "media_type": "text/plain", "source": source})


async def test_texts_go_in_batches() -> None:
    """By number and by bytes; each is the slice that was meant, and no upload is like another."""
    door = _Door()
    sender = sender_of(door)
    for number in range(TEXTS + 2):
        await sender.send(text(b"%d" % number))
    await sender.flush()
    await sender.flush()
    assert list(map(len, door.texts)) == [TEXTS, 2]
    assert door.texts[1] == [b"128", b"129"]
    assert await sender.limit() < 2**20
    for _ in range(3):
        await sender.send(text(b"x" * 600_000))
    await sender.flush()
    assert list(map(len, door.texts)) == [TEXTS, 2, 1, 1, 1]
    assert len({each.ref.sha256 for each in door.sent}) == 5
    assert sender.document({})["counts"]["new"] == TEXTS + 5


async def test_a_message_is_never_too_long() -> None:
    """Long paths make a batch short."""
    door = _Door()
    sender = sender_of(door)
    for _ in range(200):
        await sender.send(text(b"x", "\N{LATIN SMALL LETTER O WITH DIAERESIS}" * 4_000))
    await sender.flush()
    assert sum(map(len, door.texts)) == 200


async def test_known_files_are_not_sent() -> None:
    """They are told as what they are; of a file of many texts the digest tells nothing."""
    door = _Door(known=["b", "c"])
    sender = sender_of(door)
    batch = [
        FoundFile(Path("/a"), "/a", "plain", 1, "a", "x"),
        FoundFile(Path("/b"), "/b", "pdf", 1, "b"),
        FoundFile(Path("/c"), "/c", "mbox", 1, "c"),
    ]
    assert [each.source for each in await sender.pick_unknown(batch)] == ["/a", "/c"]
    assert await sender.pick_unknown(batch[2:]) == batch[2:]
    assert len(door.asked) == 1
    assert sender.document({})["counts"]["known"] == 1


async def test_a_server_without_room_is_asked_again() -> None:
    """Until it has room; somebody else's uploads end nobody's remembering."""
    door = _Door(busy=5)
    sender = sender_of(door)
    await sender.send(text(b"x"))
    await sender.flush()
    assert door.texts == [[b"x"]]


async def test_typed_texts_and_whole_files_are_sent_as_they_are() -> None:
    """With the source and the title that were chosen for them."""
    door = _Door()
    sender = sender_of(door)
    await sender.send_whole("stdin.txt", b"abc", {"source": "s"})
    assert door.texts == [[b"abc"]]
    assert door.asked[0]["files"][0]["source"] == "s"


def test_parts_that_were_unread_where_they_were_sent_to_have_failed() -> None:
    """They are listed beside what was skipped here."""
    sender = sender_of(_Door())
    sender.take({"remembered": [], "unread": [{"source": "stdin.txt#2", "reason": "the mail has no text"}]})
    told = sender.document({})
    assert told["skipped"] == [{"source": "stdin.txt#2", "reason": "the mail has no text", "failed": True}]
    assert told["counts"]["failed"] == 1


def test_long_lists_have_their_beginnings_and_their_lengths() -> None:
    """What failed comes before what is as it should be."""
    sender = sender_of(_Door())
    sender.take({"remembered": [_line({}, "new")] * (KEPT + 5)})
    sender.skip(SkippedFile("/a.png", "it is a picture", is_text=False, size=9))
    sender.skip(SkippedFile("/a.pdf", "it is a damaged PDF", is_text=True))
    told = sender.document({"hidden": 1})
    assert (len(told["remembered"]), told["more"]) == (KEPT, {"remembered": 5, "skipped": 0})
    assert [each["source"] for each in told["skipped"]] == ["/a.pdf", "/a.png"]
    assert told["counts"] == {
        "new": KEPT + 5, "replaced": 0, "known": 0, "parts": 2 * KEPT + 10, "skipped": 2, "failed": 1
    }  # fmt: skip
    assert told["left_out"] == {"hidden": 1}
