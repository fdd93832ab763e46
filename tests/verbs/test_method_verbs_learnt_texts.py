"""What a mission says of its methods and of what it learnt: which ran and how, and what that cost beside it."""

from __future__ import annotations

from typing import Any

from batos.verbs.method_verbs import learning_line, learnt_lines, ran_lines


def ran(selector: str, way: str, revision: str = "tid:0x1") -> Any:
    """A message that was answered, as provenance has it."""
    return {"selector": selector, "as": way, "revision": revision}


def learnt(outcome: str, calls: int = 0, **more: Any) -> Any:
    """What became of one generation, as provenance has it."""
    return {"receiver": "r", "selector": "wink_", "outcome": outcome, "calls": calls, "tokens": 1000 * calls, **more}


def test_every_way_to_answer_is_named() -> None:
    """Methods with their revision, those made just now, interpreted intents and controls, each selector once."""
    methods = [
        ran("sum_", "method", "3"),
        ran("wink_", "interpreted intent"),
        ran("sum_", "method", "3"),
        ran("nod_", "method, made in this mission", "1"),
        ran("bow_", "interpreted intent, as the control of its method"),
    ]
    assert list(ran_lines({"methods": methods})) == [
        "ran      sum_ 3 (2 times): method",
        "ran      wink_: interpreted intent",
        "ran      nod_ 1: method, made in this mission",
        "ran      bow_: interpreted intent, as the control of its method",
    ]
    assert list(ran_lines({})) == []


def test_what_was_learnt_and_its_cost_stand_together() -> None:
    """One sum for all that became methods; who waited for another mission's paid nothing."""
    made = [learnt("installed", 1), learnt("installed", 2, selector="nod_"), learnt("made", selector="nod_")]
    assert list(learnt_lines({"generated": made})) == [
        "learnt   wink_, nod_: 3 calls, 3000 tokens, beside what was spent"
    ]
    assert list(learnt_lines({"generated": made[2:]})) == ["learnt   nod_: nothing was paid"]
    assert list(learnt_lines({})) == []


def test_what_methods_cost_is_one_line() -> None:
    """Of whatever became of them, and nothing where nothing was paid."""
    tried = [learnt("left", 2), learnt("installed", 1), learnt("declined")]
    assert learning_line({"generated": tried}) == "Methods: 3 calls, 3000 tokens, beside what was spent."
    assert learning_line({"generated": tried[2:]}) == learning_line({}) == ""


def test_what_was_not_learnt_says_why() -> None:
    """Each failure has a line of its own, cut to what a line holds; what waits names its approval."""
    failure = {"message": "it does not\npass " + "x" * 300}
    for told, said in (
        (learnt("failed", 4, failure=failure), "learnt   not wink_: it failed (it does not pass xx"),
        (learnt("declined", failure=failure), "learnt   not wink_: it was not tried again (it"),
        (learnt("budget"), "learnt   not wink_: it was not tried; nothing was paid"),
        (learnt("left", 1), "learnt   not wink_: it was stopped while being written; 1 call, 1000 tokens, beside"),
        (learnt("asked", 1, approval="a-1"), "learnt   wink_, it waits for approval (batos approvals a-1): 1 c"),
    ):
        (line,) = learnt_lines({"generated": [told]})
        assert line.startswith(said)
        assert len(line) < 320
