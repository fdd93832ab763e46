"""What is piped into the verbs that ask: a document beside a question, and else the question."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.processes import User

from batos.cli import standard_input
from batos.protocol.errors import BriefError

QUESTION = "Who is the harbour master?"
TEXT = "The harbour master is Zoe Quill.\n"


def brief(user: User, *arguments: str, stdin: str) -> dict[str, Any]:
    """The brief of a mission that is queued."""
    ran = user.run("submit", "-q", *arguments, stdin=stdin)
    assert ran.code == 0, ran.err
    found: dict[str, Any] = user.run("show", ran.out.strip(), "--json").document["data"]["brief"]
    return found


def test_beside_a_question_it_is_a_document(user: User) -> None:
    """The answer is from it, and a person is told that it was taken."""
    ran = user.run("ask", "--effort", "reflex", QUESTION, stdin=TEXT)
    assert ran.code == 0, ran.err
    assert "Zoe Quill" in ran.out
    assert "is a document to answer from: stdin.txt" in ran.err


def test_without_a_question_it_is_the_question(user: User) -> None:
    """As `-` has it; no document is made of it."""
    for dash in ([], ["-"]):
        made = brief(user, *dash, stdin=QUESTION)
        assert (made["text"], made["attachments"]) == (QUESTION, [])


def test_nothing_piped_is_no_document(user: User) -> None:
    """An empty pipe, one of blanks, and a file that is named leave stdin out; `--file -` is not read twice."""
    for stdin in ("", " \n\n"):
        assert brief(user, QUESTION, stdin=stdin)["attachments"] == []
        assert "What is piped is empty" in user.run("submit", QUESTION, stdin=stdin).err
    assert [each["name"] for each in brief(user, QUESTION, "--file", "-", stdin=TEXT)["attachments"]] == ["stdin.txt"]


def test_what_is_not_utf_8_is_refused() -> None:
    """The field and the byte are named, and nothing is replaced."""
    assert standard_input.decode("gr\u00fcn".encode(), "text", "text") == "gr\u00fcn"
    with pytest.raises(BriefError, match=r"the fact on stdin is not UTF-8 \(byte 2\)") as refused:
        standard_input.decode(b"gr\xfcn", "what", "fact")
    assert refused.value.field == "what"


@pytest.mark.parametrize(("shell", "said"), [("</dev/null", "there is no question"), ("<&-", "there is no question")])
def test_neither_a_question_nor_a_pipe(user: User, shell: str, said: str) -> None:
    """Both ways to ask are named."""
    ran = user.process("ask", "--json", shell=shell)
    error = ran.document["error"]
    assert (ran.code, error["message"], error["field"]) == (2, said, "text")
    assert "| batos ask" in error["remedy"]


def test_an_empty_text_is_no_question(user: User) -> None:
    """It is told before the image is opened, with the ways to ask."""
    for text in ("", "  "):
        error = user.run("ask", "--json", text).document["error"]
        assert (error["code"], error["message"], error["field"]) == ("usage", "there is no question", "text")
        assert "| batos ask" in error["remedy"]


def test_an_empty_pipe_asks_nothing(user: User) -> None:
    """It is a question without a word."""
    ran = user.run("ask", "--json", stdin="")
    assert (ran.code, ran.document["error"]["message"]) == (2, "text: the question is empty")


def test_a_long_text_is_no_question(user: User) -> None:
    """Its length is not guessed from where reading stopped, and the way for documents is named."""
    ran = user.run("ask", "--json", "-", stdin="word " * 200_000)
    error = ran.document["error"]
    assert (ran.code, error["message"]) == (2, "the question on stdin has more than 20,000 characters")
    assert "--file" in error["remedy"]
    assert "--file" in user.run("ask", "--json", "word " * 5_000).document["error"]["remedy"]


def test_who_waits_for_a_pipe_that_brings_nothing_is_told(user: User) -> None:
    """An open pipe looks like a standstill; what comes late is taken."""
    with user.start("submit", QUESTION, piped=True) as waiting:
        assert waiting.stderr is not None
        assert "</dev/null gives none" in waiting.stderr.readline()
        out, _ = waiting.communicate(TEXT)
    found = user.run("show", out.strip(), "--json").document["data"]["brief"]
    assert [each["name"] for each in found["attachments"]] == ["stdin.txt"]
