"""Requests under way: bounds of all clients together, and the share of each guest."""

from __future__ import annotations

from batos.server.zmq.pending_request import RequestCounts

HOME, OWN, LAPTOP, TABLET = "token 0a1b", "key home 0a1b", "key laptop 0a1b", "key tablet 0a1b"


def test_a_guest_has_a_quarter_of_the_requests() -> None:
    """The home and other guests have the rest; what has ended makes room again."""
    counts = RequestCounts(8, 1_000)
    for _ in range(2):
        assert counts.objection(LAPTOP, 1) is None
        counts.add(LAPTOP, 1)
    refused = counts.objection(LAPTOP, 1)
    assert refused is not None
    assert (refused.retry, "key laptop" in refused.message) == (True, True)
    assert [counts.objection(each, 1) for each in (HOME, OWN, TABLET)] == [None, None, None]
    counts.remove(LAPTOP, 1)
    assert counts.objection(LAPTOP, 1) is None


def test_a_guest_has_a_quarter_of_the_bytes() -> None:
    """A request that would go beyond it is refused; the home's own is not."""
    counts = RequestCounts(100, 1_000)
    counts.add(LAPTOP, 200)
    assert counts.objection(LAPTOP, 50) is None
    assert counts.objection(LAPTOP, 51) is not None
    assert counts.objection(OWN, 800) is None


def test_all_together_have_a_bound() -> None:
    """The home too is told to wait where nothing is left."""
    counts = RequestCounts(1, 10)
    assert counts.objection(HOME, 11) is not None
    counts.add(HOME, 10)
    assert counts.under_way == 1
    assert counts.objection(HOME, 0) is not None


def test_a_key_that_was_made_anew_is_the_same_guest() -> None:
    """A guest is counted by the name of its key, whatever the key is."""
    counts = RequestCounts(4, 1_000)
    counts.add(LAPTOP, 1)
    assert counts.objection("key laptop ffff", 1) is not None
