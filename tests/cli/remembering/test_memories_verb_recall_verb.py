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
    text = "The codeword is Papagei."
    assert user.run("remember", text).code == 0
    near = user.run("forget", "codeword Papagei")
    assert (near.code, "batos recall" in near.err) == (2, True)
    assert f"Forgotten: {text}" in user.run("forget", text).out
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
        (("remember", "a b", "--supersedes", "k"), "--key"),
        (("remember", "a b", "--key", "k", "--depends-on", "a,,b"), "--depends-on"),
        (("recall", "lamp", "--history", "--strict"), "history"),
        (("ask", "--no-memory", "--memory", "work", "why?"), "--no-memory"),
        (("recall", "lamp", "--limit", "0"), "--limit"),
        (("recall", "lamp", "--all", "--limit", "3"), "--limit"),
        (("recall", " "), "QUERY is empty"),
        (("forget", "d-none"), "no document"),
        (("recall", "lamp", "--since", "yesterday"), "2026-11-21"),
        (("recall", "lamp", "--type", "dream"), "--type"),
        (("recall", "lamp", "--persona", "rob"), "--persona"),
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
    assert count("--persona", "robin") == count("--mission", "m-1") == 0
    told = user.run("recall", "who winds the lamp", "--persona", "robin", "--type", "turn").out
    assert "; --type, --persona left out the rest." in told


def test_a_fact_supersedes_the_older_one(user: User) -> None:
    """By its key, also if its value is one word; the older one is shown to who asks for history."""
    assert user.run("remember", "Ulm", "--key", "place").code == 0
    told = user.run("remember", "-", "--key", "place", stdin="Bremen\n")
    assert (told.code, "Superseded: d-" in told.out) == (0, True)
    once, again = (user.run("remember", "x", "--key", "y", "--supersedes", "place") for _ in range(2))
    assert ("Superseded: d-" in once.out, "No current fact" in again.out, again.code) == (True, False, 0)
    assert user.run("remember", "Bremen", "--key", "place").code == 0
    assert "No current fact is fair" in user.run("remember", "x", "--key", "z", "--supersedes", "fair").out
    found = user.run("recall", "place").out
    assert ("Bremen" in found, "Ulm" in found) == (True, False)
    history = " ".join(user.run("recall", "place", "--history").out.split())
    assert "SUPERSEDED by d-" in history
    assert "[superseded since" in history
    assert "Bremen" in user.run("recall", "place", "--strict", "--newest").out


def test_a_mission_is_erased_for_good(user: User) -> None:
    """With a look at it first; a script has to be sure, and is told what the verb cannot reach."""
    secret = "k7f3a9c1e5b2d8f4a6c0e9b7d3f1"
    assert user.run("ask", f"My key is {secret}. What holds a pier?", "--effort", "reflex").code == 0
    planned = user.run("forget", "--erase", "last", "--dry-run")
    assert (planned.code, "would go   mission m-" in planned.out) == (0, True), planned.out
    unsure = user.run("forget", "--erase", "last")
    assert (unsure.code, "--yes" in unsure.err) == (2, True)
    assert user.run("forget", "--yes", "d-1").code == 2
    assert user.run("forget", "--erase", "--yes", "a b c d", "e").code == 2
    done = user.run("forget", "--erase", secret, "--yes")
    assert (done.code, "remedy: Make a new one" in done.out) == (0, True), done.out
    assert not [each for each in user.home.rglob("*") if each.is_file() and secret.encode() in each.read_bytes()]
    assert user.run("audit", "verify").code == 0
    again = user.run("forget", "--erase", secret, "--yes", "--json")
    assert (again.code, again.document["error"]["code"]) == (2, "not_found")
    assert user.run("redo", "last").code == 4
