"""What is tidied means what it meant: shapes that would mean something else stay as they are, and are refused."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import pytest
from tests.guardian.tables import table

from batos.guardian.audit import Context, audit
from batos.guardian.tidying.tidy import tidy

UNSURE = table("unsure")
#: Sources of our hostile tables that pass where the method is named, with what is read.
SHAPES = {
    ("form", "shape/statement_before"): "def run(self):\n    x = 1\n    return x",
    ("form", "class/plain"): "def run(self):\n    Row = {'x': 1}\n    return Row['x']",
    ("form", "class/top_level"): "def run(self):\n\n    def Row():\n        return {}\n    return Row()",
    ("form", "exception/own_class"): "def run(self):\n    pass\n    raise Exception",
}
VALUE = """
from contextlib import nullcontext

def run(self, n):
    rows = [1, 2]
    with nullcontext(rows.pop()):
        n += 1
    return rows
"""


def result(source: str, log: list[Any]) -> object:
    """What Python gives for the method of a source."""
    scope: dict[str, Any] = {}
    exec(compile(source, "<source>", "exec"), scope)
    return scope["run"](SimpleNamespace(count=1, log_=lambda *said: log.append(said)), 1)


def read(source: str) -> str:
    """A source as guardian and cell read it."""
    return ast.unparse(tidy(ast.parse(source), "run", "self"))


@pytest.mark.parametrize("name", sorted(UNSURE))
def test_what_would_mean_something_else_is_refused(name: str) -> None:
    """Names that collide, things made once, what is computed for its effect: none passes."""
    verdict = audit(UNSURE[name], Context("run"))
    assert not verdict.accepted
    assert all(fault.remedy for fault in verdict.faults)


def test_what_a_context_is_given_is_computed() -> None:
    """Also where nothing takes it."""
    assert audit(VALUE, Context("run")).accepted
    assert result(read(VALUE), []) == result(VALUE, []) == [1]


@pytest.mark.parametrize(("kind", "name"), sorted(SHAPES))
def test_hostile_sources_that_pass_by_their_shape_do_nothing(kind: str, name: str) -> None:
    """The whole of what is run is here."""
    assert read(table(kind)[name]) == SHAPES[kind, name]
