"""The meta-prompts of a persona: templates with named places, filled when a mission runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Template
from types import MappingProxyType
from typing import Any

from batos.genesis.codex.reader import nearest_word
from batos.genesis.codex.value_checks import ValueFault, missing, refusal

#: Tokens that a byte of prompt costs, before a model has been measured (docs/decisions/0007-tokens.md).
FIRST_RATIO = 0.35


@dataclass(frozen=True, slots=True)
class PromptShape:
    """The places a template may have, and those without which it makes no sense."""

    may: tuple[str, ...]
    must: tuple[str, ...]


SHAPES: Mapping[str, PromptShape] = {
    "decompose": PromptShape(("count", "pillars", "query"), ("query",)),
    "facet": PromptShape(("name", "inspiration", "intent", "query"), ("intent", "query")),
    "weave": PromptShape(("query", "parts"), ("query", "parts")),
    "select": PromptShape(("query", "answers"), ("query", "answers")),
    "reflex": PromptShape(("query",), ("query",)),
    "revise": PromptShape(("faults",), ("faults",)),
    "protocol": PromptShape(("name", "intent", "answer"), ("intent", "answer")),
}


def check_names(values: object) -> Any:
    """Return a `prompts` table. Raises: PydanticCustomError: a template is absent or unknown."""
    if isinstance(values, dict):
        faults = [ValueFault("key", path=(name,), known=tuple(SHAPES)) for name in values if name not in SHAPES]
        faults += [missing(name) for name in SHAPES if name not in values]
        if faults:
            raise refusal(*faults)
    return values


def check_places(values: dict[str, str]) -> Mapping[str, str]:
    """Return the templates. Raises: PydanticCustomError: one lacks a place, or has one that it may not have."""
    faults = [each for name, shape in SHAPES.items() for each in _find_faults(name, values[name], shape)]
    if faults:
        raise refusal(*faults)
    return MappingProxyType({name: values[name] for name in SHAPES})


def fill(template: str, **values: object) -> str:
    """Fill the places of a template. The values are never searched for places themselves."""
    return Template(template).substitute({name: str(value) for name, value in values.items()})


def _stray(text: str) -> str:
    """Return the stray dollar sign with the rest of its line, by which the line is found."""
    for found in Template.pattern.finditer(text):
        if found["invalid"] is not None:
            return text[found.start() :].partition("\n")[0]
    return "$"


def _find_faults(name: str, text: str, shape: PromptShape) -> Iterator[ValueFault]:
    template = Template(text)
    if not template.is_valid():
        yield ValueFault(
            f"`{name}` has a `$` without a name", "Write `$$` for a dollar sign.", (name,), within=_stray(text)
        )
        return
    places = template.get_identifiers()
    for place in places:
        if place not in shape.may:
            near = nearest_word(place, shape.may)
            hint = f": did you mean `${near}`?" if near else ""
            permitted = ", ".join(f"${each}" for each in shape.may)
            what = f"`{name}` has the unknown place `${place}`{hint}"
            remedy = f"Permitted here: {permitted}; a dollar sign is written `$$`."
            yield ValueFault(what, remedy, (name,), within=f"${place}")
    for place in shape.must:
        if place not in places:
            yield ValueFault(f"`{name}` lacks the place `${place}`", f"Write `${place}` where it belongs.", (name,))
