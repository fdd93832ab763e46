"""Effects in the image: capabilities, and the outbox.

A thought stages effects; its commit makes them durable, and its publication puts them into the outbox. Of an effect
that is equal to an earlier one of the same lineage (a mission and its ancestors) only the first ever happens.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, TypedDict

from persistent.mapping import PersistentMapping

from batos.agency.records import effect_log
from batos.image import roots
from batos.image.nodes.lease import HostIdentity
from batos.image.roots import Root
from batos.objects.method import Primitive
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.errors import NotFound, Refused
from batos.records import approvals, tools

#: The kind of target: files under a folder, an address of this machine, or a server of tools (MCP).
GrantKind: TypeAlias = Literal["file", "http", "mcp"]
#: The class of a target says how an effect whose record is missing is settled: it is done again with its key, which the
#: target knows; it is read back; or a person is asked.
SinkClass: TypeAlias = Literal["keyed", "queryable", "blind"]

#: The selectors that a capability of a kind answers, each with the kernel's function behind it.
SELECTORS: Final[dict[GrantKind, dict[str, str]]] = {
    "file": {"append_": "effect.append", "write_": "effect.write"},
    "http": {"post_": "effect.post"},
    "mcp": {"call_": "effect.call"},
}
#: The selectors with their parameters, as messages to a capability are written.
FORMS: Final = {
    "append_": "append_(path, text)", "write_": "write_(path, text)", "post_": "post_(data)",
    "call_": "call_(tool, arguments)",
}  # fmt: skip
#: The slot that marks a capability: nobody but the kernel writes any slot of it.
GRANTED_AT: Final = "granted_at"

#: The slot of a capability, and the field of an effect that was staged by it, that nobody knows before the grant.
NONCE: Final = "nonce"

_LIST: Final = "`batos grants list` lists them."


def add_capability(
    root: Root, name: str, kind: GrantKind, target: str, sink: SinkClass, told: tuple[str, str]
) -> UvmObject:
    """Make a capability of this name; `told` are whose it is, and when it is granted.

    Raises: Refused: an object has this name already.
    """
    check_free(root, name)
    user, at = told
    slots: dict[str, Any] = {
        "name": name, "kind": kind, "target": target, "sink": sink, "user": user, GRANTED_AT: at,
        NONCE: secrets.token_hex(8), **{each: Primitive(name) for each, name in SELECTORS[kind].items()},
    }  # fmt: skip
    root[roots.GRANTS][name] = made = UvmObject(slots)
    return made


def check_free(root: Root, name: str, *, is_made: bool = False) -> None:
    """Raise Refused where an object has this name already; `is_made`: one that is declared, or made, may have it."""
    made = None if is_made else tools.find_tool(root, name) or tools.absent(root, name)
    if name in root[roots.GRANTS] or name in roots.OBJECTS or made is not None:
        raise Refused(f"there is an object {name!r} already", field="name", remedy=f"Choose another name. {_LIST}")


def bind_capability(capability: UvmObject, host: HostIdentity) -> None:
    """Let what is done by a capability happen on one machine alone: its folder, or its program, is there."""
    capability.machine, capability.host = host


def find_capability_of(root: Root, effect: Mapping[str, object]) -> UvmObject | None:
    """Return the capability by which an effect was staged; None: it is revoked, or the effect was not staged by it.

    Whatever was forged before the grant may have its name and its number, which can be guessed, but not its nonce.
    """
    found = find_capability(root, str(effect["grant"]))
    if found is None or reference(found) != effect["oid"] or nonce_of(found) != effect.get(NONCE, ""):
        return None
    return found


def nonce_of(capability: UvmObject) -> str:
    """Return the nonce of a capability; one of an older version has none."""
    return str(own_slots(capability).get(NONCE, ""))


def machine_of(capability: UvmObject | None) -> str | None:
    """Return the id of the machine on which a capability acts; None: on that of the node that publishes."""
    return None if capability is None else own_slots(capability).get("machine")


def selectors_of(capability: UvmObject) -> list[str]:
    """Return the selectors that a capability answers, the usual one first; one of an older version has fewer."""
    slots = own_slots(capability)
    return [each for each in SELECTORS.get(slots["kind"], ()) if each in slots]


def revoke_capability(root: Root, name: str, user: str | None = None) -> UvmObject:
    """Take a capability away and return it. Raises: NotFound: there is none of this name (of this user's)."""
    found = find_capability(root, name, user)
    if found is None:
        raise NotFound(f"there is no grant {name!r}", field="name", remedy=_LIST)
    del root[roots.GRANTS][name]
    return found


def find_capability(root: Root, name: str, user: str | None = None) -> UvmObject | None:
    """Return a capability by its name; None: there is none, or it is another user's."""
    found: UvmObject | None = root[roots.GRANTS].get(name) if roots.GRANTS in root else None
    return None if found is None or user not in (None, own_slots(found)["user"]) else found


def check_granted(root: Root, names: Iterable[str], user: str) -> None:
    """Check that a user has these grants. Raises: NotFound: there is none of such a name."""
    for name in names:
        if find_capability(root, name, user) is None:
            what = f"there is no grant {name!r} of {user}'s"
            raise NotFound(what, field="grants", remedy="`batos grants list` lists them, `batos grants add` makes one.")


def list_all_capabilities(root: Root, user: str | None = None) -> Iterator[UvmObject]:
    """Yield the capabilities (of a user's) by name."""
    for each in root[roots.GRANTS].values() if roots.GRANTS in root else ():
        if user in (None, own_slots(each)["user"]):
            yield each


def is_capability(obj: UvmObject) -> bool:
    """Test if an object is a capability, also one that was revoked."""
    return GRANTED_AT in own_slots(obj)


#: The kind of contribution that an effect is: {grant, oid, nonce, operation, payload, fingerprint, number}.
KIND: Final = "effect"

#: `asking` waits for a person's yes, and `staged` to be released: both surely did not happen;
#: `releasing` was begun, may have happened, and is tried again; `unknown` may have happened, and a person is asked.
#: `released` happened; `failed` and `not_done` did not; `repeated` is equal to an earlier one of its lineage;
#: `withdrawn` went with its mission.
EffectState: TypeAlias = Literal[
    "asking", "staged", "releasing", "released", "unknown", "failed", "not_done", "repeated", "withdrawn"
]
#: States of effects that a releaser brings to their end.
WAITING: Final = frozenset({"staged", "releasing"})
#: States in which an equal effect of the same lineage may be staged again: this one did not happen.
_FREE: Final = frozenset({"failed", "not_done", "withdrawn"})
_GONE: Final = "its effect was taken back"
_NOT_NAMED: Final = "the brief of its mission does not name the grant"

#: An effect as the outbox has it: an `EffectData`.
Effect: TypeAlias = PersistentMapping[str, Any]
#: Returns why an effect asks a person before it happens; "": it needs no yes.
Asks: TypeAlias = Callable[[Root, Effect], str]


class EffectData(TypedDict, total=False):
    """An effect as plain data: `grant` to `number` as staged, the rest as the outbox and then a releaser have it.

    `asked_by` is the method and step that staged it, "" a person's message; one of an older version has none.
    `trust` is the lowest class of what its arguments were made from: `user` where they are a person's own words, else
    that of its thought. `approval` is the id of the question to a person, where it asked. `before` is what its sink's
    `prepare` returned.
    """

    grant: str
    oid: str
    nonce: str
    operation: str
    payload: Mapping[str, Any]
    fingerprint: str
    asked_by: str
    trust: str
    number: int
    approval: str
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


def fold(root: Root, mission: str, payload: EffectData, asks: Asks) -> Effect | None:
    """Put an effect of a committed mission into the outbox, once; one that its lineage had already is `repeated`.

    An effect whose grant the mission's brief does not name fails: no thought of this mind says so. An effect for
    which `asks` has a reason is returned, `asking`: it goes nowhere before a person's yes.
    """
    # Padded, since the outbox is in the order of these texts; a mission has at most 64.
    name = f"e-{mission.removeprefix('m-')}-{payload['number']:02}"
    if name in root[roots.EFFECTS]:
        return None
    lineage = lineage_of(root, mission)
    mark = _mark(lineage, payload["fingerprint"])
    earlier, key = root[roots.FIRED].get(mark), hashlib.sha256(mark.encode()).hexdigest()[:32]
    record = roots.mission_record(root, mission)
    trust = payload.get("trust") or own_slots(record.thought).get("lineage_trust", "external")
    made: Effect = PersistentMapping(
        {
            **payload, "trust": trust, "effect": name, "mission": mission, "lineage": lineage, "key": key,
            "state": "staged", "attempts": 0, "before": None, "outcome": None, "staged_at": "", "at": "",
        }
    )  # fmt: skip
    root[roots.EFFECTS][name] = made
    if payload["grant"] not in (record.brief.value.get("grants") or ()):
        become(root, made, "failed", "", {"reason": _NOT_NAMED})
    elif earlier is not None:
        made["state"], made["outcome"] = "repeated", {"of": earlier}
    elif why := asks(root, made):
        made["outcome"] = {"reason": why}
        _ask(root, made)
        return made
    else:
        stage(root, made)
    return None


def _mark(lineage: str, fingerprint: str) -> str:
    return f"{lineage} {fingerprint}"


def _ask(root: Root, effect: Effect) -> None:
    """Let an effect wait for a person's yes; an equal one of its lineage is `repeated` meanwhile."""
    effect["state"] = "asking"
    root[roots.FIRED][_mark(effect["lineage"], effect["fingerprint"])] = effect["effect"]


def stage(root: Root, effect: Effect) -> None:
    """Let an effect be released; an equal one of its lineage is `repeated` from now on."""
    effect["state"] = "staged"
    root[roots.FIRED][_mark(effect["lineage"], effect["fingerprint"])] = effect["effect"]
    root[roots.STAGED].insert(effect["effect"])


def find_equal(root: Root, mission: str, fingerprint: str) -> Effect | None:
    """Return the effect of a mission's lineage that is equal to one of this fingerprint; None: it may be staged."""
    name = root[roots.FIRED].get(_mark(lineage_of(root, mission), fingerprint))
    return None if name is None else root[roots.EFFECTS][name]


def find_effect(root: Root, named: str) -> Effect:
    """Return an effect by its id. Raises: NotFound."""
    found: Effect | None = root[roots.EFFECTS].get(named)
    if found is None:
        raise NotFound(f"there is no effect {named!r}", field="effect", remedy="`batos effects` lists them.")
    return found


def list_all_effects(root: Root, mission: str | None = None) -> Iterator[Effect]:
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
        effect_log.append_line(root, effect, state, at, effect["outcome"])
    mark = _mark(effect["lineage"], effect["fingerprint"])
    if state in _FREE and root[roots.FIRED].get(mark) == effect["effect"]:
        del root[roots.FIRED][mark]


def settle(root: Root, named: str, *, done: bool, by: str, at: str) -> Effect:
    """Write down what a person says of an effect of which nobody knows whether it happened.

    Raises: NotFound. Refused: its state is known.
    """
    found = find_effect(root, named)
    if found["state"] != "unknown":
        what = f"{named} is {found['state']}: nothing is to be settled"
        raise Refused(what, field="effect", remedy="`batos effects` lists those that are unknown.")
    become(root, found, "released" if done else "not_done", at, {**(found["outcome"] or {}), "settled_by": by})
    return found


def withdraw(root: Root, mission: str, at: str) -> list[str]:
    """Take back the effects of a mission that were not begun, with their questions, and return their ids."""
    staged = [each for each in list_all_effects(root, mission) if each["state"] in ("staged", "asking")]
    for each in staged:
        withdraw_question(root, each, at)
        become(root, each, "withdrawn", at)
    return [each["effect"] for each in staged]


def is_unasked(root: Root, effect: Effect) -> bool:
    """Test if an effect waits for a yes that nobody can give: its question is gone, or closed."""
    asked = approvals.find_approval(root, effect.get("approval", ""))
    return effect["state"] == "asking" and (asked is None or asked.word != "asked")


def withdraw_unasked(root: Root, at: str, mission: str | None = None) -> None:
    """Take back the effects (of a mission) that wait for a yes which nobody can give."""
    for effect in list_all_effects(root, mission):
        if is_unasked(root, effect):
            become(root, effect, "withdrawn", at)


def withdraw_question(root: Root, effect: Effect, at: str) -> None:
    """Close the question about an effect that waits for a yes: nobody can say yes to what goes."""
    asked = approvals.find_approval(root, effect.get("approval", ""))
    if asked is not None and asked.word == "asked":
        approvals.withdraw(root, [asked.name], at, _GONE)


def restage(root: Root, names: list[str]) -> list[str]:
    """Put withdrawn effects into the outbox again; return the ids of those whose like has been staged since."""
    left: list[str] = []
    for name in names:
        effect = find_effect(root, name)
        if _mark(effect["lineage"], effect["fingerprint"]) in root[roots.FIRED]:
            left.append(name)
        elif _was_approved(root, effect):
            stage(root, effect)
        else:
            approvals.ask_again(root, [effect["approval"]], _GONE)
            _ask(root, effect)
    return left


def _was_approved(root: Root, effect: Effect) -> bool:
    """Test if an effect needs no yes, or has one."""
    asked = approvals.find_approval(root, effect.get("approval", ""))
    return asked is None or asked.word == "approved"


def list_lasting(root: Root, mission: str) -> list[Effect]:
    """Return the effects of a mission that happened, or may have: no undo takes them back."""
    lasting = ("releasing", "released", "unknown")
    return [each for each in list_all_effects(root, mission) if each["state"] in lasting]
