"""A mind that begins with the worst values of a sweep, learns, and is measured: on a scripted model of known truth."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from batos.autotelic.heartbeat import Expense
from batos.testing import ScriptedBridge, plain_reply, scripted_uvm
from batos.uvm import UVM
from motion_learning_side import lower_bound, run
from motion_real_side import Class, asker_of, list_questions, put_questions
from tasks_arms_side import remember_folder
from tasks_data_side import KeptLines, TaskData

#: A document of each part (judge, propose, sealed): its sentence, and the word that is right.
DOCUMENTS = {
    "lamp.md": ("The lamp of the lighthouse is amber.", "amber"),
    "pier.md": ("The planks of the pier are of oak.", "oak"),
    "mole.md": ("The stones of the mole are granite.", "granite"),
}
#: Enough questions to show that as many missions end as before.
MANY = 85


class DullModel(ScriptedBridge):
    """A model that comes to the point where repetition is penalised."""

    def __init__(self) -> None:
        super().__init__(self.reply)
        self.calls = 0

    def reply(self, request: Any) -> str:
        """Say the right word, or another."""
        self.calls += 1
        if request.schema:
            return plain_reply(request)
        asked = request.messages[-1]["content"]
        said = next((text for name, (text, _) in DOCUMENTS.items() if name.removesuffix(".md") in asked), "Gulls cry.")
        return said if request.options.get("repeat_penalty") != 1.0 else "Gulls cry over the harbour."


def _data() -> TaskData:
    """A document of each part, with questions."""
    tasks = [
        {
            "id": f"{name}-{number}", "kind": "lookup", "language": "en", "files": [name], "before": [],
            "question": f"{number}: what is told of {text.partition(' is ')[0].partition(' are ')[0]}?",
            "expected": text, "checks": [{"type": "all_of", "items": [right]}],
        }
        for name, (text, right) in DOCUMENTS.items() for number in range(MANY)
    ]  # fmt: skip
    return TaskData(tasks, {name: f"{text}\n" for name, (text, _) in DOCUMENTS.items()})


async def _learn(uvm: UVM, results: Path, calls: int, nights: int = 1) -> dict[str, Any]:
    """Let a mind learn with so many calls at most."""
    data = _data()
    await remember_folder(uvm, data.documents, vectors=False)
    items = list_questions(data, uvm.settings.asker)
    await uvm.image.shared.apply(lambda root: put_questions(root, items))
    asker = asker_of(uvm, KeptLines(results), ["scripted"], calls)
    of = Class(uvm, asker, items, {each["question"]: each for each in data.tasks})
    return await run(of, nights, 4, Expense(math.inf, 600, 10**9))


@pytest.mark.slow
async def test_a_mind_that_begins_badly_learns_to_do_better(tmp_path: Path) -> None:
    """The sweep finds the worst value, a trial keeps another, as sealed questions show."""
    results, model = tmp_path / "results.jsonl", DullModel()
    async with scripted_uvm(tmp_path / "one", model) as uvm:
        found = await _learn(uvm, results, 0)
    assert (found["ended"], found["start"], found["best_fixed"]) == ("whole", 0.0, 1.0)
    assert (found["end"], found["frozen"], found["of_the_way"]) == (1.0, 0.0, 1.0)
    assert found["lower_bound"] == 1.0
    assert [(each["lever"], each["effect"]) for each in found["kept"]] == [("mind.repeat_penalty", 1.0)]
    assert found["calls"] == found["calls_made"] > 0


async def test_a_run_ends_after_its_calls_and_another_goes_on_from_there(tmp_path: Path) -> None:
    """What was not measured has no figure; what was answered is not asked again, in another home either."""
    model = DullModel()
    for home, calls in (("one", 5), ("two", 10)):
        async with scripted_uvm(tmp_path / home, model) as uvm:
            found = await _learn(uvm, tmp_path / "results.jsonl", 5)
        assert (found["ended"], found["calls_made"], found["calls"]) == ("sweep", 5, calls)
        assert (found["start"], found["end"]) == (None, None)
    assert len((tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()) == 10


async def test_a_model_that_no_value_changes_has_nothing_to_learn(tmp_path: Path) -> None:
    """The run says so, before any night."""
    async with scripted_uvm(tmp_path / "one", ScriptedBridge()) as uvm:
        found = await _learn(uvm, tmp_path / "results.jsonl", 0)
    assert (found["ended"], found["start"], found["end"]) == ("nothing to learn", found["best_fixed"], None)


@pytest.mark.parametrize(("differences", "bound"), [([0.5] * 9, 0.5), ([0.0], 0.0), ([-1.0, -1.0], -1.0)])
def test_the_lower_bound_of_equal_differences_is_their_value(differences: list[float], bound: float) -> None:
    """Nothing is left to chance there."""
    assert lower_bound(differences) == bound
    assert lower_bound([0.0, 1.0] * 20) < 0.5
