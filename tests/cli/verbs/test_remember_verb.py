"""The verb `remember` as a person types it: folders, changed files, what is skipped, and a kill in between."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.cli.processes import User

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
    assert [each["title"] for each in found["recalled"]] == ["The lamp", "oil"]
    asked = user.run("ask", "--effort", "reflex", "Who winds the clockwork of the lamp?", "--json").document["data"]
    assert [each["name"] for each in asked["provenance"]["recalled"]] == ["The lamp"]
    without = user.run("ask", "--effort", "reflex", "--no-memory", "Who winds the clockwork of the lamp?", "--json")
    assert without.document["data"]["provenance"]["recalled"] == []

    (notes / "lamp.md").write_text("# The lamp\n\nIt burns gas now.\n", encoding="utf-8")
    assert "1 replaced, 1 known" in user.run("remember", str(notes)).out
    assert "has a word of it" in user.run("recall", "clockwork", "--type", "document").out
    assert "gas now" in user.run("recall", "gas").out


def test_after_a_kill_the_same_command_continues(user: User, tmp_path: Path) -> None:
    """Whole batches stand, none is stored twice, and all is found in the end."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(200):
        words = " ".join(f"w{number}x{part}" for part in range(300))
        (folder / f"{number:03}.txt").write_text(f"Note {number}. {words}", encoding="utf-8")
    with user.start("remember", str(folder)) as process:
        deadline = time.monotonic() + 60
        while user.run("memories", "--json").document["data"]["documents"] < 32:
            assert time.monotonic() < deadline
        process.kill()
        process.wait()
    before = user.run("memories", "--json").document["data"]["documents"]
    assert before % 32 in (0, 200 % 32)
    told = user.run("remember", str(folder), "--json").document["data"]["remembered"]
    states = [each["state"] for each in told]
    assert (states.count("known"), states.count("new")) == (before, 200 - before)
    listed = user.run("memories", "--json").document["data"]
    assert listed["documents"] == 200
    assert user.run("recall", "w150x299", "--json").document["data"]["of"] == 1


def test_without_ollama_parts_are_found_by_words(user: User) -> None:
    """What is remembered stands, and the reason why it has no vectors is told."""
    away = user.run("remember", LAMP, environ={"OLLAMA_HOST": "http://127.0.0.1:9"})
    assert "1 part found by words alone" in away.out
    assert "Ollama does not answer" in away.out
    assert "Maro" in user.run("recall", "clockwork").out
