"""Recognise by rule which kind of answer a question wants: one fact, or the whole of a text.

Words and phrases of six languages are found in a question by class (question_kind.toml), and the first rule whose
classes are all there decides. Latin letters: what stands at the head of a clause, after words of courtesy, says more
than a noun further on ("Who wrote the summary?"). Chinese and Japanese: what stands last does. A question asks for one
fact only where no other kind fits and a word of questions is there; an unknown one is `other`, for which evidence is
shown whole.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal[
    "fact", "list", "compare", "summarise", "aggregate", "code", "rewrite", "extract", "other"
]  # fmt: skip


class _Finding(NamedTuple):
    """A word or phrase of a class in a question: where it begins and ends, and if it counts only at a head."""

    kind: str
    start: int
    end: int
    at_head: bool = False


class _Rule(NamedTuple):
    """A kind, the groups of classes of which each must be met, and the classes of which none may be."""

    kind: Kind
    needs: tuple[frozenset[str], ...]
    without: frozenset[str]


def _rules(text: str) -> tuple[_Rule, ...]:
    """Return rules written one a line: kind: one|or|other of each group, and - classes that forbid it."""
    made = []
    for line in text.strip().splitlines():
        kind, _, rest = line.partition(":")
        needs, _, without = rest.partition(" - ")
        groups = tuple(frozenset(each.split("|")) for each in needs.split())
        made.append(_Rule(kind.strip(), groups, frozenset(without.split())))  # type: ignore[arg-type]
    return tuple(made)


_ASKS: Final = ("who", "yes", "which", "plural", "many", "many_much", "why")
#: Classes that stand for any of several.
_SUMS: Final = {
    "ask": frozenset(f"h_{each}" for each in _ASKS),
    "ask_short": frozenset(("h_who", "h_yes")),
    "code_deed": frozenset(("v_make", "v_need", "v_fix", "v_explain", "v_opt", "v_trans", "h_why")),
    "code_care": frozenset(("v_fix", "v_explain", "v_opt", "h_why")),
    "no_code": frozenset(("proof", "letter", "style", "as_tab", "fmt", "v_sum", "gist", "into_lang")),
}
_LEADS: Final = frozenset((*_ASKS, "v_sum", "v_list", "v_count", "v_trans", "v_rew", "v_ext", "cmp", "v_make"))
_ORDERS: Final = ("v_sum", "v_trans", "v_rew", "v_ext", "v_list", "v_count", "cmp")
#: Orders that are but names of a text where the same sentence asks something after them.
_NAMES: Final = frozenset(
    ("v_sum", "n_sum", "v_trans", "v_rew", "v_list", "v_ext", "as_tab", "letter", "fmt", "w_code")
)
#: Classes of Latin words that also tell in a Chinese or Japanese question.
_SHARED: Final = frozenset(("lang", "n_code", "w_code", "v_code", "fmt"))
#: Characters of a question that are looked at: the rest of a long one is a text that came with it.
_LONGEST: Final = 600
_LONGEST_WORD: Final = 24
_TOKEN: Final = re.compile(r"[0-9a-zß-ɏа-ӿ_]+(?:\+\+|#)?|[^\w\s]")
_IS_HAN: Final = re.compile(r"[぀-ヿ一-鿿]")
_KANA: Final = re.compile(r"[぀-ヿ]")
#: French asks by turning verb and pronoun round.
_TURNED: Final = re.compile(r"[a-z]-(?:t-)?(?:ils?|elles?|on)\b")
_DASH: Final = re.compile(r"\s[-–—]\s")
_COMMA: Final = re.compile(r"[，。,、]")
_QUOTED: Final = re.compile(r"[\"“”„«»][^\"“”„«»]{8,300}[\"“”„«»]|「[^「」]{12,300}」")
#: Marks of programs and of their errors: calls, names of files, flags, statements, names of errors.
_CODE: Final = re.compile(
    r"\w\(\)|\w\.(?:py|js|ts|tsx|sql|sh|cpp|java|rs|go|rb|php|ipynb|css)\b|\s--[a-z]{3}|[a-z](?:error|exception)\b"
    r"|\bselect\s[\w\s,.*]{1,80}\sfrom\b|=>|\bdef \w|</\w|\bc#|\bc\+\+|(?:^|\s)~?/\w{1,20}/\w|"
    r"\bnpm \w|\bgit \w|\$ \w|==|\{\}"
)
#: A form that is to be filled in.
_BLANK: Final = re.compile(
    r"_{2,}|\w[:：]\s?[/|]\s?\w|\"\s?:\s?\"|\{\s?\"?\w{1,40}\"?\s?[:,]"
    r"|\w\s?\|\s?\w{1,40}\s?\|"
)
_R_OR_C: Final = re.compile(
    r"\b(?:in|en|auf|mit|with|script|code|programa|programme|skript|funktion|function) (?:R|C|Go)\b"
    r"|(?:R|C|Go)(?:语言|言語|で)"
)


def _fold(text: str) -> str:
    """Return a text in small letters without accents: strange forms of a word are one."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    bare = "".join(each for each in decomposed if not "\u0300" <= each <= "\u036f")
    return unicodedata.normalize("NFC", bare)


def _spellings(entry: str) -> set[str]:
    """Return how an entry may stand in a folded text: bare, and with two letters for an umlaut."""
    doubled = entry
    for umlaut, letters in (("ä", "ae"), ("ö", "oe"), ("ü", "ue")):
        doubled = doubled.replace(umlaut, letters)
    return {_fold(entry), _fold(doubled)}


class _Tables(NamedTuple):
    """Phrases by their first word, beginnings and ends of words, Han writing; and the rules of both ways to write."""

    latin: tuple[_Rule, ...]
    han_rules: tuple[_Rule, ...]

    phrases: dict[str, list[tuple[tuple[str, ...], str, bool]]]
    stems: dict[str, list[str]]
    ends: dict[str, list[str]]
    han: dict[str, list[str]]


@cache
def _tables() -> _Tables:
    """Return the words and rules of question_kind.toml, made ready."""
    data = tomllib.loads(files(__package__).joinpath("question_kind.toml").read_text(encoding="utf-8"))
    rules = data.pop("rules")
    made = _Tables(_rules(rules["latin"]), _rules(rules["han"]), {}, {}, {}, {})
    for classes in data.values():
        for kind, listed in classes.items():
            for entry in listed.split(","):
                for word in _spellings(entry.strip()):
                    _enter(made, kind, word)
    return made


def _enter(tables: _Tables, kind: str, word: str) -> None:
    """Add a folded word of a class."""
    if _IS_HAN.search(word):
        tables.han.setdefault(word, []).append(kind)
    elif word.startswith("*"):
        tables.ends.setdefault(word[1:], []).append(kind)
    elif word.endswith("*") and " " not in word:
        tables.stems.setdefault(word[:-1], []).append(kind)
    elif words := tuple(_TOKEN.findall(word.rstrip("*^"))):
        tables.phrases.setdefault(words[0], []).append((words[1:], kind, word.endswith("^")))


def _latin(words: list[str]) -> Iterator[_Finding]:
    """Yield what is found of each word on, but nothing inside of a phrase that tells nothing."""
    tables = _tables()
    skipped = 0
    for at, word in enumerate(words):
        if at < skipped:
            continue
        here = [
            _Finding(kind, at, at + 1 + len(rest), at_head)
            for rest, kind, at_head in tables.phrases.get(word, ())
            if tuple(words[at + 1 : at + 1 + len(rest)]) == rest
        ]
        stems = (word[:size] for size in range(3, min(len(word), _LONGEST_WORD) + 1))
        here.extend(_Finding(kind, at, at + 1) for stem in stems for kind in tables.stems.get(stem, ()))
        ends = (word[-size:] for size in range(4, min(len(word), _LONGEST_WORD) + 1))
        here.extend(_Finding(kind, at, at + 1) for end in ends for kind in tables.ends.get(end, ()))
        skipped = max((each.end for each in here if each.kind == "void"), default=0)
        if not skipped:
            yield from here


def _han(text: str) -> Iterator[_Finding]:
    """Yield the longest word from each place on, and go on behind it."""
    words = _tables().han
    at = 0
    while at < len(text):
        for size in range(min(9, len(text) - at), 0, -1):
            if kinds := words.get(text[at : at + size]):
                yield from (_Finding(kind, at, at + size) for kind in kinds)
                at += size
                break
        else:
            at += 1


def _heads(words: list[str], found: list[_Finding]) -> Iterator[int]:
    """Yield where each clause begins in earnest, behind words of courtesy and frames of a question."""
    passed: dict[int, int] = {}
    for each in found:
        if each.kind in {"filler", "ask_frame"}:
            passed[each.start] = max(each.end, passed.get(each.start, 0))
    begins = True
    at = 0
    while at < len(words):
        if not words[at][0].isalnum() and words[at] != "'":
            begins = True
        elif begins and at in passed:
            at = passed[at]
            continue
        elif begins:
            begins = False
            yield at
        at += 1


def _by_place(words: list[str], found: list[_Finding], heads: list[int]) -> dict[int, set[str]]:
    """Return the classes by the word where they begin, without what is not wanted."""
    refused = [each.start for each in found if each.kind == "not"]
    by_start: dict[int, set[str]] = {}
    for each in found:
        if (not each.at_head or each.start in heads) and not _is_refused(words, refused, each.start):
            by_start.setdefault(each.start, set()).add(each.kind)
    return by_start


def _latin_classes(text: str) -> set[str]:
    """Return the classes met in a folded text of Latin letters."""
    turned = {"yes"} if _TURNED.search(text) else set()
    text = _DASH.sub(". ", text)
    words = [each for each in _TOKEN.findall(text) if each not in {"'", "’", "-"}]
    found = list(_latin(words))
    heads = list(_heads(words, found))
    by_start = _by_place(words, found, heads)
    met = set().union(*by_start.values()) if by_start else set()
    if heads:
        met |= {f"1_{kind}" for kind in by_start.get(heads[0], ())}
    leading = next((at for at in heads if by_start.get(at, set()) & _LEADS), None)
    if leading is not None:
        met |= {f"h_{kind}" for kind in by_start[leading]}
        behind = words[leading + 1 : leading + 4]
        if "h_which" in met and _is_of_several(words[leading], behind):
            met.add("h_nouns")
        if any("attr" in by_start.get(at, ()) for at in range(leading + 1, leading + 4)):
            met.add("near_attr")
    if sum(each.kind == "field" for each in found) > 2:
        met.add("fields")
    return met | turned | {name for name, classes in _SUMS.items() if classes & met}


def _is_refused(words: list[str], refused: list[int], at: int) -> bool:
    """Test if a word stands in a clause behind the words that say what is not wanted."""
    return any(start <= at and not any(each in ",.;:!?" for each in words[start:at]) for start in refused)


#: Verbs that tell of several by their form, where a noun does not ("Welche Farbe hat", "Welche Termine sind").
_SEVERAL: Final = frozenset("sind haben werden wurden waren mussen sollen gibt stehen gelten durfen ich wir".split())
_NO_NOUNS: Final = frozenset("haben werden wurden mussen sollen konnen kosten durfen does this steht machen".split())


def _is_of_several(asked: str, behind: list[str]) -> bool:
    """Test if a noun of many stands right behind the word of a question."""
    if asked == "welche":
        return bool(_SEVERAL & set(behind)) or "".join(behind[:1]).endswith("en")
    ending = ("s", "en") if asked == "which" else ("s",)
    return asked != "was" and any(
        len(each) > 4 and each.endswith(ending) and not each.endswith(("ss", "us", "is")) and each not in _NO_NOUNS
        for each in behind[:2]
    )


def _han_classes(text: str) -> set[str]:
    """Return the classes met in a folded Chinese or Japanese text."""
    found = list(_han(text))
    sentences = [match.start() for match in re.finditer(r"[。？！?!]", text)]
    asked = [each.start for each in found if each.kind in {"who", "many", "which"}]
    kept = [each for each in found if each.kind not in _NAMES or not _is_named(each.start, asked, sentences)]
    refused = [each.start for each in found if each.kind == "not"]
    kept = [each for each in kept if not _is_undone(text, each, refused)]
    met = {each.kind for each in kept}
    met |= {each.kind for each in _latin(_TOKEN.findall(text)) if each.kind in _SHARED and not each.at_head}
    if orders := [each for each in kept if each.kind in _ORDERS]:
        met |= {f"e_{each.kind}" for each in orders if each.start == orders[-1].start}
    if re.search(r"(?:は|呢|吗|か)[?？。]?$", text):
        met.add("end")
    if re.search(r"([一-鿿])不\1", text):
        met.add("yes")
    if "ask_tell" in met:
        met.add("tell")
    return met


def _is_named(at: int, asked: list[int], sentences: list[int]) -> bool:
    """Test if a question follows in the same sentence."""
    end = next((each for each in sentences if each > at), _LONGEST)
    return any(at < each <= end for each in asked)


def _is_undone(text: str, found: _Finding, refused: list[int]) -> bool:
    """Test if a word stands right behind (in Japanese: before) the words that say it is not wanted."""
    if found.kind == "not":
        return False
    if _KANA.search(text):
        return any(0 < each - found.start <= 5 for each in refused)
    return any(0 <= found.start - each <= 5 and not _COMMA.search(text[each : found.start]) for each in refused)


def _classes(question: str) -> tuple[set[str], bool]:
    """Return the classes that a question meets, and if it is Chinese or Japanese."""
    asked = question.strip()[:_LONGEST]
    text = _fold(_QUOTED.sub(" ", asked)) or _fold(asked)
    text = text[: 2 * _LONGEST]
    is_han = _IS_HAN.search(text) is not None
    met = _han_classes(text) if is_han else _latin_classes(text)
    if _CODE.search(text):
        met.add("token")
    if text.rstrip(" .!").endswith("?"):
        met.add("qmark")
    if _R_OR_C.search(asked):
        met.add("lang")
    if _BLANK.search(_fold(asked)):
        met.add("blank")
    return met, is_han


def kind_of(question: str) -> Kind:
    """Return which kind of answer a question wants.

    >>> [kind_of(each) for each in ("When was the harbour built?", "List all boats.", "Fasse den Brief zusammen.")]
    ['fact', 'list', 'summarise']
    """
    met, is_han = _classes(question)
    tables = _tables()
    for kind, needs, without in tables.han_rules if is_han else tables.latin:
        if not without & met and all(group & met for group in needs):
            return kind
    return "other"
