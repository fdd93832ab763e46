"""The verbs by which a person tries, keeps and undoes changes of the mind, and redefines its slots."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from batos.autotelic import item_store, slot_values, trial_verdicts, trials
from batos.autotelic.item_makers import QuestionWriter
from batos.autotelic.item_store import ItemStore
from batos.autotelic.model_missions import ModelMissions
from batos.autotelic.trial_asking import SealedQuestions, parts_of
from batos.autotelic.trial_nights import Trials
from batos.genesis.budget_check import list_other_models
from batos.history.copies import PastQuestions
from batos.image.ids import iso
from batos.image.roots import Root
from batos.protocol.trial_documents import SlotLineage, TrialDocument
from batos.records.redefinitions import ChangeOrigin
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.uvm import UVM
from batos.verbs.trial_verbs import (
    SLOT_REDEFINE,
    SLOT_ROLLBACK,
    TRIALS_KEEP,
    TRIALS_TRY,
    TRIALS_UNDO,
    SlotRedefineArgs,
    SlotRollbackArgs,
    TrialKeepArgs,
    TrialTryArgs,
    TrialUndoArgs,
)

#: Keeps a trial, or undoes it.
Verdict: TypeAlias = Callable[[Root, str, ChangeOrigin], None]


def verbs(uvm: UVM, copies: PastQuestions, shield: Shield) -> Mapping[str, Handler]:
    """Return the function of each verb, by name.

    From here on the heartbeat makes questions with known answers, and tries changes by asking them in copies.
    """
    store = ItemStore(uvm.image, uvm.readings.recollection.search, uvm.clock, uvm.settings.asker)
    writer = QuestionWriter(ModelMissions(uvm.missions.ask, uvm.readiness.answers, uvm.readiness.check))
    models = partial(list_models, uvm)
    parts = parts_of(uvm.image, uvm.clock, copies, uvm.settings.asker, writer.missions.can_ask, models)
    nights = Trials(parts)
    items = item_store.refreshing(store, writer, uvm.clock)
    for duty in (items, SealedQuestions(parts).duty(), nights.duty()):  # trials last: they may spend all of a day
        uvm.heartbeat.add(duty)

    async def try_value(given: TrialTryArgs, *_told: object) -> TrialDocument:
        found = await shield(nights.begin(given.slot, read_value(given.value), origin(given.user, given.why)))
        uvm.heartbeat.job.wake()
        return await parts.read(lambda root: trials.document(root, found))

    async def keep(given: TrialKeepArgs, *_told: object) -> TrialDocument:
        return await shield(decide(uvm, trial_verdicts.keep, given.trial, given.user))

    async def undo(given: TrialUndoArgs, *_told: object) -> TrialDocument:
        return await shield(decide(uvm, trial_verdicts.undo, given.trial, given.user, given.why))

    async def redefine(given: SlotRedefineArgs, *_told: object) -> SlotLineage:
        value = read_value(given.value)
        return await shield(
            uvm.image.shared.apply(lambda root: _redefine(root, given.slot, value, origin(given.user, given.why)))
        )

    async def roll_back(given: SlotRollbackArgs, *_told: object) -> SlotLineage:
        return await shield(
            uvm.image.shared.apply(lambda root: _roll_back(root, given.slot, given.revision, origin(given.user)))
        )

    def origin(user: str | None, why: str = "") -> ChangeOrigin:
        return ChangeOrigin(user or uvm.settings.asker, iso(uvm.clock()), why)

    return dict(
        (
            bind(TRIALS_TRY, try_value),
            bind(TRIALS_KEEP, keep),
            bind(TRIALS_UNDO, undo),
            bind(SLOT_REDEFINE, redefine),
            bind(SLOT_ROLLBACK, roll_back),
        )
    )


async def list_models(uvm: UVM) -> list[str]:
    """List the models that Ollama has beside the codex's, and that the card holds."""
    return await list_other_models(await uvm.reconciler.plan(), uvm.settings, uvm.bridge)


async def decide(uvm: UVM, verdict: Verdict, named: str, by: str | None, why: str = "") -> TrialDocument:
    """Let a person keep or undo a trial, through whatever door; return it. Raises: as the verdict does, NotFound."""
    origin = ChangeOrigin(by or uvm.settings.asker, iso(uvm.clock()), why)

    def change(root: Root) -> TrialDocument:
        name = trials.complete_id(root, named)
        verdict(root, name, origin)
        return trials.document(root, name)

    return await uvm.image.shared.apply(change)


def read_value(text: str) -> object:
    """Return the value that a person wrote: JSON, or else the text itself; lists as tuples.

    >>> read_value("0.3"), read_value("lean"), read_value('["sage_facet_"]'), read_value("null")
    (0.3, 'lean', ('sage_facet_',), None)
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return tuple(value) if isinstance(value, list) else value


def _redefine(root: Root, slot: str, value: object, origin: ChangeOrigin) -> SlotLineage:
    slot_values.redefine(root, slot, value, origin)
    return slot_values.describe(root, slot)


def _roll_back(root: Root, slot: str, number: int | None, origin: ChangeOrigin) -> SlotLineage:
    slot_values.roll_back(root, slot, number, origin)
    return slot_values.describe(root, slot)
