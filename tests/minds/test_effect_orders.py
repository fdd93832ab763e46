"""Orders to write something down or to send it: what is one in several languages, and above all what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.agency.records.effect_records import GrantKind
from batos.minds.effect_orders import read

FILE: dict[str, GrantKind] = {"journal_folder": "file"}
BOTH: dict[str, GrantKind] = {"journal_folder": "file", "inbox": "http"}


@pytest.mark.parametrize(
    ("text", "selector", "path", "question", "own"),
    [
        ("Note down what holds a pier.", "append_", "notes.txt", "What holds a pier?", ""),
        ("What holds a pier? Write it to piers.md.", "append_", "piers.md", "What holds a pier?", ""),
        ("What holds a pier? Append the answer to log.txt please.", "append_", "log.txt", "What holds a pier?", ""),
        ("Summarise a.txt and save the summary in b.txt", "append_", "b.txt", "Summarise a.txt", ""),
        ("Write a haiku about the sea to sea.txt", "append_", "sea.txt", "Write a haiku about the sea.", ""),
        ("Write a haiku and save it in a new file called sea.txt.", "write_", "sea.txt", "Write a haiku", ""),
        ("Write a haiku about the sea. Save it as sea.txt", "write_", "sea.txt", "Write a haiku about the sea.", ""),
        ("Append the boiling point of water to a/b.txt", "append_", "a/b.txt", "The boiling point of water?", ""),
        ("Why does the tide turn? Save it in my journal folder.", "append_", "", "Why does the tide turn?", ""),
        ('Append "Buy milk" to shopping.txt', "append_", "shopping.txt", "", "Buy milk"),
        ("Make a note that the pier is closed.", "append_", "notes.txt", "", "The pier is closed."),
        ("Note down that my dentist is Dr. Kay.", "append_", "notes.txt", "", "My dentist is Dr. Kay."),
        ("Write this to notes.txt: oak holds it. It is old.", "append_", "notes.txt", "", "oak holds it. It is old."),
        ("Save that to log.txt", "append_", "log.txt", "", ""),
        ("Can you write the answer to log.txt? What holds a pier?", "append_", "log.txt", "What holds a pier?", ""),
        ("Was hält einen Pier? Schreib es in pier.txt.", "append_", "pier.txt", "Was hält einen Pier?", ""),
        ("Was hält einen Pier? Häng die Antwort an log.txt an.", "append_", "log.txt", "Was hält einen Pier?", ""),
        ("Notiere, was einen Pier hält.", "append_", "notes.txt", "Was einen Pier hält?", ""),
        ("Notiere dir, dass der Zahnarzt Kay heißt.", "append_", "notes.txt", "", "Der Zahnarzt Kay heißt."),
        ("Que tient un quai? Écris-le dans quai.txt.", "append_", "quai.txt", "Que tient un quai?", ""),
        ("¿Qué es un muelle? Guarda la respuesta en muelle.txt.", "append_", "muelle.txt", "¿Qué es un muelle?", ""),
    ],
)  # fmt: skip
def test_what_is_an_order(text: str, selector: str, path: str, question: str, own: str) -> None:
    """With its place and its text as far as the words say them, and the question that is left."""
    found = read(text, FILE)
    assert found is not None
    assert (found.selector, found.path, found.question, found.text) == (selector, path, question, own)
    assert found.grants == ("journal_folder",)


@pytest.mark.parametrize("text", ["What is 2 + 2? Post it to inbox.", "What is 2 + 2? Send the result to the inbox."])
def test_what_is_sent_goes_to_a_program(text: str) -> None:
    """By its grant's name; with the grant of a folder alone nothing is sent."""
    found = read(text, BOTH)
    assert found is not None
    assert (found.grants, found.selector, found.question) == (("inbox",), "post_", "What is 2 + 2?")
    assert read(text, FILE) is None


@pytest.mark.parametrize(
    "text",
    [
        "What holds a pier?", "What does notes.txt say?", "How do I write to notes.txt in Python?",
        "Write a function that appends a line to log.txt", "Write nothing to log.txt.",
        "Don't write anything to notes.txt. What holds a pier?", "Write a letter to anna@x.com",
        "Write an introduction to node.js", "Should I append it to log.txt?", "Explain how to save it in a file.",
        "What did I save in log.txt?", "Write a poem about the sea.", "Add 3 to 4.", "Why did she write it in a file?",
        "Put the words in order: a, b", "Write me a python script to save a table to out.csv", "Send help to whom?",
        "Is it true that I should note it down in log.txt?", "What happens if you save it to log.txt?",
        "Translate: 'Save it to log.txt'", "Who wrote the answer in notes.txt?", "List what to write in a diary.",
        "Schreib eine Funktion, die in log.txt schreibt", "Wie schreibe ich in log.txt?", "Was steht in notes.txt?",
        "Schreib nichts in log.txt.", "Comment écrire dans quai.txt?", "¿Cómo guardo el texto en muelle.txt?",
        "Écris un poème sur la mer.", "Escribe un poema sobre el mar.", "Write on how files are saved to disk.",
        "Note: answer in one line. What holds a pier?", "Note that I am five.", "Note : sois bref. Que tient un quai ?",
        "Record sales rose. Why?",
        "Compare append and write.", "Remember that the pier is closed.", "Delete log.txt.", "Rename it to log.txt.",
        "Open log.txt and read it to me.", "Does the note in notes.txt mention oak?", "Name a song to add to it.",
    ],
)  # fmt: skip
def test_what_orders_nothing(text: str) -> None:
    """Restraint as everywhere: a question about files, a program that writes, a text to be written, and a no."""
    assert read(text, BOTH) is None


def test_without_a_grant_of_the_kind_there_is_no_order() -> None:
    """A program takes no file."""
    assert read("What holds a pier? Write it to piers.md.", {"inbox": "http"}) is None


@given(st.text(max_size=200) | st.from_regex(r"(write|save|note|it|to|a|file|\.txt| |:|\"|,){1,40}", fullmatch=True))
def test_whatever_is_said_is_read(text: str) -> None:
    """Without an error; what it finds names a plain place and one of the grants."""
    found = read(text, BOTH)
    assert found is None or set(found.grants) <= set(BOTH)
