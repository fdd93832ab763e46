"""The pages as `batos help` finds them: by name, heading, finding and error, and all that messages point to."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

import pytest

from batos.cli import manual
from batos.cli.entry import VERBS
from batos.cli.verbs import system_verbs
from batos.protocol import errors
from batos.protocol.errors import BatosError, NotFound

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]


def test_every_page_is_a_topic() -> None:
    """Each page of docs/ by its name, without what is for browsers and scripts."""
    names = {path.stem.lower() for path in (ROOT / "docs").glob("*.md")}
    assert set(manual.list_pages()) == names
    for name in names:
        text = manual.find_text(name)
        assert text.startswith("# ")
        assert "<!--" not in text
        assert '<a id="' not in text


def test_the_wheel_has_them() -> None:
    """Where a package is installed alone, the pages lie within it."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert wheel["wheel"]["force-include"] == {"docs": "batos/docs"}


def test_what_messages_point_to_is_there() -> None:
    """Every `batos help TOPIC` and every page that the source names is found, or is a verb."""
    text = "\n".join(SOURCES)
    topics = set(re.findall(r"`batos help ([a-z][\w.#/-]*)`", text)) - {"image-opens"}
    topics |= {f"{name}{anchor}" for name, anchor in re.findall(r"docs/([\w-]+)\.md(#[\w-]+)?", text)}
    assert len(topics) > 15
    for topic in topics:
        assert topic in VERBS or manual.find_text(topic)


@pytest.mark.parametrize(
    "topic", ["maintenance#update", "docs/maintenance.md#update", "update", "Update", "maintenance.md#UPDATE"]
)
def test_a_part_is_found_by_its_heading(topic: str) -> None:
    """With its page or without, as messages write it or as a person does; it ends where the next one begins."""
    text = manual.find_text(topic)
    assert text.startswith("## Update")
    assert "## Size and history" not in text


def test_what_the_doctor_names_is_found() -> None:
    """By the finding's id and by the word that is printed: its paragraph alone."""
    assert manual.find_text("ollama.answers") == manual.find_text(system_verbs.topic("ollama.answers"))
    assert manual.find_text("ollama.answers").startswith("**`ollama.answers`**")
    assert "ollama.version" not in manual.find_text("ollama.answers")


def test_every_error_code_is_a_topic() -> None:
    """What happened, what helps and the exit code, unless a page of that name says more."""
    codes = {
        each.code: each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, BatosError)
    }
    for code, kind in codes.items():
        if code not in manual.list_pages():
            text = manual.find_text(code)
            assert kind.remedy in text or code in {manual.slug(each.title) for each in manual._sections()}


def test_a_word_within_headings_names_them() -> None:
    """Who knows a part of a heading is shown what to type."""
    assert manual.find_text("and-keys") == "'and-keys' is mentioned in:\n  batos help protocol#access-and-keys"


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("model", "`default_model` in `codex/mind.toml`"),
        ("temperature", "`temperature` under `[options]`"),
        ("port", "`batos serve --bind tcp://127.0.0.1:7800"),
        ("morning", "`crontab -e`"),
    ],
)
def test_a_thing_that_is_wanted_is_answered_with_its_command(word: str, command: str) -> None:
    """A word of "How do I" gives the command and the page, before all headings that have the word."""
    text = manual.find_text(word)
    assert command in text.partition("is mentioned in")[0]
    assert "more: `batos help " in text


def test_code_is_no_heading() -> None:
    """A comment within a block of code begins with # and ends nothing."""
    text = "# Page\n\n## One\n\n```sh\n# a comment\n```\nmore\n\n## Two\n"
    sections = {each.title: each.text for each in manual._read_sections("page", text)}
    assert set(sections) == {"Page", "One", "Two"}
    assert sections["One"].endswith("more")


def test_what_is_called_nothing_says_what_is_near() -> None:
    """A mistyped topic is told with the nearest one."""
    with pytest.raises(NotFound, match="did you mean 'operating'") as missing:
        manual.find_text("oprating")
    assert "batos help" in missing.value.remedy
    with pytest.raises(NotFound):
        manual.find_text("operating#nowhere-at-all")
