"""Raised words: powers and fractions of a formula are no digits of a number; test_web_pages has plain pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.memory.reading.web_pages import text_of


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("<msup><mn>10</mn><mn>6</mn></msup>", "10^6"),
        ("<msup>\n <mn>10</mn>\n <mrow><mo>-</mo><mn>3</mn></mrow>\n</msup>", "10 ^-3"),
        ("<msup><mi>e</mi><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow></msup>", "e^(n+1)"),
        ("<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>", "x1^2"),
        ("<msub><mi>x</mi><mn>1</mn></msub>", "x1"),
        ("<mfrac><mn>3</mn><mn>40</mn></mfrac>", "3/40"),
        ("<semantics><mn>7</mn><annotation encoding='application/x-tex'>7</annotation></semantics>", "7"),
    ],
)
def test_a_formula_is_read_with_its_signs(formula: str, text: str) -> None:
    """A power that ran into its number would be another number, which documents then vouch for."""
    assert text_of(f"<p><math>{formula}</math></p>").text == text


@given(st.integers(0, 999), st.integers(0, 99))
def test_no_power_and_no_divisor_runs_into_a_number(base: int, raised: int) -> None:
    """Whatever the numbers."""
    parts = f"<mn>{base}</mn><mn>{raised}</mn>"
    assert text_of(f"<p><math><msup>{parts}</msup></math>").text == f"{base}^{raised}"
    assert text_of(f"<p><math><mfrac>{parts}</mfrac></math>").text == f"{base}/{raised}"
