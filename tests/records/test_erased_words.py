"""Erased words: they are found in every form that our records have, and a mark takes their place."""

from __future__ import annotations

import base64
import json
import zlib
from typing import NamedTuple

import pytest
from tests.memory.growing import MOST, growth

from batos.records.erased_words import MARK, ErasedWords, passages_of

WORDS = 'the key is "žaba"\n7f3a9c'
#: Beginnings that are none, streams that all run to the end of the bytes, and many small whole ones.
HOSTILE = (b"x^", b"x\x01\x00\x02\x00\xfd\xff", zlib.compress(b"abc " * 30))


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


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_scan_is_linear_in_bytes_that_look_like_streams(unit: bytes) -> None:
    """Whoever sends a file of them holds nobody's erasure."""
    words = ErasedWords([WORDS])
    assert growth(lambda size: words.are_in_bytes(unit * (size // len(unit))), 64 * 1024) < MOST


@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("packed", [zlib.compress(WORDS.encode()), zlib.compress(WORDS.encode(), 0)])
def test_words_are_found_behind_bytes_that_look_like_streams(unit: bytes, packed: bytes) -> None:
    """A search that has gone on behind what was none of them still finds a stream, and so does one within another."""
    hostile = unit * (64 * 1024 // len(unit))
    assert ErasedWords([WORDS]).are_in_bytes(hostile + b"." * 9 + packed)
    assert ErasedWords([WORDS]).are_in_bytes(hostile + zlib.compress(hostile + packed, 0) + hostile)


@pytest.mark.parametrize("level", [0, 1, 9])
def test_words_are_found_in_a_stream_that_is_cut_off(level: int) -> None:
    """A stream without its end, or damaged behind the words, has them all the same."""
    packed = zlib.compress(WORDS.encode() + bytes(range(256)) * 900, level)
    assert ErasedWords([WORDS]).are_in_bytes(packed[:-5])


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


def test_a_text_is_searched_once_however_deep_it_stands() -> None:
    """Data within data within data costs no more than its length."""
    searched: list[str] = []

    class _CountedWords(ErasedWords):
        def are_in(self, text: str) -> bool:
            searched.append(text)
            return super().are_in(text)

    nested: object = "a secret"
    for _ in range(100):
        nested = [nested]
    assert MARK in str(_CountedWords(["secret"]).redact_value(nested))
    assert searched == ["a secret"]


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


@pytest.mark.parametrize("data", [b"x^" * 2**20, bytes(2**22), zlib.compress(bytes(2**24))], ids=["x^", "none", "bomb"])
def test_a_search_is_heeded_within_every_mebibyte(data: bytes) -> None:
    """Whatever the bytes are, and within what comes out of a stream; the bytes themselves are counted once."""
    heeded: list[int] = []
    assert not ErasedWords([WORDS], heeded.append).are_in_bytes(data)
    assert sum(heeded) == len(data)
    assert len(heeded) >= max(len(data), 2**22) / 2**20

    def end(size: int) -> None:
        heeded.pop()
        if not heeded:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ErasedWords([WORDS], end).are_in_bytes(data)
