"""The request to a small coder: one line who it is, an example as an earlier exchange, and the first line last."""

from __future__ import annotations

from tests.methods.generation.generation_setup import wish

from batos.methods.generation import lean_request

TOOL = wish(
    kind="tool",
    selector="size_",
    signature="size_(self, text)",
    text="Return the size\nof the text.",
    arguments=("str",),
)


def test_the_task_and_the_first_line_are_last() -> None:
    """The example is asked for in the same words, so that the model goes on in its form."""
    system, asked, shown, task = lean_request.method_messages(TOOL)
    assert system["content"] == lean_request.HEAD
    assert [each["role"] for each in (system, asked, shown, task)] == ["system", "user", "assistant", "user"]
    assert asked["content"].endswith("def count_letter_(self, text, letter):")
    assert shown["content"].startswith("```python\ndef count_letter_(self, text, letter):")
    assert task["content"] == "Return the size of the text.\nGiven: text (str)\n\ndef size_(self, text):"


def test_checks_are_asked_for_without_the_method() -> None:
    """A model that sees its method writes what that returns."""
    task = lean_request.check_messages(TOOL)[-1]["content"]
    assert task == "def size_(text)\nReturn the size of the text.\nGiven: text (str)"


def test_a_facet_is_asked_for_by_its_title_and_a_method_by_its_slots() -> None:
    """What speaks is asynchronous; slots are named that the intent names."""
    facet = wish(
        kind="facet", title="The Guide", text="Explain it.", signature="guide_facet_(self, query)", arguments=()
    )
    assert (
        lean_request.method_messages(facet)[-1]["content"]
        == "The Guide: Explain it.\n\nasync def guide_facet_(self, query):"
    )
    tick = wish(kind="method", text="Add one to count.", signature="tick_(self)", arguments=())
    assert lean_request.method_messages(tick)[-1]["content"].splitlines()[1] == "Given: self.count (int)"


def test_the_words_are_few() -> None:
    """No bound, key of a schema or rule of the dialect is in a request, and it is short."""
    said = "\n".join(each["content"] for each in lean_request.method_messages(TOOL))
    assert len(said) < 600
    assert not any(word in said for word in ("JSON", "at most", "selector", "checks", "covenant", "characters"))


def test_a_repair_shows_the_method_as_it_was_read() -> None:
    """And its first faults, a line each."""
    shown, told = lean_request.repair("def size_(self):\n    return 1\n", ["line 1: one", "line 2: two", "3", "4"])
    assert shown["content"] == "```python\ndef size_(self):\n    return 1\n```"
    assert told["content"] == f"line 1: one\nline 2: two\n3\n{lean_request.AGAIN}"
