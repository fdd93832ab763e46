"""Every vocabulary: the same text has the same ids, a whole text has the marks at its ends, and ids read as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ollama_emulator.recordings import known
from tests.ollama_emulator.tokenizers.test_counts import paired

from ollama_emulator.library.cards import Card
from ollama_emulator.tokenizers import vocabulary
from ollama_emulator.tokenizers.vocabulary import Real, TokenEstimate, Vocabulary

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="▁"), max_size=60)
#: One of each kind: without weights, merged by score, taken from the left, merged by rank.
KINDS: Mapping[str, Callable[[], Vocabulary]] = {
    "guessed": TokenEstimate,
    "sentencepiece": lambda: known("tiny-a"),
    "wordpiece": lambda: known("tiny-embed"),
    "bytepairs": lambda: paired(["t h", "th e", "Ġ the", "Ġ w"]),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@given(text=_TEXT)
def test_a_text_has_its_ids(kind: str, text: str) -> None:
    """Each time the same numbers of tokens, and no more of them than the text has bytes, and one for its beginning."""
    found = KINDS[kind]()
    ids = [*found.encode(text)]
    assert ids == [*found.encode(text)]
    assert all(0 <= one < (found.size or len(ids) + 1) for one in ids)
    assert len(ids) <= len(text.encode()) + 1


@every_kind
@given(text=_TEXT)
def test_a_whole_text_has_the_marks_that_the_model_adds(kind: str, text: str) -> None:
    """One in front, one at the end, or none; and nothing else is changed."""
    found = KINDS[kind]()
    plain, whole = [*found.encode(text)], [*found.encode(text, whole=True)]
    assert len(whole) == found.adds_bos + len(plain) + found.adds_eos
    if found.size is not None:
        bos, eos = found.marks
        assert whole == [bos] * found.adds_bos + plain + [eos] * found.adds_eos


@every_kind
def test_tokens_read_alone_as_they_do_together(kind: str) -> None:
    """Where each letter is a byte; and nothing is no token, neither way."""
    found = KINDS[kind]()
    ids = found.encode("The water of the mind, 42 times.\n")
    assert found.decode(ids) == "".join(found.decode([one]) for one in ids) != ""
    assert [*found.encode("")] == []
    assert found.decode([]) == ""


def test_the_header_says_which_it_is() -> None:
    """By the name of its tokenizer; one of a kind that is unknown, or without pieces, is guessed."""
    pieces: dict[str, Any] = {"tokenizer.ggml.tokens": ["a"]}
    for number, info in enumerate(({}, pieces, {**pieces, "tokenizer.ggml.model": "t5"})):
        assert isinstance(vocabulary.vocabulary_of(f"unknown {number}", Card(info, 0, "F16")), TokenEstimate)
    splitters = [type(found.splitter).__name__ for kind in KINDS if isinstance(found := KINDS[kind](), Real)]
    assert splitters == ["SentencePiece", "WordPiece", "BytePairs"]
