"""Names of models as the daemon reads them, and names that a codex may not use."""

from __future__ import annotations

import re

_MODEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
_NAMESPACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,349}")


def with_tag(name: str) -> str:
    """Return the name as the daemon lists it, with the tag `latest` if it has none.

    >>> with_tag("all-minilm"), with_tag("box:5000/team/model")
    ('all-minilm:latest', 'box:5000/team/model:latest')
    """
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def key(name: str) -> str:
    """Return the form in which names of one model are equal: the daemon ignores case."""
    return with_tag(name).casefold()


def same(one: str, other: str) -> bool:
    """Test if two names are one model to the daemon."""
    return key(one) == key(other)


def fault(name: str) -> tuple[str, str] | None:
    """Return a fault of a model's name with its remedy; None if the name may be used.

    >>> fault("llama3.1:8b-instruct-q4_K_M")
    >>> fault("gpt-oss:120b-cloud")[0]
    "the model 'gpt-oss:120b-cloud' runs in the cloud"
    """
    path, _, tag = with_tag(name).rpartition(":")
    folded = tag.casefold()
    if folded == "cloud" or folded.endswith("-cloud"):
        return f"the model {name!r} runs in the cloud", "Name a model that runs on this machine: nothing leaves it."
    if folded == "local":
        return (
            f"the tag of {name!r} is reserved: the daemon reads `local` as a source, not as a tag",
            "Give the model another tag (`ollama cp OLD NEW`) and write that.",
        )
    parts = path.split("/")
    shapes = (*(_HOST, _NAMESPACE, _MODEL)[-len(parts) :], _MODEL)
    if len(parts) > 3 or not all(shape.fullmatch(part) for shape, part in zip(shapes, [*parts, tag], strict=True)):
        return f"{name!r} is not a model's name", "Write it as `ollama list` shows it: model:tag."
    return None
