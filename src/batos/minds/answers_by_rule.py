"""Answers by rule, without a call: to who only tells a fact or an order, and that nothing remembered was used.

A noted fact is remembered after the mission as every statement is; here it is only said, with what it takes the place
of. Nothing is forgotten here: the memories that say it are named, with the command that forgets them; nor is anybody
reminded without a command of their own. Anything else, a
feeling, a problem, a wish or another order, is for the model.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from batos.gate import languages
from batos.memory.claims.claim_statements import facts_in
from batos.memory.claims.restatements import LONGEST, find_replaced
from batos.memory.evidence import PERHAPS, Evidence, Passage
from batos.memory.exchanges import FORGETS, NOTED, REMINDS, is_memorable, scope_of, statements_of
from batos.memory.search.recollection import Recollection
from batos.memory.segmentation import clip_line, line_of, sentence_spans, stems
from batos.minds import reminders
from batos.minds.context import MindContext
from batos.minds.question_kind import Kind, kind_of
from batos.minds.tools import telling
from batos.minds.trace import ToldAnswer

#: The share of the stems of what is to be forgotten that a memory which says it has.
SAYS: Final = 0.6
#: The most memories that are named.
MOST_NAMED: Final = 5
#: Characters of a memory that are quoted.
_MOST_QUOTED: Final = 160
#: Words of an order to forget that is about something, and not about what was just talked of.
_LEAST_WORDS: Final = 2


def answer(context: MindContext, recalled: Evidence) -> ToldAnswer | None:
    """Return the answer to a mission that only tells a fact, or orders to forget or to remind; None for any other.

    `recalled` is what its words brought up in memory.
    """
    mission = context.mission
    brief = mission.brief
    is_plain = not (
        mission.passages or context.mind.inner or mission.past.meant or brief.message or _has_schema(context)
    )
    if context.io.recollection is None or not is_plain or not is_memorable(brief):
        return None
    if offered := reminders.offer(brief.text):
        return ToldAnswer(REMINDS, offered)
    return _note(context, context.io.recollection) or _offer_to_forget(brief.text, recalled)


def _note(context: MindContext, recollection: Recollection) -> ToldAnswer | None:
    """Return the note of a text of which every sentence gives a fact; a text after a question may answer that."""
    brief, root, at = context.mission.brief, context.mission.root, context.mission.shared.asked_at
    sentences = [brief.text[start:end] for start, end in sentence_spans(brief.text)]
    found = facts_in(brief.text, sentences)
    last = next(iter(context.mission.past.newest()), None) if context.mission.past.count else None
    asked = last is not None and last.answer.rstrip().endswith(("?", "？"))
    stated = " ".join(statements_of(brief.text))
    if not found or asked or not stated:
        return None
    words = _intake_table()[found[0].language]
    lines = [words["noted"].format(said=_quote(stated))]
    for name, start, end in find_replaced(root, brief.user, scope_of(brief), stated, at):
        for passage in recollection.whole_documents(root, [name], LONGEST):
            if passage.start <= start < passage.start + len(passage.text):
                old = _quote(passage.text[start - passage.start : end - passage.start])
                lines.append(words["instead"].format(old=f"{old} ({passage.day}, `{name}`)"))
    return ToldAnswer(NOTED, "\n".join(lines))


def _offer_to_forget(text: str, recalled: Evidence) -> ToldAnswer | None:
    """Return the offer to forget the memories that say what an order names."""
    for words in _intake_table().values():
        found = re.fullmatch(rf"\W*(?:{words['forget']})\W*", text.strip(), re.IGNORECASE | re.DOTALL)
        if found is None or len(list(stems(found["what"]))) < _LEAST_WORDS:
            continue
        named = _find_saying(found["what"], recalled)
        if not named:
            return ToldAnswer(FORGETS, words["nothing"])
        command = f"batos forget {' '.join(named)}"
        lines = [f"- `{name}`: {_quote(said.text)}" for name, said in named.items()]
        return ToldAnswer(FORGETS, "\n".join((words["offer"].format(command=f"`{command}`"), *lines)))
    return None


def _find_saying(what: str, recalled: Evidence) -> dict[str, Passage]:
    """Return the memories that say something, the nearest first, each with what it says."""
    wanted = frozenset(stems(what))
    shares = {
        each.document: (len(wanted.intersection(stems(f"{each.name} {each.text}"))) / len(wanted), each)
        for each in reversed(recalled.passages)
        if each.document
    }
    near = sorted((pair for pair in shares.values() if pair[0] >= SAYS), key=lambda pair: -pair[0])
    return {each.document: each for _, each in near[:MOST_NAMED]}


def _quote(text: str) -> str:
    return f"“{clip_line(text, _MOST_QUOTED)}”"


@lru_cache(maxsize=1)
def _intake_table() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(files(__package__).joinpath("intake.toml").read_text(encoding="utf-8"))


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
    if (told := telling.lead_of(context)) and not _has_schema(context):
        return f"{told}\n\n"
    found, asked = context.trace.memory, context.mission.brief.text
    if context.trace.told or found.state in ("", "found") or _has_schema(context):
        return ""
    if _has_other_matter(context) or only_text(context) or not _asks(asked):
        return ""
    words = _words_of(asked)
    titles = ", ".join(dict.fromkeys(f"“{_title_of(each)}”" for each in found.perhaps))
    line = words["perhaps"].format(titles=titles) if found.state == "perhaps" else words["nothing"]
    return f"{line}\n\n"


def only_text(context: MindContext) -> str:
    """Return the answer of a mission that is to be answered from memory alone and finds nothing there; "" for others.

    By itself this is done for a question of fact about the person's own world, if nothing remembered comes near. Where
    it was asked for, what comes near is quoted.
    """
    found, brief = context.trace.memory, context.mission.brief
    asked_for = bool(brief.policy and brief.policy.only_memory)
    if found.state == "found" or brief.message is not None or _has_other_matter(context) or _has_schema(context):
        return ""
    if not asked_for and (found.state != "nothing" or context.mission.past.count or context.mission.past.meant):
        return ""
    if not asked_for and not is_of_own_world(brief.text):
        return ""
    words = _words_of(brief.text)
    quoted = [f"- {_title_of(each)}: {clip_line(each.text, _QUOTED)}" for each in found.perhaps]
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


def _title_of(passage: Passage) -> str:
    """Return the title of a passage without the mark that only a model needs: the line says it itself."""
    return passage.name.removesuffix(f" ({PERHAPS})")


def _asks_fact(question: str, language: str, words: Mapping[str, Any]) -> bool:
    """Test if a question opens with a word that asks for a fact, and is a question by that word or by its end."""
    asking = (*words["asked"].split(), *words["much"])
    asks = _ends_as_question(question) or _begins(question, language, asking)
    # A `when` further on asks for nothing.
    opening = question if language in _UNSPACED else " ".join(question.split()[:_OPENING])
    return asks and _has(opening, language, asking)


def _has_schema(context: MindContext) -> bool:
    """Test if the answer is to have a schema, which no sentence of a rule has."""
    return context.mission.brief.answer_schema is not None


def _has_other_matter(context: MindContext) -> bool:
    """Test if the mission has files, texts of its own or of tools, or a result that was computed."""
    mission, trace = context.mission, context.trace
    computed = any(trace.computed.values())
    return bool(mission.passages or trace.indexed or trace.seen or computed or telling.has_brought(context))


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
