"""JSON texts as Go's scanner takes and refuses them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ollama_emulator.go.scan import EMPTY, GoError, Literal, Pairs, exact, plain, quick, quote_byte

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", EMPTY),
        (" \n", EMPTY),
        ("{", "unexpected EOF"),
        ('"abc', "unexpected EOF"),
        ("tru", "unexpected EOF"),
        ("-", "unexpected EOF"),
        ("1.", "unexpected EOF"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("\x00", "invalid character '\\x00' looking for beginning of value"),
        ("\ufeff{}", "invalid character 'ï' looking for beginning of value"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1 2]", "invalid character '2' after array element"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 2}', "invalid character '2' after object key:value pair"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        ('"\\q"', "invalid character 'q' in string escape code"),
        ('"\\u12G4"', "invalid character 'G' in \\u hexadecimal character escape"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("fals!", "invalid character '!' in literal false (expecting 'e')"),
        ("nan", "invalid character 'a' in literal null (expecting 'u')"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e+z", "invalid character 'z' in exponent of numeric literal"),
        ("[" * 10_001, "invalid character '[' exceeded max depth"),
    ],
)
def test_what_is_no_json_is_refused_in_gos_words(text: str, said: str) -> None:
    """Every state of the scanner has its own words, with the character that it did not expect."""
    with pytest.raises(GoError) as refused:
        exact(text.encode())
    assert str(refused.value) == said


@given(st.binary(max_size=40))
@example(b'{"a":"\xff"}')
@example(b"01")
def test_any_bytes_give_a_value_or_words(body: bytes) -> None:
    """Nothing but GoError is raised, and never without words."""
    try:
        exact(body)
    except GoError as refused:
        assert str(refused)


@given(_VALUES, st.binary(max_size=5))
def test_the_two_readings_agree_and_stop_after_the_first_value(value: Any, behind: bytes) -> None:
    """What the fast one takes is what the exact one takes; what follows a container is not looked at."""
    body = json.dumps([value]).encode() + behind
    slow, huge = plain(exact(body))
    assert not huge
    try:
        fast = quick(body)
    except GoError:  # only the exact one settles what is out of the ordinary
        return
    assert fast == slow


def test_a_nesting_below_the_bound_costs_no_stack() -> None:
    """Ten thousand containers are read, as Go reads them."""
    assert exact(b"[" * 10_000 + b"]" * 10_000) is not None


def test_numbers_keep_their_digits_and_objects_their_repetitions() -> None:
    """An error shows the number as it was sent, and a field that stands twice is decoded twice."""
    found = exact(b'{"a":1e3,"a":-0.50}')
    assert found == Pairs([("a", Literal("1e3")), ("a", Literal("-0.50"))])
    assert plain(found) == ({"a": -0.5}, "")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\ud83dx\\ud800\\u0041"', "\ufffdx\ufffdA"),
        (b'"\xff\xe2\x82"', "\ufffd\ufffd\ufffd"),
        (b'"\\u0041\\n\\/\\\\u"', "A\n/\\u"),
    ],
)
def test_escapes_and_bytes_that_are_no_text(text: bytes, read: str) -> None:
    """Pairs of surrogates are one character, halves and broken bytes one replacement character each."""
    assert exact(text) == read


def test_a_number_too_large_is_told_with_its_digits() -> None:
    """It stands for the largest one there is."""
    value, huge = plain(exact(b'{"a":[-1e999]}'))
    assert huge == "-1e999"
    assert value["a"][0] < -1e308


@pytest.mark.parametrize(("byte", "shown"), [(0x7F, "'\\x7f'"), (0xA0, "'\\u00a0'"), (0xE9, "'é'"), (0x22, "'\"'")])
def test_a_byte_is_shown_as_go_shows_it(byte: int, shown: str) -> None:
    """Control characters as escapes, the printable ones of Latin 1 as themselves."""
    assert quote_byte(byte) == shown
