"""Verdicts on trials: what is noted of each question, and what becomes of a change; a kill counts no question twice."""

from __future__ import annotations

from typing import Any, Final

from persistent.mapping import PersistentMapping

from batos.autotelic import slot_values, trials
from batos.autotelic.slot_values import Changes
from batos.autotelic.trials import PairedAnswer, ScreenAnswer, TrialAnswer
from batos.image import roots
from batos.image.roots import Root
from batos.protocol.errors import Refused
from batos.protocol.trial_documents import TrialWord
from batos.records.redefinitions import ChangeOrigin

#: The evidence by which equal forms differ, so that the answers are too unsteady to compare anything.
_UNSTEADY: Final = 10.0
#: The reason of a trial that ends because a person, or the codex, changed its slots.
_CHANGED: Final = "its slots were changed by somebody meanwhile"
#: The first questions of a comparison after which it ends if no value has changed an answer.
_SAME: Final = 6
#: The questions after a promotion, in which harm undoes it.
PROBED: Final = 150


# -- what is noted of each question: a question that is noted already is not counted again


def note_screen(root: Root, name: str, item: str, screened: ScreenAnswer, at: str) -> None:
    """Note the answers to a question with the acting form and with each candidate.

    After enough questions the best candidate is chosen, if it is better than the acting form. Values that change none
    of the first answers are not asked further.
    """
    kept = trials.find(root, name)
    if kept["state"] != "screening" or item in kept["screen"]:
        return
    kept["screen"][item] = tuple(screened)
    same = all(changed == 0 for _, changed in kept["screen"].values())
    if same and len(kept["screen"]) >= _SAME:
        _end(kept, "dropped", "no value changed an answer", at)
    elif len(kept["screen"]) >= trials.SCREENED:
        choose(root, name, at)


def choose(root: Root, name: str, at: str) -> None:
    """Choose the candidate with the best answers so far, if it is better than the acting form, unless one is chosen."""
    kept = trials.find(root, name)
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
    kept = trials.find(root, name)
    if item not in kept["noise"]:
        kept["noise"][item] = difference


def note_answer(root: Root, name: str, answered: TrialAnswer, at: str) -> None:
    """Note the answers of both forms to a question, and decide, unless it was noted before or nothing is tried.

    A change that is to be kept becomes part of the mind in this commit, unless a person has to agree.
    """
    kept, pair = trials.find(root, name), answered.pair
    if kept["state"] != "trying" or pair.item in kept["pairs"]:
        return
    kept["pairs"][pair.item] = _pack(pair)
    _keep_example(kept, answered)
    decision = trials.decide(root, name)
    if _is_unsteady(kept):
        _end(kept, "void", "equal forms answer the same questions differently", at)
    elif decision.word in ("drop", "spent"):
        _end(kept, "dropped" if decision.word == "drop" else "spent", decision.reason, at)
    elif decision.word == "promote":
        if not _acts(root, trials.changes_of(kept["before"])):
            _end(kept, "void", _CHANGED, at)
        elif kept["risk"] == 3:
            kept.update(state="waiting", reason=f"{decision.reason}; you decide")
        else:
            promote(root, name, ChangeOrigin("trial", at, decision.reason, name))


def note_probe(root: Root, name: str, pair: PairedAnswer, at: str) -> None:
    """Note the answers to a question after a promotion, which is undone by evidence of harm, and kept at the end."""
    kept = trials.find(root, name)
    if kept["state"] != "promoted" or pair.item in kept["probes"]:
        return
    if not _acts(root, trials.changes_of(kept["candidates"][kept["chosen"]])):
        _end(kept, "void", _CHANGED, at)
        return
    kept["probes"][pair.item] = _pack(pair)
    differences = [trials.unpack(item, each).difference for item, each in kept["probes"].items()]
    if trials.evidence(differences, falls=True) >= trials.HARMED:
        if _list_built_on(root, name):  # and a person brought this one's value back
            _end(kept, "void", _CHANGED, at)
        else:
            undo(root, name, ChangeOrigin("probation", at, "the answers got worse after it was kept"))
    elif len(differences) >= PROBED:
        kept.update(state="kept", reason=f"{kept['reason']}; it held in {PROBED} more questions")


def end_stale(root: Root, name: str, before: str, at: str) -> None:
    """End a trial that goes on and began before a moment: others cannot begin while it waits for questions."""
    kept = trials.find(root, name)
    if kept["state"] == "trying" and kept["begun"] < before:
        _end(kept, "spent", "there were too few questions", at)


def note_cost(root: Root, name: str, calls: int, tokens: int) -> None:
    """Add what a trial has cost."""
    kept = trials.find(root, name)
    kept.update(calls=kept["calls"] + calls, tokens=kept["tokens"] + tokens)


# -- what becomes of a trial


def _is_unsteady(kept: PersistentMapping[str, Any]) -> bool:
    """Test if the acting form differs from itself: then nothing can be compared with it."""
    noise = list(kept["noise"].values())
    return max(trials.evidence(noise), trials.evidence(noise, falls=True)) >= _UNSTEADY


def promote(root: Root, name: str, origin: ChangeOrigin) -> None:
    """Make what a trial tried part of the mind.

    Raises: Refused: one of its slots has another value than that with which it began.
    """
    kept = trials.find(root, name)
    _check_acting(root, trials.changes_of(kept["before"]), name)
    for change in trials.changes_of(kept["candidates"][kept["chosen"]]):
        slot_values.redefine(root, change.slot, change.value, origin)
    kept.update(state="promoted", reason=origin.why, ended=origin.at)


def keep(root: Root, name: str, origin: ChangeOrigin) -> None:
    """Keep what a trial found better, as a person decides.

    Raises: Refused: it does not wait for that, or one of its slots has another value than that with which it began.
    """
    _check_waiting(root, name)
    promote(root, name, origin._replace(why="a person agreed", trial=name))


def refuse(root: Root, name: str, origin: ChangeOrigin) -> None:
    """End a trial whose change a person does not want, which bars it for a time.

    Raises: Refused: it does not wait for that.
    """
    _check_waiting(root, name)
    undo(root, name, origin)


def _check_waiting(root: Root, name: str) -> None:
    if (state := trials.state_of(root, name)) != "waiting":
        raise Refused(f"{name} is {state}", field="trial", remedy="`batos approvals` lists those that wait.")


def undo(root: Root, name: str, origin: ChangeOrigin) -> None:
    """Take back what a trial changed, or end it. Its value is not tried again for a time.

    Raises: Refused: a later trial changed one of its slots, or somebody did; or there is nothing to undo.
    """
    kept = trials.find(root, name)
    if kept["state"] in ("undone", "dropped", "spent", "void"):
        raise Refused(
            f"{name} is {kept['state']}", field="trial", remedy="`batos trials` lists those that changed something."
        )
    if kept["state"] in trials.STANDING:
        if on_it := _list_built_on(root, name):
            raise Refused(
                f"{', '.join(on_it)} changed the same after {name}", field="trial", remedy=f"Undo {on_it[-1]} first."
            )
        _check_acting(root, trials.changes_of(kept["candidates"][kept["chosen"]]), name)
        for change in trials.before_of(root, name):
            slot_values.redefine(root, change.slot, change.value, origin._replace(trial=name))
    _end(kept, "undone", origin.why or f"undone by {origin.by}", origin.at)


def _list_built_on(root: Root, name: str) -> list[str]:
    """List the trials that changed one of a trial's slots after it, and whose values stand."""
    after = [
        each for each in trials.list_by_state(root, *trials.STANDING) if name in root[roots.TRIALS][each]["stood_on"]
    ]
    touched = {change.slot for change in trials.before_of(root, name)}
    return [each for each in after if touched & {change.slot for change in trials.before_of(root, each)}]


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


def _end(kept: PersistentMapping[str, object], word: TrialWord, reason: str, at: str) -> None:
    kept.update(state=word, reason=reason, ended=at)


def _pack(pair: PairedAnswer) -> tuple[object, ...]:
    return (pair.kind, pair.new, pair.old, pair.passed, pair.ended, pair.calls, pair.tokens)


def _keep_example(kept: PersistentMapping[str, Any], answered: TrialAnswer) -> None:
    """Keep the missions of the first answers that were better, and of the first that were worse."""
    worth = answered.pair.difference
    alike = [item for item in kept["examples"] if trials.unpack(item, kept["pairs"][item]).difference * worth > 0]
    if worth and len(alike) < trials.EXAMPLES:
        kept["examples"][answered.pair.item] = (answered.before, answered.after)
