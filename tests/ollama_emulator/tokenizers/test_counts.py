"""Texts are counted by the vocabulary in the weights: three kinds of them, with recorded numbers and laws."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ollama_emulator.recordings import CHATML, SYSTEM, exchange, known

from ollama_emulator.library.cards import Card
from ollama_emulator.speech import tokens
from ollama_emulator.templating import templates
from ollama_emulator.templating.templates import Values
from ollama_emulator.tokenizers import bytepairs, vocabulary, wordpiece
from ollama_emulator.tokenizers.pieces import Lexicon, merge_pairs
from ollama_emulator.tokenizers.sentencepiece import SentencePiece
from ollama_emulator.tokenizers.vocabulary import Real, TokenEstimate, Vocabulary

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="▁"), max_size=60)


def paired(merges: list[str], pre: str = "default", special: tuple[str, ...] = ()) -> Real:
    """A byte-level vocabulary: a piece for every byte, one for every merge, and special ones."""
    letters = [chr(code) for code in (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x144))]
    whole = [*letters, *(merge.replace(" ", "") for merge in merges), *special]
    info: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": whole,
        "tokenizer.ggml.token_type": [1] * (len(whole) - len(special)) + [3] * len(special),
        "tokenizer.ggml.merges": merges,
    }
    found = vocabulary.vocabulary_of(f"{pre}{merges}{special}", Card(info, 0, "F16"))
    assert isinstance(found, Real)
    return found


def spoken(found: Vocabulary, text: str) -> list[str]:
    """The pieces of a text, each as text."""
    return [found.decode([one]) for one in found.encode(text)]


@pytest.mark.parametrize(("number", "count"), [(233, 57), (237, 42), (261, 45), (263, 39), (264, 41), (281, 69)])
def test_a_chat_prompt_counts_what_the_daemon_counted(number: int, count: int) -> None:
    """The llama vocabulary: merges by score, bytes for what has no piece, special tokens as one, one in front."""
    request, reply = exchange(number)
    prompt = templates.parse(CHATML).render(Values([SYSTEM, *request["messages"]]))
    assert len(known("tiny-a").encode(prompt, whole=True)) == count == reply["prompt_eval_count"]


def test_a_prompt_has_the_ids_that_the_daemon_gave_as_context() -> None:
    """Exchange 319: the context begins with the ids of the prompt without the one in front, and reads as it."""
    _, reply = exchange(319)
    prompt = templates.parse(CHATML).render(Values([SYSTEM, {"role": "user", "content": "Tell me."}]))
    ids = known("tiny-a").encode(prompt)
    assert list(ids) == reply["context"][: len(ids)]
    assert known("tiny-a").decode(reply["context"]).startswith(prompt + "I1")


@pytest.mark.parametrize(("text", "count"), [("the mind", 4), ("water", 3), ("", 2), ("x", 3), ("m " * 300, 302)])
def test_a_text_to_embed_counts_what_the_daemon_counted(text: str, count: int) -> None:
    """The bert vocabulary: pieces from the left, and a token at each end."""
    assert len(known("tiny-embed").encode(text, whole=True)) == count


@given(_TEXT)
def test_llama_tokens_joined_are_the_text(text: str) -> None:
    """Whatever a text holds, its tokens read as it: nothing is lost, bytes come back as letters."""
    assert known("tiny-a").decode(known("tiny-a").encode(text)) == text


@given(st.text("thersonwai me▁", max_size=40))
def test_words_alone_merge_as_the_whole_text_does(text: str) -> None:
    """A vocabulary without pieces over a blank behind a letter is cut into words first, and nothing changes."""
    real = known("tiny-a")
    assert isinstance(real, Real)
    whole = SentencePiece(real.lexicon, prefixed=False, parted=False)
    parted = SentencePiece(real.lexicon, prefixed=False, parted=True)
    assert [*parted.ids(text, after_special=True)] == [*whole.ids(text, after_special=True)]


def test_a_blank_is_put_before_what_follows_a_special_token() -> None:
    """With add_space_prefix, as most llama vocabularies have it."""
    real = known("tiny-a")
    assert isinstance(real, Real)
    prefixed = SentencePiece(real.lexicon, prefixed=True, parted=True)
    assert prefixed.ids("water", after_special=True) == [261, *prefixed.ids("water", after_special=False)]


def test_the_best_score_merges_first_and_the_leftmost_of_equals() -> None:
    """`abab` with pieces ab and ba of one score is ab ab, never a ba b."""
    ranks = {"ab": 1.0, "ba": 1.0, "aba": 0.5}
    assert merge_pairs([*"abab"], lambda left, right: ranks.get(left + right)) == ["aba", "b"]
    assert merge_pairs([*"abab"], lambda left, right: {"ab": 1.0, "ba": 1.0}.get(left + right)) == ["ab", "ab"]


def test_a_word_without_an_end_is_merged_in_time() -> None:
    """A hundred thousand letters without a blank: the merges are taken from a heap, not looked for again and again."""
    assert len(known("tiny-a").encode("a" * 100_000)) == 100_000
    assert len(paired(["a a", "aa aa"]).encode("a" * 100_000)) == 25_000


@given(_TEXT)
def test_byte_pairs_joined_are_the_text(text: str) -> None:
    """Every text is bytes, every byte has a letter, and the pieces read as the text."""
    found = paired(["t h", "th e", "Ġ the", "Ġ w"])
    assert found.decode(found.encode(text)) == text


def test_pairs_merge_by_their_rank() -> None:
    """The first merge of the list is made first, wherever its pair stands."""
    assert spoken(paired(["h e", "t h"], "gpt-2"), "the") == ["t", "he"]
    assert spoken(paired(["t h", "h e"], "gpt-2"), "the") == ["th", "e"]


@pytest.mark.parametrize(
    ("pre", "text", "words"),
    [
        ("gpt-2", "We'll see 2024 things!!", ["We", "'ll", " see", " 2024", " things", "!!"]),
        ("llama-bpe", "We'LL see 2024\n things!!\n", ["We", "'LL", " see", " ", "202", "4", "\n", " things", "!!\n"]),
        ("qwen2", "a 20", ["a", " ", "2", "0"]),
        ("starcoder", "v12 x", ["v", "1", "2", " x"]),
        ("default", "no. 12345", ["no", ".", " ", "123", "45"]),
        ("never heard of", "a.b", ["a", ".", "b"]),
        ("qwen2", "a   b", ["a", "  ", " b"]),
        ("llama-bpe", "Grüße 水½", ["Grüße", " 水", "½"]),
    ],
)
def test_a_text_is_cut_by_the_pattern_of_its_vocabulary(pre: str, text: str, words: list[str]) -> None:
    """Words, numbers and signs by `tokenizer.ggml.pre`; no merge goes over a cut."""
    splitter = paired([], pre).splitter
    assert isinstance(splitter, bytepairs.BytePairs)
    assert splitter._words(text) == words


def test_a_word_that_is_a_piece_is_taken_whole() -> None:
    """Llama 3 takes it even where its merges would give other pieces."""
    info_merges = ["a b", "b c"]
    found = paired(info_merges, "llama-bpe", ("<|eot_id|>",))
    lexicon: Lexicon = found.lexicon
    lexicon.ids["abc"] = len(lexicon.pieces)
    lexicon.pieces = [*lexicon.pieces, "abc"]
    assert spoken(found, "abc") == ["abc"]


def test_special_tokens_are_one_token_each_where_they_stand() -> None:
    """The longest of them first."""
    found = paired([], special=("<|a|>", "<|a|><|b|>"))
    assert spoken(found, "x<|a|><|b|>y<|a|>") == ["x", "<|a|><|b|>", "y", "<|a|>"]


def test_words_for_bert_have_no_accents_and_no_capitals() -> None:
    """Signs and ideographs are words of their own, control characters none."""
    assert wordpiece.words("Crème\tBRÛLÉE, 水x\x07!") == ["creme", "brulee", ",", "水", "x", "!"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Crème\tBRÛLÉE, 水x\x07!", ["creme", "brulee", ",", "水", "x", "!"]),
        ("e\u0301tude", ["etude"]),
        ("각", ["\u1100\u1161\u11a8"]),
    ],
    ids=["marks", "an accent apart", "a syllable"],
)
def test_words_for_vectors_are_those_of_the_training(text: str, words: list[str]) -> None:
    """A syllable keeps all its letters, and an accent is left out however it is written."""
    assert wordpiece.trained_words(text) == words


def test_a_word_of_many_letters_is_unknown_to_a_vector() -> None:
    """Where tokens are counted its pieces count; the ids of a vector fit the window, both marks included."""
    found = known("tiny-embed")
    assert isinstance(found, Real)
    assert len(found.encode("m" * 101, whole=True)) > 3
    assert list(found.vector_ids("m" * 101, 9)) == [2, 1, 3]
    assert list(found.vector_ids("m m m m", 4)) == [2, *found.encode("m m"), 3]


@pytest.mark.parametrize(
    ("named", "marks"),
    [
        ({"bos": 3, "eos": 4}, (3, 4)),
        ({"cls": 5, "seperator": 6}, (5, 6)),
        ({"bos": 3, "cls": 5, "eos": 4, "seperator": 6}, (3, 6)),
        ({}, (101, 102)),
    ],
    ids=["bos and eos", "as converters write them", "both", "none"],
)
def test_a_text_for_bert_stands_between_its_marks(named: dict[str, int], marks: tuple[int, int]) -> None:
    """However a header names them, or does not: the ids are then those of BERT's own vocabulary."""
    pieces = [f"▁p{number}" for number in range(110)]
    info: dict[str, Any] = {"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": pieces}
    info |= {f"tokenizer.ggml.{name}_token_id": number for name, number in named.items()}
    found = vocabulary.vocabulary_of(f"bert{named}", Card(info, 0, "F16"))
    assert [*found.encode("p1 p2", whole=True)] == [marks[0], 1, 2, marks[1]]


def test_a_word_that_cannot_be_cut_is_one_unknown_token() -> None:
    """Even where its beginning has pieces."""
    assert known("tiny-embed").encode("mind水") == known("tiny-embed").encode("mind 水")
    assert known("tiny-embed").encode("waterç") == known("tiny-embed").encode("waterc")
    assert [*known("tiny-embed").encode("aΩb")] == [1]


def test_weights_that_are_not_here_count_four_bytes_a_token() -> None:
    """With one for each mark of a chat format and one in front; an embedder has one behind, too."""
    text = "<|start_header_id|>user<|end_header_id|>\n\n" + "y" * 42 + "<|eot_id|>"
    assert len(TokenEstimate().encode(text)) == 3 + (4 + 2 + 42) // 4
    assert len(TokenEstimate().encode(text, whole=True)) == 16
    embedder = vocabulary.vocabulary_of("some embedder", Card({"bert.pooling_type": 1}, 0, "F16"))
    assert len(embedder.encode("12345678", whole=True)) == 4


@given(st.text(max_size=80))
def test_pieces_of_an_answer_joined_are_the_answer(text: str) -> None:
    """What is streamed adds up to what is said."""
    assert "".join(tokens.pieces(text)) == text
