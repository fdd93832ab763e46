"""Remedies: what stays refused says what to write instead, and that passes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from batos.guardian.audit import Context, audit


@dataclass(frozen=True)
class Case:
    """A source that is refused, by which rule, words of a remedy, and the source after that was followed."""

    rule: str
    words: str
    refused: str
    followed: str


CASES = {
    "os": Case(
        "import",
        "leave it out: a method has no files, no environment",
        "import os\n\ndef go_(self, path):\n    return os.path.join('a', path)\n",
        "def go_(self, path):\n    return '/'.join(['a', path])\n",
    ),
    "time": Case(
        "import",
        "write `from datetime import datetime` and `datetime.now()`",
        "import time\n\ndef go_(self):\n    time.sleep(1)\n    return time.time()\n",
        "from datetime import datetime\n\ndef go_(self):\n    return datetime.now().timestamp()\n",
    ),
    "main": Case(
        "shape",
        "leave the whole `if` out",
        "def go_(self, n):\n    return n\n\nif __name__ == '__main__':\n    print(go_(None, 1))\n",
        "def go_(self, n):\n    return n\n",
    ),
    "hole": Case(
        "covenant",
        "let `self._p_changed = True` be the last statement of this path",
        "def go_(self, n):\n    self.count = n\n    if n > 3:\n        self._p_changed = True\n    return n\n",
        "def go_(self, n):\n    self.count = n\n    self._p_changed = True\n    return n\n",
    ),
    "flag that is never set": Case(
        "covenant",
        "let `self._p_changed = True` be the last statement",
        "def go_(self, n):\n    changed = False\n    self.count = n\n    if n > 3:\n        changed = True\n"
        "    if changed:\n        self._p_changed = True\n    return n\n",
        "def go_(self, n):\n    changed = False\n    self.count = n\n    changed = True\n"
        "    if changed:\n        self._p_changed = True\n    return n\n",
    ),
    "change behind the flag": Case(
        "covenant",
        "let `self._p_changed = True` be the last statement",
        "def go_(self, n):\n    changed = False\n    if n > 3:\n        self.count = n\n        changed = True\n"
        "    if changed:\n        self._p_changed = True\n    self.count = 1\n    return n\n",
        "def go_(self, n):\n    changed = False\n    if n > 3:\n        self.count = n\n        changed = True\n"
        "    if changed:\n        self._p_changed = True\n    return n\n",
    ),
    "file": Case(
        "syntax",
        "leave it out and keep its body: a method has no files",
        "def go_(self, path):\n    with open(path) as file:\n        return file.read()\n",
        "async def go_(self, path):\n    return '\\n'.join(await self.recall_(path))\n",
    ),
    "second method": Case(
        "shape",
        "if it is not used, leave it out",
        "def go_(self, n):\n    return n\n\ndef other_(self):\n    return 2\n",
        "def go_(self, n):\n    return n\n",
    ),
    "helper of the same name": Case(
        "shape",
        "move it into `go_`, under a name that is free there",
        "def total(rows):\n    return sum(rows)\n\ndef go_(self, rows):\n    total = len(rows)\n    return total\n",
        "def go_(self, rows):\n    def add(xs):\n        return sum(xs)\n    total = len(rows)\n    return total\n",
    ),
    "class that does something": Case(
        "syntax",
        "use a dict, and functions in the method that take the dict",
        "class Row:\n    def __init__(self, n):\n        self.n = n\n    def twice(self):\n        return 2\n\n"
        "def go_(self, n):\n    return Row(n).twice()\n",
        "def go_(self, n):\n    def twice(row):\n        return row['n'] * 2\n    return twice({'n': n})\n",
    ),
    "name of the method's own": Case(
        "unknown-name",
        "send it as a message, `self.go_(...)`",
        "def go_(self, n):\n    return 1 if n < 1 else go_(self, n - 1)\n",
        "def go_(self, n):\n    return 1 if n < 1 else self.go_(n - 1)\n",
    ),
    "handler of a log": Case(
        "import",
        'write `self.log_("info", text)`',
        "import logging\n\ndef go_(self, n):\n    logging.getLogger().addHandler(n)\n    return n\n",
        "def go_(self, n):\n    self.log_('info', str(n))\n    return n\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_remedy_that_is_followed_passes(name: str) -> None:
    """The fault is told with what to write instead; a source that does so has none."""
    case = CASES[name]
    refused = audit(case.refused, Context("go_"))
    assert not refused.accepted
    assert any(fault.rule == case.rule and case.words in fault.remedy for fault in refused.faults), refused.faults
    followed = audit(case.followed, Context("go_"))
    assert followed.faults == ()


def test_a_helper_before_the_method_is_not_taken_for_it() -> None:
    """The method is the one that is asked for, wherever it stands; nothing is said of the helper."""
    source = "def _square(x):\n    return x * x\n\ndef area_(self, r):\n    return 3 * _square(r)\n"
    verdict = audit(source, Context("area_", "area_(self, r)"))
    assert (verdict.faults, verdict.selector, verdict.parameters) == ((), "area_", "self, r")


def test_without_a_wanted_method_two_functions_are_two() -> None:
    """Which of them is meant is not known, so each is told to move."""
    source = "def run(self):\n    return square(2)\n\ndef square(x):\n    return x * x\n"
    assert audit(source, Context("run")).accepted
    told = {fault.rule: fault.remedy for fault in audit(source).faults}
    assert told["unknown-name"] == "move the definition of `square` into `run`, before its first use"
    assert "move it into `run`" in told["shape"]


def test_a_method_may_be_called_add_note() -> None:
    """A message to oneself shows nothing of Python; the method of an exception stays refused."""
    source = "def add_note(self, text):\n    self.notes.append(text)\n    self._p_changed = True\n"
    assert audit(source, Context("add_note")).accepted
    assert audit(source).accepted
    assert audit("def run(self, text):\n    return self.add_note(text)\n").accepted
    caught = "def run(self):\n    try:\n        return 1\n    except ValueError as e:\n        e.add_note('x')\n"
    assert {fault.rule for fault in audit(caught).faults} == {"introspection"}
