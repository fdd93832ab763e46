"""How much of a prompt is new to a runner."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batos.emulator.prefixes import Prefixes


def test_a_prompt_is_read_once() -> None:
    """The first time whole; the same again costs one token; half of it new, half of it is read."""
    prefixes = Prefixes()
    assert prefixes.unread("a" * 100, 50) == 50
    assert prefixes.unread("a" * 100, 50) == 1
    assert prefixes.unread("a" * 50 + "b" * 50, 50) == 25
    assert prefixes.unread("", 0) == 0


@given(st.lists(st.text("ab", max_size=12), min_size=1, max_size=6))
def test_it_is_the_longest_shared_beginning(prompts: list[str]) -> None:
    """With a token a character, what is new is what no earlier prompt began with."""
    prefixes = Prefixes()
    for at, prompt in enumerate(prompts):
        known = max((_shared(prompt, other) for other in prompts[:at]), default=0)
        assert prefixes.unread(prompt, len(prompt)) == (max(1, len(prompt) - known) if prompt else 0)


def _shared(one: str, other: str) -> int:
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))
