"""The meta-prompts of a persona: templates with named places, filled when a mission runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Template

from batos.codex.reader import TomlTable, nearest_word

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


def read(table: TomlTable) -> dict[str, str]:
    """Read and check the seven templates of a `prompts` table. Faults are added to its file."""
    found: dict[str, str] = {}
    for name, shape in SHAPES.items():
        text = table.text(name)
        if text:
            _check(table, name, text, shape)
        found[name] = text
    table.close()
    return found


def fill(template: str, **values: object) -> str:
    """Fill the places of a template. The values are never searched for places themselves."""
    return Template(template).substitute({name: str(value) for name, value in values.items()})


def _stray(text: str) -> str:
    """Return the stray dollar sign with the rest of its line, by which the line is found."""
    for found in Template.pattern.finditer(text):
        if found["invalid"] is not None:
            return text[found.start() :].partition("\n")[0]
    return "$"


def _check(table: TomlTable, name: str, text: str, shape: PromptShape) -> None:
    template = Template(text)
    if not template.is_valid():
        table.fault(name, f"`{name}` has a `$` without a name", "Write `$$` for a dollar sign.", _stray(text))
        return
    places = template.get_identifiers()
    for place in places:
        if place not in shape.may:
            near = nearest_word(place, shape.may)
            hint = f": did you mean `${near}`?" if near else ""
            permitted = ", ".join(f"${each}" for each in shape.may)
            remedy = f"Permitted here: {permitted}; a dollar sign is written `$$`."
            table.fault(name, f"`{name}` has the unknown place `${place}`{hint}", remedy, f"${place}")
    for place in shape.must:
        if place not in places:
            table.fault(name, f"`{name}` lacks the place `${place}`", f"Write `${place}` where it belongs.")
