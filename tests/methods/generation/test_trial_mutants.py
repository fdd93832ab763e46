"""Mutants of a method: each another method, the same each time, bounded, and never one without its marker."""

from __future__ import annotations

import ast

from batos.methods.generation.trial import MOST_MUTANTS, mutants

SOURCE = '''
async def sum_(self, items, least=2):
    """What items come to."""
    total = 0
    for item in items:
        if item > least and item != 7:
            total += item * 2
    self.total = total
    self._p_changed = True
    return total if total else "nothing"
'''
MARKER = "self._p_changed = True"


def test_each_mutant_is_another_method() -> None:
    """Every mutant parses, differs from the method and from every other mutant, and still ends in its marker."""
    found = mutants(SOURCE)
    assert len(found) == len(set(found)) == MOST_MUTANTS
    original = ast.unparse(ast.parse(SOURCE))
    assert original not in found
    for text in found:
        assert ast.unparse(ast.parse(text)) == text
        assert MARKER in text
        assert text.startswith("async def sum_(self, items, least")


def test_mutants_are_the_same_each_time() -> None:
    """Nothing of chance is in them: their share is the same whenever it is measured."""
    assert mutants(SOURCE) == mutants(SOURCE)


def test_each_kind_of_place_is_broken() -> None:
    """Results, conditions, comparisons, sums, numbers and whole statements are each broken in some mutant."""
    short = "def f_(self, a):\n    b = a + 1\n    if a > 1 and b:\n        return b\n    return 'x' * 2\n"
    found = mutants(short)
    told = "\n".join(found)
    for broken in ("a - 1", "a + 2", "pass", "a <= 1", "a > 1 or b", "not (a > 1 and b)", "return None", "'x' + 2"):
        assert broken in told, broken


def test_a_method_with_nothing_to_break_has_no_mutant() -> None:
    """What only passes a text on is left as it is: a text is nothing that a check could see."""
    assert mutants("def f_(self):\n    pass\n") == []
    assert mutants("def f_(self):\n    return None\n") == []


def test_a_long_method_is_broken_everywhere() -> None:
    """Of many places those at even distances are taken: the last lines of a long method count as much as the first."""
    lines = [f"    x{number} = {number}" for number in range(100)]
    found = mutants("\n".join(["def f_(self):", *lines, "    return x99"]))
    assert len(found) == MOST_MUTANTS
    assert any("x99 = 100" in text or "x9" in "".join(_differing(text, lines)) for text in found)


def _differing(text: str, lines: list[str]) -> list[str]:
    return [line for line in text.splitlines() if line not in lines]
