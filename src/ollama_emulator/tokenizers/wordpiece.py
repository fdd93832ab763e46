"""WordPiece as in llama.cpp: words without accents and capitals, cut into the longest pieces from the left."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class WordPiece:
    """The tokenizer of vocabularies of the kind `bert`; a piece that begins a word begins with the sign `▁`."""

    lexicon: Lexicon
    _longest: int = 0
    _known: KnownWords = field(default_factory=KnownWords)

    def __post_init__(self) -> None:
        self._longest = max(len(piece) for piece in self.lexicon.pieces)

    def ids(self, text: str, *, after_special: bool) -> Sequence[int]:
        """Return the token ids of a text; a word that no pieces spell is one unknown token."""
        return self._known.ids_of(words(text), self._cut)

    def _cut(self, word: str) -> tuple[int, ...]:
        """Cut a word into the longest pieces from the left; return their ids, or the unknown token."""
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


def words(text: str) -> list[str]:
    """Cut a text into words in small letters; punctuation marks and ideographs are words of their own."""
    found = [""]
    for letter in text:
        plain = unicodedata.normalize("NFD", letter)[0]
        kind = unicodedata.category(plain)
        if plain.isspace():
            if found[-1]:
                found.append("")
        elif plain in "\x00\ufffd" or kind in ("Cc", "Cf", "Co", "Cs", "Cn"):
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
