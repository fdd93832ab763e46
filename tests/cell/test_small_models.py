"""What a small model commonly writes is accepted, runs in the cell, and gives what Python gives."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cell.hosting import Answers
from tests.cell.small import Sample, samples
from tests.guardian.tables import table

from batos.cell.cell import Cell, MethodCall
from batos.cell.program import prepare
from batos.guardian.audit import Context, audit

SAMPLES = {sample.name: sample for sample in samples()}
SHAPES = ("helper", "constant", "class", "with", "dataclass", "decimal", "logging", "after", "flag")
#: The share of them that has to be accepted and right.
GOAL = 0.93
#: Accepted where it is said which method is wanted: a constant, classes that hold data, a line of the log at the end.
HARMLESS = {"shape/statement_before", "class/plain", "class/top_level", "exception/own_class", "marker_then_log"}


def replies(given: list[str]) -> Callable[..., Awaitable[Any]]:
    """A model that says these."""
    rest = list(given)

    async def say(*args: Any, **kwargs: Any) -> str:
        return rest.pop(0)

    return say


async def fault_of(cell: Cell, sample: Sample) -> str:
    """Why a sample is refused or what it gives instead; "" where it is accepted and right."""
    verdict = await asyncio.to_thread(audit, sample.source, Context(sample.selector))
    if not verdict.accepted:
        return "; ".join(map(str, verdict.faults))
    program = await asyncio.to_thread(prepare, sample.source, verdict.slots, sample.selector)
    host = Answers({"infer_": replies(sample.replies), "log_": None})
    outcome = await cell.run(program, MethodCall(sample.slots, sample.args), host)
    after = {**sample.slots, **outcome.writes.values}
    if outcome.result != sample.expected or after != sample.after:
        return f"gives {outcome.result!r} and {after}"
    return "" if outcome.writes.is_marked or not outcome.writes else "changes what it does not mark"


def test_there_are_five_of_each_shape() -> None:
    """Forty-five and more, as a small coder writes them."""
    counts = Counter(sample.shape for sample in SAMPLES.values())
    assert set(counts) == set(SHAPES)
    assert min(counts.values()) >= 5


async def test_what_small_models_write_is_accepted_and_right(cell: Cell) -> None:
    """So many of a hundred, in the cell, each with the result and the slots that Python gives."""
    faults = {name: fault for name, sample in SAMPLES.items() if (fault := await fault_of(cell, sample))}
    assert len(faults) <= (1 - GOAL) * len(SAMPLES), faults


def passes(source: str | bytes) -> bool:
    """Whether a source passes where any function of its is the method that is wanted."""
    text = source if isinstance(source, str) else source.decode("utf-8", "replace")
    names = set(re.findall(r"def +(\w+)", text)) | {"run"}
    return any(audit(source, Context(name)).accepted for name in sorted(names))


def test_no_hostile_source_passes_for_being_tidied(corpus: Path) -> None:
    """Neither of the corpus nor of our own tables, also where it is known which method is wanted."""
    sources = {path.name: path.read_bytes() for path in sorted((corpus / "guardian" / "hostile").glob("*.py"))}
    if not sources:
        pytest.skip("no corpus: set BATOS_CORPUS to one that has hostile samples")
    refused = {name: text for name, text in sources.items() if not audit(text).accepted}
    assert [name for name, text in refused.items() if passes(text)] == []


@pytest.mark.parametrize("kind", ["form", "covenant"])
def test_none_of_our_own_hostile_sources_passes_for_being_tidied(kind: str) -> None:
    """But for those that only have a harmless shape, and pass where the method that is wanted is named."""
    refused = {name: text for name, text in table(kind).items() if not audit(text).accepted}
    passed = {name for name, text in refused.items() if passes(text)}
    assert passed <= HARMLESS
