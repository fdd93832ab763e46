"""A wrong command line is told in one line with a remedy, and a guess is near or there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.processes import User

from batos.cli.command_line import nearest

NOBODY = User(Path("nowhere"), "http://127.0.0.1:9")
LETTERS = st.text("abcdefgh", min_size=4, max_size=9)


@pytest.mark.parametrize(
    ("typed", "told", "remedy"),
    [
        ("aks Why?", "there is no verb 'aks'; did you mean 'ask'?", "`batos --help`"),
        ("version", "there is no verb 'version'", "`batos --help`"),
        ("method lits", "`batos method` has no verb 'lits'; did you mean 'list'?", "`batos method --help`"),
        ("grants rvoke x", "`batos grants` has no verb 'rvoke'; did you mean 'revoke'?", "`batos grants --help`"),
        ("keys frob", "`batos keys` has no verb 'frob'; one of list, new, revoke", "`batos keys --help`"),
        ("ask --fil x Why?", "`batos ask` has no option '--fil'; did you mean '--file'?", "`batos ask --help`"),
        ("wait --timeout 5 last", "`batos wait` has no option '--timeout'", "`batos wait --help`"),
        ("ask --top-p 1 Why?", "`batos ask` has no option '--top-p'", "batos ask -- '--top-p ...'"),
        ("missions --verb", "`batos missions` has no option '--verb'; did you mean '--verbose'?", "missions --help"),
        ("show -n last", "`batos show` has no option '-n'", "`batos show --help`"),
        ("--image x status", "'--image' is an option of verbs, and must follow one", "batos status --image"),
        ("--imag x", "`batos` has no option '--imag'; did you mean '--image'?", "`batos --help`"),
        ("ask --voices=5 Why?", "Option '--voices' does not take a value.", "`batos ask --help`"),
        ("ask How are you?", "Got unexpected extra arguments (are you?)", 'batos ask "..."'),
    ],
)
def test_a_wrong_command_line(typed: str, told: str, remedy: str) -> None:
    """People and programs are told what is wrong, what was meant if that is near, and where to look."""
    ran = NOBODY.run(*typed.split())
    lines = ran.err.splitlines()
    assert (ran.code, ran.out, lines[0]) == (2, "", f"error: {told}")
    assert remedy in lines[1]
    assert len(lines) == 2
    program = NOBODY.run(*typed.split(), "--json")
    assert (program.code, program.err) == (2, "")
    error = program.document["error"]
    assert (error["code"], error["message"]) == ("usage", told)
    assert remedy in error["remedy"]


@pytest.mark.parametrize(
    "typed",
    [
        ("show", ""),
        ("wait", " "),
        ("cancel", ""),
        ("resume", ""),
        ("retry", ""),
        ("inspect", ""),
        ("send", "", "guide_facet_"),
        ("send", "brick_prototype_obj", ""),
        ("approvals", ""),
        ("approve", ""),
        ("reject", "", "--why", "x"),
        ("method", "list", ""),
        ("method", "rollback", ""),
        ("adapters", "check", ""),
        ("adapters", "use", "robin", ""),
        ("keys", "revoke", ""),
        ("help", ""),
        ("status", "--home", ""),
        ("show", "--home", " "),
        ("show", "m" * 100_000),
        ("inspect", "a\udcff"),
    ],
)
def test_a_name_that_is_none(typed: tuple[str, ...]) -> None:
    """An empty name, as of a variable that was never set, is refused before anything is opened or asked."""
    ran = NOBODY.run(*typed)
    assert ran.code == 2
    assert ran.out == ""
    assert any(why in ran.err for why in ("it is empty", "no name has more than 256", "it is no Unicode text"))
    assert len(ran.err) < 300


def test_a_topic_without_a_letter() -> None:
    """Nothing is called so: the parts of pages that have no anchor are not."""
    ran = NOBODY.run("help", "???")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no help on '???'" in ran.err


@given(word=LETTERS, others=st.lists(st.text("stuvwxyz", min_size=4, max_size=9), max_size=4), data=st.data())
def test_one_slip_is_understood(word: str, others: list[str], data: st.DataObject) -> None:
    """A letter too many, too few, another or two that changed places: that word was meant, and none that is far."""
    at = data.draw(st.integers(0, len(word) - 1))
    slips = [
        word[:at] + word[at + 1 :],
        f"{word[:at]}h{word[at:]}",
        f"{word[:at]}h{word[at + 1 :]}",
        word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
    ]
    assert [nearest(slip, [*others, word]) for slip in slips] == [word] * 4
    assert nearest(word, others) is None
