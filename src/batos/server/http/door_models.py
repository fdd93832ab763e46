"""The models of the door: each stands for a persona, or for the mind that chooses, with an effort."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, cast, get_args

from batos.protocol.brief import EffortChoice, PersonaName
from batos.server.http.http_errors import UnknownModel

PERSONAS: Final[tuple[PersonaName, ...]] = get_args(PersonaName)
#: The mind that chooses who answers; all of them together.
MIND, COUNCIL = "batos", "council"
#: The prefix of names for clients of Ollama, which would meet a real model's of the same name otherwise.
PREFIX: Final = "batos/"
_EFFORTS: Final = frozenset({"reflex", "cycle"})


class ModelChoice(NamedTuple):
    """A model of the door: its bare name, and what a brief has for it."""

    name: str
    persona: PersonaName | None = None
    effort: EffortChoice | None = None


def names() -> Iterator[str]:
    """Yield the names of all models: the mind and each persona, with an effort too, and the council."""
    for each in (MIND, *(persona.lower() for persona in PERSONAS)):
        yield each
        yield from (f"{each}:{effort}" for effort in sorted(_EFFORTS))
    yield COUNCIL


def choose(model: object) -> ModelChoice:
    """Return what a model's name stands for, in either form. Raises: UnknownModel: there is none of this name.

    >>> choose("batos/robin:latest"), choose("council").effort, choose("Brick:cycle").effort
    (ModelChoice(name='robin', persona='ROBIN', effort=None), 'council', 'cycle')
    """
    name = str(model).lower().removeprefix(PREFIX).removesuffix(":latest") if isinstance(model, str) else ""
    who, _, effort = name.partition(":")
    if name == COUNCIL:
        return ModelChoice(name, None, "council")
    if (effort and effort not in _EFFORTS) or who not in {MIND, *(each.lower() for each in PERSONAS)}:
        shown = model[:80] if isinstance(model, str) else type(model).__name__
        raise UnknownModel(f"BAT OS has no model {shown!r}", field="model", remedy=f"There are {', '.join(names())}.")
    persona = None if who == MIND else cast("PersonaName", who.upper())
    return ModelChoice(name, persona, cast("EffortChoice", effort) if effort else None)


def for_ollama(name: str) -> str:
    """Return a model's name with a prefix and a tag, as clients of Ollama have it.

    >>> for_ollama("batos"), for_ollama("robin"), for_ollama("robin:cycle")
    ('batos:latest', 'batos/robin:latest', 'batos/robin:cycle')
    """
    tagged = name if ":" in name else f"{name}:latest"
    return tagged if tagged.startswith(MIND) else f"{PREFIX}{tagged}"
