"""The choice among key protocols: by meaning or a trigger, none for an ordinary question, the same without a call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

from batos.genesis.codex.codex import Codex
from batos.image.image import LivingImage, Opening
from batos.inference.embedder import Embedder
from batos.inference.ollama.bridge import Bridge
from batos.memory.segmentation import words
from batos.routing.lexical import Lesson, lessons_of
from batos.routing.router import MEANT, ProtocolChoice, Route, Router, RoutingState, make_router
from batos.routing.training import learn_words
from ollama_emulator.emulator import Emulator, Options

STUCK = "I'm feeling really stuck on this project, and I don't know why I'm so unmotivated"
KOAN = "sages_koan_protocol_"
#: Sentences with the protocol that they are meant for; no exemplar of the codex is among them.
HELD_OUT = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "protocols.jsonl").read_text(encoding="utf-8").splitlines()
]


def chosen(route: Route) -> str | None:
    """Name the likeliest protocol of the leader."""
    return next(iter(route.protocols.get(route.personas[0], {})), None)


async def test_somebody_who_is_stuck_reaches_robins_koan(router: Router) -> None:
    """The example of the first plans, by words alone; the route says how likely, and is the same when read back."""
    route = await router.route(STUCK)
    assert (route.personas, route.effort, chosen(route)) == (("ROBIN",), "reflex", KOAN)
    assert Route.from_dict(route.as_dict()).protocols == route.as_dict()["protocols"]


async def test_the_same_with_an_embedder(codex: Codex) -> None:
    """With the emulator's embedder: one text is embedded for persona and protocol together."""
    image = LivingImage(Opening("memory://", "memory://"))
    await image.prepare()
    small = [
        Lesson(each.label, each.triggers, each.exemplars[:40], each.protocols)
        for each in lessons_of(codex.personas.values())
        if each.label in ("ROBIN", "BABS")
    ]
    try:
        emulator = Emulator(Options(models=("all-minilm:latest",)))
        async with emulator.serving() as url, Bridge(url) as bridge:
            digest = next(row.digest for row in await bridge.list() if row.name == "all-minilm:latest")
            router = await make_router(image, small, Embedder(bridge, "all-minilm:latest", digest), lambda told: None)
            route = await router.route(STUCK)
    finally:
        await asyncio.to_thread(image.close)
    assert router.learnt.has_meaning
    assert (route.personas, chosen(route), route.embeds) == (("ROBIN",), KOAN, 1)


async def test_held_out_sentences(router: Router) -> None:
    """Without an embedder and whoever leads: more than half are right, few are false."""
    found = []
    for row in HELD_OUT:
        await asyncio.sleep(0)
        found.append((await router.route(row["text"], persona=row["persona"]), row["protocol"]))
    right = [chosen(route) == slot for route, slot in found if slot is not None]
    false = [chosen(route) is not None for route, slot in found if slot is None]
    assert sum(right) >= 0.55 * len(right)
    assert sum(false) <= 0.1 * len(false)


def test_no_held_out_sentence_is_an_exemplar(codex: Codex) -> None:
    """Nor nearly an exemplar of a protocol: at most six tenths of the words of both are the same."""
    lessons = lessons_of(codex.personas.values())
    assert not {row["text"] for row in HELD_OUT} & {text for each in lessons for text in each.questions}
    held = [set(words(row["text"])) for row in HELD_OUT]
    for text in (text for each in lessons for protocol in each.protocols for text in protocol.exemplars):
        mine = set(words(text))
        assert all(len(mine & other) <= 0.6 * len(mine | other) for other in held if mine and other), text


def phrases(codex: Codex) -> Iterator[tuple[str, str, str]]:
    """Every trigger of a shipped protocol that acts, with its persona and slot."""
    for persona in codex.personas.values():
        for protocol in (each for each in persona.protocols if not each.shelved):
            yield from ((persona.name, protocol.slot, phrase) for phrase in protocol.triggers)


async def test_a_trigger_is_enough(router: Router, codex: Codex) -> None:
    """Words of danger are heard in the longest story."""
    story = "We moved house in May, the boxes are still in the hall, and my neighbour sings. " * 3
    for persona, slot, phrase in phrases(codex):
        await asyncio.sleep(0)
        route = await router.route(f"{story} {phrase}", persona=persona)
        assert route.protocols[persona][slot] == 1.0, phrase


async def test_a_protocol_of_the_shelf_is_meant_only_while_it_acts(router: Router, codex: Codex) -> None:
    """By its exemplars and by its triggers, from the next question on; it takes nothing from the others before."""
    babs = codex.personas["BABS"]
    (new,) = [each for each in babs.protocols if each.shelved]
    usual = [each.slot for each in babs.protocols if not each.shelved]
    acting = RoutingState(acting={"BABS": [*usual, new.slot]})
    for text in (*new.exemplars, f"Tell me of the tower, {new.triggers[0]}."):
        off = await router.route(text, persona="BABS")
        assert new.slot not in off.protocols.get("BABS", {})
        assert new.slot in (await router.route(text, persona="BABS", state=acting)).protocols["BABS"], text
        assert not (await router.route(text, persona="BABS", state=RoutingState(acting={}))).protocols
    other = babs.protocols[0]
    for text in other.exemplars[:5]:
        assert other.slot in (await router.route(text, persona="BABS")).protocols["BABS"], text


def test_without_protocols_nothing_is_meant() -> None:
    """A persona whose protocols have no exemplars has no choice; an unknown text means nothing."""
    lessons = (
        Lesson("ROBIN", (), ("I am sad.",)),
        Lesson("BRICK", (), ("Sort the rows.",), (Lesson("risk_protocol_", (), ("What can break here?",)),)),
    )
    choice = ProtocolChoice(lessons, learn_words(lessons).protocols)
    assert choice.find("zzz", ("ROBIN", "BRICK")) == {}
    found = choice.find("What can break?", ("ROBIN", "BRICK"))
    assert list(found) == ["BRICK"]
    assert found["BRICK"]["risk_protocol_"] > MEANT
