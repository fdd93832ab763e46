"""Faults as their author is told them: a line each, with the corrected line where the guardian then finds no fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.guardian.tables import table

from batos.guardian.audit import Context, audit
from batos.methods.generation.fault_lines import correct, fault_lines, missing_return

CONTEXT = Context("go_", "go_(self, n)")
#: The fault of a source (its rule), the source, and what its author is told.
TOLD = {
    "another name": (
        "selector",
        "def other(self, n):\n    return n\n",
        "line 1: write `def go_(self, n):` instead of `def other(self, n):`",
    ),
    "other parameters": (
        "selector",
        "def go_(self, n, m):\n    return n\n",
        "line 1: write `def go_(self, n):` instead of `def go_(self, n, m):`",
    ),
    "await in a plain function": (
        "async",
        "def go_(self, n):\n    return await self.infer_(n)\n",
        "line 1: write `async def go_(self, n):` instead of `def go_(self, n):`",
    ),
    "an answer that is dropped": (
        "async",
        "async def go_(self, n):\n    self.infer_(n)\n",
        "line 2: write `return await self.infer_(n)` instead of `self.infer_(n)`",
    ),
    "a module without its import": (
        "unknown-name",
        "def go_(self, n):\n    return math.sqrt(n)\n",
        "line 1: write `import math` before `def go_(self, n):`",
    ),
    "a name of one module": (
        "unknown-name",
        "def go_(self, n):\n    return Counter(n)['a']\n",
        "line 1: write `from collections import Counter` before `def go_(self, n):`",
    ),
    "a misspelt name": (
        "unknown-name",
        "def go_(self, n):\n    total = n\n    return totl\n",
        "line 3: write `return total` instead of `return totl`",
    ),
    "a misspelt builtin": (
        "unknown-name",
        "def go_(self, n):\n    return sorte(n)\n",
        "line 2: write `return sorted(n)` instead of `return sorte(n)`",
    ),
    "a word of another language": (
        "unknown-name",
        "def go_(self, n):\n    return null\n",
        "line 2: write `return None` instead of `return null`",
    ),
    "a message without its receiver": (
        "unknown-name",
        "async def go_(self, n):\n    return await infer_(n)\n",
        "line 2: write `return await self.infer_(n)` instead of `return await infer_(n)`",
    ),
    "an import that nothing uses": (
        "import",
        "import os\ndef go_(self, n):\n    return n\n",
        "line 1: leave out `import os`",
    ),
    "a misspelt name of a module": (
        "import",
        "from math import sqroot\ndef go_(self, n):\n    return n\n",
        "line 1: write `from math import sqrt` instead of `from math import sqroot`",
    ),
    "no marker": (
        "covenant",
        "def go_(self, n):\n    self.count = n\n    return n\n",
        "line 3: write `self._p_changed = True` before `return n`",
    ),
    "no marker at the end": (
        "covenant",
        "def go_(self, n):\n    self.count = n\n",
        "line 3: write `self._p_changed = True` after `self.count = n`",
    ),
    "another marker": (
        "marker",
        "def go_(self, n):\n    self.count = n\n    self._p_changed = 1\n",
        "line 3: write `self._p_changed = True` instead of `self._p_changed = 1`",
    ),
    "a decorator": (
        "decorator",
        "@cache\ndef go_(self, n):\n    return n\n",
        "line 1: leave out `@cache`",
    ),
    "an annotation": (
        "annotation",
        "def go_(self, n: f(1)):\n    return n\n",
        "line 1: write `def go_(self, n):` instead of `def go_(self, n: f(1)):`",
    ),
    "no colon": (
        "parse",
        "def go_(self, n)\n    return n\n",
        "line 1: write `def go_(self, n):` instead of `def go_(self, n)`",
    ),
    "an open bracket": (
        "parse",
        "def go_(self, n):\n    return (n\n",
        "line 2: write `return (n)` instead of `return (n`",
    ),
    "else if": (
        "parse",
        "def go_(self, n):\n    if n:\n        return 1\n    else if n == 2:\n        return 2\n    return 3\n",
        "line 4: write `elif n == 2:` instead of `else if n == 2:`",
    ),
    "an assignment as a condition": (
        "parse",
        "def go_(self, n):\n    if n = 1:\n        return 1\n    return 2\n",
        "line 2: write `if n == 1:` instead of `if n = 1:`",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_fault_is_told_with_the_corrected_line(name: str) -> None:
    """The fault has its rule, and the source with the correction has one fault less."""
    rule, source, told = TOLD[name]
    verdict = audit(source, CONTEXT)
    assert rule in {fault.rule for fault in verdict.faults}
    lines = fault_lines(source, verdict, CONTEXT)
    assert any(line.startswith(told) for line in lines), lines
    assert all("\n" not in line for line in lines)


@pytest.mark.parametrize("kind", ["covenant", "form"])
def test_each_fault_of_the_guardians_table_is_one_line(kind: str) -> None:
    """With the number of its line; a correction that is offered is one by the guardian's own judgement."""
    for source in list(table(kind).values())[::4]:
        context = Context()
        verdict = audit(source, context)
        for fault, line in zip(verdict.faults, fault_lines(source, verdict, context), strict=False):
            assert "\n" not in line
            assert line.startswith(("line ", "the source"))
            found = correct(source, fault, verdict, context)
            if found is not None:
                assert len(audit(found.apply(source), context).faults) < len(verdict.faults) or fault.rule == "parse"


def test_a_fault_without_a_correction_has_its_line_and_the_remedy() -> None:
    """The author sees which line is meant without counting."""
    source = "def go_(self, n):\n    return open(n).read()\n"
    (line,) = fault_lines(source, audit(source, CONTEXT), CONTEXT)
    assert line.startswith("line 2, `return open(n).read()`: the name `open`")
    assert "leave it out" in line


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("total = n", "line 2: write `return total` after `total = n`"),
        ("print(n + 1)", "line 2: write `return n + 1` instead of `print(n + 1)`"),
        ("n + 1", "line 2: write `return n + 1` instead of `n + 1`"),
        ("for m in n: pass", "line 1: the method returns nothing"),
        ("return n", ""),
    ],
)
def test_a_method_that_returns_nothing_is_told_what_to_return(body: str, told: str) -> None:
    """Where its last line has a value."""
    assert missing_return(f"def go_(self, n):\n    {body}\n", "go_").startswith(told)


LINES = st.sampled_from(
    [
        "def go_(self, n):",
        "    return n",
        "    return totl",
        "    self.count = n",
        "import os",
        "@a",
        "    if n = 1:",
        "",
        "(",
    ]
)


@given(st.lists(LINES | st.text(max_size=8), max_size=8).map("\n".join))
def test_it_never_raises(source: str) -> None:
    """Whatever a model wrote, each fault is one line."""
    verdict = audit(source, CONTEXT)
    assert len(fault_lines(source, verdict, CONTEXT)) <= len(verdict.faults)


@pytest.mark.parametrize("source", ["import os\n", "x = 3\n", "print('a')\n", "import os\nx = 3\n"])
def test_nothing_is_to_be_left_out_where_no_method_is(source: str) -> None:
    """What is left would be no method either."""
    assert not any("leave out `" in line for line in fault_lines(source, audit(source, CONTEXT), CONTEXT))
