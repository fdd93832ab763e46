"""Words that leave the machine by a look-up: a person's own, of this question and those before it, or with a yes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.agency.look_ups.test_granted import looking
from tests.image.installing import install

from batos.protocol.mission_documents import MissionDocument
from batos.uvm import UVM

FACET = "tamland_facet_"
#: A method that looks up by a capability, and says what it found, or why not.
LOOKS = (
    f"async def {FACET}(self, query):\n"
    "    wiki = await self.capability_('wiki')\n"
    "    try:\n"
    "        hits = await wiki.search_('WORDS')\n"
    "        page = await wiki.fetch_(hits[0]['address'])\n"
    "        return 'Found: ' + page['text']\n"
    "    except RuntimeError as error:\n"
    "        return 'Refused: ' + str(error)\n"
)


async def answer(uvm: UVM, waiting: MissionDocument, *, is_yes: bool) -> MissionDocument:
    """Answer about the call that a mission waits for, and return the mission at its end."""
    assert waiting["status"] == "waiting"
    reason = waiting["reason"]
    assert reason is not None
    with uvm.image.snapshot() as root:
        asked = root["approvals"][reason["approval"]]
        assert asked.candidate["source"].split("\n") == [
            "# It asks since the look-up would send words that are not of your question: hunter2.",
            "# query: tide [hunter2]",
            'call wiki.search_ {"query": "tide hunter2"}',
        ]
    if is_yes:
        await uvm.approvals.approve([reason["approval"]], "tester")
    else:
        await uvm.approvals.reject(reason["approval"], "tester", "it is a secret")
    return await uvm.missions.run(waiting["id"])


@pytest.mark.parametrize(
    ("words", "is_yes", "said"),
    [
        ("tide", None, "Found: The tide rises twice a day"),
        ("tide hunter2", False, "Refused: wiki.search_ was not called: tester said no: it is a secret"),
        ("tide hunter2", True, "Found: The tide rises twice a day"),
    ],
)
async def test_a_method_looks_up_by_a_capability(tmp_path: Path, words: str, is_yes: bool | None, said: str) -> None:
    """Without a grant in the brief; the answer is external, and words that are not of the question ask before."""
    async with looking(tmp_path, method_control=0) as mind:
        await mind.grant("wikipedia", "http://en.wikipedia.org/", name="wiki")
        source = LOOKS.replace("WORDS", words)
        await mind.uvm.image.writer.apply(lambda root: install(root, root["brick_prototype_obj"], FACET, source))
        brief = {"text": "What does the tide do?", "persona": "BRICK", "effort": "cycle", "user": "tester"}
        told = await mind.uvm.missions.ask(brief)
        if is_yes is not None:
            assert mind.web.asked == []
            told = await answer(mind.uvm, told, is_yes=is_yes)
        assert told["status"] == "done"
        assert told["trust"]["lineage"] == "external"
        ran = [each for each in told["provenance"]["methods"] if each["selector"] == FACET]
        assert ran
        assert any(said in str(each) for each in told["voices"])
        again = await mind.uvm.missions.ask({**brief, "ancestor": told["id"]})
        assert again["status"] == ("waiting" if is_yes is False else "done")  # what is recorded asks nobody
        assert len(mind.web.asked) == (0 if is_yes is False else 2)


async def test_words_of_the_questions_before_are_the_persons_own(tmp_path: Path) -> None:
    """Those of this conversation, and of no answer in it, nor of another conversation."""
    async with looking(tmp_path, method_control=0) as mind:
        await mind.grant("wikipedia", "http://en.wikipedia.org/", name="wiki")
        source = LOOKS.replace("WORDS", "tide lowestoft")
        await mind.uvm.image.writer.apply(lambda root: install(root, root["brick_prototype_obj"], FACET, source))
        first = await mind.uvm.missions.ask(
            {"text": "Is there a tide at Lowestoft?", "effort": "reflex", "user": "tester", "conversation": "new"}
        )
        brief = {"text": "What does it do?", "persona": "BRICK", "effort": "cycle", "user": "tester"}
        told = await mind.uvm.missions.ask({**brief, "conversation": first["brief"]["conversation"]})
        assert told["status"] == "done"
        assert mind.web.asked != []
        alone = await mind.uvm.missions.ask(brief)
        assert alone["status"] == "waiting"
