"""The verb `genesis`: what is to be done, doing it with its progress, and ALFRED's audit of what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click

from batos.events import Events
from batos.front.bars import Bars
from batos.front.console import Console, counted, size
from batos.front.options import Called, common, run
from batos.front.upkeep import tell_findings
from batos.genesis import budgetcheck
from batos.genesis.convergence import GenesisReport
from batos.genesis.plan import Plan
from batos.inference.budget import Table
from batos.uvm import open_uvm

_SHOWN = 12  # names of models in one line


@click.command()
@click.option("--plan", "plan_only", is_flag=True, help="Show what would be done; only copy the codex.")
@click.option("--prune", is_flag=True, help="Delete the models of ours that nothing is made of any more.")
@common
def genesis(called: Called, plan_only: bool, prune: bool) -> int:
    """Bring models and image to what codex and adapters say. A second run changes nothing."""
    return run(_genesis(called, plan_only=plan_only, prune=prune))


async def _genesis(called: Called, *, plan_only: bool, prune: bool) -> int:
    console = called.console
    async with open_uvm(called.settings, Events(log=True)) as uvm:
        if plan_only:
            plan = await uvm.plan(prune=prune)
            _tell_plan(console, plan, await budgetcheck.table_of(plan, called.settings, uvm.bridge))
            return 0
        bars = Bars(console, quiet=called.quiet)
        try:
            report = await uvm.genesis(bars.hear, prune=prune)
        except asyncio.CancelledError:
            bars.close()
            console.say("What was pulled and made so far is kept: `batos genesis` goes on from there.")
            raise
        finally:
            bars.close()
    _tell_genesis(console, report, quiet=called.quiet)
    return 0 if all(finding.ok for finding in report.findings) else 1


def _tell_plan(console: Console, plan: Plan, table: Table) -> None:
    if console.as_json:
        console.document({**plan.as_dict(), "budget": table.as_dict()})
        return
    if not plan.steps:
        console.write("Nothing is to be done.")
    for step in plan.steps:
        optional = " (optional)" if step.optional else ""
        weight = f", {size(step.size)}" if step.kind in ("pull", "upload") else ""
        console.write(f"{step.label}{weight}{optional}: {step.reason}")
    console.write("\n".join(["", *table.lines()]))
    if table.fits is False:
        console.write("The models do not fit: genesis would refuse to make them. `batos budget` says what would.")
    _tell_stale(console, plan)


def _tell_stale(console: Console, plan: Plan) -> None:
    """Name the models that nothing is made of any more and that are not about to be deleted."""
    deleted = {step.name for step in plan.of_kind("delete")}
    left = [name for name in plan.stale if name not in deleted]
    own = {} if plan.known is None else plan.known.models
    ours, others = [name for name in left if name in own], [name for name in left if name not in own]
    if ours:
        console.say(f"Nothing is made any more of {_few(ours)}.")
        console.say(
            f"`batos genesis --prune` removes what this image made; by hand: ollama rm {' '.join(ours[:_SHOWN])}"
        )
    if others:
        console.say(f"This image did not make {_few(others)}: leave them if another home uses this Ollama.")


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _tell_genesis(console: Console, report: GenesisReport, *, quiet: bool) -> None:
    if console.as_json:
        console.document(report.as_dict())
        return
    findings = [finding.as_dict() for finding in report.findings]
    wrong = [finding for finding in findings if not finding["ok"]]
    if not quiet:
        console.write(_summary(report))
        passed = len(findings) - len(wrong)
        console.write(f"ALFRED's System Integrity Audit: {counted(passed, 'check')} passed, {len(wrong)} failed.")
        _tell_stale(console, report.plan)
    tell_findings(console, wrong)


def _summary(report: GenesisReport) -> str:
    done: dict[str, Any] = {}
    for step in report.done:
        done[step.kind] = done.get(step.kind, 0) + 1
    words = {"pull": "model", "upload": "adapter", "create": "model", "delete": "model"}
    verbs = {"pull": "pulled", "upload": "handed over", "create": "made", "delete": "deleted"}
    told = [f"{counted(done[kind], words[kind])} {verbs[kind]}" for kind in words if kind in done]
    if report.changes:
        told.append(f"{counted(len(report.changes), 'change')} of the image")
    return f"{', '.join(told)}." if told else "Nothing had to be done."
