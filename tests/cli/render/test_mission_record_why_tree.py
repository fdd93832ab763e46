"""A tree of reasons as text: it fits a screen, and says what it leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.processes import User

from batos.cli.render.mission_record import SCREEN, tree_text
from batos.terminal.layout import cells

_KINDS = st.sampled_from(("call", "mission", "memory", "commit", "turn", "sentence"))
_TEXTS = st.text(max_size=120)


def node(because: Any) -> Any:
    """Nodes with these behind them."""
    given_ = {"kind": _KINDS, "text": _TEXTS, "because": because}
    return st.fixed_dictionaries(given_, optional={"ref": st.just("m-01"), "at": st.just("2026-11-26T09:00:00.000Z")})


_TREES = st.recursive(node(st.just([])), lambda below: node(st.lists(below, max_size=12)), max_leaves=60)


@given(_TREES, st.integers(40, 120))
def test_a_tree_fits_the_screen(tree: Any, width: int) -> None:
    """Whatever it has; and whole it has a line for each thing."""
    lines = tree_text(tree, width).splitlines()
    assert 1 <= len(lines) <= SCREEN
    assert all(cells(line) <= width for line in lines if "…" in line or len(line) > 60)
    whole = len(tree_text(tree, width, whole=True).splitlines())
    assert whole >= _size(tree) if tree["kind"] == "sentence" else whole == _size(tree)


@pytest.mark.parametrize("depth", [3, 9, 15])
def test_a_line_far_to_the_right_leaves_out_when_it_was(depth: int) -> None:
    """Its text is cut rather than the screen left, and where there is room the moment is there."""
    tree: Any = {"kind": "call", "text": "w" * 50, "at": "2026-11-26T09:00:00.000Z", "because": []}
    for _ in range(depth):
        tree = {**tree, "because": [tree]}
    lines = tree_text(tree, 40).splitlines()
    assert all(cells(line) <= 40 for line in lines)
    assert lines[0].endswith("]")


def _size(tree: Any) -> int:
    return 1 + sum(map(_size, tree["because"]))


def test_the_verb_tells_why(user: User) -> None:
    """Of the last mission, of a sentence of its answer and of a slot; as a document, and of what is not there."""
    assert user.run("ask", "What holds a pier?", "--effort", "reflex").code == 0
    shown = user.run("show", "last", "--json").document["data"]
    told = user.run("why", "last")
    assert (told.code, told.out.startswith(f"mission {shown['id']}"), len(told.out.splitlines()) <= SCREEN) == (
        0, True, True,
    )  # fmt: skip
    sentence = str(shown["answer"]).split(".")[0]
    found = user.run("why", sentence, "--json").document["data"]
    assert (found["kind"], found["ref"]) == ("sentence", shown["id"])
    assert json.dumps(found).count('"call"') >= 2
    assert "commit" in user.run("why", "brick_prototype_obj.name", "--whole").out
    assert user.run("why", "last", "--as-of", shown["id"]).code == 0
    for wrong in ("", "Nobody ever said this about that.", "brick_prototype_obj.nothing"):
        assert user.run("why", wrong).code == 2
