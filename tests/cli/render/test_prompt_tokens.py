"""The tokens of prompts: estimated without an image, by the measured density with one, with a warning for long ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from batos.cli.render import prompt_tokens
from batos.config import Settings
from batos.genesis.codex import codex as codices
from batos.testing import ScriptedBridge, scripted_uvm


def test_without_an_image_the_tokens_are_estimated(tmp_path: Path) -> None:
    """The shipped codex has no prompt that is too long, and each persona has a line."""
    codex = codices.parse(codices.read_shipped()).sound()
    weighed = prompt_tokens.weigh(codex, Settings(home=tmp_path))
    assert not any(each.is_measured or each.too_long for each in weighed)
    lines = list(prompt_tokens.describe(weighed))
    assert len(lines) == 1
    assert all(name in lines[0] for name in codex.personas)
    assert list(prompt_tokens.describe([])) == []


def test_a_prompt_that_is_too_long_is_named(tmp_path: Path) -> None:
    """Its persona, its form and the number that is good stand in the warning; the document has the same numbers."""
    codex = codices.parse(codices.read_shipped()).sound()
    babs = replace(codex.personas["BABS"], line="You are BABS. " * 40)
    changed = replace(codex, personas={**codex.personas, "BABS": babs})
    weighed = prompt_tokens.weigh(changed, Settings(home=tmp_path))
    warnings = list(prompt_tokens.describe(weighed))[1:]
    assert any(line.startswith("Warning: reflex of BABS has ") and "at most 60" in line for line in warnings)
    own = [line for line in warnings if "two_voices of " not in line]  # that prompt names each of the others too
    assert all("BABS" in line for line in own)
    told = next(each.as_dict() for each in weighed if each.prompt == "weave" and each.persona == "BABS")
    assert told["lean"] > 60
    assert told["full"] > 60


async def test_with_an_image_the_measured_density_counts(tmp_path: Path) -> None:
    """Genesis counted a sample with the base: that density stands for the estimate."""
    bridge = ScriptedBridge()
    bridge.density = 0.2
    async with scripted_uvm(tmp_path, bridge, memory=False) as uvm:
        codex, settings = codices.load(tmp_path / "codex"), uvm.settings
    guessed = prompt_tokens.weigh(codex, Settings(home=tmp_path / "elsewhere"))
    counted = prompt_tokens.weigh(codex, settings)
    assert all(each.is_measured for each in counted)
    pairs = zip(guessed, counted, strict=True)
    assert all(after.tokens["full"] < before.tokens["full"] for before, after in pairs)
