"""The words by which questions of nine languages ask for a computation, and the signs that cells of any table have.

Three files beside this one hold them: `phrases.toml`, `signs.toml` and `written.toml`. A question is computed only if
every word of it is known there or stands in the table, so a word that is missing costs an answer and never makes a
wrong one.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final


def read(name: str) -> dict[str, Any]:
    """Return a table of words of this room."""
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


#: Phrases without accents, between bars, by language and by what they mean.
PHRASES: Final[dict[str, dict[str, str]]] = read("phrases")
_SIGNS: Final = read("signs")
#: The concept that a word of a column's name has, and that a unit has; the operation that begins a compound.
CONCEPTS: Final = {word: concept for concept, said in _SIGNS["concepts"].items() for word in said.split()}
MEASURES: Final = {unit: concept for concept, units in _SIGNS["measures"].items() for unit in units.split()}
COMPOUNDS: Final[dict[str, str]] = _SIGNS["compounds"]

#: Phrases around a period in a sentence, by what they say of it; and the names of a letter's own day.
DIRECTIONS: Final = {each: tuple(said.split("|")) for each, said in _SIGNS["directions"].items()}
OWN_DAY: Final[tuple[str, ...]] = tuple(_SIGNS["own_day"].split("|"))


@cache
def signs(name: str) -> frozenset[str]:
    """Return the words of a list of signs."""
    return frozenset(_SIGNS[name].split())
