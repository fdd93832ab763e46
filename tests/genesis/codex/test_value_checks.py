"""Each kind of value refuses what it is not, with what it must be and the line of its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import ConfigDict

from batos.genesis.codex.reader import TomlSource
from batos.genesis.codex.value_checks import CLOSED, Flag, Text, Texts, read_as


@dataclass(frozen=True, slots=True)
class Inner:
    """A table within."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    text: Text


@dataclass(frozen=True, slots=True)
class Outer:
    """One key of each kind."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    text: Text
    flag: Flag
    texts: Texts
    table: dict[str, Text]
    tables: tuple[Inner, ...]
    word: Literal["a", "b"]


def test_types_are_checked() -> None:
    """Each refuses what is of another type, and says what it must be."""
    text = 'text = 1\nflag = "yes"\ntexts = [1]\ntable = 2\ntables = {}\nword = "c"\n'
    source = TomlSource("x.toml", text)
    assert read_as(Outer, source, source.values) is None
    assert [fault.line for fault in source.faults] == [1, 2, 3, 4, 5, 6]
    assert all("must be" in fault.message for fault in source.faults[:5])
    assert (source.faults[5].what, source.faults[5].remedy) == ("`word` is 'c'", "Write one of: 'a' or 'b'.")


def test_a_table_within_says_what_may_stand_there() -> None:
    """A key of a table within is unknown to that table, and a misspelt one is not missing too."""
    text = 'text = "x"\nflag = true\ntexts = ["y"]\ntable = {}\nword = "a"\n[[tables]]\ntexd = "z"\n[[tables]]\n'
    source = TomlSource("x.toml", text)
    assert read_as(Outer, source, source.values) is None
    told = [(fault.line, fault.what) for fault in source.faults]
    assert told == [(7, "unknown key `texd`: did you mean `text`?"), (8, "`text` is missing")]


def test_sound_values_are_of_the_class() -> None:
    """Texts are stripped, and lists are tuples."""
    text = 'text = " x "\nflag = true\ntexts = ["y"]\ntable = {a = "b"}\nword = "a"\n[[tables]]\ntext = "z"\n'
    source = TomlSource("x.toml", text)
    assert read_as(Outer, source, source.values) == Outer("x", True, ("y",), {"a": "b"}, (Inner("z"),), "a")
    assert source.faults == []
