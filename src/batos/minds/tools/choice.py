"""Choose the tool of a question by rule: whether it wants one at all, and which come into question, ranked on the CPU.

A small model calls a tool for nearly every question, so none is asked whether to. A question that asks for a text, an
opinion or a sum wants none. A tool whose arguments cannot be in the question, such as an address, is none for it. The
other tools are ranked by the words that they share with the question; a table of meanings joins several languages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from batos.agency.toolbox import Tool
from batos.gate.languages import SMALL_WORDS
from batos.minds.question_kind import kind_of
from batos.minds.tools import words
from batos.minds.tools.arguments import SOURCES, bind, takes_journey
from batos.minds.tools.question_forms import (
    ADDRESS,
    MAIL,
    PATH,
    find_enum,
    find_form,
    find_journey,
    form_of,
    list_required,
    properties_of,
)

#: The state of a question before: carried by evidence, open, asked of whoever looks things up, or sent by a client with
#: tools that it sends with every question: only an order, or what is the asker's own, is a reason for a search then.
Need: TypeAlias = Literal["carried", "open", "look_up", "sent"]

#: A score from which on a tool may be shown to a model, and one from which on it is taken unasked if it leads MARGIN
#: times.
LEAST, SURE, MARGIN = 0.9, 1.6, 1.6
#: The share of a question's words that a text has which carries it.
CARRIED: Final = 0.75
#: Tools that are shown to a model, by its parameters in billions from which on.
SHOWN: Final = ((9.0, 8), (7.0, 5), (1.0, 3), (0.0, 2))
#: Weights of the parts of a tool's description: its name and purpose, its examples, its parameters.
_NAMED, _EXAMPLE, _PARAMETER = 1.0, 0.5, 0.35
#: The weight of a meaning beside that of a word, of one that names where to look, and of an argument that is there by
#: its form.
_MEANING, _SOURCE, _FORM = 1.3, 2.6, 0.8
_STEM: Final = 5
_SUM: Final = re.compile(
    r"\d\s?[+*×÷^]\s?\d|\d\s(?:[-/x:]|times|mal|plus|minus|fois|por|entre|divided by|geteilt durch|más|mas|menos)\s\d",
    re.IGNORECASE,
)
_POLITE: Final = re.compile(
    r"^(?: (?:please|bitte|por favor|s il (?:te|vous) plait|can you|could you|would you|will you|kannst du|konntest du"
    r"|peux tu|pourrais tu|pouvez vous|puedes|podrias))+(?= )"
)
#: Words of a person who speaks to somebody, and of nothing to be found.
_PERSONAL: Final = re.compile(r" (?:i|you|your|du|dich|dir|ich|je|tu|toi|vous|yo|tu|te|usted) ")

#: Words for what is the asker's own.
_OWN: Final = re.compile(r" (?:my|our|mein\w*|unser\w*|mon|ma|mes|notre|nos|mi|mis|nuestr\w*) ")


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The tools that come into question, the best first, and the reason.

    With `is_clear` the first is taken, and no model is asked. No candidates: the question gets no tool.
    """

    candidates: tuple[Tool, ...]
    why: str
    is_clear: bool = False


def shown_tools(billions: float) -> int:
    """Return how many tools a model of so many billions of parameters is shown; 0: their number is not known."""
    return next(many for least, many in SHOWN if billions >= least) if billions else SHOWN[2][1]


def choose(question: str, tools: Sequence[Tool], today: date, need: Need = "open", most: int = 3) -> ToolChoice:
    """Return the tools that come into question for a question that is asked `today`, at most `most`."""
    line = words.plain_line(question)
    asked = asks_for_look(question)
    if not tools or not line.strip():
        return ToolChoice((), "there is no tool" if not tools else "the question is empty")
    if _wants_none(question, line):
        return ToolChoice((), "the question asks for no look into the world")
    if need == "carried" and not asked:
        return ToolChoice((), "what is known carries the question")
    if need == "sent":
        tools = [each for each in tools if asked or _OWN.search(line) or not searches_by_words(each)]
    ranked = _rank(question, [each for each in tools if _may_answer(each, question, line)])
    near = _near(question, ranked, today, most)
    if near is not None:
        return near
    searches = [tool for _, tool in ranked if searches_by_words(tool)][:most]
    if need == "sent":
        searches = [each for each in searches if asked and _searches_world(each)]
    if searches and (need == "look_up" or asked or (need == "open" and _asks_fact(question, line))):
        why = "the question asks for a look into the world" if asked else "nothing known carries the question"
        return ToolChoice(tuple(searches), why, is_clear=need == "look_up" or len(searches) == 1)
    return ToolChoice((), "no tool fits the question")


def _near(question: str, ranked: Sequence[tuple[float, Tool]], today: date, most: int) -> ToolChoice | None:
    """Return the choice among the tools whose words are those of the question; None where no tool's are.

    A tool that leads is taken unasked if its words say much, or if all of its arguments are in the question.
    """
    near = [(score, tool) for score, tool in ranked if score >= LEAST][:most]
    if not near or (kind_of(question) in ("code", "rewrite") and near[0][0] < SURE):
        return None
    first, tool = near[0]
    second = next((score for score, each in ranked[1:] if not _searches_for(tool, each)), 0.0)
    leads = first >= MARGIN * second
    is_clear = leads and (first >= SURE or not bind(question, tool, list_required(tool), today).missing)
    return ToolChoice(tuple(each for _, each in near), "their words are those of the question", is_clear=is_clear)


def _searches_for(tool: Tool, other: Tool) -> bool:
    """Test if a tool searches where another only reads what is found: they are of one look-up, so neither leads."""
    return searches_by_words(tool) and tool.name.partition(".")[0] == other.name.partition(".")[0]


def asks_for_look(question: str) -> bool:
    """Test if a question asks for a look into the world, by its words or by an address."""
    return bool(words.phrases("asked", "words").search(words.plain_line(question)) or ADDRESS.search(question))


def carries(question: str, texts: Sequence[str]) -> bool:
    """Test if one of some texts has nearly all words of a question that name something: it may answer it."""
    wanted = set(_contents(words.plain_line(question)))
    if not wanted:
        return True
    return any(len(wanted & set(_contents(words.plain_line(each)))) >= CARRIED * len(wanted) for each in texts)


def searches_by_words(tool: Tool) -> bool:
    """Test if a tool is a look-up by words: it reads, and takes a query."""
    return tool.reads and "query" in properties_of(tool)


# -- whether


def _wants_none(question: str, line: str) -> bool:
    """Test if a question asks for a text, an opinion, a greeting or a sum; an address or a path is to be looked at."""
    if ADDRESS.search(question) or MAIL.search(question) or PATH.search(question):
        return False
    head = _POLITE.sub("", line)
    made = words.beginning("without", "begins").match(head) or words.phrases("without", "anywhere").search(line)
    return bool(made or _SUM.search(question))


def _may_answer(tool: Tool, question: str, line: str) -> bool:
    """Test if a tool may be what a question asks for.

    A question that orders nothing changes nothing in the world. An order to do a thing is for a tool that does it. An
    argument that is taken word for word, such as an address or a number, has to be in the question.
    """
    if not tool.reads and question.rstrip(" \"'”»").endswith("?") and not _POLITE.match(line):
        return False
    head = _POLITE.sub("", line)
    deeds = [each for each in words.keys_of("deeds") if words.beginning("deeds", each).match(head)]
    said = words.plain_line(f"{tool.name.replace('_', ' ')} {tool.purpose}")
    if deeds and not any(words.phrases("deeds", each).search(said) for each in deeds):
        return False
    properties = properties_of(tool)
    needed = (form_of(name, properties[name]) for name in list_required(tool) if name in properties)
    return all(find_form(form, question) for form in needed if form and form != "path")


def _asks_fact(question: str, line: str) -> bool:
    """Test if a question asks for a fact about something that is neither who asks nor who is asked."""
    is_fact = kind_of(question) in ("fact", "list", "compare", "aggregate") and not _PERSONAL.search(line)
    return is_fact and any(_contents(line))


def _searches_world(tool: Tool) -> bool:
    """Test if a look-up by words is one of the web, or of an encyclopedia."""
    said = words.plain_line(f"{tool.name.replace('_', ' ')} {tool.purpose}")
    return any(words.phrases("meanings", each).search(said) for each in ("web", "encyclopedia"))


# -- which


def _rank(question: str, tools: Sequence[Tool]) -> list[tuple[float, Tool]]:
    """Return the tools by how well their words match a question, the best first; of equal ones searches, by name."""
    wanted = _terms(words.plain_line(question))
    described = [
        _weigh_terms(tool.name, tool.purpose, tuple(tool.examples), _describe_arguments(tool)) for tool in tools
    ]
    scored = []
    for tool, has in zip(tools, described, strict=True):
        score = sum(has[term] * _rarity(term, described) for term in wanted if term in has)
        scored.append((score + _FORM * _count_forms(tool, question, is_near=score > 0), tool))
    return sorted(scored, key=lambda each: (-each[0], not searches_by_words(each[1]), each[1].name))


def _rarity(term: str, described: Sequence[Mapping[str, float]]) -> float:
    """Return the weight of a term, 0 to 1: less where many tools have it; a meaning counts more."""
    of = len(described)
    weight = math.log(1 + of / sum(term in each for each in described)) / math.log(1 + of)
    if not term.startswith("@"):
        return weight
    return weight * (_SOURCE if term.removeprefix("@") in SOURCES else _MEANING)


def _terms(line: str) -> set[str]:
    return {*_contents(line), *_meanings(line)}


def _contents(line: str) -> Iterator[str]:
    """Yield the beginnings of the words of a line that name something."""
    for word in line.split():
        if len(word) > 2 and word not in SMALL_WORDS and not words.is_listed("empty", "words", word):
            yield word.removesuffix("s")[:_STEM]


def _meanings(line: str) -> Iterator[str]:
    for name in words.keys_of("meanings"):
        if words.phrases("meanings", name).search(line):
            yield f"@{name}"
            if name in words.keys_of("within"):
                yield f"@{words.read_list('within', name)}"


@lru_cache(maxsize=256)
def _weigh_terms(name: str, purpose: str, examples: tuple[str, ...], parameters: str) -> Mapping[str, float]:
    """Return the weight of each term of a tool's description."""
    found: dict[str, float] = {}
    parts = ((f"{name} {purpose}", _NAMED), (" ".join(examples), _EXAMPLE), (parameters, _PARAMETER))
    for text, weight in parts:
        for term in _terms(words.plain_line(text.replace("_", " "))):
            found[term] = max(weight, found.get(term, 0.0))
    return found


def _describe_arguments(tool: Tool) -> str:
    told = []
    for name, schema in properties_of(tool).items():
        told += [name, str(schema.get("description", "")), *map(str, schema.get("enum", ()))]
    return " ".join(told)


def _count_forms(tool: Tool, question: str, *, is_near: bool) -> int:
    """Count the arguments of a tool that a question holds in a form of their own.

    Where no word of the tool is in the question, only what nearly no other tool takes counts: an address or a journey.
    """
    properties = properties_of(tool)
    forms = {form_of(name, schema) for name, schema in properties.items()} - {""}
    if not is_near:
        forms &= {"address"}
    found = sum(bool(find_form(form, question)) for form in forms)
    named = any("enum" in each and find_enum(each["enum"], question) for each in properties.values())
    journey = takes_journey(properties) and find_journey(question) is not None
    return found + 2 * journey + (named and (is_near or journey))
