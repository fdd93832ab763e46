"""Decides which statements still hold: by keys, corrections, newer values, and what somebody only supposed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from batos.memory.claims import cues
from batos.memory.claims.claim_statements import (
    ClaimText,
    Statement,
    StatementStanding,
    family,
    parts_of_key,
    statements_of,
    subject_of,
    telling,
)

#: The share of a superseded value that another statement has to have to say the same.
SAME: Final = 0.6
#: The share of an earlier statement that a newer one has to leave out to say something else.
OTHER: Final = 0.3
#: The stems of a statement that rests on the one before it, at least.
LEAST_TOLD: Final = 2
#: The ranks of who gives a fact, the lowest first; who is not of these has none.
RANKS: Final = ("subordinate", "peer", "manager", "executive", "policy", "system")
#: Common stems from which on two ranked facts are about the same, as a share of the shorter.
ALIKE: Final = 0.15
#: The share of the shorter one's stems that a correction has in common with a fact that it takes the place of, or with
#: a statement of another conversation; and how many at least there.
SAME_FACT: Final = 0.25
SAME_ELSEWHERE, LEAST_ELSEWHERE = 0.5, 2
#: The stems that an update has in common at least with a statement of its talk that has neither number nor name.
LEAST_UPDATED: Final = 2


@dataclass(frozen=True, slots=True)
class _Dead:
    """A value that no longer holds, and the statement that took its place."""

    value: frozenset[str]
    by: Statement | None
    whole: frozenset[str]
    standing: StatementStanding = "superseded"


@dataclass(slots=True)
class _Docket:
    """The statements so far, and what is known of them."""

    heard: list[Statement] = field(default_factory=list)
    by_key: dict[str, list[Statement]] = field(default_factory=dict)
    dead: list[_Dead] = field(default_factory=list)


def adjudicate(given: Iterable[ClaimText]) -> list[Statement]:
    """Return the statements of given texts in the order of their moments, each with its standing.

    >>> given = [ClaimText(1, "turn", "The keel goes to Bremen."), ClaimText(2, "turn", "No wait, make that Ulm.")]
    >>> [each.standing for each in adjudicate(given)]
    ['superseded', 'current']
    """
    ordered = sorted(given, key=lambda each: (each.at, each.id))
    docket = _Docket()
    turns = [statements_of(each) for each in ordered]
    for conversation in {each.conversation for each in ordered}:
        _mark_digressions([each for each in turns if each and each[0].given.conversation == conversation])
    for statements in turns:
        commanded = any(each.given.kind != "fact" and cues.has("commands", each.text) for each in statements)
        for place, statement in enumerate(statements):
            if commanded:
                statement.mark("untrusted", "a command")
            _connect(statement, statements[:place], docket)
            _judge(statement, docket)
            docket.heard.append(statement)
    _weigh_ranks(docket)
    return docket.heard


def _mark_digressions(turns: Sequence[list[Statement]]) -> None:
    """Take out what was said from the opening of another topic, or of a talk that asserts nothing, to the return."""
    opened: tuple[int, str] | None = None
    for place, statements in enumerate(turns):
        if not statements or statements[0].given.kind != "turn":
            continue
        text = statements[0].given.text
        if cues.has("interrupts", statements[0].text):
            opened = place, "another topic"
        elif any(cues.has("explores", each.text) and not cues.has("returns", each.text) for each in statements):
            opened = place, "exploratory"
        elif opened and cues.has("returns", text):
            first, reason = opened
            last = place if reason == "exploratory" else place - 1
            for between in turns[first : last + 1]:
                for each in between:
                    if each.given.kind == "turn":
                        each.mark("out of scope", reason)
            opened = None


def _connect(statement: Statement, before: Sequence[Statement], docket: _Docket) -> None:
    """Note what a statement rests on: the one before it in its turn, or what it concludes from, or named facts."""
    if before and not statement.values and len(statement.terms) >= LEAST_TOLD and before[-1].values:
        statement.rest_on(before[-1:])
    elif not before and cues.has("concludes", statement.text):
        claims = [each for each in docket.heard if each.is_claim and each.standing == "current"]
        statement.rest_on(claims[-1:])
    for key in statement.given.depends_on:
        statement.rest_on(_find_by_key(key, docket))


def _find_by_key(key: str, docket: _Docket) -> list[Statement]:
    """Return the statements of the fact that a key names, in its own notation or another."""
    found = docket.by_key.get(key.casefold()) or docket.by_key.get(family(key))
    if found is None and (parts := parts_of_key(key)):
        for known in reversed(docket.by_key):
            begun = parts_of_key(known)
            if all(any(each.startswith(part) for each in begun) for part in parts):
                return docket.by_key[known]
    return found or []


def _judge(statement: Statement, docket: _Docket) -> None:
    """Decide on a statement, and on earlier ones by it."""
    is_fact = statement.given.kind == "fact"
    named = _targets_by_key(statement, docket) if is_fact else []
    if statement.standing != "current" or not (statement.is_claim or statement.label):
        return
    if any(each.given.doubt < statement.given.doubt for each in named):
        statement.mark("untrusted", "against one that is trusted more")
        return
    targets = named
    if found := _own_fault(statement, is_fact, docket):
        statement.mark(*found)
    elif not named and statement.is_claim:
        targets = _targets_by_cue(statement, docket)
    if targets:
        _supersede(targets, statement, docket)
        for each in named:
            each.replace()
    else:
        _mark_restated(statement, docket)


def _own_fault(statement: Statement, is_fact: bool, docket: _Docket) -> tuple[StatementStanding, str] | None:
    """Return why a statement does not hold by its own words, or by those of one that says the same."""
    if statement.is_restricted:
        label = " ".join(statement.label.split())
        return "out of scope", label.partition(":")[2].strip() or label
    if statement.is_invalid:
        return "superseded", "invalid"
    if not statement.is_claim:
        return None
    if cues.is_noted_as_supposed(statement.text) or (not is_fact and cues.has("supposes", statement.text)):
        return "out of scope", "only supposed"
    if any(each.standing == "untrusted" and statement.terms <= each.about for each in docket.heard):
        return "untrusted", "said again"
    return ("superseded", "of the past") if not is_fact and cues.is_past(statement.text) else None


def _targets_by_key(statement: Statement, docket: _Docket) -> list[Statement]:
    key, names = statement.given.key.casefold(), statement.given.supersedes
    found = _find_by_key(names, docket) if names else []
    found = found or docket.by_key.get(key, [])
    docket.by_key[key] = docket.by_key[family(key)] = [statement]
    return [each for each in found if each is not statement]


def _targets_by_cue(statement: Statement, docket: _Docket) -> list[Statement]:
    """Return the earlier statements that a correction or an update takes the place of."""
    corrects, updates = cues.has("corrects", statement.text), cues.has("updates", statement.text)
    denied = cues.before("denies", statement.text)
    if denied:
        who = telling(denied)
        return [
            each for each in docket.heard if each.label and who & telling(each.label) and each.standing == "current"
        ]
    if not corrects and not updates:
        return []
    if corrects:
        back = [
            each.by
            for each in docket.dead
            if each.by and _says(statement, each.value) and _can_yield(each.by, statement)
        ]
        if back:
            return list({id(each): each for each in back}.values())
    if any(_knows(each, statement) for each in docket.heard):
        return []
    live = [each for each in docket.heard if _may_yield(each, statement)]
    shared = [(len(each.about & statement.about), place) for place, each in enumerate(live)]
    most = max((count for count, _ in shared), default=0)
    found = [live[place] for count, place in shared if most and count >= max(1, 0.75 * most)]
    if not found and corrects and (statement.values or cues.is_firm(statement.text)):
        found = [each for each in live if each.given.conversation == statement.given.conversation][-1:]
    if any(_is_outranked(statement, each) for each in found):
        _distrust(statement, found, docket)
        return []
    return found


def _knows(earlier: Statement, later: Statement) -> bool:
    """Tell whether an earlier fact is the very correction that a later statement tells of: it brings no other value."""
    return (
        earlier.standing == "current"
        and earlier.took_place
        and earlier.given.kind == "fact"
        and later.values <= earlier.about
        and 0 < len(fresh := telling(cues.without("corrects", later.text))) * (1 - OTHER) <= len(fresh & earlier.about)
    )


def _may_yield(earlier: Statement, later: Statement) -> bool:
    """Tell whether a later statement can take the place of an earlier one of the same thing."""
    return _can_yield(earlier, later) and _meets(earlier, later)


def _can_yield(earlier: Statement, later: Statement) -> bool:
    """Tell whether an earlier statement says something else, and can give way.

    In one text only a figure yields to another, to a correction, and in a note none does.
    """
    return (
        earlier.is_claim
        and earlier.standing == "current"
        and earlier.given.doubt >= later.given.doubt
        and (earlier.given is not later.given or _is_corrected_at_once(earlier, later))
        and _differs(earlier, later)
    )


def _is_corrected_at_once(earlier: Statement, later: Statement) -> bool:
    has_figure = any(map(_has_digit, earlier.values))
    return has_figure and later.given.kind != "document" and cues.has("corrects", later.text)


def _meets(earlier: Statement, later: Statement) -> bool:
    """Tell whether statements can be about one thing: those of one talk can, others need words in common."""
    kinds = {earlier.given.kind, later.given.kind}
    common, shorter = len(earlier.about & later.about), min(len(earlier.about), len(later.about))
    if "fact" in kinds:
        return common >= max(1, SAME_FACT * shorter)
    if earlier.given.conversation == later.given.conversation:
        updates = common >= LEAST_UPDATED or bool(earlier.values)
        return cues.has("corrects", later.text) or (updates and _share_subject(earlier, later))
    return common >= max(LEAST_ELSEWHERE, SAME_ELSEWHERE * shorter)


def _share_subject(earlier: Statement, later: Statement) -> bool:
    """Tell whether statements are about one thing, as far as their subjects are clear."""
    subjects = subject_of(earlier.text), subject_of(later.text)
    return not all(subjects) or not subjects[0].isdisjoint(subjects[1])


def _has_digit(term: str) -> bool:
    return any(map(str.isdigit, term))


def _is_outranked(one: Statement, other: Statement) -> bool:
    ranks = one.given.authority, other.given.authority
    return all(each in RANKS for each in ranks) and RANKS.index(ranks[0]) < RANKS.index(ranks[1])


def _differs(earlier: Statement, later: Statement) -> bool:
    """Tell whether an earlier statement says something that a later one does not: else they agree."""
    if later.values <= earlier.about and len(later.terms - earlier.terms) <= OTHER * len(later.terms):
        return False
    return not earlier.values <= later.about or len(earlier.terms - later.terms) > OTHER * len(earlier.terms)


def _supersede(targets: Sequence[Statement], by: Statement, docket: _Docket) -> None:
    """Let a statement take the place of others, and of all that say the same as these or rest on them."""
    by.take_place()
    for target in targets:
        value = (target.values - by.values - by.terms) or (target.terms - by.terms)
        docket.dead.append(_Dead(value, by, target.about))
        target.mark("superseded", "", by)
        for each in docket.heard:
            if each.standing == "current" and each.given is not by.given and _says(each, value):
                each.mark("superseded", "", by)
    _supersede_dependents(by, docket)


def _supersede_dependents(by: Statement, docket: _Docket) -> None:
    fresh = True
    while fresh:
        fresh = False
        for each in docket.heard:
            if each.standing == "current" and any(found.standing == "superseded" for found in each.rests_on):
                fresh = True
                each.mark("superseded", "rests on what no longer holds", by)
                docket.dead += [_Dead(each.values, by, each.about)] if each.values else []
                for twin in docket.heard:
                    if twin.standing == "current" and _says(twin, each.values):
                        twin.mark("superseded", "rests on what no longer holds", by)


def _says(statement: Statement, value: frozenset[str]) -> bool:
    """Tell whether a statement has a value, or most of it."""
    return bool(value) and statement.is_claim and len(value & (statement.terms | statement.values)) >= SAME * len(value)


def _mark_restated(statement: Statement, docket: _Docket) -> None:
    """Mark a statement that tells of a value which no longer holds, or repeats it and nothing else."""
    if statement.standing != "current":
        return
    refers = cues.has("refers", statement.text)
    for dead in docket.dead:
        if (
            dead.by is not statement
            and _says(statement, dead.value)
            and (refers or (statement.given.kind != "fact" and _repeats(statement, dead)))
        ):
            statement.mark(dead.standing, "", dead.by)
            return


def _repeats(statement: Statement, dead: _Dead) -> bool:
    """Tell whether a statement says what was said word for word before, and is no correction."""
    return (
        statement.terms <= dead.whole
        and not cues.has("corrects", statement.text)
        and not cues.has("updates", statement.text)
    )


def _weigh_ranks(docket: _Docket) -> None:
    """Let facts of a higher rank stand against those of a lower one about the same."""
    ranked = [
        each
        for each in docket.heard
        if each.given.authority in RANKS and not each.given.supersedes and each.standing == "current"
    ]
    for lower in ranked:
        higher = [
            each for each in ranked if _is_outranked(lower, each) and _alike(lower, each) and _differs(lower, each)
        ]
        if higher:
            _distrust(lower, higher, docket)
    for each in docket.heard:
        if each.standing == "current" and each not in ranked:
            _mark_restated(each, docket)


def _distrust(lower: Statement, higher: Sequence[Statement], docket: _Docket) -> None:
    """Mark what stands against higher ranks; who repeats it later says the same."""
    lower.mark("untrusted", "against a higher rank")
    known = frozenset[str]().union(*(each.about for each in higher))
    value = (lower.values - known) or (lower.terms - known)
    docket.dead.append(_Dead(value, None, lower.about, "untrusted"))


def _alike(one: Statement, other: Statement) -> bool:
    common = len(one.terms & other.terms)
    return common >= 1 and common >= ALIKE * min(len(one.terms), len(other.terms))
