"""SentencePiece as in llama.cpp: letters are merged by the score of the resulting piece; the rest becomes bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ollama_emulator.tokenizers.pieces import KnownWords, Lexicon, merge_pairs

BLANK = "▁"
_SEGMENT = re.compile(f"{BLANK}*[^{BLANK}]+|{BLANK}+")


@dataclass(slots=True)
class SentencePiece:
    """The tokenizer of vocabularies of the kind `llama`.

    With `prefixed` a text gets a blank in front. With `parted` no piece spans two words, so each word is cut alone.
    """

    lexicon: Lexicon
    prefixed: bool
    parted: bool
    _known: KnownWords = field(default_factory=KnownWords)

    @classmethod
    def read(cls, lexicon: Lexicon, info: Mapping[str, Any]) -> SentencePiece:
        """Build the tokenizer from a GGUF header's metadata."""
        prefixed = bool(info.get("tokenizer.ggml.add_space_prefix", True))
        return cls(lexicon, prefixed, not any(BLANK in piece.lstrip(BLANK) for piece in lexicon.pieces))

    def ids(self, text: str, *, after_special: bool) -> Sequence[int]:
        """Return the token ids of a text without special tokens; `after_special` allows a blank in front of it."""
        if self.prefixed and after_special:
            text = " " + text
        text = text.replace(" ", BLANK)
        if not self.parted:
            return self._merge(text)
        return self._known.ids_of(_SEGMENT.findall(text), self._merge)

    def _merge(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text, merging the neighbours of the highest score first."""
        lexicon = self.lexicon

        def rank(left: str, right: str) -> float | None:
            one = lexicon.ids.get(left + right)
            return -lexicon.scores[one] if one is not None and one < len(lexicon.scores) else None

        return tuple(one for part in merge_pairs([*text], rank) for one in self._part_ids(part))

    def _part_ids(self, part: str) -> Sequence[int]:
        one = self.lexicon.ids.get(part)
        return (one,) if one is not None else self.lexicon.byte_ids(part)
