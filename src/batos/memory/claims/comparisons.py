"""Compares two statements: if they say the same, are about one thing, and which may give way to which."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from batos.memory.claims import cues
from batos.memory.claims.claim_statements import (
    Statement,
    labels_of_subject,
    subject_in_order,
    subject_of,
    telling,
    units,
)

#: The share of a value that another statement has to have to say the same.
SAME: Final = 0.6
#: The share of an earlier statement that a newer one has to leave out to say something else.
OTHER: Final = 0.3
#: The ranks of who gives a fact, the lowest first; who is not of these has none.
RANKS: Final = ("subordinate", "peer", "manager", "executive", "policy", "system")
#: Common stems from which on two ranked facts are about the same, as a share of the shorter.
ALIKE: Final = 0.15
#: The share of the shorter one's stems that a statement has in common with a fact that it takes the place of, or with
#: a statement of another conversation; and how many at least there.
SAME_FACT: Final = 0.25
SAME_ELSEWHERE, LEAST_ELSEWHERE = 0.5, 2
#: The stems that an update has in common at least with a statement of its talk that has neither number nor name.
LEAST_UPDATED: Final = 2
_WORD: Final = re.compile(r"\w+")


def is_trusted(one: Statement, beside: Statement) -> bool:
    """Test if a statement is trusted as much as another at least: else it decides nothing about that one."""
    return one.given.doubt <= beside.given.doubt


def may_speak_of(one: Statement, other: Statement) -> bool:
    """Test if a statement may decide about another: a person's own, and one by the same speaker or in one talk.

    Somebody else in a talk of their own contradicts it, and both stand.
    """
    is_own = one.given.doubt == 0 or one.given.kind == "fact"
    return is_own or is_one_talk(one, other) or one.given.speaker.casefold() == other.given.speaker.casefold()


def may_yield(earlier: Statement, later: Statement) -> bool:
    """Test if a later statement can take the place of an earlier one of the same thing."""
    return can_yield(earlier, later) and _meets(earlier, later)


def can_yield(earlier: Statement, later: Statement) -> bool:
    """Test if an earlier statement says something else, and can give way.

    In one text only a figure yields to another, to a correction, and in a note none does.
    """
    return (
        earlier.is_claim
        and not earlier.is_header
        and earlier.standing == "current"
        and is_trusted(later, earlier)
        and may_speak_of(later, earlier)
        and (earlier.given is not later.given or _is_corrected_at_once(earlier, later))
        and differs(earlier, later)
    )


def differs(earlier: Statement, later: Statement) -> bool:
    """Test if an earlier statement says something that a later one does not: else they agree."""
    if later.values <= earlier.about and len(later.terms - earlier.terms) <= OTHER * len(later.terms):
        return False
    return not earlier.values <= later.about or len(earlier.terms - later.terms) > OTHER * len(earlier.terms)


def says(statement: Statement, value: frozenset[str], of: Statement) -> bool:
    """Test if a statement has a value of another one, or most of it, and is near enough to mean the same by it.

    A statement that is trusted more does not: who is trusted less tells nothing of it.
    """
    return (
        bool(value)
        and statement.is_claim
        and is_trusted(of, statement)
        and may_speak_of(of, statement)
        and len(value & (statement.terms | statement.values)) >= SAME * len(value)
        and (is_one_talk(statement, of) or _shares(statement, of))
    )


def knows(earlier: Statement, later: Statement) -> bool:
    """Test if an earlier fact is the very correction that a later statement tells of: it brings no other value."""
    return (
        earlier.standing == "current"
        and earlier.took_place
        and earlier.given.kind == "fact"
        and is_trusted(earlier, later)
        and later.values <= earlier.about
        and 0 < len(fresh := telling(cues.without("corrects", later.text))) * (1 - OTHER) <= len(fresh & earlier.about)
    )


def is_one_talk(one: Statement, other: Statement) -> bool:
    """Test if statements were made in one conversation."""
    return one.given.conversation == other.given.conversation


def is_outranked(one: Statement, other: Statement) -> bool:
    """Test if another statement has a higher rank, by somebody who is trusted as much."""
    ranks = one.given.authority, other.given.authority
    known = all(each in RANKS for each in ranks) and is_trusted(other, one)
    return known and RANKS.index(ranks[0]) < RANKS.index(ranks[1])


def alike(one: Statement, other: Statement) -> bool:
    """Test if ranked facts can be about one thing."""
    common = len(one.terms & other.terms)
    return common >= 1 and common >= ALIKE * min(len(one.terms), len(other.terms))


def _is_corrected_at_once(earlier: Statement, later: Statement) -> bool:
    has_figure = any(map(_has_digit, earlier.values))
    return has_figure and later.given.kind != "document" and cues.has("corrects", later.text)


def _has_digit(term: str) -> bool:
    return any(map(str.isdigit, term))


def _meets(earlier: Statement, later: Statement) -> bool:
    """Test if statements can be about one thing: those of one talk can, others need words in common."""
    if "fact" not in (earlier.given.kind, later.given.kind) and is_one_talk(earlier, later):
        updates = len(earlier.about & later.about) >= LEAST_UPDATED or bool(earlier.values)
        return cues.has("corrects", later.text) or (updates and _share_subject(earlier, later))
    return _shares(earlier, later)


def _shares(one: Statement, other: Statement) -> bool:
    """Test if statements of no one talk have enough words in common."""
    if "fact" in (one.given.kind, other.given.kind):
        return len(one.about & other.about) >= max(1, SAME_FACT * min(len(one.about), len(other.about)))
    first, second = _matter(one), _matter(other)
    if _name_others(one, other):
        return False
    return len(first & second) >= max(LEAST_ELSEWHERE, SAME_ELSEWHERE * min(len(first), len(second)))


def _matter(statement: Statement) -> frozenset[str]:
    """Return what a statement is about and says of it, without the words that correct and those that count."""
    bare = _without_cues(statement.text)
    return (statement.about & (telling(bare) | statement.subject | statement.values)) - units(bare)


def _name_others(one: Statement, other: Statement) -> bool:
    """Test if statements of no one talk are about different things, each called otherwise.

    Where both subjects are clear they tell. Else it is so if both have a number for a value, and each has a name that
    the other has not, or they say the same words of another thing.
    """
    bare = [_without_cues(each.text) for each in (one, other)]
    subjects = [subject_in_order(each) for each in bare]
    if labels_of_subject(bare[0]) != labels_of_subject(bare[1]):
        return True
    if all(subjects):
        fewer, more = sorted(subjects, key=len)
        return not _is_called_so(fewer, more, one.values | other.values)
    numbers = [any(map(_has_digit, each.values)) for each in (one, other)]
    names = [{term for term in each.values if not _has_digit(term)} for each in (one, other)]
    is_named = bool(names[0] - other.about) and bool(names[1] - one.about)
    return all(numbers) and (is_named or _differ_before_number(*bare))


def _differ_before_number(one: str, other: str) -> bool:
    """Test if two texts of the same words differ in what stands before their numbers: the red lamp and the blue one."""
    places = [_WORD.findall(each.casefold()) for each in (one, other)]
    if len(places[0]) != len(places[1]):
        return False
    pairs = [pair for pair in zip(*places, strict=True) if pair[0] != pair[1]]
    numbers = [_has_digit(first) and _has_digit(second) for first, second in pairs]
    before = pairs[: numbers.index(True)] if any(numbers) else []
    return any(telling(first) and telling(second) and telling(first) != telling(second) for first, second in before)


def _is_called_so(fewer: Sequence[str], more: Sequence[str], values: frozenset[str]) -> bool:
    """Test if two subjects can be one: the longer one has only names besides, or tells it closer in front.

    `The big launch of Orion` is `the launch of Orion`, and `the rent of the flat's cellar` is not that of the flat.
    """
    besides = set(more) - set(fewer)
    if not set(fewer) <= set(more):
        return False
    first = next((at for at, each in enumerate(more) if each in fewer), 0)
    in_front = len(fewer) >= LEAST_ELSEWHERE and besides <= set(more[:first])
    return in_front or besides <= values


def _without_cues(text: str) -> str:
    return cues.without("updates", cues.without("corrects", text)).lstrip(" ,:;.!-–—")


def _share_subject(earlier: Statement, later: Statement) -> bool:
    """Test if statements are about one thing, as far as their subjects are clear."""
    subjects = subject_of(earlier.text), subject_of(later.text)
    return not all(subjects) or not subjects[0].isdisjoint(subjects[1])
