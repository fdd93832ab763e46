"""Split a text of any script into its sentences, and into the words and terms that a search looks for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

#: A mark that ends a sentence with the quotes and brackets that close on it. Before a small letter it is a point in an
#: abbreviation, and full-width marks need no blank after them.
SENTENCE_END = re.compile(r"""[.!?…]["'”’»)\]]*(?=\s)(?!\s+[a-zß-öø-ÿа-яёα-ω])|[。！？][」』”’）]*""")
# The same with the marks of Arabic, Urdu and Hindi.
_MARK = re.compile(rf"{SENTENCE_END.pattern}|[؟۔।॥][”’»)\]]*(?=\s)")
# Ends that have no mark: a blank line, a heading's line, and a line before an item of a list, a heading or a row.
_LINE_END = re.compile(
    r"\n[^\S\n]*(?=\n)|^#{1,6}[^\S\n][^\n]*\n|\n(?=[^\S\n]*(?:[-*•–][^\S\n]|\d{1,3}[.)][^\S\n]|#{1,6}[^\S\n]|[|>]))",
    re.MULTILINE,
)
# A text that ends with the mark of a sentence and what closes on it.
_ENDED = re.compile(r"""[.!?…。！？؟۔।॥]["'”’»)\]」』）]*\Z""")
#: Marks of an item, a heading or a quoted line, where a line begins.
_ITEM = re.compile(r"^\s*(?:(?:[-*•–]|\d{1,3}[.)]|#{1,6}|>)[^\S\n]+)+", re.MULTILINE)
_WORD_BEFORE = re.compile(r"(?<!\w)((?:\w\.)*\w+)\.\Z")
_WORD_AFTER = re.compile(r"\s*[\"'“„«(]*(\w+)")
_BLANKS = re.compile(r"\s*")
_NUMBERED = re.compile(r"\s*\d{1,3}\Z")

#: Abbreviations that something always follows.
_TITLES = frozenset(
    "dr mr mrs ms mx st ste prof gen col lt sgt rev hon sen rep gov capt maj cmdr adm pres supt mt ft vs viz cf e.g i.e"
    " approx hr frl dipl ing z.b d.h u.a v.a s.o bzw vgl ca sog geb gest evtl ggf mme mlle mgr dott sig sra dra ud uds"
    " p.ej".split()
)
#: Abbreviations before a number.
_BEFORE_NUMBER = frozenset("no nos nr fig figs vol vols p pp ch sec art abs bd kap s n c ca núm tel op".split())
#: Abbreviations and initials that may also end a sentence: the next word tells.
_EITHER = frozenset("jr sr inc ltd co corp bros plc llc phd bc ad a.m p.m u.s u.k u.n d.c".split())
#: Words that begin a sentence and hardly ever follow an initial.
_OPENERS = frozenset(
    "the a an it he she they we you this that these those there in on at by for from as after before when while if but"
    " and however although since because his her its their our my your some many most all each no not der die das ein"
    " eine er sie es wir ihr im am in bei nach vor als wenn aber und doch dieser diese dieses le la les un une il elle"
    " ils elles on ce cette ces dans après avant mais et el los las una en después pero y este esta lo gli i uno nel"
    " dopo ma questo questa".split()
)
#: Words before which a small number with a point is an ordinal.
_AFTER_ORDINAL = frozenset(
    "januar jänner februar märz april mai juni juli august september oktober november dezember jahrhundert jahrhunderts"
    " jh jahrestag stock klasse auflage tag monat mal".split()
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each sentence of a text, in order, without the blanks and list marks around it.

    A point after an initial, a title or another abbreviation ends none. Blank lines, items of lists and headings end
    one without a mark.

    >>> text = "Dr. B. Hale lit it. It burns."
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['Dr. B. Hale lit it.', 'It burns.']
    """
    ends = sorted({*_marked_ends(text), *(found.end() for found in _LINE_END.finditer(text)), len(text)})
    spans = (_strip(text, start, end) for start, end in zip([0, *ends], ends, strict=False))
    return [(start, end) for start, end in spans if start < end]


def blanks_end(text: str, start: int) -> int:
    """Return the end of the blanks at a place; the rest of a long text is not copied for it."""
    found = _BLANKS.match(text, start)
    return found.end() if found else start


def whole_sentences(text: str, until: int) -> str:
    """Return a text as far as the last whole sentence of it that begins before a place; "" if none does.

    >>> whole_sentences("The lamp is lit. It burns and it burns and it", 24)
    'The lamp is lit.'
    """
    for start, end in reversed(sentence_spans(text)):
        if start < until and _ENDED.search(text, start, end):
            return text[:end].lstrip()
    return ""


def _marked_ends(text: str) -> Iterator[int]:
    for found in _MARK.finditer(text):
        if not _goes_on(text, found.start(), found.end()):
            yield found.end()


def _goes_on(text: str, mark: int, end: int) -> bool:
    """Test if a mark is the point of an abbreviation, an initial, an ordinal or an item's number."""
    if text[mark] != "." or end - mark > 1:
        return False
    line = text.rfind("\n", max(0, mark - 8), mark) + 1
    if (line or mark < 8) and _NUMBERED.match(text[line:mark]):
        return True
    before, after = _WORD_BEFORE.search(text, max(0, mark - 16), end), _WORD_AFTER.match(text, end)
    if before is None or after is None:
        return False
    word, following = before[1], after[1].casefold()
    folded = word.casefold()
    if folded in _TITLES:
        return True
    if word.isdigit():
        return len(word) < 3 and following in _AFTER_ORDINAL
    if folded in _BEFORE_NUMBER and following[0].isdigit():
        return True
    initial = word[-1].isupper() and (len(word) == 1 or word[-2] == ".")
    return (initial or folded in _EITHER) and following not in _OPENERS


def _strip(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out the blanks at both ends, and the marks of an item where a line begins."""
    item = _ITEM.match(text, start, end)
    start = item.end() if item else start
    bare = text[start:end]
    return start + len(bare) - len(bare.lstrip()), start + len(bare.rstrip())


# Letters whose marks are no `\w` (Indic, Hebrew, Arabic, combining accents), so that a word is not cut at them.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0900-\u0963\u0966-\u0dff"
# Scripts that write no blanks between words.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_TERM = re.compile(f"[{_UNSPACED}]+|[^\\W{_UNSPACED}][\\w{_MARKS}]*")
_RUN = re.compile(f"[{_UNSPACED}]")


#: Letters of a word that are compared, so that `automated` and `automatic` are one. With five more words fall together
#: that have nothing to do with one another (`contin` and `contra`), with seven endings begin to count.
STEM = 6


def words(text: str) -> list[str]:
    """Return the words of a text, compatible forms unified and case folded.

    A run of a script without blanks is one word.

    >>> words("Ⅷ Straße")
    ['viii', 'strasse']
    """
    return _TERM.findall(unicodedata.normalize("NFKC", text).casefold())


def clip_line(text: str, most: int) -> str:
    """Return a text on one line, of at most so many characters.

    >>> clip_line("The lamp\\nburns.", 10)
    'The lamp …'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def line_of(text: str) -> str:
    """Return the words of a text in one line, a blank around each: a phrase is looked for as ` whole words `."""
    return f" {' '.join(words(text))} "


def terms(text: str) -> Iterator[str]:
    """Yield the terms of a text: its words, and pairs of characters where words have no blanks between them.

    >>> list(terms("灯塔的 lamp"))
    ['灯塔', '塔的', 'lamp']
    """
    for word in words(text):
        if len(word) < 3 or not _RUN.match(word):
            yield word
        else:
            yield from map("".join, pairwise(word))


def page_ends(text: str) -> tuple[int, ...]:
    """Return the places where pages of a text end; one that has no pages has none."""
    return tuple(found.start() for found in re.finditer("\f", text))


def stems(text: str) -> Iterator[str]:
    """Yield the terms of a text without their endings; what has a digit stays whole.

    >>> list(stems("Lighthouses of 1848121 灯塔的"))
    ['lighth', 'of', '1848121', '灯塔', '塔的']
    """
    return (term[:STEM] if term.isalpha() else term for term in terms(text))


def placed_terms(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the terms of a text with the (start, end) of each in it.

    >>> list(placed_terms("灯塔的 Lamp"))
    [('灯塔', 0, 2), ('塔的', 1, 3), ('lamp', 4, 8)]
    """
    for found in _TERM.finditer(text):
        word = unicodedata.normalize("NFKC", found[0]).casefold()
        start, end = found.span()
        if len(word) < 3 or not _RUN.match(word):
            yield word, start, end
        elif len(word) == end - start:
            yield from ((word[at : at + 2], start + at, start + at + 2) for at in range(len(word) - 1))
        else:  # half-width letters, which become others in number
            yield from (("".join(pair), start, end) for pair in pairwise(word))
