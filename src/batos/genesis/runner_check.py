"""Compares the models in memory with the codex: models that spilled from the card, windows that are too small."""

from __future__ import annotations

from collections.abc import Sequence

from batos.genesis.integrity import Finding
from batos.genesis.plan import Plan
from batos.inference.ollama.catalogue import RunnerRow
from batos.inference.vram.budget import GIB
from batos.inference.vram.placement import Bases, Looks, place_of, wants_card


async def findings(plan: Plan, daemon: Looks, rows: Sequence[RunnerRow]) -> list[Finding]:
    """Return a finding for each runner of the personas' models: its placement and its window. `rows` are all
    runners.
    """
    bases = Bases(daemon)
    personas: dict[str, list[str]] = {}
    runners: dict[str, RunnerRow] = {}
    for persona, model in plan.models.items():
        listed = plan.listed.row(model)
        row = await bases.runner(model, listed.digest, rows) if listed is not None else None
        if row is not None:
            personas.setdefault(row.name, []).append(persona)
            runners[row.name] = row
    if not runners:
        return [Finding("vram.spill", True, "no model of the personas is in memory just now")]
    found = []
    for name, row in runners.items():
        options = plan.codex.options_for(personas[name][0], plan.profile)
        who = ", ".join(personas[name])
        found.append(_check_placement(row, rows, who, free=wants_card(options)))
        found.append(_window(row, who, options["num_ctx"]))
    return found


def _check_placement(row: RunnerRow, rows: Sequence[RunnerRow], who: str, *, free: bool) -> Finding:
    where = place_of(row, rows)
    if where == "spilled" and free:
        aside = (row.size - row.size_vram) / GIB
        what = f"{who}: {aside:.2f} of {row.size / GIB:.2f} GiB of {row.name} are not on the card, but on the CPU"
        remedy = "Free memory on the card, lower num_ctx or take a smaller model (`batos budget`); then unload it: "
        return Finding("vram.spill", False, what, f"{remedy}ollama stop {row.name}")
    if where == "processor" and free:
        what = f"{who}: {row.name} is on the CPU: no card was seen, and `batos budget` uses the settings"
        return Finding("vram.spill", True, what)
    places = {"card": "wholly on the card", "processor": "on the CPU", "spilled": "on card and CPU, as num_gpu says"}
    return Finding("vram.spill", True, f"{who}: {row.name} is {places[where]}")


def _window(row: RunnerRow, who: str, asked: int) -> Finding:
    real = row.context_length
    if real is not None and real < asked:
        what = f"{who}: the runner {row.name} has a window of {real} tokens, and the codex asks for {asked}"
        remedy = (
            "If the model was trained for no more, lower num_ctx in the codex; else another program loaded it so, and "
            "the next question loads it anew: give that program another model, or the same num_ctx."
        )
        return Finding("models.window", False, what, remedy)
    return Finding("models.window", True, f"{who}: {row.name} has the window of {asked} tokens that the codex asks for")
