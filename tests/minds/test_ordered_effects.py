"""Orders in a question are carried out: the effect is staged with its exact arguments, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.agency.acting import Acting, acting

from batos.inference.ollama.bridge import ChatRequest
from batos.protocol.errors import BatosError
from batos.testing import ScriptedBridge


class Answering:
    """A model that answers everything alike, and names a file `pier notes` where it is asked for one."""

    def __init__(self, grant: str = "notes") -> None:
        self.asked: list[str] = []
        self.grant = grant

    def __call__(self, request: ChatRequest) -> str | BatosError:
        """Answer, by the schema where there is one."""
        self.asked.append(request.messages[-1]["content"])
        wanted: Any = (request.schema or {}).get("properties", {})
        if "file" in wanted or "grant" in wanted:
            told = {"file": '"pier notes"', "grant": f'"{self.grant}"'}
            return "{" + ", ".join(f'"{name}": {told[name]}' for name in wanted) + "}"
        return "Oak piles hold it."


async def ask(mind: Acting, text: str, **fields: Any) -> dict[str, Any]:
    """One question as a reflex, and its effects once they were released."""
    brief = {"text": text, "persona": "BRICK", "effort": "reflex", "user": "tester", "grants": ["notes"], **fields}
    answer = await mind.uvm.missions.ask(brief)
    await mind.uvm.releaser.release_all()
    return {**answer, "effects": (await mind.ask("effects", mission=answer["id"]))["effects"]}


async def test_the_first_example_of_the_docs_works_as_written(tmp_path: Path) -> None:
    """A question that orders to note something down, with a grant of a folder."""
    model = Answering()
    async with acting(tmp_path, bridge=ScriptedBridge(model), memory=False) as mind:
        told = await ask(mind, "Note down what holds a pier.")
        assert told["answer"] == "Oak piles hold it."
        (effect,) = told["effects"]
        assert (effect["state"], effect["arguments"]) == (
            "released", {"path": "notes.txt", "text": "Oak piles hold it.\n"},
        )  # fmt: skip
        assert mind.lines("notes.txt") == ["Oak piles hold it."]
        assert "What holds a pier?" in model.asked[0]
        assert "Your answer will be appended to notes.txt" in model.asked[0]
        assert "Note down" not in model.asked[0]
        again = await ask(mind, "Note down what holds a pier.", ancestor=told["id"])
        assert (again["effects"], mind.lines("notes.txt")) == ([], ["Oak piles hold it."])


@pytest.mark.parametrize(
    ("text", "file", "lines"),
    [
        ("What holds a pier? Write it to piers.md.", "piers.md", "Oak piles hold it.\n"),
        ("What holds a pier? Save the answer in a new file called piers.md.", "piers.md", "Oak piles hold it."),
        ("Was hält einen Pier? Häng die Antwort an log.txt an.", "log.txt", "Oak piles hold it.\n"),
        ('Append "Buy milk" to shopping.txt', "shopping.txt", "Buy milk\n"),
        ("Note down that my dentist is Dr. Kay.", "notes.txt", "My dentist is Dr. Kay.\n"),
        ("What holds a pier? Save it in a file.", "pier_notes.txt", "Oak piles hold it.\n"),
    ],
)
async def test_what_is_ordered_is_done_with_what_was_said(tmp_path: Path, text: str, file: str, lines: str) -> None:
    """By the names and words of the person; a name that is missing is asked for once."""
    async with acting(tmp_path, bridge=ScriptedBridge(Answering()), memory=False) as mind:
        told = await ask(mind, text)
        assert [each["state"] for each in told["effects"]] == ["released"]
        assert (mind.folder / file).read_text() == lines


@pytest.mark.parametrize(
    "text", ["What holds a pier?", "How do I write to log.txt?", "Don't write it to log.txt. What holds a pier?"]
)
async def test_a_question_that_orders_nothing_stages_nothing(tmp_path: Path, text: str) -> None:
    """And its prompts say nothing of its grants, nor does that of an order without a grant."""
    model = Answering()
    async with acting(tmp_path, bridge=ScriptedBridge(model), memory=False) as mind:
        assert (await ask(mind, text))["effects"] == []
        assert (await ask(mind, "What holds a pier? Write it to log.txt.", grants=None))["effects"] == []
        assert not any("Your answer will be" in each for each in model.asked)
        assert list(mind.folder.iterdir()) == []


async def test_the_words_of_a_person_need_no_model(tmp_path: Path) -> None:
    """The answer quotes them; nothing is remembered of it beside what the person said."""
    model = Answering()
    async with acting(tmp_path, bridge=ScriptedBridge(model)) as mind:
        told = await ask(mind, 'Append "Buy milk" to shopping.txt')
        assert (told["answer"], model.asked) == ("shopping.txt: “Buy milk”", [])
        assert told["effects"][0]["state"] == "released"


async def test_a_further_question_beside_a_note_is_answered(tmp_path: Path) -> None:
    """The note has the person's words, and not the answer."""
    async with acting(tmp_path, bridge=ScriptedBridge(Answering()), memory=False) as mind:
        told = await ask(mind, "Note down that the pier is closed. What holds a pier?")
        assert (told["answer"], mind.lines("notes.txt")) == ("Oak piles hold it.", ["The pier is closed."])


async def test_that_is_the_answer_before(tmp_path: Path) -> None:
    """In a conversation; without one there is nothing to be written, and that is said."""
    async with acting(tmp_path, bridge=ScriptedBridge(Answering()), memory=False) as mind:
        first = await ask(mind, "What holds a pier?", conversation="new")
        await ask(mind, "Save that to log.txt", conversation=first["brief"]["conversation"])
        assert mind.lines() == ["Oak piles hold it."]
        alone = await ask(mind, "Save that to log.txt")
        assert (alone["effects"], mind.lines()) == ([], ["Oak piles hold it."])
        assert "no text" in alone["provenance"]["rules"][0]["why"]


async def test_a_place_that_no_effect_may_touch_is_told(tmp_path: Path) -> None:
    """The answer stands, nothing is staged, and the mission's rules say why."""
    async with acting(tmp_path, bridge=ScriptedBridge(Answering()), memory=False) as mind:
        told = await ask(mind, "What holds a pier? Write it to .ssh/log.txt.")
        assert (told["status"], told["effects"]) == ("done", [])


async def test_of_several_grants_the_model_picks_one(tmp_path: Path) -> None:
    """By an enum; a grant that is named needs no call."""
    (tmp_path / "other").mkdir()
    model = Answering("journal")
    async with acting(tmp_path, bridge=ScriptedBridge(model), memory=False) as mind:
        await mind.ask("grants_add", kind="file", target=str(tmp_path / "other"), name="journal", user="tester")
        both = {"grants": ["notes", "journal"]}
        await ask(mind, "What holds a pier? Write it to log.txt.", **both)
        assert (tmp_path / "other" / "log.txt").read_text() == "Oak piles hold it.\n"
        calls = len(model.asked)
        await ask(mind, 'Add "Buy milk" to my notes', **both)
        assert mind.lines("pier_notes.txt") == ["Buy milk"]
        assert len(model.asked) == calls + 1
