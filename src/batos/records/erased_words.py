"""Words that are erased: where they stand in texts, values and bytes, also within compressed bytes and base64."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from persistent import Persistent

#: Stands in the place of words that were erased.
MARK: Final = "[erased]"
#: The beginnings of zlib's streams, by level.
_DEFLATED: Final = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
#: Streams within streams that are opened, and the most bytes that one may have.
_DEEPEST: Final = 3
_MOST: Final = 256 * 2**20
#: The shortest line or sentence, and the shortest single word, by which a text is known elsewhere.
_SENTENCE, _WORD = 24, 20
#: The names of fields, as the program writes them.
_FIELD: Final = re.compile(r"_?[a-z][a-z_]*|sha256")
#: The end of a line or of a sentence.
_BREAK: Final = re.compile(r"\n+|(?<=[.!?;:])\s+")


class ErasedWords:
    """Some words, each a text of its own; an instance without any is in nothing."""

    def __init__(self, words: Iterable[str]) -> None:
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
        """Tell whether a text has one of them."""
        return any(each in text for each in self.texts)

    def are_in_value(self, value: Any) -> bool:
        """Tell whether plain data has one of them; objects that it refers to are not looked into."""
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
        """Tell whether bytes have one of them: as they are, in base64, or in a stream of zlib within."""
        if any(each in data for each in self._forms):
            return True
        if depth >= _DEEPEST or not self.texts:
            return False
        return any(
            self.are_in_bytes(inner, depth + 1)
            for found in _DEFLATED.finditer(data)
            if (inner := _inflate(data[found.start() :]))
        )

    def redact(self, text: str) -> str:
        """Return a text with a mark in the place of each of them."""
        for each in self.texts:
            text = text.replace(each, MARK)
        return text

    def redact_value(self, value: Any) -> Any:
        """Return plain data with a mark in the place of each of them; what has none is returned as it is."""
        if not self.are_in_value(value):
            return value
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, bytes):
            return MARK.encode()
        if isinstance(value, Mapping):
            return type(value)({self._redact_key(key): self.redact_value(each) for key, each in value.items()})  # type: ignore[call-arg]
        redacted = [self.redact_value(each) for each in value]
        return type(value)(*redacted) if hasattr(value, "_fields") else type(value)(redacted)

    def _redact_key(self, key: Any) -> Any:
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


def _inflate(data: bytes) -> bytes:
    """Return the stream that bytes begin with; b"" if it is none."""
    try:
        return zlib.decompressobj().decompress(data, _MOST)
    except zlib.error:
        return b""


def passages_of(text: str) -> set[str]:
    """Return what a text can be known by where it is quoted: the whole, its lines and sentences, its longest words.

    >>> sorted(passages_of("Yes. The key is 7f3a9c1e5b2d8f4a6c0e."))
    ['7f3a9c1e5b2d8f4a6c0e', 'The key is 7f3a9c1e5b2d8f4a6c0e.', 'Yes. The key is 7f3a9c1e5b2d8f4a6c0e.']
    """
    found = {each.strip() for each in (text, *_BREAK.split(text)) if len(each.strip()) >= _SENTENCE}
    words = (each.strip(".,;:!?\"'()[]{}<>`") for each in text.split())
    return found | {each for each in words if len(each) >= _WORD and any(map(str.isdigit, each)) and "://" not in each}
