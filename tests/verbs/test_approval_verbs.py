"""What people are shown of what waits for them: all of it, and nothing in it hidden."""

from __future__ import annotations

import io
import unicodedata
from contextlib import redirect_stdout
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.verbs.test_trial_verbs import trial

from batos.terminal.layout import plain
from batos.verbs.approval_verbs import approvals_text, approved_text, listing_text, visible, whole_text

LINE: Any = {
    "id": "a-1",
    "status": "asked",
    "object": "brick_prototype_obj",
    "selector": "say_",
    "digest": "0123456789abcdef" * 4,
    "former": 2,
    "asked_at": "2020-06-02T10:00:00.000Z",
    "until": "2020-06-09T10:00:00.000Z",
    "missions": ["m-1"],
}
SOURCE = "def say_(self):\n    return 'hello'\n"
WHOLE: Any = {
    **LINE,
    "intent": {"name": "greeting", "text": "say hello", "signature": "say_(self)"},
    "wish": None,
    "source": SOURCE,
    "verdict": {
        "accepted": True,
        "policy": "shipped-1",
        "faults": [],
        "slots": {"reads": ["name"], "writes": []},
        "sends": ["infer_"],
    },
    "checks": [{"arguments": ["x"], "result": "hello"}],
    "mutants": {"made": 4, "killed": 3},
    "provenance": {"model": "coder", "model_digest": "f" * 64, "at": "long ago", "trust": "model"},
    "diff": ["--- revision 2", "+++ asked", "@@ -2 +2 @@", "-    return 'hi'", "+    return 'hello'"],
}


def test_one_is_shown_with_all_that_is_known_of_it() -> None:
    """Source by line, verdict, checks, how sharp they are, the difference, and how to answer."""
    text = whole_text(WHOLE)
    for told in (
        "in the place of revision 2",
        LINE["digest"],
        "1  def say_(self):",
        "guardian accepts it, policy shipped-1",
        "reads    name",
        "sends    infer_",
        '{"arguments": ["x"], "result": "hello"}',
        "3 of 4 broken variants (75 %)",
        "+    return 'hello'",
        "batos approve a-1",
        "1 mission waits",
        "made by  coder (ffffffffffff), long ago, trust model",
    ):
        assert told in text
    answered = WHOLE | {"status": "rejected", "by": "ada", "why": "too loud", "diff": None, "answered_at": "then"}
    assert "because  too loud" in whole_text(answered)
    assert "batos approve" not in whole_text(answered)


def test_what_a_guardian_refused_is_told_by_line() -> None:
    """And nothing is made up where little is known."""
    fault = {"line": 3, "rule": "covenant", "why": "it does not mark"}
    bare = WHOLE | {"verdict": {"accepted": False, "faults": [fault]}, "mutants": {}, "intent": None, "diff": []}
    text = whole_text(bare)
    assert "line 3, covenant: it does not mark" in text
    assert "word for word revision 2" in text
    assert "mutants" not in text


def test_a_whole_object_has_a_verdict_for_each_method() -> None:
    """Each with its selector, and with what it reads and sends."""
    verdicts = {name: {**WHOLE["verdict"], "sends": [f"{name}x_"]} for name in ("search_", "fetch_")}
    text = whole_text(WHOLE | {"verdict": {"accepted": True, "methods": verdicts}})
    for told in ("accepts it of search_, policy shipped-1", "sends    search_x_", "accepts it of fetch_"):
        assert told in text


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_nothing_in_a_source_is_hidden(text: str) -> None:
    """Whatever a source holds, what a terminal would act on or not show is told by its number, and can be told back."""
    shown = visible(text)
    assert plain(shown) == shown
    assert not any(unicodedata.category(each) in {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"} for each in shown)
    lines = whole_text(WHOLE | {"source": text, "diff": None}).split("\n")
    assert sum(line.lstrip()[:1].isdigit() for line in lines) >= len(text.split("\n"))


def test_a_list_has_a_line_for_each() -> None:
    """What waits with its time and who waits for it, what was answered with who said so."""
    done = LINE | {"id": "a-2", "status": "approved", "by": "ada", "answered_at": "2026-11-23T10:00:00.000Z"}
    first, *lines = listing_text({"approvals": [LINE, done], "trials": [], "waiting": 1}).split("\n")
    assert first.split() == ["approval", "method", "status", "since"]
    assert "2020-06-02, until 2020-06-09" in lines[0]
    assert "approved by ada" in lines[1]
    assert "0123456789ab" not in "".join(lines)
    assert all(
        "0123456789ab" in line
        for line in listing_text({"approvals": [LINE, done], "trials": [], "waiting": 1}, whole=True).split("\n")[1:]
    )


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", ["20", "50", "80"])
def test_ids_and_methods_are_never_cut(width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal is: each id as short as it can be told from the others, the method whole."""
    monkeypatch.setenv("COLUMNS", width)
    ids = [f"a-01M8ABCDEFG{last}RSTVWXYZ0123" for last in "HJ"]
    with redirect_stdout(Screen()):
        _, *lines = listing_text(
            {"approvals": [LINE | {"id": each} for each in ids], "trials": [], "waiting": 2}
        ).split("\n")
    assert [line.split()[:2] for line in lines] == [[each[:14], "brick_prototype_obj.say_"] for each in ids]


def test_a_yes_tells_what_it_was_to() -> None:
    """What is installed, what could not be, and who goes on, or waits until somebody runs it."""
    told: dict[str, Any] = {
        "approved": [LINE | {"revision": 3}],
        "refused": [{"id": "a-2", "error": {"message": "a-2 has expired"}}],
        "woken": ["m-1"],
    }
    served = approved_text(told)  # type: ignore[arg-type]
    assert "a-1" in served
    assert "not approved: a-2 has expired" in served
    assert "m-1 goes on" in served
    assert "batos resume" in served


def test_a_change_of_the_mind_that_waits() -> None:
    """Below the methods in the list; alone with both values and what to say."""
    tried = trial("waiting")
    lines = listing_text({"approvals": [LINE], "trials": [tried], "waiting": 2}).split("\n")
    assert tried["id"] in lines[-1]
    assert "14.4 of 10" in lines[-1]
    assert tried["id"] in approvals_text({"approvals": [], "trials": [tried], "waiting": 1})
    assert approvals_text({"approvals": [], "trials": [], "waiting": 0}) == "Nothing waits for approval."
    shown = approvals_text(tried)
    assert "0.8 -> 0.3" in shown
    assert f"batos approve {tried['id']}" in shown
    assert "batos approve" not in approvals_text(trial("promoted"))
