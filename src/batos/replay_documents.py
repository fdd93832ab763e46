"""The document of a replay, key by key."""

from __future__ import annotations

from typing import TypedDict


class ReplayDocument(TypedDict):
    """The differences of a replay: calls by their steps, then pairs (before, after), then lines with a minus or a plus.

    `same` calls were served from the journal, `made` ones were asked of a model, `gone` ones were not needed. The words
    of so many calls of the mission are `erased`: these could not be served.
    """

    of: str
    mission: str
    same: list[str]
    made: list[str]
    gone: list[str]
    erased: int
    models: list[list[str]]
    personas: list[list[str]]
    carried: list[int]
    methods: list[str]
    recalled: list[str]
    written: list[str]
    answer: list[str]
