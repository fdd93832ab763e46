"""Times and ids for people: seen from now, in local time; beginnings that tell ids apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.terminal.console import local_time, moment_text, short, title_with_path

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def at(**ago: float) -> str:
    """A moment so long before now."""
    return (NOW - timedelta(**ago)).isoformat()


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        (at(seconds=5), "just now"),
        (at(seconds=-5), "in a moment"),
        (at(minutes=59), "59 min ago"),
        (at(minutes=-2), "in 2 min"),
        ("some day", "some day"),
    ],
)
def test_what_is_near(moment: str, told: str) -> None:
    """Less than an hour is counted in minutes; what is no time stays as it is."""
    assert local_time(moment, NOW) == told
    if moment == told:
        assert moment_text(moment, NOW) == told


def test_what_is_further_away_has_its_day() -> None:
    """In local time: the hour of days around, the date within a year, the year of all others."""
    noon = datetime(2026, 11, 22, 12).astimezone()
    told = [local_time((noon - timedelta(days=days)).isoformat(), noon) for days in (-1, 1, 9, 999)]
    assert told == ["tomorrow 12:00", "yesterday 12:00", "13 Nov 12:00", "2024-02-27"]
    assert local_time((noon - timedelta(hours=2)).isoformat(), noon) == "today 10:00"
    assert moment_text(noon.isoformat(), noon) == "2026-11-22 12:00:00 (just now)"


@given(ids=st.sets(st.text(st.sampled_from("01"), min_size=26, max_size=26), min_size=1, max_size=9))
def test_a_short_id_begins_one_alone(ids: set[str]) -> None:
    """It is a beginning of its id and of no other one; twelve characters at least."""
    names = [f"m-{each}" for each in ids]
    for name, beginning in short(names).items():
        assert [each for each in names if each.startswith(beginning)] == [name]
        assert len(beginning) >= 12


def test_a_path_is_shown_from_where_a_person_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the working folder, else from the person's own; whole elsewhere, and where the working folder is gone."""
    here, home, gone = (tmp_path / name for name in ("here", "home", "gone"))
    for each in (here, home, gone):
        each.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    assert title_with_path("Heating", f"{here}/house/heating.md") == "Heating, house/heating.md"
    assert title_with_path("heating", f"{home}/heating.md") == "~/heating.md"
    assert title_with_path("Heating", "typed by hand") == "Heating"
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert title_with_path("Heating", f"{here}/heating.md") == f"Heating, {here}/heating.md"
