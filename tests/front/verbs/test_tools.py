"""Tools as processes: a declared object that does not exist is looked at, made by a message, listed and called."""

from __future__ import annotations

import json

from tests.front.processes import User

AGENT = "web_search_agent"


def test_an_absent_object_is_made_by_its_first_message(user: User) -> None:
    """Looked at before, made and answered in one go, listed after; the next message finds it there."""
    absent = user.run("inspect", AGENT, "--json").document["data"]
    assert (absent["state"], [each["selector"] for each in absent["methods"]]) == (
        "declared, absent",
        ["search_", "fetch_"],
    )
    wrong = user.run("send", AGENT, "find_", '"x"', "--json")
    assert (wrong.code, wrong.document["error"]["code"]) == (1, "message_not_understood")
    assert "search_(self, query, limit)" in wrong.document["error"]["remedy"]

    sent = user.run("send", AGENT, "search_", "x", "3", "--json")
    assert sent.code == 0, sent.err
    (told,) = sent.document["data"]["provenance"]["generated"]
    assert (told["receiver"], told["selector"], told["outcome"]) == ("tools_obj", AGENT, "installed")
    made = user.run("inspect", AGENT, "--json").document["data"]
    assert {"search_", "fetch_", "api", "name"} <= set(made["slots"])
    listed = user.run("tools", "--json").document["data"]["tools"]
    assert {line["tool"] for line in listed} == {f"{AGENT}.search_", f"{AGENT}.fetch_"}
    again = user.run("send", AGENT, "search_", "y", "3", "--json")
    assert (again.code, again.document["data"]["provenance"]["generated"]) == (0, [])
    assert json.dumps(again.document["data"]["provenance"]["message"]["result"])
