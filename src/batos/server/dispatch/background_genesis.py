"""Genesis in the background of a server whose image is empty, so that starting it is all that a person has to do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import chain, repeat
from typing import TYPE_CHECKING, Literal, TypeAlias

import structlog

from batos.protocol.errors import BatosError, Busy, ImageError
from batos.protocol.image_documents import BackgroundGenesisDocument, genesis_text

if TYPE_CHECKING:
    from batos.genesis.provision import StepProgress
    from batos.uvm import UVM

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
