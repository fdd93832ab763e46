"""Read text that is not UTF-8: by its byte order mark, else by what a detector finds in it."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from pathlib import Path
from typing import Final

from charset_normalizer import CharsetMatch, from_bytes

from batos.memory.reading.read_text import Emit, NoText, NotReadable, ReadText, clean

#: Bytes that are looked at for the encoding.
_SAMPLE: Final = 2**16
#: The encodings that a text may be taken for, the more usual ones first: of two that fit alike the first is taken.
_USUAL: Final = (
    "cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258",
    "cp932", "euc_jp", "iso2022_jp", "gb18030", "big5", "cp949", "cp874", "cp437", "cp850",
)  # fmt: skip
#: Codecs of Python that no file is written in; some take time by the square of the length.
_NO_CHARSETS: Final = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})
#: Data in base64: as a URI, or so long a run of letters and digits as no words have.
_DATA: Final = re.compile(
    r"data:([\w.+-]{1,60}/[\w.+-]{1,60})?[\w;=.+-]{0,80};base64,(?:[A-Za-z0-9+/_=-]|%[0-9A-F]{2}){40,}+"
    r"|(?<![A-Za-z0-9+/])(?=[a-z0-9+/]*[A-Z])(?=[A-Z0-9+/]*[a-z])[A-Za-z0-9+/]{2000,}+={0,2}"
)
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read(path: Path, emit: Emit) -> None:
    """Read a file as one text."""
    text, left_out = without_data(decode(path.read_bytes()))
    emit(ReadText(text, left_out=left_out))


def without_data(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text without the data that stand in it in base64, and a phrase that tells of them.

    >>> without_data("![lamp](data:image/png;base64,%s)" % ("iVBORw0K" * 9))
    ('![lamp](image/png)', ('1 piece of data in base64 (image/png)',))
    """
    kinds: Counter[str] = Counter()

    def name_kind(found: re.Match[str]) -> str:
        kind = found[1] or "data"
        kinds[kind] += 1
        return kind

    text = _DATA.sub(name_kind, text)
    count = sum(kinds.values())
    told = f"{count} piece{'s' * (count > 1)} of data in base64 ({', '.join(list(kinds)[:5])})"
    return text, (told,) if count else ()


def decode(data: bytes, declared: str = "") -> str:
    """Return bytes as text: by their mark, as UTF-8, as they are declared, or as they look.

    Raises: NotReadable: no encoding fits them.
    """
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), "")
    for name in filter(None, (marked, "utf-8", declared)):
        try:
            return _text(data, name)
        except (ValueError, LookupError):
            continue
    name = _looks_like(data[:_SAMPLE])
    if not name:
        raise NoText("it is no text in an encoding that can be told")
    try:
        text = data.decode(name)
    except (UnicodeError, LookupError):
        raise NotReadable(f"it looks like {name}, but it is not") from None
    if any(each < " " and each not in "\t\n\r\f\v\x1b\x1a" for each in text[:_SAMPLE]):
        raise NoText("it has control characters: it is no text")
    return clean(text)


def _looks_like(sample: bytes) -> str:
    """Return the encoding that a text looks like; "" where none fits."""
    # The last character of a sample may be cut in two.
    whole = sample[: sample.rfind(b"\n") + 1] or sample if len(sample) == _SAMPLE else sample
    found = list(from_bytes(whole, cp_isolation=list(_USUAL)))
    if not found:
        return ""
    alike = [each for each in found if _fit(each) == _fit(found[0])]
    names = {name for each in alike for name in each.could_be_from_charset}
    return next((name for name in _USUAL if name in names), found[0].encoding)


def _fit(match: CharsetMatch) -> tuple[float, float]:
    return match.chaos, match.coherence


def _text(data: bytes, name: str) -> str:
    if codecs.lookup(name).name in _NO_CHARSETS:
        raise LookupError(name)
    text = data.decode(name)
    if "\0" in text:
        raise UnicodeError("NUL")
    return clean(text)
