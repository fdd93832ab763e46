"""What a real daemon was asked and answered, and the models that it had."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from model_files import gguf
from ollama_emulator.library.cards import Card
from ollama_emulator.tokenizers import vocabulary
from ollama_emulator.tokenizers.vocabulary import Vocabulary

FOLDER = Path(__file__).parents[1] / "data" / "ollama-wire"
MODELS = FOLDER / "models"
CHATML = "{{- range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n"
SYSTEM = {"role": "system", "content": "You are ROBIN."}


@cache
def exchange(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The request and the last object of the reply of a recorded exchange."""
    with (FOLDER / "exchanges.jsonl").open() as file:
        found = next(one for one in map(json.loads, file) if one["n"] == number)
    response = found["response"]
    request: dict[str, Any] = found["request"]["json"]
    reply: dict[str, Any] = json.loads(response.get("text") or response["lines"][-1])
    return request, reply


@cache
def header(name: str) -> dict[str, Any]:
    """The metadata of a recorded model."""
    return dict(gguf.read(MODELS / f"{name}.gguf").metadata)


def known(name: str) -> Vocabulary:
    """The vocabulary of a recorded model."""
    return vocabulary.vocabulary_of(name, Card(header(name), 0, "F16"))
