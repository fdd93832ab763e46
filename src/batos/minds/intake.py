"""Answers by rule, without a call, who only tells a fact, which is noted, or orders one to be forgotten.

A noted fact is remembered after the mission as every statement is; here it is only said, with what it takes the place
of. Nothing is forgotten here: the memories that say it are named, with the command that forgets them. Anything else, a
feeling, a problem, a wish or another order, is for the model.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from batos.memory.claims.attributes import facts_in
from batos.memory.claims.restatements import LONGEST, find_replaced
from batos.memory.evidence import Evidence, Passage
from batos.memory.exchanges import FORGETS, NOTED, is_memorable, scope_of
from batos.memory.search.recollection import Recollection
from batos.memory.sentences import sentence_spans
from batos.memory.stated_sentences import statements_of
from batos.memory.terms import clip_line, stems
from batos.minds.context import MindContext
from batos.minds.trace import ToldAnswer

#: The share of the stems of what is to be forgotten that a memory which says it has.
SAYS: Final = 0.6
#: The most memories that are named.
MOST_NAMED: Final = 5
#: Characters of a memory that are quoted.
_QUOTED: Final = 160
#: Words of an order to forget that is about something, and not about what was just talked of.
_LEAST_WORDS: Final = 2


def answer(context: MindContext, recalled: Evidence) -> ToldAnswer | None:
    """Return the answer to a mission that only tells a fact, or orders one to be forgotten; None for any other.

    `recalled` is what its words brought up in memory.
    """
    mission = context.mission
    brief = mission.brief
    is_plain = not (mission.passages or context.mind.inner or mission.past.meant or brief.message)
    if context.io.recollection is None or not is_plain or not is_memorable(brief):
        return None
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
    words = _table()[found[0].language]
    lines = [words["noted"].format(said=_quote(stated))]
    for name, start, end in find_replaced(root, brief.user, scope_of(brief), stated, at):
        for passage in recollection.whole_documents(root, [name], LONGEST):
            if passage.start <= start < passage.start + len(passage.text):
                old = _quote(passage.text[start - passage.start : end - passage.start])
                lines.append(words["instead"].format(old=f"{old} ({passage.day}, `{name}`)"))
    return ToldAnswer(NOTED, "\n".join(lines))


def _offer_to_forget(text: str, recalled: Evidence) -> ToldAnswer | None:
    """Return the offer to forget the memories that say what an order names."""
    for words in _table().values():
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
    return f"“{clip_line(text, _QUOTED)}”"


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(files(__package__).joinpath("intake.toml").read_text(encoding="utf-8"))
