"""Remedies for failed steps of genesis: the place of a model's name in the codex, and the command to help by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from batos.genesis.codex.codex import Codex
from batos.genesis.codex.key_lines import KeyLines, KeyPath
from batos.genesis.codex.origins import SHARED, CodexEntry, entries
from batos.genesis.plan import PlanStep
from batos.inference import model_names
from batos.protocol.errors import ModelMissing, OllamaError, OllamaTimeout, PullFailed

T = TypeVar("T", bound=OllamaError)

_FULL = ("no space left", "disk quota", "not enough space")
_NO_WAY = ("dial tcp", "no such host", "network is unreachable", "tls:", "i/o timeout", "max retries exceeded")


#: Told where nothing answers and there was no genesis: somebody is here for the first time.
FIRST_RUN = """\
1. Install Ollama: https://ollama.com/download
2. Start it with `ollama serve`, or set OLLAMA_HOST to where it listens.
3. Run `batos genesis`: it pulls the models, about 5 GB, once.
To look around without it, run `batos emulator` in another terminal: it answers, and is not a model."""


def advise_pull(error: T, step: PlanStep, codex: Codex, profile: str) -> T:
    """Return the error of a failed pull with the step's name and a remedy."""
    name, low = step.name or "", error.message.lower()
    error.place(step.label)
    if isinstance(error, ModelMissing):
        named = " and ".join(places_of_model(codex, profile, name))
        error.advise(f"Correct the name in {named}, or make a model of that name yourself, then run `batos genesis`.")
    elif any(sign in low for sign in _FULL):
        error.advise(_room("what was pulled so far is kept"))
    elif any(sign in low for sign in _NO_WAY):
        error.advise(
            f"The daemon cannot reach the registry, or only slowly: when there is a network, run `batos genesis` "
            f"again (what was pulled so far is kept), or pull by hand: `ollama pull {name}`."
        )
    elif isinstance(error, OllamaTimeout):
        error.advise(
            "The pull made no more progress: run `batos genesis` again (what was pulled so far is kept), pull by hand "
            f"(`ollama pull {name}`), or raise progress_seconds in batos.toml for a slow line."
        )
    elif isinstance(error, PullFailed) or not error.retry:
        error.advise(f"See whether `ollama pull {name}` works by hand, then run `batos genesis` again.")
    return error


def advise_create(error: T, step: PlanStep) -> T:
    """Return the error of a model that could not be made, with a remedy; a missing base is reported unchanged."""
    if isinstance(error, ModelMissing):
        return error
    low = error.message.lower()
    error.place(step.label)
    if any(sign in low for sign in _FULL):
        error.advise(_room("what was made so far is kept"))
    elif not error.retry and error.remedy == type(error).remedy:  # the daemon said nothing that is known
        error.advise("Run `batos genesis` again; if it repeats, the daemon's log has the cause.")
    return error


def _room(kept: str) -> str:
    return f"Free space on the disk where Ollama keeps its models (OLLAMA_MODELS), then run `batos genesis`: {kept}."


def places_of_model(codex: Codex, profile: str, name: str) -> list[str]:
    """List the places of the codex from which a model's name comes: `default_model (mind.toml:12)`."""
    own = "" if profile == "default" else f"profiles.{profile}."
    keys = {"model", "coder", "embedder"} if own else {"default_model", "coder", "embedder"}
    models = {f"{SHARED}.{own}{key}" for key in keys} | {f"{persona}.model" for persona in codex.personas}
    named = (each for each in entries(codex, profile) if each.name in models and model_names.same(each.value, name))
    lines = {file: KeyLines(text).keys for file, text in codex.texts.items()}
    return list(dict.fromkeys(_place(each, lines) for each in named)) or ["the codex"]


def _place(entry: CodexEntry, lines: Mapping[str, Mapping[KeyPath, int]]) -> str:
    """Return the first of an entry's places that is written."""
    file, path, _ = next(place for place in entry.places if place[1] in lines[place[0]])
    return f"`{path[-1]}` ({file}:{lines[file][path]})"
