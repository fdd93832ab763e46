"""The doctor: Ollama, models, codex, image and disk looked at in turn, each finding with what to do."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from batos.config import Settings
from batos.errors import BatosError
from batos.events import Events
from batos.front.console import counted, size
from batos.genesis import integrity
from batos.genesis.integrity import Finding
from batos.genesis.plan import Plan
from batos.image.storage import file_of, journal_uri
from batos.image.tail import cuttings
from batos.uvm import UVM, open_uvm

#: Free space below which a mission may not find room, in bytes.
LEAST_FREE = 256 * 2**20


async def examine(settings: Settings) -> tuple[Finding, ...]:
    """Everything that can be looked at; what cannot is a finding too."""
    findings = [_disk(settings), _private(settings)]
    try:
        async with open_uvm(settings, Events(log=True)) as uvm:
            findings.append(Finding("image.opens", True, f"the image opens: {settings.image_uri}"))
            findings.append(_cut(settings))
            findings.extend(await _inside(uvm))
    except BatosError as error:
        findings.append(Finding("image.opens", False, error.message, error.remedy))
    return tuple(findings)


async def _inside(uvm: UVM) -> Iterable[Finding]:
    findings = [_left_behind(uvm)]
    try:
        codex = uvm.codex()
    except BatosError as error:
        return [*findings, Finding("codex.reads", False, error.message, error.remedy)]
    plan: Plan | None = None
    try:
        plan = await uvm.plan()
        findings.append(Finding("ollama.answers", True, f"Ollama {plan.version} answers"))
    except BatosError as error:
        findings.append(Finding("ollama.answers", False, error.message, error.remedy))
    with uvm.image.snapshot() as root:
        return [*findings, *integrity.audit(root, codex, plan, uvm.settings.profile)]


def _left_behind(uvm: UVM) -> Finding:
    waiting = uvm.image.unfolded()
    if waiting:
        return Finding(
            "missions.waiting", False, f"{counted(len(waiting), 'mission')} left undone", "Run `batos resume`."
        )
    return Finding("missions.waiting", True, "no mission was left undone")


def _cut(settings: Settings) -> Finding:
    uris = (settings.image_uri, journal_uri(settings.image_uri, settings.journal))
    kept = [str(each) for path in map(file_of, uris) if path is not None for each in cuttings(path)]
    if kept:
        what = f"a crash left an unfinished commit, cut off and kept in {', '.join(kept)}"
        return Finding("image.cut", False, what, "Nothing that was acknowledged is in it: remove it when you like.")
    return Finding("image.cut", True, "no unfinished commit was cut off")


def _private(settings: Settings) -> Finding:
    mode = settings.home.stat().st_mode & 0o777 if settings.home.exists() else 0o700
    if mode & 0o077:
        remedy = f"chmod 700 {settings.home}"
        return Finding("home.private", False, f"others may look into the home ({mode:o})", remedy)
    return Finding("home.private", True, "only its owner may enter the home")


def _disk(settings: Settings) -> Finding:
    folder = next(path for path in (settings.home, *settings.home.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    what = f"{size(free)} free where the home is ({settings.home})"
    if free < LEAST_FREE:
        return Finding("disk.free", False, what, f"Free space until at least {size(LEAST_FREE)} are left.")
    return Finding("disk.free", True, what)
