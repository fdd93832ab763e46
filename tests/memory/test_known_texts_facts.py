"""Facts: found by the words of their keys, and one with another value is another content."""

from __future__ import annotations

from tests.memory.test_document_store import incoming

from batos.memory.known_texts import fact_of


def test_a_fact_has_the_words_of_its_key_as_title() -> None:
    """Its digest is of key and value."""
    made = fact_of(incoming("18 March"), "launch_date", "old", ("place",))
    assert (made.kind, made.title, made.key, made.supersedes, made.depends_on) == (
        "fact", "launch date", "launch_date", "old", ("place",),
    )  # fmt: skip
    assert made.sha256 != fact_of(incoming("18 March"), "end_date").sha256
    assert made.sha256 != fact_of(incoming("19 March"), "launch_date").sha256
