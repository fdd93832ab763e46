"""The text of one field out of JSON that comes in pieces."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from batos.inference.decisions.partial import AnswerStream

TEXT = st.text(st.characters() | st.sampled_from('"\\/\b\f\n\r\t{}[]:,é漢😀\u2028'), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["answer", "x"]), inner, max_size=3),
    max_leaves=6,
)


def _fed(raw: str, cuts: list[int], key: str = "answer") -> str:
    stream = AnswerStream(key)
    places = sorted({0, len(raw), *(min(cut, len(raw)) for cut in cuts)})
    return "".join(stream.feed(raw[start:end]) for start, end in pairwise(places))


@given(
    before=st.dictionaries(st.sampled_from(["a", 'b"\\', "", "ansWer"]), VALUES),
    answer=TEXT,
    after=st.dictionaries(st.sampled_from(["z", "y"]), VALUES),
    layout=st.sampled_from([{}, {"indent": 2}, {"ensure_ascii": False}, {"separators": (",", ":")}]),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_it_gives_what_json_gives(
    before: dict[str, Any], answer: str, after: dict[str, Any], layout: dict[str, Any], cuts: list[int]
) -> None:
    """Whatever stands around the field and wherever the pieces are cut, the text is json.loads's."""
    raw = json.dumps({**before, "answer": answer, **after}, **layout)
    assert _fed(raw, cuts) == json.loads(raw)["answer"]


@given(answer=TEXT)
@example(answer="😀")
@example(answer="\ud83d")
@example(answer="\ud83dx\ude00")
def test_every_split(answer: str) -> None:
    """For every place to cut in two, and byte by byte, with every character escaped and with none."""
    for raw in (json.dumps({"answer": answer}), json.dumps({"answer": answer}, ensure_ascii=False)):
        for cut in range(len(raw) + 1):
            assert _fed(raw, [cut]) == json.loads(raw)["answer"]
        assert _fed(raw, list(range(len(raw)))) == json.loads(raw)["answer"]


def test_text_comes_as_soon_as_it_can() -> None:
    """Each piece gives its characters at once; an escape is held only until it is whole."""
    stream = AnswerStream("b_answer")
    pieces = ['{"a_why": "answer", "b_ans', 'wer": "No', "\\", "u00", "61", " way\\ud83d", "\\ude00", '!"}', "x"]
    assert [stream.feed(piece) for piece in pieces] == ["", "No", "", "", "a", " way", "😀", "!", ""]
    assert stream.ended


def test_only_the_top_level_and_only_text_counts() -> None:
    """The same key deeper down, or with another kind of value, gives nothing."""
    assert _fed('{"x": {"answer": "deep"}, "y": ["answer", "no"]}', []) == ""
    assert _fed('{"answer": ["a"]}', []) == ""
    assert _fed('{"answer": null, "x": "no"}', []) == ""
    assert _fed('{"answer": {"answer": "deep"}}', []) == ""
    assert _fed('["answer", "no"]', []) == ""
    assert _fed('{"\\u0061nswer": "yes"}', [4, 7]) == "yes"


@given(raw=st.text(st.sampled_from('{}[]":,\\u0aDnswer '), max_size=60), cuts=st.lists(st.integers(0, 60), max_size=5))
def test_what_is_no_json_breaks_nothing(raw: str, cuts: list[int]) -> None:
    """Any text in any pieces is swallowed; pieces decide nothing."""
    assert _fed(raw, cuts) == _fed(raw, [])
