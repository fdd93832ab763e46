"""The effects of a memory on missions, tools and methods, and the withdrawal of what goes with one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from batos.image import roots
from batos.image.records import SLOT_TRUST, Lineage
from batos.image.roots import Root
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots
from batos.records import methods, tool_declarations

#: The slot in which an edited memory names the older wording.
EDITS: Final = "edits"
#: The slots in which a memory names those that it was made of: a summary's texts, a fact's ground, an older wording.
_MADE_OF: Final = ("of", "depends_on", EDITS)
#: The slot of a conversation that has the missions of its undone turns by their positions.
UNDONE_TURNS: Final = "undone_turns"


@dataclass(slots=True)
class MemoryEffects:
    """Holds all that came of some memories, each kind in the order in which it was found.

    `memories` are names of documents, `methods` keys of lineages with a revision, `tools` selectors of tools that were
    wished for, `slots` those that methods wrote in the missions: (oid, slot).
    """

    memories: dict[str, None] = field(default_factory=dict)
    missions: dict[str, None] = field(default_factory=dict)
    methods: dict[tuple[str, int], None] = field(default_factory=dict)
    tools: dict[str, None] = field(default_factory=dict)
    slots: dict[tuple[str, str], None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Origins:
    """The memories that are traced, by name; whose they are, and the digests of their texts."""

    names: frozenset[str]
    contents: frozenset[tuple[str, str]]


def find_caused(root: Root, names: Iterable[str]) -> MemoryEffects:
    """Return all that these memories caused, as far as the missions' own records tell.

    A mission was caused if it was shown one of them, the same text as a file of its own, a memory or turn that was
    caused, or an answer of a method that was. Reads every mission: for a rare verb, in a thread.
    """
    origins, found = _origins(root, names), MemoryEffects()
    made = _memories_by_mission(root)
    while True:
        before = (len(found.memories), len(found.missions), len(found.methods))
        for mission, record in roots.records_of(root):
            slots = own_slots(record.thought)
            if mission not in found.missions and _is_caused(root, record.brief.value, slots, origins, found):
                found.missions[mission] = None
                made_there = (each for each in made.get(mission, ()) if each not in origins.names)
                found.memories.update(dict.fromkeys(made_there))
                _add_effects(slots, found)
        _add_made_memories(root, origins, found)
        _add_methods(root, found)
        if before == (len(found.memories), len(found.missions), len(found.methods)):
            return found


def list_builds_on(root: Root, mission: str, thought: UvmObject, *, memories: bool = True) -> Iterator[str]:
    """Yield the missions that a thought builds on, some more than once: those that it replies to or was shown.

    A memory that it was shown counts for the mission that it came of; without `memories` it does not.
    """
    brief = roots.mission_record(root, mission).brief.value
    if brief.get("in_reply_to"):
        yield brief["in_reply_to"]
    documents = root[roots.DOCUMENTS]
    for told in (own_slots(thought).get("provenance") or {}).get("recalled", ()):
        if "mission" in told:
            yield told["mission"]
        elif "turns" in told:
            yield from _turns_of(root, brief, told)
        elif memories and told.get("memory", "") in documents:
            made_by = own_slots(documents[told["memory"]])["mission"]
            yield from [made_by] if made_by else []


def _origins(root: Root, names: Iterable[str]) -> _Origins:
    documents = {name: own_slots(root[roots.DOCUMENTS][name]) for name in names}
    contents = frozenset((slots["user"], slots["sha256"]) for slots in documents.values())
    return _Origins(frozenset(documents), contents)


def _memories_by_mission(root: Root) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, document in root[roots.DOCUMENTS].items():
        if mission := own_slots(document)["mission"]:
            found.setdefault(mission, []).append(name)
    return found


def _is_caused(
    root: Root, brief: Mapping[str, Any], slots: Mapping[str, Any], origins: _Origins, found: MemoryEffects
) -> bool:
    provenance = slots.get("provenance") or {}
    if any(_shows(root, brief, each, origins, found) for each in provenance.get("recalled", ())):
        return True
    return any(each in found.methods for each in list_methods_run(provenance))


def list_methods_run(provenance: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the methods that ran in a mission: the key of the lineage, and the revision."""
    for each in provenance.get("methods", ()):
        revision = str(each.get("revision", ""))
        if revision.isdigit():  # an intent that was interpreted has the commit of its wording
            yield f"{each['oid']} {each['selector']}", int(revision)


def _shows(
    root: Root, brief: Mapping[str, object], told: Mapping[str, object], origins: _Origins, found: MemoryEffects
) -> bool:
    """Test if an entry of what was recalled is a memory that is traced, or one that came of it."""
    if "mission" in told:
        return told["mission"] in found.missions
    if "turns" in told:
        return any(each in found.missions for each in _turns_of(root, brief, told))
    if "memory" in told:
        return told["memory"] in origins.names or told["memory"] in found.memories
    return (brief["user"], told.get("sha256")) in origins.contents


def _turns_of(root: Root, brief: Mapping[str, Any], told: Mapping[str, Any]) -> Iterator[str]:
    """Yield the missions of the turns that a summary stood for; of the undone ones those that were not undone then."""
    first, last = told["turns"]
    conversation = root[roots.CONVERSATIONS].get(brief.get("conversation") or "")
    if conversation is not None:
        slots, without = own_slots(conversation), told.get("undone", ())
        yield from slots["turns"].values(first, last)
        for position, mission in slots.get(UNDONE_TURNS, {}).items():
            if first <= position <= last and position not in without:
                yield mission


def _add_effects(slots: Mapping[str, Any], found: MemoryEffects) -> None:
    """Add the tools that a mission wished for, and the slots that its methods wrote."""
    for kind, payload in slots.get("contributions", ()):
        if kind == tool_declarations.KIND:
            found.tools[payload["selector"]] = None
    for each in (slots.get("provenance") or {}).get("written", ()):
        found.slots[each["oid"], each["slot"]] = None


def _add_made_memories(root: Root, origins: _Origins, found: MemoryEffects) -> None:
    """Add the memories that were made of others: summaries, and facts that rest on one."""
    grew = True
    while grew:
        grew = False
        for name, document in root[roots.DOCUMENTS].items():
            slots = own_slots(document)
            sources = {each for slot in _MADE_OF for each in slots.get(slot, ())}
            if name in origins.names or name in found.memories or not sources:
                continue
            if not sources.isdisjoint(origins.names) or not sources.isdisjoint(found.memories):
                found.memories[name] = None
                grew = True


def _add_methods(root: Root, found: MemoryEffects) -> None:
    """Add the revisions that were made for these missions from what came from outside, and those of their tools.

    A method of the codex's intents has nothing of a mission's evidence in it, and the class `user`: it stays.
    """
    tools = root.get(roots.TOOLS)
    for key, lineage in root[roots.METHODS].items():
        is_tool = lineage.holder is tools and lineage.selector in found.tools
        for number, method in lineage.revisions.items():
            if is_tool or (_is_from_outside(method) and _is_made_for(method, found)):
                found.methods[key, number] = None


def _is_from_outside(method: Method) -> bool:
    return method.provenance.get("trust") not in tool_declarations.OWN


def _is_made_for(method: Method, found: MemoryEffects) -> bool:
    return any(mission in found.missions for mission in method.provenance.get("missions", ()))


class Withdrawal(NamedTuple):
    """The moment at which methods go, who wants it, and the reason that stands in their history.

    The reason is a kind and an origin with " with " between them: "retracted with d-1", "undone with m-1".
    """

    at: str
    by: str
    reason: str

    @property
    def kind(self) -> str:
        """Return the kind of the reason, with which a withdrawal may bring back what another one took out."""
        return self.reason.partition(" with ")[0]


def retire_all(root: Root, found: Iterable[tuple[str, int]], why: Withdrawal) -> Iterator[tuple[str, int, bool]]:
    """Retire revisions by the keys of their lineages, also those that are not active; yield whether each one was.

    Nobody rolls back to one without seeing why it went. A revision that is retired already is left as it is.
    """
    for key, revision in found:
        lineage: Lineage = root[roots.METHODS][key]
        is_active = lineage.active == revision
        if revision in lineage.retired and not is_active:
            continue
        if not is_active:
            lineage.retired = {**lineage.retired, revision: {"at": why.at, "reason": why.reason}}
        elif lineage.holder is root.get(roots.TOOLS):
            _withdraw_made_tool(root, lineage, why)
        else:
            methods.retire(lineage, why.reason, why.at, why.by)
        yield key, revision, is_active


def _withdraw_made_tool(root: Root, lineage: Lineage, why: Withdrawal) -> None:
    """Take a tool away with its wish, which came of what is withdrawn: the wish alone would be interpreted."""
    revision, wish = lineage.active, lineage.intent
    methods.redeclare(root, lineage.holder, lineage.selector, None, why.at)
    lineage.retired = {**lineage.retired, revision: {"at": why.at, "reason": why.reason}}
    lineage.barred = None if wish is None else {"intent": methods.digest_of(wish), "coders": None, "reason": why.reason}


def bring_back(
    root: Root, found: Iterable[Sequence[Any]], tools: Iterable[tuple[str, Intent, str]], why: Withdrawal
) -> list[str]:
    """Bring back what was withdrawn, for whoever set it aside; return the names of what stays out.

    `found` are (key of the lineage, revision, whether it was active) and, where the withdrawal let another revision be
    active in its place, that one; `tools` as `withdraw_wishes` yields them. Something else may have taken their place.
    """
    wishes = [selector for selector, wish, trust in tools if not _declare_again(root, selector, wish, trust)]
    left = [each[0] for each in found if not _reinstate(root, why, *each)]
    lineages = root[roots.METHODS]
    return [methods.name_of(root, lineages[key]) if key in lineages else key for key in left] + wishes


def _reinstate(root: Root, why: Withdrawal, key: str, revision: int, was_active: bool, former: int = 0) -> bool:
    """Bring back a revision that was withdrawn for a reason of this kind; it is active only if nothing else is now.

    Returns whether it came back: one that went for another reason meanwhile, or whose lineage is gone, stays out.
    """
    lineage: Lineage | None = root[roots.METHODS].get(key)
    retired = None if lineage is None else lineage.retired.get(revision)
    if lineage is None or retired is None or Withdrawal("", "", retired["reason"]).kind != why.kind:
        return False
    if was_active and retired["reason"] == why.reason and lineage.active == former != 0:
        methods.restore(root, lineage, revision, why.at, why.by)
    elif was_active and not lineage.active:
        if lineage.intent is None:
            methods.redeclare(root, lineage.holder, lineage.selector, _last_wish(lineage), why.at)
        methods.restore(root, lineage, revision, why.at, why.by)
    else:
        lineage.retired = {number: told for number, told in lineage.retired.items() if number != revision}
    return True


def _last_wish(lineage: Lineage) -> Intent | None:
    """Return the intent that the slot had before it was withdrawn."""
    entries = (lineage.history[number] for number in sorted(lineage.history, reverse=True))
    return next((each["former_intent"] for each in entries if each.get("former_intent") is not None), None)


def withdraw_wishes(root: Root, selectors: Iterable[str]) -> Iterator[tuple[str, Intent, str]]:
    """Take away the wishes for tools that nothing was made of; yield each with the trust class of its slot."""
    holder: UvmObject | None = root.get(roots.TOOLS)
    for selector in selectors:
        wish = None if holder is None else own_slots(holder).get(selector)
        if holder is None or not isinstance(wish, Intent):
            continue
        trust = (own_slots(holder).get(SLOT_TRUST) or {}).get(selector, "")
        tool_declarations.forget(root, selector, methods.digest_of(wish))
        if selector not in own_slots(holder):
            yield selector, wish, trust


def _declare_again(root: Root, selector: str, wish: Intent, trust: str) -> bool:
    """Declare a tool again that was withdrawn; False if something else has its name by now.

    A tool that was made of the same wish meanwhile stays as it is.
    """
    holder = root[roots.TOOLS]
    if not tool_declarations.is_free(holder, selector, wish):
        return False
    if isinstance(own_slots(holder).get(selector), Method):
        return True
    setattr(holder, selector, wish)
    if trust:
        setattr(holder, SLOT_TRUST, {**(own_slots(holder).get(SLOT_TRUST) or {}), selector: trust})
    return True
