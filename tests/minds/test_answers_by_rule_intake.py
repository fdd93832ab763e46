"""What a person only tells is noted without a call; what they feel, want or ask is answered by the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from batos.image import roots
from batos.memory.exchanges import FORGETS, NOTED
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

FELT = "I failed my driving test today and feel awful."


async def tell(uvm: UVM, text: str, **brief: Any) -> Mapping[str, Any]:
    """Ask, and wait until it is remembered."""
    mission = await uvm.missions.ask({"text": text, "effort": "reflex", **brief})
    await uvm.mission_memory.write()
    return mission


def remembered(uvm: UVM) -> list[str]:
    """Return the titles of all memories, the oldest first."""
    with uvm.image.snapshot() as root:
        return [each.title for _, each in sorted(root[roots.DOCUMENTS].items())]


@pytest.mark.parametrize("effort", ["reflex", "cycle", "council"])
async def test_a_fact_is_noted_and_says_what_it_takes_the_place_of(tmp_path: Path, effort: str) -> None:
    """No call is made; what it says is remembered, and the note is not."""
    bridge = ScriptedBridge.saying("Nice to know.")
    async with scripted_uvm(tmp_path, bridge) as uvm:
        first = await tell(uvm, "My sister lives in Bremen.", effort=effort)
        bridge.history.clear()
        second = await tell(uvm, "My sister moved to Hamburg.", effort=effort)
        assert bridge.history == []
        assert remembered(uvm) == ["My sister lives in Bremen.", "My sister moved to Hamburg."]
        with uvm.image.snapshot() as root:
            old = next(iter(sorted(root[roots.DOCUMENTS])))
    assert first["answer"] == "Noted: “My sister lives in Bremen.”"
    lines = second["answer"].splitlines()
    assert lines[0] == "Noted: “My sister moved to Hamburg.”"
    assert lines[1].startswith("This takes the place of: “My sister lives in Bremen.” (")
    assert old in lines[1]
    assert (second["cost"]["calls"], second["provenance"]["combined"]["ruled"]) == (0, NOTED)
    assert second["provenance"]["gate"]["faults"] == []


async def test_what_took_the_place_is_what_holds(tmp_path: Path) -> None:
    """The earlier statement is marked as the answer said."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying("In Hamburg.")) as uvm:
        await tell(uvm, "Meine Schwester wohnt in Bremen.")
        told = await tell(uvm, "Meine Schwester ist nach Hamburg gezogen.")
        assert (
            told["answer"].splitlines()[1].startswith("Das ersetzt: „" if "„" in told["answer"] else "Das ersetzt: “")
        )
        asked = await tell(uvm, "Where does meine Schwester wohnen, in Bremen oder Hamburg?")
    standing = {each["name"]: each.get("standing", "") for each in asked["provenance"]["recalled"]}
    assert not any("superseded" in each for name, each in standing.items() if "Hamburg" in name)
    assert all("superseded" in each for name, each in standing.items() if "Bremen" in name)


@pytest.mark.parametrize(
    "text",
    [
        FELT,
        "My laptop does not start any more.",
        "I wish I had more time for my children.",
        "Write a note to my sister in Hamburg.",
        "My rent is 900 euros, and I cannot pay it.",
        "Where does my sister live?",
        "My sister moved to Hamburg. What should I send her?",
    ],
)
async def test_anything_else_is_answered_by_the_model(tmp_path: Path, text: str) -> None:
    """Whole, and in one call."""
    bridge = ScriptedBridge.saying("That is hard, and it will pass.")
    async with scripted_uvm(tmp_path, bridge) as uvm:
        bridge.history.clear()
        mission = await tell(uvm, text)
        assert text in bridge.history[-1].messages[-1]["content"]
        assert mission["answer"] == "That is hard, and it will pass."


async def test_a_text_that_is_said_again_is_not_its_own_evidence(tmp_path: Path) -> None:
    """Nor is the answer that it had."""
    bridge = ScriptedBridge.saying("That is hard, and it will pass.")
    async with scripted_uvm(tmp_path, bridge) as uvm:
        await tell(uvm, FELT)
        again = await tell(uvm, FELT)
        assert again["provenance"]["recalled"] == []
        asked = await tell(uvm, "Which test did I fail, the driving test?")
        assert {each["name"] for each in asked["provenance"]["recalled"]} == {FELT}


async def test_a_text_with_a_file_or_after_a_question_is_not_noted(tmp_path: Path) -> None:
    """It may be the answer to what was asked; where nothing is to be remembered, nothing is noted."""
    bridge = ScriptedBridge.saying("Where do you live?")
    async with scripted_uvm(tmp_path, bridge) as uvm:
        first = await tell(uvm, "Recommend me a museum nearby.", conversation="new")
        told = await tell(uvm, "I live in Ulm.", conversation=first["brief"]["conversation"])
        unremembered = await tell(uvm, "I live in Ulm.", policy={"memory": "none"})
        assert [each["cost"]["calls"] for each in (told, unremembered)] == [1, 1]


async def test_an_order_to_forget_is_offered_and_not_done(tmp_path: Path) -> None:
    """With the command that forgets what says it; the order itself is remembered as nothing."""
    bridge = ScriptedBridge.saying("I am sorry.")
    async with scripted_uvm(tmp_path, bridge) as uvm:
        await tell(uvm, "My cat is called Miso.")
        (name,) = _names(uvm)
        bridge.history.clear()
        told = await tell(uvm, "Forget that my cat is called Miso.")
        none = await tell(uvm, "Please forget that my dog is called Rex the Third.")
        assert bridge.history == []
        assert _names(uvm) == [name]
        assert remembered(uvm) == ["My cat is called Miso."]
    assert told["answer"].splitlines() == [
        f"Nothing is forgotten yet. To forget it: `batos forget {name}`",
        f"- `{name}`: “My cat is called Miso.”",
    ]
    assert none["answer"] == "Nothing that is remembered says this, so there is nothing to forget."
    assert told["provenance"]["combined"]["ruled"] == FORGETS
    assert told["provenance"]["gate"]["faults"] == none["provenance"]["gate"]["faults"] == []


@pytest.mark.parametrize(
    ("said", "order"),
    [
        ("Meine Katze heißt Miso.", "Vergiss bitte, dass meine Katze Miso heißt."),
        ("Mon chat s'appelle Miso.", "Oublie que mon chat s'appelle Miso."),
        ("Mi gato se llama Miso.", "Olvida que mi gato se llama Miso."),
        ("Il mio gatto si chiama Miso.", "Dimentica che il mio gatto si chiama Miso."),
        ("O meu gato chama-se Miso.", "Esquece que o meu gato se chama Miso."),
        ("Mijn kat heet Miso.", "Vergeet dat mijn kat Miso heet."),
        ("Мою кошку зовут Мисо.", "Забудь, что мою кошку зовут Мисо."),
        ("我的猫叫米索。", "请忘记我的猫叫米索。"),
        ("私の猫はミソといいます。", "私の猫がミソということを忘れてください。"),
    ],
)
async def test_orders_to_forget_are_known_in_other_languages(tmp_path: Path, said: str, order: str) -> None:
    """The answer names the memory."""
    async with scripted_uvm(tmp_path) as uvm:
        await tell(uvm, said)
        (name,) = _names(uvm)
        told = await tell(uvm, order)
        assert f"`batos forget {name}`" in told["answer"]
        assert _names(uvm) == [name]


def _names(uvm: UVM) -> list[str]:
    with uvm.image.snapshot() as root:
        return sorted(root[roots.DOCUMENTS])
