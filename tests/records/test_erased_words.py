"""Erased words: they are found in every form that our records have, and a mark takes their place."""

from __future__ import annotations

import base64
import json
import zlib
from typing import NamedTuple

import pytest

from batos.records.erased_words import MARK, ErasedWords, passages_of

WORDS = 'the key is "žaba"\n7f3a9c'


class _Pair(NamedTuple):
    first: str
    second: int


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_words_are_found_in_base64_wherever_they_begin(before: int, encode: object) -> None:
    """Whatever stands before and after them, in both alphabets."""
    assert callable(encode)
    data = encode(b"?" * before + WORDS.encode() + b"!!")
    assert ErasedWords([WORDS]).are_in_bytes(b"\x00" + data + b"\xff")


@pytest.mark.parametrize(
    "data",
    [
        WORDS.encode(),
        json.dumps({"a": [WORDS]}).encode(),
        json.dumps({"a": [WORDS]}, ensure_ascii=False).encode(),
        b"head" + zlib.compress(json.dumps(WORDS).encode(), 1) + b"tail",
        zlib.compress(b"x" * 99 + zlib.compress(WORDS.encode(), 9)),
        b"x\x9cx\x01" + zlib.compress(base64.b64encode(WORDS.encode())),
    ],
)
def test_words_are_found_in_bytes(data: bytes) -> None:
    """As text, as JSON writes them, in streams of zlib and in streams within streams."""
    assert ErasedWords([WORDS]).are_in_bytes(data)
    assert not ErasedWords(["another key"]).are_in_bytes(data)
    assert not ErasedWords([]).are_in_bytes(data)


def test_a_mark_takes_their_place_in_plain_data() -> None:
    """Data that has none is the same object; kinds of containers and names of fields stay, a text of JSON is JSON."""
    words = ErasedWords(["secret"])
    clean = {"a": ["b", 1, None]}
    assert words.redact_value(clean) is clean
    found = {
        "a": ("secret", 2),
        "My secret": {"x secret"},
        "secret": 1,
        "pair": _Pair("a secret", 1),
        "raw": b"a secret",
    }
    assert words.redact_value(found) == {
        "a": (MARK, 2), f"My {MARK}": {f"x {MARK}"}, "secret": 1, "pair": _Pair(f"a {MARK}", 1), "raw": MARK.encode(),
    }  # fmt: skip
    packed = json.dumps({"said": WORDS})
    assert json.loads(ErasedWords([WORDS]).redact(packed)) == {"said": MARK}


def test_no_words_are_in_nothing() -> None:
    """Blanks are no words."""
    assert not ErasedWords(["", "  "])
    assert ErasedWords(["a b"])
    assert not ErasedWords([]).are_in_value({"a": "b"})


def test_a_text_is_known_by_its_sentences_and_long_words() -> None:
    """Short sentences, common words and addresses are nobody's own."""
    text = "Yes. What I told you stays here.\nhttps://example.org/aaaaaaaaaaaaaaaaaa1 and 0123456789abcdef0123."
    found = passages_of(text)
    assert {"What I told you stays here.", "0123456789abcdef0123", text} <= found
    assert "Yes." not in found
    assert not any(each.startswith("http") and " " not in each for each in found)
