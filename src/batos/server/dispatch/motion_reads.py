"""The verbs that only show what the mind measures and changes of itself: the metric, trials, slots."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from batos.autotelic import entropy_days, slot_values, trial_asking, trials
from batos.autotelic.trial_asking import read_examples
from batos.image import ids, roots
from batos.image.roots import Root
from batos.inference.journal import Entries
from batos.missions.readings import Readings
from batos.protocol.trial_documents import SlotPage, TrialDocument, TrialPage
from batos.server.dispatch.handling import Handler, bind
from batos.verbs.motion_verbs import CEM, CEM_WHY
from batos.verbs.trial_verbs import SLOT_SHOW, SLOTS, TRIALS, TRIALS_SHOW, TrialsArgs

T = TypeVar("T")

#: The rounds of sealed questions that are shown: those of a year.
_SEALED: Final = 12


def verbs(of: Readings, in_thread: Callable[..., Awaitable[Any]]) -> Mapping[str, Handler]:
    """Return the function of each verb, by name; `in_thread` runs what reads the image."""

    async def read(look: Callable[[Root], T]) -> T:
        def look_at_snapshot() -> T:
            with of.image.snapshot() as root:
                return look(root)

        found: T = await in_thread(look_at_snapshot)
        return found

    return dict(
        (
            bind(CEM, lambda given, *_told: read(lambda root: entropy_days.describe(root, given.days, given.user))),
            bind(CEM_WHY, lambda given, *_told: read(lambda root: entropy_days.explain(root, given.day, given.user))),
            bind(TRIALS, lambda given, *_told: read(lambda root: list_trials(root, given))),
            bind(
                TRIALS_SHOW,
                lambda given, *_told: read(lambda root: show_trial(root, of.journal, given.trial, given.user)),
            ),
            bind(SLOTS, lambda _given, *_told: read(list_slots)),
            bind(SLOT_SHOW, lambda given, *_told: read(lambda root: slot_values.describe(root, given.slot))),
        )
    )


def list_trials(root: Root, given: TrialsArgs) -> TrialPage:
    """Return the newest trials, with what came of all."""
    kept = root.get(roots.TRIALS)  # an older moment of the image has none
    names = [] if kept is None or not kept else list(ids.newest_first(kept))
    standing = trials.list_by_state(root, *trials.STANDING) if names else []
    shown = [trials.document(root, name) for name in names[: given.limit]]
    false = round(trials.expect_false(root), 2) if standing else 0.0
    sealed = trial_asking.list_figures(root)[:_SEALED]
    return {"trials": shown, "tried": len(names), "kept": len(standing), "false": false, "sealed": sealed}


def list_waiting(root: Root) -> list[TrialDocument]:
    """Return the trials whose change a person has to agree to, the oldest first."""
    kept = root.get(roots.TRIALS)  # an older moment of the image has none
    return [] if kept is None else [trials.document(root, each) for each in trials.list_by_state(root, "waiting")]


def show_trial(root: Root, journal: Entries, named: str, user: str | None = None) -> TrialDocument:
    """Return a trial; the words of its questions are shown to whoever may see all missions."""
    name = trials.complete_id(root, named)
    told = trials.document(root, name)
    return told if user is not None else {**told, "examples": read_examples(root, journal, name)}


def list_slots(root: Root) -> SlotPage:
    """Return the slots that may be redefined while running."""
    return {"slots": [slot_values.describe(root, each.name) for each in slot_values.list_places(root)]}
