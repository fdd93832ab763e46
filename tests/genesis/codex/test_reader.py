"""Codex files are read key by key, and a fault knows its line."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.genesis.codex.key_lines import KeyLines
from batos.genesis.codex.reader import TomlSource
from batos.genesis.codex.value_checks import Text, read_as


@dataclass
class TextTable:
    """A table of one text."""

    a: Text


@given(st.text(alphabet="ab=[]\"'#\n.\\ ", max_size=60))
def test_any_text_is_read(text: str) -> None:
    """Whatever is written, reading gives values or a fault with a line; nothing else is raised."""
    source = TomlSource("x.toml", text)
    assert all(fault.line is not None and fault.line >= 1 for fault in source.faults)


def test_syntax_faults_have_a_line() -> None:
    """What is not TOML is told with its line."""
    source = TomlSource("x.toml", 'a = 1\nb = "no end\nc = 2\n')
    (fault,) = source.faults
    assert (fault.file, fault.line) == ("x.toml", 2)
    assert fault.remedy


def test_unclosed_text_at_the_end() -> None:
    """A fault that TOML sees only at the end of the file is told with the last line."""
    source = TomlSource("x.toml", 'a = 1\nb = """never closed\n\n')
    assert source.faults[0].line == 2
    assert "never closed" in source.faults[0].message


def test_line_of_a_list_element() -> None:
    """A fault about one element of a list points at that element's line."""
    source = TomlSource("x.toml", 'words = [\n  "a",\n  "b",\n]\n')
    source.fault(("words", 1), "b is wrong", "Remove it.")
    assert source.faults[0].line == 3


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = " + "[" * 50_000, 2),
        ("a = 1\n" + "b = " + "{x = " * 50_000, 2),
        ("a = 1\nb = [" + "\n[" * 50_000 + "]" * 50_001, 50_002),
        ("a = 1\n\nb = 0x" + "f" * 5_000, 3),
        ("a = 1\nb = " + "9" * 5_000, 2),
        ("[t]\nb = [1, [{ c = -9223372036854775809 }]]", 2),
        ("a = 1\nb = nan", 2),
        ("a = -inf", 1),
        ("a = 1\n" + "a." * 200_000 + "a = 1", 2),
        ("a = 1\n['b'." + '"b" . ' * 200_000 + "b]", 2),
        ("a = { " + "b . " * 200_000 + "b = 1 }", 1),
    ],
    ids=["lists", "tables", "lines", "hex", "digits", "inside", "nan", "inf", "dots", "header", "inline"],
)
def test_what_no_codex_has_is_refused(text: str, line: int) -> None:
    """Nesting, numbers and keys that would break what reads them are faults with a line, and are told at once."""
    source = TomlSource("x.toml", text)
    assert [fault.line for fault in source.faults] == [line]
    assert source.faults[0].remedy


def test_what_a_codex_may_have_is_read() -> None:
    """The greatest number of TOML, dots in texts, and a few levels of lists are no faults."""
    source = TomlSource("x.toml", f"a = {2**63 - 1}\nb = '{'x.' * 99}'\nc.d.e = [[[[1.5e300]]]]\n# {'y.' * 99}\n")
    assert source.faults == []
    assert source.values["c"] == {"d": {"e": [[[[1.5e300]]]]}}


def test_many_keys_are_found_in_bounds() -> None:
    """The lines of a file's worth of keys are counted once, not once a key."""
    lines = KeyLines("".join(f"k{number} = 1\n" for number in range(80_000)))
    assert lines.line_of(("k79999",)) == 80_000


def test_lines_are_looked_for_where_a_fault_is() -> None:
    """A sound file is parsed alone: the scan for the places of its keys takes longer than that."""
    sound, faulty = (TomlSource("x.toml", text) for text in ("a = 'b'", "a = 1"))
    for source in (sound, faulty):
        read_as(TextTable, source, source.values)
    assert [("_lines" in vars(source), len(source.faults)) for source in (sound, faulty)] == [(False, 0), (True, 1)]
