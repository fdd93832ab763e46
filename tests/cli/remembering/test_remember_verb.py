"""The verb `remember` as a person types it: folders, changed files, what is skipped, and a kill in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.processes import User
from tests.waiting import wait_until

LAMP = "The keeper Maro winds the clockwork of the lamp every four hours."


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with notes, a picture, a hidden file and one in a folder of its own."""
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "lamp.md").write_text(f"# The lamp\n\n{LAMP}\n", encoding="utf-8")
    (folder / "deep" / "oil.txt").write_text("The oil is carried up in cans of brass.\n", encoding="utf-8")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n")
    (folder / ".hidden").write_text("nobody reads this", encoding="utf-8")
    return folder


def test_a_folder_is_remembered_and_questions_are_answered_from_it(user: User, notes: Path) -> None:
    """Without what is no text or hidden, each told; a second time nothing is added, and a change replaces."""
    told = user.run("remember", str(notes), "--json").document["data"]
    assert {(each["title"], each["state"]) for each in told["remembered"]} == {("oil", "new"), ("The lamp", "new")}
    assert [Path(each["source"]).name for each in told["skipped"]] == ["picture.png"]
    assert told["vectors"] == {"model": "all-minilm:latest", "missing": 0, "reason": ""}
    assert "picture" in user.run("remember", str(notes)).out
    assert "2 known" in user.run("remember", str(notes)).out

    found = user.run("recall", "who winds the lamp", "--json").document["data"]
    assert [each["title"] for each in found["recalled"]] == ["The lamp"]
    asked = user.run("ask", "--effort", "reflex", "Who winds the clockwork of the lamp?", "--json").document["data"]
    assert [each["name"] for each in asked["provenance"]["recalled"]] == ["The lamp"]
    without = user.run("ask", "--effort", "reflex", "--no-memory", "Who winds the clockwork of the lamp?", "--json")
    assert without.document["data"]["provenance"]["recalled"] == []

    (notes / "lamp.md").write_text("# The lamp\n\nIt burns gas now.\n", encoding="utf-8")
    assert "1 replaced, 1 known" in user.run("remember", str(notes)).out
    assert "has a word of it" in user.run("recall", "clockwork", "--type", "document").out
    assert "gas now" in user.run("recall", "gas").out


def remembered(user: User) -> int:
    """How many documents there are."""
    return int(user.run("memories", "--json").document["data"]["documents"])


def test_after_a_kill_the_same_command_continues(user: User, tmp_path: Path) -> None:
    """Whole batches stand, none is stored twice, and all is found in the end."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(200):
        words = " ".join(f"w{number}x{part}" for part in range(300))
        (folder / f"{number:03}.txt").write_text(f"Note {number}. {words}", encoding="utf-8")
    with user.start("remember", str(folder)) as process:
        wait_until(lambda: remembered(user) >= 32 or process.poll() is not None, "the first batch")
        process.kill()
        process.wait()
    before = remembered(user)
    assert before >= 32
    assert before % 128 in (0, 200 % 128)
    told = user.run("remember", str(folder), "--json").document["data"]["remembered"]
    states = [each["state"] for each in told]
    assert (states.count("known"), states.count("new")) == (before, 200 - before)
    listed = user.run("memories", "--json").document["data"]
    assert listed["documents"] == 200
    assert user.run("recall", "w150x299", "--json").document["data"]["of"] == 1


@contextmanager
def server(user: User) -> Iterator[int]:
    """A server of the user's home; gives its number."""
    with user.start("serve", "--bind", "tcp://127.0.0.1:*", "--events", "tcp://127.0.0.1:*") as process:
        wait_until(lambda: (user.home / "server.json").exists() or process.poll() is not None, "the server's note")
        assert process.poll() is None, (process.poll(), process.communicate())
        yield process.pid
        process.terminate()
        _, err = process.communicate()
        assert "Traceback" not in err, err


def test_two_clients_remember_the_same_folder_at_once(user: User, tmp_path: Path) -> None:
    """More files than a server spools, with copies among them; a client is killed, and all is there once."""
    folder = tmp_path / "many"
    for number in range(600):
        path = folder / f"{number % 7}" / f"{number:03}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Note {number % 590}: the lamp w{number % 590} burns.", encoding="utf-8")
    with server(user):
        with user.start("remember", str(folder)) as killed:
            wait_until(lambda: remembered(user) or killed.poll() is not None, "the first batch")
            killed.kill()
            killed.communicate()
        assert remembered(user)
        clients = [user.start("remember", str(folder), "--json") for _ in range(2)]
        for each in clients:
            out, err = each.communicate()
            assert (each.returncode, err) == (0, "")
            counts = json.loads(out.splitlines()[-1])["data"]["counts"]
            assert counts["new"] + counts["known"] + counts["replaced"] == 600
        listed = user.run("memories", "--json").document["data"]
        assert (listed["documents"], listed["chunks"]) == (590, 590)
        assert user.run("remember", str(folder), "--json").document["data"]["counts"]["known"] == 600
        assert user.run("recall", "w589", "--mode", "text", "--json").document["data"]["of"] == 1


def test_what_cannot_be_read_is_told(user: User, tmp_path: Path) -> None:
    """A file that is no text is skipped in a folder; a text that cannot be read has failed, and so has a name."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text(LAMP, encoding="utf-8")
    (folder / "b.png").write_bytes(b"\x89PNG\r\n")
    (folder / ".gitignore").write_text("*.log\n", encoding="utf-8")
    (folder / "c.log").write_text("noise", encoding="utf-8")
    fine = user.run("remember", str(folder))
    assert (fine.code, "b.png: it is a picture" in fine.out) == (0, True)
    assert "Left out: 1 hidden, 1 ignored. --all takes them too." in fine.out
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4")
    failed = user.run("remember", str(folder), "--json", "--all")
    assert failed.code == 1
    assert [(Path(each["source"]).name, each["failed"]) for each in failed.document["data"]["skipped"]] == [
        ("bad.pdf", True),
        ("b.png", False),
    ]
    assert failed.document["data"]["counts"]["new"] == 2
    events = [each.get("event") for each in failed.documents]
    assert (events.count("remember.document"), events.count("remember.skipped")) == (3, 2)
    named = user.run("remember", str(folder / "b.png"), str(folder / "a.txt"))
    assert (named.code, "1 known" in named.out or "Known" in named.out) == (1, True)


def test_files_of_many_kinds_are_remembered(user: User, tmp_path: Path) -> None:
    """Mails and chats turn by turn; a second time all of them are known."""
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "page.html").write_text("<title>Oil</title><h2>Price</h2><p>It is dear.", encoding="utf-8")
    mails = "".join(f"From a@b.c Mon Jan  1 00:00:0{n} 2024\nSubject: Oil {n}\n\nIt is late.\n\n" for n in range(3))
    (folder / "Inbox").write_text(mails, encoding="utf-8")
    rows = [{"role": "user", "content": "Where is the oil?"}, {"role": "assistant", "content": "In the cellar."}]
    (folder / "chat.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    told = user.run("remember", str(folder), "--json").document["data"]
    assert told["counts"] == {"new": 6, "replaced": 0, "known": 0, "parts": 6, "skipped": 0, "failed": 0}
    assert user.run("remember", str(folder), "--json").document["data"]["counts"]["known"] == 6
    found = user.run("recall", "cellar", "--json", "--type", "turn").document["data"]["recalled"]
    assert [each["source"] for each in found] == [f"{(folder / 'chat.jsonl').resolve()}#2"]
    piped = user.run("remember", "-", "--source", "page", stdin="<html><p>The whale oil of Nantucket.")
    assert piped.code == 0
    assert user.run("recall", "whale", "--source", "page", "--json").document["data"]["of"] == 1


def test_parts_of_stdin_that_cannot_be_read_are_listed(user: User) -> None:
    """The others are remembered, and the exit code is 1, as for a file."""
    mail = "From a@b.c Mon Jan  1 00:00:00 2024\nSubject: {0}\n\n{0}\n\n"
    mails = "".join(mail.format(text) for text in ("It is late.", "", "It is dear."))
    piped = user.run("remember", "-", "--json", stdin=mails)
    told = piped.document["data"]
    assert (piped.code, told["counts"]["new"], told["counts"]["failed"]) == (1, 2, 1)
    unread = {"source": "stdin.txt#2", "reason": "the mail has no text", "failed": True}
    assert told["skipped"] == [unread]


def test_without_ollama_parts_are_found_by_words(user: User) -> None:
    """What is remembered stands, and the reason why it has no vectors is told."""
    away = user.run("remember", LAMP, environ={"OLLAMA_HOST": "http://127.0.0.1:9"})
    assert "1 part found by words alone" in away.out
    assert "Ollama does not answer" in away.out
    assert "Maro" in user.run("recall", "clockwork").out
