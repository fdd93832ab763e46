"""Trials: records of changes that are tried on questions with known answers, and the paired test that decides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from batos.autotelic.slot_values import Changes, Lever, SlotWrite
from batos.genesis.codex.origins import plain
from batos.image import ids, roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.protocol.errors import NotFound, Refused
from batos.protocol.trial_documents import SlotChangeDocument, TrialDocument, TrialWord
from batos.records.redefinitions import ChangeOrigin, Value

#: The shares that are wagered; the mean over them needs no tuning (Waudby-Smith and Ramdas, arXiv 2010.09686).
_WAGERS: Final = tuple(share / 20 for share in range(1, 20))
#: The evidence of harm, and that no gain is left to hope for, at which a trial is given up: that needs no guarantee.
HARMED, _HOPELESS = 5.0, 10.0
#: The gain that a trial looks for: a smaller one is not found with the questions that there are.
_HOPE: Final = 0.10
#: The evidence that a guard has not fallen by more than its margin, and that one kind of question has become worse.
_GUARDED, _CLASS_HARMED = 10.0, 10.0
#: The most by which the share of answers that the gate lets pass, and of missions that end, may fall.
_MARGINS: Final = {"gate": 0.10, "end": 0.05}
#: The most tokens that all answers may cost, as a factor of the old ones', and the gain that pays for each added call.
_COST, _CALL_GAIN = 1.3, 0.05

Word: TypeAlias = Literal["go on", "promote", "drop", "spent"]


def evidence(differences: Iterable[float], than: float = 0.0, *, falls: bool = False) -> float:
    """Return the e-value against "the mean of differences is at most `than`" (with `falls`: at least).

    Differences are in [-1, 1]. If the statement is true, the value ever reaches 1/a with a probability of at most a
    (Ville), so it may be looked at after each difference.

    >>> round(evidence([1.0] * 7), 1), round(evidence([1.0, -1.0] * 20), 3)
    (30.3, 0.178)
    """
    sign, cap = -1 if falls else 1, 1 / (1 + abs(than))
    logs = [0.0] * len(_WAGERS)
    for difference in differences:
        gain = sign * (difference - than) * cap
        logs = [log + math.log1p(wager * gain) for log, wager in zip(logs, _WAGERS, strict=True)]
    top = max(logs)
    return math.exp(top) * sum(math.exp(log - top) for log in logs) / len(logs)


@dataclass(frozen=True, slots=True)
class PairedAnswer:
    """The answers of both forms to one question: their worth in [0, 1], and what they cost.

    `passed` and `ended` are whether the gate let each pass and whether each mission ended, the new form first.
    """

    item: str
    kind: str
    new: float
    old: float
    passed: tuple[bool, bool] = (True, True)
    ended: tuple[bool, bool] = (True, True)
    calls: tuple[int, int] = (1, 1)
    tokens: tuple[int, int] = (0, 0)

    @property
    def difference(self) -> float:
        """Return by how much the new form's answer is better; a mission that failed answered nothing."""
        return self.new - self.old


class TrialAnswer(NamedTuple):
    """The answers of both forms to one question: what is counted of them, and the missions that have their words."""

    pair: PairedAnswer
    before: str
    after: str


class ScreenAnswer(NamedTuple):
    """The worth of the answer of the acting form, and of each candidate's behind it, and how many of these differ."""

    worth: tuple[float, ...]
    changed: int


class TrialRules(NamedTuple):
    """The evidence at which a change is kept, and the most questions that are asked."""

    win: float = 20.0
    limit: int = 300


class TrialDecision(NamedTuple):
    """The word on a trial so far, the reason in a few words, the evidence for a gain, and the counted questions."""

    word: Word
    reason: str
    evidence: float
    wins: int
    losses: int


def judge_pairs(pairs: Sequence[PairedAnswer], rules: TrialRules) -> TrialDecision:
    """Decide about a trial after these answers, in the order in which they were given."""
    differences = [each.difference for each in pairs]
    gain = evidence(differences)
    word, reason = _decide(pairs, differences, gain, rules)
    wins, losses = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    return TrialDecision(word, reason, gain, wins, losses)


def _decide(
    pairs: Sequence[PairedAnswer], differences: Sequence[float], gain: float, rules: TrialRules
) -> tuple[Word, str]:
    if evidence(differences, falls=True) >= HARMED:
        return "drop", "the answers got worse"
    if kind := find_worse_kind(pairs):
        return "drop", f"questions of the kind {kind} got worse"
    if gain >= rules.win:
        missing = _find_unproven_guard(pairs)
        if not missing:
            dear = find_excess(pairs)
            return ("drop", dear) if dear else ("promote", "the answers got better")
        if len(pairs) >= rules.limit:
            return "spent", f"better, but it is not shown that {missing} held"
        return "go on", f"better; it is not shown yet that {missing} held"
    if evidence(differences, _HOPE, falls=True) >= _HOPELESS:
        return "drop", f"no gain of {_HOPE:g} is left to hope for"
    return ("spent", "no difference was shown") if len(pairs) >= rules.limit else ("go on", "")


def find_worse_kind(pairs: Sequence[PairedAnswer]) -> str:
    """Return the first kind of question that got worse, whatever all of them did; "" if none did."""
    for kind in sorted({each.kind for each in pairs}):
        if evidence((each.difference for each in pairs if each.kind == kind), falls=True) >= _CLASS_HARMED:
            return kind
    return ""


def _find_unproven_guard(pairs: Sequence[PairedAnswer]) -> str:
    """Return the first guard of which it is not shown that it fell by at most its margin; "" if all held."""
    shares = {
        "gate": [float(new) - float(old) for new, old in (each.passed for each in pairs)],
        "end": [float(new) - float(old) for new, old in (each.ended for each in pairs)],
    }
    names = {"gate": "the share that passes the gate", "end": "the share that ends"}
    return next((names[name] for name, each in shares.items() if evidence(each, -_MARGINS[name]) < _GUARDED), "")


def find_excess(pairs: Sequence[PairedAnswer]) -> str:
    """Return why the new form is too dear for what it gains; "" if it is not."""
    tokens = [sum(each.tokens[place] for each in pairs) for place in (0, 1)]
    calls = [sum(each.calls[place] for each in pairs) / max(1, len(pairs)) for place in (0, 1)]
    gain = sum(each.difference for each in pairs) / max(1, len(pairs))
    if tokens[0] <= _COST * tokens[1] and calls[0] <= calls[1]:
        return ""
    is_paid = gain >= _CALL_GAIN * max(1.0, calls[0] - calls[1])
    return "" if is_paid else f"it gains {gain:.2f} for {tokens[0] / max(1, tokens[1]):.1f} times the tokens"


def threshold(tries: int) -> float:
    """Return the evidence that the next trial of a lever needs after so many: a null that is retried enough would pass.

    The sum of 1/threshold over all trials of a lever is 1/20.

    >>> threshold(0), threshold(1), threshold(2)
    (40.0, 120.0, 240.0)
    """
    return 20.0 * (tries + 1) * (tries + 2)


#: The name under which the mind itself begins trials.
HEARTBEAT: Final = "heartbeat"
#: The trials that go on: at most one, for two at once would mix what they do.
OPEN: Final = frozenset[TrialWord]({"screening", "trying"})
#: The trials whose values act.
STANDING: Final = frozenset[TrialWord]({"promoted", "kept"})
#: The most questions of a trial, of the comparison of values before it, and of the comparison of a form with itself.
ASKED, SCREENED, NOISE = 300, 20, 20
#: The examples of which the missions are kept, of each side, and those that are shown of both; their words stand in
#: the journal.
EXAMPLES: Final = 6
#: The time for which a value that was undone is not tried again.
_BARRED: Final = timedelta(days=90)


def begin(root: Root, lever: Lever, candidates: Sequence[Changes], origin: ChangeOrigin, now: datetime) -> str:
    """Begin a trial of a lever's values; return its id.

    A value that a person named is not compared with others first. Raises: Refused: another trial goes on.
    """
    if (running := find_open(root)) is not None:
        raise Refused(
            f"the trial {running} goes on, and two at once would mix what they do",
            field="slot",
            remedy=f"Wait for its end, or end it: `batos trials undo {running}`.",
        )
    name = ids.trial_id(now, next(iter(ids.newest_first(root[roots.TRIALS])), ""))
    root[roots.TRIALS][name] = PersistentMapping(
        lever=lever.name,
        risk=lever.kind.risk,
        before=_plain(lever.acting),
        candidates=tuple(map(_plain, candidates)),
        chosen=None if origin.by == HEARTBEAT else 0,
        state="screening" if origin.by == HEARTBEAT else "trying",
        why=origin.why,
        by=origin.by,
        begun=origin.at,
        ended=None,
        reason="",
        needed=threshold(len(list_begun(root, lever.name))),
        calls=0,
        tokens=0,
        stood_on=tuple(name for name, each in root[roots.TRIALS].items() if each["state"] in STANDING),
        screen=OOBTree(),
        noise=OOBTree(),
        pairs=OOBTree(),
        probes=OOBTree(),
        examples=OOBTree(),
    )
    return name


def find_open(root: Root) -> str | None:
    """Return the trial that goes on; None: there is none."""
    return next((name for name, each in root[roots.TRIALS].items() if each["state"] in OPEN), None)


def list_by_state(root: Root, *words: TrialWord) -> list[str]:
    """List the trials in one of these states, the oldest first."""
    return [name for name, each in root[roots.TRIALS].items() if each["state"] in words]


def expect_false(root: Root) -> float:
    """Return how many of the trials whose values act are expected to be no better, at most."""
    return math.fsum(1 / find(root, name)["needed"] for name in list_by_state(root, *STANDING))


def list_probed_slots(root: Root) -> set[str]:
    """Return the slots whose values are on probation."""
    return {change.slot for name in list_by_state(root, "promoted") for change in before_of(root, name)}


def list_tried(root: Root, lever: str) -> set[str]:
    """Return the ids of the questions by which a lever's trials were judged: none of them judges it again."""
    known = (each for each in root[roots.TRIALS].values() if each["lever"] == lever)
    return {item for each in known for kind in ("pairs", "probes") for item in each[kind]}


def list_barred(root: Root, lever: str, now: datetime) -> set[Changes]:
    """Return the values of a lever that were undone not long ago."""
    since = iso(now - _BARRED)
    return {
        changes_of(each["candidates"][each["chosen"]])
        for each in root[roots.TRIALS].values()
        if each["lever"] == lever and each["state"] == "undone" and each["ended"] > since and each["chosen"] is not None
    }


def list_asked(root: Root, name: str, *, judged: bool) -> set[str]:
    """Return the ids of the questions that a trial has asked to judge its value, or to choose one."""
    kept = find(root, name)
    return {item for kind in (("pairs", "probes") if judged else ("screen",)) for item in kept[kind]}


def list_begun(root: Root, lever: str) -> list[str]:
    """Return when each trial of a lever began, the oldest first."""
    return [each["begun"] for each in root[roots.TRIALS].values() if each["lever"] == lever]


def count_noise(root: Root, name: str) -> int:
    """Count the questions that were asked twice in the old form."""
    return len(find(root, name)["noise"])


def state_of(root: Root, name: str) -> TrialWord:
    """Return the state of a trial."""
    word: TrialWord = find(root, name)["state"]
    return word


def lever_of(root: Root, name: str) -> str:
    """Return the name of a trial's lever."""
    return str(find(root, name)["lever"])


def candidates_of(root: Root, name: str) -> tuple[Changes, ...]:
    """Return the values that a trial chooses among, or the one that it tries."""
    kept = find(root, name)
    every = tuple(map(changes_of, kept["candidates"]))
    return every if kept["chosen"] is None else (every[kept["chosen"]],)


def before_of(root: Root, name: str) -> Changes:
    """Return the values that acted when a trial began."""
    return changes_of(find(root, name)["before"])


# -- what is shown


def decide(root: Root, name: str) -> TrialDecision:
    """Decide about a trial by its questions so far."""
    kept = find(root, name)
    pairs = [unpack(item, each) for item, each in kept["pairs"].items()]
    return judge_pairs(pairs, TrialRules(kept["needed"], ASKED))


def document(root: Root, name: str) -> TrialDocument:
    """Return a trial as it is shown, without its examples."""
    kept = find(root, name)
    decision = decide(root, name)
    chosen = kept["candidates"][kept["chosen"]] if kept["chosen"] is not None else kept["before"]
    return TrialDocument(
        id=name, lever=kept["lever"], state=kept["state"], risk=kept["risk"],
        changes=[
            SlotChangeDocument(slot=slot, before=plain(before), value=plain(value))
            for (slot, before), (_, value) in zip(kept["before"], chosen, strict=True)
        ],
        candidates=[[plain(value) for _, value in each] for each in kept["candidates"]],
        why=kept["why"], by=kept["by"], begun=kept["begun"], ended=kept["ended"], reason=kept["reason"],
        screened=len(kept["screen"]), asked=len(kept["pairs"]), wins=decision.wins, losses=decision.losses,
        evidence=round(decision.evidence, 2), needed=kept["needed"], probed=len(kept["probes"]),
        calls=kept["calls"], tokens=kept["tokens"], stood_on=list(kept["stood_on"]),
    )  # fmt: skip


def list_examples(root: Root, name: str) -> list[TrialAnswer]:
    """List six answers that changed, better ones and worse ones if there are, by the missions that have their words."""
    kept = find(root, name)
    found = [
        TrialAnswer(unpack(item, kept["pairs"][item]), before, after)
        for item, (before, after) in kept["examples"].items()
    ]
    better, worse = ([each for each in found if (each.pair.difference > 0) is is_gain] for is_gain in (True, False))
    shown = worse[: max(EXAMPLES // 2, EXAMPLES - len(better))]
    return [*better[: EXAMPLES - len(shown)], *shown]


def complete_id(root: Root, named: str) -> str:
    """Return the id of the trial that is meant: by its beginning, `last` or `last-1`. Raises: NotFound."""
    found = ids.find_id(root[roots.TRIALS], named, lambda _name: True) if root[roots.TRIALS] else named
    find(root, found)
    return found


def find(root: Root, name: str) -> PersistentMapping[str, Any]:
    """Return the record of a trial. Raises: NotFound: there is none."""
    found = root[roots.TRIALS].get(name)
    if found is None:
        raise NotFound(f"there is no trial {name!r}", field="trial", remedy="`batos trials` lists them.")
    return found


def _plain(changes: Changes) -> tuple[tuple[str, Value], ...]:
    return tuple((each.slot, each.value) for each in changes)


def changes_of(kept: Sequence[tuple[str, Value]]) -> Changes:
    """Return values of slots as a record has them."""
    return tuple(SlotWrite(slot, value) for slot, value in kept)


def unpack(item: str, kept: Any) -> PairedAnswer:
    """Return the answers to a question as a record has them."""
    return PairedAnswer(item, *kept)
