"""The verb retry: the same question with its files and options, as a mission of its own that pays for nothing twice."""

from __future__ import annotations

from pathlib import Path

from tests.cli.processes import User

from batos.cli.verbs.ask import again


def test_what_was_asked_is_asked_again_and_paid_once(user: User, tmp_path: Path) -> None:
    """Question, file, effort and persona are the first one's; every answer is from the journal."""
    basin = tmp_path / "basin.txt"
    basin.write_text("The basin is nine metres deep.")
    options = ("--effort", "reflex", "--persona", "brick", "--file", str(basin), "--deadline", "1h")
    first = user.run("ask", "--json", *options, "How deep is the basin?").document["data"]
    ran = user.run("retry", "--json")
    assert ran.code == 0, ran.err
    second = ran.document["data"]
    assert second["id"] != first["id"]
    assert second["brief"]["ancestor"] == first["id"]
    same = ("text", "effort", "persona", "attachments")
    assert [second["brief"][name] for name in same] == [first["brief"][name] for name in same]
    assert "deadline" not in second["brief"]
    assert (second["answer"], second["cost"]["calls"]) == (first["answer"], 0)


def test_what_a_copy_of_the_mind_answered_is_refused(user: User) -> None:
    """The remedy is the verb that asks it again, by its kind."""
    assert user.run("ask", "What holds a pier?", "--effort", "reflex").code == 0
    for asked, remedy in (
        (("dream", "new"), 'batos dream "'),
        (("ask", "--as-of", "last"), "batos ask --as-of tid:0x"),
    ):
        name = user.run(*asked, "--effort", "reflex", "--json", "What holds it?").documents[-1]["data"]["id"]
        ran = user.run("retry", name, "--json")
        assert (ran.code, ran.document["error"]["code"]) == (4, "refused"), ran.err
        assert (name in ran.document["error"]["message"], remedy in ran.document["error"]["remedy"]) == (True, True)


def test_what_is_one_missions_alone_is_left_out() -> None:
    """Its id, its key and its own ancestor; a message stays, and who asks is who retries."""
    message = {"receiver": "tools_obj", "selector": "seconds_of_", "arguments": ["2 h"]}
    brief = {"id": "m-1", "text": "t", "user": "ada", "idempotency_key": "k", "ancestor": "m-0", "message": message}
    assert again({"id": "m-1", "brief": brief}, "bo") == {
        "text": "t",
        "user": "bo",
        "message": message,
        "ancestor": "m-1",
        "origin": {"door": "cli", "client": "batos retry"},
    }


def test_there_has_to_be_one(user: User) -> None:
    """Before the first mission nothing can be asked again."""
    ran = user.run("retry", "--json")
    assert (ran.code, ran.document["error"]["code"]) == (2, "not_found")
