"""Measures the order of calls at one card: how many loads, how long in all, and how long each waited.

The card is the emulator's: 8 GiB, five seconds a load, a runner for each base. Four personas are asked there, each with
an adapter of its own on one base. The clock is virtual, so hours take seconds, and the same work is done in each order:

    ours            our scheduler
    first_come      one call after another, as they come
    affine          the oldest call of the persona that is loaded, else the oldest
    direct          each call goes to the daemon at once, whose own order it is

`makespan_over_optimum` is the time until all is done over the least possible, by dynamic programming, for calls at
random and in bursts (the mean over the seeds; `worst` beside it). `over_fcfs` is the time of first-come-first-served
over ours for many calls at random. `p99_wait_interactive` are seconds from a call to its first token, of persons'
questions beside a persona that is asked without end, and beside the mind's own work. `starved` are those that waited
longer than thrice the bound. `shared_over_direct` is the time without adapters, over no order at all.

With BATOS_LIVE_OLLAMA and --models the same is asked of that daemon, whose own `load_duration` counts the loads.

    python bench/scheduler.py [--seeds N] [--models A,B] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from batos.inference.vram.call_scheduler import BOUND, CallScheduler
from report import Goal, report
from scheduler_live_side import measure_daemon
from scheduler_side import (
    Card,
    Request,
    ServedCall,
    affine,
    at_random,
    at_random_for_long,
    direct,
    first_come,
    in_bursts,
    in_councils,
    in_cycles,
    optimum,
    order_by_scheduler,
    run,
    with_a_greedy_one,
    with_priorities,
)
from virtual_time_side import run_virtually

#: The figures of each run, by work and order.
Rows: TypeAlias = dict[str, dict[str, list["Row"]]]
#: The first seed: the scheduler was made with those below.
FIRST = 100
#: The work for which the best order is computed, and the other.
SOLVED: Sequence[Callable[[int], list[Request]]] = (at_random, in_bursts)
OTHER: Sequence[Callable[[int], list[Request]]] = (
    at_random_for_long, in_councils, in_cycles, with_a_greedy_one, with_priorities,
)  # fmt: skip
ORDERS = ("ours", "first_come", "affine", "direct")


async def serve(order: str, requests: Sequence[Request], *, adapters: bool = True) -> tuple[list[ServedCall], int]:
    """Do all work in an order; return the calls, and how often the card loaded."""
    card = Card(adapters=adapters)
    if order == "ours":
        scheduler = CallScheduler(many=1)
        return await run(card, requests, order_by_scheduler(card, scheduler), scheduler), card.loads
    places = {"first_come": first_come, "affine": affine, "direct": direct}[order]()
    return await run(card, requests, places, None), card.loads


@dataclass(frozen=True, slots=True)
class Row:
    """The seconds of one work in one order, the loads, and the waits of persons beside other work."""

    seconds: float
    loads: int
    waits: Sequence[float]


def row_of(order: str, requests: Sequence[Request]) -> Row:
    """Return what comes of one work in one order."""
    served, loads = run_virtually(serve(order, requests))
    waits = [each.waited for each in served if each.request.mission in {"rare", "person"}]
    return Row(max(each.ended for each in served), loads, waits)


def measure(seeds: Sequence[int]) -> dict[str, Any]:
    """Do all work in all orders, with each seed."""
    rows: Rows = {}
    over: list[float] = []
    for make in (*SOLVED, *OTHER):
        table = rows[make.__name__] = {order: [] for order in ORDERS}
        for seed in seeds:
            requests = make(seed)
            for order in ORDERS:
                table[order].append(row_of(order, requests))
            if make in SOLVED:
                over.append(table["ours"][-1].seconds / optimum(requests))
        told = {order: f"{_mean_seconds(found)} s, {_mean_loads(found)} loads" for order, found in table.items()}
        print(make.__name__, told, file=sys.stderr, flush=True)
    waits = sorted(wait for table in rows.values() for row in table["ours"] for wait in row.waits)
    at = rows[at_random_for_long.__name__]
    return {
        "makespan_over_optimum": round(statistics.mean(over), 3),
        "worst_over_optimum": round(max(over), 3),
        "over_fcfs": round(_ratio(at["first_come"], at["ours"]), 2),
        "reloads": {name: {order: _mean_loads(each) for order, each in table.items()} for name, table in rows.items()},
        "seconds": {
            name: {order: _mean_seconds(each) for order, each in table.items()} for name, table in rows.items()
        },
        "p99_wait_interactive": round(waits[int(0.99 * (len(waits) - 1))], 1),
        "longest_wait_interactive": round(waits[-1], 1),
        "bound": BOUND,
        "starved": sum(wait > 3 * BOUND for wait in waits),
        **_measure_shared(seeds),
    }  # fmt: skip


def _mean_seconds(rows: Sequence[Row]) -> float:
    return round(statistics.mean(each.seconds for each in rows), 1)


def _mean_loads(rows: Sequence[Row]) -> float:
    return round(statistics.mean(each.loads for each in rows), 1)


def _ratio(one: Sequence[Row], other: Sequence[Row]) -> float:
    return statistics.mean(a.seconds / b.seconds for a, b in zip(one, other, strict=True))


def _measure_shared(seeds: Sequence[int]) -> dict[str, float]:
    """Return the figures of personas without adapters, which share a runner."""
    ratios, loads = [], 0
    for seed in seeds:
        requests = at_random(seed)
        served, own = run_virtually(serve("ours", requests, adapters=False))
        other, _ = run_virtually(serve("direct", requests, adapters=False))
        ratios.append(max(each.ended for each in served) / max(each.ended for each in other))
        loads += own - 1
    return {"shared_over_direct": round(statistics.mean(ratios), 4), "shared_reloads": loads}


def goals_of(values: dict[str, Any]) -> list[Goal]:
    """Return the goals of the figures."""
    return [
        Goal("makespan_over_optimum", values["makespan_over_optimum"], 1.15, "at_most"),
        Goal("over_fcfs", values["over_fcfs"], 3.0, "at_least"),
        Goal("p99_wait_interactive", values["p99_wait_interactive"], BOUND, "at_most"),
        Goal("starved", values["starved"], 0, "at_most"),
        Goal("shared_over_direct", values["shared_over_direct"], 1.01, "at_most"),
        Goal("shared_reloads", values["shared_reloads"], 0, "at_most"),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, measure and report."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--seeds", type=int, default=20, metavar="N", help="how often each work is made anew")
    flags.add_argument("--models", default="", metavar="A,B", help="models of the daemon that BATOS_LIVE_OLLAMA names")
    flags.add_argument("--quick", action="store_true", help="one seed: shape, not figures")
    flags.add_argument("--json", type=Path, default=None, metavar="FILE")
    given = flags.parse_args(arguments)
    values = measure(range(FIRST, FIRST + (1 if given.quick else given.seeds)))
    if (url := os.environ.get("BATOS_LIVE_OLLAMA")) and given.models:
        values["daemon"] = asyncio.run(measure_daemon(url, given.models.split(",")))
    report(values, goals_of(values), given.json)


if __name__ == "__main__":
    main()
