"""Compose files as an engine reads them: variables filled in, one laid over another; and the lines of a Dockerfile."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class Reset:
    """What `!reset` stands for: the value below is taken away."""


class _Loader(yaml.SafeLoader):
    """YAML with the tag by which an override takes something away."""


_Loader.add_constructor("!reset", lambda _loader, _node: Reset())


def read(text: str) -> dict[str, Any]:
    """A compose file; a list with `!override` and the like, which nothing of ours uses, is an error."""
    found = yaml.load(text, _Loader)
    assert isinstance(found, dict)
    return found


def laid_over(below: Any, above: Any) -> Any:
    """The merge of the specification (13-merge.md): mappings by key, values replaced; lists would be appended."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        assert not isinstance(below, list), "an override that appends to a list is read as one that replaces it"
        return above
    merged = dict(below)
    for key, value in above.items():
        if isinstance(value, Reset):
            merged.pop(key, None)
        else:
            merged[key] = laid_over(below[key], value) if key in below else value
    return merged


def variables(value: Any) -> dict[str, str | None]:
    """Each variable that a file takes from the shell, and its default there."""
    found: dict[str, str | None] = {}
    for text in _texts(value):
        for name, default in _VARIABLE.findall(text):
            assert found.setdefault(name, default) == default, f"{name} has two defaults"
    return found


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def filled(value: Any, environ: Mapping[str, str]) -> Any:
    """The file with its variables filled in from a shell's."""
    if isinstance(value, dict):
        return {key: filled(each, environ) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, environ) for each in value]
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: environ.get(found[1]) or found[2] or "", value)
    return value


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction of a Dockerfile."""

    word: str
    flags: Mapping[str, str]
    rest: str

    @property
    def words(self) -> list[str]:
        """What follows the flags, as a shell splits it."""
        return shlex.split(self.rest)


def dockerfile(text: str) -> list[list[Line]]:
    """A Dockerfile's stages, each with its instructions from FROM on."""
    whole = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    stages: list[list[Line]] = []
    for line in filter(None, map(str.strip, whole.splitlines())):
        word, _, rest = line.partition(" ")
        flags = dict(re.findall(r"--([\w-]+)=(\S+)\s", re.match(r"(?:--\S+\s+)*", rest)[0]))  # type: ignore[index]  # it matches nothing too
        if word == "FROM":
            stages.append([])
        stages[-1].append(Line(word, flags, re.sub(r"^(?:--\S+\s+)*", "", rest)))
    return stages


def sent(ignore: str, path: str) -> bool:
    """Whether a .dockerignore of the form "nothing but these" lets a path be sent to the builder."""
    rules = [line for line in ignore.splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*", "everything is left out first"
    assert all(rule.startswith(("!", "**/")) for rule in rules[1:])
    named = [rule[1:] for rule in rules if rule.startswith("!")]
    return any(path == name or path.startswith(f"{name}/") for name in named)
