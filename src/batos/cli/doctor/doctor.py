"""The doctor checks Ollama, models, memory, codex, image, home, cell and look-ups. Nothing is loaded or changed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from batos.cell.cell import Cell, MethodCall
from batos.cell.program import prepare
from batos.cell.values import MessageAnswer
from batos.cli.doctor import home_checks, look_up_checks, residency
from batos.config import Settings
from batos.conversations import compaction
from batos.genesis import adapter_check, budget_check, home_files, integrity, persona_models
from batos.genesis.adapters.inventory import AdapterInventory
from batos.genesis.codex import codex
from batos.genesis.codex.codex import Codex
from batos.genesis.daemon_listing import DaemonModels, look
from batos.genesis.integrity import Finding
from batos.genesis.plan import Plan
from batos.guardian.policy import SlotUse
from batos.image import roots
from batos.image.readable import ReadOnlyPair, is_there, open_read_only
from batos.image.roots import Root
from batos.image.storage import file_of, journal_uri
from batos.image.unclean_close import cuttings
from batos.inference.ollama import opening
from batos.inference.ollama.bridge import Bridge
from batos.inference.ollama.catalogue import RunnerRow
from batos.notation import mask_passwords
from batos.protocol.errors import BatosError, CellMissing, OllamaUnfit, UsageError
from batos.records import approvals
from batos.terminal.console import count_text, size


class _SilentHost:
    """Nothing is sent by a method that only computes."""

    async def send(self, *_: object) -> MessageAnswer:
        return MessageAnswer()

    async def read(self, *_: object) -> MessageAnswer:
        return MessageAnswer()


async def check_cell(binary: Path | None = None) -> Finding:
    """Run a method that returns 42 in a worker of its own, and leave nothing of it. `binary`: another interpreter."""
    cell = Cell(1, binary=binary)
    try:
        outcome = await cell.run(
            prepare("def answer(self):\n    return 6 * 7\n", SlotUse()), MethodCall({}), _SilentHost()
        )
    except BatosError as error:
        return Finding("cell.runs", False, error.message, _REMEDY if isinstance(error, CellMissing) else error.remedy)
    finally:
        await cell.aclose()
    if outcome.result != 42:
        return Finding("cell.runs", False, f"the cell computes 6 * 7 = {outcome.result!r}", _REMEDY)
    return Finding("cell.runs", True, "the cell runs: generated methods have their interpreter")


_REMEDY = "Install it again: pip install --force-reinstall pydantic-monty. Until then intents are interpreted."


#: The newest minor version that was tested against.
TESTED = (0, 33)


@dataclass(slots=True)
class _DaemonAnswers:
    """The daemon's answers, as far as it gives them; `findings` are about the daemon itself."""

    listed: DaemonModels | None = None
    runners: tuple[RunnerRow, ...] = ()
    findings: list[Finding] = field(default_factory=list)


async def examine(settings: Settings, environ: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """Look at everything and return the findings; a part that cannot be looked at is a finding too."""
    findings = [*home_checks.findings(settings), await check_cell()]
    async with _bridge(settings) as bridge:
        asked = await _ask(bridge) if bridge is not None else _DaemonAnswers(findings=[_no_address(settings)])
        findings += [*asked.findings, _environment(settings, os.environ if environ is None else environ)]
        whole, found = await asyncio.to_thread(_codex, settings)
        inventory, unasked = await _check_inventory(settings, whole, asked.listed, bridge)
        plan, read = await asyncio.to_thread(_read, settings, whole, asked.listed, inventory)
        findings += [*found, *unasked, *read]
        if plan is not None and bridge is not None:
            findings += await _memory(plan, settings, bridge, asked.runners)
    findings += await look_up_checks.findings(settings)
    findings += await look_up_checks.server_findings(settings)
    return tuple(findings)


@asynccontextmanager
async def _bridge(settings: Settings) -> AsyncIterator[Bridge | None]:
    try:
        bridge = opening.bridge(settings)
    except UsageError:  # the client knows more of names than the settings do
        yield None
        return
    async with bridge:
        yield bridge


def _no_address(settings: Settings) -> Finding:
    return Finding("ollama.answers", False, f"{settings.ollama_host} is not an address", "Correct OLLAMA_HOST.")


async def _ask(bridge: Bridge) -> _DaemonAnswers:
    asked = _DaemonAnswers()
    try:
        asked.listed = await look(bridge)
        asked.runners = tuple(await bridge.ps())
    except OllamaUnfit as error:
        asked.findings = [
            Finding("ollama.answers", True, f"something answers at {bridge.url}"),
            Finding("ollama.version", False, error.message, error.remedy),
        ]
    except BatosError as error:
        asked.findings = [_silent(error)]
    else:
        answers = Finding("ollama.answers", True, f"Ollama answers at {bridge.url}")
        asked.findings = [answers, _version(asked.listed.version)]
    return asked


def _silent(error: BatosError) -> Finding:
    return Finding("ollama.answers", False, error.message, error.remedy)


def _version(version: str) -> Finding:
    numbers = [int(part) for part in version.lstrip("v").split(".")[:2] if part.isdecimal()]
    newer = len(numbers) == 2 and tuple(numbers) > TESTED
    beyond = f", newer than the {'.'.join(map(str, TESTED))} that was tested" if newer else ""
    return Finding("ollama.version", True, f"Ollama is {version}{beyond}")


def _environment(settings: Settings, environ: Mapping[str, str]) -> Finding:
    """Check the settings of the daemon against this environment, from which it was perhaps started."""
    differing = [
        f"{name}={environ[name]} and {setting} = {value}"
        for name, setting, value in (
            ("OLLAMA_NUM_PARALLEL", "parallel", settings.parallel),
            ("OLLAMA_KV_CACHE_TYPE", "kv_type", settings.kv_type),
        )
        if environ.get(name, "").strip() not in ("", str(value))
    ]
    if environ.get("OLLAMA_KEEP_ALIVE", "").strip() in ("0", "0s"):
        differing.append("OLLAMA_KEEP_ALIVE=0: a daemon started from here loads its model again for every call")
    if differing:
        remedy = (
            "Give the daemon and batos.toml the same values (the budget is computed from them), "
            "and let the daemon keep its models."
        )
        return Finding("ollama.environment", False, f"this environment has {'; '.join(differing)}", remedy)
    return Finding("ollama.environment", True, "no variable of this environment contradicts the settings")


async def _check_inventory(
    settings: Settings, whole: Codex | None, listed: DaemonModels | None, bridge: Bridge | None
) -> tuple[AdapterInventory, list[Finding]]:
    """Read the adapters, held against their bases where Ollama can be asked for them."""
    if whole is not None and listed is not None and bridge is not None:
        try:
            return await home_files.check_inventory(settings, whole, listed, bridge), []
        except BatosError as error:
            return await asyncio.to_thread(home_files.read_inventory, settings), [_silent(error)]
    return await asyncio.to_thread(home_files.read_inventory, settings), []


def _read(
    settings: Settings, whole: Codex | None, listed: DaemonModels | None, inventory: AdapterInventory
) -> tuple[Plan | None, list[Finding]]:
    """Check codex, adapters and image against what the daemon lists; return the plan too, if there can be one."""
    findings: list[Finding] = []
    plan = None
    if not is_there(settings.image_uri):
        remedy = "Run `batos genesis`: it makes one."
        findings.append(Finding("image.opens", False, f"there is no image yet at {_image_text(settings)}", remedy))
    else:
        try:
            with open_read_only(settings.image_uri, settings.journal) as faces:
                findings += _faces(settings, faces)
                with faces.root() as root:
                    plan = (
                        home_files.compare_with(settings, whole, listed, inventory, root) if whole and listed else None
                    )
                    findings += _missions(root, faces)
                    findings += [residency.reloads(root)] if roots.MISSIONS in root else []
                    findings += home_checks.consistency_findings(faces, root)
                    findings += integrity.audit(root, whole, plan, settings.profile) if whole is not None else ()
        except BatosError as error:
            opened = any(each.id == "image.opens" for each in findings)
            id_ = "image.reads" if opened else "image.opens"
            findings.append(Finding(id_, False, mask_passwords(error.message), error.remedy))
    if plan is None and whole and listed:
        plan = home_files.compare_with(settings, whole, listed, inventory, None)
    if plan is not None:
        findings += _beside(settings, plan)
    return plan, findings


def _codex(settings: Settings) -> tuple[Codex | None, list[Finding]]:
    read = codex.read(settings.home / "codex")
    if read.codex is None:
        return None, [Finding("codex.files", False, fault.message, fault.remedy) for fault in read.faults]
    try:
        read.codex.profile(settings.profile)
    except BatosError as error:
        return None, [Finding("codex.files", False, error.message, error.remedy)]
    return read.codex, [Finding("codex.files", True, f"the codex can be read ({read.codex.digest[:12]})")]


def _image_text(settings: Settings) -> str:
    path = file_of(settings.image_uri)
    return str(path) if path is not None else mask_passwords(settings.image_uri)


def _faces(settings: Settings, faces: ReadOnlyPair) -> Iterator[Finding]:
    yield Finding("image.opens", True, f"the image opens: {_image_text(settings)}")
    held = f"{faces.holder} has it open; this is its last commit" if faces.holder else "no other process has it open"
    yield Finding("image.held", True, held)
    yield home_checks.clock(faces.last_at())
    try:
        what = "image and journal belong together" if faces.pair() else "nothing is in it yet"
        yield Finding("image.pair", True, what)
    except BatosError as error:
        yield Finding("image.pair", False, error.message, error.remedy)
    bad = [f"{path}.index" for path, sound in faces.indexes if not sound]
    if bad:
        remedy = f"Remove {' and '.join(bad)}: the next start takes longer and writes it again; no data is lost."
        yield Finding("image.index", False, f"{' and '.join(bad)} cannot be read", remedy)
    else:
        yield Finding("image.index", True, f"{count_text(len(faces.indexes), 'index file')} can be read")
    if faces.unfinished:
        left = ", ".join(f"{size(rest)} at the end of {path}" for path, rest in faces.unfinished)
        remedy = "No acknowledged change is in it: the next start cuts it off and keeps a copy."
        yield Finding("image.tail", False, f"a crash left an unfinished commit, {left}", remedy)
    else:
        yield Finding("image.tail", True, "the last commit is whole")
    yield _cut(settings)


def _cut(settings: Settings) -> Finding:
    uris = (settings.image_uri, journal_uri(settings.image_uri, settings.journal))
    kept = [str(each) for path in map(file_of, uris) if path is not None for each in cuttings(path)]
    if kept:
        what = f"a crash left an unfinished commit, cut off and kept in {', '.join(kept)}"
        return Finding("image.cut", False, what, "No acknowledged change is in it: remove it when you like.")
    return Finding("image.cut", True, "no unfinished commit was cut off")


def _missions(root: Root, faces: ReadOnlyPair) -> Iterator[Finding]:
    asked = _count_waiting(root) if roots.AWAITED in root else 0
    tidying = compaction.unfinished_compactions(root) if roots.UNFOLDED in root else []
    waiting = (len(root[roots.UNFOLDED]) if roots.UNFOLDED in root else 0) - asked - len(tidying)
    if waiting and faces.holder:
        yield Finding("missions.waiting", True, f"{count_text(waiting, 'mission')} under way in {faces.holder}")
    elif waiting:
        yield Finding("missions.waiting", False, f"{count_text(waiting, 'mission')} unfinished", "Run `batos resume`.")
    elif asked:
        told = f"{count_text(asked, 'mission')} awaiting your approval: `batos approvals`"
        yield Finding("missions.waiting", True, f"no mission is unfinished, except {told}")
    elif tidying:
        told = f"{count_text(len(tidying), 'compaction')}, which the next turn there continues, or `batos resume`"
        yield Finding("missions.waiting", True, f"no mission is unfinished, except {told}")
    else:
        yield Finding("missions.waiting", True, "no mission is unfinished")


def _count_waiting(root: Root) -> int:
    """Count the missions that wait for a person."""
    asked = {mission for approval in approvals.open_approvals(root) for mission in approval.missions}
    return sum(roots.mission_record(root, mission).status.word == "waiting" for mission in asked)


def _beside(settings: Settings, plan: Plan) -> Iterator[Finding]:
    """Check the adapters, and the Modelfiles that genesis wrote."""
    yield from adapter_check.findings(plan.inventory, plan.chosen, plan.adapters, plan.codex, plan.profile)
    folder = settings.place / "modelfiles"
    other = [made.label for made in plan.recipes.values() if not persona_models.is_current(folder, made)]
    if other:
        what = f"the Modelfile of {', '.join(other)} in {folder} is missing or differs from the codex"
        yield Finding("models.files", False, what, "Run `batos genesis`: it writes them again.")
    else:
        what = f"{count_text(len(plan.recipes), 'Modelfile')} in {folder} match the codex"
        yield Finding("models.files", True, what)


async def _memory(plan: Plan, settings: Settings, bridge: Bridge, runners: tuple[RunnerRow, ...]) -> list[Finding]:
    """Check the models' need of the card, what lies there, and the room on the daemon's disk if that is here."""
    try:
        found = await budget_check.findings(plan, settings, bridge)
        found += await budget_check.runner_findings(plan, bridge, runners)
        store = await _store(plan, bridge)
    except BatosError as error:
        return [_silent(error)]
    return [*found, *store]


async def _store(plan: Plan, bridge: Bridge) -> list[Finding]:
    bases = (made.base for made in plan.recipes.values())
    base = next((each for each in bases if plan.listed.row(each) is not None), None)
    return [] if base is None else home_checks.store(Path((await bridge.show(base)).blob))
