"""The form of prompts: lean for small models and windows, as the codex says where it says one; kept in the image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.minds.conftest import Mind
from tests.minds.scripted import ask

from batos.config import Settings
from batos.genesis import graph, measuring
from batos.minds import context_building


@pytest.mark.parametrize(
    ("parameters", "window", "small"),
    [
        (134_515_008, 8_192, True),
        (299_000_000, 4_096, True),
        (494_000_000, 4_096, False),
        (8_000_000_000, 4_095, True),
        (0, 4_096, False),
        (0, 2_048, True),
    ],
)
def test_a_model_is_small_by_its_parameters_or_its_window(
    tmp_path: Path, parameters: int, window: int, *, small: bool
) -> None:
    """Less than 0.3 billion, or less than 4,096 tokens; a size that nobody tells says nothing."""
    assert measuring.is_small(parameters, window, Settings(home=tmp_path)) is small


def test_settings_move_the_bounds(tmp_path: Path) -> None:
    """With 0 and 0 no model is small."""
    settings = Settings(home=tmp_path, lean_parameters=0, lean_window=0)
    assert not measuring.is_small(1, 256, settings)


def _forms(mind: Mind) -> Mapping[str, str]:
    with mind.uvm.image.snapshot() as root:
        return graph.recorded_forms(root)


async def test_a_mission_has_the_form_that_the_daemons_card_asks_for(mind: Mind) -> None:
    """The next check writes another form where the base turns out to be small, and the next mission uses it."""
    await ask(mind.uvm, effort="reflex")
    assert set(_forms(mind).values()) == {"full"}
    mind.bridge.rows = {name: replace(row, parameter_size="135M") for name, row in mind.bridge.rows.items()}
    await ask(mind.uvm, effort="reflex")
    assert set(_forms(mind).values()) == {"lean"}
    system, user = mind.bridge.history[-1].messages
    assert system["content"].startswith("You are BRICK")
    assert user["content"].startswith("Text:\n")


async def test_the_codex_decides_where_it_names_a_form(mind: Mind) -> None:
    """A persona's key holds against the size of its model, for that persona alone."""
    file = mind.uvm.settings.home / "codex" / "brick.toml"
    file.write_text(f'form = "lean"\n{file.read_text(encoding="utf-8")}', encoding="utf-8")
    await ask(mind.uvm, effort="reflex")
    assert _forms(mind) == {"ROBIN": "full", "BRICK": "lean", "BABS": "full", "ALFRED": "full"}


async def test_a_window_that_a_model_was_not_trained_for_is_none(mind: Mind) -> None:
    """The codex asks for 4,096 tokens and the card tells of 2,048: that is a small window."""
    await mind.uvm.readiness.genesis()

    def shrink(root: Any) -> list[str]:
        known = measuring.recorded_measures(root)
        assert known
        return measuring.record_measures(root, {digest: replace(each, trained=2_048) for digest, each in known.items()})

    await mind.uvm.image.writer.apply(shrink)
    await mind.uvm.readiness.genesis()
    with mind.uvm.image.snapshot() as root:
        assert context_building.voice_of(context_building.persona_of(root, "BRICK")).form == "lean"
