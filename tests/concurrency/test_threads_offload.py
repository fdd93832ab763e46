"""Heavy work goes to a thread, and a large file never holds the loop."""

from __future__ import annotations

import threading

import pytest
from tests.minds.conftest import Mind
from tests.minds.scripted import GOOD, LAMP, ask

from batos.concurrency.threads import LIGHT, offload
from batos.protocol.brief import as_file


async def test_a_large_file_never_holds_the_loop(mind: Mind) -> None:
    """A megabyte of text is read, cut, ranked and judged without holding the loop: the loop watch looks on."""
    text = "\n\n".join(f"Paragraph {number} tells of the sea, the wind and the oil." for number in range(18_000))
    assert len(text) > 1_000_000
    long = as_file("long.txt", f"{text}\n\n{LAMP.data.decode()}".encode())
    mind.script.woven = GOOD
    shown = await ask(mind.uvm, "How does the keeper wind the clockwork every four hours?", (long,))
    assert shown["status"] == "done"
    assert shown["provenance"]["omitted"]["passages"] > 500
    assert "clockwork every four hours" in mind.bridge.history[0].messages[1]["content"]


async def test_heavy_work_goes_aside_and_light_work_stays() -> None:
    """Above the limit another thread does it; below it is done at once; an error comes back as it was raised."""
    here = threading.current_thread()
    assert await offload(LIGHT, threading.current_thread) is here
    assert await offload(LIGHT + 1, threading.current_thread) is not here

    def breaks() -> None:
        raise KeyError("x")

    for size in (0, LIGHT + 1):
        with pytest.raises(KeyError):
            await offload(size, breaks)
