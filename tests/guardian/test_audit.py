"""The audit as a whole: what it accepts, what it refuses and by which rule, and what it tells beside that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.guardian.tables import table

from batos.guardian.audit import Context, audit
from batos.guardian.policy import SHIPPED, SlotUse

#: The rules that the first part of a name in form.txt stands for: at least one of them is told.
EXPECTED = {
    "dunder": {"protected", "introspection"},
    "getattr": {"computed-name", "protected", "called-only", "module-value", "unknown-name", "import"},
    "format": {"format", "introspection", "protected", "import"},
    "frame": {"introspection", "import", "unknown-name"},
    "exception": {"introspection", "syntax", "unknown-name", "protected", "exception"},
    "handed": {"bound-method", "unbound"},
    "decorator": {"decorator"},
    "class": {"syntax", "import", "type"},
    "default": {"default"},
    "walrus": {"unknown-name", "protected", "receiver"},
    "match": {"pattern", "protected"},
    "annotation": {"annotation"},
    "import": {"import", "rebound", "protected"},
    "module": {"import", "module-value", "foreign-write"},
    "eval": {"unknown-name", "import"},
    "io": {"unknown-name", "import"},
    "shadow": {"protected", "receiver", "syntax"},
    "injection": {"protected", "kernel-selector"},
    "async": {"async", "syntax", "import", "introspection"},
    "shape": {"shape", "protected"},
    "name": {"unknown-name", "called-only", "type"},
    "unicode": {"name", "parse"},
    "literal": {"literal", "bounds"},
    "syntax": {"syntax", "parse", "generator"},
    "slot": {"kernel-slot"},
}

#: Any of these tells that a change of the receiver, or the receiver itself, is not under the covenant.
COVENANT = {
    "covenant", "covenant-last", "write-before-send", "foreign-write", "receiver", "rebound", "generator",
}  # fmt: skip


def test_common_methods_are_accepted() -> None:
    """What a small model writes for facets, protocols, counters, collections and the rest is accepted as it is."""
    verdicts = {title: audit(source) for title, source in table("benign").items()}
    assert {title: list(map(str, verdict.faults)) for title, verdict in verdicts.items() if verdict.faults} == {}
    assert all(verdict.accepted and verdict.listable for verdict in verdicts.values())


def test_an_unmarked_change_is_refused() -> None:
    """However the receiver is changed, and however the marker is feigned, the audit says so."""
    told = {title: {fault.rule for fault in audit(source).faults} for title, source in table("covenant").items()}
    assert {title: rules for title, rules in told.items() if not rules & COVENANT} == {}


@pytest.mark.parametrize("category", EXPECTED)
def test_a_fault_of_form_is_refused_by_its_rule(category: str) -> None:
    """Names, syntax, modules, formats and shapes outside the dialect are refused for what they are."""
    sources = {title: source for title, source in table("form").items() if title.startswith(f"{category}/")}
    told = {title: {fault.rule for fault in audit(source).faults} for title, source in sources.items()}
    assert told
    assert {title: rules for title, rules in told.items() if not rules & EXPECTED[category]} == {}


def test_every_category_of_form_is_expected() -> None:
    """No source of the table is left out."""
    assert {title.partition("/")[0] for title in table("form")} == set(EXPECTED)


def test_every_fault_says_where_why_and_what_instead() -> None:
    """A fault without a remedy, or on a line that is not there, would not help the model."""
    for source in (*table("covenant").values(), *table("form").values()):
        lines = source.count("\n") + 1
        for fault in audit(source).faults:
            assert all((fault.why, fault.remedy, fault.rule))
            assert 0 <= fault.line <= lines


def test_all_faults_are_told() -> None:
    """Not the first fault but every one: name, module, slot and covenant at once."""
    source = "import os\ndef run(self, _x):\n    self.parent = vars(_x)\n    self.count = 1\n"
    told = [(fault.line, fault.rule) for fault in audit(source).faults]
    rules = ["import", "protected", "protected", "unknown-name", "protected", "covenant"]
    assert told == list(zip([1, 2, 3, 3, 3, 4], rules, strict=True))


def test_the_slots_are_listed_by_what_is_done_with_them() -> None:
    """Reads, writes, deletes, what is changed in place through an alias, and what is sent."""
    source = """
async def run(self, key):
    rows = self.rows
    rows.append(getattr(self, "name", ""))
    del self.draft
    self.count += 1
    setattr(self, "last", key)
    self._p_changed = True
    return await self.child.answer_(self.title_line(), self.infer_("x"))
"""
    verdict = audit(source)
    assert [(fault.line, fault.rule) for fault in verdict.faults] == [(9, "covenant-last")]
    assert verdict.slots == SlotUse(
        reads=frozenset({"rows", "name", "count", "child"}),
        writes=frozenset({"count", "last"}),
        mutates=frozenset({"rows", "count"}),
        deletes=frozenset({"draft"}),
    )
    assert verdict.sends == {"answer_", "title_line", "infer_"}
    assert (verdict.selector, verdict.parameters, verdict.is_async) == ("run", "self, key", True)


def test_a_local_change_is_no_change_of_the_receiver() -> None:
    """Copies, new lists and what they hold may be changed: only what is reached from a slot counts."""
    source = "def run(self):\n    rows = [dict(row) for row in self.rows]\n    rows[0]['x'] = 1\n    return rows\n"
    verdict = audit(source)
    assert verdict.accepted
    assert verdict.slots == SlotUse(reads=frozenset({"rows"}))


def test_selector_and_signature_are_held() -> None:
    """A method that is not called what it is asked for, or with other parameters, is refused."""
    source = "def walk(self, query, *rest, depth=1):\n    return query\n"
    assert audit(source, Context(selector="walk", signature="walk(self, query, *rest, depth)")).accepted
    for context in (Context(selector="run"), Context(signature="walk(self, text)"), Context(signature="walk(self)")):
        assert [fault.rule for fault in audit(source, context).faults] == ["selector"]
    assert audit(source, Context(signature="not a signature (")).accepted


def test_the_verdict_names_its_policy_and_source() -> None:
    """Accepted or not, a verdict says under which policy it was given and of which bytes."""
    for source in ("def run(self):\n    return 1\n", "def run(self", b"\xff"):
        verdict = audit(source)
        assert verdict.policy == SHIPPED.version
        assert len(verdict.digest) == 64
    assert audit("é").digest == audit("é".encode()).digest


def test_a_stricter_policy_is_another_policy() -> None:
    """What may be used is data: without a builtin the same source is refused, under another version."""
    stricter = replace(SHIPPED, functions=SHIPPED.functions - {"sum"})
    source = "def run(self):\n    return sum(self.values)\n"
    assert audit(source).accepted
    verdict = audit(source, Context(policy=stricter))
    assert [fault.rule for fault in verdict.faults] == ["unknown-name"]
    assert verdict.policy == stricter.version != SHIPPED.version


def test_the_grants_and_made_objects_that_a_source_reaches_for_are_listed() -> None:
    """A grant and a made object are listed by their names, and the verdict's document has them."""
    source = """async def note_(self, text):
    found = await self.tools.weather.forecast_(text)
    notes = await self.capability_("notes")
    await notes.append_("a.txt", str(found))
"""
    verdict = audit(source)
    assert verdict.accepted, verdict.faults
    assert verdict.as_dict()["capabilities"] == ["notes", "weather"]


def test_the_name_of_a_grant_is_a_literal_text() -> None:
    """A name that is computed cannot be listed before the source runs, and is refused."""
    source = """async def note_(self, name):
    notes = await self.capability_(name)
    await notes.append_("a.txt", name)
"""
    assert [fault.rule for fault in audit(source).faults] == ["computed-name"]
