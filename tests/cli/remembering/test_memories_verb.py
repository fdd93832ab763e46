"""`batos memories` and its verbs, `pin` and `unpin`, as a person types them."""

from __future__ import annotations

import pytest
from tests.cli.processes import User

LAMP = "The keeper Maro winds the clockwork of the lamp."


def test_a_memory_is_corrected_by_hand(user: User) -> None:
    """Edited from stdin, pinned, retracted and restored, deleted; the list is what `memories` shows without a verb."""
    assert user.run("remember", LAMP, "--source", "keeper").code == 0
    assert user.run("memories", "edit", "keeper", "-", stdin="Anna winds the clockwork.").code == 0
    assert "Anna winds the clockwork." in user.run("recall", "clockwork").out
    assert user.run("pin", "keeper").out.startswith("Pinned: ")
    assert len(user.run("memories", "--pinned", "--json").document["data"]["memories"]) == 1
    gone = user.run("memories", "retract", "--source", "keeper", "--cascade", "--json").document["data"]
    assert (len(gone["retracted"]), gone["pins"]) == (1, 1)
    assert user.run("recall", "clockwork").out.startswith("Nothing")
    assert "Anna" in user.run("recall", "clockwork", "--history").out
    assert user.run("memories", "restore", "keeper").code == 0
    assert user.run("unpin", "keeper").code == 0
    assert user.run("memories", "delete", "keeper").out.startswith("Forgotten: ")
    assert "edit" in user.run("memories", "--help").out


@pytest.mark.parametrize(
    "arguments", [("retract",), ("retract", "a", "--source", "b"), ("edit", "d-none", "x"), ("restore", "d-none")]
)
def test_bad_input_is_said(user: User, arguments: tuple[str, ...]) -> None:
    """With exit code 2."""
    assert user.run("memories", *arguments).code == 2


@pytest.mark.parametrize("option", [("--scope", "work"), ("--pinned",), ("--limit", "3")])
def test_options_of_the_list_are_refused_for_one_memory(user: User, option: tuple[str, ...]) -> None:
    """They would do nothing."""
    assert user.run("remember", LAMP, "--source", "keeper").code == 0
    found = user.run("memories", "keeper", *option)
    assert (found.code, option[0] in found.err) == (2, True)
    assert user.run("memories", "keeper").code == 0
