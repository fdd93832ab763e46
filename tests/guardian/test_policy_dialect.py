"""The dialect as it is told: everything that the policy lists is in the document, and the short text fits a window."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.guardian.tables import table

from batos.guardian.audit import Context, audit
from batos.guardian.policy import SHIPPED, dialect_document, dialect_text

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "dialect.md"
CODE = re.compile(r"`([^`]+)`")

LISTS = {
    "statements": SHIPPED.statements,
    "expressions": SHIPPED.expressions,
    "parts": SHIPPED.parts,
    "classes": SHIPPED.pattern_classes,
    "builtins": SHIPPED.builtins,
    "introspection": SHIPPED.introspection,
    "primitives": SHIPPED.primitives,
    "annotations": SHIPPED.annotations,
    "modules": SHIPPED.modules.keys(),
    "methods": SHIPPED.plain_methods,
    "members": frozenset().union(*SHIPPED.modules.values()),
    "patterns": {SHIPPED.protected, SHIPPED.kernel_selectors},
}


@pytest.mark.parametrize("names", LISTS.values(), ids=LISTS.keys())
def test_the_document_names_all_that_the_policy_lists(names: frozenset[str]) -> None:
    """docs/dialect.md leaves out nothing that may be used, and nothing that is refused by a list."""
    told = set(CODE.findall(DOCUMENT.read_text(encoding="utf-8")))
    assert set(names) - told == set()


def test_the_document_names_every_rule() -> None:
    """A rule that a fault can have is explained in the document."""
    told = set(CODE.findall(DOCUMENT.read_text(encoding="utf-8")))
    sources: list[str | bytes] = [*table("covenant").values(), *table("form").values(), b"\xff", "x" * 40_000]
    rules = {fault.rule for source in sources for fault in audit(source, Context(selector="no")).faults}
    assert rules - told == set()


def test_another_policy_is_another_document() -> None:
    """Document and text are made from the policy, the same for the same one."""
    other = replace(SHIPPED, name="strict", functions=SHIPPED.functions - {"sum"})
    assert dialect_document() == dialect_document(SHIPPED) != dialect_document(other)
    assert "`sum`" not in dialect_document(other)
    assert dialect_text() != dialect_text(other)


def test_what_a_coder_is_told_is_short() -> None:
    """The text leaves most of a window of 4096 tokens to the object, the wish and the reply."""
    assert len(dialect_text()) < 4000
