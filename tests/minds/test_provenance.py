"""Provenance and trust: where an answer came from, all of it, and how little it may be trusted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.minds.conftest import Mind
from tests.minds.scripted import BAD, DOCUMENT, GOOD, LAMP, WINDS, ask, begun, stepping, submit

from batos.genesis.codex.codex import PILLARS
from batos.image import roots
from batos.image.ids import conversation_id, utc_now
from batos.image.records import TRUST
from batos.image.writer import Publisher
from batos.inference.ollama.bridge import ChatRequest
from batos.memory.evidence import Evidence, Passage, Turn
from batos.minds.provenance import lineage_trust
from batos.protocol.errors import NotFound

PLAIN = "It is so."


async def test_every_journal_key_that_was_used_is_listed(mind: Mind) -> None:
    """Five calls and a revision: the keys of the thought are those of the journal's entries."""
    mind.script.woven = BAD
    shown = await ask(mind.uvm)
    entries = mind.uvm.journal.read([shown["id"]])
    assert sorted(shown["provenance"]["journal"]) == sorted(entry.key for entry in entries)
    assert len(entries) == shown["cost"]["calls"] == 6
    assert {entry.path for entry in entries} == {
        "brick/decomposing#0",
        *(f"brick/delegating/{slot.removesuffix('_facet_')}#0" for slot in PILLARS["BRICK"]),
        "brick/synthesizing#0",
        "brick/revising#0",
    }


async def test_models_are_listed_with_their_digests(mind: Mind) -> None:
    """The persona's own model, by the digest that Ollama had for it."""
    shown = await ask(mind.uvm)
    (model, digest), *others = shown["provenance"]["models"].items()
    assert others == []
    assert model.startswith("batos-brick:")
    assert digest == mind.bridge.rows[model].digest


async def test_methods_name_what_was_interpreted(mind: Mind) -> None:
    """Each facet's selector, whose slot it was, and that it was interpreted."""
    shown = await ask(mind.uvm)
    methods = shown["provenance"]["methods"]
    assert [each["selector"] for each in methods] == list(PILLARS["BRICK"])
    assert {each["as"] for each in methods} == {"interpreted intent"}


async def test_the_commit_that_was_read_is_named(mind: Mind) -> None:
    """`read_at` is the image's newest commit before the mission began, and older than the mission's own."""
    mission = await submit(mind.uvm)
    async with stepping(mind.uvm, mission) as opened:
        assert opened.context.mission.read_at == f"tid:0x{int.from_bytes(opened.transaction.read_at, 'big'):016x}"
    shown = await mind.uvm.missions.run(mission)
    assert int(shown["provenance"]["read_at"][4:], 16) < int(shown["tid"][4:], 16)


async def test_what_was_recalled_is_listed_with_its_trust(mind: Mind) -> None:
    """Documents by file, digest and place, as external; turns by mission, as what they were."""
    conversation = await begun(mind.uvm)
    mind.script.woven = PLAIN
    first = await ask(mind.uvm, files=(), effort="reflex", conversation=conversation)
    mind.script.woven = GOOD
    shown = await ask(mind.uvm, effort="reflex", conversation=conversation)
    assert shown["provenance"]["recalled"] == [
        {
            "document": 1,
            "name": "lamp.txt",
            "sha256": LAMP.ref.sha256,
            "start": 0,
            "length": len(DOCUMENT.strip()),
            "trust": "external",
        },
        {"mission": first["id"], "turn": 1, "trust": "model"},
    ]


async def test_a_citation_can_be_looked_up_in_its_file(mind: Mind) -> None:
    """It names the file by digest, and its words stand at that character of it."""
    cited = (await ask(mind.uvm))["provenance"]["citations"]
    assert cited == [
        {
            "document": 1,
            "name": "lamp.txt",
            "sha256": LAMP.ref.sha256,
            "span": [0, DOCUMENT.index("\n")],
            "quote": DOCUMENT.partition("\n")[0],
            "sentence": f"{WINDS}.",
            "score": 1.0,
        }
    ]


async def test_trust_is_recorded_from_the_first_mission_on(mind: Mind) -> None:
    """The brief is the user's, the answer the model's, the attachment external, the lineage the least of them."""
    shown = await ask(mind.uvm)
    assert shown["trust"] == {"brief": "user", "answer": "model", "lineage": "external"}
    with mind.uvm.image.snapshot() as root:
        assert root[roots.ATTACHMENTS][LAMP.ref.sha256].trust == "external"
    mind.script.woven = PLAIN
    plain = await ask(mind.uvm, files=(), effort="reflex")
    assert plain["trust"] == {"brief": "user", "answer": "model", "lineage": "model"}


async def test_trust_is_the_minimum_through_conversation_turns(mind: Mind) -> None:
    """An answer without files that recalls a turn made from a file is as little trusted as that file, and so on."""
    conversation = await begun(mind.uvm)
    await ask(mind.uvm, effort="reflex", conversation=conversation)
    mind.script.woven = PLAIN
    for _ in range(2):
        shown = await ask(mind.uvm, files=(), effort="reflex", conversation=conversation)
        assert shown["trust"]["lineage"] == "external"


@given(turns=st.lists(st.sampled_from(TRUST), max_size=4), passages=st.lists(st.sampled_from(TRUST), max_size=3))
def test_lineage_trust_is_never_better_than_any_source(turns: list[str], passages: list[str]) -> None:
    """The least trusted of question, model, turns, files and memories; a passage without a class is external."""
    shown = tuple(Passage(number, "a", "0" * 64, 0, "x", trust) for number, trust in enumerate(passages))
    evidence = Evidence(shown, tuple(Turn("m-1", "q", "a", trust) for trust in turns))
    sources = ["user", "model", *turns, *passages]
    assert lineage_trust(Evidence((Passage(1, "a", "0" * 64, 0, "x"),))) == "external"
    assert TRUST.index(lineage_trust(evidence)) == max(map(TRUST.index, sources))


async def test_turns_are_recalled_within_the_budget(mind: Mind) -> None:
    """The newest turns are in the prompt, in order; what has no room is counted as left out."""
    conversation = await begun(mind.uvm)
    mind.script.woven = "A long answer. " * 119
    for number in range(10):
        await ask(mind.uvm, f"Question number {number}?", (), effort="reflex", conversation=conversation)
    shown = await ask(mind.uvm, "And now?", (), effort="reflex", conversation=conversation)
    omitted = shown["provenance"]["omitted"]["turns"]
    recalled = [each["mission"] for each in shown["provenance"]["recalled"]]
    assert 0 < omitted < 10
    assert len(recalled) == 10 - omitted
    request: ChatRequest = mind.bridge.history[-1]
    asked = [message["content"] for message in request.messages[2:-1:2]]
    assert asked == [f"Question number {number}?" for number in range(omitted, 10)]


async def test_anothers_conversation_is_refused(mind: Mind) -> None:
    """What one user said is not recalled for another: the mission fails and says so, and nothing is added."""
    conversation = await begun(mind.uvm, "anna")
    mind.script.woven = PLAIN
    await ask(mind.uvm, files=(), effort="reflex", conversation=conversation, user="anna")
    calls = len(mind.bridge.history)
    with pytest.raises(NotFound, match=r"no conversation .* of berta's") as raised:
        await ask(mind.uvm, files=(), effort="reflex", conversation=conversation, user="berta")
    assert raised.value.field == "conversation"
    assert len(mind.bridge.history) == calls
    with mind.uvm.image.snapshot() as root:
        assert len(root[roots.CONVERSATIONS][conversation].turns) == 1


class Later(Publisher):
    """Leaves what is committed to be folded in afterwards."""

    async def fold(self, mission: str) -> bool:
        """Not yet."""
        return False


async def test_of_two_users_who_begin_one_conversation_it_is_the_firsts(mind: Mind) -> None:
    """It begins when the first is accepted; the other user's mission is refused its turns."""
    name = conversation_id(utc_now())
    brief = {"text": "Hello?", "effort": "reflex", "attachments": [], "conversation": name}
    mind.script.woven = PLAIN
    ids = [await mind.uvm.image.accept({**brief, "user": user}) for user in ("anna", "berta")]
    await mind.uvm.missions.run(ids[0])
    with pytest.raises(NotFound, match=r"no conversation .* of berta's"):
        await mind.uvm.missions.run(ids[1])
    with mind.uvm.image.snapshot() as root:
        kept = root[roots.CONVERSATIONS][name]
        assert kept.user == "anna"
        assert list(kept.turns.values()) == ids[:1]


async def test_all_of_it_can_be_written_as_json(mind: Mind) -> None:
    """Nothing in a mission's report is anything but plain data."""
    shown = await ask(mind.uvm)
    assert json.loads(json.dumps(shown)) == shown
