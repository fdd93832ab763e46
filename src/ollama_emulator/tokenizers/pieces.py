"""The pieces of a GGUF file's vocabulary: ids, types and scores, and a text cut at its special tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

UNKNOWN, CONTROL, USER, BYTE = 2, 3, 4, 6
_KEPT = 64  # longest word whose ids are cached, in letters
_WORDS = 1 << 16  # words whose ids are cached
_SPECIAL = frozenset((UNKNOWN, CONTROL, USER))
_HEX = re.compile(r"<0x([0-9A-F]{2})>\Z")


@dataclass(slots=True)
class KnownWords:
    """The ids of words that were cut before; when it is full all are dropped, and those of a text come again."""

    _ids: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def ids_of(self, words: Iterable[str], cut: Callable[[str], tuple[int, ...]]) -> list[int]:
        """Return the token ids of words in order; `cut` gives those of a word that is not known."""
        found: list[int] = []
        known = self._ids
        for word in words:
            ids = known.get(word)
            if ids is None:
                ids = cut(word)
                if len(known) >= _WORDS:
                    known.clear()
                if len(word) <= _KEPT:
                    known[word] = ids
            found.extend(ids)
        return found


@dataclass(slots=True)
class Lexicon:
    """The pieces of a vocabulary in the order of their ids; `spaced` is the letter that stands for a blank in them."""

    pieces: Sequence[str]
    kinds: Sequence[int]
    scores: Sequence[float]
    bos: int
    eos: int
    unknown: int
    spaced: str
    ids: dict[str, int] = field(default_factory=dict)
    _special: re.Pattern[str] | None = None
    _spelled: Callable[[str], bytes] | None = None

    @classmethod
    def read(cls, info: Mapping[str, Any], spaced: str) -> Lexicon:
        """Build the lexicon from a GGUF header's metadata; without token types all pieces are plain."""
        pieces = [str(piece) for piece in info["tokenizer.ggml.tokens"]]
        kinds = info.get("tokenizer.ggml.token_type") or [1] * len(pieces)
        scores = info.get("tokenizer.ggml.scores") or [0.0] * len(pieces)
        marks = [_id(info, f"tokenizer.ggml.{name}_token_id", pieces) for name in ("bos", "eos", "unknown")]
        found = cls(pieces, kinds, scores, marks[0], marks[1], marks[2], spaced)
        for at, piece in enumerate(pieces):
            found.ids[piece] = at
        special = [piece for piece, kind in zip(pieces, kinds, strict=False) if kind in _SPECIAL and piece]
        special.sort(key=len, reverse=True)
        found._special = re.compile("|".join(map(re.escape, special))) if special else None
        return found

    def split(self, text: str) -> Iterator[str | int]:
        """Yield the parts of a text in order: a special token as its id, the text between two as a string."""
        at = 0
        for found in self._special.finditer(text) if self._special is not None else ():
            if found.start() > at:
                yield text[at : found.start()]
            yield self.ids[found[0]]
            at = found.end()
        if at < len(text):
            yield text[at:]

    def byte_ids(self, text: str) -> list[int]:
        """Return the id of the byte token for each UTF-8 byte of a text."""
        data = text.encode("utf-8", "surrogatepass")
        return [self.ids.get(f"<0x{one:02X}>", self.unknown) for one in data]

    def spell(self, spelled: Callable[[str], bytes]) -> None:
        """Set the function that turns a plain piece into its bytes, instead of its text with blanks."""
        self._spelled = spelled

    def token_bytes(self, one: int) -> bytes:
        """Return the bytes of a token by its id, b"" for an unknown id."""
        if not 0 <= one < len(self.pieces):
            return b""
        piece = self.pieces[one]
        kind = self.kinds[one] if one < len(self.kinds) else 1
        if kind == BYTE and (found := _HEX.match(piece)):
            return bytes.fromhex(found[1])
        if kind in _SPECIAL:
            return piece.encode("utf-8", "surrogatepass")
        if self._spelled is not None:
            return self._spelled(piece)
        text = piece.replace(self.spaced, " ") if self.spaced else piece
        return text.encode("utf-8", "surrogatepass")


def _id(info: Mapping[str, Any], key: str, pieces: Sequence[str]) -> int:
    """Return a token id of the header, 0 if missing or out of range."""
    given = info.get(key, 0)
    return given if isinstance(given, int) and 0 <= given < len(pieces) else 0


def merge_pairs(parts: list[str], rank: Callable[[str, str], float | None]) -> list[str]:
    """Merge neighbouring parts, the pair of the lowest rank first and the leftmost of equals, until no pair has a rank.

    `rank` returns None for a pair that is never merged. The result is a new list.
    """
    before = list(range(-1, len(parts) - 1))
    after = [*range(1, len(parts)), -1]
    heap: list[tuple[float, int, int, str]] = []

    def offer(left: int, right: int) -> None:
        if left >= 0 and right >= 0:
            found = rank(parts[left], parts[right])
            if found is not None:
                heappush(heap, (found, left, right, parts[left] + parts[right]))

    for at in range(len(parts) - 1):
        offer(at, at + 1)
    while heap:
        _, left, right, whole = heappop(heap)
        if not parts[left] or not parts[right] or parts[left] + parts[right] != whole:
            continue
        parts[left], parts[right] = whole, ""
        after[left] = after[right]
        if after[right] >= 0:
            before[after[right]] = left
        offer(before[left], left)
        offer(left, after[left])
    return [part for part in parts if part]
