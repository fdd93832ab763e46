"""The arithmetic of the simulated card."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollama_emulator.library.cards import Card
from ollama_emulator.machine import memory
from ollama_emulator.machine.memory import GIB, OutOfMemory

LLAMA_8B = Card(
    {
        "general.architecture": "llama",
        "llama.attention.head_count": 32,
        "llama.attention.head_count_kv": 8,
        "llama.attention.key_length": 128,
        "llama.attention.value_length": 128,
        "llama.block_count": 32,
        "llama.context_length": 131072,
        "llama.embedding_length": 4096,
    },
    8_030_261_248,
    "Q4_K_M",
)
WEIGHTS = 4_920_738_944


def test_the_prediction_is_the_file_and_an_f16_cache() -> None:
    """128 KiB a token for an 8B Llama: 1 GiB at 8192."""
    assert memory.predict(WEIGHTS, LLAMA_8B, 8192) - WEIGHTS == GIB


@pytest.mark.parametrize(("kind", "share"), [("", 1), ("f16", 1), ("q8_0", 17 / 32), ("q4_0", 9 / 32), ("f32", 2)])
def test_the_type_of_the_cache(kind: str, share: float) -> None:
    """Quantised caches are blocks of 32 values with a scale."""
    cache = memory.footprint(WEIGHTS, LLAMA_8B, 8192, 1, kind) - memory.footprint(WEIGHTS, LLAMA_8B, 0, 1, kind)
    assert cache == GIB * share


@pytest.mark.parametrize(("vram", "window"), [(0, 4096), (8, 4096), (22.9, 4096), (23, 32768), (47, 262144)])
def test_the_automatic_window_goes_by_the_card(vram: float, window: int) -> None:
    """4096 below 23 GiB, 32768 below 47."""
    assert memory.default_window(int(vram * GIB)) == window


@pytest.mark.parametrize(("window", "lower"), [(262144, 32768), (32768, 4096), (4096, None), (512, None)])
def test_the_window_is_lowered_by_tiers(window: int, lower: int | None) -> None:
    """What a load that ran out of memory is tried with."""
    assert memory.lower_window(window) == lower


@pytest.mark.parametrize(
    ("tokens", "free", "batch"),
    [(4096, 80, 512), (8192, 80, 1024), (40_000, 80, 2048), (8192, 7.0, 512), (40_000, 14, 1024)],
)
def test_the_automatic_batch_needs_headroom(tokens: int, free: float, batch: int) -> None:
    """Larger windows get a larger batch where 75 or 60 % of the memory hold the rest."""
    expected = memory.predict(WEIGHTS, LLAMA_8B, tokens)
    assert memory.automatic_batch(LLAMA_8B, tokens, tokens, expected, int(free * GIB))[0] == batch


@given(st.integers(0, 24 * GIB), st.integers(-1, 40), st.integers(1, 20 * GIB))
def test_what_lies_on_the_card_fits_it(free: int, layers: int, size: int) -> None:
    """Never more than is free nor than there is; left to itself the runner keeps a GiB clear."""
    try:
        found = memory.place_runner(size, LLAMA_8B, layers, free)
    except OutOfMemory:
        assert layers > 0
        return
    assert 0 <= found.on_card <= found.size == size
    assert found.on_card <= (max(0, free - GIB) if layers < 0 else free)


def test_layers_are_whole() -> None:
    """A third of the memory holds a third of the layers; none of a layer lies on both sides."""
    size = 33 * 1000
    assert memory.place_runner(size, LLAMA_8B, -1, GIB + 11_500).on_card == 11_000
    assert memory.place_runner(size, LLAMA_8B, 33, size).on_card == size
    with pytest.raises(OutOfMemory):
        memory.place_runner(size, LLAMA_8B, 20, 19_000)
