"""Laws of the audit: it never raises, is a function of its input, and what it accepts keeps the covenant when run."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.guardian.programs import METHODS, tried
from tests.guardian.tables import table

from batos.guardian.audit import audit
from batos.guardian.policy import Verdict

BENIGN = table("benign")
MARKER = re.compile(r"^([ \t]*)self\._p_changed = True$", re.MULTILINE)
PIECES = re.compile(r"\w+|\s+|[^\w\s]")


def checked(source: str | bytes) -> Verdict:
    """The verdict, the same each time, and plain data."""
    verdict = audit(source)
    assert verdict == audit(source)
    assert verdict.accepted == (not verdict.faults)
    assert verdict.as_dict()["digest"] == verdict.digest
    return verdict


@given(st.one_of(st.text(), st.binary(), st.text(alphabet="def run(self):\n =.[]{}'\"\\#_p@*:,0")))
def test_no_input_raises(source: str | bytes) -> None:
    """Text and bytes without any sense become a verdict, and the same one each time."""
    checked(source)


@given(st.sampled_from(sorted(BENIGN)), st.randoms(use_true_random=False), st.integers(1, 6))
def test_no_damaged_method_raises(name: str, chance: random.Random, times: int) -> None:
    """Methods with pieces dropped, doubled, swapped and mixed with others become a verdict."""
    pieces = PIECES.findall(BENIGN[name])
    others = PIECES.findall(BENIGN[chance.choice(sorted(BENIGN))])
    for _ in range(times):
        at = chance.randrange(len(pieces))
        match chance.randrange(4):
            case 0:
                del pieces[at : at + chance.randrange(1, 4)]
            case 1:
                pieces.insert(at, chance.choice(others))
            case 2:
                pieces[at] = chance.choice(pieces)
            case _:
                pieces[at:at] = others[: chance.randrange(1, 12)]
        assume(pieces)
    checked("".join(pieces))


@given(METHODS)
def test_no_method_of_the_grammar_raises(source: str) -> None:
    """Whatever paths and aliases a method has, following them ends in a verdict."""
    verdict = checked(source)
    assert {fault.rule for fault in verdict.faults} <= {"covenant", "covenant-last"}


@given(METHODS, st.booleans())
def test_what_is_accepted_keeps_the_covenant(source: str, flag: bool) -> None:
    """An accepted method that returned normally and changed something is marked, and its changes were listed."""
    verdict = audit(source)
    seen = _tried(source, flag=flag)
    assume(seen is not None)
    changed, marked = seen or (set(), False)
    slots = verdict.slots
    assert changed <= slots.writes | slots.mutates | slots.deletes
    if verdict.accepted and changed:
        assert marked


def _tried(source: str, *, flag: bool) -> tuple[set[str], bool] | None:
    try:
        return tried(source, flag=flag)
    except SyntaxError:  # `break` outside a loop, for one: Python says so when it compiles
        return None


def test_without_its_marker_a_writing_method_is_refused() -> None:
    """Each accepted method that changes its receiver is refused once its markers are gone; one that does not is not."""
    for name, source in BENIGN.items():
        slots = audit(source).slots
        rules = {fault.rule for fault in audit(MARKER.sub(r"\1pass", source)).faults}
        assert ("covenant" in rules) == bool(slots.writes | slots.mutates | slots.deletes), name
        assert rules <= {"covenant", "write-before-send"}, name


def test_a_marker_that_is_not_true_is_refused() -> None:
    """The marker has one form: no other value stands for it."""
    for name, source in BENIGN.items():
        for value in ("False", "None", "1", "bool(1)") if MARKER.search(source) else ():
            assert not audit(MARKER.sub(rf"\1self._p_changed = {value}", source)).accepted, name


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Every position of a tree in which a name stands."""
    for node in ast.walk(tree):
        for place in ("id", "attr", "arg", "name", "rest", "asname"):
            if isinstance(old := getattr(node, place, None), str) and old != "_p_changed":
                yield node, place


@given(
    st.sampled_from(sorted(BENIGN)), st.randoms(use_true_random=False), st.sampled_from(("__class__", "_x", "parent"))
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_protected_name_anywhere_is_refused(name: str, chance: random.Random, protected: str) -> None:
    """In whatever position of whatever method one name becomes a dunder or a protected one, the method is refused."""
    tree = ast.parse(BENIGN[name])
    node, place = chance.choice(list(_places(tree)))
    setattr(node, place, protected)
    changed = ast.unparse(ast.fix_missing_locations(tree))
    assert not audit(changed).accepted, changed


def test_blank_lines_and_comments_change_no_verdict() -> None:
    """What a reader does not see in the tree does not change what is found."""
    for name, source in BENIGN.items():
        first, second = audit(source), audit("\n# a comment\n" + source.replace("\n", "  \n") + "\n\n# the end\n")
        assert second.accepted, name
        assert (first.slots, first.sends, first.parameters) == (second.slots, second.sends, second.parameters)
