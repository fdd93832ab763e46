"""The verbs of memory as a person types them: texts are listed, shown and forgotten, and bad input is said."""

from __future__ import annotations

import pytest
from tests.cli.processes import User

LAMP = "The keeper Maro winds the clockwork of the lamp every four hours."


def test_texts_are_remembered_listed_shown_and_forgotten(user: User) -> None:
    """By words in quotes and from stdin; a document is shown by the beginning of its id, and forgotten."""
    first = user.run("remember", LAMP, "--scope", "work")
    assert (first.code, first.out.startswith("Remembered: The keeper Maro")) == (0, True)
    assert user.run("remember", "-", "--title", "oil", stdin="Oil is dear this winter.").code == 0
    listed = user.run("memories", "--json").document["data"]
    assert [each["title"] for each in listed["memories"]] == ["oil", LAMP[:60].strip()]
    scoped = user.run("memories", "--scope", "work", "--json").document["data"]
    assert [each["scope"] for each in scoped["memories"]] == ["work"]
    table = user.run("memories").out
    assert "2 documents, 2 parts." in table
    name = listed["memories"][0]["document"]
    assert "Oil is dear this winter." in user.run("memories", name).out
    gone = user.run("forget", name)
    assert (gone.code, "Forgotten: oil (1 part)." in gone.out, "history" in gone.out) == (0, True, True)
    missing = user.run("forget", name, "--json")
    assert (missing.code, missing.document["error"]["code"]) == (2, "not_found")
    assert user.run("memories", "--scope", "none").out.startswith("Nothing is remembered")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("remember", "lamp.md"), "there is no file"),
        (("remember", ""), "there is no file"),
        (("remember", "a b", "c d", "--title", "t"), "one at a time"),
        (("remember",), "Missing argument"),
        (("ask", "--no-memory", "--memory", "work", "why?"), "--no-memory"),
        (("recall", "lamp", "--limit", "0"), "--limit"),
        (("forget", "d-none"), "no document"),
        (("recall", "lamp", "--since", "yesterday"), "2026-11-21"),
        (("recall", "lamp", "--type", "dream"), "--type"),
        (("recall", "lamp", "--mode", "vectors"), "--mode text"),
    ],
)
def test_bad_input_is_said(user: User, arguments: tuple[str, ...], told: str) -> None:
    """With exit code 2, and what to do."""
    found = user.run(*arguments)
    assert (found.code, told in found.err) == (2, True), found.err


def test_a_recall_is_narrowed(user: User) -> None:
    """By type, by time and by source; the modes without vectors find the same words."""
    assert user.run("remember", LAMP, "--scope", "work").code == 0

    def count(*options: str) -> int:
        found = user.run("recall", "who winds the lamp", "--json", *options)
        assert found.code == 0, found.err
        return len(found.document["data"]["recalled"])

    assert count() == count("--mode", "text") == count("--mode", "hybrid") == count("--history") == 1
    assert count("--type", "document", "--since", "2020-01-01", "--scope", "work") == 1
    assert count("--type", "mission") == count("--until", "2020-01-01") == count("--source", "lamp.md") == 0
    assert count("--persona", "ROBIN") == count("--mission", "m-1") == 0
