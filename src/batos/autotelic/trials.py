"""Trials: records of changes that are tried on questions with known answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from batos.autotelic import paired_test
from batos.autotelic.levers import Lever
from batos.autotelic.paired_test import PairedAnswer, TrialAnswer, TrialDecision, TrialRules
from batos.autotelic.slot_values import Changes, SlotWrite
from batos.genesis.codex.origins import plain
from batos.image import ids, roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.protocol.errors import NotFound, Refused
from batos.protocol.trial_documents import SlotChangeDocument, TrialDocument, TrialWord
from batos.records.redefinitions import ChangeOrigin, Value

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
        needed=paired_test.threshold(len(list_begun(root, lever.name))),
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
    return paired_test.decide(pairs, TrialRules(kept["needed"], ASKED))


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
