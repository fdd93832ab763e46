"""Hostile methods that the guardian refuses or the cell contains, and benign ones that run, on a corpus with a harness.

The corpus is a folder with `hostile/`, `benign/` and `harness.py`; its files say what is called on which receiver, and
the harness judges: `harm` whether a hostile method had any effect that the parent process sees, `check_benign` whether
a benign one gave the expected result, slots and messages. `effects` counts hostile methods with an effect, `rejected`
is the share of those to be refused that the guardian itself refuses, `benign` the share that is accepted and right.

With --no-audit the verdict is ignored, so that the cell stands alone; that the slots of a method can be listed is still
needed for its view, and a method whose slots cannot does not run.

    python bench/guardian.py [--corpus DIR] [--no-audit] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from batos.cell.cell import Cell
from batos.cell.program import prepare
from batos.guardian.audit import audit
from batos.guardian.policy import Verdict
from batos.protocol.errors import BatosError, CellKilled
from guardian_side import Parent, World, peak_kb
from report import Goal, report

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "corpus"
#: Every so many samples of each kind with --quick.
EVERY = 8
#: The harness waits for these until a late effect would be seen.
SLOW = frozenset({"canary-late"})

Sample = Mapping[str, Any]


def harness_of(corpus: Path) -> ModuleType:
    """Load the corpus' own harness."""
    spec = importlib.util.spec_from_file_location("guardian_harness", corpus / "harness.py")
    if spec is None or spec.loader is None or not (corpus / "harness.py").is_file():
        sys.exit(f"no corpus at {corpus}: name its folder with --corpus")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Guard:
    """The harness's subject: one sample under audit and cell, and the result."""

    harness: ModuleType
    cell: Cell
    runner: asyncio.Runner
    audited: bool
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def audit(self, sample: Sample) -> Verdict:
        """Audit a sample and return the verdict with its time."""
        began = time.perf_counter()
        verdict = audit(sample["raw"])
        self.seconds.append(time.perf_counter() - began)
        self.verdicts[sample["name"]] = verdict
        return verdict

    def run(self, _: bytes, sample: Sample) -> dict[str, Any]:
        """Return the outcome in the harness's terms: the second of two calls, if the sample has two."""
        return self.runner.run(self._outcome(sample))

    async def _outcome(self, sample: Sample) -> dict[str, Any]:
        world = World.from_meta(sample["meta"], self.harness.strictly_plain)
        out: dict[str, Any] = {"status": "ok", "result": None, "error": "", "before": world.plain_receiver()}
        verdict = self.verdicts[sample["name"]]
        try:
            if not verdict.listable:
                raise CellKilled("the slots that it uses cannot be listed", "slots")
            source = sample["raw"].decode("utf-8")
            calls = [sample["call"], *([sample["meta"]["then"]] if "then" in sample["meta"] else [])]
            for call in calls:
                selector, args, kwargs = self.harness.parse_call(call)
                program = prepare(source, verdict.slots, selector)
                out["result"] = await Parent(world, self.cell, program).run(args, kwargs)
        except CellKilled as error:
            out.update(status="killed", result=None, error=str(error))
        except (BatosError, UnicodeDecodeError) as error:
            out.update(status="error", result=None, error=str(error))
        out.update(
            after=world.plain_receiver(),
            changed=world.changed,
            sent=world.sent,
            sent_count=len(world.sent),
            bad_args=world.bad_args,
            error_len=len(out["error"]),
            maxrss_kb=peak_kb(),
            stdout="",
        )
        return out


def count_hostile(guard: Guard, samples: list[Sample]) -> tuple[list[Sample], dict[str, int]]:
    """Count hostile samples that had an effect, and by category how many were run or refused."""
    effects: list[Sample] = []
    counts: Counter[str] = Counter()
    for sample in samples:
        counts[sample["category"]] += 1
        verdict = guard.audit(sample)
        if guard.audited and not verdict.accepted:
            continue
        out = guard.harness.guarded_run(guard, sample)
        if out["status"] == "parent-harmed" or guard.harness.harm(sample, out):
            print(f"effect: {sample['name']}: {out['status']} {out['error']}", file=sys.stderr)
            effects.append(sample)
    return effects, dict(counts)


def right(guard: Guard, sample: Sample) -> bool:
    """Test if a benign sample is accepted and does what its header says."""
    verdict = guard.audit(sample)
    if guard.audited and not verdict.accepted:
        print(f"refused: {sample['name']}: {'; '.join(map(str, verdict.faults))}", file=sys.stderr)
        return False
    out = guard.harness.guarded_run(guard, sample)
    problems = [out["error"]] if out["status"] == "parent-harmed" else guard.harness.check_benign(sample, out)
    if problems:
        print(f"wrong: {sample['name']}: {'; '.join(problems)}", file=sys.stderr)
    return not problems


def measure(harness: ModuleType, corpus: Path, *, audited: bool, quick: bool) -> dict[str, Any]:
    """Return the bench's figures."""
    hostile, benign = harness.samples(corpus, "hostile"), harness.samples(corpus, "benign")
    if quick:
        hostile = [each for each in hostile if each["meta"].get("oracle") not in SLOW][::EVERY]
        benign = benign[::EVERY]
    harness.listener()
    with asyncio.Runner() as runner:
        guard = Guard(harness, Cell(2), runner, audited)
        effects, counts = count_hostile(guard, hostile)
        good = [each for each in benign if right(guard, each)]
        runner.run(guard.cell.aclose())
    to_refuse = [each for each in hostile if each["expect"] == "reject"]
    refused = [each for each in to_refuse if not guard.verdicts[each["name"]].accepted]
    for each in to_refuse:
        if each not in refused:
            print(f"accepted: {each['name']}", file=sys.stderr)
    had = Counter(each["category"] for each in effects)
    missed = Counter(each["category"] for each in to_refuse if each not in refused)
    return {
        "hostile": len(hostile),
        "effects": len(effects),
        "rejected": len(refused) / len(to_refuse) if to_refuse else 1.0,
        "by_category": {
            category: {"hostile": count, "effects": had[category], "missed": missed[category]}
            for category, count in sorted(counts.items())
        },
        "benign": len(good) / len(benign) if benign else 1.0,
        "guardian_ms": round(statistics.median(guard.seconds) * 1000, 3),
        "guardian_ms_max": round(max(guard.seconds) * 1000, 3),
        "audit": audited,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    beside = Path(os.environ.get("BATOS_CORPUS", BESIDE)) / "guardian"
    parser.add_argument("--corpus", type=Path, metavar="DIR", default=beside)
    parser.add_argument("--no-audit", action="store_true", help="ignore the verdict: the cell alone")
    parser.add_argument("--quick", action="store_true", help="a few samples of each kind")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the document there too")
    asked = parser.parse_args(arguments)
    harness = harness_of(asked.corpus)
    values = measure(harness, asked.corpus, audited=not asked.no_audit, quick=asked.quick)
    goals = [
        Goal("effects", values["effects"], 0),
        Goal("rejected", values["rejected"], 1.0, "at_least"),
        Goal("benign", values["benign"], 0.95, "at_least"),
        Goal("guardian_ms", values["guardian_ms"], 5.0),
    ]
    report(values, goals, asked.json)


if __name__ == "__main__":
    main()
