"""Commands that follow from declarations: what a person types becomes the arguments of the verb, or is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import click
import pytest
from pydantic import Field

from batos.cli.declared import take
from batos.cli.verb_options import VerbCall
from batos.protocol.wire_messages import Asker, GrantTarget, MemoryName, Moment, Name, Place, StrictModel
from batos.verbs.wire_verb import WireVerb


class TripArgs(StrictModel):
    """Plan a trip: where to, and with what.

    The rest of the help.
    """

    place: Place = Field(description="Where to.")
    notes: list[MemoryName] = Field(default=[], description="What is known of it.")
    days: int = Field(default=2, ge=1, le=9, description="How long.")
    guide: Name | None = Field(default=None, description="Who leads.")
    way: Literal["walk", "ride"] | None = Field(default=None, description="How.")
    keep: list[Literal["map", "food"]] = Field(default=[], description="Things that stay.")
    since: Moment | None = Field(default=None, description="From when on.")
    far: bool = Field(default=False, description="Beyond the harbour.")
    weight: float | None = Field(default=None, ge=0, description="What is carried.")
    user: Asker = Field(default=None, description="Who goes.")


TRIP = WireVerb[TripArgs, Mapping[str, object]]("trip", TripArgs, "trip PLACE [NOTES...] --load=WEIGHT")


def typed(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    """The arguments of the request that a command line makes."""
    seen: dict[str, Any] = {}

    @take(TRIP)
    @click.option("--own", is_flag=True)
    def trip(called: VerbCall, given: dict[str, Any], own: bool) -> int:
        """Keep what is given."""
        seen.update(given, own=own, mine=given.pop("user") == called.settings.asker)
        return 0

    trip.main([*arguments, "--home", str(tmp_path / "home")], standalone_mode=False)
    return seen


def test_fields_are_arguments_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their types; who asks is filled in, a path is whole, and what is not given is not sent."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.md").write_text("Fog.", encoding="utf-8")
    whole = typed(
        tmp_path, "pier", "log.md", "d-1", "--days", "3", "--guide", "Maro", "--way", "RIDE", "--keep-map",
        "--keep-food", "--since", "2026-01-02T03:00+00:00", "--far", "--load", "2.5", "--own",
    )  # fmt: skip
    assert whole == {
        "place": str(tmp_path / "pier"), "notes": [str(tmp_path / "log.md"), "d-1"], "days": 3, "guide": "Maro",
        "way": "ride", "keep": ["map", "food"], "since": "2026-01-02T03:00:00.000+00:00", "far": True, "weight": 2.5,
        "own": True, "mine": True,
    }  # fmt: skip
    TripArgs.model_validate({name: value for name, value in whole.items() if name in TripArgs.model_fields})
    bare = typed(tmp_path, "http://127.0.0.1:8080/inbox")
    assert bare == {"place": "http://127.0.0.1:8080/inbox", "days": 2, "own": False, "mine": True}


@pytest.mark.parametrize(
    "arguments",
    [(), ("",), ("pier", "--days", "10"), ("pier", "--way", "swim"), ("pier", "--guide", " "),
     ("pier", "--since", "soon"), ("pier", "--load", "-1"), ("pier", "--weight", "1")],
)  # fmt: skip
def test_what_the_verb_would_refuse_is_refused_here(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Before a server is asked: missing, empty, out of its bounds, no choice, no such option."""
    with pytest.raises(click.UsageError):
        typed(tmp_path, *arguments)


def test_help_and_text_are_those_of_the_declaration() -> None:
    """The docstring, its first clause for a list, and a reply as it is where no text is declared."""
    assert (TRIP.summary, TRIP.help.splitlines()[-1]) == ("Plan a trip.", "The rest of the help.")
    assert json.loads(TRIP.in_words({"place": "pier"})) == {"place": "pier"}
    told = WireVerb[TripArgs, Mapping[str, object]]("trip", TripArgs, "trip PLACE", "Off to {place}.", lambda _: "Off!")
    assert (told.in_words({"place": "pier"}), told.in_words({}, whole=True)) == ("Off to pier.", "Off!")


class PassArgs(StrictModel):
    """Grant a pass: to where, and through which doors."""

    target: GrantTarget = Field(description="Where to.")
    ports: list[int] = Field(default=[], description="Doors.")
    hosts: list[Name] = Field(default=[], description="Houses.")


PASS = WireVerb[PassArgs, Mapping[str, object]]("pass", PassArgs, "pass TARGET")


def passed(home: Path, *arguments: str) -> dict[str, Any]:
    """The arguments of that request."""
    seen: dict[str, Any] = {}

    @take(PASS)
    def grant(called: VerbCall, given: dict[str, Any]) -> int:
        """Keep what is given."""
        seen.update(given)
        return 0

    grant.main([*arguments, "--home", str(home)], standalone_mode=False)
    return seen


@pytest.mark.parametrize(
    "word", ["any", "memory", "en", "docs.python.org/3/", "example.org:8080", "http://127.0.0.1:9/x"]
)
def test_a_word_for_a_source_stays_a_word(word: str, tmp_path: Path) -> None:
    """An address too; lists are named one by one."""
    arguments = [word, "--ports", "80", "--ports", "81", "--hosts", "a.example"]
    assert passed(tmp_path, *arguments) == {"target": word, "ports": [80, 81], "hosts": ["a.example"]}


@pytest.mark.parametrize("word", ["./en", "notes/x", "papers", "en"])
def test_what_could_be_a_file_becomes_a_path(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is a file of that name, it is meant."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en").touch()
    assert passed(tmp_path / "home", word)["target"] == str(tmp_path / word)
