"""Methods in the image: every revision of a slot's method, the active one, and the intent of the slot.

A `Lineage` holds everything that was ever made for one slot. The slot itself holds the active revision, or the Intent
that the methods were made from. A candidate that `install` refuses never becomes a method. docs/methods.md describes
the life of a method.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ZODB.POSException import POSKeyError

from batos.image import roots
from batos.image.guards import lacks_approval
from batos.image.ids import serial_of
from batos.image.records import TRUST, Lineage
from batos.image.roots import Root
from batos.objects.method import Intent, IntentKind, Method
from batos.objects.prototype import FoundSlot, UvmObject, label, lookup, own_slots
from batos.protocol.errors import NotFound, Refused
from batos.protocol.method_documents import UseDocument, no_use
from batos.records import outcomes, tools
from batos.records.approval_subjects import Candidate
from batos.records.erased_words import MARK, ErasedWords

#: Keys in the provenance of every method.
PROVENANCE: Final = ("generation", "missions", "model", "model_digest", "prompt_digest", "at", "trust")

#: Reasons for retiring a method because of the codex.
ANEW: Final = "the codex declares it anew"
NO_MORE: Final = "the codex no longer declares it"

#: The source that stands in the place of one that was erased, and the key in the provenance that says when.
NO_SOURCE: Final = "# erased\n"
ERASED_AT: Final = "erased_at"


# -- finding


def lineage_of(root: Root, holder: UvmObject, selector: str) -> Lineage | None:
    """Return the lineage of a slot, or None if no method was ever made for the slot."""
    found: Lineage | None = root[roots.METHODS].get(roots.method_key(holder, selector))
    return found


def lineages_of(root: Root, holder: UvmObject) -> Iterator[Lineage]:
    """Yield the lineages of all slots of an object, sorted by selector."""
    start = roots.method_key(holder, "")
    # The character behind the blank: every key of this holder sorts between the two.
    yield from root[roots.METHODS].values(start, f"{start[:-1]}!", excludemax=True)


def name_of(root: Root, lineage: Lineage) -> str:
    """Return the name of a lineage's slot for people."""
    return f"{roots.name_of_object(root, lineage.holder)}.{lineage.selector}"


def find_holder(root: Root, name: str) -> UvmObject:
    """Return an object by its root name, by the name of a generated object, or by `oid:0x2a`.

    Raises: NotFound: there is no such object.
    """
    found: Any = roots.named_objects(root).get(name) if name in roots.OBJECTS else tools.find_tool(root, name)
    if name.startswith("oid:0x"):
        try:
            found = roots.connection_of(root).get(serial_of(name))
        except (ValueError, OverflowError, POSKeyError):  # no such number, or nothing by it
            found = None
    if not isinstance(found, UvmObject):
        raise NotFound(f"there is no object {name!r} to hold a method", field="object")
    return found


def digest_of(intent: Intent) -> str:
    """Return the digest of an intent: SHA-256 over all of its fields, in hex."""
    fields = json.dumps(intent.as_dict(), sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(fields.encode()).hexdigest()


# -- becoming active


def install(root: Root, candidate: Candidate, at: str) -> Method:
    """Make a candidate the next revision of its slot's method, and active; what was active stays readable.

    Nothing but objects of `root` is changed. The same source for the same intent, if it is the active one, is left
    as it is. Refused: no accepted verdict on exactly this source, no whole provenance, `external` without approval,
    another intent than the slot's, undone missions that it was made for alone. NotFound: no such object.
    """
    check(candidate)
    _check_still_wanted(root, candidate)
    holder = find_holder(root, candidate.holder)
    lineage = lineage_of(root, holder, candidate.selector)
    intent = _current_intent(holder, candidate.selector, lineage)
    if digest_of(intent) != candidate.intent:
        raise Refused(
            f"the intent of {roots.name_of_object(root, holder)}.{candidate.selector} is another than "
            "this method was made from",
            field="intent",
            remedy="Generate it again: the next message does.",
        )
    if lineage is None:
        key = roots.method_key(holder, candidate.selector)
        lineage = root[roots.METHODS][key] = Lineage(holder, candidate.selector, intent)
    elif lineage.active and candidate.wish is None:
        active: Method = lineage.revisions[lineage.active]
        if active.provenance["digest"] == candidate.digest and active.provenance["intent"] == candidate.intent:
            return active
    return _new_revision(lineage, candidate, intent, at)


def _new_revision(lineage: Lineage, candidate: Candidate, intent: Intent, at: str) -> Method:
    wish = intent if candidate.wish is None else _with_wish(intent, candidate.wish)
    number = len(lineage.revisions) + 1
    method = Method(
        selector=candidate.selector,
        source=candidate.source,
        intent=wish.text,
        provenance={**candidate.provenance, "digest": candidate.digest, "intent": digest_of(wish)},
        verdict=dict(candidate.verdict),
        checks=tuple(dict(each) for each in candidate.checks),
        revision=number,
    )
    lineage.revisions[number] = method
    by = str(candidate.provenance.get("by") or candidate.provenance["generation"])
    _point_at(lineage, number, wish, {"event": "installed", "at": at, "by": by, "reason": _install_reason(candidate)})
    return method


def _install_reason(candidate: Candidate) -> str:
    approval = candidate.provenance.get("approval")
    made = "redefined" if candidate.wish is not None or candidate.provenance.get("by") else "generated"
    return f"{made}, approved as {approval}" if approval else made


def restore(root: Root, lineage: Lineage, revision: int, at: str, by: str) -> None:
    """Let a former revision be active again, or with 0 the Intent; a new entry of history, no revision is touched.

    The wish that the revision was made from comes back with it, unless the codex has declared another since.

    NotFound: there is no such revision. Refused: it is active already, or its slot is declared no more.
    """
    slot = name_of(root, lineage)
    if revision and revision not in lineage.revisions:
        made = len(lineage.revisions)
        raise NotFound(
            f"{slot} has no revision {revision}", field="revision", remedy=f"It has 1 to {made}; 0 is the intent."
        )
    if revision and ERASED_AT in lineage.revisions[revision].provenance:
        remedy = "Nothing brings it back: generate the method again."
        raise Refused(f"revision {revision} of {slot} is erased", field="revision", remedy=remedy)
    if revision == lineage.active and lineage.is_sound():
        what = f"revision {revision} of {slot} is active" if revision else f"{slot} is its intent"
        raise Refused(f"{what} already", field="revision", remedy="`batos method history` lists its revisions.")
    intent = _wish_of(lineage, revision, _current_intent(lineage.holder, lineage.selector, lineage))
    gone = lineage.retired.get(revision)
    lineage.retired = {number: why for number, why in lineage.retired.items() if number != revision}
    former = lineage.active
    reason = f"rolled back from revision {former}" if former and revision else "brought back"
    if not revision:
        reason = f"the intent took the place of revision {former}"
    _point_at(lineage, revision, intent, {"event": "restored", "at": at, "by": by, "reason": reason, "retired": gone})
    if not revision:
        lineage.barred = {"intent": digest_of(intent), "coders": None, "reason": "a person put the intent back"}


# -- going


def retire(lineage: Lineage, reason: str, at: str, by: str = "the ledger") -> int:
    """Take the active revision out of use and put the Intent back into the slot. Return the revision, 0 if none was
    active.

    The revision stays readable with the reason. No new method is generated until the intent or the coder changes.
    """
    gone = lineage.active
    if gone:
        lineage.retired = {**lineage.retired, gone: {"at": at, "reason": reason}}
        _point_at(lineage, 0, lineage.intent, {"event": "retired", "at": at, "by": by, "reason": reason})
        _bar(lineage, reason)
    return gone


def redeclare(
    root: Root, holder: UvmObject, selector: str, intent: Intent | None, at: str, told: tuple[str, str] = ("", "")
) -> int:
    """Tell a lineage that its slot's intent changed (None: removed); return the revision retired for it, or 0.

    `told` are who changed it and why; absent: genesis, by the codex. The slot gets the new intent. Does nothing for a
    slot that never had a method.
    """
    lineage = lineage_of(root, holder, selector)
    if lineage is None:
        return 0
    gone = lineage.active
    by, reason = told if told[0] else ("genesis", NO_MORE if intent is None else ANEW)
    if gone:
        lineage.retired = {**lineage.retired, gone: {"at": at, "reason": reason}}
    _point_at(lineage, 0, intent, {"event": "declared", "at": at, "by": by, "reason": reason})
    return gone


def erase(method: Method, words: ErasedWords, at: str) -> None:
    """Erase a method's source, its intent's text and its checks for good; the digest of the source stays.

    The method may not be active. Words in its provenance are erased too.
    """
    digest = hashlib.sha256(NO_SOURCE.encode()).hexdigest()
    method.source, method.intent, method.checks = NO_SOURCE, MARK, ()
    method.provenance = {**words.redact_value(method.provenance), ERASED_AT: at}
    method.verdict = {"accepted": True, "faults": [], "digest": digest}


def lift_bar(lineage: Lineage) -> None:
    """Let a method be generated again for the intent as it stands."""
    lineage.barred = None


def bar_reason(holder: UvmObject, selector: str, coder: str) -> str:
    """Return the reason why the model with the digest `coder` may not generate for a slot; empty if it may."""
    if holder._p_jar is None or holder._p_oid is None:
        return ""
    lineage = lineage_of(holder._p_jar.root(), holder, selector)
    bar = None if lineage is None else lineage.barred
    if bar is None or (bar["coders"] is not None and coder not in bar["coders"]):
        return ""
    now = own_slots(holder).get(selector)
    return bar["reason"] if isinstance(now, Intent) and digest_of(now) == bar["intent"] else ""


def use(lineage: Lineage, entry: UseDocument) -> None:
    """Write a use down and count it; one of a revision that there is not is no use of this slot and is left out."""
    revision = entry["revision"]
    if revision == 0 or revision in lineage.revisions:
        outcomes.write(lineage.ledger, entry)
        lineage.totals[revision] = outcomes.add_use(lineage.totals.get(revision) or no_use(), entry)


def note_undone(lineage: Lineage, mission: str, revision: int, *, control: bool, again: bool = False) -> None:
    """Write down that the mission of an earlier use was undone, or with `again` that it was brought back."""
    outcome = outcomes.REDONE if again else outcomes.UNDONE
    use(
        lineage,
        UseDocument(
            mission=mission, revision=revision, outcome=outcome, control=control,
            seconds=0, tokens=0, calls=0, gate_faults=0,
        ),
    )  # fmt: skip


# -- within


def check(candidate: Candidate) -> None:
    """Raise Refused unless this may be a method: an accepted verdict on its source, and a whole provenance."""
    verdict, provenance = candidate.verdict, candidate.provenance
    if candidate.digest != verdict.get("digest"):
        raise _refusal(candidate, "the guardian's verdict is on another source", "digest")
    if verdict.get("accepted") is not True:
        raise _refusal(candidate, "the guardian did not accept it", "verdict")
    missing = [name for name in PROVENANCE if name not in provenance]
    if missing or provenance["trust"] not in TRUST:
        raise _refusal(candidate, f"its provenance lacks {', '.join(missing) or 'a trust class'}", "provenance")
    if lacks_approval(provenance):
        raise _refusal(candidate, "it comes from outside and nobody approved it", "trust")


def _check_still_wanted(root: Root, candidate: Candidate) -> None:
    """Raise Refused for what was made for missions that were all undone meanwhile."""
    if is_undone(root, candidate.provenance):
        mission = candidate.provenance["missions"][0]
        raise Refused(
            f"{candidate.selector!r} was made for {mission}, which is undone",
            field=candidate.selector,
            remedy=f"`batos redo {mission}` brings it back.",
        )


def is_undone(root: Root, provenance: Mapping[str, Any]) -> bool:
    """Test if a method was made for missions that are all undone now, their methods with them."""
    missions = provenance.get("missions", ())
    return bool(missions) and all(_is_undone_with_methods(root, each) for each in missions)


def _is_undone_with_methods(root: Root, mission: str) -> bool:
    kept = root[roots.UNDONE].get(mission) if roots.UNDONE in root else None
    return kept is not None and "methods" not in kept["keeping"]


def _refusal(candidate: Candidate, why: str, field: str) -> Refused:
    remedy = "Let a person look at it: `batos approvals`." if field == "trust" else "Generate it again."
    return Refused(f"{candidate.selector!r} does not become a method: {why}", field=field, remedy=remedy)


def _current_intent(holder: UvmObject, selector: str, lineage: Lineage | None) -> Intent:
    """Return the intent that a method in this slot implements. Raises: Refused: the slot has no intent."""
    value = own_slots(holder).get(selector)
    if isinstance(value, Intent):
        return value
    if isinstance(value, Method | None) and lineage is not None and lineage.intent is not None:
        return lineage.intent
    raise Refused(
        f"{label(holder)}.{selector} is no declared intent",
        field="selector",
        remedy="Declare it in the codex first, then `batos genesis`.",
    )


def _wish_of(lineage: Lineage, revision: int, standing: Intent) -> Intent:
    """Return the intent that a slot, whose present one is `standing`, gets back when this revision is retired."""
    wanted = lineage.revisions[revision].provenance["intent"] if revision else None
    wishes: list[Intent | None] = [standing]
    for number in sorted(lineage.history, reverse=True):
        entry = lineage.history[number]
        if entry["event"] == "declared":
            break
        wishes += [entry["former_intent"]] if "former_intent" in entry else []
    return next((each for each in wishes if each is not None and digest_of(each) == wanted), standing)


def _with_wish(intent: Intent, wish: Mapping[str, object]) -> Intent:
    return Intent(**{**intent.as_dict(), **wish, "kind": intent.kind})


def _point_at(lineage: Lineage, revision: int, intent: Intent | None, entry: Mapping[str, object]) -> None:
    """Point slot and lineage at a revision, or at the intent, and write down what was there before."""
    told = {**entry, "revision": revision, "former": lineage.active, "barred": lineage.barred, "since": lineage.since}
    if intent is not lineage.intent:
        told["former_intent"] = lineage.intent
    lineage.history[_next(lineage.history)] = told
    lineage.active, lineage.intent, lineage.barred = revision, intent, None
    if intent is not None:
        lineage.kind = intent.kind
    lineage.since = (lineage.totals.get(revision) or no_use()).copy()
    value = lineage.revisions[revision] if revision else intent
    if value is not None:
        setattr(lineage.holder, lineage.selector, value)
    elif lineage.selector in own_slots(lineage.holder):
        delattr(lineage.holder, lineage.selector)


def _bar(lineage: Lineage, reason: str) -> None:
    """Forbid new methods for this intent by the coders whose methods for it were retired."""
    if lineage.intent is not None:
        wish = digest_of(lineage.intent)
        made = [lineage.revisions[number].provenance for number in lineage.retired]
        coders = sorted({str(each["model_digest"]) for each in made if each["intent"] == wish})
        lineage.barred = {"intent": wish, "coders": coders, "reason": reason}


def _next(tree: Any) -> int:
    return int(tree.maxKey()) + 1 if tree else 1


#: Kinds that a slot's name says, for a method that was written without an intent.
_NAMED: Final[tuple[IntentKind, ...]] = ("facet", "protocol")


def is_interpretable(intent: Intent) -> bool:
    """Return True if an intent can be interpreted by a persona; tools and prototypes are computed."""
    return intent.kind not in ("tool", "prototype")


def kind_of(intent: Intent | None, selector: str) -> IntentKind:
    """Return the kind of a slot's behaviour: as its intent declares it, else as the slot's name says."""
    if intent is not None:
        return intent.kind
    return next((kind for kind in _NAMED if selector.endswith(f"_{kind}_")), "method")


def intent_in(found: FoundSlot, selector: str) -> Intent | None:
    """Return the intent behind the value that answers a selector; None for a value that was not declared by one."""
    if isinstance(found.value, Intent):
        return found.value
    holder = found.holder
    if not isinstance(found.value, Method) or holder._p_jar is None or holder._p_oid is None:
        return None
    lineage = lineage_of(holder._p_jar.root(), holder, selector)
    return None if lineage is None else lineage.intent


def intent_of(receiver: UvmObject, selector: str) -> Intent | None:
    """Return the intent behind the value that answers a selector of a receiver; None where there is none."""
    found = lookup(receiver, selector)
    return None if found is None else intent_in(found, selector)
