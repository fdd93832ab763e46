"""Bind the arguments of a tool by rule, from the words of a question: what is there needs no model.

Addresses, numbers, dates, hours, quoted texts, names behind a preposition and the words of an enum are taken as they
stand. A `query` is the content words of the question. The rest is left open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

from batos.agency.toolbox import Tool
from batos.gate import dates
from batos.gate.languages import SMALL_WORDS
from batos.memory.words_by_language import MONTH
from batos.minds.tools import words
from batos.minds.tools.question_forms import (
    NAME,
    accent_pattern,
    bare,
    describe_argument,
    find_enum,
    find_form,
    find_journey,
    find_number,
    form_of,
    properties_of,
)
from batos.protocol.brief_checks import find_faults

#: Meanings that name where to look.
SOURCES: Final = ("encyclopedia", "web", "news", "note")
#: Characters of an argument at most.
LONGEST: Final = 200
_QUOTED: Final = re.compile(r"[\"“„«‹']\s?(?P<text>[^\"“”„«»‹›]{2,400}?)\s?[\"”“»›'](?!\w)")
_MONTHLY: Final = re.compile(r"(?<!\w)(?P<name>[^\W\d_]+)\.?\s(?:de\s|del\s|of\s)?(?P<year>\d{4})(?!\d)")
#: The kinds of arguments, by the words of their names and descriptions.
_KINDS: Final[Mapping[str, re.Pattern[str]]] = {
    "start": re.compile(r" (?:origin|departure|start|source|from) "),
    "goal": re.compile(r" (?:destination|arrival|goal|target|to) "),
    "words": re.compile(r" (?:query|search|keywords|question) "),
    "said": re.compile(r" (?:title|text|message|content|body|subject|what it is about) "),
    "person": re.compile(r" (?:person|sender|author|who|name|contact) "),
    "room": re.compile(r" rooms? "),
    "place": re.compile(r" (?:place|town|city|harbour|port|station|country|location|region|where) "),
}


class BoundArguments(NamedTuple):
    """The arguments that were found in a question, and the names of those that a call needs and that are open."""

    values: Mapping[str, Any]
    missing: tuple[str, ...]


def bind(question: str, tool: Tool, required: tuple[str, ...], today: date) -> BoundArguments:
    """Return the arguments of a tool that a question's own words give, each of which is given to one argument.

    `today` is the day of asking; it is the day of every argument where the question names none.
    """
    properties = properties_of(tool)
    found: dict[str, Any] = {}
    numbers = [
        each for each, schema in properties.items() if form_of(each, schema) == "number" and "enum" not in schema
    ]
    numbered = _argument_of_number(numbers, required, question)
    for name, schema in properties.items():
        if name in numbers and name != numbered:
            continue
        if "enum" in schema:
            is_shared = [each.get("enum") for each in properties.values()].count(schema["enum"]) > 1
            value = _enum_value(schema["enum"], question, found, is_shared=is_shared)
        else:
            value = _value(name, schema, question, today, taken=found)
        is_taken = "enum" not in schema and value in found.values() and value != today.isoformat()
        if value is not None and not is_taken and not find_faults({**schema}, value):
            found[name] = value
    return BoundArguments(found, tuple(name for name in required if name not in found))


def _argument_of_number(names: Sequence[str], required: Sequence[str], question: str) -> str:
    """Return the argument of the one number of a question: the only one, that is named beside it, or needed; or ""."""
    line = words.plain_line(question)
    beside = [
        name for name in names
        if any(re.search(rf" {each}\w* \d|\d {each}\w* ", line) for each in words.plain_words(name.replace("_", " ")))
    ]  # fmt: skip
    ways = (names, beside, [each for each in names if each in required])
    return next((way[0] for way in ways if len(way) == 1), "")


def takes_journey(properties: Mapping[str, Mapping[str, Any]]) -> bool:
    """Test if arguments have a start and a goal."""
    said = [describe_argument(name, schema) for name, schema in properties.items()]
    return all(any(_KINDS[kind].search(each) for each in said) for kind in ("start", "goal"))


def faults_of(tool: Tool, arguments: Mapping[str, Any], question: str) -> list[str]:
    """List what is wrong with the arguments of a call: their schema, and a form that the question has not."""
    schema = {**tool.parameters, "additionalProperties": False}
    found = list(find_faults(schema, dict(arguments)))
    for name, value in arguments.items():
        form = form_of(name, properties_of(tool).get(name, {}))
        if form in ("address", "mail", "code") and str(value) not in question:
            found.append(f"$.{name}: {str(value)[:80]!r} does not stand in the question")
        if isinstance(value, str) and not value.strip():
            found.append(f"$.{name}: it is empty")
    return found


def query_of(question: str) -> str:
    """Return the content words of a question as they are written: what a search is asked for.

    >>> query_of("Could you look up who built the Eddystone lighthouse in Wikipedia?")
    'built Eddystone lighthouse'
    """
    quoted = _QUOTED.search(question)
    if quoted is not None:
        return quoted["text"]
    said = re.findall(r"[\w'’&.-]*\w", re.sub(r"https?://\S+", " ", question))
    kept = [each for each in map(_strip_elision, said) if not _is_empty(each)]
    return " ".join(kept)[:LONGEST] or question.strip()[:LONGEST]


def _strip_elision(word: str) -> str:
    """Return the word without an elided article before it or an `'s` behind it: `l'histoire` is `histoire`."""
    return re.sub(r"^(?:[ldsnjmct]|qu)['’]|['’]s$", "", word, flags=re.IGNORECASE)


def _is_empty(word: str) -> bool:
    """Test if a word only orders, asks or names where to look."""
    bare_word = words.plain_line(word).strip()
    lists = (("empty", "words"), ("asked", "words"), *(("meanings", each) for each in SOURCES))
    return not bare_word or bare_word in _small_words() or any(words.is_listed(*each, bare_word) for each in lists)


@lru_cache(maxsize=1)
def _small_words() -> frozenset[str]:
    """Return the small words of all languages, without accents."""
    return frozenset(words.plain(each) for each in SMALL_WORDS)


def _value(name: str, schema: Mapping[str, Any], question: str, today: date, taken: Mapping[str, Any]) -> Any:
    """Return the value of an argument that a question gives; None where it gives none."""
    form = form_of(name, schema)
    if form:
        return _form_value(form, schema, question, taken)
    said = describe_argument(name, schema)
    if schema.get("type") == "boolean":
        return None
    for kind, find in _TIMES.items():
        if _is_time(kind, schema, said):
            return find(question, today)
    if schema.get("type") != "string":
        return None
    kinds = [kind for kind, pattern in _KINDS.items() if pattern.search(said)]
    return _text_value(kinds, question, taken) if kinds else None


def _enum_value(values: Sequence[Any], question: str, taken: Mapping[str, Any], *, is_shared: bool) -> Any:
    """Return the value that a question names; of two that two arguments share, the first and then the other."""
    found = find_enum(values, question)
    free = [each for each in found if not is_shared or each not in taken.values()]
    return free[0] if free and len(found) <= 1 + is_shared else None


def _form_value(form: str, schema: Mapping[str, Any], question: str, taken: Mapping[str, Any]) -> Any:
    if form == "number":
        number = find_number(question)
        return int(number) if number is not None and number == int(number) else number
    found = [each for each in find_form(form, question) if each not in taken.values()]
    return found[0] if len(found) == 1 else None


# -- days and hours


def _is_time(kind: str, schema: Mapping[str, Any], said: str) -> bool:
    if schema.get("type") != "string":
        return False
    if kind == "month":
        return " month " in said and " day " not in said
    if kind == "time":
        return schema.get("format") == "time" or " hh mm " in said
    return schema.get("format") == "date" or " yyyy mm dd " in said


def find_day(question: str, today: date) -> str | None:
    """Return the day that a question speaks of as YYYY-MM-DD: today where it names none; None where it names several.

    >>> find_day("Will it rain on Sunday?", date(2026, 11, 30))
    '2026-12-06'
    """
    found = {day for each in dates.find(question) for day in dates.whole_days(each.readings, frozenset({today.year}))}
    line = words.plain_line(question)
    days = {day if day >= today - timedelta(days=60) else day.replace(year=day.year + 1) for day in found}
    if not days:
        days = set(_relative_days(line, today))
    if len(days) > 1:
        return None
    return (days.pop() if days else today).isoformat()


def _relative_days(line: str, today: date) -> Iterator[date]:
    for name in words.keys_of("days"):  # the longer phrases first: `the day after tomorrow` holds `tomorrow`
        if words.phrases("days", name).search(line):
            yield today + timedelta(days=int(name))
            return
    for name in words.keys_of("week"):
        if words.phrases("week", name).search(line):
            ahead = (int(name) - today.weekday()) % 7
            yield today + timedelta(days=ahead or 7)


def _find_hour(question: str, today: date) -> str | None:
    found = [time for time, _ in dates.times(question)]
    return f"{found[0][0]:02}:{found[0][1]:02}" if len(found) == 1 else None


def _find_month(question: str, today: date) -> str | None:
    for found in _MONTHLY.finditer(question):
        month = MONTH.get(found["name"].casefold())
        if month:
            return f"{found['year']}-{month:02}"
    line = words.plain_line(question)
    for name in words.keys_of("months"):
        if words.phrases("months", name).search(line):
            months = 12 * today.year + today.month - 1 + int(name)
            return f"{months // 12}-{months % 12 + 1:02}"
    return None


_TIMES: Final[Mapping[str, Callable[[str, date], str | None]]] = {
    "month": _find_month,
    "time": _find_hour,
    "date": find_day,
}


# -- names, places and texts


def _text_value(kinds: list[str], question: str, taken: Mapping[str, Any]) -> str | None:
    if "words" in kinds:
        return query_of(question)
    if "said" in kinds:
        quoted = [found["text"].rstrip(".") for found in _QUOTED.finditer(question)]
        return quoted[0] if len(quoted) == 1 else None
    if "start" in kinds or "goal" in kinds:
        journey = find_journey(question)
        return None if journey is None else journey["start" not in kinds]
    if "room" in kinds:
        return _behind("place", question, r"[\w-]{3,}(?:\s(?:room|de\s\w+))?", article=True)
    name = _behind("place" if "place" in kinds else "person", question, NAME)
    return name if name and name not in taken.values() else None


def _behind(kind: str, question: str, what: str, *, article: bool = False) -> str | None:
    """Return what stands last behind a preposition, with or without an article between them; None if nothing does."""
    before = "|".join(accent_pattern(each.strip()) for each in words.read_list("before", kind).split(","))
    articles = "|".join(accent_pattern(each.strip()) for each in words.read_list("before", "articles").split(","))
    if article:
        lead = rf"(?:(?:{before}|de|of|von)(?:\s(?:{articles}))*[\s'’]|(?:im|beim|du|del|au)\s)(?:l['’])?"
    else:
        lead = rf"(?:{before})(?:\s(?:{articles}))*[\s'’]"
    found = [each["what"] for each in re.finditer(rf"(?<!\w){lead}(?P<what>{what})", question)]
    return bare(found[-1]) if found else None
