"""From bytes to text that may be parsed: one decoding, nothing hidden, bounds before the parser is let at it."""

from __future__ import annotations

import pytest

from batos.guardian.audit import audit, foreign_letters, read_source
from batos.guardian.policy import SHIPPED

METHOD = "def run(self):\n    return 1\n"
HIDDEN = {
    "null": "\0",
    "bell": "\a",
    "form feed": "\f",
    "escape": "\x1b",
    "delete": "\x7f",
    "next line": "\x85",
    "soft hyphen": "\xad",
    "zero width space": "\u200b",
    "left-to-right mark": "\u200e",
    "arabic letter mark": "\u061c",
    "override": "\u202e",
    "isolate": "\u2067",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "word joiner": "\u2060",
    "byte order mark": "\ufeff",
    "private use": "\ue000",
    "unassigned": "\u0378",
    "tag": "\U000e0041",
    "noncharacter": "\uffff",
}


def rules(source: str | bytes) -> list[str]:
    return [fault.rule for fault in audit(source).faults]


@pytest.mark.parametrize("character", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_hidden_character_is_refused_wherever_it_stands(character: str) -> None:
    """In a comment, in a string, before the method: what cannot be seen is refused, and its line is told."""
    for source in (f"# x{character}\n{METHOD}", METHOD.replace("1", f'"{character}"'), character + METHOD):
        told = audit(source).faults
        assert [fault.rule for fault in told] == ["text"]
        assert told[0].line in (1, 2)


@pytest.mark.parametrize("character", ["\u200d", "\u200c", "é", "北", "\U0001f469", "\t"])
def test_what_can_be_seen_may_stand_in_a_string(character: str) -> None:
    """Letters of every language, and the joiners that emoji and Persian are written with."""
    assert audit(METHOD.replace("1", f'"a{character}b"')).accepted


def test_lines_end_as_they_may() -> None:
    """CR LF is a line end; a lone CR, behind which code could hide, is none."""
    assert audit(METHOD.replace("\n", "\r\n")).accepted
    assert rules("def run(self):\n    # a comment\r    return 1\n    return 2\n") == ["text"]


@pytest.mark.parametrize(
    "line", ["# coding: latin-1", "# -*- coding: unicode_escape -*-", "#vim: set fileencoding=utf-7 :"]
)
@pytest.mark.parametrize("before", ["", "# first\n"])
def test_another_encoding_is_refused(line: str, before: str) -> None:
    """What is audited is what is parsed: no declaration has the parser read the bytes otherwise."""
    assert rules(f"{before}{line}\n{METHOD}") == ["text"]


@pytest.mark.parametrize("source", [f"# -*- coding: utf-8 -*-\n{METHOD}", f"#\n#\n# coding: latin-1\n{METHOD}"])
def test_a_declaration_without_effect_is_none(source: str) -> None:
    """UTF-8 may be declared, and from the third line on nothing is declared at all."""
    assert audit(source).accepted


@pytest.mark.parametrize(
    "source", [b"\xff", METHOD.encode("utf-16"), b"def run(self):\n    return '\xc3('\n", "\ud800"]
)
def test_what_is_no_utf_8_is_refused(source: str | bytes) -> None:
    """Broken sequences, other encodings, half characters of a text."""
    assert rules(source) == ["text"]


TOO_MUCH = {
    "bytes": METHOD + "#" * 40_000,
    "lines": METHOD + "\n" * 900,
    "a line": METHOD + "#" + "x" * 2500,
    "brackets": f"def run(self):\n    return {'(' * 60}1{')' * 60}\n",
    "brackets of all kinds": f"def run(self):\n    return {'[({' * 20}1{'})]' * 20}\n",
    "brackets in an f-string": "def run(self):\n    return f'{" + "(" * 60 + "1" + ")" * 60 + "}'\n",
    "signs": f"def run(self):\n    return {'-' * 400}1\n",
    "signs apart": f"def run(self):\n    return {'- ' * 400}1\n",
    "not": f"def run(self):\n    return {'not ' * 400}1\n",
    "lambdas": f"def run(self):\n    return {'lambda: ' * 200}1\n",
    "power": f"def run(self):\n    return {'2**' * 100}2\n",
    "attributes": f"def run(self, a):\n    return a{'.b' * 300}\n",
    "calls": f"def run(self, a):\n    return a{'()' * 300}\n",
    "subscripts": f"def run(self, a):\n    return a{'[0]' * 300}\n",
    "sums": f"def run(self):\n    return {' + '.join(['1'] * 200)}\n",
    "blocks": "def run(self):\n" + "".join(" " * (n + 1) + "if 1:\n" for n in range(60)) + " " * 62 + "pass\n",
    "functions": "def run(self):\n" + "".join(" " * (n + 1) + "def f():\n" for n in range(60)) + " " * 62 + "pass\n",
    "branches": "def run(self, n):\n    if n == 0:\n        pass\n"
    + "".join(f"    elif n == {n}:\n        pass\n" for n in range(300)),
    "conditions": f"def run(self, n):\n    return {'1 if n else ' * 100}2\n",
    "parts": "def run(self):\n    return [" + "1," * 15_000 + "]\n",
    "parts on lines": "def run(self):\n" + "    x = [" + ("1," * 60 + "\n") * 200 + "]\n",
    "a name": f"def run(self, {'a' * 200}):\n    return 1\n",
    "digits": f"def run(self):\n    return {'9' * 150}\n",
    "very many digits": f"def run(self):\n    return {'9' * 1900}\n",
    "many triple quotes": "def run(self):\n    return 1\n" + "'''" * 2001,
    "hidden brackets": "def run(self):\n    return " + "(((( ')))))' + " * 15 + "1" + ")" * 60 + "\n",
}


@pytest.mark.parametrize("source", TOO_MUCH.values(), ids=TOO_MUCH.keys())
def test_too_much_is_refused(source: str) -> None:
    """Size and depth have bounds: what exceeds one is refused as that, or as what the parser makes of it."""
    assert set(rules(source)) & {"bounds", "parse"}


def test_an_ordinary_long_method_is_within_its_bounds() -> None:
    """A hundred lines with thirty branches, long texts and twenty terms of a sum are nothing special."""
    branches = "".join(f"    elif n == {n}:\n        return 'answer number {n}'\n" for n in range(30))
    terms = " + ".join(["n"] * 20)
    begin = f"def run(self, n):\n    text = '{'x' * 500}'\n    if not text:\n        return 0\n"
    source = f"{begin}{branches}    return {terms}\n"
    assert [str(fault) for fault in audit(source).faults] == []


def test_what_stands_in_strings_and_comments_is_no_name() -> None:
    """Letters that are not ASCII are found in code, in every line of it, and nowhere else."""
    source = '"""é\nü"""\n# ö\nx = "ä"; größe = 1\ny = \'\'\'ß\n\'\'\' + naïve\n'
    assert list(foreign_letters(source)) == [(4, 9, "größe"), (6, 6, "naïve")]
    assert list(foreign_letters("x = 1")) == []


def test_the_digest_is_that_of_the_bytes() -> None:
    """Text and its UTF-8 bytes are one source."""
    assert read_source("é", SHIPPED).digest == read_source("é".encode(), SHIPPED).digest
    assert read_source("é", SHIPPED).digest != read_source("e", SHIPPED).digest
