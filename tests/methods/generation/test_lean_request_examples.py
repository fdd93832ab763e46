"""The examples that a small coder is shown: each is what it should write, and the one that fits is chosen."""

from __future__ import annotations

import pytest
from tests.methods.generation.generation_setup import wish

from batos.cell.cell import Cell
from batos.events import Events
from batos.methods.generation import lean_request
from batos.methods.generation.coder_replies import parse_lines
from batos.methods.generation.lean_request import (
    EXAMPLES,
    FACET,
    KEEPING,
    PLAIN,
    PROTOCOL,
    CoderExample,
    example_for,
    spoken_checks,
)
from batos.methods.generation.method_checks import LIMITS
from batos.methods.generation.method_spec import parameter_names
from batos.methods.generation.trial import Trial
from batos.methods.generation.written_source import read_source

KINDS = dict(zip(EXAMPLES, ("tool", "tool", "method", "facet", "protocol"), strict=True))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.signature.partition("(")[0])
async def test_an_example_is_accepted_and_passes_its_checks(example: CoderExample) -> None:
    """By the guardian and in a cell, without any change; its checks are written as they are asked for."""
    selector = example.signature.partition("(")[0]
    wanted = wish(selector=selector, signature=example.signature, kind=KINDS[example])
    names = parameter_names(example.signature)
    checks, faults = parse_lines(lean_request.fence(example.checks), selector, tuple(names))
    cell = Cell(1, LIMITS)
    try:
        judged = await Trial(wanted, cell, Events(log=False)).source(
            read_source(lean_request.fence(example.source), selector, example.signature).source,
            checks or spoken_checks(wanted),
        )
    finally:
        await cell.aclose()
    assert (judged.faults, faults) == ((), [])
    assert read_source(lean_request.fence(example.source), selector, example.signature).changes == ()


def test_the_example_fits_the_method() -> None:
    """By its kind, and by the slots that its intent names; a tool has none."""
    assert example_for(wish(kind="facet")) is FACET
    assert example_for(wish(kind="protocol")) is PROTOCOL
    assert example_for(wish(kind="method", text="Increment count.")) is KEEPING
    assert example_for(wish(kind="method", text="Add the items.")) is PLAIN
    assert example_for(wish(kind="tool", text="Increment count.")) is PLAIN
