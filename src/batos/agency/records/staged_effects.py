"""The outbox: effects on the world that missions staged, each with its key, its attempts and its outcome.

A thought stages effects; its commit makes them durable, and its publication puts them into the outbox. Of an effect
that is equal to an earlier one of the same lineage (a mission and its ancestors) only the first ever happens.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, TypedDict

from persistent.mapping import PersistentMapping

from batos.agency.records import effect_log
from batos.image import roots
from batos.image.roots import Root
from batos.protocol.errors import NotFound, Refused

#: The kind of contribution that an effect is: {grant, oid, nonce, operation, payload, fingerprint, number}.
KIND: Final = "effect"

#: `staged` waits and surely did not happen; `releasing` was begun, may have happened, and is tried again;
#: `unknown` may have happened, and a person is asked.
#: `released` happened; `failed` and `not_done` did not; `repeated` is equal to an earlier one of its lineage;
#: `withdrawn` went with its mission.
EffectState: TypeAlias = Literal[
    "staged", "releasing", "released", "unknown", "failed", "not_done", "repeated", "withdrawn"
]
#: States of effects that a releaser brings to their end.
WAITING: Final = frozenset({"staged", "releasing"})
#: States in which an equal effect of the same lineage may be staged again: this one did not happen.
_FREE: Final = frozenset({"failed", "not_done", "withdrawn"})
_NOT_NAMED: Final = "the brief of its mission does not name the grant"

#: An effect as the outbox has it: an `EffectData`.
Effect: TypeAlias = PersistentMapping[str, Any]


class EffectData(TypedDict, total=False):
    """An effect as plain data: `grant` to `number` as staged, the rest as the outbox and then a releaser have it.

    `before` is what its sink's `prepare` returned.
    """

    grant: str
    oid: str
    nonce: str
    operation: str
    payload: Mapping[str, Any]
    fingerprint: str
    number: int
    effect: str
    mission: str
    key: str
    state: EffectState
    attempts: int
    before: Mapping[str, Any] | None
    may_have_happened: bool


def fingerprint_of(grant: str, operation: str, payload: Mapping[str, object]) -> str:
    """Return the digest of what an effect does: SHA-256 over the grant's reference, the operation and the payload."""
    whole = json.dumps([grant, operation, payload], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


def lineage_of(root: Root, mission: str) -> str:
    """Return the first mission of a lineage: the one from which retries, forks and replays come."""
    seen = {mission}
    while True:
        record = roots.find_record(root, mission)
        before = None if record is None else record.brief.value.get("ancestor")
        if not before or before in seen or roots.find_record(root, before) is None:
            return mission
        mission = before
        seen.add(mission)


def fold(root: Root, mission: str, payload: EffectData) -> None:
    """Put an effect of a committed mission into the outbox, once; one that its lineage had already is `repeated`.

    An effect whose grant the mission's brief does not name fails: no thought of this mind says so.
    """
    # Padded, since the outbox is in the order of these texts; a mission has at most 64.
    name = f"e-{mission.removeprefix('m-')}-{payload['number']:02}"
    if name in root[roots.EFFECTS]:
        return
    lineage = lineage_of(root, mission)
    mark = _mark(lineage, payload["fingerprint"])
    earlier, key = root[roots.FIRED].get(mark), hashlib.sha256(mark.encode()).hexdigest()[:32]
    made: Effect = PersistentMapping(
        {
            **payload, "effect": name, "mission": mission, "lineage": lineage, "key": key,
            "state": "staged", "attempts": 0, "before": None, "outcome": None, "staged_at": "", "at": "",
        }
    )  # fmt: skip
    root[roots.EFFECTS][name] = made
    if payload["grant"] not in (roots.mission_record(root, mission).brief.value.get("grants") or ()):
        become(root, made, "failed", "", {"reason": _NOT_NAMED})
    elif earlier is None:
        _stage(root, made)
    else:
        made["state"], made["outcome"] = "repeated", {"of": earlier}


def _mark(lineage: str, fingerprint: str) -> str:
    return f"{lineage} {fingerprint}"


def _stage(root: Root, effect: Effect) -> None:
    effect["state"] = "staged"
    root[roots.FIRED][_mark(effect["lineage"], effect["fingerprint"])] = effect["effect"]
    root[roots.STAGED].insert(effect["effect"])


def find_equal(root: Root, mission: str, fingerprint: str) -> Effect | None:
    """Return the effect of a mission's lineage that is equal to one of this fingerprint; None: it may be staged."""
    name = root[roots.FIRED].get(_mark(lineage_of(root, mission), fingerprint))
    return None if name is None else root[roots.EFFECTS][name]


def find(root: Root, named: str) -> Effect:
    """Return an effect by its id. Raises: NotFound."""
    found: Effect | None = root[roots.EFFECTS].get(named)
    if found is None:
        raise NotFound(f"there is no effect {named!r}", field="effect", remedy="`batos effects` lists them.")
    return found


def list_all(root: Root, mission: str | None = None) -> Iterator[Effect]:
    """Yield the effects (of a mission), the oldest first."""
    if mission is None:
        yield from root[roots.EFFECTS].values()
        return
    begin = f"e-{mission.removeprefix('m-')}-"
    yield from root[roots.EFFECTS].values(begin, f"{begin[:-1]}.", excludemax=True)


def list_waiting(root: Root) -> list[str]:
    """Return the ids of the effects that are to be released, or were begun, in their order."""
    return list(root[roots.STAGED]) if roots.STAGED in root else []


def become(root: Root, effect: Effect, state: EffectState, at: str, told: Mapping[str, object] | None = None) -> None:
    """Move an effect to another state; `told` is what came of it."""
    effect["state"], effect["at"] = state, at
    if told is not None:
        effect["outcome"] = dict(told)
    if state not in WAITING:
        root[roots.STAGED].discard(effect["effect"])
        effect_log.append(root, effect, state, at, effect["outcome"])
    mark = _mark(effect["lineage"], effect["fingerprint"])
    if state in _FREE and root[roots.FIRED].get(mark) == effect["effect"]:
        del root[roots.FIRED][mark]


def settle(root: Root, named: str, *, done: bool, by: str, at: str) -> Effect:
    """Write down what a person says of an effect of which nobody knows whether it happened.

    Raises: NotFound. Refused: its state is known.
    """
    found = find(root, named)
    if found["state"] != "unknown":
        what = f"{named} is {found['state']}: nothing is to be settled"
        raise Refused(what, field="effect", remedy="`batos effects` lists those that are unknown.")
    become(root, found, "released" if done else "not_done", at, {**(found["outcome"] or {}), "settled_by": by})
    return found


def withdraw(root: Root, mission: str, at: str) -> list[str]:
    """Take back the effects of a mission that were not begun, and return their ids."""
    staged = [each for each in list_all(root, mission) if each["state"] == "staged"]
    for each in staged:
        become(root, each, "withdrawn", at)
    return [each["effect"] for each in staged]


def restage(root: Root, names: list[str]) -> list[str]:
    """Put withdrawn effects into the outbox again; return the ids of those whose like has been staged since."""
    left: list[str] = []
    for name in names:
        effect = find(root, name)
        if _mark(effect["lineage"], effect["fingerprint"]) in root[roots.FIRED]:
            left.append(name)
        else:
            _stage(root, effect)
    return left


def list_lasting(root: Root, mission: str) -> list[Effect]:
    """Return the effects of a mission that happened, or may have: no undo takes them back."""
    lasting = ("releasing", "released", "unknown")
    return [each for each in list_all(root, mission) if each["state"] in lasting]
