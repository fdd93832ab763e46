"""The languages of texts: a guess of script and language, and the stems of the words that say something."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from batos.gate import numerals
from batos.memory.segmentation import STEM, placed_terms, words
from batos.memory.words_by_language import ASKING, without_ending

#: The small words that a sentence of a language can hardly do without.
_SMALL = tomllib.loads(files(__package__).joinpath("languages.toml").read_text(encoding="utf-8"))
_SMALL_WORDS = {language: frozenset(" ".join(listed).split()) for language, listed in _SMALL.items()}
_LANGUAGES_OF = {
    word: [language for language, small in _SMALL_WORDS.items() if word in small]
    for word in frozenset().union(*_SMALL_WORDS.values())
}
#: All of them: words that say little about what a text says.
SMALL_WORDS = frozenset().union(*_SMALL_WORDS.values())

#: Words of a text, and small words among them, from which on it is told to be in another language.
_LEAST_WORDS, _LEAST_HITS = 6, 2
#: A sample is enough to tell.
_SAMPLE = 4_000
_EAST_ASIAN = {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "IDEOGRAPHIC", "HANGUL", "BOPOMOFO"}

_KANA, _HANGUL = re.compile("[\u3041-\u30fa]"), re.compile("[\uac00-\ud7a3]")
_HAN, _CHINESE = re.compile("[\u3400-\u9fff]"), re.compile("[的了吗么这们哪为着呢吧们個這嗎們為]")

# A question that names a language may be about to ask for it.
_NAMES_LANGUAGE = re.compile(
    r"translat|übersetz|tradu[cziç]|vertaal|перев|翻[译譯訳]|अनुवाद|\b(?:englis[hc]|anglais|ingl[eé]s|engels|german|deutsch|"
    r"allemand|alem[aá]|tedesc|duits|french|franz|fran[cç]|frances|spanis|espa[gñ]|italian|italien|portug|dutch|"
    r"niederl|russ|chines|japan|latin|hindi|arabi|korea|polnisch|polish)|[英德法俄日中韩]文|[英德法俄日汉韩漢]语|[英独仏中]語|日本語|"
    r"русск|англ|немец|हिन्दी|हिंदी"
)
_DATA = re.compile(r"```(?:json|ya?ml|csv|)\s*\n\s*[{\[]|`[\d.,:]+`", re.IGNORECASE)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


def scripts(text: str) -> Counter[str]:
    """Count the letters of each script in a text, scripts by Unicode name; East Asian ones count as CJK."""
    counts: Counter[str] = Counter()
    for letter, number in Counter(text).items():
        if letter.isalpha():
            script = unicodedata.name(letter, "UNKNOWN").partition(" ")[0]
            counts["CJK" if script in _EAST_ASIAN else script] += number
    return counts


def main_scripts(text: str) -> frozenset[str]:
    """Return the scripts that make up at least a tenth of a text's letters."""
    counts = scripts(text)
    total = counts.total()
    return frozenset(script for script, number in counts.items() if number * 10 >= total)


def guess(text: str) -> str | None:
    """Guess a text's language by its small words, or by its letters for Chinese, Japanese and Korean; None if not
    clear.

    >>> guess("How does the keeper know that the lamp is burning?")
    'English'
    """
    if eastern := _eastern(text[:_SAMPLE]):
        return eastern
    said = words(text[:_SAMPLE])
    hits: dict[str, list[str]] = {language: [] for language in _SMALL_WORDS}
    for word in said:
        for language in _LANGUAGES_OF.get(word, ()):
            hits[language].append(word)
    first, second = sorted(hits, key=lambda language: -len(hits[language]))[:2]
    most, next_most = len(hits[first]), len(hits[second])
    # Related languages share small words: who has all of the other's and more is it too.
    clear = 2 * most >= 3 * next_most or (most > 2 and set(hits[second]) < set(hits[first]))
    return first if clear and len(set(hits[first])) >= 2 and most * 6 >= len(said) else None


def other_than(text: str, language: str) -> str | None:
    """Return the language that a text of some length has small words of, if it has none of the one that is given.

    >>> other_than("Two offers are here: Firma Obermaier 7.900 Euro, Dachwerk with a guarantee.", "German")
    'English'
    """
    said = set(words(text[:_SAMPLE]))
    counts = Counter(each for word in said for each in _LANGUAGES_OF.get(word, ()))
    best = sorted(counts, key=lambda each: (-counts[each], each))[:1]
    enough = len(said) >= _LEAST_WORDS and best and counts[best[0]] >= _LEAST_HITS
    return best[0] if enough and not counts[language] else None


def _eastern(text: str) -> str | None:
    """Recognise Japanese by kana, Korean by hangul, Chinese by its particles; return None if other letters prevail."""
    if text.isascii():
        return None
    kana, hangul, han = (len(kind.findall(text)) for kind in (_KANA, _HANGUL, _HAN))
    if 2 * (kana + hangul + han) <= sum(map(str.isalpha, text)):
        return None
    if 10 * kana >= kana + han and kana:
        return "Japanese"
    if hangul > han:
        return "Korean"
    return "Chinese" if not kana and _CHINESE.search(text) else None


def small_words(language: str | None) -> frozenset[str]:
    """Return the small words of one language, by its English name; none of a language that is not known."""
    return _SMALL_WORDS.get(language or "", frozenset())


def names_language(text: str) -> bool:
    """Test if a question names a language or asks for a translation, so that its answer may be in another language."""
    return _NAMES_LANGUAGE.search(text.casefold()) is not None


def prose(text: str, *, keeps_data: bool = False) -> str:
    """Remove the code from a text, since its words belong to no language; a block of data may be kept."""
    return _CODE.sub(lambda found: found[0] if keeps_data and _DATA.match(found[0]) else " ", text)


_STOP = {language: small_words(language) | frozenset(said.split()) for language, said in ASKING.items()}

_MARKS = ".,'’\u00a0\u202f\u2009"
_NUMBER = re.compile(rf"(?<![\w.,])(?:\d{{1,3}}(?: \d{{3}})+|\d+(?:[{_MARKS}]\d+)+)(?!\w)")
_GROUPS = re.compile(rf"\d{{1,3}}(?:[{_MARKS} ]\d{{3}})+")
_GROUP_MARK = re.compile(f"[{_MARKS} ]")
_PART = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f]+")
_ARABIC = re.compile("[\u0621-\u064a]")
_ARABIC_MARKS = re.compile("[\u064b-\u0652\u0640]")
_ARABIC_ALIKE = str.maketrans("أإآٱىة", "اااايه")
#: Articles and prepositions that Arabic writes as one word with a noun, and endings; the longest first.
_ARABIC_PREFIXES = ("وال", "بال", "كال", "فال", "ال", "لل")
_ARABIC_SUFFIXES = ("ها", "ان", "ات", "ون", "ين", "يه", "ه", "ي")


@dataclass(frozen=True, slots=True)
class Stem:
    """The stem of a word that says something, and the (start, end) of the word in its text."""

    stem: str
    start: int
    end: int


def placed_stems(text: str, language: str | None) -> Iterator[Stem]:
    """Yield the stems of a text in that language, by its English name, without its small words.

    A number is one stem, however its digits are grouped, in figures or as a word.
    """
    stop = _STOP.get(language or "") or small_words(language)
    numbers = {found.start(): found for found in _NUMBER.finditer(text)}
    far = numerals.placed_chinese(text)
    yield from (Stem(str(value), start, end) for start, end, value in far)
    covered = 0
    for word, start, end in placed_terms(text):
        if start < covered or any(one < end and start < other for one, other, _ in far):
            continue
        if number := numbers.get(start):
            covered = number.end()
            yield from _number_stems(number)
        elif word[0].isdigit() and not word.isascii() and len(word) == end - start:
            yield from _parts(word, start)
        elif word[0].isdigit() or word not in stop:
            yield Stem(_stem(word, language), start, end)


def stems(text: str, language: str | None) -> frozenset[str]:
    """Return the stems of a text in that language, each once.

    >>> sorted(stems("The lamps were automated in 1961, by seven keepers.", "English"))
    ['1961', '7', 'automa', 'keeper', 'lamp']
    """
    return frozenset(each.stem for each in placed_stems(text, language))


def _parts(word: str, start: int) -> Iterator[Stem]:
    """Yield the parts of a word that begins with figures and goes on in a script without blanks: 12月4日发布."""
    for found in _PART.finditer(word):
        part, at = found[0], start + found.start()
        if part.isascii() or len(part) == 1:
            yield Stem(_stem(part, None), at, at + len(part))
        else:
            yield from (Stem(part[each : each + 2], at + each, at + each + 2) for each in range(len(part) - 1))


def is_number(stem: str) -> bool:
    """Test if a stem is a number."""
    return stem[0].isdigit()


def _number_stems(found: re.Match[str]) -> Iterator[Stem]:
    parts = _GROUP_MARK.split(found[0])
    if _GROUPS.fullmatch(found[0]):
        yield Stem("".join(parts), *found.span())
    elif len(parts) == 2:
        yield Stem(".".join(parts), *found.span())
    else:  # a date, or a version
        yield from (Stem(part.lstrip("0") or "0", *found.span()) for part in parts)


@lru_cache(1 << 14)
def _stem(word: str, language: str | None) -> str:
    if word.isdigit():
        return word.lstrip("0") or "0"
    value = numerals.value_of(word, language)
    if value is not None:
        return str(value)
    if _ARABIC.match(word):
        return _arabic_stem(word)
    # The rule is English and the same in each language: the language of a short text is often not clear, and its words
    # must meet those of a longer one.
    return without_ending(word)[:STEM]


def _arabic_stem(word: str) -> str:
    word = _ARABIC_MARKS.sub("", word).translate(_ARABIC_ALIKE)
    prefix = next((each for each in _ARABIC_PREFIXES if word.startswith(each) and len(word) - len(each) > 1), "")
    word = word.removeprefix(prefix)
    if not prefix and word.startswith("و") and len(word) > 4:
        word = word[1:]
    suffix = next((each for each in _ARABIC_SUFFIXES if word.endswith(each) and len(word) - len(each) > 2), "")
    return word.removesuffix(suffix)
