"""Answer a request for the description of a tool with one that the good author can write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ollama_emulator.speech.language import plain_name
from ollama_emulator.speech.sources import Sources, words


class _Gadget(NamedTuple):
    """A tool, with the words that call for it in the text that the request asks about."""

    called_for: frozenset[str]
    name: str
    inputs: tuple[str, ...]
    purpose: str


_GADGETS: Final = (
    _Gadget(
        frozenset(("seconds", "minutes", "hours", "min", "duration", "durations")),
        "seconds_of_durations",
        ("text",),
        "Convert each duration in a text to seconds, and add them up.",
    ),
    _Gadget(
        frozenset(("average", "mean", "numbers", "figures")),
        "mean_of_numbers",
        ("numbers",),
        "The average of some numbers.",
    ),
    _Gadget(
        frozenset(("often", "times", "occurrences")),
        "times_in_text",
        ("text", "part"),
        "How often the part stands in the text.",
    ),
    _Gadget(
        frozenset(("list", "steps", "items", "bullets")),
        "bulleted_list",
        ("items",),
        "A list of some items, each on a line of its own.",
    ),
)
_USUAL: Final = _Gadget(frozenset(), "count_words", ("text",), "Count the words of a text.")


def wish(form: Mapping[str, Any], sources: Sources) -> dict[str, Any]:
    """Return the `name`, `inputs` and `purpose` of a tool, by the schema's names; {} if the schema lacks one."""
    properties = form.get("properties")
    if not isinstance(properties, dict):
        return {}
    names = {plain_name(name): name for name in properties}
    if not names.keys() >= {"name", "inputs", "purpose"}:
        return {}
    said = frozenset(words(sources.question_line))
    found = next((gadget for gadget in _GADGETS if gadget.called_for & said), _USUAL)
    told = {"name": found.name, "inputs": list(found.inputs), "purpose": found.purpose, "worth": True}
    return {names[name]: value for name, value in told.items() if name in names}
