"""What a method asks of its mission: the model in bounds, what is remembered as evidence, and the log as data."""

from __future__ import annotations

from typing import Any

import pytest
import structlog
from tests.methods.execution.method_mind import MethodMind
from tests.minds.scripted import ask

from batos.memory.evidence import Evidence, Passage, Summary, Turn
from batos.methods.execution import primitives, resolution
from batos.protocol.brief import as_file
from batos.protocol.errors import ObjectError

FILLING = ("Nothing else is known of it. " * 30).strip()
#: More paragraphs than a question's recall takes; the last is found by its own word alone.
LOG = as_file(
    "log.txt",
    "\n\n".join(f"The {n}. barrel holds oil. {FILLING}" for n in range(40)).encode() + b"\n\nA hawser weighs 8,800 g.",
)


async def test_what_a_method_recalls_is_evidence_of_the_mission(mind: MethodMind) -> None:
    """It is told in provenance behind what the mission recalled, and an answer may rest on it and cite it."""

    def recalled(shown: dict[str, Any]) -> list[dict[str, Any]]:
        return [each for each in shown["provenance"]["recalled"] if "document" in each]

    first = await ask(mind.uvm, "How heavy is it?", (LOG,))
    before = recalled(first)
    await mind.learn(
        tamland_facet_="""
        async def tamland_facet_(self, query):
            found = await self.recall_("hawser", 1400)
            return found[0].partition(": ")[2]
        """
    )
    mind.script.woven = mind.script.revised = "A hawser weighs 8,800 g."
    shown = await ask(mind.uvm, "How heavy is it?", (LOG,), ancestor=first["id"])
    assert shown["voices"][0]["answer"].endswith("A hawser weighs 8,800 g.")
    assert [each["document"] for each in recalled(shown)] == list(range(1, len(before) + 2))
    assert shown["provenance"]["gate"]["ok"], shown["provenance"]["gate"]
    assert shown["provenance"]["citations"]
    assert shown["trust"]["lineage"] == "external"


def test_evidence_is_joined_without_doubles() -> None:
    """Passages by their place, numbered on behind; turns and summaries as they are."""
    one, two, three = (Passage(1, "a", "x", start, "t") for start in (0, 10, 20))
    turn, summary = Turn("m-1", "?", "!", "user"), Summary(1, 2, "s", "model")
    first = Evidence((one,), (turn,), view=(summary,))
    joined = first.merge([Evidence((one, two)), Evidence((two, three), (turn,), view=(summary,))])
    assert [(each.number, each.start) for each in joined.passages] == [(1, 0), (2, 10), (3, 20)]
    assert (joined.turns, joined.view) == ((turn,), (summary,))
    assert first.merge([]) == first


def test_what_is_remembered_is_texts() -> None:
    """Passages with the name of their file, then summaries, then exchanges."""
    found = Evidence(
        (Passage(1, "a.txt", "x", 0, "text"),), (Turn("m", "q", "a", "user"),), view=(Summary(1, 2, "s", "user"),)
    )
    assert primitives.recalled_texts(found) == ["a.txt: text", "s", "q\na"]


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        (["p"], {}, ("p", None, {})),
        (["p", "s"], {"top_k": 4}, ("p", "s", {"top_k": 4})),
        ([], {"prompt": "p", "system": None, "temperature": 0, "seed": None}, ("p", None, {"temperature": 0})),
    ],
)
def test_a_question_as_methods_write_it(args: list[Any], kwargs: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """A prompt, a system if there is one, and options; one that is None is not set."""
    found = primitives.parse_question(args, kwargs)
    assert (found.prompt, found.system, dict(found.options)) == expected


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ([], {}),
        ([" "], {}),
        ([["p"]], {}),
        (["p", 1], {}),
        (["p", "s", "t"], {}),
        (["p"], {"prompt": "q"}),
        (["p"], {"format": "json"}),
        (["p"], {"seed": 1.5}),
        (["p"], {"seed": True}),
        (["p"], {"top_p": 1.1}),
        (["p"], {"temperature": "hot"}),
        (["p" * (primitives.LONGEST_PROMPT + 1)], {}),
        (["p", "s" * (primitives.LONGEST_PROMPT + 1)], {}),
    ],
)
def test_a_question_that_is_none_is_refused(args: list[Any], kwargs: dict[str, Any]) -> None:
    """By name, before anything is asked."""
    with pytest.raises(ObjectError, match="infer_"):
        primitives.parse_question(args, kwargs)


async def test_lines_of_the_log_are_data_and_bounded(mind: MethodMind) -> None:
    """A long line is cut, and of too many the rest is left out."""
    await mind.learn(
        talk_="""
        def talk_(self):
            self.log_("info", "x" * 5000)
            for number in range(150):
                self.log_("info", f"line {number}")
        """
    )
    with structlog.testing.capture_logs() as lines:
        await mind.send("talk_")
    said = [each for each in lines if each["event"] == "object"]
    assert len(said) == resolution.MOST_LINES
    assert len(said[0]["text"]) == resolution.LONGEST_LINE
    assert said[1] == {
        "event": "object", "log_level": "info", "mission": said[0]["mission"], "receiver": said[0]["receiver"],
        "oid": said[0]["oid"], "selector": "talk_", "text": "info line 0",
    }  # fmt: skip
