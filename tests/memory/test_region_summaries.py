"""Making summaries: trust, moment and scope of what they stand for, and every name of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.memory.indexes.conformance import every
from tests.memory.test_regions import candidate

from batos.memory.indexes.links import LinkIndex
from batos.memory.indexes.text import TextIndex
from batos.memory.records.memory_archives import ArchivedPart
from batos.memory.region_summaries import FoldedMemory, SummaryLine, index_summary, make_summary

NOW = datetime(2026, 11, 26, tzinfo=UTC)


def memory(number: int, title: str, at: str = "2026-01", **row: str) -> FoldedMemory:
    """A memory of a region."""
    return FoldedMemory(replace(candidate(number, **row), used="").row._replace(at=at), title, "ann")


def test_a_summary_is_no_more_than_what_it_stands_for() -> None:
    """The least trust, the newest moment, the same owner and scope; of what differs nothing is told."""
    made = make_summary(
        [memory(1, "The lamp", "2026-03", trust="user"), memory(2, "The oil", trust="external", conversation="c-1")],
        [SummaryLine("d-1", "The lamp burns."), SummaryLine("d-2", "")],
        NOW,
    ).document
    assert (made.trust, made.said_at, made.kind) == ("external", "2026-03", "summary")
    assert (made.user, made.scope) == ("ann", "default")
    assert (made.title, made.speaker, made.conversation, made.source) == ("The lamp and 1 more", "ann", "", "")
    assert [each.text for each in made.chunks] == ["The lamp burns."]
    assert made.is_evidence


@pytest.mark.parametrize(("kind", "is_evidence"), [("mission", False), ("turn", True), ("summary", True)])
def test_a_summary_of_answers_is_no_evidence(kind: str, is_evidence: bool) -> None:
    """A model's own word becomes no fact by being repeated."""
    made = make_summary([memory(1, "a", kind=kind)], [SummaryLine("d-1", "b c.")], NOW)
    assert made.document.is_evidence is is_evidence
    unheard = [FoldedMemory(memory(1, "a").row._replace(is_evidence=False), "a", "")]
    assert not make_summary(unheard, [SummaryLine("d-1", "b c.")], NOW).document.is_evidence


def test_a_name_of_what_it_stands_for_leads_to_the_part_that_does() -> None:
    """Titles, headings and opening names; and its words are found."""
    lines = [SummaryLine(f"d-{number}", f"Log {number}: " + "It was a quiet day. " * 40) for number in (1, 2)]
    made = make_summary([memory(1, "Holm Light"), memory(2, "Skarn"), memory(3, "Ulm")], lines, NOW)
    assert (len(made.document.chunks), dict(made.places)) == (2, {"d-1": 0, "d-2": 1, "d-3": 0})
    parts = {
        "d-1": [ArchivedPart(1, 0, "", "Maro Vane is the keeper."), ArchivedPart(2, 9, "Tides > Spring tide", "High.")],
        "d-2": [ArchivedPart(3, 0, "", "An island.")],
        "d-3": [ArchivedPart(4, 0, "", "A town.")],
    }
    built = index_summary(made, 70, parts, {"d-1": "Holm Light", "d-2": "Skarn", "d-3": "Ulm"})
    links, words = LinkIndex(), TextIndex()
    links.add(0, built["links"])
    words.add(0, built["text"])
    for name, number in (("holm light", 70), ("maro vane", 70), ("spring tide", 70), ("skarn", 71), ("ulm", 70)):
        assert links.resolve(name, every) == [number], name
    assert set(words.score("quiet")[0].tolist()) == {70, 71}
