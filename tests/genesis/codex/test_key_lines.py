"""Every key, table and element of a text of TOML is found on the line on which it is written."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from batos.genesis.codex import codex
from batos.genesis.codex.key_lines import KeyLines, KeyPath, mask_strings

TEXT = '''# a comment with a "quote
top = "a # b"
many = [
    "one", # [not.a.table]
    "two",
]

[table]
"quoted" = 1
text = """
[fake]
key = "inside"
"""
[table.deep]
x.y = 2
[[item]]
a = 1
[[item]]
a = 2
[item.inner]
b = \'\'\'
c = 1
\'\'\'
'''


def test_lines_of_keys() -> None:
    """Keys and tables are found where they stand, also after texts and lists that look like keys and tables."""
    assert KeyLines(TEXT).keys == {
        ("top",): 2,
        ("many",): 3,
        ("table",): 8,
        ("table", "quoted"): 9,
        ("table", "text"): 10,
        ("table", "deep"): 14,
        ("table", "deep", "x", "y"): 15,
        ("item", 0): 16,
        ("item", 0, "a"): 17,
        ("item", 1): 18,
        ("item", 1, "a"): 19,
        ("item", 1, "inner"): 20,
        ("item", 1, "inner", "b"): 21,
    }


def test_lines_of_elements() -> None:
    """Elements of lists, keys of inline tables, escaped and quoted keys have lines; what is absent has its table's."""
    lines = KeyLines('a = [\n  1, # no\n  [2,\n   3]]\n"x.y" = { "\\u0062" = 1, c = [\n{ d = 2 } ] }\n[e . \'f\']\n')
    assert [lines.line_of(path) for path in [("a", 0), ("a", 1, 1), ("x.y", "b"), ("x.y", "c", 0, "d")]] == [2, 4, 5, 6]
    assert [lines.line_of(path) for path in [("e", "f", "absent"), ("e",), ("a", 7), ("absent",)]] == [7, 7, 1, None]


def paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every path of a parsed document: keys, tables, elements."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from paths(each, (*path, key))


@pytest.mark.parametrize("name", codex.read_shipped())
def test_every_shipped_key_has_a_line(name: str) -> None:
    """In the shipped files every key is found on a line that holds it, and nothing else is."""
    text = codex.read_shipped()[name]
    lines = KeyLines(text)
    parsed = set(paths(tomllib.loads(text)))
    assert {path for path in lines.keys if isinstance(path[-1], str)} <= parsed
    for path in parsed:
        line = lines.line_of(path)
        assert line is not None
        if isinstance(path[-1], str):
            assert path[-1] in text.splitlines()[line - 1]


KEYS = st.sampled_from(["a", "b", "c", '"q.x"', "'l'", '"\\u0061b"', "a.b", 'b . "z"'])
SCALARS = st.sampled_from(
    ["1", "true", "1979-05-27 07:32:00", "'x#y'", '"a # ]"', '"""\nm\n"x" """', "'''l\n[z]\n'''", "1.5e3"]
)
BLANKS = st.sampled_from(["", " ", "\n", "# c ] }\n", " # x\n "])


def _lists(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    elements = st.lists(st.tuples(BLANKS, inner, BLANKS).map("".join), max_size=3)
    return elements.map(lambda each: f"[{','.join(each)}]")


def _tables(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.tuples(KEYS, inner).map(" = ".join), max_size=3).map(lambda each: f"{{ {', '.join(each)} }}")


VALUES = st.recursive(SCALARS, lambda inner: _lists(inner) | _tables(inner), max_leaves=6)
STATEMENTS = (
    st.tuples(KEYS, VALUES).map(lambda pair: f"{pair[0]} = {pair[1]} # tail")
    | KEYS.map(lambda key: f"[{key}]")
    | KEYS.map(lambda key: f"[[ {key} ]]")
    | st.sampled_from(["", "# c"])
)


@given(st.lists(STATEMENTS, max_size=7).map("\n".join))
def test_whatever_is_toml_has_lines(text: str) -> None:
    """Every path that the parser finds has a line of its own, and every line is that of a path."""
    parsed: set[KeyPath] = set()
    try:
        parsed = set(paths(tomllib.loads(text)))
    except tomllib.TOMLDecodeError:
        assume(False)
    lines = KeyLines(text)
    assert set(lines.keys) <= parsed
    for path in parsed:
        found = lines.line_of(path)
        assert found is not None
        assert 1 <= found <= text.count("\n") + 1


@pytest.mark.parametrize(
    "text",
    ['"' + '\\"' * 250_000, '"""' + '\\"""' * 100_000, "a=[" + "1," * 250_000 + "]", "'''" * 100_001 + "'"],
    ids=["quotes", "texts", "elements", "unclosed"],
)
def test_large_texts_are_read_once(text: str) -> None:
    """However the quotes stand, a text is gone through once, and what is hidden has its length and lines."""
    hidden, _ = mask_strings(text)
    assert (len(hidden), hidden.count("\n")) == (len(text), text.count("\n"))


def test_what_is_never_closed() -> None:
    """A text that is never closed is told by where it begins; all that follows is hidden."""
    assert mask_strings('a = """x\n[b]\n') == ("a = " + "\x00" * 4 + "\n" + "\x00" * 3 + "\n", 4)
