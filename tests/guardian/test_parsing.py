"""Source is parsed by many threads at once."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from batos.guardian.parsing import parse, parse_expression

_SOURCE = "def f(a):\n" + "\n".join(f"    x{at} = [a + {at}, (b, c), {{'k': {at}}}]" for at in range(300))


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as can be, and every collection of garbage runs Python code."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()

    def collected(phase: str, info: dict[str, int]) -> None:
        sum(range(30))

    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    gc.callbacks.append(collected)
    yield
    gc.callbacks.remove(collected)
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("switching")
def test_threads_parse_side_by_side() -> None:
    """No thread meets the depth of another's tree: six at a time, forty sources."""
    with ThreadPoolExecutor(6) as threads:
        trees = list(threads.map(parse, [_SOURCE] * 40))
    assert all(len(tree.body) == 1 for tree in trees)


def test_what_is_odd_in_a_source_is_no_warning() -> None:
    """An escape that Python does not know is for the guardian to judge."""
    assert parse("x = '\\d'").body
    assert parse_expression("'\\d'").lineno == 1
