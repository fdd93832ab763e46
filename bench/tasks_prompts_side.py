"""Tells what the prompt of a reflex holds of a task's documents, which needs no model that understands it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batos.memory.segmentation import sentence_spans
from batos.uvm import UVM
from report import Goal
from tasks_arms_side import BareModel, MissionHome
from tasks_data_side import FOLDER
from tasks_side import Task, content_of

#: The share of what the documents hold that a prompt is to hold: where they fit, and where a folder is remembered.
FITTING, REMEMBERED = 0.97, 0.9


@dataclass(frozen=True, slots=True)
class FoundPrompt:
    """The figures of one prompt; the contents are None where a task has no checks that a text can hold."""

    kind: str
    fits: bool
    shown: float
    prompt_content: float | None
    document_content: float | None


def words_of(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def shown_share(texts: Iterable[str], prompt: str) -> float:
    """Return the share of the characters of texts whose sentence stands in a prompt; a line break ends a sentence.

    >>> shown_share(["It rains. The lamp burns.\\nNo wind."], "Text:\\nThe lamp  burns.")
    0.4839
    """
    folded = words_of(prompt)
    parts = [words_of(line[start:end]) for text in texts for line in text.splitlines() for start, end in spans(line)]
    held = sum(len(each) for each in parts if each in folded)
    return round(held / max(1, sum(map(len, parts))), 4)


def spans(line: str) -> Sequence[tuple[int, int]]:
    """Return the places of the sentences of a line, the line as a whole where it has none."""
    return sentence_spans(line) or ([(0, len(line))] if line.strip() else [])


def prompt_of(uvm: UVM, mission: str) -> str:
    """Return what the model was told in the first call of a mission, without what it said before; "" without a call."""
    calls = [each["messages"] for each in uvm.readings.prompts(mission) if each.get("messages")]
    told = [each["content"] for each in (calls[0] if calls else ()) if each["role"] != "assistant"]
    return "\n".join(told)


async def look_at_prompt(home: MissionHome, task: Task, bare: BareModel) -> FoundPrompt:
    """Ask a task by reflex, and compare the prompt of its last turn with the task's documents."""
    files = home.data.files_of(task)
    asked = await home.ask(task, "reflex")
    prompt, document = prompt_of(home.uvm, asked.mission), "\n\n".join(files.values())
    fits = task["kind"] == FOLDER or len(await bare.fit(files)) == len(files)
    return FoundPrompt(
        task["kind"],
        fits,
        shown_share(files.values(), prompt),
        content_of(task, prompt),
        content_of(task, document),
    )


def prompt_figures(found: Sequence[FoundPrompt]) -> dict[str, Any]:
    """Return the figures by kind, of tasks whose files fit and of the others (`beyond`)."""
    kinds: defaultdict[tuple[bool, str], list[FoundPrompt]] = defaultdict(list)
    for each in found:
        kinds[each.fits, each.kind].append(each)
    return {
        name: {kind: _mean(rows) for (fits, kind), rows in sorted(kinds.items()) if fits is wanted}
        for name, wanted in (("by_kind", True), ("beyond", False))
    }


def _mean(rows: Sequence[FoundPrompt]) -> dict[str, Any]:
    held = [(each.prompt_content, each.document_content) for each in rows]
    pairs = [(one, other) for one, other in held if one is not None and other is not None]
    document = sum(other for _, other in pairs)
    return {
        "n": len(rows),
        "shown": round(sum(each.shown for each in rows) / len(rows), 4),
        "prompt_content": round(sum(one for one, _ in pairs) / len(pairs), 4) if pairs else None,
        "document_content": round(document / len(pairs), 4) if pairs else None,
        # The words of the question are in the prompt too: of no task does it hold more than its documents do.
        "kept": round(sum(map(min, pairs)) / document, 4) if document else None,
    }


def prompt_goals(by_kind: Mapping[str, Mapping[str, Any]]) -> list[Goal]:
    """Return for each kind the goal of the share of the documents' content that its prompts hold."""
    rows = [(kind, row["kept"]) for kind, row in by_kind.items() if row["kept"] is not None]
    return [
        Goal(f"kept by prompts: {kind}", kept, REMEMBERED if kind == FOLDER else FITTING, "at_least")
        for kind, kept in rows
    ]
