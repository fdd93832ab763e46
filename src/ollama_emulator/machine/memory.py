"""Memory of the simulated machine: the bytes that the daemon predicts for a load, and those that the runner takes."""

from __future__ import annotations

from dataclasses import dataclass

from ollama_emulator.library.cards import Card

GIB = 1 << 30
MIB = 1 << 20
FIT_MARGIN = 1 * GIB  # bytes of a card that llama-server leaves free if it chooses the layers
COMPUTE_BYTES = 320 * MIB  # buffers of a runner with some gigabytes of weights
_TIERS = ((23, 4096), (47, 32768))
_BATCHES = ((32768, 2048, 2 * GIB, 60), (4096, 1024, 768 * MIB, 75))  # from tokens: batch, bytes, % of the free memory
_BATCH = 512
_EMBED_BATCH = 2048
# bytes of one cached value, by OLLAMA_KV_CACHE_TYPE; the quantised ones are blocks of 32 with their scales
_CACHE_BYTES = {
    "f32": 4.0,
    "": 2.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}


class OutOfMemory(Exception):
    """Raised for a load that asks for an exact number of layers on the card, if they do not fit there."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The size of a runner in bytes, and the part of it that is on the card."""

    size: int
    on_card: int


def default_window(vram: int) -> int:
    """Return the default context window, in tokens, for a card of `vram` bytes."""
    return next((window for gib, window in _TIERS if vram < gib * GIB), 262144)


def lower_window(window: int) -> int | None:
    """Return the next smaller default window for a load that ran out of memory, None below the smallest."""
    return next((lower for lower in (32768, 4096) if window > lower), None)


def cache_type(kind: str) -> bool:
    """Return whether `kind` is a type of cache that the runner knows, as in OLLAMA_KV_CACHE_TYPE."""
    return kind in _CACHE_BYTES


def predict(weights: int, card: Card, tokens: int) -> int:
    """Return the bytes that the daemon expects a load to take: the weights and an f16 cache of `tokens` tokens.

    Like the daemon it ignores adapters, explicit key and value lengths, and the cache's real type.
    """
    heads = _numbers(card.value("attention.head_count", 1))
    cached = _numbers(card.value("attention.head_count_kv", heads))
    side = card.width // max(*heads, 1)
    return weights + 2 * int(card.value("block_count", 1)) * max(min(cached), 1) * side * tokens * 2


def default_batch(card: Card, num_ctx: int) -> int:
    """Return the batch size in tokens for a request that names none."""
    return min(_EMBED_BATCH, num_ctx) if card.embeds else _BATCH


def automatic_batch(card: Card, num_ctx: int, tokens: int, expected: int, free: int) -> tuple[int, int]:
    """Return the batch size that the daemon chooses for a load, and the bytes that it adds to the prediction.

    A larger batch needs more `tokens` in the window, and room for the `expected` bytes in the `free` ones.
    """
    if card.embeds:
        return default_batch(card, num_ctx), 0
    for above, batch, surcharge, headroom in _BATCHES:
        if tokens > above and expected <= free * headroom // 100 and expected + surcharge <= free * 80 // 100:
            return batch, surcharge
    return _BATCH, 0


def footprint(weights: int, card: Card, window: int, parallel: int, kind: str) -> int:
    """Return the bytes that a runner takes: weights, the cache of `parallel` windows in its real type, and buffers."""
    cache = int(card.kv_bytes(window, parallel) * _CACHE_BYTES[kind] / 2)
    return weights + cache + min(COMPUTE_BYTES, weights // 8)


def place_runner(size: int, card: Card, layers: int, free: int) -> Footprint:
    """Return the place of a runner of `size` bytes, given a card with `free` bytes.

    `layers` is num_gpu, the number of layers for the card; -1 means all that fit. Raises: OutOfMemory: they do not fit.
    """
    blocks = int(card.value("block_count", 1)) + 1
    each = -(-size // blocks)
    if layers >= 0:
        wanted = min(size, each * layers)
        if wanted > free:
            raise OutOfMemory
        return Footprint(size, wanted)
    room = max(0, free - FIT_MARGIN)
    return Footprint(size, size if size <= room else min(size, room // each * each))


def _numbers(value: object) -> list[int]:
    found = value if isinstance(value, list) else [value]
    return [int(str(item)) for item in found] or [1]
