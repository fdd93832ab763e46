"""Words the gate's faults in the language of a question, from one table: for the model that repairs, for the reader."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

#: Codes of faults that a reader is told alike: words that no document has.
_ABSENT = frozenset({"number", "day", "name", "carried"})
_FALLBACK = "English"


@lru_cache(maxsize=1)
def table() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return the wordings by language, then `repair` or `told`, then the code of the fault."""
    return tomllib.loads(files(__package__).joinpath("wording.toml").read_text(encoding="utf-8"))


def repair(code: str, values: Mapping[str, str], language: str) -> str:
    """Return what a model is told to mend, in a language by its English name, or in English.

    >>> repair("document", {"number": "7"}, "German")
    'Es gibt kein Dokument 7.'
    """
    told = _words_of(language)["repair"]
    words = told[code].format_map(values)
    return f"{words} {told['nearest'].format_map(values)}" if code == "carried" and "near" in values else words


def tell(code: str, values: Mapping[str, str], language: str) -> str:
    """Return what a reader is told, as a phrase.

    >>> tell("number", {"said": "1,300"}, "English")
    'not in your documents: “1,300”'
    """
    kind = "absent" if code in _ABSENT else "language" if code == "script" else code
    return _words_of(language)["told"][kind].format_map(values)


def _words_of(language: str) -> Mapping[str, Mapping[str, str]]:
    known = table()
    return known.get(language) or known[_FALLBACK]
