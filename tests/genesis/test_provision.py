"""Provisioning reaches what the codex says from wherever it was left, and says how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.genesis.conftest import Edit, HandDaemon
from tests.genesis.loras import gguf_adapter
from tests.genesis.planning import plan
from tests.inference.still_clock import on_still_clock, pass_time
from tests.waiting import HANG

from batos.genesis import provision
from batos.genesis.adapters.folder import discover
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.genesis.plan import Plan, PlanStep
from batos.genesis.provision import PULL_ATTEMPTS, StepProgress, carry_out
from batos.inference.ollama.catalogue import PullProgress as Said
from batos.protocol.errors import (
    ModelMissing,
    OllamaError,
    OllamaTimeout,
    OllamaUnreachable,
    Refused,
    RequestRejected,
    StreamCut,
    UsageError,
)

BASE = "llama3.1:8b-instruct-q4_K_M"


async def run(codex: Codex, daemon: HandDaemon) -> list[StepProgress]:
    """Plan and carry out; the progress that was told."""
    told: list[StepProgress] = []
    after = await carry_out(await plan(codex, "default", daemon), daemon, told.append)
    assert after.is_satisfied
    return told


async def test_from_nothing(codex: Codex, daemon: HandDaemon) -> None:
    """From an empty daemon: both pulls, then four models with their own text and parameters."""
    told = await run(codex, daemon)
    made = daemon.made_of
    assert [name.partition(":")[0] for name in made] == ["batos-robin", "batos-brick", "batos-babs", "batos-alfred"]
    base, system, parameters = next(iter(made.values()))
    assert (base, system) == (BASE, codex.personas["ROBIN"].system)
    assert parameters == {"num_ctx": 4096, "num_predict": 1024, "temperature": 0.8, "top_p": 0.9}
    assert StepProgress(f"pull {BASE}", "pulling 0a0b", 2450, 4900) in told


async def test_second_run_sends_nothing(codex: Codex, daemon: HandDaemon) -> None:
    """When everything is there, the plan's two requests are all that is sent."""
    await run(codex, daemon)
    daemon.asked.clear()
    assert await run(codex, daemon) == []
    assert daemon.asked == ["version", "list"]


async def test_cut_pull_is_taken_up(codex: Codex, daemon: HandDaemon) -> None:
    """A pull that is cut is taken up again, and the cut is told."""
    daemon.cuts[BASE] = 2
    told = await run(codex, daemon)
    assert daemon.asked.count(f"pull {BASE}") == 3
    assert sum("going on" in progress.status for progress in told) == 2


async def test_pull_that_is_always_cut(codex: Codex, daemon: HandDaemon) -> None:
    """A pull that is cut every time ends in its error; the other pull had its bytes, and nothing is made."""
    daemon.refused[BASE] = OllamaUnreachable("gone")
    with pytest.raises(OllamaUnreachable):
        await run(codex, daemon)
    assert "all-minilm:latest" in daemon.rows
    assert not daemon.made_of


async def test_refused_pull_is_not_repeated(codex: Codex, daemon: HandDaemon) -> None:
    """An unknown model is asked for once."""
    del daemon.registry[BASE]
    with pytest.raises(RequestRejected):
        await run(codex, daemon)
    assert daemon.asked.count(f"pull {BASE}") == 1


async def test_optional_pull_may_fail(codex: Codex, daemon: HandDaemon) -> None:
    """Without the embedder genesis still succeeds, and says what was left out."""
    del daemon.registry["all-minilm:latest"]
    told = await run(codex, daemon)
    assert any(progress.status.startswith("left out:") for progress in told)
    assert len(daemon.made_of) == 4


async def test_a_refusal_stops_all_pulls(codex: Codex) -> None:
    """What hears of the progress may refuse: the error is told as it is, at once, while another pull stands still."""

    class Slow(HandDaemon):
        async def pull(self, model: str) -> AsyncGenerator[Said, None]:
            yield Said("pulling 0a0b", "sha256:0a0b", 4_900, 1)
            await asyncio.Event().wait()

    def refuse(progress: StepProgress) -> None:
        if progress.step == f"pull {BASE}" and progress.total:
            raise Refused("too large")

    with pytest.raises(Refused, match="too large"):
        await asyncio.wait_for(carry_out(await plan(codex, "default", Slow()), Slow(), refuse), HANG)


async def test_interrupted_genesis_continues(codex: Codex, daemon: HandDaemon) -> None:
    """What was made before an interruption is not made again."""
    names = list((await after_base(codex, daemon)).values())
    daemon.refused[names[2]] = OllamaUnreachable("the daemon went away")
    with pytest.raises(OllamaUnreachable):
        await run(codex, daemon)
    daemon.refused.clear()
    daemon.asked.clear()
    await run(codex, daemon)
    assert [asked for asked in daemon.asked if asked.startswith("create")] == [f"create {name}" for name in names[2:]]


async def after_base(codex: Codex, daemon: HandDaemon) -> Mapping[str, str]:
    """The names of the models once the base is there."""
    daemon.has(BASE)
    return (await plan(codex, "default", daemon)).models


async def test_what_was_reported_is_verified(codex: Codex, daemon: HandDaemon) -> None:
    """A daemon that reports success and lists no model is not believed."""
    daemon.forgets = True
    with pytest.raises(ModelMissing, match="does not list it"):
        await run(codex, daemon)


class ScriptedPulls(HandDaemon):
    """Its pulls of the base say what they are told to, a script for each attempt; None is the end as always.

    A number in a script is seconds that pass on a still clock.
    """

    def __init__(self, *scripts: list[Said | OllamaError | float] | None) -> None:
        super().__init__({BASE: 4_900, "all-minilm:latest": 46})
        self.scripts = list(scripts)

    async def pull(self, model: str) -> AsyncGenerator[Said, None]:
        script = self.scripts.pop(0) if self.scripts and model == BASE else None
        if script is None:
            async for line in super().pull(model):
                yield line
            return
        self.asked.append(f"pull {model}")
        for said in script:
            if isinstance(said, OllamaError):
                raise said
            if isinstance(said, float):
                await pass_time(said)
            else:
                yield said


def layer(completed: int) -> Said:
    """A line of a pull."""
    return Said("pulling 0a0b", f"sha256:{BASE}", 4_900, completed)


async def test_a_pull_that_gets_further_is_taken_up_for_as_long_as_it_does(codex: Codex) -> None:
    """Five times broken off, each time further, with an error that would not be tried again by itself."""
    broken = RequestRejected("max retries exceeded: EOF")
    scripts: list[list[Said | OllamaError | float]] = [
        [Said("pulling manifest"), layer(800 * number), broken] for number in range(1, 6)
    ]
    daemon = ScriptedPulls(*scripts)
    told = await run(codex, daemon)
    assert daemon.asked.count(f"pull {BASE}") == 6
    cut = [each.completed for each in told if each.step == f"pull {BASE}" and "going on" in each.status]
    assert cut == [800, 1_600, 2_400, 3_200, 4_000]


async def test_a_pull_that_begins_anew_each_time_is_given_up(codex: Codex) -> None:
    """Bytes that were there before are no progress: such a pull ends in its error."""
    cut: list[Said | OllamaError | float] = [Said("pulling manifest"), layer(1_000), StreamCut("the stream ended")]
    daemon = ScriptedPulls(*[cut] * 9)
    with pytest.raises(StreamCut):
        await run(codex, daemon)
    assert daemon.asked.count(f"pull {BASE}") == 1 + PULL_ATTEMPTS


@on_still_clock
async def test_a_pull_whose_lines_tell_nothing_new_stands_still(codex: Codex) -> None:
    """The daemon goes on sending lines while no byte comes: after the patience the pull is cut and taken up again."""
    still: list[Said | OllamaError | float] = [layer(1_000), 110.0]
    daemon = ScriptedPulls([Said("pulling manifest"), *still * 4], None)
    told: list[StepProgress] = []
    todo = await plan(codex, "default", daemon)
    # any pace: of the still clock
    carrying = asyncio.create_task(carry_out(todo, daemon, told.append, patience=300.0))
    while not carrying.done():  # it pauses before it takes the pull up again
        await pass_time(0.1)
    await carrying
    (stopped,) = [each for each in told if "stopped (Ollama sent nothing for 300 s" in each.status]
    assert [each.completed for each in told[: told.index(stopped)]].count(1_000) == 3
    assert daemon.asked.count(f"pull {BASE}") == 2


async def test_every_failed_pull_is_told(codex: Codex, daemon: HandDaemon, folder: Path, edit: Edit) -> None:
    """Two pulls that fail are one error that has both, each with its step and what to do."""
    edit("brick.toml", "# BRICK:", 'model = "no-such:1b"\n# BRICK:')
    daemon.refused[BASE] = RequestRejected("the registry says no")
    daemon.refused["no-such:1b"] = ModelMissing("no-such:1b", "the registry has no model 'no-such:1b'")
    with pytest.raises(RequestRejected, match=f"pull {BASE}: the registry says no") as raised:
        await run(await asyncio.to_thread(codices.load, folder), daemon)
    (other,) = raised.value.also
    assert "`model` (brick.toml:" in other


async def test_a_base_that_vanishes_is_pulled_again(codex: Codex, daemon: HandDaemon) -> None:
    """Somebody deletes the base when two models are made: it is pulled again, and the others are made."""

    class Vanishing(HandDaemon):
        async def create(self, model: str, **given: Any) -> AsyncGenerator[Said, None]:
            if len(self.made_of) == 2 and self.asked.count(f"pull {BASE}") == 1:
                del self.rows[BASE]
            async for line in super().create(model, **given):
                yield line

    vanishing = Vanishing(daemon.registry)
    told = await run(codex, vanishing)
    assert vanishing.asked.count(f"pull {BASE}") == 2
    assert len(vanishing.made_of) == 4
    assert any(each.step == "look again" for each in told)


async def test_without_pulling_what_waits_for_a_base_waits(codex: Codex, daemon: HandDaemon) -> None:
    """A plan that may not pull makes what can be made and leaves what waits for a base."""
    left = await carry_out(await plan(codex, "default", daemon), daemon, lambda progress: None, pull="none")
    assert left.needs_pull
    assert not any(asked.startswith(("pull", "create")) for asked in daemon.asked)


async def test_gates_stand_between_pulls_and_models(codex: Codex, daemon: HandDaemon) -> None:
    """A gate sees the plan when every base is there and nothing is made; what it raises ends genesis."""
    seen: list[tuple[str, ...]] = []

    async def gate(todo: Plan) -> None:
        seen.append(tuple(step.kind for step in todo.steps))
        raise Refused("over the budget")

    with pytest.raises(Refused, match="over the budget"):
        await carry_out(await plan(codex, "default", daemon), daemon, lambda progress: None, gates=[gate])
    assert seen == [("create",) * 4]
    assert BASE in daemon.rows
    assert not daemon.made_of


async def test_every_gate_is_asked(codex: Codex, daemon: HandDaemon) -> None:
    """What the first lets through the second may refuse."""

    async def open_gate(todo: Plan) -> None:
        pass

    async def shut(todo: Plan) -> None:
        raise Refused("over the budget")

    todo = await plan(codex, "default", daemon)
    with pytest.raises(Refused):
        await carry_out(todo, daemon, lambda progress: None, gates=[open_gate, shut])
    assert not daemon.made_of


async def test_no_gate_is_asked_when_nothing_is_made(codex: Codex, daemon: HandDaemon) -> None:
    """Gates may ask the daemon: where nothing is to be made they are not called."""
    await run(codex, daemon)

    async def gate(todo: Plan) -> None:
        raise AssertionError("called")

    await carry_out(await plan(codex, "default", daemon), daemon, lambda progress: None, gates=[gate])


async def test_adapters_are_sent_before_their_model(codex: Codex, daemon: HandDaemon, tmp_path: Path) -> None:
    """An adapter's files are sent once, by digest, right before the model that is made with them."""
    gguf_adapter(tmp_path / "robin" / "warm")
    inventory = discover(tmp_path)
    done = await carry_out(await plan(codex, "default", daemon, inventory), daemon, lambda progress: None)
    asked = [each.partition(":")[0] for each in daemon.asked]
    assert asked.count("upload lora.gguf") == 1
    assert asked[asked.index("upload lora.gguf") + 1] == "create batos-robin-warm"
    assert done.models["ROBIN"].startswith("batos-robin-warm:")


async def test_an_adapter_that_vanishes_is_told(codex: Codex, daemon: HandDaemon, tmp_path: Path) -> None:
    """A file that is gone when it is to be sent is named."""
    folder = gguf_adapter(tmp_path / "robin" / "warm")
    inventory = discover(tmp_path)
    (folder / "lora.gguf").unlink()
    with pytest.raises(UsageError, match=r"lora\.gguf"):
        await carry_out(await plan(codex, "default", daemon, inventory), daemon, lambda progress: None)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (RequestRejected("write blob: no space left on device"), "OLLAMA_MODELS"),
        (RequestRejected('Get "https://r/v2/": dial tcp: lookup r: no such host'), f"`ollama pull {BASE}`"),
        (OllamaTimeout("progress", 300.0), "progress_seconds"),
        (RequestRejected("pull model manifest: 403"), f"`ollama pull {BASE}`"),
        (OllamaUnreachable("nothing listens"), "ollama serve"),
    ],
)
def test_remedies_of_a_pull(codex: Codex, error: OllamaError, remedy: str) -> None:
    """Each failure of a pull names the step and says what to do about that very failure."""
    told = provision.advise_pull(error, PlanStep("pull", BASE, ""), codex, "default")
    assert str(told).startswith(f"pull {BASE}: ")
    assert remedy in told.remedy


def test_where_the_codex_names_a_model(codex: Codex, folder: Path, edit: Edit) -> None:
    """A model's name is found in every file and key from which it comes, by line, whatever its case."""
    assert provision.places_of_model(codex, "default", "all-minilm") == ["`embedder` (mind.toml:20)"]
    line = edit("brick.toml", "# BRICK:", 'model = "Other:1b"\n# BRICK:')
    edit("mind.toml", "# coder =", 'coder = "other:1b"\n# coder =')
    changed = codices.load(folder)
    assert provision.places_of_model(changed, "default", "OTHER:1b") == [
        "`coder` (mind.toml:18)",
        f"`model` (brick.toml:{line})",
    ]
    small = provision.places_of_model(codex, "small", "llama3.2:3b-instruct-q4_K_M")
    assert small[0].startswith("`model` (mind.toml:")
    assert provision.places_of_model(codex, "default", "unheard:of") == ["the codex"]
