"""Numbers in words and in Chinese characters, as far as they are read without grammar: up to a hundred."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from importlib.resources import files

_READ = tomllib.loads(files(__package__).joinpath("numerals.toml").read_text(encoding="utf-8"))
_ONES, _TEENS, _TENS, _OTHERS = (_READ[name] for name in ("ones", "teens", "tens", "others"))
#: The values of a fraction's word beside its percentage.
_FRACTIONS = {Decimal(50): Decimal("0.5"), Decimal(25): Decimal("0.25")}
_SIGNS = {"½": ("0.5", "50"), "¼": ("0.25", "25"), "¾": ("0.75", "75")}

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_CHINESE = re.compile(r"[〇零一二两三四五六七八九十百千万亿]+")
_DIGITS = {sign: value for value, signs in enumerate(("〇零", "一", "二两", "三", *"四五六七八九")) for sign in signs}
_DIGIT_SIGNS = dict(zip("0123456789", "〇一二三四五六七八九", strict=True))
#: A number before what it counts.
_MEASURED = re.compile(
    r"(?<![\d.,〇零一二两三四五六七八九十百千万亿])([〇零一二两三四五六七八九十百千万亿\d]{1,12})"
    r"(?=[月号元円块圆人名个個台間间天日晚次本冊册张枚歳岁年週周分時点户世米公克度階级級桶杯])"
)
_UNITS = {"十": 10, "百": 100, "千": 1_000}


def _compose(language: str, tens: str, one: str) -> Iterator[str]:
    """Yield the spellings of tens with a one: twenty-seven, siebenundzwanzig, veintisiete, treinta y siete."""
    yield f"{tens}-{one}"
    if language == "German":
        yield f"{one}und{tens}"
    elif language == "Dutch":
        yield f"{one}{'ën' if one.endswith('e') else 'en'}{tens}"
    elif language == "Spanish":
        yield f"veinti{one}" if tens == "veinte" else f"{tens} y {one}"
    elif language == "Italian":
        yield f"{tens[:-1] if one[0] in 'uo' else tens}{one}"
    elif language == "French":
        yield f"{tens.removesuffix('s')}-{one}"


def _words(language: str) -> Iterator[tuple[str, Decimal]]:
    """Yield the words from ten to ninety-nine with their values."""
    yield from ((word, Decimal(value)) for value, word in enumerate(_TEENS[language].split(), start=10))
    for place, tens in enumerate(_TENS[language].split(), start=2):
        yield tens, Decimal(10 * place)
        for one, word in enumerate(_ONES[language].split(), start=1):
            yield from ((written, Decimal(10 * place + one)) for written in _compose(language, tens, word))


_BY_LANGUAGE = {language: dict(_words(language)) for language in _TEENS}
_VALUES = {word: value for words in _BY_LANGUAGE.values() for word, value in words.items()}
_VALUES |= {word: Decimal(value) for said in _ONES.values() for value, word in enumerate(said.split(), start=1)}
_VALUES |= {word: Decimal(value) for value, said in _OTHERS.items() for word in said.split()}
_SPACED = {tuple(word.split()): value for word, value in _VALUES.items() if " " in word}

_FROM_TWO = {
    language: {
        **{word: value for value, word in enumerate(_ONES[language].split(), start=1) if value > 1},
        **{word: int(value) for word, value in of.items()},
    }
    for language, of in _BY_LANGUAGE.items()
}


def numbers_in_words(text: str) -> frozenset[Decimal]:
    """Return the values of a text's numbers in words, up to ninety-nine, and of Chinese ones.

    >>> sorted(map(int, numbers_in_words("eighty-six steps; treinta y siete; 八十六")))
    [7, 30, 37, 86]
    """
    found: set[Decimal] = set()
    said = _WORD.findall(text.casefold())
    for word in set(said):
        values = {_VALUES[part] for part in ([word] if word in _VALUES else word.split("-")) if part in _VALUES}
        found |= values
        found.update(_FRACTIONS[value] for value in values & _FRACTIONS.keys())
    if " y " in text:
        found.update(_SPACED[three] for three in zip(said, said[1:], said[2:], strict=False) if three in _SPACED)
    found.update(Decimal(value) for sign, values in _SIGNS.items() if sign in text for value in values)
    found.update(Decimal(value) for value in map(chinese, set(_CHINESE.findall(text))) if value is not None)
    return frozenset(found)


def number_words(text: str, language: str) -> dict[str, Decimal]:
    """Return the number words from eleven on in a text of that language (by its English name), with their values.

    >>> number_words("Twenty-seven of them, once.", "English")
    {'twenty-seven': Decimal('27')}
    """
    words = _BY_LANGUAGE.get(language, {})
    found = {word: words[word] for word in _WORD.findall(text.casefold()) if word in words}
    return {word: value for word, value in found.items() if value > 10}


def value_of(word: str, language: str | None) -> int | None:
    """Return the value of a number word of that language, from two on; None of any other word.

    >>> value_of("seven", "English"), value_of("once", "English"), value_of("once", "Spanish")
    (7, None, 11)
    """
    return _FROM_TWO.get(language or "", {}).get(word)


def chinese_numbers(text: str) -> list[tuple[str, Decimal]]:
    """List the Chinese numbers of a text from ten on that count or measure something, those with figures in them too.

    >>> [(word, str(value)) for word, value in chinese_numbers("每晚四百八十元，十分好，3万5千円")]
    [('四百八十', '480'), ('3万5千', '35000')]
    """
    placed = placed_chinese(text)
    return [(text[start:end], Decimal(value)) for start, end, value in placed if value >= 10 and end - start > 1]


def placed_chinese(text: str) -> list[tuple[int, int, int]]:
    """List the (start, end, value) of the Chinese numbers of a text that count, measure or date something."""
    found: list[tuple[int, int, int]] = []
    for each in _MEASURED.finditer(text):
        value = chinese("".join(_DIGIT_SIGNS.get(sign, sign) for sign in each[1]))
        if value is not None and not each[1].isdigit():
            found.append((*each.span(1), value))
    return found


def value_of_any(word: str) -> Decimal | None:
    """Return the value of a number word of whatever language knows it; None of any other word."""
    return _VALUES.get(word)


def chinese(numeral: str) -> int | None:
    """Return the value of a Chinese numeral, digit by digit (二〇二三) or with units (一千二百); None if it is neither.

    >>> chinese("二〇二三"), chinese("八十六"), chinese("一千二百"), chinese("十十")
    (2023, 86, 1200, None)
    """
    if not any(sign in _UNITS or sign in "万亿" for sign in numeral):
        return int("".join(str(_DIGITS[sign]) for sign in numeral)) if len(numeral) < 10 else None
    total = section = digit = 0
    last = 10_000
    for sign in numeral:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
        elif sign in _UNITS:
            if _UNITS[sign] >= last:
                return None
            last = _UNITS[sign]
            section += (digit or 1) * last
            digit = 0
        else:
            total = (total + section + digit) * (10_000 if sign == "万" else 100_000_000)
            section, digit, last = 0, 0, 10_000
    return total + section + digit
