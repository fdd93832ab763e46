"""The watch over texts that repeat themselves: how soon loops are stopped, how many honest texts, at which cost.

`stopped_within` is the most tokens behind the end of the fourth repetition, over units of 1 to 200 characters cut at
random; `honest_stopped` counts passages of the corpus that were stopped; `ns_a_token` is CPU time.

    python bench/runaways.py [--data FILE] [--quick] [--json FILE]
"""

from __future__ import annotations

import random
import re
import string
import time
from collections.abc import Sequence

from batos.inference.ollama.repetition import LONGEST_UNIT, LOOP_TOKENS, TIMES, RepetitionWatch
from report import Goal, report
from voice_side import SEED, parser_of, questions_of

_TOKEN = re.compile(r" ?[^\W\d_]+|[0-9]{1,3}|\s+|.", re.DOTALL)


def stopped_at(pieces: Sequence[str]) -> int:
    """Return the number of pieces at which a text is stopped, 0 if it is not."""
    watch = RepetitionWatch()
    return next((count for count, piece in enumerate(pieces, start=1) if watch.hear(piece) is not None), 0)


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
    values = {
        "stopped_within": max(delays),
        "loops": len(delays),
        "honest_stopped": stopped,
        "honest": len(passages),
        "ns_a_token": round(took / tokens),
    }
    goals = [
        Goal("tokens behind the fourth repetition", values["stopped_within"], LOOP_TOKENS),
        Goal("honest texts that were stopped", values["honest_stopped"], 0),
    ]
    report(values, goals, given.json)


if __name__ == "__main__":
    main()
