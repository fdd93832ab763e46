"""Training sets: only answers that passed, that a person did not refuse, and that rest on no foreign text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.history.test_as_of_past_questions import Door

from batos.care import training_sets
from batos.care.training_sets import TrainingWish, write_sets
from batos.protocol.brief import as_file
from batos.protocol.errors import UsageError
from batos.testing import ScriptedBridge, plain_reply, scripted_uvm
from batos.uvm import UVM

WISH = TrainingWish("tester")


def spoken() -> ScriptedBridge:
    """A bridge that says a sentence which needs no document."""
    return ScriptedBridge(lambda request: plain_reply(request) if request.schema else "Let us think about it together.")


async def ask(uvm: UVM, text: str = "Should we move to Ulm?", **brief: Any) -> dict[str, Any]:
    """The report of a mission that is done."""
    meant = {"text": text, "user": "tester", "effort": "reflex", "persona": "ROBIN", **brief}
    return dict(await uvm.missions.ask(meant))


def lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def test_a_line_is_the_call_whose_words_are_the_answer(tmp_path: Path) -> None:
    """With its exact prompt, its mission and its model, in a file of its persona that only its owner reads."""
    async with scripted_uvm(tmp_path / "home", spoken()) as uvm:
        first = await ask(uvm)
        await ask(uvm, effort="cycle", persona="BRICK")
        told = write_sets(uvm.readings, tmp_path / "sets", WISH)
        assert told["lines"] == {"ROBIN": 1, "BRICK": 1}
        (line,) = lines(tmp_path / "sets" / "robin.jsonl")
        (call,) = uvm.readings.prompts(first["id"])
        assert line["messages"] == [*call["messages"], {"role": "assistant", "content": first["answer"]}]
        assert (line["mission"], line["model"]) == (first["id"], call["model"])
        assert (tmp_path / "sets" / "robin.jsonl").stat().st_mode & 0o077 == 0


async def test_what_is_not_to_be_learnt_from_is_left_out(tmp_path: Path) -> None:
    """Undone and badly rated answers, those that rest on a file, another user's; those of another persona or time."""
    async with scripted_uvm(tmp_path / "home", spoken()) as uvm:
        door = Door(uvm)
        undone, bad, good = [await ask(uvm, f"Should we move to Ulm in {year}?") for year in (2027, 2028, 2029)]
        await door("undo", mission=undone["id"])
        await door("rate", mission=bad["id"], verdict="bad")
        await door("rate", mission=good["id"], verdict="good")
        brief = {"text": "Who cries?", "user": "tester", "effort": "reflex", "persona": "ROBIN"}
        await uvm.missions.ask(brief, [as_file("gulls.txt", b"Gulls cry.")])
        await ask(uvm, user="bob")
        told = write_sets(uvm.readings, tmp_path / "sets", WISH)
        assert [each["mission"] for each in lines(tmp_path / "sets" / "robin.jsonl")] == [good["id"]]
        assert told["left_out"]["it is undone"] == 1
        assert told["left_out"]["a person did not take the answer"] == 1
        assert sum(told["left_out"].values()) == 3
        assert write_sets(uvm.readings, tmp_path / "others", WISH._replace(persona="BABS"))["lines"] == {}
        assert write_sets(uvm.readings, tmp_path / "later", WISH._replace(since="2999"))["lines"] == {}


async def test_a_draft_that_was_withdrawn_is_the_worse_of_a_pair(tmp_path: Path) -> None:
    """Under the prompt of its call; where a rule shortened the draft, that call is the line's too."""
    async with scripted_uvm(tmp_path / "home", spoken()) as uvm:
        told = uvm.readings.mission((await ask(uvm))["id"])
        (call,) = uvm.readings.prompts(told["id"])
        draft = f"{told['answer']} Whales sing."
        told["provenance"]["withdrawn"] = [{"path": call["path"], "reason": "it rests on nothing", "text": draft}]
        call["response"] = {"text": draft}
        line = training_sets._line_of(told, [call])
        assert line is not None
        (pair,) = line.pairs
        assert (pair["prompt"], pair["chosen"], pair["rejected"]) == (call["messages"], told["answer"], draft)
        assert line.chat["messages"] == [*call["messages"], {"role": "assistant", "content": told["answer"]}]
        call["response"], told["provenance"]["withdrawn"] = None, []
        assert training_sets._line_of(told, [call]) is None


async def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    """Nothing is written over."""
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "mine.txt").write_text("mine")
    async with scripted_uvm(tmp_path / "home", spoken()) as uvm:
        with pytest.raises(UsageError, match="not empty"):
            write_sets(uvm.readings, tmp_path / "sets", WISH)
