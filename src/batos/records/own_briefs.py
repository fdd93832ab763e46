"""Briefs that the mind sends itself about its own work, with the facts that each is given: alarms, and audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from batos.image import ownership, roots
from batos.image.roots import Root
from batos.protocol.brief import MissionBrief
from batos.protocol.motion_documents import AlarmDocument

#: A source, a sentence of it, and the figure of it that an answer has to say (None: none is asked for).
Fact: TypeAlias = tuple[str, str, str | None]

#: The beginning of the client of a mission about an alarm; its figure follows.
ALARM: Final = "alarm "
#: The keys of the heartbeat's record: figure -> its newest alarm; client of a mission -> its facts.
_ALARMS, _FACTS = "alarms", "facts"


def list_alarms(root: Root) -> dict[str, AlarmDocument]:
    """Return the newest alarm of each figure."""
    kept = root.get(roots.HEARTBEAT)
    return {} if kept is None else {**kept.get(_ALARMS, {})}


def list_standing(root: Root) -> list[AlarmDocument]:
    """List the alarms that stand, the newest first, each with whether its mission was answered."""
    standing = sorted((each for each in list_alarms(root).values() if each["standing"]), key=_place_of, reverse=True)
    return [{**each, "answered": _is_answered(root, each["mission"])} for each in standing]


def put_alarms(root: Root, alarms: Mapping[str, AlarmDocument]) -> None:
    """Keep alarms in the place of those of the same figures."""
    root[roots.HEARTBEAT][_ALARMS] = {**list_alarms(root), **alarms}


def put_facts(root: Root, client: str, facts: Sequence[Fact]) -> None:
    """Keep what a mission of a client is told, in the place of what it was told before."""
    kept = root[roots.HEARTBEAT]
    kept[_FACTS] = {**kept.get(_FACTS, {}), client: tuple(facts)}


def find_facts(root: Root, brief: MissionBrief) -> tuple[Fact, ...]:
    """Return what a brief of the mind's own is told; nothing for any other, and for a guest's."""
    kept = root.get(roots.HEARTBEAT)
    if kept is None or brief.origin.door != ownership.DOOR or ownership.is_guest(brief.user):
        return ()
    found: tuple[Fact, ...] = kept.get(_FACTS, {}).get(brief.origin.client, ())
    return found


def _place_of(alarm: AlarmDocument) -> tuple[str, str]:
    return alarm["day"], alarm["figure"]


def _is_answered(root: Root, mission: str | None) -> bool:
    record = roots.find_record(root, mission) if mission is not None else None
    return record is not None and record.status.word == "done"
