"""Questions about the system itself, on an image with a known history: figures that are right, and invented ones.

The history is made over the emulator, on three days: answers to a document, failures, a question that is asked again,
and events such as conflicts and methods. bench/alfred_questions.json
has forty questions with the figures that each asks for: half of them were there when the words of questions were
listed, the other half were looked at once, at the end. Before each question what is true is taken from the records of
the missions themselves, not from the rates. An answer is right if it has each figure that was asked for; a number that
stands neither in the question nor in any record is invented. `emulator` has the words of the emulator, `liar` those of
a model that says other figures, whatever it is asked. With --host a real daemon answers, with the model that --model
names.

    python bench/alfred.py [--host URL --model NAME] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any, Final

from batos.autotelic import entropy_days
from batos.config import Settings
from batos.events import Events
from batos.gate import figures
from batos.genesis import persona_models
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError
from batos.protocol.event_payloads import METHOD_INSTALLED, METHOD_RETIRED, TXN_CONFLICT, VRAM_SPILL, Event
from batos.protocol.mission_documents import MissionDocument
from batos.testing import ScriptedBridge
from batos.uvm import UVM, Seams, open_uvm
from ollama_emulator.emulator import Emulator
from report import Goal, report

QUESTIONS: Final = Path(__file__).with_name("alfred_questions.json")
LAMP: Final = "The keeper winds the clockwork every four hours. The oil of 1,200 cans is carried up 86 steps.\n"
#: Days before today, and what was asked then; a model that is not there fails.
HISTORY: Final[Sequence[tuple[int, Sequence[str]]]] = (
    (9, ("How is oil carried up?", "Who winds the clockwork?", "!Is the lamp lit?")),
    (3, ("How many steps are there?", "How often is it wound?", "What is carried?", "!Who sleeps?", "Why wind it?")),
    (
        0,
        (
            "How many cans are there?",
            "What does the keeper do?",
            "!Where is the bell?",
            "When is it wound?",
            "Which oil?",
            "How is it lit?",
        ),
    ),
)
#: Events of these days, so many times each.
EVENTS: Final[Mapping[int, Mapping[Event[Any], int]]] = {
    9: {METHOD_INSTALLED: 4, METHOD_RETIRED: 1, TXN_CONFLICT: 2},
    3: {TXN_CONFLICT: 3, VRAM_SPILL: 2, METHOD_INSTALLED: 2},
    0: {TXN_CONFLICT: 1, METHOD_RETIRED: 1},
}
COUNTED: Final[Mapping[str, Event[Any]]] = {
    "conflicts": TXN_CONFLICT, "spills": VRAM_SPILL, "made": METHOD_INSTALLED, "retired": METHOD_RETIRED,
}  # fmt: skip
#: The words of a model that knows nothing and says it all the same.
LIE: Final = "It was 4711 calls, 9022 tokens, 17.3 seconds, 41.5 % and 613 of 887, by gpt-99 on 12 May 2019."
#: Figures of the windows' own names.
OWN: Final = frozenset({Decimal(7), Decimal(24)})


@dataclass(slots=True)
class History:
    """A mind whose clock can be set back, and the ids of all missions that it was asked."""

    uvm: UVM
    clock: list[timedelta] = field(default_factory=lambda: [timedelta()])
    missions: list[str] = field(default_factory=list)

    async def ask(self, text: str, document: str = "", **brief: Any) -> MissionDocument | None:
        """Ask, and return the mission; None: it failed."""
        files = (as_file("lamp.txt", document.encode()),) if document else ()
        mission = await self.uvm.missions.submit({"text": text, **brief}, files)
        self.missions.append(mission)
        try:
            return await self.uvm.missions.run(mission)
        except BatosError:
            return None

    async def grow(self) -> None:
        """Make the history."""
        for days, questions in HISTORY:
            self.clock[0] = -timedelta(days=days)
            for text in questions:
                model = {"model": "absent:1b"} if text.startswith("!") else {}
                await self.ask(text.lstrip("!"), LAMP, **model)
            await self.ask(questions[0], LAMP, ancestor=self.missions[-len(questions)])
            for event, many in EVENTS[days].items():
                for _ in range(many):
                    # Only the name is counted.
                    self.uvm.events.emit(event, dict.fromkeys(event.keys, "made"))
        self.clock[0] = timedelta()

    async def truth(self) -> dict[str, Any]:
        """Return what is true now, by the names that the questions have for it."""
        await self.uvm.mission_memory.job.finish()
        found = [self.uvm.readings.mission(each) for each in self.missions]
        today = datetime.now(UTC).date()
        told: dict[str, Any] = {}
        for span, days in (("day", 1), ("week", 7), ("all", 10_000)):
            since = (today - timedelta(days=days - 1)).isoformat()
            told |= {f"{span}.{name}": value for name, value in _sums([e for e in found if e["accepted_at"] >= since])}
            happened = Counter[str]()
            for ago, events in EVENTS.items():
                happened.update({event.name: many for event, many in events.items() if ago < days})
            told |= {f"{span}.{name}": happened[event.name] for name, event in COUNTED.items()}
        done = [each for each in found if each["status"] == "done"]
        told |= {f"last.{name}": value for name, value in _last(done[-1])}
        with self.uvm.image.snapshot() as root:
            audit = persona_models.last_audit(root)
            days_of_metric = entropy_days.describe(root, 30)["days"]
            told["model"] = str(root["alfred_prototype_obj"].model)
        newest = next((each for each in reversed(days_of_metric) if each["cem"] is not None), None)
        if newest is not None:
            told |= {"cem": newest["cem"], "cem.day": newest["day"]}
        if audit is not None:
            told |= {"audit.day": audit["at"][:10], "audit.time": audit["at"][11:16]}
            told |= {
                "audit.held": sum(each["ok"] for each in audit["findings"]),
                "audit.checks": len(audit["findings"]),
            }
        return told


def _sums(found: Sequence[MissionDocument]) -> list[tuple[str, Any]]:
    done = [each for each in found if each["status"] == "done"]
    failed = [each for each in found if each["status"] == "failed"]
    costs = [each["cost"] for each in found if "cost" in each]
    gates = [each["provenance"].get("gate") for each in done]
    judged = [each for each in gates if each is not None]
    served, paid = sum(each["from_journal"] for each in costs), sum(each["calls"] for each in costs)
    codes = Counter(each["reason"]["code"] for each in failed)
    tokens = [each["cost"]["prompt_tokens"] + each["cost"]["answer_tokens"] for each in done]
    seconds = [each["cost"]["seconds"] for each in done]
    return [
        ("done", len(done)),
        ("failed", len(failed)),
        ("ended", len(found)),
        ("error_rate", round(100 * len(failed) / len(found), 1)),
        ("failure", codes.most_common(1)[0][0]),
        ("failures", codes.most_common(1)[0][1]),
        ("judged", len(judged)),
        ("rejected", sum(not each["ok"] or each["revised"] or "discarded" in each for each in judged)),
        ("revised", sum(each["revised"] for each in judged)),
        ("calls", sum(each["calls"] for each in costs)),
        ("tokens", sum(each["prompt_tokens"] + each["answer_tokens"] for each in costs)),
        ("from_journal", sum(each["from_journal"] for each in costs)),
        ("share", round(100 * served / max(1, served + paid), 1)),
        ("loads", sum(each["loads"] for each in costs)),
        ("retries", 0),
        ("tokens_median", round(median(tokens), 1)),
        ("seconds_median", _seconds(median(seconds))),
    ]


def _seconds(value: float) -> float:
    return round(value, 1 if value >= 10 else 2)


def _last(found: MissionDocument) -> list[tuple[str, Any]]:
    cost, known = found["cost"], found["provenance"]
    states = [each["state"] for each in known.get("sentences", ())]
    return [
        ("calls", cost["calls"]),
        ("tokens", cost["prompt_tokens"] + cost["answer_tokens"]),
        ("seconds", _seconds(cost["seconds"])),
        ("from_journal", cost["from_journal"]),
        ("persona", found["route"]["personas"][0]),
        ("confidence", round(found["route"]["confidence"], 2)),
        ("carried", states.count("carried")),
        ("not_carried", states.count("not_carried")),
        ("faults", len(known["gate"]["faults"]) if "gate" in known else 0),
    ]


def is_right(answer: str, wanted: Sequence[Any]) -> bool:
    """Test if an answer has each of the wanted figures."""
    return all(
        each.casefold() in answer.casefold() if isinstance(each, str) else Decimal(str(each)) in _numbers(answer)
        for each in wanted
    )


def find_invented(answer: str, question: str, truth: Mapping[str, Any]) -> list[str]:
    """List the numbers of an answer that stand neither in the question nor in any record."""
    known = "\n".join(str(each) for each in truth.values())
    values = _numbers(known) | _numbers(question) | OWN
    return [each.text for each in figures.find(answer) if not each.values & values]


def _numbers(text: str) -> frozenset[Decimal]:
    return frozenset(value for each in figures.find(text) for value in each.values)


@asynccontextmanager
async def open_history(host: str, model: str, bridge: ScriptedBridge | None = None) -> AsyncIterator[History]:
    """Open a mind over the emulator, a scripted bridge, or a daemon with a model for every persona."""
    clock = [timedelta()]
    with tempfile.TemporaryDirectory() as folder:
        emulator = Emulator()
        async with emulator.serving() as url:
            home = Path(folder)
            settings = Settings(
                home=home, user="keeper", image="memory://image", ollama_host=host or url, install="never"
            )
            if model:
                (home / "codex").mkdir()
                (home / "codex" / "mind.toml").write_text(f'default_model = "{model}"\n', encoding="utf-8")
            seams = Seams(bridge, clock=lambda: datetime.now(UTC) + clock[0])
            async with open_uvm(settings, Events(log=False), seams) as uvm:
                clock[0] = -timedelta(days=10)
                await uvm.readiness.genesis()
                yield History(uvm, clock)


async def ask_all(host: str, model: str, bridge: ScriptedBridge | None = None, *, quick: bool) -> list[dict[str, Any]]:
    """Ask all questions, and tell of each whether it is right, and what is invented."""
    asked = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = []
    async with open_history(host, model) as history:
        await history.grow()
        for half, text, names in asked[:: 8 if quick else 1]:
            truth = await history.truth()
            found = await history.ask(text)
            answer = str(found["answer"]) if found is not None else ""
            leader = found["route"]["personas"][0] if found is not None else ""
            wanted = [truth.get(name, "recorded") for name in names]
            invented = find_invented(answer, text, truth)
            rows.append(
                {
                    "half": half, "question": text, "wanted": wanted, "answer": answer, "leader": leader,
                    "right": bool(answer) and is_right(answer, wanted), "invented": invented,
                }
            )  # fmt: skip
            print(f"\r{len(rows)} questions", end="", file=sys.stderr)
    print(file=sys.stderr)
    return rows


async def measure(host: str, model: str, *, quick: bool) -> dict[str, Any]:
    """Count what is right and what is invented, for each model and each half."""
    name = model or "emulator"
    arms = {name: await ask_all(host, model, quick=quick)}
    if not host:
        arms["liar"] = await ask_all("", "", ScriptedBridge.saying(LIE), quick=quick)
    every = [each for rows in arms.values() for each in rows]
    return {
        "bench": "alfred",
        **_share(every),
        "arms": {arm: _share(rows) for arm, rows in arms.items()},
        "halves": {half: _share([each for each in every if each["half"] == half]) for half in ("tuned", "held")},
        "wrong": [each for each in every if not each["right"] or each["invented"]],
    }


def _share(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "asked": len(rows),
        "right": round(sum(each["right"] for each in rows) / max(1, len(rows)), 4),
        "invented": sum(bool(each["invented"]) for each in rows),
        "to_alfred": sum(each["leader"] == "ALFRED" for each in rows),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--host", default="", help="a real daemon; without it the emulator answers")
    parser.add_argument("--model", default="", help="the model of every persona there")
    parser.add_argument("--quick", action="store_true", help="a few questions")
    parser.add_argument("--json", type=Path, help="also write the document here")
    given = parser.parse_args(arguments)
    found = asyncio.run(measure(given.host, given.model, quick=given.quick))
    goals = [
        Goal("figures right", found["right"], 1.0, "at_least"),
        Goal("answers with invented figures", found["invented"], 0),
    ]
    report(found, goals, given.json)


if __name__ == "__main__":
    main()
