"""Decides which statements still hold, and shows a text with what does not hold in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from batos.memory.claims import cues
from batos.memory.claims.claim_statements import (
    ClaimText,
    Statement,
    StatementStanding,
    family,
    parts_of_key,
    statements_of,
    telling,
)
from batos.memory.claims.comparisons import (
    RANKS,
    alike,
    can_yield,
    differs,
    is_one_talk,
    is_outranked,
    is_trusted,
    knows,
    may_yield,
    says,
)
from batos.memory.records.memory_claims import ASKED, ClaimMark

#: The stems of a statement that rests on the one before it, at least.
LEAST_TOLD: Final = 2
#: The share of the most common stems that another statement needs to be as near to a correction.
NEAR: Final = 0.75


@dataclass(frozen=True, slots=True)
class _Dead:
    """A value that no longer holds, of which statement, and the one that took its place."""

    value: frozenset[str]
    of: Statement
    by: Statement | None
    standing: StatementStanding = "superseded"


@dataclass(slots=True)
class _Docket:
    """The statements so far, and what is known of them.

    `by_key` has the newest fact of each key, by how far it is trusted: one of a lower class hides none of a higher.
    """

    heard: list[Statement] = field(default_factory=list)
    by_key: dict[int, dict[str, Statement]] = field(default_factory=dict)
    dead: list[_Dead] = field(default_factory=list)


def adjudicate(given: Iterable[ClaimText]) -> list[Statement]:
    """Return the statements of given texts in the order of their moments, each with its standing.

    A text decides nothing about those that are trusted more: these stand as if it had not been given.

    >>> given = [ClaimText(1, "turn", "The keel goes to Bremen."), ClaimText(2, "turn", "No wait, make that Ulm.")]
    >>> [each.standing for each in adjudicate(given)]
    ['superseded', 'current']
    """
    ordered = sorted(given, key=lambda each: (each.at, each.id))
    docket = _Docket()
    turns = [statements_of(each) for each in ordered]
    told = [each for each in turns if each]
    for conversation, doubt in {(each.conversation, each.doubt) for each in ordered}:
        talk = [each for each in told if each[0].given.conversation == conversation]
        _mark_digressions([each for each in talk if each[0].given.doubt <= doubt], doubt)
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


def _mark_digressions(turns: Sequence[list[Statement]], doubt: int) -> None:
    """Take out what was said from the opening of another topic, or of a talk that asserts nothing, to the return.

    This is done to the turns of one class of trust, by these and those that are trusted more.
    """
    opened: tuple[int, str] | None = None
    for place, statements in enumerate(turns):
        if statements[0].given.kind != "turn":
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
                    if each.given.kind == "turn" and each.given.doubt == doubt:
                        each.mark("out of scope", reason)
            opened = None


def _connect(statement: Statement, before: Sequence[Statement], docket: _Docket) -> None:
    """Note what a statement rests on: the one before it in its turn, or what it concludes from, or named facts."""
    if before and not statement.values and len(statement.terms) >= LEAST_TOLD and before[-1].values:
        statement.rest_on(before[-1:])
    elif not before and cues.has("concludes", statement.text):
        claims = [each for each in docket.heard if each.is_claim and each.standing == "current"]
        own = [each for each in claims if is_one_talk(each, statement) and is_trusted(each, statement)]
        statement.rest_on(own[-1:])
    for key in statement.given.depends_on:
        statement.rest_on(_find_by_key(key, docket))


def _find_by_key(key: str, docket: _Docket) -> list[Statement]:
    """Return the statement of the fact that a key names, in its own notation or another; the most trusted first."""
    for _, known in sorted(docket.by_key.items()):
        found = known.get(key.casefold()) or known.get(family(key))
        if found is None and (parts := parts_of_key(key)):
            named = (
                fact
                for other, fact in reversed(known.items())
                if all(any(each.startswith(part) for each in parts_of_key(other)) for part in parts)
            )
            found = next(named, None)
        if found is not None:
            return [found]
    return []


def _judge(statement: Statement, docket: _Docket) -> None:
    """Decide on a statement, and on earlier ones by it."""
    is_fact = statement.given.kind == "fact"
    named = _targets_by_key(statement, docket) if is_fact else []
    is_overruled = not all(is_trusted(statement, each) for each in named)
    if is_fact and not is_overruled:
        known = docket.by_key.setdefault(statement.given.doubt, {})
        known[statement.given.key.casefold()] = known[family(statement.given.key)] = statement
    if statement.standing != "current" or not (statement.is_claim or statement.label):
        return
    if is_overruled:
        statement.mark("untrusted", "against one that is trusted more")
        return
    targets = named
    if found := _own_fault(statement, is_fact, docket):
        statement.mark(*found)
    elif statement.is_claim and not any(is_trusted(each, statement) for each in named):
        targets = [*named, *(each for each in _targets_by_cue(statement, docket) if each not in named)]
    if targets:
        _supersede(targets, statement, docket)
        for each in named:
            each.replace()
    if not any(is_trusted(each, statement) for each in targets):
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
    distrusted = [each for each in docket.heard if each.standing == "untrusted" and is_trusted(each, statement)]
    if any(statement.terms <= each.about for each in distrusted):
        return "untrusted", "said again"
    return ("superseded", "of the past") if not is_fact and cues.is_past(statement.text) else None


def _targets_by_key(statement: Statement, docket: _Docket) -> list[Statement]:
    """Return the fact that another one names, and that of its own key."""
    key, names = statement.given.key.casefold(), statement.given.supersedes
    found = _find_by_key(names, docket) if names else []
    own = [known[key] for _, known in sorted(docket.by_key.items()) if key in known][:1]
    return [*found, *(each for each in own if each not in found)]


def _targets_by_cue(statement: Statement, docket: _Docket) -> list[Statement]:
    """Return the earlier statements that a correction or an update takes the place of."""
    corrects, updates = cues.has("corrects", statement.text), cues.has("updates", statement.text)
    denied = cues.before("denies", statement.text)
    if denied:
        who = telling(denied)
        labelled = [each for each in docket.heard if each.label and who & telling(each.label)]
        return [each for each in labelled if each.standing == "current" and is_trusted(statement, each)]
    if not corrects and not updates:
        return []
    back = _standing_in_place(statement, docket) if corrects else []
    if any(is_trusted(each, statement) for each in back) or any(knows(each, statement) for each in docket.heard):
        return back
    found = _nearest(statement, [each for each in docket.heard if may_yield(each, statement)])
    if any(is_outranked(statement, each) for each in found):
        _distrust(statement, [each for each in found if is_trusted(each, statement)], docket)
        return []
    return [*found, *(each for each in back if each not in found)]


def _standing_in_place(statement: Statement, docket: _Docket) -> list[Statement]:
    """Return what took the place of the value that a correction goes back to."""
    found = [
        each.by
        for each in docket.dead
        if each.by and says(statement, each.value, each.of) and can_yield(each.by, statement)
    ]
    return list({id(each): each for each in found}.values())


def _nearest(statement: Statement, live: Sequence[Statement]) -> list[Statement]:
    """Return those of some statements that a correction or an update has most in common with, or the last of its talk.

    Each is compared with those that are trusted as much, so that no text from outside stands before another's.
    """
    corrects = cues.has("corrects", statement.text) and (statement.values or cues.is_firm(statement.text))
    found: list[Statement] = []
    for doubt in sorted({each.given.doubt for each in live}):
        known = [each for each in live if each.given.doubt <= doubt]
        shared = [len(each.about & statement.about) for each in known]
        near = [each for each, count in zip(known, shared, strict=True) if count >= max(1, NEAR * max(shared))]
        if not near and not found and corrects:
            near = [each for each in known if is_one_talk(each, statement)][-1:]
        found += [each for each in near if each.given.doubt == doubt]
    return found


def _supersede(targets: Sequence[Statement], by: Statement, docket: _Docket) -> None:
    """Let a statement take the place of others, and of all that say the same as these or rest on them."""
    if any(is_trusted(target, by) for target in targets):
        by.take_place()
    for target in targets:
        value = (target.values - by.values - by.terms) or (target.terms - by.terms)
        docket.dead.append(_Dead(value, target, by))
        target.mark("superseded", "", by)
        for each in docket.heard:
            if each.standing == "current" and each.given is not by.given and says(each, value, target):
                each.mark("superseded", "", by)
    _supersede_dependents(by, docket)


def _supersede_dependents(by: Statement, docket: _Docket) -> None:
    fresh = True
    while fresh:
        fresh = False
        for each in docket.heard:
            falls = any(other.gave_way(by) for other in each.rests_on)
            if falls and each.standing == "current" and is_trusted(by, each):
                fresh = True
                each.mark("superseded", "rests on what no longer holds", by)
                docket.dead += [_Dead(each.values, each, by)] if each.values else []
                for twin in docket.heard:
                    if twin.standing == "current" and says(twin, each.values, each):
                        twin.mark("superseded", "rests on what no longer holds", by)


def _mark_restated(statement: Statement, docket: _Docket) -> None:
    """Mark a statement that tells of a value which no longer holds, or repeats it and nothing else."""
    if statement.standing != "current":
        return
    refers = cues.has("refers", statement.text)
    for dead in docket.dead:
        if (
            dead.by is not statement
            and says(statement, dead.value, dead.of)
            and (refers or (statement.given.kind != "fact" and _repeats(statement, dead)))
        ):
            statement.mark(dead.standing, "", dead.by)
            return


def _repeats(statement: Statement, dead: _Dead) -> bool:
    """Test if a statement says what was said word for word before, and is no correction."""
    return (
        statement.terms <= dead.of.about
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
        higher = [each for each in ranked if is_outranked(lower, each) and alike(lower, each) and differs(lower, each)]
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
    docket.dead.append(_Dead(value, lower, None, "untrusted"))


#: The ways to show a text: with marks, with the questions in it too, or without all that is marked.
View: TypeAlias = Literal["marked", "history", "strict"]


def marked_text(text: str, marks: Sequence[ClaimMark], view: View = "marked") -> str:
    """Return a text with its marks; a text without any as it is. Questions are left out but for who wants history.

    >>> print(marked_text("Maro is here. Anna is.", [ClaimMark(0, 13, "superseded", "", "d-2", "2026-11-02")]))
    [superseded since 2026-11-02] Maro is here.
    Anna is.
    """
    return "\n".join(_lines(text, marks, view)) if marks else text


def mark_text(mark: ClaimMark) -> str:
    """Return a mark as it stands before a statement.

    >>> mark_text(ClaimMark(0, 9, "out of scope", "only supposed"))
    '[out of scope: only supposed]'
    """
    since = f" since {mark.since[:10]}" if mark.since and mark.standing == "superseded" else ""
    return f"[{mark.standing}{since}{f': {mark.reason}' if mark.reason else ''}]"


def marked_spans(text: str, marks: Sequence[ClaimMark]) -> Iterator[tuple[int, str, str]]:
    """Yield the spans of a text in order, without questions: where each begins, its words, and its mark or "".

    >>> list(marked_spans("Maro is here. Anna is.", [ClaimMark(0, 13, "superseded")]))
    [(0, 'Maro is here.', '[superseded]'), (14, 'Anna is.', '')]
    """
    if not marks:
        yield 0, text, ""
        return
    at = 0
    for mark in (*sorted(marks), ClaimMark(len(text), len(text), ASKED)):
        for start, end, told in ((at, mark.start, ""), (max(at, mark.start), mark.end, mark_text(mark))):
            said = text[start:end]
            if said.strip() and not (told and mark.standing == ASKED):
                yield start + len(said) - len(said.lstrip()), said.strip(), told
        at = max(at, mark.end)


def _lines(text: str, marks: Sequence[ClaimMark], view: View) -> Iterator[str]:
    at = 0
    for mark in sorted(marks):
        if mark.start > at:
            yield from _plain(text[at : mark.start])
        said = " ".join(text[max(at, mark.start) : mark.end].split())
        if said and (view == "history" or (view == "marked" and mark.standing != ASKED)):
            yield f"{mark_text(mark)} {said}"
        at = max(at, mark.end)
    yield from _plain(text[at:])


def _plain(text: str) -> Iterator[str]:
    if said := text.strip():
        yield said
