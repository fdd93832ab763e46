"""Tools: a declared object that does not exist is looked at, made by a message, listed and called."""

from __future__ import annotations

import json

from tests.cli.processes import User

AGENT = "text_agent"


def test_an_absent_object_is_made_by_its_first_message(user: User) -> None:
    """Looked at before, made and answered in one go, listed after; the next message finds it there."""
    absent = user.run("inspect", AGENT, "--json").document["data"]
    assert (absent["state"], [each["selector"] for each in absent["methods"]]) == (
        "declared, absent",
        ["words_", "often_"],
    )
    wrong = user.run("send", AGENT, "find_", '"x"', "--json")
    assert (wrong.code, wrong.document["error"]["code"]) == (1, "message_not_understood")
    assert "words_(self, text)" in wrong.document["error"]["remedy"]

    sent = user.run("send", AGENT, "often_", "high tide, low tide", "tide", "--json")
    assert sent.code == 0, sent.err
    (told,) = sent.document["data"]["provenance"]["generated"]
    assert (told["receiver"], told["selector"], told["outcome"]) == ("tools_obj", AGENT, "installed")
    made = user.run("inspect", AGENT, "--json").document["data"]
    assert {"words_", "often_", "api", "name"} <= set(made["slots"])
    listed = user.run("tools", "--json").document["data"]["tools"]
    assert {line["tool"] for line in listed} == {f"{AGENT}.words_", f"{AGENT}.often_"}
    assert "reaches a network" in user.run("tools").out
    again = user.run("send", AGENT, "words_", "high tide, low tide", "--json")
    assert (again.code, again.document["data"]["provenance"]["generated"]) == (0, [])
    assert [json.loads(each.document["data"]["answer"]) for each in (sent, again)] == [2, 4]


def test_a_message_has_policies_and_no_unknown_options(user: User) -> None:
    """`--install` and `--interpret` are as a brief's; what is no option is refused, but behind two dashes."""
    never = ("--install", "never", "--interpret", "never")
    refused = user.run("send", AGENT, "words_", "high tide", *never, "--json")
    assert (refused.code, refused.document["error"]["code"]) == (1, "generation_failed")
    facet = ("send", "brick_prototype_obj", "guide_facet_", "--json")
    said = user.run(*facet, "--install", "never", "Why is granite hard?").document["data"]
    assert said["provenance"]["generated"] == []
    unknown = user.run(*facet, "Why?", "--instal", "never")
    assert (unknown.code, "--instal" in unknown.out) == (2, True)
    plain = user.run("send", "brick_prototype_obj", "name", "--json", "--", "--install")
    assert plain.document["error"]["code"] != "usage"
