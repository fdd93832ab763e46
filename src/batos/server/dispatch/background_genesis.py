"""Genesis beside a running server: of an image that is empty, and of a persona whose adapter a person chose."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterable
from itertools import chain, repeat
from typing import TYPE_CHECKING, Literal, TypeAlias

import structlog

from batos.config import Settings
from batos.genesis import adapter_check, home_files
from batos.genesis.adapters import repository
from batos.genesis.adapters.folder import in_use
from batos.genesis.adapters.inventory import NONE, Adapter, AdapterInventory
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import PILLARS, Codex
from batos.protocol.errors import BatosError, Busy, ImageError, NotFound, OllamaError
from batos.protocol.image_documents import BackgroundGenesisDocument, genesis_text
from batos.protocol.server_documents import AdapterChoice
from batos.uvm import UVM

if TYPE_CHECKING:
    from batos.genesis.provision import StepProgress

State: TypeAlias = Literal["running", "waiting", "failed", "done"]

#: Seconds between tries while Ollama is not there yet, or a pull broke off.
PAUSES = (1.0, 2.0, 5.0, 10.0)

_log = structlog.get_logger("batos")


class BackgroundGenesis:
    """Makes models and prototypes by the codex, tries again after an error that may pass, and tells its progress."""

    def __init__(self, uvm: UVM, pauses: Iterable[float] = PAUSES) -> None:
        self._uvm = uvm
        self._pauses = tuple(pauses)
        self.state: State = "running"
        self._progress: StepProgress | None = None
        self._error: BatosError | None = None
        self._tenth = -1

    async def run(self) -> None:
        """Run genesis, unless the image has had one. Returns when genesis is done, or failed for a lasting reason."""
        for pause in chain(self._pauses, repeat(self._pauses[-1])):
            try:
                await self._run_genesis()
                return
            except BatosError as error:
                self._error = error
                self.state = "waiting" if error.retry and not isinstance(error, ImageError) else "failed"
                _log.warning("genesis did not end", state=self.state, **error.as_dict())
                if self.state == "failed":
                    return
            await asyncio.sleep(pause)

    async def _run_genesis(self) -> None:
        self.state, self._error = "running", None
        if await asyncio.to_thread(self._uvm.reconciler.baseline) is not None:
            self.state = "done"
            return
        report = await self._uvm.readiness.genesis(self._tell)
        wrong = [finding for finding in report.findings if not finding.ok]
        self.state, self._progress = "done", None
        _log.info("genesis done", steps=len(report.done), wrong=[finding.id for finding in wrong])

    def _tell(self, progress: StepProgress) -> None:
        if self._progress is None or progress.step != self._progress.step:
            self._tenth = -1
        self._progress = progress
        if progress.total and progress.completed is not None:
            tenth = 10 * progress.completed // progress.total
            if tenth > self._tenth:  # bytes come many times a second
                self._tenth = tenth
                _log.info("genesis", step=progress.step, percent=10 * tenth)

    def progress(self) -> BackgroundGenesisDocument | None:
        """Return the progress for `status`; None once genesis is done."""
        if self.state == "done":
            return None
        told = BackgroundGenesisDocument(state=self.state)
        if self._progress is not None:
            told["step"] = self._progress.step
            told["completed"] = self._progress.completed
            told["total"] = self._progress.total
        if self._error is not None:
            told["reason"] = self._error.as_dict()
        return told

    def refuse(self) -> None:
        """Raise Busy while genesis runs or waits. After a failure raise nothing: the mission itself names the cause."""
        if self.state in ("running", "waiting"):
            raise self.refusal()

    def refusal(self) -> BatosError:
        """Return the reason that no question is answered: the error of genesis, or Busy while it goes on."""
        if self.state == "failed" and self._error is not None:
            return self._error
        told = self.progress() or BackgroundGenesisDocument(state=self.state)
        return Busy(
            f"this mind is still being made: {genesis_text(told)}",
            remedy="Ask again when it is ready: `batos status` shows the progress.",
        )


async def choose_adapter(uvm: UVM, persona: str, name: str) -> AdapterChoice:
    """Choose an adapter, or `none` for the bare base; return what it was changed to.

    NotFound: no such persona or adapter. AdapterError: it would not load.
    """
    settings, persona = uvm.settings, find_persona(persona)
    # Reading files takes longer than a server's loop may be held.
    inventory = await asyncio.to_thread(home_files.read_inventory, settings)
    codex = await asyncio.to_thread(current_codex, settings)
    adapter = None if name.casefold() == NONE else find_adapter(inventory, persona, name)
    notes = [] if adapter is None else await _fits(uvm, codex, adapter)
    label = None if adapter is None else adapter.name
    changed = await uvm.image.shared.apply(lambda root: repository.choose(root, persona, label))
    with uvm.image.snapshot() as root:
        used = in_use(inventory, repository.choices(root))
    cost = adapter_check.reload_cost(used, codex, settings.profile)
    told = [*notes, *([f"The price: {cost}."] if cost else [])]
    return {"persona": persona, "adapter": label, "changed": changed, "notes": told}


def current_codex(settings: Settings) -> Codex:
    """Return the codex as the next genesis finds it."""
    return codices.standing(settings.home / "codex")[0].sound()


def find_persona(named: str) -> str:
    """Find a persona by its name in any case. Raises: NotFound: there is none; the remedy names a near one."""
    if named.upper() in PILLARS:
        return named.upper()
    near = difflib.get_close_matches(named.upper(), PILLARS, 1)
    remedy = f"Did you mean {near[0]}?" if near else f"The personas are {', '.join(PILLARS)}."
    raise NotFound(f"there is no persona {named!r}", field="persona", remedy=remedy)


def find_adapter(inventory: AdapterInventory, persona: str, name: str) -> Adapter:
    """Find an adapter by its name. Raises: AdapterError: it has faults. NotFound: there is none."""
    adapter = inventory.find(persona, name)
    if adapter is not None:
        return adapter
    faults = [each for each in inventory.faults if each.persona == persona and each.name.casefold() == name.casefold()]
    if faults:
        raise adapter_check.refusal(faults)
    raise no_such_adapter(inventory, persona, name)


def no_such_adapter(inventory: AdapterInventory, persona: str, name: str) -> NotFound:
    """Make the error that says which adapters a persona has instead."""
    known = [each.name for each in inventory.adapters_of(persona)]
    near = difflib.get_close_matches(name, known, 1)
    remedy = f"There are: {', '.join(known)}." if known else f"Put one into adapters/{persona.lower()}/NAME/."
    if near:
        remedy = f"Did you mean {near[0]!r}?"
    return NotFound(f"{persona} has no adapter {name!r}", field="name", remedy=remedy)


async def _fits(uvm: UVM, codex: Codex, adapter: Adapter) -> list[str]:
    """Refuse what would not load; where Ollama cannot say, the next mission's check will."""
    base = codex.model_for(adapter.persona, uvm.settings.profile)
    try:
        faults = await adapter_check.unfit([(adapter, base)], uvm.bridge)
    except OllamaError as error:
        return [f"Not checked against {base}: {error.message}."]
    if faults:
        raise adapter_check.refusal(faults)
    return list(adapter_check.doubts(adapter, base))
