"""Says, by rule and before an answer, that nothing remembered was used; where only memory is wanted, that is all."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from batos.gate.texts import languages
from batos.memory.terms import clip_line, line_of
from batos.minds.context import MindContext
from batos.minds.question_kind import Kind, kind_of

_FALLBACK: Final = "English"
#: Languages that write no blanks between words: their phrases stand anywhere.
_UNSPACED: Final = frozenset({"Chinese", "Japanese"})
#: Kinds of answers for which a person gives the matter, or wants none of theirs.
_MADE: Final = frozenset[Kind]({"code", "rewrite", "extract"})
#: Kinds of answers that are facts.
_FACTS: Final = frozenset[Kind]({"fact", "list", "aggregate", "compare", "summarise"})
#: Marks at the end of a question.
_ASKING: Final = ("?", "？", "؟", "か", "吗", "呢")
#: The words at the beginning of a question of which one asks.
_OPENING: Final = 4
#: Stands in a phrase for any words.
_GAP: Final = " * "
#: The words at the end of a question among which the second part of such a phrase is.
_LAST: Final = 2
#: Characters of a text that is quoted in the place of an answer.
_QUOTED: Final = 300


def lead_of(context: MindContext) -> str:
    """Return the line before the answer of a mission that was shown nothing of its memory, with a gap; "" if none is.

    Only questions that memory might answer have one: nothing is said where nothing is remembered or a file was given,
    nor to a greeting, nor where a text, code or a plan is asked for.
    """
    found, asked = context.trace.memory, context.mission.brief.text
    if context.trace.told or found.state in ("", "found"):
        return ""
    if _has_other_matter(context) or only_text(context) or not _asks(asked):
        return ""
    words = _words_of(asked)
    titles = ", ".join(dict.fromkeys(f"“{each.name}”" for each in found.perhaps))
    line = words["perhaps"].format(titles=titles) if found.state == "perhaps" else words["nothing"]
    return f"{line}\n\n"


def only_text(context: MindContext) -> str:
    """Return the answer of a mission that is to be answered from memory alone and finds nothing there; "" for others.

    By itself this is done for a question of fact about the person's own world, if nothing remembered comes near. Where
    it was asked for, what comes near is quoted.
    """
    found, brief = context.trace.memory, context.mission.brief
    asked_for = bool(brief.policy and brief.policy.only_memory)
    if found.state == "found" or brief.message is not None or _has_other_matter(context):
        return ""
    if not asked_for and (found.state != "nothing" or context.mission.past.count or context.mission.past.meant):
        return ""
    if not asked_for and not is_of_own_world(brief.text):
        return ""
    words = _words_of(brief.text)
    quoted = [f"- {each.name}: {clip_line(each.text, _QUOTED)}" for each in found.perhaps]
    return "\n\n".join((words["only_perhaps"], *quoted)) if quoted else words["only"]


def is_of_own_world(question: str) -> bool:
    """Test if a question asks for a fact of its asker's own world, and for no advice, text or code.

    >>> [is_of_own_world(each) for each in ("When is our anniversary?", "When should I water my roses?")]
    [True, False]
    """
    if kind_of(question) not in ("fact", "aggregate", "other"):
        return False
    return any(
        _has(question, name, words["own"].split())
        and not _has(question, name, words["general"].split())
        and (_has_around(question, words) or _asks_fact(question, name, words))
        for name, words in _table().items()
    )


def _asks_fact(question: str, language: str, words: Mapping[str, Any]) -> bool:
    """Test if a question opens with a word that asks for a fact, and is a question by that word or by its end."""
    asking = (*words["asked"].split(), *words["much"])
    asks = _ends_as_question(question) or _begins(question, language, asking)
    # A `when` further on asks for nothing.
    opening = question if language in _UNSPACED else " ".join(question.split()[:_OPENING])
    return asks and _has(opening, language, asking)


def _has_other_matter(context: MindContext) -> bool:
    """Test if the mission has files, texts of its own, or a result that was computed."""
    mission, trace = context.mission, context.trace
    return bool(mission.passages or trace.indexed or trace.seen or any(trace.computed.values()))


def _asks(text: str) -> bool:
    """Test if a text is a question that what is remembered might answer."""
    kind = kind_of(text)
    if kind in _MADE or any(_begins(text, name, words["greeting"]) for name, words in _table().items()):
        return False
    own = any(_has(text, name, words["own"].split()) for name, words in _table().items())
    return _ends_as_question(text) or kind in _FACTS or (own and kind != "other")


def _ends_as_question(text: str) -> bool:
    return text.rstrip(" .!\"'”»").endswith(_ASKING)


def _has(text: str, language: str, phrases: Sequence[str]) -> bool:
    line = text.casefold() if language in _UNSPACED else line_of(text)
    return any((each if language in _UNSPACED else f" {each} ") in line for each in phrases)


def _has_around(text: str, words: Mapping[str, Any]) -> bool:
    """Test if a text begins with the first part of a phrase with a gap, and ends with the other or soon after it."""
    line = line_of(text)
    parts = (each.split(_GAP) for each in words["much"] if _GAP in each)
    return any(
        line.startswith(f" {begin} ") and f" {end} " in f" {' '.join(line.split()[-_LAST:])} " for begin, end in parts
    )


def _begins(text: str, language: str, phrases: Sequence[str]) -> bool:
    line = text.casefold() if language in _UNSPACED else line_of(text)
    return any(line.startswith(each if language in _UNSPACED else f" {each} ") for each in phrases)


def _words_of(text: str) -> Mapping[str, Any]:
    known = _table()
    return known.get(languages.guess(text) or _asking_language(text)) or known[_FALLBACK]


def _asking_language(text: str) -> str:
    """Return the language whose words of a question a text has, if its small words tell of none."""
    counts = {
        name: sum(_has(text, name, [each]) for each in (*words["own"].split(), *words["asked"].split(), *words["much"]))
        for name, words in _table().items()
    }
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] and list(counts.values()).count(counts[best]) == 1 else _FALLBACK


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(files(__package__).joinpath("without_memory.toml").read_text(encoding="utf-8"))
