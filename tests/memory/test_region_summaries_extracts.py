"""Summaries by a rule: sentences of the memories themselves, each memory with its title, within the room."""

from __future__ import annotations

from batos.memory.region_summaries import LEAST, MOST, SHARE, FoldedText, central, distinct, room_for

FILLER = "It was a day like the others and nothing was written down about it by anybody there. "


def texts(*several: str) -> list[FoldedText]:
    """Memories of these texts."""
    return [FoldedText(f"d-{number}", f"Log {number}", text) for number, text in enumerate(several)]


def test_short_memories_are_kept_whole() -> None:
    """Joined, each behind its title: what fits is not left out."""
    lines = central(texts("The lamp burns oil. Maro winds it.", "The fog came at noon."))
    assert [(each.name, each.text) for each in lines] == [
        ("d-0", "Log 0: The lamp burns oil. Maro winds it."),
        ("d-1", "Log 1: The fog came at noon."),
    ]


def test_each_memory_has_its_most_telling_sentence() -> None:
    """The one that has what others do not say; all of it together is within the room."""
    names = ("Zug", "Ulm", "Oslo")
    given = texts(*(f"{FILLER * 6}The clockwork {name} broke in {name}. {FILLER * 6}" for name in names))
    lines = central(given)
    assert [name in line.text for line, name in zip(lines, names, strict=True)] == [True] * 3
    room = max(LEAST, sum(len(each.text) for each in given) // SHARE)
    assert sum(len(each.text) for each in lines) <= room_for(given) == room
    assert "".join(each.text for each in lines).count("nothing was written down") == 1


def test_titles_are_not_said_twice() -> None:
    """A text that begins with its title, as a heading too, has it once; one without a sentence has its title alone."""
    (line,) = central([FoldedText("d", "The lamp", "# The lamp\n\nIt burns.")])
    assert line.text == "The lamp: It burns."
    (line,) = central([FoldedText("d", "The lamp", "The lamp burns.")])
    assert line.text == "The lamp burns."
    (line,) = central([FoldedText("d", "The lamp", "...")])
    assert line.text == "The lamp."


def test_a_table_is_no_sentence() -> None:
    """Too long to be one, it stays in the archive."""
    (line,) = central([FoldedText("d", "Tides", "high low " * 200 + ". The tide is low.")])
    assert line.text == "Tides: The tide is low."


def test_a_very_long_memory_has_a_summary_of_bounded_length() -> None:
    """A book of 40,000 sentences is folded in seconds; each compared with each would fail as a hang."""
    book = " ".join(f"Keeper{number} lit lamp{number % 997} on day{number % 7_919}." for number in range(40_000))
    lines = central(texts(book))
    assert room_for(texts(book)) == MOST
    assert LEAST < sum(len(each.text) for each in lines) <= MOST


def test_nothing_is_lost_of_memories_that_say_the_same() -> None:
    """The first is as it is, of the others what differs, also if that is a number."""
    log = " ".join(f"The lamp was lit on day {number}." for number in range(9))
    given = texts(log, f"{log} Oil is low.", log.upper(), log.replace("day 8", "day 88"))
    assert [each.text for each in distinct(given)] == [
        f"Log 0: {log}",
        "Log 1: Oil is low.",
        "",
        "Log 3: The lamp was lit on day 88.",
    ]
    assert distinct(texts("The lamp burns oil.", "The fog came at noon.")) == []


def test_an_equal_sentence_about_another_subject_is_another_fact() -> None:
    """Notes of one template under headings of their own: none of them loses when its house was opened."""
    rest = "It opened in 1907. It is open all year. Its fee is two crowns. Dogs may come in. There is a bench."
    given = texts(*(f"# The {house} of Ost\n\n{rest} The keeper is {name}." for house, name in
                    (("mill", "Ida"), ("barn", "Maro"), ("pier", "Holm"))))  # fmt: skip
    assert distinct(given) == []
