"""The time of asking, which a prompt has only if the question, or a text that it is answered from, needs it.

A clock in every prompt is copied by small models, and it makes each prompt another one.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple, TypeAlias

from batos.gate import unfounded
from batos.memory.evidence import Passage
from batos.memory.segmentation import line_of

Need: TypeAlias = Literal["day", "hour"]

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
#: Languages that put no blanks between words.
_UNSPACED: Final = frozenset({"Chinese", "Japanese"})


class _Phrases(NamedTuple):
    """The phrases of all languages that need the same, in spaced and in unspaced scripts."""

    spoken: re.Pattern[str]
    written: re.Pattern[str]

    def found_in(self, text: str) -> bool:
        # Each word has a blank of its own on both sides, so that phrases that follow each other are all found.
        plain = unicodedata.normalize("NFKC", text).strip()
        return bool(self.spoken.search(line_of(text)) or self.written.search(plain))


@lru_cache(maxsize=2)
def _phrases(need: Need) -> _Phrases:
    listed = tomllib.loads(files(__package__).joinpath("clock.toml").read_text(encoding="utf-8"))
    told = {name: each[need].replace("\n", "") for name, each in listed.items()}
    spoken = "|".join(told[name] for name in told if name not in _UNSPACED)
    return _Phrases(re.compile(f" (?:{spoken}) "), re.compile("|".join(told[name] for name in sorted(_UNSPACED))))


def asks_time(text: str) -> bool:
    """Test if a question speaks of the present moment: `today`, `this week`, `What time is it?`.

    >>> asks_time("Which shops are open today?"), asks_time("Who repairs the heating, and within what time?")
    (True, False)
    """
    return _phrases("day").found_in(text) or _phrases("hour").found_in(text)


def line_for(question: str, asked_at: str) -> str:
    """Return what a prompt says of the moment of asking for a question: the day, the time too, or "".

    >>> line_for("Which shops are open today?", "2026-11-23T09:35:49.120Z")
    'Today is Monday, 2026-11-23.'
    """
    if _phrases("hour").found_in(question):
        return describe(asked_at)
    return describe_day(asked_at) if asks_time(question) else ""


def line_beside(passages: Iterable[Passage], asked_at: str) -> str:
    """Return the day for texts of another day that speak of one as if it were theirs, "" if there are none."""
    older = any(
        each.day
        and each.day[:10] != asked_at[:10]
        and unfounded.names_relative_day(each.text, spoken=bool(each.speaker))
        for each in passages
    )
    return describe_day(asked_at) if older else ""


def describe_day(asked_at: str) -> str:
    """Return the day of asking as a sentence for a prompt, which is the same all day."""
    moment = datetime.fromisoformat(asked_at)
    return f"Today is {_DAYS[moment.weekday()]}, {moment:%Y-%m-%d}."


def describe(asked_at: str) -> str:
    """Return the moment of asking as a sentence for a prompt.

    >>> describe("2026-11-23T09:35:49.120Z")
    'Today is Monday, 2026-11-23, and the time is 09:35 UTC.'
    """
    return f"{describe_day(asked_at)[:-1]}, and the time is {datetime.fromisoformat(asked_at):%H:%M} UTC."
