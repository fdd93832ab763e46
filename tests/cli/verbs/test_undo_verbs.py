"""The verbs `undo` and `redo` as a person types them, without a server, and `/undo` in a chat."""

from __future__ import annotations

from typing import Any

from tests.cli.processes import User

from batos.verbs.history_verbs import redone_text, undone_text

LINE: Any = {"mission": "m-1", "text": "why?", "because": "", "memories": [], "methods": [], "tools": [], "slots": []}

LINE = LINE | {"approvals": [], "effects": ["notes: append 2 bytes to a.txt (released as e-1-1)"]}


def test_a_mission_is_undone_and_brought_back(user: User) -> None:
    """With a look at it first; `show` says how it comes back, and a script gets documents and exit codes."""
    assert user.run("ask", "My cat is called Miso. What holds a pier?", "--effort", "reflex").code == 0
    planned = user.run("undo", "--dry-run")
    assert (planned.code, "Nothing is changed" in planned.out, "memories" in planned.out) == (0, True, True)
    done = user.run("undo", "last", "--json").document["data"]
    assert (done["prompt"], len(done["undone"])) == ("My cat is called Miso. What holds a pier?", 1)
    name = done["mission"]
    shown = user.run("show", name)
    assert ("undone" in shown.out, f"batos redo {name}" in shown.out + shown.err) == (True, True), shown.out
    assert user.run("missions", "--status", "undone", "--json").document["data"]["missions"][0]["id"] == name
    assert "Miso" not in user.run("recall", "cat Miso").out
    again = user.run("undo", name)
    assert (again.code, f"batos redo {name}" in again.err) == (4, True)
    back = user.run("redo")
    assert (back.code, back.out) == (0, f"1 mission back: {name}.\n")
    assert "Miso" in user.run("recall", "cat Miso").out
    assert user.run("redo").code == 2


def test_a_chat_undoes_its_last_turn(user: User) -> None:
    """And the next question is not shown it; without a turn there is nothing to undo."""
    lines = "/undo\nMy cat is called Miso.\n/undo\n/history\nWhat is it called?\n/redo\n"
    told = user.run("chat", "--effort", "reflex", "--no-stream", stdin=lines)
    assert "no turn" in told.err
    assert "answer   goes, with turn 1 of its conversation" in told.out
    assert "1 mission back" in told.out


def test_an_undo_is_told_with_all_that_goes() -> None:
    """Mission by mission, with the reason; what there is much of is counted."""
    other = LINE | {"mission": "m-2", "text": "", "because": "it ran o.s_", "slots": [f"o.{i}" for i in range(9)]}
    page: Any = {
        "mission": "m-1",
        "dry_run": False,
        "undone": [{**other, "turn": 0}, LINE | {"turn": 3}],
        "kept": ["slots"],
    }
    told = undone_text(page | {"prompt": "why?"})
    assert "m-2  a mission of another user\n  because  it ran o.s_\n  answer   goes\n" in told
    assert "slots    o.0, o.1, o.2, o.3, o.4 and 4 more" in told
    assert "stays    notes: append 2 bytes" in told
    assert "turn 3 of its conversation" in told
    assert "with --cascade all of these" in told
    assert "--cascade` takes this out" in undone_text(page | {"prompt": "why?", "dry_run": True})
    assert "left as it is  m-1: o.s" in redone_text({"mission": "m-1", "redone": ["m-1"], "left": ["m-1: o.s"]})
