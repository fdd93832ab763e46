"""Trials: records of changes that are tried on questions with known answers; a kill counts no question twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from batos.autotelic import paired_test, slot_values
from batos.autotelic.levers import Lever
from batos.autotelic.paired_test import PairedAnswer, ScreenAnswer, TrialAnswer, TrialDecision, TrialRules
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
#: The questions after a promotion, in which harm undoes it.
PROBED: Final = 150
#: The evidence by which equal forms differ, so that the answers are too unsteady to compare anything.
UNSTEADY: Final = 10.0
#: The reason of a trial that ends because a person, or the codex, changed its slots.
_CHANGED: Final = "its slots were changed by somebody meanwhile"
#: The time for which a value that was undone is not tried again.
BARRED: Final = timedelta(days=90)
#: The examples of each side of which the missions are kept; their words stand in the journal.
EXAMPLES: Final = 3
#: The first questions of a comparison after which it ends if no value has changed an answer.
SAME: Final = 6


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
    return math.fsum(1 / _find(root, name)["needed"] for name in list_by_state(root, *STANDING))


def list_probed_slots(root: Root) -> set[str]:
    """Return the slots whose values are on probation."""
    return {change.slot for name in list_by_state(root, "promoted") for change in before_of(root, name)}


def list_tried(root: Root, lever: str) -> set[str]:
    """Return the ids of the questions by which a lever's trials were judged: none of them judges it again."""
    known = (each for each in root[roots.TRIALS].values() if each["lever"] == lever)
    return {item for each in known for kind in ("pairs", "probes") for item in each[kind]}


def list_barred(root: Root, lever: str, now: datetime) -> set[Changes]:
    """Return the values of a lever that were undone not long ago."""
    since = iso(now - BARRED)
    return {
        _changes(each["candidates"][each["chosen"]])
        for each in root[roots.TRIALS].values()
        if each["lever"] == lever and each["state"] == "undone" and each["ended"] > since and each["chosen"] is not None
    }


def list_asked(root: Root, name: str, *, judged: bool) -> set[str]:
    """Return the ids of the questions that a trial has asked to judge its value, or to choose one."""
    kept = _find(root, name)
    return {item for kind in (("pairs", "probes") if judged else ("screen",)) for item in kept[kind]}


def list_begun(root: Root, lever: str) -> list[str]:
    """Return when each trial of a lever began, the oldest first."""
    return [each["begun"] for each in root[roots.TRIALS].values() if each["lever"] == lever]


def count_noise(root: Root, name: str) -> int:
    """Count the questions that were asked twice in the old form."""
    return len(_find(root, name)["noise"])


def state_of(root: Root, name: str) -> TrialWord:
    """Return the state of a trial."""
    word: TrialWord = _find(root, name)["state"]
    return word


def lever_of(root: Root, name: str) -> str:
    """Return the name of a trial's lever."""
    return str(_find(root, name)["lever"])


def candidates_of(root: Root, name: str) -> tuple[Changes, ...]:
    """Return the values that a trial chooses among, or the one that it tries."""
    kept = _find(root, name)
    every = tuple(map(_changes, kept["candidates"]))
    return every if kept["chosen"] is None else (every[kept["chosen"]],)


def before_of(root: Root, name: str) -> Changes:
    """Return the values that acted when a trial began."""
    return _changes(_find(root, name)["before"])


# -- what is noted of each question: a question that is noted already is not counted again


def note_screen(root: Root, name: str, item: str, screened: ScreenAnswer, at: str) -> None:
    """Note the answers to a question with the acting form and with each candidate.

    After enough questions the best candidate is chosen, if it is better than the acting form. Values that change none
    of the first answers are not asked further.
    """
    kept = _find(root, name)
    if kept["state"] != "screening" or item in kept["screen"]:
        return
    kept["screen"][item] = tuple(screened)
    same = all(changed == 0 for _, changed in kept["screen"].values())
    if same and len(kept["screen"]) >= SAME:
        _end(kept, "dropped", "no value changed an answer", at)
    elif len(kept["screen"]) >= SCREENED:
        choose(root, name, at)


def choose(root: Root, name: str, at: str) -> None:
    """Choose the candidate with the best answers so far, if it is better than the acting form, unless one is chosen."""
    kept = _find(root, name)
    if kept["state"] != "screening":
        return
    sums = [sum(each) for each in zip(*(worth for worth, _ in kept["screen"].values()), strict=True)] or [0.0]
    best = max(range(len(sums)), key=lambda place: (sums[place], -place))
    if best == 0:
        _end(kept, "dropped", "no value answered more of the first questions rightly", at)
    else:
        kept.update(chosen=best - 1, state="trying")


def note_noise(root: Root, name: str, item: str, difference: float) -> None:
    """Note by how much the acting form's second answer to a question is better than its first."""
    kept = _find(root, name)
    if item not in kept["noise"]:
        kept["noise"][item] = difference


def note_answer(root: Root, name: str, answered: TrialAnswer, at: str) -> None:
    """Note the answers of both forms to a question, and decide, unless it was noted before or nothing is tried.

    A change that is to be kept becomes part of the mind in this commit, unless a person has to agree.
    """
    kept, pair = _find(root, name), answered.pair
    if kept["state"] != "trying" or pair.item in kept["pairs"]:
        return
    kept["pairs"][pair.item] = _pack(pair)
    _keep_example(kept, answered)
    decision = decide(root, name)
    if _is_unsteady(kept):
        _end(kept, "void", "equal forms answer the same questions differently", at)
    elif decision.word in ("drop", "spent"):
        _end(kept, "dropped" if decision.word == "drop" else "spent", decision.reason, at)
    elif decision.word == "promote":
        if not _acts(root, _changes(kept["before"])):
            _end(kept, "void", _CHANGED, at)
        elif kept["risk"] == 3:
            kept.update(state="waiting", reason=f"{decision.reason}; you decide")
        else:
            promote(root, name, ChangeOrigin("trial", at, decision.reason, name))


def note_probe(root: Root, name: str, pair: PairedAnswer, at: str) -> None:
    """Note the answers to a question after a promotion, which is undone by evidence of harm, and kept at the end."""
    kept = _find(root, name)
    if kept["state"] != "promoted" or pair.item in kept["probes"]:
        return
    if not _acts(root, _changes(kept["candidates"][kept["chosen"]])):
        _end(kept, "void", _CHANGED, at)
        return
    kept["probes"][pair.item] = _pack(pair)
    differences = [_unpack(item, each).difference for item, each in kept["probes"].items()]
    if paired_test.evidence(differences, falls=True) >= paired_test.HARMED:
        if _list_built_on(root, name):  # and a person brought this one's value back
            _end(kept, "void", _CHANGED, at)
        else:
            undo(root, name, ChangeOrigin("probation", at, "the answers got worse after it was kept"))
    elif len(differences) >= PROBED:
        kept.update(state="kept", reason=f"{kept['reason']}; it held in {PROBED} more questions")


def end_stale(root: Root, name: str, before: str, at: str) -> None:
    """End a trial that goes on and began before a moment: others cannot begin while it waits for questions."""
    kept = _find(root, name)
    if kept["state"] == "trying" and kept["begun"] < before:
        _end(kept, "spent", "there were too few questions", at)


def note_cost(root: Root, name: str, calls: int, tokens: int) -> None:
    """Add what a trial has cost."""
    kept = _find(root, name)
    kept.update(calls=kept["calls"] + calls, tokens=kept["tokens"] + tokens)


# -- what becomes of a trial


def decide(root: Root, name: str) -> TrialDecision:
    """Decide about a trial by its questions so far."""
    kept = _find(root, name)
    pairs = [_unpack(item, each) for item, each in kept["pairs"].items()]
    return paired_test.decide(pairs, TrialRules(kept["needed"], ASKED))


def _is_unsteady(kept: PersistentMapping[str, Any]) -> bool:
    """Test if the acting form differs from itself: then nothing can be compared with it."""
    noise = list(kept["noise"].values())
    return max(paired_test.evidence(noise), paired_test.evidence(noise, falls=True)) >= UNSTEADY


def promote(root: Root, name: str, origin: ChangeOrigin) -> None:
    """Make what a trial tried part of the mind.

    Raises: Refused: one of its slots has another value than that with which it began.
    """
    kept = _find(root, name)
    _check_acting(root, _changes(kept["before"]), name)
    for change in _changes(kept["candidates"][kept["chosen"]]):
        slot_values.redefine(root, change.slot, change.value, origin)
    kept.update(state="promoted", reason=origin.why, ended=origin.at)


def undo(root: Root, name: str, origin: ChangeOrigin) -> None:
    """Take back what a trial changed, or end it. Its value is not tried again for a time.

    Raises: Refused: a later trial changed one of its slots, or somebody did; or there is nothing to undo.
    """
    kept = _find(root, name)
    if kept["state"] in ("undone", "dropped", "spent", "void"):
        raise Refused(
            f"{name} is {kept['state']}", field="trial", remedy="`batos trials` lists those that changed something."
        )
    if kept["state"] in STANDING:
        if on_it := _list_built_on(root, name):
            raise Refused(
                f"{', '.join(on_it)} changed the same after {name}", field="trial", remedy=f"Undo {on_it[-1]} first."
            )
        _check_acting(root, _changes(kept["candidates"][kept["chosen"]]), name)
        for change in before_of(root, name):
            slot_values.redefine(root, change.slot, change.value, origin._replace(trial=name))
    _end(kept, "undone", origin.why or f"undone by {origin.by}", origin.at)


def _list_built_on(root: Root, name: str) -> list[str]:
    """List the trials that changed one of a trial's slots after it, and whose values stand."""
    after = [each for each in list_by_state(root, *STANDING) if name in root[roots.TRIALS][each]["stood_on"]]
    touched = {change.slot for change in before_of(root, name)}
    return [each for each in after if touched & {change.slot for change in before_of(root, each)}]


def _acts(root: Root, wanted: Changes) -> bool:
    """Test if slots have these values now; one that the codex took away has none."""
    acting = {each.name: each.read() for each in slot_values.list_places(root)}
    return all(each.slot in acting and acting[each.slot] == each.value for each in wanted)


def _check_acting(root: Root, wanted: Changes, name: str) -> None:
    if not _acts(root, wanted):
        slot = wanted[0].slot
        raise Refused(
            f"what {name} changed was changed by somebody since",
            field="trial",
            remedy=f"`batos slot show {slot}` has its values; `batos slot rollback {slot}` brings one back.",
        )


# -- what is shown


def document(root: Root, name: str) -> TrialDocument:
    """Return a trial as it is shown, without its examples."""
    kept = _find(root, name)
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
    """List answers that became better, and worse, by the missions that have their words."""
    kept = _find(root, name)
    return [
        TrialAnswer(_unpack(item, kept["pairs"][item]), before, after)
        for item, (before, after) in kept["examples"].items()
    ]


def complete_id(root: Root, named: str) -> str:
    """Return the id of the trial that is meant: by its beginning, `last` or `last-1`. Raises: NotFound."""
    found = ids.find_id(root[roots.TRIALS], named, lambda _name: True) if root[roots.TRIALS] else named
    _find(root, found)
    return found


def _find(root: Root, name: str) -> PersistentMapping[str, Any]:
    found = root[roots.TRIALS].get(name)
    if found is None:
        raise NotFound(f"there is no trial {name!r}", field="trial", remedy="`batos trials` lists them.")
    return found


def _end(kept: PersistentMapping[str, Any], word: TrialWord, reason: str, at: str) -> None:
    kept.update(state=word, reason=reason, ended=at)


def _plain(changes: Changes) -> tuple[tuple[str, Value], ...]:
    return tuple((each.slot, each.value) for each in changes)


def _changes(kept: Sequence[tuple[str, Value]]) -> Changes:
    return tuple(SlotWrite(slot, value) for slot, value in kept)


def _pack(pair: PairedAnswer) -> tuple[object, ...]:
    return (pair.kind, pair.new, pair.old, pair.passed, pair.ended, pair.calls, pair.tokens)


def _unpack(item: str, kept: Any) -> PairedAnswer:
    return PairedAnswer(item, *kept)


def _keep_example(kept: PersistentMapping[str, Any], answered: TrialAnswer) -> None:
    """Keep the missions of the first answers that were better, and of the first that were worse."""
    worth = answered.pair.difference
    alike = [item for item in kept["examples"] if _unpack(item, kept["pairs"][item]).difference * worth > 0]
    if worth and len(alike) < EXAMPLES:
        kept["examples"][answered.pair.item] = (answered.before, answered.after)
