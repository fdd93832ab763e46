"""Read text that is not UTF-8: by its byte order mark, else by what a detector finds in it."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from charset_normalizer import CharsetMatch, from_bytes

from batos.memory.reading.read_text import WRAPPED, Emit, NoText, NotReadable, ReadText, clean, has_few_nuls, wide_name

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
_WRAPPED: Final = re.compile(WRAPPED, re.MULTILINE)
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


#: Of so many syllables of Korean one may be rare.
_RARE: Final = 10
_PAIR: Final = 2
#: Bytes that a guess may not explain are at most one in so many.
_BROKEN: Final = 1_000
_HIGH_LINE: Final = re.compile(rb"[^\n]*[\x80-\xff][^\n]*\n?")
_CONTROLS: Final = re.compile(r"[^\t\n\r\f\v\x1b\x1a\x20-\U0010ffff]")


#: Characters that only a wrong guess finds.
_UNUSED: Final = re.compile("[\x80-\x84\x86-\x9f]")


class DecodedText(NamedTuple):
    """A text, and a phrase for all that is lost or uncertain of its bytes."""

    text: str
    doubts: tuple[str, ...] = ()


def read(path: Path, emit: Emit) -> None:
    """Read a file as one text."""
    decoded, doubts = decode(path.read_bytes())
    text, left_out = without_data(decoded)
    emit(ReadText(text, left_out=(*doubts, *left_out)))


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

    def name_data(found: re.Match[str]) -> str:
        kinds["data"] += 1
        return "data\n" if found[0].endswith("\n") else "data"

    text = _WRAPPED.sub(name_data, _DATA.sub(name_kind, text))
    count = sum(kinds.values())
    told = f"{count} piece{'s' * (count > 1)} of data in base64 ({', '.join(list(kinds)[:5])})"
    return text, (told,) if count else ()


def decode(data: bytes, declared: str = "") -> DecodedText:
    """Return bytes as text: by their mark, as UTF-8, as they are declared, as UTF-8 with errors, or as they look.

    Raises: NotReadable: no encoding fits them.
    """
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), "")
    for name in filter(None, (marked, "utf-8", declared, wide_name(data))):
        try:
            return DecodedText(_text(data, name))
        except (ValueError, LookupError):
            continue
    doubts = []
    if nuls := data.count(0):
        if not has_few_nuls(data):
            raise NoText("it has NUL bytes: it is no text")
        data = data.replace(b"\0", b"")
        doubts.append(f"{_count(nuls, 'NUL byte')} left out")
    found = _damaged_utf8(data) or _guess(data)
    if _CONTROLS.search(found.text[:_SAMPLE]):
        raise NoText("it has control characters: it is no text")
    return DecodedText(clean(found.text), (*doubts, *found.doubts))


def _damaged_utf8(data: bytes) -> DecodedText | None:
    """Return a text that is UTF-8 but for a few bytes, with a sign in their place; None where it is not."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd") - data.count("\ufffd".encode())
    whole = sum(each >= 0xC0 for each in data) - broken
    if not broken:
        return DecodedText(text)
    if whole <= broken:
        return None
    first = len(text[: text.find("\ufffd")].encode())
    return DecodedText(
        text, (f"{_count(broken, 'place')} not UTF-8, the first at byte {first:,}: \ufffd stands there",)
    )


def _guess(data: bytes) -> DecodedText:
    """Return bytes as a text in the encoding that they look like, by all of them."""
    sample = _sample(data)
    half = sample.find(b"\n", len(sample) // 2) + 1 or len(sample) // 2
    # A single byte that an encoding lacks rules it out: then a half without it tells.
    names = _looks_like(sample) or _looks_like(sample[:half]) or _looks_like(sample[half:])
    for name in names:
        with suppress(UnicodeError, LookupError):
            text = data.decode(name)
            if _UNUSED.search(text):
                continue
            others = [each for each in names if each != name and _differs(data, each, text)]
            doubt = (f"read as {name}; {others[0]} fits nearly as well",) if others else ()
            return DecodedText(text, doubt)
    for name in names:
        text = data.decode(name, "replace")
        broken = text.count("\ufffd")
        if broken * _BROKEN <= len(text):
            return DecodedText(text, (f"{_count(broken, 'place')} not {name}, which the rest is: \ufffd stands there",))
    raise NotReadable("its encoding is not known: `iconv -f ENCODING -t UTF-8 FILE` makes it UTF-8")


def _differs(data: bytes, name: str, text: str) -> bool:
    try:
        return data.decode(name) != text
    except (UnicodeError, LookupError):
        return False


def _count(number: int, what: str) -> str:
    return f"{number:,} {what} is" if number == 1 else f"{number:,} {what}s are"


def _sample(data: bytes) -> bytes:
    """Return the lines of a text, from its beginning on, that have letters beyond ASCII: the others tell nothing."""
    if len(data) <= _SAMPLE:
        return data
    lines, size = [], 0
    for found in _HIGH_LINE.finditer(data):
        lines.append(found[0])
        size += len(found[0])
        if size >= _SAMPLE:
            break
    whole = b"".join(lines)[:_SAMPLE]
    # The last character of a sample may be cut in two.
    return whole[: whole.rfind(b"\n") + 1] or whole


def _looks_like(sample: bytes) -> list[str]:
    """Return the encodings that a text looks like, the likeliest first; none where none fits."""
    found = list(from_bytes(sample, cp_isolation=list(_USUAL)))
    if not found:
        return []
    alike = {name for each in found if _fit(each) == _fit(found[0]) for name in each.could_be_from_charset}
    likely: list[str] = [name for name in _USUAL if name in alike] or [found[0].encoding]
    if likely[0] == "cp949" and not _is_korean(sample):
        likely = [each.encoding for each in found if each.encoding != "cp949"][:1] + likely
    return [*likely, *(each.encoding for each in found if each.encoding not in likely)]


def _is_korean(sample: bytes) -> bool:
    """Test if text in cp949 has few syllables that are no pair of bytes in its older standard: of kana most are."""
    letters = [each for each in sample.decode("cp949", "ignore") if not each.isascii()]
    rare = sum(1 for each in letters if len(each.encode("euc_kr", "ignore")) != _PAIR)
    return rare * _RARE <= len(letters)


def _fit(match: CharsetMatch) -> tuple[float, float]:
    return match.chaos, match.coherence


def _text(data: bytes, name: str) -> str:
    if codecs.lookup(name).name in _NO_CHARSETS:
        raise LookupError(name)
    text = data.decode(name)
    if "\0" in text:
        raise UnicodeError("NUL")
    return clean(text)
