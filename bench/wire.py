"""Agreement of the emulator with a recorded daemon: every exchange sent again over real sockets, every reply compared.

    python bench/wire.py [--exchanges FILE] [--models DIR] [--env K=V ...] [--url URL] [--speed N] [--quick]
                         [--json FILE]

The emulator runs as a process, as the recorded daemon did: an empty store, no GPU, a registry that cannot be reached,
the variables of `--env`. With `--url`, or BATOS_LIVE_OLLAMA, the same is asked of a daemon that runs already and has no
models. Every difference is a line on stdout. The last line is one JSON object: `exchanges` (all of the file),
`agreement` (the share without a difference; what could not be replayed agrees in nothing), `by_scenario` (the same for
each), `differences` [{n, scenario, note, what}], `unreplayable` [{n, scenario, why}].

Compared are the status, the headers Content-Type, Allow and Vary, whether the length is told or the body is in chunks,
and of the body every field: its name, place, type and value. These may differ, with the reason:

 1. Words: `content`, `response`, `thinking`, `text`, `reasoning`, `tool_calls` of answers, and so how many chunks a
    streamed answer has. Each chunk has to be like a recorded one, no words may stand where there are none (load,
    unload, last lines); an answer to a schema has the recorded keys in their order, of the recorded types.
 2. The reason of an answer's end and its length, where only its words decide. Two answers that ran to a limit have the
    same count. Where the recorded text stopped by itself ours may run to the limit, if it is then the longer; where a
    schema or a stop string cut ours short, the recorded one may have run to it.
 3. `context`: the prompt's tokens are the same, but the last few, which may join with the answer's first.
 4. Numbers of the weights: vectors (as many, as long, of unit length where the recorded are), log-probabilities and the
    tokens that they are of (their fields and how many alternatives are the same).
 5. Time: moments have the wire's form; durations are there and positive. `expires_at` is as far ahead as it was, give
    or take what the recording, or the replay, has lasted by then; rows sorted by whole seconds may stand in any order
    within one, but what was later has a later moment.
 6. Digests of what the daemon wrote itself (re-written weights, configurations, manifests): each stands for one of the
    recording, one to one, wherever it occurs. A digest that follows from the models or from a request is the same.
 7. `size` in /api/ps: what the runner's own buffers take, which its library decides.
 8. Lines that count up (pull): as many as time has it; they count up, to no more than the total, and a layer that is
    there already is one line.
 9. The order of PARAMETER lines and of the lines of `parameters`, which the daemon takes from a map.
10. The machine: the path of the store, the address of its resolver, the ports of registries, the number in the ids of
    the OpenAI-shaped replies, Content-Length (the bodies are compared) but for HEAD; a reply may be in chunks because
    its words or moments make it longer.
11. The winner of a race among equal requests, sent at once; requests sent within 5 ms arrive in the order in which
    the recorded daemon must have taken them, those served before those that found the queue full.

The replay does as a recording implies: a client that left leaves after as many lines, or after as long (a second at
most); a runner that was killed is killed (only the emulator lets itself be told so); registries at which pulls were
made are served, with what the recording shows of them; /api/ps is asked again for as long as a keep-alive may
have run out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import wire_daemon
from report import Goal, report
from wire_exchange import Recording
from wire_registry import registries
from wire_replay import Outcome, Replay, span

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "data" / "ollama-wire"
QUICK_SPEED = 4.0
#: Exchanges that cannot be replayed, by the digest of the file: {n: why}. The list may only
#: shrink (tests/bench/test_wire.py).
UNREPLAYABLE: Mapping[str, Mapping[int, str]] = {}


async def measure(
    recording: Recording, environ: Mapping[str, str], url: str | None = None, speed: float = 1.0
) -> list[Outcome]:
    """Replay a recording; one outcome for each exchange, in order. OSError or ValueError when it cannot be begun."""
    table = UNREPLAYABLE.get(recording.digest, {})
    target = wire_daemon.live(url) if url else wire_daemon.emulator(recording, environ, speed)
    async with registries(recording, speed) as ports, target as daemon:
        replay = Replay(daemon, recording, ports, speed, keep_alive_seconds(environ), told=_tell)
        outcomes = await replay.run(frozenset(table))
    left = [Outcome(one, unsent=table[one.n]) for one in recording.exchanges if one.n in table]
    return sorted((*outcomes, *left), key=lambda outcome: outcome.exchange.n)


def keep_alive_seconds(environ: Mapping[str, str]) -> float | None:
    """Return the keep-alive that a daemon was started with: a duration, or seconds."""
    text = environ.get("OLLAMA_KEEP_ALIVE", "")
    return float(text) if text.isdecimal() else span(text)


def document(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the figures of the outcomes, without the machine and the goals."""
    scenarios = dict.fromkeys(outcome.exchange.scenario for outcome in outcomes)
    named = [(outcome, {"n": outcome.exchange.n, "scenario": outcome.exchange.scenario}) for outcome in outcomes]
    return {
        "exchanges": len(outcomes),
        "agreement": agreement(outcomes),
        "by_scenario": {
            name: agreement([outcome for outcome in outcomes if outcome.exchange.scenario == name])
            for name in scenarios
        },
        "differences": [
            {**place, "note": outcome.exchange.note, "what": list(outcome.differences)}
            for outcome, place in named
            if outcome.differences
        ],
        "unreplayable": [{**place, "why": outcome.unsent} for outcome, place in named if outcome.unsent],
    }


def agreement(outcomes: Sequence[Outcome]) -> float:
    """Return the share of exchanges that were replayed without a difference, to four places, never rounded up to 1."""
    agreed = sum(not outcome.differences and not outcome.unsent for outcome in outcomes)
    share = agreed / max(1, len(outcomes))
    return share if agreed == len(outcomes) else min(round(share, 4), 0.9999)


def goals(outcomes: Sequence[Outcome], *, live: bool) -> list[Goal]:
    """List the goals. Runners that were killed from outside are an emulator's: nobody asks that of a daemon."""
    asked = [one for one in outcomes if not (live and one.unsent and one.exchange.scenario == "faults")]
    return [
        Goal("agreement", agreement(asked), 1.0, "at_least"),
        Goal("unreplayable", sum(bool(one.unsent) for one in asked), 0),
    ]


def _tell(outcome: Outcome) -> None:
    one = outcome.exchange
    for what in outcome.differences:
        _say(f"{one.n} {one.scenario} ({one.note}): {what}")
    if outcome.unsent:
        _say(f"{one.n} {one.scenario} ({one.note}): not replayed: {outcome.unsent}")


def _say(text: str) -> None:
    """Print a line, with escapes for characters of a recording that no text can hold."""
    print(text.encode("utf-8", "backslashreplace").decode(), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--exchanges", type=Path, default=CORPUS / "exchanges.jsonl")
    parser.add_argument("--models", type=Path, default=CORPUS / "models")
    parser.add_argument("--env", action="extend", nargs="+", default=[], metavar="K=V")
    parser.add_argument("--url", default=os.environ.get("BATOS_LIVE_OLLAMA"))
    parser.add_argument("--speed", type=float, default=None, help="how many times faster than recorded")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    try:
        environ = dict(_pair(text) for text in given.env)
        recording = Recording.read(given.exchanges, given.models)
        speed = given.speed or (QUICK_SPEED if given.quick and not given.url else 1.0)
        outcomes = asyncio.run(measure(recording, environ, given.url, speed))
    except (OSError, ValueError, RecursionError) as fault:
        print(f"wire: {fault}", file=sys.stderr)
        return 1
    found = document(outcomes)
    report(found, goals(outcomes, live=bool(given.url)), given.json)
    return 0


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise ValueError(f"--env takes NAME=VALUE, not {text!r}")
    return name, value


if __name__ == "__main__":
    sys.exit(main())
