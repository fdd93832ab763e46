"""Cut a text into the stems of the words that say something, in any script, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from batos.gate import languages, numerals
from batos.memory.terms import placed_terms

#: Letters of a longer word that are kept, so that `automated` and `automatic` are one. With five more words fall
#: together that have nothing to do with one another (`contin` and `contra`), with seven endings begin to count.
STEM = 6

#: Words of each language that ask, help another verb or point, beside the small words by which a language is told.
_MORE: dict[str, str] = {
    "English": "what who whom whose which when where why how many much did does do was were is are be been being has"
    " have had having can could will would shall should may might must any that this these those it its he she they we"
    " them their his her hers him us than then also only other others such there here one s t d ll re ve m if but so"
    " because into about out up very just some each both own",
    "German": "wer wen wem wessen welche welcher welches welchen welchem wann wo warum wieso weshalb wie viel viele war"
    " waren wurde wurden wird werden worden sein seine seinen seiner ihr ihre ihren ihrer haben hatte hatten kann"
    " können konnte muss müssen soll er sie es wir man diese dieser dieses diesen einer einem eines als auch nur so"
    " dass denn"
    " aber durch über um unter vom beim ins noch schon sehr dann da hier welch",
    "French": "qui que quoi quel quelle quels quelles quand où pourquoi comment combien étaient était été être sont ont"
    " avait avoir fut furent peut ce cet cette ces ils elles on nous se sa son ses leur leurs lui y en par l d n s qu c"
    " j m t mais si aussi très tout tous plus comme lequel laquelle du à",
    "Spanish": "quién quiénes cuándo dónde cuánto cuánta cuántos cuántas cuáles fue fueron era eran ser ha han había"
    " puede este esta estos estas ese esa eso ellos ellas nos le les sin sobre entre también ya porque donde cuando a"
    " o",
    "Italian": "chi che quando dove perché quanto quanta quanti quante quali fu furono era erano essere ha hanno aveva"
    " può questo questa questi queste loro suo sua suoi l d s un' dell all nell sull ma se o a",
    "Portuguese": "quem quando onde porque quanto quanta quantos quantas quais foram era eram ser há tem têm tinha pode"
    " este esta estes estas isso eles elas seu sua seus suas também mas ou pelo pela",
    "Dutch": "wie welke welk wanneer waar waarom hoeveel was waren werd werden worden zijn heeft hebben had kan kunnen"
    " moet deze dit hij zij we ze hun haar als dan maar of uit door over nog",
}
_STOP = {language: languages.small_words(language) | frozenset(said.split()) for language, said in _MORE.items()}

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
    stop = _STOP.get(language or "") or languages.small_words(language)
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


def _stem(word: str, language: str | None) -> str:
    if word.isdigit():
        return word.lstrip("0") or "0"
    value = numerals.value_of(word, language)
    if value is not None:
        return str(value)
    if _ARABIC.match(word):
        return _arabic_stem(word)
    return _without_ending(word)[:STEM]


def _without_ending(word: str) -> str:
    """Cut the endings of a plural and of a verb: trims, trimmed and trimming are trim, carried and carry are one.

    The rule is English, and the same in each language: the language of a short text is often not clear, and its words
    must meet those of a longer one.
    """
    if len(word) > 3 and word.endswith("s"):
        word = word[:-1]
    ending = next((each for each in ("ing", "ed", "e") if word.endswith(each) and len(word) - len(each) > 2), "")
    word = word.removesuffix(ending)
    if len(ending) > 1 and len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return f"{word[:-1]}y" if ending and word.endswith("i") else word


def _arabic_stem(word: str) -> str:
    word = _ARABIC_MARKS.sub("", word).translate(_ARABIC_ALIKE)
    prefix = next((each for each in _ARABIC_PREFIXES if word.startswith(each) and len(word) - len(each) > 1), "")
    word = word.removeprefix(prefix)
    if not prefix and word.startswith("و") and len(word) > 4:
        word = word[1:]
    suffix = next((each for each in _ARABIC_SUFFIXES if word.endswith(each) and len(word) - len(each) > 2), "")
    return word.removesuffix(suffix)
