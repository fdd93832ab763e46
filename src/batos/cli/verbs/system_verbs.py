"""The verbs about the system: doctor, ps and config, and the page that explains a finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from batos.cli.verb_options import VerbCall, common, run
from batos.terminal.console import Console, count_text, size
from batos.terminal.layout import table

#: Where each finding has its page.
PAGES = "docs/errors.md"


def topic(id_: str) -> str:
    """Return the word by which `batos help` explains a finding: `image-opens`."""
    return page(id_).partition("#")[2]


def page(id_: str) -> str:
    """Return the address where a finding is explained: `docs/errors.md#image-opens`."""
    area, _, what = id_.partition(".")
    return f"{PAGES}#{area if area in ('persona', 'window') else f'{area}-{what}'}"


def tell_findings(console: Console, findings: Sequence[Mapping[str, Any]]) -> None:
    """Tell each finding on a line, with what to do where it is not well."""
    for finding in findings:
        console.write(
            f"  {'ok   ' if finding['ok'] else 'WRONG'}  {finding['id']}: {finding['what']}", warn=not finding["ok"]
        )
        if not finding["ok"]:
            console.write(f"         {finding['remedy']}")
            console.write(f"         See `batos help {topic(finding['id'])}`.")


@click.command()
@common
def doctor(called: VerbCall) -> int:
    """Check Ollama, models, codex and image; exit 1 when something is wrong. --quiet prints only failed checks."""
    from batos.cli.doctor.doctor import examine

    findings = [{**finding.as_dict(), "page": page(finding.id)} for finding in run(examine(called.settings))]
    healthy = all(finding["ok"] for finding in findings)
    if called.console.as_json:
        called.console.document({"ok": healthy, "findings": findings})
        return 0 if healthy else 1
    wrong = [finding for finding in findings if not finding["ok"]]
    tell_findings(called.console, wrong if called.quiet else findings)
    if not called.quiet:
        called.console.write(f"{count_text(len(findings) - len(wrong), 'check')} passed, {len(wrong)} failed.")
    return 0 if healthy else 1


@click.command()
@common
def ps(called: VerbCall) -> int:
    """Show which models are in memory (hot) and which only on disk (cold), as Ollama reports.

    Models of one base and the same adapters share a runner: all of them are hot when one of them was loaded.
    """
    from batos.cli.doctor.residency import models

    hot, cold = run(models(called.settings))
    if called.console.as_json:
        called.console.document({"hot": hot, "cold": cold})
        return 0
    rows = []
    for each in hot:
        rows.append(["in memory", each["name"], size(each["size"]), _placement_text(each)])
        rows += [["  as well", name, "", ""] for name in each["serves"] if name != each["name"]]
    rows += [["on disk", each["name"], size(each["size"]), ""] for each in cold]
    called.console.write(table(rows, ("", "model", "size", "")) if rows else "Ollama has no model.")
    return 0


def _placement_text(runner: dict[str, Any]) -> str:
    window = f"window {runner['context_length']}"
    if runner["where"] == "spilled":
        return f"SPILLED: {size(runner['size_vram'])} of it on the GPU, {window}"
    return f"on the {'GPU' if runner['where'] == 'card' else 'CPU'}, {window}"


@click.command()
@common
def config(called: VerbCall) -> int:
    """Show every setting, its value and where it came from."""
    from batos.cli.verbs.codex import profile_faults
    from batos.genesis.codex import codex as codices

    rows = called.loaded.rows()
    folder = called.settings.home / "codex"
    for fault in profile_faults(called.loaded, codices.read(folder).codex) if folder.is_dir() else ():
        called.console.say(f"warning: {fault.what}. {fault.remedy}", warn=True)
    if called.console.as_json:
        called.console.document({row.name: {"value": row.value, "source": row.source} for row in rows})
    else:
        shown = [[row.name, str(row.value) if row.value != "" else "-", row.source] for row in rows]
        called.console.write(table(shown, ("setting", "value", "source")))
    return 0
