"""The verb `genesis`: it shows the plan, carries it out with its progress, and shows ALFRED's audit of the result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import click

from batos.cli.declared import ask, ask_once
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Opened
from batos.cli.render.bars import Bars
from batos.cli.verb_options import VerbCall, run, with_server
from batos.cli.verbs.system_verbs import tell_findings
from batos.protocol.server_documents import GenesisDocument, PlanDocument, PlannedGenesis
from batos.terminal.console import Console, count_text, size
from batos.verbs.motion_verbs import HEARTBEAT, HEARTBEAT_PAUSE, HEARTBEAT_RESUME
from batos.verbs.server_verbs import GENESIS

_SHOWN = 12  # names of models in one line
_MAY_IT: Final = (
    "May the mind work by itself when nobody asks, on mains power, within a daily budget? It tries changes of itself on"
    " questions about your documents, and keeps what is better (`batos heartbeat pause` ends it)."
)


@click.command()
@click.option("--plan", "plan_only", is_flag=True, help="Show the steps without taking them; only the codex is copied.")
@click.option("--prune", is_flag=True, help="Delete the models that this image made and no persona uses any more.")
@click.option("--model", metavar="NAME", help="Write NAME into the codex as the model of all personas.")
@with_server
def genesis(called: VerbCall, plan_only: bool, **given: Any) -> int:
    """Make models and image match codex and adapters. A second run changes nothing."""
    opened, args = open_door(called), {name: each for name, each in given.items() if each}
    if plan_only:
        _tell_plan(called.console, run(_ask_plan(opened, args)))
        return 0
    report = run(_genesis(called, opened, args))
    _tell_genesis(called.console, report, quiet=called.quiet)
    if any(not finding["ok"] for finding in report["audit"]):
        return 1
    if called.can_ask:
        _ask_for_heartbeat(called)
    return 0


def _ask_for_heartbeat(called: VerbCall) -> None:
    """Ask once whether the mind may work by itself; the answer is kept, and a verb changes it."""
    if run(ask_once(open_door(called), HEARTBEAT, {}))["by"] is not None:
        return
    if click.confirm(_MAY_IT, default=False, err=True):
        run(ask_once(open_door(called), HEARTBEAT_RESUME, {}))
    else:
        run(ask_once(open_door(called), HEARTBEAT_PAUSE, {}))


async def _ask_plan(opened: Opened, args: Mapping[str, Any]) -> PlannedGenesis:
    async with opened as way:
        return cast("PlannedGenesis", await ask(way, GENESIS, {"plan": True, **args}))


async def _genesis(called: VerbCall, opened: Opened, args: Mapping[str, Any]) -> GenesisDocument:
    bars = Bars(called.console, quiet=called.quiet)
    async with opened as way:
        try:
            return cast("GenesisDocument", await ask(way, GENESIS, args, bars.on_event))
        except asyncio.CancelledError:
            bars.close()
            kept = "The server goes on with it" if way.served else "What was pulled and made so far is kept"
            called.console.say(f"{kept}: `batos genesis` goes on from there.")
            raise
        finally:
            bars.close()


def _tell_plan(console: Console, plan: PlannedGenesis) -> None:
    if console.as_json:
        console.document(plan)
        return
    if not plan["steps"]:
        console.write("There is nothing to do.")
    for step in plan["steps"]:
        optional = " (optional)" if step["optional"] else ""
        weight = f", {size(step['size'])}" if step["kind"] in ("pull", "upload") else ""
        console.write(f"{step['label']}{weight}{optional}: {step['reason']}")
    console.write("\n".join(["", *plan["budget"]["lines"]]))
    if any(step["kind"] == "pull" for step in plan["steps"]):
        console.write("Or take a model that Ollama has (`ollama list`): `batos genesis --model NAME`.")
    if plan["budget"]["fits"] is False:
        console.write("The models do not fit: genesis would refuse to make them. `batos budget` shows what would fit.")
    _tell_stale(console, plan)


def _tell_stale(console: Console, plan: PlanDocument) -> None:
    """Name the models that nothing is made of any more and that are not about to be deleted."""
    deleted = {step["name"] for step in plan["steps"] if step["kind"] == "delete"}
    left = [name for name in plan["stale"] if name not in deleted]
    ours, others = [name for name in left if name in plan["ours"]], [name for name in left if name not in plan["ours"]]
    if ours:
        console.say(f"No persona uses {_few(ours)} any more.")
        console.say(
            f"`batos genesis --prune` removes what this image made; by hand: ollama rm {' '.join(ours[:_SHOWN])}"
        )
    if others:
        console.say(f"This image did not make {_few(others)}: leave them if another home uses this Ollama.")


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _tell_genesis(console: Console, report: GenesisDocument, *, quiet: bool) -> None:
    if console.as_json:
        console.document(report)
        return
    findings = report["audit"]
    wrong = [finding for finding in findings if not finding["ok"]]
    if not quiet:
        console.write(_summary(report))
        passed = len(findings) - len(wrong)
        told = f"ALFRED's System Integrity Audit: {count_text(passed, 'check')} passed, {len(wrong)} failed"
        console.write(f"{told} ({len(report['found'])} before)." if report["found"] else f"{told}.")
        _tell_stale(console, report["plan"])
    tell_findings(console, wrong)


def _summary(report: GenesisDocument) -> str:
    done: dict[str, int] = {}
    for step in report["done"]:
        done[step["kind"]] = done.get(step["kind"], 0) + 1
    words = {"pull": "model", "upload": "adapter", "create": "model", "delete": "model"}
    verbs = {"pull": "pulled", "upload": "handed over", "create": "made", "delete": "deleted"}
    told = [f"{count_text(done[kind], words[kind])} {verbs[kind]}" for kind in words if kind in done]
    if report["changes"]:
        told.append(f"{count_text(len(report['changes']), 'change')} of the image")
    return f"{', '.join(told)}." if told else "There was nothing to do."
