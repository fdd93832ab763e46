"""Methods in a living image: installed and told, counted, retired for what they do, bounded, brought back."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from tests.image.installing import CODER, provenance
from tests.methods.lifecycle.brick import NAME, Receiver, receiver

from batos.image import roots
from batos.image.roots import named_objects
from batos.protocol.errors import CovenantViolation, NotFound, Refused
from batos.records import methods, outcomes


async def test_an_install_is_told_once() -> None:
    """After the commit, with receiver, selector, revision and digest; the same method again is no news."""
    async with receiver() as brick:
        await brick.declare("plan_facet_")
        made = await brick.lifecycle.install(brick.candidate("plan_facet_", "one"))
        again = await brick.lifecycle.install(brick.candidate("plan_facet_", "one"))
        digest = made.provenance["digest"]
        told = {"receiver": NAME, "selector": "plan_facet_", "revision": 1, "digest": digest}
        assert brick.told == [("method.installed", told)]
        assert (made.source, again.revision, made._p_jar) == ("one", 1, None)


async def test_what_is_refused_is_not_told() -> None:
    """Neither a method nor an event comes of it."""
    async with receiver() as brick:
        await brick.declare("plan_facet_")
        with pytest.raises(Refused, match="nobody approved"):
            await brick.lifecycle.install(brick.candidate("plan_facet_", provenance=provenance(trust="external")))
        assert brick.told == []
        assert brick.lifecycle.list_methods() == []


async def test_all_or_none() -> None:
    """One of several that may not be installed keeps the others out; their objects are made with them, or not."""
    async with receiver() as brick:
        await brick.declare("plan_facet_", "guide_facet_")
        good, bad = brick.candidate("plan_facet_"), brick.candidate("guide_facet_", intent="0" * 64)
        made: list[Any] = []
        with pytest.raises(Refused):
            await brick.lifecycle.install_all([good, bad], made.append)
        assert brick.acting() == set()
        assert [
            each.revision for each in await brick.lifecycle.install_all([good, brick.candidate("guide_facet_")])
        ] == [
            1,
            1,
        ]
        assert len(made) == 1


async def test_what_somebody_else_installed_is_settled() -> None:
    """An approval installs in its own commit: it is told like any other, and the bound holds after it."""
    async with receiver(active=1) as brick:
        await brick.learn("plan_facet_")
        await brick.declare("guide_facet_")
        one = brick.candidate("guide_facet_", provenance=provenance(approval="a-1"))
        await brick.image.writer.apply(lambda root: methods.install(root, one, "now").revision)
        await brick.lifecycle.settle(NAME, "guide_facet_")
        told = [(event, keys["selector"]) for event, keys in brick.told[1:]]
        assert told == [("method.installed", "guide_facet_"), ("method.retired", "plan_facet_")]
        assert brick.acting() == {"guide_facet_"}
        await brick.lifecycle.settle(NAME, "plan_facet_")
        assert len(brick.told) == 3


async def test_a_method_that_fails_is_retired() -> None:
    """After the least number of uses the slot holds the intent again; what it was and why it went can be read."""
    async with receiver(least=5) as brick:
        await brick.learn("plan_facet_")
        for number in range(5):
            assert brick.acting() == {"plan_facet_"}, number
            await brick.use("plan_facet_", outcome="fault", control=False)
        assert brick.slot("plan_facet_") == ("Intent", "do plan_facet_")
        reason = "it failed in 5 of 5 uses"
        assert brick.told[-1] == (
            "method.retired",
            {"receiver": NAME, "selector": "plan_facet_", "revision": 1, "reason": reason},
        )
        shown = brick.lifecycle.describe(f"{NAME}.plan_facet_")
        assert shown["retired"] is not None
        assert (shown["state"], shown["source"], shown["retired"]["reason"]) == (
            "retired",
            "source of plan_facet_",
            reason,
        )
        assert shown["barred"] == reason
        with brick.image.snapshot() as root:
            assert methods.bar_reason(named_objects(root)[NAME], "plan_facet_", CODER)


async def test_one_bad_use_retires_nobody_twice() -> None:
    """Uses of a mission that began before are counted, and nothing that is retired is retired again."""
    async with receiver(least=2) as brick:
        await brick.learn("plan_facet_")
        for _ in range(4):
            await brick.use("plan_facet_", revision=1, outcome="fault", control=False)
        assert [event for event, _ in brick.told].count("method.retired") == 1
        assert brick.lifecycle.describe(f"{NAME}.plan_facet_")["ledger"]["calls"] == 4


async def test_the_receivers_active_set_is_bounded() -> None:
    """One method more than it may have, and the one with the worst outcome goes: never the newest."""
    async with receiver(active=3, least=100) as brick:
        await brick.learn("a_", "b_", "c_")
        for selector, bad in (("a_", 0), ("b_", 3), ("c_", 1)):
            for number in range(4):
                await brick.use(selector, control=False, gate_faults=int(number < bad))
        await brick.learn("d_")
        assert brick.acting() == {"a_", "c_", "d_"}
        assert "3 of its 4 uses ended badly" in str(brick.told[-1][1]["reason"])
        await brick.lifecycle.roll_back(f"{NAME}.b_", None, "tester")
        assert len(brick.acting()) == 3
        assert "b_" in brick.acting()


async def test_a_former_revision_comes_back() -> None:
    """Without a number the one before; the intent by 0; each is a new entry of history, and is told."""
    async with receiver() as brick:
        await brick.learn("plan_facet_")
        await brick.lifecycle.install(brick.candidate("plan_facet_", "two"))
        name = f"{NAME}.plan_facet_"
        assert (await brick.lifecycle.roll_back(name, None, "tester"))["active"] == 1
        assert brick.slot("plan_facet_") == ("Method", "source of plan_facet_")
        assert (await brick.lifecycle.roll_back(name, 2, "tester"))["active"] == 2
        assert (await brick.lifecycle.roll_back(name, 0, "tester"))["active"] == 0
        assert brick.slot("plan_facet_") == ("Intent", "do plan_facet_")
        assert (await brick.lifecycle.roll_back(name, None, "tester"))["active"] == 2
        told = [(event, keys["revision"]) for event, keys in brick.told]
        installed, retired = "method.installed", "method.retired"
        assert told == [(installed, 1), (installed, 2), (installed, 1), (installed, 2), (retired, 2), (installed, 2)]
        changes = brick.lifecycle.history(name)["changes"]
        assert [(each["former"], each["revision"]) for each in changes] == [
            (0, 1),
            (1, 2),
            (2, 1),
            (1, 2),
            (2, 0),
            (0, 2),
        ]


async def test_what_was_retired_is_not_the_one_before() -> None:
    """Rolling back passes over a revision that was retired, as long as there is another."""
    async with receiver(least=1) as brick:
        await brick.learn("plan_facet_")
        await brick.lifecycle.install(brick.candidate("plan_facet_", "two"))
        await brick.use("plan_facet_", outcome="fault", control=False)
        await brick.lifecycle.install(brick.candidate("plan_facet_", "three"))
        assert (await brick.lifecycle.roll_back(f"{NAME}.plan_facet_", None, "tester"))["active"] == 1


async def test_what_could_not_run_any_more_is_not_brought_back() -> None:
    """The guardian's policy may have become another: the active revision stays."""
    async with receiver() as brick:
        await brick.declare("plan_facet_")
        await brick.lifecycle.install(brick.candidate("plan_facet_", "refused"))
        await brick.lifecycle.install(brick.candidate("plan_facet_", "two"))
        with pytest.raises(CovenantViolation):
            await brick.lifecycle.roll_back(f"{NAME}.plan_facet_", None, "tester")
        assert brick.active("plan_facet_") == 2


async def test_there_is_none_before_the_first() -> None:
    """It is said what would put the intent back."""
    async with receiver() as brick:
        await brick.learn("plan_facet_")
        with pytest.raises(Refused, match="no revision before") as refused:
            await brick.lifecycle.roll_back(f"{NAME}.plan_facet_", None, "tester")
        assert "--revision 0" in refused.value.remedy


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("plan_facet_", "names no method"),
        (f"{NAME}.", "names no method"),
        (f"{NAME}.pln_facet_", "did you mean plan_facet_"),
        (f"{NAME}.idle_facet_", "nothing was ever made"),
        ("nobody_obj.plan_facet_", "no object"),
    ],
)
async def test_a_name_that_is_none(name: str, why: str) -> None:
    """What is wrong with it is said, with what comes near or what to do."""
    async with receiver() as brick:
        await brick.learn("plan_facet_")
        await brick.declare("idle_facet_")
        with pytest.raises(NotFound, match=why) as raised:
            brick.lifecycle.describe(name)
        assert raised.value.remedy


async def test_a_revision_that_is_none() -> None:
    """Shown are those that there are."""
    async with receiver() as brick:
        await brick.learn("plan_facet_")
        with pytest.raises(NotFound, match="no revision 2"):
            brick.lifecycle.describe(f"{NAME}.plan_facet_", 2)


async def test_uses_before_there_was_a_method() -> None:
    """An intent that was interpreted, and never made a method, has no ledger; one that was has."""
    async with receiver() as brick:
        await brick.declare("plan_facet_")
        await brick.use("plan_facet_", control=True)
        assert brick.lifecycle.list_methods() == []
        await brick.learn("plan_facet_")
        await brick.lifecycle.roll_back(f"{NAME}.plan_facet_", 0, "tester")
        await brick.use("plan_facet_", control=True)
        with brick.image.snapshot() as root:
            lineage = methods.lineage_of(root, named_objects(root)[NAME], "plan_facet_")
            assert lineage is not None
            assert lineage.totals[0]["control"]["calls"] == 1


#: What seeded methods do: how often they raise, how often the gate faults what they answer, seconds, tokens.
SEEDED = {
    "good_facet_": (0.0, 0.05, 0.5, 60),
    "plain_facet_": (0.0, 0.1, 1.0, 100),
    "raises_facet_": (0.9, 0.0, 0.1, 5),
    "sometimes_facet_": (0.6, 0.1, 1.0, 100),
    "rubbish_facet_": (0.0, 0.9, 0.2, 40),
    "slow_facet_": (0.0, 0.1, 30.0, 100),
    "dear_facet_": (0.0, 0.1, 1.0, 900),
}
GOOD = {"good_facet_", "plain_facet_"}
#: And the wish itself, interpreted.
INTERPRETED = (0.0, 0.1, 1.0, 100)


@pytest.mark.parametrize("seed", range(4))
async def test_the_active_set_returns_to_the_good_ones(seed: int) -> None:
    """Some raise, some answer rubbish, some are slow or dear: after enough missions the good ones are left."""
    chance = random.Random(seed)
    async with receiver(every=4, least=5) as brick:
        await brick.learn(*SEEDED)
        acting = set(SEEDED)
        for number in range(60):
            for selector, does in SEEDED.items():
                control = brick.lifecycle.is_control(f"m-{brick.asked + 1}", selector)
                raises, rubbish, seconds, tokens = does if selector in acting and not control else INTERPRETED
                outcome = "fault" if chance.random() < raises else "ok"
                faulted = int(outcome == "ok" and chance.random() < rubbish)
                spent = {"seconds": seconds, "tokens": tokens, "revision": int(selector in acting)}
                await brick.use(selector, outcome=outcome, gate_faults=faulted, **spent)
            acting = brick.acting()
            if acting == GOOD and number > 30:
                break
        assert acting == GOOD
        await asyncio.to_thread(check, brick)


def check(brick: Receiver) -> None:
    """What is left is worth it, what went says why and is readable, and no use was lost."""
    lines = {line["selector"]: line for line in brick.lifecycle.list_methods(NAME)}
    assert (lines["good_facet_"]["tokens_saved"] or 0) > 0
    assert all(lines[name]["reason"] for name in SEEDED.keys() - GOOD)
    with brick.image.snapshot() as root:
        for lineage in root[roots.METHODS].values():
            assert dict(lineage.totals) == outcomes.totals_of(outcomes.entries(lineage.ledger))
            assert lineage.revisions[1].source == f"source of {lineage.selector}"
