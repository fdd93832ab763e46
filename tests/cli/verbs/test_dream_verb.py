"""The verb `dream` as a person types it, without a server: asked, listed, compared, promoted, dropped."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.cli.processes import User

from batos.verbs.history_verbs import difference_text, replay_text


def test_a_dream_is_asked_and_promoted_or_dropped(user: User) -> None:
    """Until it is promoted no list has it; a name that is no dream's is refused."""
    assert user.run("dream", "list").out.startswith("There is no dream")
    asked = user.run("dream", "new", "What if the pier were of steel?", "--effort", "reflex")
    assert (asked.code, "batos dream diff" in asked.err) == (0, True), asked.err
    listed = user.run("dream", "list", "--json").document["data"]["dreams"]
    (name,) = [each["dream"] for each in listed]
    assert f"`batos dream promote {name}`" in asked.err
    assert user.run("missions", "--json").document["data"]["missions"] == []
    told = user.run("dream", "diff", "last")
    assert (told.code, name in told.out, "the mission, memory, statistics" in told.out) == (0, True, True), told.out
    assert f"batos dream promote {name}" in told.out
    assert user.run("dream", "promote", name).code == 0
    assert [each["id"] for each in user.run("missions", "--json").document["data"]["missions"]] == [name]
    assert user.run("dream", "promote", name).code == 4
    assert user.run("dream", "--effort", "reflex", "What if it were of oak?").code == 0  # a question is `new`
    assert user.run("dream", "drop", "last").out.strip().endswith("is dropped.")
    assert "dropped" in user.run("dream", "list").out
    assert user.run("dream", "diff", "m-none").code == 2
    for wrong in (("dream", "dorp", "last"), ("dream", "dorp", "--server", "a place")):
        assert "did you mean 'drop'" in user.run(*wrong).err  # one word is no question
    for unquoted in (("dream", "Should", "we", "move"), ("dream", "new", "Should", "we", "move")):
        assert "in quotation marks: batos dream" in " ".join(user.run(*unquoted).err.split())
    assert "batos dream new" in user.run("dream", "new", " ").err
    found = {each["id"]: each["ok"] for each in user.run("doctor", "--json").document["data"]["findings"]}
    assert found["image.moment"]


def test_a_dream_that_failed_is_not_offered(user: User) -> None:
    """There is nothing to promote of it."""
    failed = user.run("dream", "Is it of oak?", "--effort", "reflex", environ={"OLLAMA_HOST": "127.0.0.1:9"})
    assert (failed.code, "batos dream diff" in failed.err, "batos retry" in failed.err) == (3, False, False), failed.err
    assert user.run("dream", "list").out.startswith("There is no dream")


def test_a_conflict_is_marked() -> None:
    """Beside the slot, with the remedy at the end."""
    line: Any = {
        "dream": "m-1",
        "state": "open",
        "text": "why?",
        "read_at": "tid:0x1",
        "tools": ["a_"],
        "methods": ["b_"],
    }
    made: Any = {
        "method": "o.m_",
        "source": "def m_(self):\n    return 1\n",
        "asks": True,
        "conflict": "the object is gone",
    }
    line = line | {"effects": ["notes: append 2 bytes to a.txt"]}
    slots: Any = [
        {"object": "o", "slot": "s", "before": None, "after": "x" * 99, "conflict": "it was changed meanwhile"}
    ]
    told = difference_text(line | {"made": [made], "slots": slots, "contributions": ["turn"], "conflicts": ["o.s"]})
    assert ("! it was changed meanwhile" in told, "dream it again" in told, "a_" in told) == (True, True, True)
    assert "o.m_ is made, after a person's yes   ! the object is gone\n         def m_" in told


def test_the_answers_of_dream_and_mind_stand_one_below_the_other() -> None:
    """The mind's is that of the newest mission with the same question; who was not asked has none."""
    line: Any = {
        "dream": "m-2", "state": "open", "text": "why?", "read_at": "tid:0x1", "made": [], "tools": [], "methods": [],
        "effects": [], "slots": [], "contributions": [], "conflicts": [], "answer": "Of steel.\nYes.", "base": None,
    }  # fmt: skip
    told = difference_text(line)
    assert "answer   Of steel.\n         Yes.\nbase     the mind itself was not asked this" in told
    asked: Any = {"mission": "m-1", "answer": "Of oak."}
    assert "\nbase     Of oak. (m-1)\n" in difference_text(line | {"base": asked})
    assert "\nbase     the same, in m-1\n" in difference_text(line | {"base": {**asked, "answer": line["answer"]}})


def test_a_mission_is_replayed(user: User, tmp_path: Path) -> None:
    """As it was for nothing; with another codex for what its prompts are then; a wrong folder is refused."""
    assert user.run("ask", "What holds a pier?", "--effort", "reflex").code == 0
    same = user.run("replay", "last")
    assert (same.code, "1 from the journal, 0 made anew" in same.out, "answer   the same" in same.out) == (
        0, True, True,
    ), same.err  # fmt: skip
    other = Path(shutil.copytree(user.home / "codex", tmp_path / "other"))
    mind = other / "mind.toml"
    mind.write_text(mind.read_text() + "\n# Another.\n")
    told = user.run("replay", "last", "--codex", str(other), "--json").documents[-1]["data"]
    assert told["replay"]["made"] == []
    (tmp_path / "empty").mkdir()
    assert user.run("replay", "last", "--codex", str(tmp_path / "empty")).code == 2
    assert user.run("replay", "last", "--model", "absent:1b").code == 3


def test_differences_are_told() -> None:
    """Pairs only where they differ."""
    pairs = {"models": [["a"], ["b"]], "personas": [["BRICK"], ["BRICK"]], "carried": [1, 0]}
    lines = {"recalled": ["- d-1"], "written": [], "methods": ["+ o.m_ revision 1"], "answer": ["- Yes.", "+ No."]}
    found: Any = {
        "of": "m-1",
        "mission": "m-2",
        "same": ["x"],
        "made": ["y"],
        "gone": [],
        "erased": 2,
        **pairs,
        **lines,
    }
    told = replay_text(found, answered=True)
    assert ("models   a -> b" in told, "personas" in told, "answer   + No." in told) == (True, False, True)
    assert "answer   none" in replay_text(found | {"answer": []}, answered=False)
