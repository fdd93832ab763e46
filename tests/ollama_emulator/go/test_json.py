"""JSON, numbers and quotes as the daemon's Go code writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollama_emulator.go.json import encode, general, keep_alive, layer_text, quote, real, reals


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (0.7, "0.7"), (1e-5, "0.00001"), (1e-7, "1e-7"), (1e20, "100000000000000000000"), (1e21, "1e+21")],
)
def test_numbers_have_no_needless_digits(value: float, text: str) -> None:
    """In JSON, wherever they stand."""
    assert real(value) == text
    assert encode({"a": [value]}) == f'{{"a":[{text}]}}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (512, "512"),
        (1e-5, "1e-05"),
        (1048576, "1.048576e+06"),
        (123456, "123456"),
        (0, "0"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_in_modelfiles_turn_to_exponents_early(value: float, text: str) -> None:
    """As `%v` prints them: six digits before the point are still written out."""
    assert general(value) == text


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e-4, 1e-4)))
def test_a_vector_is_written_as_its_numbers(values: list[float]) -> None:
    """Each as it would be alone, whatever stands beside it; the encoder of any value agrees."""
    assert reals(values) == encode(values) == f"[{','.join(map(real, values))}]"


@given(st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e-4, 1e-4))
def test_a_number_below_one_is_written_out_down_to_a_millionth(value: float) -> None:
    """No exponent between a millionth and 1e21, and none of the digits is lost."""
    text = real(value)
    assert float(text) == value
    assert ("e" not in text) == (value == 0 or 1e-6 <= abs(value) < 1e21)


@given(st.recursive(st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists, max_leaves=6))
def test_what_is_written_is_read_back(value: Any) -> None:
    """However its numbers were written, and with the signs that are escaped."""
    text = encode({"a": value})
    assert json.loads(text, parse_int=float) == {"a": value}
    assert not set("<>&\u2028\u2029") & set(text)


def test_the_keys_of_a_layer_are_sorted_at_every_depth() -> None:
    """And it ends with a newline."""
    assert layer_text({"b": 1, "a": {"d": 1.0, "c": "<"}}) == b'{"a":{"c":"\\u003c","d":1},"b":1}\n'


@pytest.mark.parametrize(("text", "shown"), [("a b", '"a b"'), ('"\n\x01', '"\\"\\n\\x01"'), ("\u200b", '"\\u200b"')])
def test_a_text_is_quoted_as_go_quotes_it(text: str, shown: str) -> None:
    """What is not printable is escaped, in Go's own way."""
    assert quote(text) == shown


def test_a_keep_alive_in_seconds_that_does_not_fit_is_over_at_once() -> None:
    """Go makes the least number of it: 292 years are pinned, 293 are gone when the runner is idle."""
    assert keep_alive(9.2e9) == 9_200_000_000 * 10**9
    assert keep_alive(9.3e9) == keep_alive(10**30) == 1
    assert keep_alive(-(10**30)) == keep_alive(-0.5) == 2**63 - 1
