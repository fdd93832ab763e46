"""The watch over texts that repeat themselves: how soon loops are stopped, how many honest texts, at which cost.

`stopped_within` is the most tokens behind the end of the fourth repetition, over units of 1 to 200 characters cut at
random; `honest_stopped` counts passages of the corpus that were stopped; `ns_a_token` is CPU time.

`missions` are figures of the product's own bridge: missions of one call over an emulator whose texts do not end by
themselves, one that says blanks or one word, and with `--gguf` or `--url` a model, which is asked for rows, songs and
lists and N questions about passages. `stopped_within` counts the tokens behind the end of the fourth repetition, and
`runs_within` those of blanks or one token; `kept_badly` are stopped texts whose whole sentences before the loop do not
stand, or whose rest is not counted as wasted; `missed` went on beyond the bound. A stopped text is honest if the
model, asked once more with nobody watching, ends it by itself.

    python bench/runaways.py [--gguf FILE|smollm2 | --url URL] [--n N] [--data FILE] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import string
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from batos.inference.ollama.repetition import BLANK_TOKENS, LONGEST_UNIT, LOOP_TOKENS, TIMES, RepetitionWatch
from loops_side import ENDLESS_WORDS, PROMPTS, endless_daemon, hear_missions
from report import Goal, report
from voice_side import SEED, daemon, parser_of, questions_of

_TOKEN = re.compile(r" ?[^\W\d_]+|[0-9]{1,3}|\s+|.", re.DOTALL)


def stopped_at(pieces: Sequence[str]) -> int:
    """Return the number of pieces at which a text is stopped, 0 if it is not."""
    watch = RepetitionWatch()
    return next((count for count, piece in enumerate(pieces, start=1) if watch.add(piece) is not None), 0)


def delay(size: int, chance: random.Random) -> int:
    """Return the tokens between the end of a loop's fourth repetition and its stop."""
    unit = "".join(chance.sample(string.printable[:94] * 3, size))
    text = "Once upon a time. " + unit * (TIMES + 1 + 60 * LOOP_TOKENS // size)
    pieces = []
    while text:
        step = chance.randint(1, 7)
        pieces.append(text[:step])
        text = text[step:]
    fourth, heard = len("Once upon a time. ") + TIMES * size, 0
    ends = next(count for count, piece in enumerate(pieces, start=1) if (heard := heard + len(piece)) >= fourth)
    return (stopped_at(pieces) or len(pieces)) - ends


async def missions(given: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of the product's bridge, by daemon."""
    found: dict[str, Any] = {}
    few, faults = (PROMPTS[:1], ("",)) if given.quick else (PROMPTS[:2], ("", *ENDLESS_WORDS))
    with tempfile.TemporaryDirectory(prefix="batos-bench-") as name:
        for fault in faults:
            async with endless_daemon(Path(name), fault) as url:
                found[fault or "endless"] = (await hear_missions(url, few)).as_dict()
    if given.gguf or given.url:
        async with daemon(given) as url:
            found["model"] = (await hear_missions(url, (*PROMPTS, *questions_of(given)))).as_dict()
    return found


def goals_of(found: Mapping[str, Any]) -> Iterator[Goal]:
    """Yield the goals of the missions, over all daemons."""
    bounds = {"stopped_within": LOOP_TOKENS, "runs_within": BLANK_TOKENS, "kept_badly": 0, "missed": 0}
    for name, bound in bounds.items():
        yield Goal(f"{name} of missions", max(each[name] for each in found.values()), bound)
    if "model" in found:
        yield Goal("missions over a model that failed", found["model"]["failed"], 0)
        yield Goal("honest answers of missions that were stopped", found["model"]["honest_stopped"], 0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, measure and report."""
    given = parser_of(__doc__ or "").parse_args(arguments)
    chance = random.Random(SEED)
    sizes = range(2, LONGEST_UNIT + 1, 20 if given.quick else 1)
    delays = [delay(size, chance) for size in sizes]
    passages = [_TOKEN.findall(each.context) for each in questions_of(given)]
    began = time.process_time_ns()
    stopped = sum(bool(stopped_at(pieces)) for pieces in passages)
    took, tokens = time.process_time_ns() - began, sum(map(len, passages))
    values: dict[str, Any] = {
        "stopped_within": max(delays),
        "loops": len(delays),
        "honest_stopped": stopped,
        "honest": len(passages),
        "ns_a_token": round(took / tokens),
        "missions": asyncio.run(missions(given)),
    }
    goals = [
        Goal("tokens behind the fourth repetition", values["stopped_within"], LOOP_TOKENS),
        Goal("honest texts that were stopped", values["honest_stopped"], 0),
        *goals_of(values["missions"]),
    ]
    report(values, goals, given.json)


if __name__ == "__main__":
    main()
