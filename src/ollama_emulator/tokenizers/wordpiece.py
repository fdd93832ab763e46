"""WordPiece as in llama.cpp, and as models were trained: words without accents, cut into the longest pieces."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ollama_emulator.tokenizers.pieces import KnownWords, Lexicon

_BLANK = "▁"
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_LAST_ASCII = 0x7F
_UNREAD = ("Cc", "Cf", "Co", "Cs", "Cn")
#: The longest word that BERT's own tokenizer cuts, in letters; a longer one is unknown.
_LONGEST = 100
#: The ids of [UNK], [CLS] and [SEP] in BERT's own vocabulary.
_UNKNOWN, _CLS, _SEP = 100, 101, 102
_ID = "tokenizer.ggml.{}_token_id".format


def words(text: str) -> list[str]:
    """Cut a text into words in small letters as llama.cpp does; marks and ideographs are words of their own.

    Of a letter that is made of several, such as a syllable in Hangul, only the first is kept.
    """
    return _words(unicodedata.normalize("NFD", letter)[0] for letter in text)


def trained_words(text: str) -> list[str]:
    """Cut a text into words as BERT's own tokenizer does, which the weights were trained with."""
    return _words(letter for letter in unicodedata.normalize("NFD", text) if unicodedata.category(letter) != "Mn")


def frame_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return a header that names the marks around a text as `bos` and `eos`.

    Converters write only `cls` and `seperator` (their spelling), or nothing where the ids are those of BERT.
    """
    bos = header.get(_ID("bos"), header.get(_ID("cls"), _CLS))
    eos = header.get(_ID("seperator"), header.get(_ID("eos"), _SEP))
    return {_ID("unknown"): _UNKNOWN, **header, _ID("bos"): bos, _ID("eos"): eos}


@dataclass(slots=True)
class WordPiece:
    """The tokenizer of vocabularies of the kind `bert`; a piece that begins a word begins with the sign `▁`.

    `words` cuts a text; a word of more than `most` letters is unknown.
    """

    lexicon: Lexicon
    words: Callable[[str], Sequence[str]] = words
    most: int | None = None
    _longest: int = 0
    _known: KnownWords = field(default_factory=KnownWords)

    def __post_init__(self) -> None:
        self._longest = max(len(piece) for piece in self.lexicon.pieces)

    @classmethod
    def trained_tokenizer(cls, lexicon: Lexicon) -> WordPiece:
        """Return the tokenizer that the weights were trained with."""
        return cls(lexicon, trained_words, _LONGEST)

    def ids(self, text: str, *, after_special: bool) -> Sequence[int]:
        """Return the token ids of a text; a word that no pieces spell is one unknown token."""
        return self._known.ids_of(self.words(text), self._cut)

    def _cut(self, word: str) -> tuple[int, ...]:
        """Cut a word into the longest pieces from the left; return their ids, or the unknown token."""
        if self.most is not None and len(word) > self.most:
            return (self.lexicon.unknown,)
        word = _BLANK + word
        found: list[int] = []
        at = 0
        while at < len(word):
            for end in range(min(len(word), at + self._longest), at, -1):
                one = self.lexicon.ids.get(word[at:end])
                if one is not None:
                    found.append(one)
                    at = end
                    break
            else:
                return (self.lexicon.unknown,)
        return tuple(found)


def _words(letters: Iterable[str]) -> list[str]:
    """Cut letters into words in small letters; punctuation marks and ideographs are words of their own."""
    found = [""]
    for plain in letters:
        kind = unicodedata.category(plain)
        if plain.isspace():
            if found[-1]:
                found.append("")
        elif plain in "\x00\ufffd" or kind in _UNREAD:
            continue
        elif kind.startswith("P") or (ord(plain) < _LAST_ASCII and kind.startswith("S")) or _ideograph(ord(plain)):
            if found[-1]:
                found.append("")
            found[-1] = plain.lower()
            found.append("")
        else:
            found[-1] += plain.lower()
    return [word for word in found if word]


def _ideograph(code: int) -> bool:
    return any(low <= code <= high for low, high in _IDEOGRAPHS)
