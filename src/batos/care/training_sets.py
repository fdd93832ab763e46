"""Training sets from use: the calls behind answers that nobody took back, as chat lines for each persona."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from batos.care.mind_export import empty_folder
from batos.image import roots
from batos.image.records import TRUST
from batos.missions.readings import Readings
from batos.protocol.evidence_documents import PromptDocument
from batos.protocol.mission_documents import MissionDocument
from batos.protocol.motion_documents import TrainingReport
from batos.records import outcomes

#: Where the lines of a persona go, and its preferences.
LINES, PREFERENCES = "{}.jsonl", "{}.preferences.jsonl"
#: The trust class of an answer that rests on foreign text: such text never trains a persona.
_FOREIGN: Final = TRUST[-1]


class TrainingWish(NamedTuple):
    """The missions to take: of one user, of a persona (None: each), asked since a moment (ISO 8601, UTC)."""

    user: str
    persona: str | None = None
    since: str = ""


class _PersonaLine(NamedTuple):
    persona: str
    #: The calls of an answer as chat lines: a line to learn from, and pairs of a better and a worse answer.
    chat: Mapping[str, object]
    pairs: tuple[Mapping[str, object], ...]


def write_sets(readings: Readings, folder: Path, wish: TrainingWish) -> TrainingReport:
    """Write the lines of all personas to a folder that is empty.

    Raises: UsageError: the folder is not empty, or cannot be written.
    """
    lines, preferences, left_out = Counter[str](), Counter[str](), Counter[str]()
    with empty_folder(folder):
        for found in _read(readings, wish):
            if isinstance(found, str):
                left_out[found] += 1
                continue
            lines[found.persona] += 1
            _append(folder / LINES.format(found.persona.lower()), found.chat)
            for pair in found.pairs:
                preferences[found.persona] += 1
                _append(folder / PREFERENCES.format(found.persona.lower()), pair)
    return {"lines": dict(lines), "preferences": dict(preferences), "left_out": dict(left_out)}


def _append(path: Path, line: Mapping[str, object]) -> None:
    if not path.exists():
        path.touch(0o600)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _read(readings: Readings, wish: TrainingWish) -> Iterator[_PersonaLine | str]:
    """Yield the line of each mission that may be taken, the oldest first, else the reason why it is left out."""
    with readings.image.snapshot() as root:
        briefs = ((name, record.brief) for name, record in roots.records_of(root))
        names = [
            name for name, brief in briefs if brief.value.get("user") == wish.user and brief.accepted_at >= wish.since
        ]
    for name in names:
        mission = readings.mission(name)
        reason = _reason_against(mission)
        if reason:
            yield reason
            continue
        persona = mission["route"]["personas"][0]
        if wish.persona in (None, persona):
            yield _line_of(mission, readings.prompts(name)) or "its answer is of no call"


def _reason_against(mission: MissionDocument) -> str:
    """Return why a mission is left out; "" if it is not."""
    if mission["status"] != "done":
        return f"it is {mission['status']}"
    if mission["brief"].get("message") is not None or not isinstance(mission.get("answer"), str):
        return "it is no question"
    if not mission["provenance"]["gate"]["ok"]:
        return "the gate found a fault"
    if mission["trust"]["lineage"] == _FOREIGN:
        return "it rests on foreign text"
    outcome = outcomes.mean(mission.get("outcomes", ()))
    if outcome is not None and outcome < 0:
        return "a person did not take the answer"
    return ""


def _line_of(mission: MissionDocument, calls: list[PromptDocument]) -> _PersonaLine | None:
    """Return the line of a mission, and a pair for each withdrawn draft; None if no call is known to have led to it.

    The line has the call whose words are the answer, else the one whose draft a rule shortened to it.
    """
    answer, by_path = mission["answer"].strip(), {call["path"]: call for call in calls}
    drafted = [by_path[each["path"]] for each in mission["provenance"].get("withdrawn", ()) if each["path"] in by_path]
    final = next((call for call in reversed(calls) if _text_of(call) == answer), drafted[-1] if drafted else None)
    if final is None:
        return None
    about = {"mission": mission["id"], "model": final["model"]}
    chat = {"messages": [*final["messages"], {"role": "assistant", "content": answer}], **about}
    pairs = []
    for each in mission["provenance"].get("withdrawn", ()):
        call = by_path.get(each["path"])
        if call is not None and call["messages"] and each["text"].strip() != answer:
            pairs.append({"prompt": call["messages"], "chosen": answer, "rejected": each["text"].strip(), **about})
    return _PersonaLine(mission["route"]["personas"][0], chat, tuple(pairs))


def _text_of(call: PromptDocument) -> str:
    """Return the words of a plain call; "" of one that a schema formed, that failed, or whose words were erased."""
    response = call["response"]
    return str(response.get("text", "")).strip() if response and call["format"] is None else ""
