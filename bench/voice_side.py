"""Holds what benches of answers share: flags, a UVM over the model that is measured, and a file's questions."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batos.config import Settings
from batos.events import Events, Subscriber
from batos.uvm import UVM, Seams, open_uvm
from ollama_emulator.emulator import Emulator, Options

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "corpus"
SEED = 7
#: Runs the emulator until its standard input ends, which a bench that is killed closes too.
_GUARDED = (
    "import os, runpy, signal, sys, threading; "
    "threading.Thread(target=lambda: (sys.stdin.read(), os.kill(os.getpid(), signal.SIGTERM)), daemon=True).start(); "
    "runpy.run_module('batos', run_name='__main__', alter_sys=True)"
)


@dataclass(frozen=True, slots=True)
class AttachedQuestion:
    """A question with its passage and the answers that are right; `starts` are their places in the passage."""

    text: str
    context: str
    answers: tuple[str, ...]
    starts: tuple[int, ...]


#: Asked by a quick run, and where there is no file of questions.
BUILT_IN = (
    AttachedQuestion(
        "How is the lamp kept burning through a night of fog, and who winds the clockwork?",
        "The keeper winds the clockwork every four hours. The wick is trimmed when the flame turns yellow. On nights of"
        " fog the bell is rung by hand.",
        ("The keeper",),
        (0,),
    ),
    AttachedQuestion(
        "How many steps lead from the yard to the lamp?",
        "The oil is carried up in cans of brass, 86 steps from the yard, since tin rusts in the salt air.",
        ("86",),
        (41,),
    ),
)


def parser_of(about: str) -> argparse.ArgumentParser:
    """Return a parser with the flags that these benches share."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    corpus = Path(os.environ.get("BATOS_CORPUS", BESIDE))
    parser.add_argument("--data", type=Path, metavar="FILE", default=corpus / "quality" / "dev.jsonl")
    model = parser.add_mutually_exclusive_group()
    model.add_argument("--url", metavar="URL", help="the Ollama that answers")
    model.add_argument(
        "--gguf",
        metavar="FILE|NAME",
        help="the real model that answers: a file, or one that `make real` brought",
    )
    parser.add_argument("--n", type=int, default=24, metavar="N", help="questions of the file, shuffled by seed 7")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="questions left out before the first one")
    parser.add_argument("--quick", action="store_true", help="the emulator's invented words: shape, not figures")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE")
    return parser


def questions_of(given: argparse.Namespace) -> Sequence[AttachedQuestion]:
    """Return the questions that are asked: the first of the file after a shuffle, or those that are built in."""
    found = rows_of(given)
    return found if found is BUILT_IN else found[given.skip : given.skip + given.n]


def rows_of(given: argparse.Namespace) -> Sequence[AttachedQuestion]:
    """Return all questions of the file after the shuffle, or those that are built in."""
    if given.quick or not given.data.exists():
        return BUILT_IN
    rows = [json.loads(line) for line in given.data.read_text(encoding="utf-8").splitlines()]
    random.Random(SEED).shuffle(rows)
    return [
        AttachedQuestion(
            row["question"],
            row["context"],
            tuple(each["text"] for each in row["answers"]),
            tuple(each["start"] for each in row["answers"]),
        )
        for row in rows
    ]


#: A fault of an emulator: vectors of hashes lead a router nowhere, and a home learns by words alone in a tenth of the
#: time.
NO_VECTORS: Mapping[str, Any] = {"match": {"path": "/api/embed"}, "do": "status", "times": 10**9}


@asynccontextmanager
async def daemon(given: argparse.Namespace) -> AsyncIterator[str]:
    """Yield the address of the Ollama that was named, or of an emulator with the model that was named, if any.

    Raises: RuntimeError: the emulator of a real model did not start; its own words stand on stderr.
    """
    if given.url:
        yield given.url
    elif given.gguf:
        with _real_voice([given.gguf] if isinstance(given.gguf, str) else given.gguf) as url:
            yield url
    else:
        emulator = Emulator(Options())
        if not getattr(given, "vectors", False):
            emulator.faults.add(NO_VECTORS)
        async with emulator.serving() as url:
            yield url


@contextmanager
def _real_voice(models: Sequence[str]) -> Iterator[str]:
    """Run an emulator with real models in a process of its own, so that they take no time of the loop's.

    The emulator ends with this process, however it ends.
    """
    environ = {key: value for key, value in os.environ.items() if not key.startswith("OLLAMA_")}
    command = [sys.executable, "-c", _GUARDED, "emulator", "--port", "0"]
    command += [word for model in models for word in ("--gguf", model)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environ) as process:
        try:
            line = process.stdout.readline() if process.stdout is not None else ""
            found = [word for word in line.split() if word.startswith("http")]
            if not found:
                raise RuntimeError("the emulator of a real model did not start")
            yield found[0].rstrip(".,;")
        finally:
            process.terminate()


@asynccontextmanager
async def uvm_over(url: str, *subscribers: Subscriber, seams: Seams | None = None, **also: Any) -> AsyncIterator[UVM]:
    """Open a UVM after genesis on a fresh home, whose calls that address answers; it writes no methods.

    Every event is told to each of `subscribers`; `seams` put other parts in the place of the real ones, and `also` are
    further settings.
    """
    with tempfile.TemporaryDirectory(prefix="batos-bench-") as home:
        settings = Settings(
            home=Path(home),
            user="bench",
            image="memory://bench",
            ollama_host=url,
            vram="48GiB",  # room for whatever model answers
            # The calls of missions are counted, not those of who writes methods.
            **{"install": "never", **also},
        )
        async with open_uvm(settings, Events(*subscribers, log=False), seams) as uvm:
            await uvm.readiness.genesis()
            yield uvm
