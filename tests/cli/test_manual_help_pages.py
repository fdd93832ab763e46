"""The verb `help`, as a person types it."""

from __future__ import annotations

import json

import pytest

from batos.cli import entry


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert entry.run(["help", *words]) == 0
    return capsys.readouterr().out


def test_alone_it_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Every page with what it is about, and how to go on."""
    text = said(capsys)
    assert "operating" in text
    assert "Operating BAT OS" in text
    assert "batos help TOPIC" in text


def test_a_page_a_part_and_a_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """A page goes before a verb of its name, whose own --help there is; a verb of a group is two words."""
    assert said(capsys, "docs/maintenance.md#backup").startswith("## Backup")
    assert said(capsys, "codex").startswith("# The codex")
    assert said(capsys, "ask").startswith("Usage: batos ask [OPTIONS]")
    assert said(capsys, "method", "show").startswith("Usage: batos method show [OPTIONS]")


def test_a_program_gets_documents(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the topics, or one topic's text; what is not there is NotFound, exit 2."""
    assert "ask" in json.loads(said(capsys, "--json"))["data"]["verbs"]
    assert json.loads(said(capsys, "settings", "--json"))["data"]["text"].startswith("# Settings")
    assert entry.run(["help", "moonstruck", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "not_found"


def test_it_needs_no_sound_settings(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has a wrong setting can read what is right; no home is made for it."""
    monkeypatch.setenv("BATOS_VRAM", "much")
    assert said(capsys, "settings").startswith("# Settings")
