"""Methods as people read them."""

from __future__ import annotations

import io
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batos.terminal.console import Console, moment_text
from batos.terminal.layout import plain
from batos.verbs import method_verbs as telling

MADE = "2026-11-22T10:00:00.000Z"

LEDGER: Any = {
    "calls": 12,
    "chosen": 10,
    "control": 2,
    "checks": 2,
    "faults": 1,
    "gate_faults": 0,
    "bad": 1,
    "undone": 0,
    "seconds": 4.0,
    "tokens": 900,
    "better": 0.1,
    "seconds_saved": 1.5,
    "tokens_saved": 300,
}
METHOD: Any = {
    "method": "brick_prototype_obj.plan_facet_",
    "object": "brick_prototype_obj",
    "selector": "plan_facet_",
    "kind": "facet",
    "state": "active",
    "active": 2,
    "revision": 2,
    "revisions": 3,
    "source": "async def plan_facet_(self, query):\n    return query\n",
    "intent": "Plan it.",
    "verdict": {"accepted": True, "policy": "shipped-1"},
    "checks": [{}, {}],
    "provenance": {
        "at": MADE,
        "model": "coder",
        "model_digest": "c0de" * 16,
        "generation": "g-1",
        "missions": ["m-1", "m-2"],
        "trust": "model",
        "mutants": {"made": 4, "killed": 3},
    },
    "ledger": LEDGER,
    "retired": None,
    "barred": None,
}


def test_a_method_whole() -> None:
    """Where it comes from, what it passed, how it does, and its source as it is."""
    assert telling.method_text(METHOD) == (
        "method   brick_prototype_obj.plan_facet_ (facet), active\n"
        "revision 2 of 3: is active\n"
        "intent   Plan it.\n"
        f"made     {moment_text(MADE)} by coder (c0dec0dec0de) in g-1\n"
        "trust    model\n"
        "for      m-1, m-2\n"
        "verdict  accepted by shipped-1\n"
        "checks   2 passed; they also catch 3 of 4 broken variants\n"
        "ledger   12 uses: 10 chosen, 2 interpreted as its control; 1 fault, 0 faults of the gate\n"
        "saved    1.5 s and 300 tokens against its control\n"
        "\n"
        "async def plan_facet_(self, query):\n"
        "    return query"
    )


def test_what_a_person_made_and_what_was_retired() -> None:
    """Who wrote it, who said yes, why it went and why it is not made again."""
    made = {"model": "", "by": "ada", "trust": "external", "approval": "a-1", "approved_by": "ada", "missions": []}
    gone = {"at": "2026-11-23T10:00:00.000Z", "reason": "it failed in 5 of 5 uses"}
    shown = METHOD | {"active": 0, "state": "retired", "retired": gone, "barred": gone["reason"]}
    text = telling.method_text(shown | {"provenance": METHOD["provenance"] | made, "ledger": LEDGER | {"better": None}})
    for line in (
        "revision 2 of 3: none is active, the intent is",
        f"made     {moment_text(MADE)} by ada",
        "trust    external, approved as a-1 by ada",
        "retired  2026-11-23T10:00:00.000Z: it failed in 5 of 5 uses",
        "barred   it is not made again by the same model for the same intent: it failed in 5 of 5 uses",
    ):
        assert line in text.splitlines()
    assert "saved" not in text


def test_lists() -> None:
    """A line each, under heads."""
    line = METHOD | LEDGER | {"reason": None}
    gone = line | {"active": 0, "state": "retired", "tokens_saved": None, "reason": "it failed"}
    shown = telling.methods_text({"methods": [line, gone], "waiting": 0}).splitlines()
    assert [each.split() for each in shown[1:]] == [
        ["brick_prototype_obj.plan_facet_", "facet", "active", "2", "of", "3", "12", "1", "300"],
        ["brick_prototype_obj.plan_facet_", "facet", "retired", "none", "of", "3", "12", "1", "it", "failed"],
    ]
    tool: Any = {
        "tool": "tools_obj.winch_",
        "signature": "winch_(self, load)",
        "calls": 3,
        "what": "Lift\n  it.",
        "by": "coder",
    }
    assert telling.tools_text({"tools": [tool], "written": []}).splitlines()[1].split() == [
        *("tools_obj.winch_", "winch_(self,", "load)", "3", "coder", "Lift", "it."),
    ]
    look: Any = {
        "tool": "look",
        "kind": "program",
        "by": "ada",
        "place": "m-1",
        "reads": True,
        "error": "",
        "what": "Look.",
    }
    lamp = look | {"tool": "lamp", "kind": "file", "by": "the home", "place": "/tools/lamp.py", "reads": False}
    broken = lamp | {"tool": "broken.py", "error": "SyntaxError: line 1"}
    shown = telling.tools_text({"tools": [], "written": [look, lamp, broken]}).splitlines()
    assert [" ".join(each.split()) for each in shown[1:]] == [
        "look program ada m-1 reads Look.", "lamp file the home /tools/lamp.py may change something Look.",
        "broken.py file the home /tools/lamp.py SyntaxError: line 1",
    ]  # fmt: skip


def test_a_history() -> None:
    """Revisions with how they did, the active one marked; then every change with who made it and why."""
    at = "2020-06-02T10:00:00.000Z"
    came = {"at": at, "by": "g-1", "reason": "generated"}
    went = {"at": at, "by": "ada", "reason": "revision 2 took its place"}
    one = LEDGER | {"revision": 1, "active": False, "digest": "d", "model": "coder", "came": came, "went": went}
    two = one | {"revision": 2, "active": True, "model": "", "came": came | {"by": "ada"}, "went": None}
    change = {
        "number": 1,
        "event": "installed",
        "at": at,
        "by": "g-1",
        "reason": "generated",
        "former": 0,
        "revision": 1,
    }
    lines = telling.history_text(METHOD | {"revisions": [one, two], "changes": [change]}).splitlines()
    assert lines[0] == "brick_prototype_obj.plan_facet_ (facet), active"
    assert lines[3].split() == ["1", "2020-06-02", "coder", "12", "1", "revision", "2", "took", "its", "place"]
    assert lines[4].split() == ["*2", "2020-06-02", "ada", "12", "1"]
    assert lines[7].split() == ["1", "2020-06-02", "installed", "0", ">", "1", "g-1", "generated"]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_no_source_moves_the_cursor(source: str, intent: str) -> None:
    """Whatever a model wrote, a terminal is told no control character of it; its own lines stay."""
    out = io.StringIO()
    console = Console(out, io.StringIO(), as_json=False, has_colour=True)
    console.write(telling.method_text(METHOD | {"source": f"a\x1b[2J{source}", "intent": intent}))
    assert out.getvalue() == plain(out.getvalue())
    assert "\x1b" not in out.getvalue()
