"""A mission read back: whole, with its wishes, its times, its calls and their exact prompts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.render.mission_documents import BRIEF, ended, mission

from batos.cli.render.mission_record import ERASED, find_calls, mission_text, prompts_text
from batos.protocol.errors import NotFound
from batos.records.erased_words import MARK
from batos.terminal.console import moment_text


def test_a_mission_read_back() -> None:
    """One that failed shows reason and remedy; one that nobody works on says so; a done one has it all."""
    reason = {"code": "refused", "message": "the budget is spent", "remedy": "Ask less.", "retry": False}
    failed = mission_text(ended("failed", reason=reason), voices=False)
    assert "reason   the budget is spent\nremedy   Ask less.\n" in failed
    assert "undone" not in failed
    for status, said in (
        ("queued", "stands   no server runs; `batos resume` or `batos serve` runs it"),
        ("running", "stands   the process that ran it has ended; `batos resume` goes on with it"),
    ):
        undone = mission_text(ended(status), voices=False)
        assert f"status   {status}" in undone
        assert said in undone
        assert "spent    5 calls" in undone
        assert "undone" not in mission_text(ended(status), voices=False, served=True)
    assert "states   none" in mission_text(ended("queued", states=[]), voices=False)
    done = mission_text(mission(), voices=False)
    for line in (
        "file     report.txt (abababababab)",
        f"asked    {moment_text(mission()['accepted_at'])} by ada",
        "model    batos-brick:0123456789ab (cdcdcdcdcdcd)",
        "trust    model, lineage external",
        f"commit   {mission()['tid']}",
    ):
        assert line in done
    assert [line for line in done.splitlines() if line.startswith("mission  ")] == [f"mission  {mission()['id']}"]


def test_an_erased_mission_says_that_its_record_was_erased() -> None:
    """And not that nothing was spent: the journal has the digests of its calls."""
    assert ERASED == MARK
    erased = ended("undone", brief={**BRIEF, "text": ERASED}, cost=None, states=[])
    shown = mission_text(erased, voices=False)
    assert "spent    its record was erased; the digests of its calls are kept" in shown
    assert "nothing was spent" not in shown


def test_prompts() -> None:
    """Each call with its path, its messages and the answer, also one that has none yet."""
    call: Any = {"path": "brick/weave#0", "state": "done", "model": "m", "tokens": {}, "response": {"text": "Yes."}}
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it?"}]
    shown = prompts_text([call | {"messages": messages}, call | {"messages": [], "response": None}])
    assert "--- system\nBe brief.\n--- user\nIs it?\n--- answer\nYes." in shown
    assert shown.endswith("--- answer\nnone yet")
    (told,) = find_calls([call | {"path": "brick/delegating/Guide#0"}, call], "guide")
    told["tokens"], told["messages"] = {"prompt": 1178, "answer": 50}, []
    counted = prompts_text([told])
    assert "=== brick/delegating/Guide#0 (done, m, 1178 -> 50 tokens)" in counted
    written = call | {"path": "generation#0/attempt0", "method": "brick_prototype_obj.guide_facet_", "messages": []}
    assert find_calls([call, written], "guide_facet_") == [written]
    assert "=== guide_facet_: generation#0/attempt0 (done, m)" in prompts_text([written])
    with pytest.raises(NotFound, match="no call of this mission has 'rogue'") as raised:
        find_calls([call], "rogue")
    assert raised.value.remedy == "Its calls: brick/weave."


def test_what_hides_in_a_prompt_is_named() -> None:
    """Whoever reads what was sent sees the signs that a terminal does not show."""
    call: Any = {"path": "p", "state": "done", "model": "m", "tokens": {}, "response": {"text": "No\u200b."}}
    shown = prompts_text([call | {"messages": [{"role": "user", "content": "Pay\U000e0041 \u202ehim"}]}])
    assert "Pay<U+E0041> <U+202E>him" in shown
    assert "No<U+200B>." in shown


def test_what_was_asked_is_read_back_whole() -> None:
    """Persona, effort, deadline, budget, policy and message stand in it; times of states; a line for each call."""
    wishes = {
        "persona": "BRICK",
        "deadline": "2026-01-01T00:05:00.000Z",
        "priority": 0,
        "budget": {"calls": 5},
        "policy": {"combine": "vote"},
        "message": {"receiver": "genesis_obj", "selector": "log_", "arguments": ["a", 1]},
    }
    states = [{"state": each, "at": f"2026-01-01T00:00:0{second}Z"} for second, each in enumerate(("IDLE", "COMPLETE"))]
    call: Any = {"path": "brick/synthesizing#0", "state": "done", "tokens": {"prompt": 12, "answer": 3}, "model": "m"}
    shown = mission_text(
        mission(brief={**BRIEF, **wishes}, states=states, prompts=[{**call, "response": {"total_seconds": 1.25}}]),
        voices=False,
    )
    for line in (
        "persona  BRICK",
        f"deadline {moment_text(str(wishes['deadline']))}",
        "priority 0",
        "budget   calls 5",
        "policy   combine vote",
        'message  receiver genesis_obj, selector log_, arguments ["a", 1]',
        "took     IDLE 1.0 s",
        "brick/synthesizing#0  done   12      3       1.2      m",
    ):
        assert f"\n{line}" in shown
