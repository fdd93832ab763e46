"""The verbs about the system: genesis, doctor, ps, config."""

from __future__ import annotations

from typing import Any

import click

from batos.events import Events
from batos.front.console import Console, counted, size, table
from batos.front.options import Called, common, run
from batos.genesis.provision import Progress
from batos.uvm import GenesisReport, deadlines, open_uvm


@click.command()
@click.option("--plan", "plan_only", is_flag=True, help="Show what would be done, and do nothing.")
@common
def genesis(called: Called, plan_only: bool) -> int:
    """Bring models and image to what the codex says. A second run changes nothing."""
    return run(_genesis(called, plan_only=plan_only))


async def _genesis(called: Called, *, plan_only: bool) -> int:
    console = called.console
    async with open_uvm(called.settings, Events(log=True)) as uvm:
        if plan_only:
            plan = await uvm.plan()
            _tell_plan(console, plan.as_dict())
            return 0
        told = _Steps(console, quiet=called.quiet)
        report = await uvm.genesis(told.hear)
        console.wipe()
    _tell_genesis(console, report, quiet=called.quiet)
    return 0 if all(finding.ok for finding in report.findings) else 1


class _Steps:
    """Tells the progress of genesis: a line that moves on a terminal, one line a status elsewhere."""

    def __init__(self, console: Console, *, quiet: bool) -> None:
        self._console = console
        self._quiet = quiet
        self._last: dict[str, str] = {}

    def hear(self, progress: Progress) -> None:
        """How far a step is."""
        if self._console.as_json:
            keys = {"completed": progress.completed, "total": progress.total}
            self._console.event("genesis.step", {"step": progress.step, "status": progress.status, **keys})
            return
        if self._quiet:
            return
        if progress.total:
            done = progress.completed or 0
            bar = ("#" * round(24 * done / progress.total)).ljust(24, ".")
            self._console.rewrite(f"{progress.step}  [{bar}]  {size(done)} of {size(progress.total)}")
        if "layer" not in progress.status and self._last.get(progress.step) != progress.status:
            self._last[progress.step] = progress.status
            self._console.wipe()
            self._console.say(f"  {progress.step}: {progress.status}", dim=True)


def _tell_plan(console: Console, plan: dict[str, Any]) -> None:
    if console.as_json:
        console.document(plan)
        return
    if not plan["steps"]:
        console.write("Nothing is to be done.")
    for step in plan["steps"]:
        optional = " (optional)" if step["optional"] else ""
        weight = f", {size(step['size'])}" if step["kind"] == "pull" else ""
        console.write(f"{step['kind']} {step['name'] or step['persona']}{weight}{optional}: {step['reason']}")


def _tell_genesis(console: Console, report: GenesisReport, *, quiet: bool) -> None:
    if console.as_json:
        console.document(report.as_dict())
        return
    findings = [finding.as_dict() for finding in report.findings]
    wrong = [finding for finding in findings if not finding["ok"]]
    if not quiet:
        steps, changes = len(report.plan.steps), len(report.changes)
        done = f"{counted(steps, 'step')} for Ollama, {counted(changes, 'change')} of the image."
        console.write(done if steps or changes else "Nothing had to be done.")
        passed = len(findings) - len(wrong)
        console.write(f"ALFRED's System Integrity Audit: {counted(passed, 'check')} passed, {len(wrong)} failed.")
    _tell_findings(console, wrong)


def _tell_findings(console: Console, findings: list[dict[str, Any]]) -> None:
    for finding in findings:
        console.write(f"  {'ok   ' if finding['ok'] else 'WRONG'}  {finding['id']}: {finding['what']}")
        if finding["remedy"] and not finding["ok"]:
            console.write(f"         {finding['remedy']}")


@click.command()
@common
def doctor(called: Called) -> int:
    """Check Ollama, models, codex and image; exit 1 when something is wrong."""
    from batos.front.doctor import examine

    findings = [finding.as_dict() for finding in run(examine(called.settings))]
    healthy = all(finding["ok"] for finding in findings)
    if called.console.as_json:
        called.console.document({"healthy": healthy, "findings": findings})
    else:
        _tell_findings(called.console, findings)
    return 0 if healthy else 1


@click.command()
@common
def ps(called: Called) -> int:
    """Show which models are in memory (hot) and which only on disk (cold), as Ollama believes."""
    hot, cold = run(_models(called))
    if called.console.as_json:
        called.console.document({"hot": hot, "cold": cold})
        return 0
    rows = [["in memory", each["name"], size(each["size"]), _where(each)] for each in hot]
    rows += [["on disk", each["name"], size(each["size"]), ""] for each in cold]
    called.console.write(table(rows, ("", "model", "size", "")) if rows else "Ollama has no model.")
    return 0


def _where(runner: dict[str, Any]) -> str:
    if runner["size_vram"] >= runner["size"]:
        return f"on the GPU, window {runner['context_length']}"
    if runner["size_vram"] == 0:
        return f"on the CPU, window {runner['context_length']}"
    return f"SPILLED: {size(runner['size_vram'])} of it on the GPU, window {runner['context_length']}"


async def _models(called: Called) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    from batos.inference.bridge import Bridge

    settings = called.settings
    async with Bridge(settings.ollama_host, deadlines=deadlines(settings)) as bridge:
        runners, rows = await bridge.ps(), await bridge.list()
    hot = [
        {"name": each.name, "size": each.size, "size_vram": each.size_vram, "context_length": each.context_length}
        for each in runners
    ]
    names = {each["name"] for each in hot}
    return hot, [{"name": row.name, "size": row.size} for row in rows if row.name not in names]


@click.command()
@common
def config(called: Called) -> int:
    """Show every setting, its value and where it came from."""
    rows = called.loaded.rows()
    if called.console.as_json:
        called.console.document({row.name: {"value": row.value, "source": row.source} for row in rows})
    else:
        shown = [[row.name, str(row.value) if row.value != "" else "-", row.source] for row in rows]
        called.console.write(table(shown, ("setting", "value", "source")))
    return 0
