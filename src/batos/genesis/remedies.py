"""What to do when a step of genesis fails: where the codex names the model, and how to help by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from batos.errors import ModelMissing, OllamaError, OllamaTimeout, PullFailed
from batos.genesis import modelname
from batos.genesis.codex import MIND, Codex
from batos.genesis.plan import Step

T = TypeVar("T", bound=OllamaError)

_FULL = ("no space left", "disk quota", "not enough space")
_NO_WAY = ("dial tcp", "no such host", "network is unreachable", "tls:", "i/o timeout", "max retries exceeded")


def of_pull(error: T, step: Step, codex: Codex, profile: str) -> T:
    """The error of a pull that failed, with the step's name and what to do about it."""
    name, low = step.name or "", error.message.lower()
    _name(error, step)
    if isinstance(error, ModelMissing):
        named = " and ".join(named_in(codex, profile, name))
        error.remedy = f"Correct the name in {named}, or make a model of that name yourself, then run `batos genesis`."
    elif any(sign in low for sign in _FULL):
        error.remedy = _room("what was pulled so far is kept")
    elif any(sign in low for sign in _NO_WAY):
        error.remedy = (
            f"The daemon has no way to the registry, or too slow a one: when there is a network, run `batos genesis` "
            f"again (what was pulled so far is kept), or pull by hand: `ollama pull {name}`."
        )
    elif isinstance(error, OllamaTimeout):
        error.remedy = (
            "Nothing more came of it: run `batos genesis` again (what was pulled so far is kept), pull by hand "
            f"(`ollama pull {name}`), or raise progress_seconds in batos.toml for a slow line."
        )
    elif isinstance(error, PullFailed) or not error.retry:
        error.remedy = f"See whether `ollama pull {name}` works by hand, then run `batos genesis` again."
    return error


def of_create(error: T, step: Step) -> T:
    """The error of a model that could not be made; one whose base is not there is told as it is."""
    if isinstance(error, ModelMissing):
        return error
    low = error.message.lower()
    _name(error, step)
    if any(sign in low for sign in _FULL):
        error.remedy = _room("what was made so far is kept")
    elif not error.retry and error.remedy == type(error).remedy:  # the daemon said nothing that is known
        error.remedy = "Run `batos genesis` again; if it repeats, the daemon's log has the cause."
    return error


def _name(error: OllamaError, step: Step) -> None:
    """Put the step's name before the message."""
    error.message = f"{step.label}: {error.message}"
    error.args = (error.message,)


def _room(kept: str) -> str:
    return f"Free space on the disk where Ollama keeps its models (OLLAMA_MODELS), then run `batos genesis`: {kept}."


def named_in(codex: Codex, profile: str, name: str) -> list[str]:
    """Each place of the codex from which a model's name comes: `default_model (mind.toml:12)`."""
    found = list(dict.fromkeys(_places(codex, profile, name)))
    return found or ["the codex"]


def _places(codex: Codex, profile: str, name: str) -> Iterator[str]:
    chosen, text = codex.profile(profile), codex.texts[MIND]
    for key, value in (("model", chosen.model), ("coder", chosen.coder), ("embedder", chosen.embedder)):
        if modelname.same(value, name):
            default = "default_model" if key == "model" else key
            own = _line(text, key, value, after=f"[profiles.{profile}]")
            line = own or _line(text, default, value)
            if line:  # else it follows from another key: the coder is the model where nobody names one
                yield _place(MIND, key if own else default, line)
    for persona in codex.personas.values():
        if persona.model is not None and modelname.same(persona.model, name):
            file = f"{persona.key}.toml"
            yield _place(file, "model", _line(codex.texts[file], "model", persona.model))


def _place(file: str, key: str, line: int) -> str:
    return f"`{key}` ({file}:{line})" if line else f"`{key}` ({file})"


def _line(text: str, key: str, value: str, after: str = "") -> int:
    """The line on which a key has a value, from 1, in the table of that head; 0 where it is not written so."""
    begun = not after
    for number, line in enumerate(text.splitlines(), 1):
        if after and line.startswith("["):
            begun = line.strip() == after
        name, equals, rest = line.partition("=")
        if begun and equals and name.strip() == key and value in rest:
            return number
    return 0
