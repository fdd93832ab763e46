"""Comparisons: what says the same, what is near enough to be meant, and that trust goes before both."""

from __future__ import annotations

from batos.memory.claims.claim_statements import ClaimText, Statement, statements_of
from batos.memory.claims.comparisons import can_yield, is_outranked, is_trusted, may_yield, says


def said(text: str, conversation: str = "c-1", kind: str = "turn", doubt: int = 0, rank: str = "") -> Statement:
    """The first statement of a text."""
    return statements_of(ClaimText(1, kind, text, "", conversation, authority=rank, doubt=doubt))[0]


def test_a_statement_gives_way_to_none_that_is_trusted_less() -> None:
    """Whatever it says."""
    for doubt, is_so in ((0, True), (1, True), (2, False)):
        earlier, later = said("The keel goes to Bremen.", doubt=1), said("The keel now goes to Ulm.", doubt=doubt)
        assert (is_trusted(later, earlier), may_yield(earlier, later), can_yield(earlier, later)) == (is_so,) * 3


def test_a_value_is_said_again_where_it_is_about_the_same() -> None:
    """In another talk it needs words in common, a fact fewer of them; nobody who is trusted less tells of another."""
    origin = said("The fair is at 9 in Ulm.")
    value = frozenset({"9"})
    assert says(said("Ben comes at 9."), value, origin)
    assert not says(said("Ben comes at 9.", "c-2"), value, origin)
    assert says(said("The fair is at 9.", "c-2"), value, origin)
    assert says(said("Ben comes at 9.", "c-2", "fact"), value, origin)
    assert not says(said("Is the fair at 9?"), value, origin)
    assert not says(said("The fair is at 9."), value, said("The fair is at 9.", doubt=3))


def test_a_rank_counts_as_far_as_who_gives_it_is_trusted() -> None:
    """Who is not trusted has none over others."""
    low, high = said("15 March", kind="fact", rank="peer"), said("18 March", kind="fact", rank="policy")
    assert is_outranked(low, high)
    assert not is_outranked(high, low)
    assert not is_outranked(low, said("18 March", kind="fact", rank="policy", doubt=3))
    assert not is_outranked(low, said("18 March", kind="fact", rank="nobody"))
