"""Words that are erased: where they stand in texts, values and bytes, also within compressed bytes and base64."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from persistent import Persistent

#: Stands in the place of words that were erased.
MARK: Final = "[erased]"
#: The beginnings of zlib's streams, by level.
_DEFLATED: Final = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
#: Streams within streams that are opened, and the most bytes that one may have.
_DEEPEST: Final = 3
_MOST: Final = 256 * 2**20
#: The bytes that a stream is fed at first, and at most at once.
_PIECE, _LARGEST_PIECE = 256, 2**16
#: The bytes that are searched at once, and those behind which a search that goes from place to place is heeded.
_SLICE, _HEEDED = 2**20, 2**16
#: Times their own length that bytes may cost by streams that are none, and what is free for short ones.
_OVERLAPS, _FREE = 8, 2**16
#: The shortest line or sentence, and the shortest single word, by which a text is known elsewhere.
_SENTENCE, _WORD = 24, 20
#: The names of fields, as the program writes them.
_FIELD: Final = re.compile(r"_?[a-z][a-z_]*|sha256")
#: The end of a line or of a sentence.
_BREAK: Final = re.compile(r"\n+|(?<=[.!?;:])\s+")


class ErasedWords:
    """Some words, each a text of its own; an instance without any is in nothing."""

    def __init__(self, words: Iterable[str], heed: Callable[[int], object] = lambda size: None) -> None:
        """Take the words; `heed` is called within every search, however long that is, with the bytes that are done.

        Whatever it raises ends the search.
        """
        self._heed = heed
        kept = {each for each in words if each.strip()}
        written = {form for each in kept for form in _list_forms(each)}
        #: The words and how JSON writes them; the longest first, so that none is cut by a shorter one.
        self.texts = tuple(sorted(written, key=lambda each: (-len(each), each)))
        raw = {each.encode("utf-8", "surrogatepass") for each in self.texts}
        encoded = {form for each in kept for form in _in_base64(each.encode("utf-8", "surrogatepass"))}
        self._forms = tuple(sorted(raw | encoded))

    def __bool__(self) -> bool:
        return bool(self.texts)

    def are_in(self, text: str) -> bool:
        """Test if a text has one of them."""
        self._heed(len(text))
        return any(each in text for each in self.texts)

    def are_in_value(self, value: object) -> bool:
        """Test if plain data has one of them; objects that it refers to are not looked into."""
        if isinstance(value, str):
            return self.are_in(value)
        if isinstance(value, bytes):
            return self.are_in_bytes(value)
        if isinstance(value, Persistent):
            return False
        if isinstance(value, Mapping):
            return any(self.are_in_value(each) for pair in value.items() for each in pair)
        if isinstance(value, list | tuple | set | frozenset):
            return any(map(self.are_in_value, value))
        return False

    def are_in_bytes(self, data: bytes, depth: int = 0) -> bool:
        """Test if bytes have one of them: as they are, in base64, or in a stream of zlib within."""
        if not self.texts:
            return False
        if self._are_plain_in(data, counts=not depth):
            return True
        if depth >= _DEEPEST:
            return False
        return any(self.are_in_bytes(each, depth + 1) for each in _streams_in(data, self._heed))

    def _are_plain_in(self, data: bytes, *, counts: bool) -> bool:
        beyond = max(map(len, self._forms)) - 1
        for start in range(0, len(data), _SLICE):
            end = start + _SLICE
            self._heed(min(end, len(data)) - start if counts else 0)
            if any(data.find(each, start, end + beyond) >= 0 for each in self._forms):
                return True
        return False

    def redact(self, text: str) -> str:
        """Return a text with a mark in the place of each of them."""
        for each in self.texts:
            text = text.replace(each, MARK)
        return text

    def redact_value(self, value: object) -> Any:
        """Return plain data with a mark in the place of each of them; what has none is returned as it is."""
        if isinstance(value, str):
            return self.redact(value) if self.are_in(value) else value
        if isinstance(value, bytes):
            return MARK.encode() if self.are_in_bytes(value) else value
        if isinstance(value, Persistent):
            return value
        if isinstance(value, Mapping):
            pairs = [(self._redact_key(key), self.redact_value(each)) for key, each in value.items()]
            if all(new[0] is key and new[1] is each for new, (key, each) in zip(pairs, value.items(), strict=True)):
                return value
            return type(value)(dict(pairs))  # type: ignore[call-arg]
        if not isinstance(value, list | tuple | set | frozenset):
            return value
        redacted = [self.redact_value(each) for each in value]
        if all(new is each for new, each in zip(redacted, value, strict=True)):
            return value
        return type(value)(*redacted) if hasattr(value, "_fields") else type(value)(redacted)

    def _redact_key(self, key: object) -> Any:
        """Return a key without the words; one that may be a field's name stays: the program finds its data by it."""
        return key if isinstance(key, str) and _FIELD.fullmatch(key) else self.redact_value(key)


def _list_forms(words: str) -> set[str]:
    """Return words as they are, and as JSON writes them within a text."""
    return {words, json.dumps(words)[1:-1], json.dumps(words, ensure_ascii=False)[1:-1]}


def _in_base64(raw: bytes) -> set[bytes]:
    """Return what base64 makes of some bytes wherever they begin, without what depends on their neighbours."""
    found: set[bytes] = set()
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + raw + b"\0" * (-(before + len(raw)) % 3))
        first, end = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        core = whole[first:end]
        found |= {core, base64.urlsafe_b64encode(base64.b64decode(whole))[first:end]}
    return {each for each in found if len(each) >= 8}


def _streams_in(data: bytes, heed: Callable[[int], object]) -> Iterator[bytes]:
    """Yield the content of the streams of zlib in bytes, in time that is linear in the bytes and in what comes out.

    A whole stream has a checksum: nothing else begins within it. Bytes that only look like a stream may overlap with
    others, until that has cost several times their length; then the search goes on behind each.
    """
    at, left, heeded = 0, _OVERLAPS * len(data) + _FREE, 0
    while at < len(data):
        if at >= heeded:
            heed(0)
            heeded = at + _HEEDED
        found = _DEFLATED.search(data, at, heeded + 1)
        if found is None:
            at = heeded
            continue
        at = found.start() + 2
        if not _may_begin(data, at):
            continue
        content, end, is_whole = _inflate(data, found.start(), heed)
        if not is_whole:
            left -= end - at + len(content)
        if is_whole or left < 0:
            at = max(at, end)
        if content:
            yield content


def _may_begin(data: bytes, at: int) -> bool:
    """Test if the first block of a stream may stand here: most of what looks like a stream ends at this."""
    block = data[at : at + 5]
    if len(block) < 5:
        return True
    kind = block[0] & 6
    return kind != 6 and (kind != 0 or block[1] ^ block[3] == block[2] ^ block[4] == 255)


def _inflate(data: bytes, start: int, heed: Callable[[int], object]) -> tuple[bytes, int, bool]:
    """Return the stream that begins at a place, fed in pieces, so that a wrong one costs no more than it has."""
    inflater, view, content = zlib.decompressobj(), memoryview(data), bytearray()
    at, size = start, _PIECE
    while at < len(data) and not inflater.eof and len(content) < _MOST:
        heed(0)
        piece = view[at : at + size]
        try:
            content += inflater.decompress(piece, _MOST - len(content))
        except zlib.error:
            return bytes(content), at, False
        at += len(piece) - len(inflater.unused_data) - len(inflater.unconsumed_tail)
        size = min(2 * size, _LARGEST_PIECE)
    return bytes(content), at, inflater.eof


def passages_of(text: str) -> set[str]:
    """Return what a text can be known by where it is quoted: the whole, its lines and sentences, its longest words.

    >>> sorted(passages_of("Yes. The key is 7f3a9c1e5b2d8f4a6c0e."))
    ['7f3a9c1e5b2d8f4a6c0e', 'The key is 7f3a9c1e5b2d8f4a6c0e.', 'Yes. The key is 7f3a9c1e5b2d8f4a6c0e.']
    """
    found = {each.strip() for each in (text, *_BREAK.split(text)) if len(each.strip()) >= _SENTENCE}
    words = (each.strip(".,;:!?\"'()[]{}<>`") for each in text.split())
    return found | {each for each in words if len(each) >= _WORD and any(map(str.isdigit, each)) and "://" not in each}
