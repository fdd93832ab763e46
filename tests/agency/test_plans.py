"""Plans as lines: what is written is read back, and each line that is wrong is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.agency.plans import MOST_TEXT, MissionPlan, PlannedCall, PlannedPart, mark, read_plan
from batos.protocol.errors import BriefError

SEARCH = {"properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["query"]}
EFFECT = {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}}
FRAME = {
    "question": "When does it open?", "parts": ["guide", "cook"],
    "tools": {"wiki.search_": SEARCH, "tide": {"properties": {}}}, "effects": {"notes.append_": EFFECT},
}  # fmt: skip

_words = st.text(min_size=1, max_size=40).map(lambda text: " ".join(text.split())).filter(bool)
_searches = st.fixed_dictionaries({"query": st.text(max_size=40)}, optional={"limit": st.integers(-9, 9)})
_calls = st.lists(
    st.one_of(_searches.map(lambda each: PlannedCall("wiki.search_", each)), st.just(PlannedCall("tide", {}))),
    max_size=3,
    unique_by=lambda call: call.as_line(""),
).map(tuple)
_effects = st.fixed_dictionaries({}, optional={"path": st.text(max_size=20), "text": st.text(max_size=90)})


@given(
    st.tuples(_calls, _calls, _calls), _words, _words, st.none() | _effects, st.lists(st.text(max_size=50), max_size=3)
)
def test_a_plan_is_read_back_as_it_is_written(
    calls: Any, first: str, second: str, effect: Any, remarks: list[str]
) -> None:
    """Whatever words, breaks and signs stand in its questions, arguments and remarks."""
    whole, one, two = calls
    parts = (
        PlannedPart("", str(FRAME["question"]), whole),
        PlannedPart("guide", first, one),
        PlannedPart("cook", second, two),
    )
    plan = MissionPlan(parts, () if effect is None else (PlannedCall("notes.append_", effect),))
    text = plan.as_text(remarks)
    assert read_plan(text, FRAME) == plan
    assert read_plan(text.replace("\n", "\r\n"), FRAME) == plan
    assert all(plan.has_call(each.name, each.arguments) for part in parts for each in part.calls)


@given(st.text(max_size=200) | st.lists(st.sampled_from([
    "part guide: Why?", "part cook:", "call tide {}", 'call wiki.search_ {"query": "x"}', "call wiki.search_ [",
    'effect notes.append_ {"path": "a"}', "effect notes.append_ {\"text\": 1}", "# remark", "", "   ", "call", "part",
])).map("\n".join))  # fmt: skip
def test_any_text_is_a_plan_or_an_error_that_names_the_line(text: str) -> None:
    """No text does anything else."""
    try:
        plan = read_plan(text, FRAME)
    except BriefError as error:
        assert error.field == "plan"
        assert all("line " in each or "has no line" in each for each in (error.message, *error.also))
    else:
        assert [each.name for each in plan.parts] in (["", "guide", "cook"], ["", "cook", "guide"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("look here", "line 3: 'look' begins no line of a plan"),
        ("part baker: Why?", "line 3: there is no part 'baker': the parts are cook, guide"),
        ("part guide: Why?", "line 3: the part 'guide' stands here for the second time"),
        ("call wiki.serch_ {}", "line 3: there is no tool 'wiki.serch_' for this question: there are tide"),
        ("call wiki.search_ {", "line 3: the arguments of wiki.search_ are no JSON"),
        ('call wiki.search_ {"limit": 2}', "line 3: the arguments of wiki.search_: $: 'query' is a required property"),
        ('call wiki.search_ {"query": "a", "to": "eve"}', "Additional properties are not allowed"),
        ('call tide {}\ncall tide {}', "line 4: the call of tide stands here for the second time"),
        ("\n".join(f'call wiki.search_ {{"query": "{n}"}}' for n in range(4)), "line 6: there are more than 3 calls"),
        ("effect other.append_ {}", "line 3: there is no effect 'other.append_'"),
        ("effect notes.append_ {}\neffect notes.append_ {}", "line 4: a plan has one effect at most"),
    ],
)  # fmt: skip
def test_each_wrong_line_is_told(line: str, said: str) -> None:
    """With its number, the fault and what there is instead."""
    with pytest.raises(BriefError) as raised:
        read_plan(f"part guide: Why?\npart cook: How?\n{line}", FRAME)
    assert said in raised.value.message


def test_a_part_that_is_left_out_or_too_much_text_is_told() -> None:
    """A part without a line, and a plan beyond all bounds."""
    with pytest.raises(BriefError, match="the part 'cook' has no line: add `part cook: QUESTION`"):
        read_plan("part guide: Why?", FRAME)
    with pytest.raises(BriefError, match="at most 65,536 are taken"):
        read_plan("#" * (MOST_TEXT + 1), FRAME)


def test_a_call_is_the_same_as_json_has_it() -> None:
    """One is not true, and the order of arguments says nothing."""
    plan = MissionPlan((PlannedPart("", "", (PlannedCall("tide", {"a": 1, "b": "x"}),)),))
    assert plan.has_call("tide", {"b": "x", "a": 1})
    assert not plan.has_call("tide", {"a": True, "b": "x"})
    assert mark("Tide, marmalade!", ["marmalade"]) == "Tide, [marmalade!]"
