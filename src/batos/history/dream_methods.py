"""Methods of dreams: those that were made in a copy of the mind, as data, and their way into the mind with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from batos.image import roots
from batos.image.roots import Root
from batos.objects.method import Intent
from batos.objects.prototype import own_slots, reference
from batos.protocol.dream_documents import Dream, MadeMethod
from batos.protocol.errors import NotFound, Refused
from batos.protocol.method_documents import CandidateDocument
from batos.records import approvals, methods, object_installation, tools
from batos.records.candidates import Candidate


def draw(root: Root, candidate: Candidate) -> dict[str, object]:
    """Return a candidate that was installed in a copy as plain data, with its revision, or with the object of a whole
    one.
    """
    made = tools.find_tool(root, candidate.selector) if candidate.methods else None
    revision = 0
    if not candidate.methods:
        lineage = methods.lineage_of(root, methods.find_holder(root, candidate.holder), candidate.selector)
        revision = 0 if lineage is None else len(lineage.revisions)
    return {
        "candidate": candidate.as_dict(),
        "revision": revision,
        "object": "" if made is None else reference(made),
    }


def draw_asked(root: Root, mission: str) -> list[CandidateDocument]:
    """Return the candidates that a person would have been asked about for a mission, as plain data."""
    asked = (root[roots.APPROVALS][name] for name in approvals.list_made_for(root, mission, ()))
    return [{**each.candidate} for each in asked if not each.candidate["forgets"]]


def list_made(root: Root, dream: Dream) -> list[MadeMethod]:
    """List the methods that a dream made, and what stands against each in the mind as it is now."""
    made = [(Candidate.from_dict(each["candidate"]), each["revision"]) for each in dream.get("made", ())]
    asked = [Candidate.from_dict(each) for each in dream.get("asks", ())]
    return [
        *(_line(root, each, _find_conflict(root, each, revision), asks=False) for each, revision in made),
        *(_line(root, each, _find_conflict(root, each, None), asks=True) for each in asked),
    ]


def _line(root: Root, candidate: Candidate, conflict: str, *, asks: bool) -> MadeMethod:
    try:
        holder = roots.name_of_object(root, methods.find_holder(root, candidate.holder))
    except NotFound:
        holder = candidate.holder
    name = candidate.selector if candidate.methods else f"{holder}.{candidate.selector}"
    return {"method": name, "source": candidate.source, "asks": asks, "conflict": conflict}


def _find_conflict(root: Root, candidate: Candidate, revision: int | None) -> str:
    """Return what has changed since the dream began; "" if nothing has. Without a revision only the intent counts."""
    if candidate.methods:
        intent = tools.absent(root, candidate.selector)
        is_declared = intent is not None and methods.digest_of(intent) == candidate.intent
        return "" if is_declared else "it is declared otherwise"
    try:
        holder = methods.find_holder(root, candidate.holder)
    except NotFound:
        return "the object is gone"
    lineage = methods.lineage_of(root, holder, candidate.selector)
    value = own_slots(holder).get(candidate.selector) if lineage is None else lineage.intent
    if not isinstance(value, Intent) or methods.digest_of(value) != candidate.intent:
        return "its intent is another"
    made = 0 if lineage is None else len(lineage.revisions)
    return "another method was made meanwhile" if revision is not None and made != revision - 1 else ""


def check_installable(root: Root, dream: Dream, at: str) -> None:
    """Check that each method of a dream may come into the mind. Raises: Refused: one may not.

    The guardian of today judges each once more, and a person's no stands.
    """
    for candidate in _candidates(dream):
        refused = [each for each in candidate.methods or (candidate,) if not each.verdict["accepted"]]
        if refused:
            what = f"the guardian of today refuses {refused[0].selector!r}"
            raise Refused(what, field=refused[0].selector, remedy="Drop the dream, and dream it again.")
        said = approvals.last_answer(root, candidate.holder, candidate.selector, candidate.digest, at)
        if said is not None and said.word == "rejected" and said.until > at:
            what = f"a person rejected exactly this method for {candidate.selector!r}"
            raise Refused(what, field=candidate.selector, remedy="Drop the dream, and dream it again.")
        for each in candidate.methods or (candidate,):
            methods.check(each)


def _candidates(dream: Dream) -> Iterator[Candidate]:
    for each in dream.get("made", ()):
        yield approvals.audit_again(Candidate.from_dict(each["candidate"]))


def install(root: Root, dream: Dream, at: str) -> dict[str, str]:
    """Install the methods of a dream; return the references of the objects that it made, by those in the dream."""
    renamed: dict[str, str] = {}
    for candidate, each in zip(_candidates(dream), dream.get("made", ()), strict=True):
        if not candidate.methods:
            methods.install(root, candidate, at)
            continue
        object_installation.install(root, candidate, at)
        made = tools.find_tool(root, candidate.selector)
        if made is not None:
            renamed[each["object"]] = reference(made)
    return renamed


def rename(data: object, renamed: Mapping[str, str]) -> Any:
    """Return plain data with these references in the place of others.

    >>> rename({"oid": "oid:0x9", "of": ["oid:0x1"]}, {"oid:0x9": "oid:0x2"})
    {'oid': 'oid:0x2', 'of': ['oid:0x1']}
    """
    if isinstance(data, str):
        return renamed.get(data, data)
    if isinstance(data, Mapping):
        return {name: rename(value, renamed) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(rename(each, renamed) for each in data)
    return data
