"""The verb `curate` as a person types it: a look, the folding, the words in the archive, and back again."""

from __future__ import annotations

import pytest
from tests.cli.processes import User
from tests.memory.test_fold_store import logs


def test_memories_are_folded_and_brought_back(user: User) -> None:
    """What is folded is found by --all, told as summarised, and comes back by the summary's id."""
    for number, text in enumerate(logs(4)):
        assert user.run("remember", "-", "--title", f"Log {number}", stdin=text).code == 0
    assert user.run("curate").out.startswith("Nothing to fold")
    looked = user.run("curate", "--dry-run", "--cold-after", "0").out
    assert "4 documents would be folded: 4 parts become 1." in looked
    folded = user.run("curate", "--cold-after", "0", "--json").document["data"]
    (region,) = folded["regions"]
    assert (region["reason"], region["written_by"], len(region["documents"])) == ("cold", "model", 4)
    every = " ".join(user.run("recall", "gull1", "--all").out.split())
    assert f"SUMMARISED in {region['summary']}" in every
    assert "stands for Log 1" in user.run("memories", region["summary"]).out
    shown = user.run("memories", region["documents"][1]["document"]).out
    assert f"batos curate --undo {region['summary']}" in shown
    assert "He saw gull1." in shown
    back = user.run("curate", "--undo", region["summary"]).out
    assert "Back: Log 1 (1 part)." in back
    assert len(user.run("recall", "gull1", "--json").document["data"]["recalled"]) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--undo", "d-none"), "no document"),
        (("--undo", "d-none", "--dry-run"), "--undo"),
        (("--undo", "d-none", "--cold-after", "3"), "no --cold-after"),
        (("--undo", "d-none", "--limit", "3"), "no --limit"),
        (("--undo", "d-none", "--rule"), "no --rule"),
        (("--cold-after", "-1"), "--cold-after"),
        (("--limit", "0"), "--limit"),
    ],
)
def test_bad_input_is_said(user: User, arguments: tuple[str, ...], told: str) -> None:
    """With exit code 2."""
    found = user.run("curate", *arguments)
    assert (found.code, told in found.err) == (2, True), found.err
