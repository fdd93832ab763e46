"""Byte-level pair encoding (BPE): a text is cut into words by a pattern, and bytes are merged by rank."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ollama_emulator.tokenizers.pieces import KnownWords, Lexicon, merge_pairs

_LAST = 0x323AF  # the last character that is a letter
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SHORT = "'s|'t|'re|'ve|'m|'ll|'d"
_ANY_SHORT = "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
_GPT2 = _SHORT + "| ?{L}+| ?{N}+| ?[^{s}{l}{n}]+|[{s}]+(?![^{s}])"
_LLAMA = (
    "(?:" + _ANY_SHORT + r")|[^\r\n{l}{n}]?{L}+|{N}{digits}| ?[^{s}{l}{n}]+[\r\n]*|[{s}]*[\r\n]+"
    "|[{s}]+(?![^{s}])|[{s}]+"
)
#: Patterns by `tokenizer.ggml.pre`; each cuts the parts that the one before left.
_PATTERNS: dict[str, tuple[str, ...]] = {
    "default": (r"[{p}\$\+<=>\^~\|]+", _GPT2, "{N}+", "[0-9][0-9][0-9]"),
    "gpt-2": (_GPT2,),
    "llama-bpe": (_LLAMA.replace("{digits}", "{{1,3}}"),),
    "qwen2": (_LLAMA.replace("{digits}", ""),),
    "starcoder": ("{N}", _GPT2),
}
_SAME = {
    "llama3": "llama-bpe",
    "llama-v3": "llama-bpe",
    "falcon3": "llama-bpe",
    "pixtral": "llama-bpe",
    "smaug-bpe": "llama-bpe",
    "dbrx": "llama-bpe",
    "deepseek-r1-qwen": "qwen2",
    "megrez": "qwen2",
    "stablelm2": "qwen2",
    "hunyuan": "qwen2",
    "gpt2": "gpt-2",
    "phi-2": "gpt-2",
    "mpt": "gpt-2",
    "olmo": "gpt-2",
    "jais": "gpt-2",
    "refact": "starcoder",
    "smollm": "starcoder",
    "command-r": "starcoder",
    "codeshell": "starcoder",
}
_WHOLE = frozenset(("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"))  # these never cut a piece


def starts(info: Mapping[str, Any]) -> bool:
    """Return whether a prompt begins with a bos token if the file's header does not say."""
    return str(info.get("tokenizer.ggml.pre", "")) in _WHOLE


@dataclass(slots=True)
class BytePairs:
    """The tokenizer of vocabularies of the kind `gpt2`: ranks of pairs, and the patterns that cut a text into words.

    With `whole` a word that is a piece is taken without merging.
    """

    lexicon: Lexicon
    ranks: Mapping[tuple[str, str], int]
    patterns: Sequence[re.Pattern[str]]
    whole: bool
    _known: KnownWords = field(default_factory=KnownWords)

    @classmethod
    def read(cls, lexicon: Lexicon, info: Mapping[str, Any]) -> BytePairs:
        """Build the tokenizer from a GGUF header's metadata; an unknown `tokenizer.ggml.pre` counts as `default`."""
        ranks: dict[tuple[str, str], int] = {}
        for rank, merge in enumerate(info.get("tokenizer.ggml.merges") or ()):
            left, _, right = str(merge).partition(" ")
            ranks.setdefault((left, right), rank)
        named = str(info.get("tokenizer.ggml.pre", "default"))
        known = _SAME.get(named, named)
        return cls(lexicon, ranks, _compile(known if known in _PATTERNS else "default"), named in _WHOLE)

    def ids(self, text: str, *, after_special: bool) -> Sequence[int]:
        """Return the token ids of a text without special tokens."""
        return self._known.ids_of(self._words(text), self._word_ids)

    def _word_ids(self, word: str) -> tuple[int, ...]:
        """Return the ids of a word, from the letters that stand for its bytes."""
        return self._merge("".join(_letters()[one] for one in word.encode("utf-8", "surrogatepass")))

    def _words(self, text: str) -> list[str]:
        """Cut a text into words by each pattern in turn."""
        parts = [text]
        for pattern in self.patterns:
            parts = [piece for part in parts for piece in _cut(pattern, part)]
        return parts

    def _merge(self, word: str) -> tuple[int, ...]:
        """Return the ids of one word, merging the leftmost pair of the lowest rank until no pair has a rank."""
        if self.whole and word in self.lexicon.ids:
            return (self.lexicon.ids[word],)
        parts = merge_pairs([*word], lambda left, right: self.ranks.get((left, right)))
        return tuple(one for part in parts for one in self._part_ids(part))

    def _part_ids(self, part: str) -> Sequence[int]:
        """Return the id of a part, or the ids of its letters if it is no piece."""
        one = self.lexicon.ids.get(part)
        if one is not None:
            return (one,)
        return [self.lexicon.ids[letter] for letter in part if letter in self.lexicon.ids]


def _cut(pattern: re.Pattern[str], text: str) -> list[str]:
    """Cut a text into the matches of a pattern and the texts between them."""
    found, at = [], 0
    for match in pattern.finditer(text):
        if match.start() > at:
            found.append(text[at : match.start()])
        if match.end() > match.start():
            found.append(match[0])
        at = match.end()
    if at < len(text):
        found.append(text[at:])
    return found


def bytes_of_piece(piece: str) -> bytes:
    """Return the bytes that a piece's letters stand for."""
    known = _bytes()
    return b"".join(bytes([known[letter]]) if letter in known else letter.encode() for letter in piece)


@lru_cache(maxsize=1)
def _letters() -> tuple[str, ...]:
    """Return the letter that stands for each byte in a piece: the byte's own if printable, else one from 256 on."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    letters, following = [], 0x100
    for one in range(0x100):
        if one in seen:
            letters.append(chr(one))
        else:
            letters.append(chr(following))
            following += 1
    return tuple(letters)


@lru_cache(maxsize=1)
def _bytes() -> dict[str, int]:
    return {letter: one for one, letter in enumerate(_letters())}


@lru_cache(maxsize=8)
def _compile(name: str) -> tuple[re.Pattern[str], ...]:
    """Compile the patterns of a `tokenizer.ggml.pre`, with ranges of characters for their classes."""
    known = _classes()
    letters, numbers, signs = known["L"], known["N"], known["P"]
    fill = {"L": f"[{letters}]", "N": f"[{numbers}]", "l": letters, "n": numbers, "p": signs, "s": _SPACE}
    return tuple(re.compile(pattern.format(**fill)) for pattern in _PATTERNS[name])


@lru_cache(maxsize=1)
def _classes() -> dict[str, str]:
    """Return the ranges of all letters (L), numbers (N) and punctuation (P), as the inside of a character class."""
    ranges: dict[str, list[str]] = {"L": [], "N": [], "P": []}
    start, held = 0, ""
    for code in range(_LAST + 2):
        kind = unicodedata.category(chr(code))[0] if code <= _LAST else ""
        if kind != held:
            if held in ranges:
                ranges[held].append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start, held = code, kind
    return {kind: "".join(found) for kind, found in ranges.items()}
