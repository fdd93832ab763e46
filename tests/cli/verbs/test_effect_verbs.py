"""The verbs `grants` and `effects` as a person types them, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.processes import User

from batos.verbs.effect_verbs import effects_text, settled_text

EFFECT: Any = {"effect": "e-1-1", "grant": "dark", "what": "post 1", "attempts": 1, "approval": ""}


def test_a_message_acts_by_a_grant(user: User, tmp_path: Path) -> None:
    """Only if it is named; what happened is listed; a grant can be taken back."""
    folder = tmp_path / "notes"
    folder.mkdir()
    assert user.run("grants", "list").out.startswith("Nothing is granted")
    assert user.run("effects").out == "No mission has acted on the world.\n"
    added = user.run("grants", "add", "file", str(folder))
    assert (added.code, "--grant notes" in added.out) == (0, True), added.err
    assert user.run("grants", "add", "file", str(folder)).code == 4
    assert user.run("grants", "add", "file", str(user.home)).code == 4
    assert user.run("grants", "add", "http", "http://example.com/").code == 2
    assert user.run("grants", "add", "file", "").code == 2  # a variable of a script that was never set: no folder
    refused = user.run("send", "notes", "append_", "log.txt", "A line.")
    assert (refused.code, "--grant" in refused.err) == (1, True), refused.err
    sent = user.run("send", "notes", "append_", "log.txt", "A line.", "--grant", "notes")
    assert (sent.code, 'notes append_("log.txt", "A line.\\n")' in sent.err) == (0, True), sent.err
    assert (folder / "log.txt").read_text() == "A line.\n"
    listed = user.run("effects", "last")
    assert ("append 8 bytes to log.txt" in listed.out, "released" in listed.out) == (True, True), listed.out
    (effect,) = user.run("effects", "--json").document["data"]["effects"]
    assert user.run("effects", "settle", effect["effect"], "done").code == 4
    assert user.run("effects", "settle", "e-none-1", "done").code == 2
    assert "notes" in user.run("grants", "list").out
    asked = user.run("ask", "Why does a lamp burn?", "--effort", "reflex", "--grant", "notes")
    assert (asked.code, "No effect was staged: the question orders none that notes can do" in asked.err) == (0, True), (
        asked.err
    )
    assert "No effect" not in user.run("ask", "Why does a lamp burn?", "--effort", "reflex").err
    undone = user.run("undo", effect["mission"])
    assert "what happened in the world is not taken back" in undone.out
    assert user.run("grants", "revoke", "notes").code == 0
    assert user.run("ask", "Why?", "--grant", "notes").code == 2
    assert user.run("grants", "revoke", "notes").code == 2


def test_what_waits_for_a_yes_ends_with_seven_and_happens_after_it(user: User, tmp_path: Path) -> None:
    """`ask` shows the exact arguments of what it stages; made from a file, it says how it is approved."""
    folder = tmp_path / "notes"
    folder.mkdir()
    user.run("grants", "add", "file", str(folder))
    noted = user.run("ask", "Note down what holds a pier.", "--effort", "reflex", "--grant", "notes", "--no-memory")
    assert (noted.code, 'notes append_("notes.txt", ' in noted.err) == (0, True), noted.err
    assert (folder / "notes.txt").read_text().strip() in noted.out
    file = tmp_path / "piers.txt"
    file.write_text("Oak piles hold the pier of Fell Holm.")
    order = "What holds the pier of Fell Holm? Write it to a.txt."
    asked = user.run("ask", order, "--file", str(file), "--effort", "reflex", "--grant", "notes")
    assert (asked.code, (folder / "a.txt").exists()) == (7, False), asked.err
    assert "waits for your yes, since it was made from a text that came from outside" in asked.err
    (name,) = [each["id"] for each in user.run("approvals", "--json").document["data"]["approvals"]]
    assert f"batos approve {name}" in asked.err
    assert 'path: "a.txt"' in user.run("approvals", name).out
    assert user.run("approve", "--all-of", "last", name).code == 2
    assert user.run("approve", "--all-of", "last").code == 0
    assert (folder / "a.txt").exists()
    assert user.run("approve", "--all-of", "last").code == 2
    assert "released" in user.run("effects", "last").out


def test_effects_are_told_with_what_to_do() -> None:
    """An unknown one with the command that settles it; a failed one with its reason."""
    unknown = EFFECT | {"state": "unknown", "outcome": {"reason": "the process that released it ended"}}
    failed = EFFECT | {"state": "failed", "outcome": {"error": {"message": "the grant is revoked"}}}
    told = effects_text({"effects": [unknown, failed]})
    assert "batos effects settle e-1-1 done (or: undone)" in told
    assert ("the process that released it ended" in told, "the grant is revoked" in told) == (True, True)
    assert settled_text(EFFECT | {"state": "released"}) == "e-1-1 happened."
    assert "another mission may do it" in settled_text(EFFECT | {"state": "not_done"})
