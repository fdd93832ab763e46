"""Whether the codex's models fit the card: their runners, the refusal with what would fit, and ALFRED's finding."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.genesis.conftest import Edit, HandDaemon
from tests.genesis.planning import plan

from batos.config import Settings
from batos.genesis import budget_check
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.genesis.plan import Plan
from batos.genesis.provision import StepProgress
from batos.inference.ollama.catalogue import ModelCard
from batos.inference.vram.card_budget import GIB, STEP
from batos.protocol.errors import BudgetExceeded

LLAMA: Mapping[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": 32,
    "llama.attention.head_count": 32,
    "llama.attention.head_count_kv": 8,
    "llama.embedding_length": 4096,
    "llama.context_length": 131_072,
}
BASE = "llama3.1:8b-instruct-q4_K_M"
SMALL = "llama3.2:3b-instruct-q4_K_M"
WEIGHTS = 4_920_753_328


class Cards(HandDaemon):
    """A daemon whose models have weights and metadata; `verbose` are the models of which all was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.infos: dict[str, Mapping[str, Any]] = {}
        self.arrays: dict[str, Mapping[str, Any]] = {}
        self.weights_of: dict[str, str] = {}
        self.can: dict[str, tuple[str, ...]] = {}

    def give(self, model: str, weights: int, info: Mapping[str, Any] = LLAMA, blob: str = "") -> None:
        """The daemon has this model."""
        self.has(model, weights)
        self.infos[model] = info
        self.weights_of[model] = blob or f"/blobs/{model}"

    async def show(self, model: str, *, verbose: bool = False) -> ModelCard:
        self.asked.append(f"show {model}{' verbose' if verbose else ''}")
        info = {**self.infos[model], **(self.arrays.get(model, {}) if verbose else {})}
        return ModelCard(
            model, self.can.get(model, ("completion",)), info, f"FROM {self.weights_of[model]}", "", "", "", "", ""
        )


@pytest.fixture
def cards() -> Cards:
    """A daemon that has the shipped codex's base."""
    made = Cards()
    made.give(BASE, WEIGHTS)
    return made


def settings(tmp_path: Path, **given: Any) -> Settings:
    """Settings with a home."""
    return Settings(home=tmp_path, **given)


async def widened(folder: Path, num_ctx: int) -> Codex:
    """The codex with another window for all personas."""
    return await asyncio.to_thread(_widened, folder, num_ctx)


def _widened(folder: Path, num_ctx: int) -> Codex:
    for name in ("robin", "brick", "babs", "alfred"):
        path = folder / f"{name}.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"num_ctx = \d+", f"num_ctx = {num_ctx}", text), encoding="utf-8")
    return codices.load(folder)


async def refused(plan_: Plan, cards: Cards, given: Settings) -> BudgetExceeded:
    """What the gate says."""
    with pytest.raises(BudgetExceeded) as raised:
        await budget_check.gate(given, cards)(plan_)
    return raised.value


async def test_personas_of_one_base_are_one_runner(codex: Codex, cards: Cards, tmp_path: Path) -> None:
    """The shipped codex is one runner on the card, with the coder, and an embedder off it; one request shows it."""
    found = await plan(codex, "default", cards)
    cards.asked.clear()
    table = await budget_check.table_of(found, settings(tmp_path), cards)
    assert [(each.resident.uses, bool(each.resident.share)) for each in table.runners] == [
        (("ROBIN", "BRICK", "BABS", "ALFRED", "the coder"), True),
        (("the embedder",), False),
    ]
    assert table.needed_bytes == WEIGHTS + GIB
    assert cards.asked == [f"show {BASE}"]
    assert await budget_check.refusal(found, settings(tmp_path), cards) is None


async def test_the_other_models_that_fit_and_answer(codex: Codex, cards: Cards, tmp_path: Path) -> None:
    """Neither the base of all personas, nor one that genesis made, that only embeds, is too large or runs elsewhere."""
    cards.can["small-embedder:1"] = ("embedding",)
    for name in (SMALL, "small-embedder:1", "batos-robin:0123456789ab", "gpt-oss:120b-cloud"):
        cards.give(name, WEIGHTS // 2)
    cards.give("large:70b", 9 * WEIGHTS)
    found = await plan(codex, "default", cards)
    assert await budget_check.list_other_models(found, settings(tmp_path), cards) == [SMALL]
    assert await budget_check.list_other_models(found, settings(tmp_path, vram="2"), cards) == []


async def test_refused_with_what_fits(codex: Codex, cards: Cards, folder: Path, tmp_path: Path) -> None:
    """Too long a window is refused with the table and the largest that fits; that one is taken, 256 more are not."""
    error = await refused(await plan(await widened(folder, 32_768), "default", cards), cards, settings(tmp_path))
    assert error.largest == 11_520
    assert (error.exit_code, error.code) == (4, "budget_exceeded")
    assert "num_ctx = 11520" in error.remedy
    assert 'kv_type = "q4_0"' in error.remedy
    assert 'profile = "small"' in error.remedy
    shown = json.loads(json.dumps(error.as_dict()))
    assert shown["largest_num_ctx"] == 11_520
    assert shown["budget"]["fits"] is False
    assert any("KV cache of 32768 tokens" in line for line in error.also)
    fits = await plan(await widened(folder, 11_520), "default", cards)
    assert await budget_check.refusal(fits, settings(tmp_path), cards) is None
    over = await plan(await widened(folder, 11_520 + STEP), "default", cards)
    assert await budget_check.refusal(over, settings(tmp_path), cards)


def _set_layers(folder: Path, layers: int) -> None:
    """Give all personas so many layers on the card."""
    for path in folder.glob("[!m]*.toml"):
        path.write_text(path.read_text("utf-8").replace("num_ctx =", f"num_gpu = {layers}\nnum_ctx ="), "utf-8")


@pytest.mark.parametrize(
    ("total", "given", "layers", "fits"),
    [
        (WEIGHTS, {"vram": "8"}, None, True),
        (WEIGHTS, {"vram": "4"}, None, False),
        (WEIGHTS, {"vram": "8", "reserve": "2"}, None, False),
        (WEIGHTS, {"vram": "4"}, 10, True),
        (None, {"vram": "4"}, None, True),
    ],
)
async def test_a_pull_is_heeded(
    folder: Path, tmp_path: Path, total: int | None, given: dict[str, str], layers: int | None, fits: bool
) -> None:
    """What alone is more than is usable is refused when its size is told; not where only a part is wanted there."""
    if layers is not None:
        _set_layers(folder, layers)
    told: list[StepProgress] = []
    empty = HandDaemon()
    codex = await asyncio.to_thread(codices.load, folder)
    made = await plan(codex, "default", empty)
    on_progress = budget_check.refuse_too_large(made, settings(tmp_path, **given), told.append)
    on_progress(StepProgress("pull all-minilm:latest", "pulling 0a0b", 1, 90 * GIB))
    if fits:
        on_progress(StepProgress(f"pull {BASE}", "pulling 0a0b", 1, total))
    else:
        with pytest.raises(BudgetExceeded, match="needs more than") as raised:
            on_progress(StepProgress(f"pull {BASE}", "pulling 0a0b", 1, total))
        assert f'profile = "small" ({SMALL}, to be pulled first)' in raised.value.remedy
    assert len(told) == 2


async def test_where_no_window_fits(codex: Codex, cards: Cards, tmp_path: Path) -> None:
    """A card that cannot hold the weights is told so, with a profile that would fit, or is to be pulled first."""
    found = await plan(codex, "default", cards)
    error = await refused(found, cards, settings(tmp_path, vram="5GiB"))
    assert error.largest == 0
    assert "not even a window of 256 tokens" in error.message
    assert f'profile = "small" ({SMALL}, to be pulled first)' in error.remedy
    cards.give(SMALL, 2 * GIB)
    assert f'profile = "small" ({SMALL})' in (await refused(await plan(codex, "default", cards), cards,
                                                             settings(tmp_path, vram="5GiB"))).remedy  # fmt: skip
    none = await refused(await plan(codex, "default", cards), cards, settings(tmp_path, vram="0"))
    assert "memory for models without one" in none.remedy
    assert "without one" not in error.remedy
    cards.give(SMALL, 4 * GIB)
    assert "profile" not in (await refused(await plan(codex, "default", cards), cards,
                                           settings(tmp_path, vram="5GiB"))).remedy  # fmt: skip


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({}, True),
        ({"vram": "7"}, False),
        ({"vram": "7", "usable": "6.5GiB"}, True),
        ({"reserve": "1GiB"}, False),
        ({"reserve": "1GiB", "vram": "12"}, True),
        ({"parallel": 4}, False),
        ({"parallel": 2, "kv_type": "q8_0"}, True),
        ({"usable": "0"}, False),
    ],
)
async def test_the_settings_count(
    codex: Codex, cards: Cards, tmp_path: Path, given: dict[str, Any], fits: bool
) -> None:
    """Card, what is usable of it, other programs, parallel requests and cache type each move the verdict."""
    found = await plan(codex, "default", cards)
    table = await budget_check.table_of(found, settings(tmp_path, **given), cards)
    assert table.fits is fits


async def test_not_yet_pulled(codex: Codex, tmp_path: Path) -> None:
    """A base that is not there is unknown, and no plan is refused for it before the pull."""
    cards = Cards()
    table = await budget_check.table_of(await plan(codex, "default", cards), settings(tmp_path), cards)
    assert table.fits is None
    assert table.runners[0].rows[0].note == "unknown until pulled"
    assert await budget_check.refusal(await plan(codex, "default", cards), settings(tmp_path), cards) is None
    (found,) = await budget_check.findings(await plan(codex, "default", cards), settings(tmp_path), cards)
    assert found.ok
    assert "not all of them are known" in found.what


async def test_a_base_that_is_gone(codex: Codex, cards: Cards, tmp_path: Path) -> None:
    """Its size is then known by a model that was made of it."""
    found = await plan(codex, "default", cards)
    for name in found.models.values():
        cards.give(name, WEIGHTS, blob=f"/blobs/{BASE}")
    found = await plan(codex, "default", cards)
    listed = replace(found.listed, rows=tuple(row for row in found.listed.rows if row.name != BASE))
    table = await budget_check.table_of(replace(found, listed=listed), settings(tmp_path), cards)
    assert table.runners[0].resident.weights == WEIGHTS


async def test_arrays_are_asked_for(codex: Codex, cards: Cards, tmp_path: Path) -> None:
    """Where metadata holds an array back, all of it is asked for once."""
    cards.give(BASE, GIB, {**LLAMA, "llama.attention.head_count_kv": None})
    cards.arrays[BASE] = {"llama.attention.head_count_kv": [8] * 4 + [0] * 28}
    found = await plan(codex, "default", cards)
    cards.asked.clear()
    table = await budget_check.table_of(found, settings(tmp_path), cards)
    assert cards.asked == [f"show {BASE}", f"show {BASE} verbose"]
    assert table.runners[0].rows[1].size == GIB // 16
    assert "at most" in table.runners[0].rows[1].note


async def test_another_model_of_one_persona(
    codex: Codex, cards: Cards, folder: Path, edit: Edit, tmp_path: Path
) -> None:
    """It is a runner of its own, unless its blob is the others'; runners that do not fit together take turns."""
    edit("robin.toml", "# ROBIN:", f'model = "{SMALL}"\n# ROBIN:')
    other = await asyncio.to_thread(codices.load, folder)
    cards.give(SMALL, 2 * GIB)
    table = await budget_check.table_of(await plan(other, "default", cards), settings(tmp_path), cards)
    assert [each.resident.uses for each in table.runners][:2] == [("ROBIN",), ("BRICK", "BABS", "ALFRED", "the coder")]
    assert table.fits
    assert table.together == 2 * GIB + WEIGHTS + 2 * GIB
    (found,) = await budget_check.findings(await plan(other, "default", cards), settings(tmp_path), cards)
    assert found.ok
    assert "take turns" in found.what
    cards.give(SMALL, WEIGHTS, blob=f"/blobs/{BASE}")
    table = await budget_check.table_of(await plan(other, "default", cards), settings(tmp_path), cards)
    assert len(table.runners) == 2


@pytest.mark.parametrize(("num_gpu", "needed"), [(0, 0), (99, WEIGHTS + GIB), (11, WEIGHTS // 3 + GIB // 6 + GIB // 2)])
async def test_layers_on_the_card(
    codex: Codex, cards: Cards, folder: Path, tmp_path: Path, num_gpu: int, needed: int
) -> None:
    """num_gpu says how many layers go to the card: none, more than there are, or 11 of 33."""
    for name in ("robin", "brick", "babs", "alfred"):
        path = folder / f"{name}.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"(num_ctx = \d+)", rf"\1\nnum_gpu = {num_gpu}", text), encoding="utf-8")
    found = await plan(await asyncio.to_thread(codices.load, folder), "default", cards)
    table = await budget_check.table_of(found, settings(tmp_path), cards)
    assert abs(table.needed_bytes - needed) <= 2


async def test_a_window_that_nobody_trained(codex: Codex, cards: Cards, folder: Path, tmp_path: Path) -> None:
    """A window beyond what a model was trained for is a finding that names the longest."""
    cards.give(BASE, GIB, {**LLAMA, "llama.context_length": 8192})
    found = await budget_check.findings(
        await plan(await widened(folder, 16_384), "default", cards), settings(tmp_path), cards
    )
    (wrong,) = [each for each in found if not each.ok]
    assert wrong.id == "models.trained"
    assert "num_ctx = 8192" in wrong.remedy


async def test_over_budget_is_a_finding(codex: Codex, cards: Cards, tmp_path: Path) -> None:
    """ALFRED says what the gate would, with the same remedy."""
    given = settings(tmp_path, vram="6")
    found = await plan(codex, "default", cards)
    error = await refused(found, cards, given)
    assert [
        (each.id, each.ok, each.what, each.remedy) for each in await budget_check.findings(found, given, cards)
    ] == [("vram.budget", False, error.message, error.remedy)]
