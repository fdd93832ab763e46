"""Documents as a model is shown them: whole, line by line, and with notes where something is missing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from batos.memory.evidence import Passage
from batos.memory.passages import PASSAGE, passages
from batos.memory.search.recall import LEFT_OUT, documents_of, shown_blocks, shown_size

SHA = "0" * 64
TABLE = "month,product,units\n" + "".join(f"M{number},Kettle,{number}\n" for number in range(200))
CODE = "class Shelf:\n" + "".join(f"    def f{number}(self):\n        return {number}\n\n" for number in range(120))
lines = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=60)
texts = st.lists(lines, min_size=1, max_size=80).map("\n".join).filter(str.strip)


@given(text=texts)
def test_a_file_whose_passages_are_all_shown_is_shown_as_it_is(text: str) -> None:
    """Every line, every blank line and every indentation within it."""
    (shown,) = documents_of(passages([("a.txt", SHA, text)]))
    assert shown.text == text.strip()


def test_code_and_tables_keep_their_lines() -> None:
    """However many passages they are cut into."""
    for text in (TABLE, CODE):
        found = passages([("a", SHA, text)])
        assert len(found) > 2
        assert documents_of(found)[0].text == text.strip()
        assert all(len(each.text) <= PASSAGE for each in found)


def test_a_table_is_cut_between_rows_below_the_names_of_its_columns() -> None:
    """A part that is shown without what stands before it begins with a note and these names."""
    found = passages([("sales.csv", SHA, TABLE)])
    assert all(each.text.startswith("M") and each.head == "month,product,units" for each in found[1:])
    (shown,) = documents_of(found[2:3])
    note, head, row = shown.text.splitlines()[:3]
    assert note == LEFT_OUT.format(found[2].start)
    assert (head, row) == ("month,product,units", found[2].text.splitlines()[0])


def test_a_part_is_shown_below_its_heading() -> None:
    """The nearest heading above it."""
    text = "# Lamp\n\n" + "Oil. " * 300 + "\n\n## Wick\n\n" + "Cotton. " * 300
    found = passages([("a.md", SHA, text)])
    assert documents_of(found[-1:])[0].text.splitlines()[1] == "## Wick"


def test_what_is_left_out_between_two_parts_is_told() -> None:
    """With the number of its characters, in its place."""
    found = passages([("sales.csv", SHA, TABLE)])
    (shown,) = documents_of((found[0], found[2]))
    assert LEFT_OUT.format(found[2].start - len(found[0].text)) in shown.text
    assert shown.text.startswith(found[0].text)


def test_each_document_has_its_name_and_its_day() -> None:
    """Parts of one document are shown together, those of others apart, each with its date where that is known."""
    one, two, other = (Passage(at, name, SHA, 100 * at, "Oil.", document=name) for at, name in enumerate("aab"))
    shown = shown_blocks([replace(one, start=0, day="2026-11-20"), two, other])
    assert [each.partition(" digest=")[0] for each in shown] == [
        '<document id="1" name="a" day="2026-11-20"',
        '<document id="2" name="b"',
    ]
    assert shown_size([one, two, other]) == sum(len(each.encode()) + 1 for each in shown_blocks([one, two, other]))


def test_who_said_a_text_stands_beside_its_day() -> None:
    """In the marks of its block, and behind its name; a line of the speaker's name can end neither."""
    said = Passage(1, "chat", SHA, 0, "He comes tomorrow.", day="2024-06-01", speaker='Anna "<a@b.c>"')
    (shown,) = documents_of([said])
    assert shown.title == "chat (Anna __a@b.c__, 2024-06-01)"
    assert shown.block(1).startswith('<document id="1" name="chat" day="2024-06-01" by="Anna __a@b.c__" digest="')
    assert said.size > replace(said, speaker="").size
