"""Names in texts: the names that a part is called by, and where a text mentions one of many names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator
from typing import Final, NamedTuple

from batos.memory.text_units import ABOVE
from batos.memory.words_by_language import COMMON

#: The most words of a name, and the most characters of one in a script without blanks.
LONGEST: Final = 8
#: The fewest letters of a name of one word.
_SHORTEST: Final = 3

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+(?:['’][^\W\d_]+)?")
_IN_BRACKETS = re.compile(r"\s*[(（\[][^)）\]]*[)）\]]\s*\Z")
_QUOTES = " \t\n\"“”«»'`„"
#: The first words of a part: what comes before the first of these is the name of its subject.
_OPENING: Final = 200
_ENDS = re.compile(
    r"[(（\[,;:\"“”«»。，、]|``|''|\.\s|\n|\b(?:is|was|are|were|refers|became|has|had|stands|may|can|also|plays|serves|served|began"
    r"|ist|war|sind|waren|wurde|hat|est|était|sont|étaient|fut|a été|es|era|fue|son|è|fu|sono)\b"
)
#: The labels above a mail, and its date: capitals that name nothing, and which all mails share.
_MAIL_HEAD: Final = re.compile(r"^(?:(?:Date|Sent):.*$|(?:From|To|Cc|Subject|Attachment):)", re.MULTILINE)
#: Words that a name may have between two with a capital.
_WITHIN: Final = frozenset("of the and de la du di da del von van der".split())
_ARTICLES: Final = frozenset("the a an der die das ein eine le la les un une el los las una il lo gli".split())


class Mention(NamedTuple):
    """A name in a text, and where it stands."""

    name: str
    start: int
    end: int


class _Token(NamedTuple):
    """A word as names hold it, its place in a text, whether a name may begin with it, and whether no blank precedes."""

    key: str
    may_begin: bool
    start: int
    end: int
    is_glued: bool


def names_of(title: str, heading: str, text: str, is_first: bool) -> set[str]:
    """Return the names that a part is called by, each a line of folded words.

    The first part of a document has the document's title, without what is in brackets too, and the name that the text
    opens with; a part below a heading has the last heading.

    >>> sorted(names_of("Holm Light (lighthouse)", "", "Holm Light is a light on Skarn.", True))
    ['holm light', 'holm light lighthouse']
    """
    named = [heading.rpartition(ABOVE)[2]] if heading else []
    if is_first:
        named += [title, _IN_BRACKETS.sub("", title), title.partition(",")[0], opening_name(text)]
    return {key for key in map(key_of, named) if key and _is_telling(key)}


def opening_name(text: str) -> str:
    """Return the name that a text begins with: capitalised words before its first verb, comma or bracket; "" for none.

    >>> opening_name("The Holm Light, built in 1848, stands on Skarn.")
    'Holm Light'
    """
    begin = text[:_OPENING].lstrip(_QUOTES)
    end = _ENDS.search(begin, 1)
    tokens = list(_Tokens(begin[: end.start()] if end else begin))
    while len(tokens) > 1 and tokens[0].key in _ARTICLES:
        del tokens[0]
    if not tokens or len(tokens) > LONGEST or not tokens[0].may_begin or not end:
        return ""
    return begin[tokens[0].start : tokens[-1].end]


def key_of(name: str) -> str:
    """Return a name as names are compared: folded words with a blank between, none in scripts that have none."""
    return _join(list(_Tokens(name)))


def mentions(text: str, names: Container[str]) -> Iterator[Mention]:
    """Yield the names that a text mentions, in order; of two at one place the longer.

    A name begins with a capital, a digit, or a letter of a script without capitals.

    >>> [found.name for found in mentions("Who keeps Holm Light on Skarn?", {"holm light", "skarn", "holm"})]
    ['holm light', 'skarn']
    """
    tokens = _Tokens(text)
    place = 0
    while place < len(tokens):
        last = None if tokens.is_lower(place) else _longest(tokens, place, names)
        if last is None:
            place += 1
        else:
            named = [tokens[number] for number in range(place, last + 1)]
            yield Mention(_join(named), named[0].start, named[-1].end)
            place = last + 1


def names_in(sentence: str) -> list[str]:
    """Return the names that a sentence says by capitals, as they are compared, in order and each once.

    The word that begins a sentence has its capital for that, and is none by itself.

    >>> names_in("The keepers of Holm Light sailed to Skarn, in the North of Tarn.")
    ['holm light', 'skarn', 'north of tarn']
    """
    sentence = _MAIL_HEAD.sub(lambda found: " " * len(found[0]), sentence)
    tokens, found = _Tokens(sentence), dict[str, None]()
    place = 0
    while place < len(tokens):
        last = _last_of_row(tokens, place)
        row = [tokens[number] for number in range(place, last + 1)]
        while row and row[0].key in COMMON:
            del row[0]
        key = _join(row)
        if row and (row[0].start > tokens[0].start or len(row) > 1) and _is_telling(key):
            found[key] = None
        place = max(last, place) + 1
    return list(found)


def _last_of_row(tokens: _Tokens, place: int) -> int:
    """Return the last token of the row of capitalised words that begins at one; the one before it for no row."""
    last = place - 1
    for number in range(place, min(len(tokens), place + LONGEST)):
        token = tokens[number]
        if number > place and token.start - tokens[number - 1].end != 1:
            break
        if tokens.has_capital(number) or (number > place and token.key.isdigit()):
            last = number
        elif number == place or token.key not in _WITHIN:
            break
    return last


def _longest(tokens: _Tokens, place: int, names: Container[str]) -> int | None:
    """Return the last token of the longest name that begins at a token."""
    found, key = None, ""
    for number in range(place, min(len(tokens), place + LONGEST)):
        token = tokens[number]
        if number > place and token.start - tokens[number - 1].end > _SHORTEST:
            break  # a gap of more than a mark and a blank
        key = token.key if number == place else f"{key}{'' if token.is_glued else ' '}{token.key}"
        if key in names:
            found = number
    return found


class _Tokens:
    """The words of a text, each read when it is asked for: of most of them only the first letter is."""

    def __init__(self, text: str) -> None:
        self._words = list(_TOKEN.finditer(text))
        self._read: dict[int, _Token] = {}

    def __len__(self) -> int:
        return len(self._words)

    def __iter__(self) -> Iterator[_Token]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> _Token:
        if number not in self._read:
            self._read[number] = self._token(number)
        return self._read[number]

    def has_capital(self, number: int) -> bool:
        return self._words[number][0][0].isupper()

    def is_lower(self, number: int) -> bool:
        return self._words[number][0][0].islower()

    def _token(self, number: int) -> _Token:
        found = self._words[number]
        word, (start, end) = found[0], found.span()
        if word.isascii():  # most words, without the slow steps
            return _Token(word.lower().removesuffix("'s"), not word[0].islower(), start, end, False)
        key = unicodedata.normalize("NFKC", word).casefold().replace("’", "'").removesuffix("'s")
        is_glued = self._is_unspaced(number) and number > 0 and self._is_unspaced(number - 1)
        return _Token(key, not word[0].islower(), start, end, is_glued and self._words[number - 1].end() == start)

    def _is_unspaced(self, number: int) -> bool:
        word = self._words[number][0]
        return len(word) == 1 and _IS_UNSPACED.match(word) is not None


def _join(tokens: list[_Token]) -> str:
    return "".join(token.key if token.is_glued or not at else f" {token.key}" for at, token in enumerate(tokens))


def _is_telling(key: str) -> bool:
    """Test if a name says something by itself, and is no number or common word."""
    words = key.split()
    if len(words) > LONGEST and not _IS_UNSPACED.match(key):
        return False
    if len(words) > 1:
        return any(word not in COMMON for word in words)
    if _IS_UNSPACED.match(key):
        return len(key) > 1
    return len(key) >= _SHORTEST and key not in COMMON and not key.isdigit()
