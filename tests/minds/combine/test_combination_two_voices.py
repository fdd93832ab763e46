"""The answers of two voices: joined, alone where the other has none or says the same, or each under its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
from tests.minds.conftest import Mind
from tests.minds.duets import OIL, WINDING, Voices, is_join, silence, speak
from tests.minds.scripted import BAD, GOOD, submit

from batos.cli.render.mission import notes_text
from batos.minds.combine.combination import say_the_same
from batos.protocol.errors import BatosError, OllamaUnreachable, Runaway, StreamCut
from batos.protocol.mission_documents import MissionDocument


@pytest.mark.parametrize("error", [lambda: Runaway("blanks", 9), lambda: StreamCut("cut")])
async def test_where_one_voice_has_nothing_the_other_answers(
    duet: tuple[Mind, Voices], error: Callable[[], BatosError]
) -> None:
    """Its words stand as they are, without the call that would join them, and who was silent is told."""
    mind, voices = duet
    first, second = map(str.lower, (await speak(mind))["route"]["personas"])
    mind.bridge.history.clear()
    silence(voices, (first,), error)
    shown = await speak(mind)
    assert shown["answer"] == WINDING
    assert not any(is_join(request) for request in mind.bridge.history)
    assert shown["provenance"]["combined"]["winner"]["slot"] == second
    assert "failure" in shown["voices"][0]


async def test_what_the_voices_said_is_not_paid_again(duet: tuple[Mind, Voices]) -> None:
    """A mission that ends before the call that joins them is asked again: the two answers are in the journal."""
    mind, voices = duet
    voices.joined = OllamaUnreachable("gone")
    mission = await submit(mind.uvm, persona=None)
    with pytest.raises(OllamaUnreachable):
        await mind.uvm.missions.run(mission)
    voices.joined = f"{WINDING} {OIL}"
    shown = await speak(mind, ancestor=mission)
    assert shown["answer"] == voices.joined
    assert shown["cost"]["from_journal"] == 2
    assert [is_join(request) for request in mind.bridge.history] == [False, False, True, True]


async def test_where_both_have_nothing_a_rule_quotes_the_evidence(duet: tuple[Mind, Voices]) -> None:
    """As in a cycle: the sentences that bear most on the question, quoted."""
    mind, voices = duet
    silence(voices, ("robin", "brick", "babs", "alfred"), lambda: Runaway("blanks", 9))
    shown = await speak(mind)
    assert shown["status"] == "done"
    assert shown["answer"].startswith("> The keeper winds the clockwork")
    assert shown["provenance"]["combined"]["ruled"] == "no part had an answer"


async def test_where_both_say_the_same_nothing_is_joined(duet: tuple[Mind, Voices]) -> None:
    """The same in another order is the same: two calls."""
    mind, voices = duet
    voices.joined = "This must not be asked."
    voices.said = dict.fromkeys(("robin", "brick", "babs", "alfred"), GOOD)
    shown = await speak(mind)
    assert shown["cost"]["calls"] == 2
    assert shown["answer"] == GOOD
    assert shown["provenance"]["combined"]["decided"] == "alike"
    assert "combined both voices said nearly the same: the answer of" in notes_text(
        cast("MissionDocument", shown), voices=False
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (WINDING, f"{WINDING} {OIL}", True),
        ("You could sell the boat and rent a smaller one.", "Sell the boat, and then rent one that is smaller.", True),
        ("The lamp was lit in 1887.", "The lamp was lit in 1888.", False),
        ("Yes, sell the boat this spring.", "No, sell the boat never this spring.", False),
        (WINDING, OIL, False),
    ],
)
def test_voices_that_say_the_same_are_one(one: str, other: str, same: bool) -> None:
    """Whichever speaks first: the words of the shorter one stand in the other, and no number or answer differs."""
    asked = "What would you do about it?"
    assert say_the_same(one, other, asked) is say_the_same(other, one, asked) is same


async def test_a_join_of_no_use_leaves_the_better_voice(duet: tuple[Mind, Voices]) -> None:
    """What the voices said is paid for."""
    mind, voices = duet
    voices.joined = Runaway("blanks", 9)
    shown = await speak(mind)
    assert shown["answer"] in (WINDING, OIL)
    assert [each["decision"] for each in mind.told("mission.rule")] == ["weave"]


@pytest.mark.parametrize(
    ("joined", "stands"), [("Anna Lund sleeps.", WINDING), (f"{WINDING} {OIL}", f"{WINDING} {OIL}")]
)
async def test_a_small_models_join_may_not_lose_the_better_voice(
    duet: tuple[Mind, Voices], joined: str, stands: str
) -> None:
    """An answer that has little left of the better voice's words does not stand; that voice does, and it is told."""
    mind, voices = duet
    mind.bridge.rows = {name: replace(row, parameter_size="135M") for name, row in mind.bridge.rows.items()}
    await mind.uvm.readiness.genesis()
    voices.joined = joined
    shown = await speak(mind)
    assert shown["answer"] == stands
    assert [each["decision"] for each in mind.told("mission.rule")] == ["weave"] * (joined != stands)
    assert ("ruled" in shown["provenance"]["combined"]) == (joined != stands)


async def test_where_no_document_decides_both_stand(duet: tuple[Mind, Voices]) -> None:
    """A join of no use leaves both texts under their names: nothing says which of them is the better one."""
    mind, voices = duet
    voices.joined = Runaway("blanks", 9)
    shown = await speak(mind, files=())
    (first, one), (second, other) = ((voice["name"], voice["answer"]) for voice in shown["voices"])
    assert shown["answer"] == f"{first}:\n\n{one}\n\n{second}:\n\n{other}"
    assert shown["provenance"]["changes"][-1]["what"].startswith("failed, so both answers stand: ")
    assert "by rule  both answers, each under its name: " in notes_text(cast("MissionDocument", shown), voices=False)


async def keep_apart(mind: Mind, file: str = "mind.toml") -> None:
    """Let the codex ask for two voices, at the top of this file."""
    path = mind.uvm.settings.home / "codex" / file
    path.write_text(f'answer_form = "two_voices"\n{path.read_text(encoding="utf-8")}', encoding="utf-8")


async def test_a_codex_may_keep_both_voices(duet: tuple[Mind, Voices]) -> None:
    """Each text stands under its name, as it was said: two calls, whatever the gate finds and no protocol after it."""
    mind, voices = duet
    await keep_apart(mind)
    voices.texts = (BAD, OIL)
    shown = await speak(mind)
    (first, one), (second, other) = ((voice["name"], voice["answer"]) for voice in shown["voices"])
    assert shown["answer"] == f"{first}:\n\n{one}\n\n{second}:\n\n{other}"
    assert shown["cost"]["calls"] == 2
    assert shown["provenance"]["combined"]["mode"] == "voices"
    assert not shown["provenance"]["gate"]["revised"]
    assert "".join(each["text"] for each in mind.told("mission.token")) == shown["answer"]


async def test_a_persona_has_an_answer_form_of_its_own(duet: tuple[Mind, Voices]) -> None:
    """The form of whoever leads holds, and one who leads with another form has the other."""
    mind, _ = duet
    first, second = map(str.lower, (await speak(mind))["route"]["personas"])
    await keep_apart(mind, f"{second}.toml")
    assert (await speak(mind))["cost"]["calls"] == 3
    await keep_apart(mind, f"{first}.toml")
    assert (await speak(mind))["cost"]["calls"] == 2
    assert (await speak(mind, policy={"combine": "weave"}))["cost"]["calls"] == 3


@pytest.mark.parametrize(("combine", "calls"), [("weave", 3), ("select", 4), ("vote", 4)])
async def test_the_asker_may_combine_otherwise(duet: tuple[Mind, Voices], combine: str, calls: int) -> None:
    """Two voices compete as facets do: two calls choose between them."""
    mind, _ = duet
    shown = await speak(mind, policy={"combine": combine})
    assert shown["cost"]["calls"] == calls
