"""Genesis over an open image: compares codex, adapters, Ollama and image, and updates Ollama and the image."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from batos.config import Settings
from batos.events import Events
from batos.genesis import adapter_check, budget_check, graph, persona_models, provision
from batos.genesis.adapters import repository
from batos.genesis.adapters.folder import adapter_line_path, stage, tidy
from batos.genesis.adapters.inventory import AdapterFault, AdapterInventory
from batos.genesis.auditing import Auditing
from batos.genesis.codex.codex import PILLARS, Codex
from batos.genesis.daemon_listing import DaemonModels, GenesisDaemon, look
from batos.genesis.home_files import HomeFiles
from batos.genesis.integrity import Finding
from batos.genesis.measuring import choose_forms, measure_missing, record_forms
from batos.genesis.persona_models import MadeModel
from batos.genesis.plan import Plan, PlanStep, compare, in_words, with_deletions
from batos.genesis.provision import OnProgress, Pull, StepProgress
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject
from batos.protocol.errors import AdapterError, ModelMissing, OllamaError, OllamaUnreachable, Refused, RequestRejected
from batos.protocol.event_payloads import GENESIS_STEP, METHOD_RETIRED, GenesisStep, MethodRetired
from batos.protocol.server_documents import GenesisDocument
from batos.records import methods


@dataclass(frozen=True, slots=True)
class GenesisReport:
    """The result of genesis: `plan` is the plan at its beginning, `done` its steps that were carried out."""

    plan: Plan
    done: tuple[PlanStep, ...]
    changes: tuple[str, ...]
    #: Faults of codex and image before anything was written; `findings` are all of the audit afterwards.
    faults: tuple[Finding, ...]
    findings: tuple[Finding, ...]
    audited_at: str

    def as_dict(self) -> GenesisDocument:
        """Return the report as `genesis --json` prints it."""
        return {
            "plan": self.plan.as_dict(),
            "done": [step.as_dict() for step in self.done],
            "changes": list(self.changes),
            "found": [finding.as_dict() for finding in self.faults],
            "audit": [finding.as_dict() for finding in self.findings],
            "audited_at": self.audited_at,
        }


@dataclass(frozen=True, slots=True)
class Baseline:
    """The state that a mission begins with and keeps: the codex, all models' digests, the personas' models."""

    codex: Codex
    digests: Mapping[str, str]
    models: frozenset[str]


#: Lets missions begin on a baseline.
Begin: TypeAlias = Callable[[Baseline], Awaitable[object]]


@dataclass(slots=True)
class Reconciler:
    """Genesis for one open image and one daemon; `in_use` names the models that missions think with just now."""

    settings: Settings
    image: LivingImage
    daemon: GenesisDaemon
    events: Events
    clock: Callable[[], datetime]
    auditing: Auditing
    in_use: Callable[[], frozenset[str]] = frozenset
    #: Whoever looks and acts on what it saw holds it: codex and image change for one at a time. Not while pulling.
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _compared_last: tuple[tuple[object, ...], Plan] | None = field(default=None)
    _version: str | None = field(default=None)
    _formed: Plan | None = field(default=None)
    _unfit: adapter_check.UnfitAdapters = field(default_factory=adapter_check.UnfitAdapters)
    _files: HomeFiles = field(init=False)

    def __post_init__(self) -> None:
        self._files = HomeFiles(self.settings)

    # -- reading

    def forget_version(self) -> None:
        """Forget the daemon's version after a failed call: another daemon may answer next."""
        self._version = None

    def codex(self) -> Codex:
        """Return the home's codex, read again if a file changed. Missing files are copied from the shipped ones.

        Raises: CodexError: a file is wrong. The codex that was read before is not used any more.
        """
        return (self._files.recall() or self._files.read()).codex

    def inventory(self) -> AdapterInventory:
        """Read the adapters folder."""
        return self._files.inventory()

    async def plan(self, *, prune: bool = False) -> Plan:
        """Return the steps that genesis would do, and change nothing but missing files of the codex.

        An adapter that fits no base stands among the faults of the plan's inventory.
        """
        found = await self._make_plan()
        try:
            await adapter_check.gate(self.daemon)(found)
        except AdapterError as unfit:
            found = self._apart(found, unfit)
        return with_deletions(found, self.in_use()) if prune else found

    async def _make_plan(self) -> Plan:
        # A look at ten files takes less time than the way to a thread and back; reading them may take long.
        read = self._files.recall()
        if read is None:
            read = await asyncio.to_thread(self._files.read)
        try:
            listed = await look(self.daemon, self._version)
        except OllamaError as error:
            self.forget_version()
            if isinstance(error, OllamaUnreachable) and self.baseline() is None:
                error.advise(provision.FIRST_RUN)
            raise
        self._version = listed.version
        with self.image.snapshot() as root:
            chosen, known = repository.choices(root), persona_models.read_record(root)
        inventory = self._unfit.apart(read.inventory, _bases(read.codex, self.settings.profile, listed))
        # Every mission looks, and hardly ever finds anything else than the last one did.
        seen = (read.codex, listed, inventory, chosen, known)
        if self._compared_last is None or self._compared_last[0] != seen:
            self._compared_last = (seen, compare(read.codex, self.settings.profile, listed, inventory, chosen, known))
        return self._compared_last[1]

    # -- bringing about

    async def run(
        self, on_progress: OnProgress | None = None, *, prune: bool = False, begin: Begin | None = None
    ) -> GenesisReport:
        """Audit, bring models and image to what is wanted, verify, and audit again; a second run changes nothing.

        `begin` is called with the baseline of missions, while nobody else looks, where nothing is wrong.
        """
        self._version = None
        before = await self._make_plan()
        before = with_deletions(before, self.in_use()) if prune else before
        faults = self.auditing.audit_before(before)
        tell = self.progress_relay(on_progress)
        if before.needs_pull:
            heed = budget_check.refuse_too_large(before, self.settings, tell)
            await provision.fetch(before, self.daemon, heed, patience=self.settings.progress_seconds)
        outdated = before.needs_pull or self.turn.locked()
        async with self.turn, self.image.publishing.here():  # one node at a time
            todo = await self._make_plan() if outdated else before
            after = await self._carry_out(todo, tell, pull="needed")
            changes = await self._record(after, tell)
            if prune and await self._prune(after, tell):
                after = await self._again(after)
                changes += await self._record(after, None)
            await measure_missing(after, self.daemon, self.image, tell)
            changes += await record_forms(self.image, after, self.settings)
            findings, at = await self.auditing.audit_after(after)
            if begin is not None and all(finding.ok for finding in findings):
                await begin(_baseline_of(after))
        return GenesisReport(
            before, tuple(_completed_steps(before, after, changes)), tuple(changes), faults, findings, at
        )

    async def check(self) -> Baseline:
        """Bring models and image up to date at a mission's start, as far as nothing must be pulled.

        Makes at most two requests if nothing changed, because the version is asked for once.

        Raises: AdapterError: the adapter chosen for a persona is broken. ModelMissing: a base must be pulled first.
        Refused: others have the image too, and its codex is not that of this home.
        """
        found = await self._make_plan()
        known = found.known
        if self.image.lease is not None and known is not None and known.codex_digest not in (None, found.codex.digest):
            raise _other_codex()
        broken = _chosen_faults(found)
        if broken:
            refused = adapter_check.refusal(broken)
            raise refused.advise(f"{refused.remedy} Until then: `batos adapters use {broken[0].persona} none`.")
        waiting = [persona for persona in PILLARS if persona not in found.models]
        if waiting:
            raise _base_missing(found, waiting)
        if any(step.name for step in found.steps_of("create")):
            found = await self._carry_out(found, self.progress_relay(None), pull="none")
            await self._record(found, None)
        elif found.steps_of("graph") and not (self.image.lease is not None and _is_alike(found)):
            await self._record(found, None)
        elif found is not self._formed:  # a setting, or a card that was read since, may ask for another form
            await record_forms(self.image, found, self.settings)
        self._formed = found
        return _baseline_of(found)

    def baseline(self) -> Baseline | None:
        """Return the state that the image knows without Ollama, for answers that are paid; None before a genesis."""
        codex = self.codex()
        with self.image.snapshot() as root:
            models = persona_models.read_record(root).models
        if not models:
            return None
        return Baseline(codex, {name: made.digest for name, made in models.items()}, frozenset())

    async def _carry_out(self, todo: Plan, tell: OnProgress, *, pull: Pull) -> Plan:
        gates = (adapter_check.gate(self.daemon), budget_check.gate(self.settings, self.daemon))
        patience = self.settings.progress_seconds
        while True:
            try:
                done = await provision.carry_out(todo, self.daemon, tell, gates=gates, pull=pull, patience=patience)
                break
            except AdapterError as unfit:
                todo = await self._without(todo, unfit, tell)
            except RequestRejected as refused:
                if refused.field == "digest":  # a file has changed and its stat did not tell: look at all of them anew
                    self._files.forget()
                raise
        await asyncio.to_thread(self._write_modelfiles, done)
        return done

    async def _without(self, todo: Plan, unfit: AdapterError, tell: OnProgress) -> Plan:
        """Return the plan without adapters that do not fit; the audit reports them.

        Raises: AdapterError: such an adapter was chosen for a persona, which would be another persona without it.
        """
        again = await self._again(todo)
        found = self._apart(again, unfit)
        if found.inventory == again.inventory or _chosen_faults(found):
            raise unfit
        for fault in unfit.faults:
            tell(StepProgress(f"leave out {fault['persona'].lower()}/{fault['name']}", fault["what"]))
        return found

    def _apart(self, todo: Plan, unfit: AdapterError) -> Plan:
        """Return the plan without the adapters that were just found not to fit, and store that they do not."""
        bases = _bases(todo.codex, todo.profile, todo.listed)
        self._unfit.learn(unfit, todo.inventory, bases)
        inventory = self._unfit.apart(todo.inventory, bases)
        return compare(todo.codex, todo.profile, todo.listed, inventory, todo.chosen, todo.known)

    async def _again(self, todo: Plan) -> Plan:
        """Return the plan for the models that the daemon lists now, with the files as they were read."""
        listed = await look(self.daemon, self._version)
        return compare(todo.codex, todo.profile, listed, todo.inventory, todo.chosen, todo.known)

    def progress_relay(self, on_progress: OnProgress | None) -> OnProgress:
        """Return who is told of progress: `genesis.step` for each new status of a step, and `on_progress` of all."""
        statuses: dict[str, str] = {}

        def tell(progress: StepProgress) -> None:
            # Bytes come many times a second; an event is another status of a step.
            if statuses.get(progress.step) != progress.status:
                statuses[progress.step] = progress.status
                self.events.emit(GENESIS_STEP, GenesisStep(step=progress.step, status=progress.status))
            if on_progress is not None:
                on_progress(progress)

        return tell

    def _write_modelfiles(self, done: Plan) -> None:
        folder = self.settings.place / "modelfiles"
        texts = {}
        for made in done.recipes.values():
            adapter = "" if made.adapter is None else adapter_line_path(folder, stage(folder, made.adapter))
            texts[persona_models.file_name(made)] = persona_models.text(made, adapter)
        persona_models.write(folder, texts)
        tidy(folder, done.inventory.adapters)

    async def _record(self, done: Plan, tell: OnProgress | None) -> list[str]:
        """Write codex, graph and models into the image, where they differ from what is there."""
        at = iso(self.clock())

        def change(root: Root) -> tuple[list[str], list[MethodRetired]]:
            gone: list[MethodRetired] = []

            def retire_revision(holder: UvmObject, selector: str, intent: Intent | None) -> int:
                revision = methods.redeclare(root, holder, selector, intent, at)
                if revision:
                    reason = methods.NO_MORE if intent is None else methods.ANEW
                    receiver = roots.name_of_object(root, holder)
                    gone.append(MethodRetired(receiver=receiver, selector=selector, revision=revision, reason=reason))
                return revision

            changes = graph.build(root, done.codex, done.profile, retire_revision)
            changes += graph.record_models(root, done.models)
            changes += graph.record_forms(root, choose_forms(root, done, self.settings))
            changes += persona_models.record(root, _models_to_record(done, persona_models.read_record(root).models, at))
            made = {recipe.adapter.label: name for name, recipe in done.recipes.items() if recipe.adapter is not None}
            return changes + repository.record(root, done.inventory, made, done.adapters.values()), gone

        changes, gone = await self.image.shared.apply(change)
        for each in gone:
            self.events.emit(METHOD_RETIRED, each)
        if changes and tell is not None:
            many = "change" if len(changes) == 1 else "changes"
            tell(StepProgress("graph the image", f"{len(changes)} {many} written"))
        return changes

    async def _prune(self, done: Plan, tell: OnProgress) -> bool:
        """Delete the models that nothing needs, later those that answer now; return True if any was deleted."""
        deleted = False
        for step in with_deletions(done, self.in_use()).steps_of("delete"):
            name = step.name or ""
            with suppress(ModelMissing):  # somebody else was quicker
                if name in {row.name for row in await self.daemon.ps()} and not await self.daemon.unload(name):
                    tell(StepProgress(step.label, "kept: it is answering now"))
                    continue
                await self.daemon.delete(name)
            deleted = True
            tell(StepProgress(step.label, "success"))
        return deleted


def _baseline_of(found: Plan) -> Baseline:
    return Baseline(found.codex, found.digests(), frozenset(found.models.values()))


def _models_to_record(done: Plan, before: Mapping[str, MadeModel], at: str) -> dict[str, MadeModel]:
    """Return the models to be recorded in the image: all wanted ones, and older ones of ours that Ollama still has."""
    listed = {row.name: row for row in done.listed.rows}
    wanted = {name: persona_models.model_record(recipe, row, at) for name, recipe in done.recipes.items()
              if (row := done.listed.row(name)) is not None}  # fmt: skip
    older = {name: made for name, made in before.items() if name in listed and name not in wanted}
    return {**older, **wanted}


def _completed_steps(before: Plan, after: Plan, changes: Sequence[str]) -> Iterator[PlanStep]:
    """Yield the steps of a plan that were carried out, by the plan afterwards and the image's changes."""
    made = {(recipe.persona, recipe.adapter and recipe.adapter.name) for recipe in after.recipes.values()}
    made -= {(step.persona, step.adapter) for step in after.steps_of("create")}
    for step in before.steps:
        there = step.name is not None and after.listed.row(step.name) is not None
        done = {"pull": there, "delete": not there, "graph": bool(changes)}
        if done.get(step.kind, (step.persona, step.adapter) in made):
            yield step


def _bases(codex: Codex, profile: str, listed: DaemonModels) -> dict[str, str]:
    """Return what each persona's adapters are compared with: its base's digest, if there, and the version."""
    rows = {persona: listed.row(codex.model_for(persona, profile)) for persona in PILLARS}
    return {persona: f"{row.digest} {listed.version}" for persona, row in rows.items() if row is not None}


def _chosen_faults(found: Plan) -> list[AdapterFault]:
    """List the faults of adapters that were chosen for personas."""
    given = {(persona, name.casefold()) for persona, name in found.chosen.items() if name is not None}
    return [each for each in found.inventory.faults if (each.persona, each.name.casefold()) in given]


def _is_alike(found: Plan) -> bool:
    """Test if the image has all that missions here need; what it has beyond that another node may need."""
    known = found.known
    return known is not None and known.used == found.models and found.recipes.keys() <= known.models.keys()


def _other_codex() -> Refused:
    return Refused(
        "the codex of this home is not that of the image, which other nodes have too",
        field="codex",
        remedy="Copy the codex folder of a node that has it, or run `batos genesis` here: then the image has this one.",
    )


def _base_missing(found: Plan, waiting: Sequence[str]) -> ModelMissing:
    base = found.codex.model_for(waiting[0], found.profile)
    who = [persona for persona in waiting if found.codex.model_for(persona, found.profile) == base]
    thinks = "think" if len(who) > 1 else "thinks"
    return ModelMissing(base, f"Ollama has no model {base!r}, with which {in_words(who)} {thinks}").advise(
        "Run `batos genesis`: it pulls what is missing. That may be gigabytes, so a question does not pull it."
    )
