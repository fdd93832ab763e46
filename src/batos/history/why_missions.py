"""The reasons for an answer and its attempts, and for a method and its retirement, as nodes of a tree."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from batos.agency.lookup import find_object
from batos.history.why_nodes import (
    ANOTHERS,
    NOT_RECORDED,
    Asking,
    explain_memory,
    explain_reference,
    make_call,
    make_commit,
    make_node,
    make_outside,
)  # fmt: skip
from batos.image import ownership, roots
from batos.image.ids import serial_of
from batos.image.past import first_writing, published_at
from batos.image.records import Lineage, MissionRecord
from batos.inference.journal import Record, is_of_model
from batos.methods.lifecycle.method_reports import change_for, provenance_for
from batos.objects.method import Method
from batos.objects.prototype import own_slots
from batos.protocol.image_documents import WhyNode
from batos.protocol.method_documents import UseDocument, no_use
from batos.protocol.mission_documents import ProvenanceDocument, RanDocument
from batos.records import methods, outcomes, tools

#: The newest uses that ended badly, and the retired revisions, that are told of a method.
_MOST_USES, _MOST_GONE = 5, 3


def explain_mission(asking: Asking, mission: str) -> WhyNode:
    """Return a mission with what its answer came from; one that this user may not see is named as another's."""
    record = asking.record(mission)
    if record is None:
        return make_node("mission", ANOTHERS)
    brief, slots = record.brief.value, own_slots(record.thought)
    asker = f"the mind itself: {brief['origin']['client']}" if ownership.is_own_work(record) else brief["user"]
    text = f"{brief['text']} ({record.status.word}, asked by {asker})"
    because: list[WhyNode] = []
    if asking.is_new(mission) and record.status.word != "undone":
        known: ProvenanceDocument = slots.get("provenance") or ProvenanceDocument()
        because = [
            *_explain_options(brief),
            *_explain_wish(asking, record, known),
            *_explain_attempts(asking, mission, record),
            *make_calls(asking, mission),
            *_explain_tools(known),
            *explain_recalled(asking, brief, known),
            *_explain_methods(asking, known),
            *_explain_writes(asking, known),
            *_list_commits(asking, mission, known),
        ]
    return make_node("mission", text, because, mission, record.brief.accepted_at)


def _explain_options(brief: Mapping[str, object]) -> Iterator[WhyNode]:
    """Yield what a question named for itself, in the place of what the codex has."""
    for name in ("model", "temperature", "top_p", "seed", "max_tokens", "system", "schema"):
        if name in brief:
            value = brief[name]
            yield make_node("option", f"{name} {value if isinstance(value, str) else json.dumps(value)}")


def _explain_tools(known: ProvenanceDocument) -> Iterator[WhyNode]:
    """Yield each call of a tool with its arguments, why it was made, and what it brought."""
    for each in known.get("tools", ()):
        given = json.dumps(each["arguments"], ensure_ascii=False)
        brought = f"failed: {each['failure']}" if each["failure"] else f"brought {len(each['texts'])} texts"
        texts = [make_node("text", f"{text['title']} of {text['source']}", at=text["at"]) for text in each["texts"]]
        yield make_node("tool", f"{each['tool']} {given} {brought}; {each['why']}", texts, each["path"])


def _explain_wish(asking: Asking, record: MissionRecord, known: ProvenanceDocument) -> Iterator[WhyNode]:
    """Yield, for a mission that made a method, the one that did without it, what the audit found, and the method."""
    sender, message = tools.sender_in(record), record.brief.value.get("message")
    if not sender or message is None:
        return
    told = (known or (record.status.report or {}).get("provenance") or {}).get("generated", ())
    text = f"{message['selector']} was sent, and had no method"
    yield make_node("wish", text, [explain_mission(asking, sender)], sender)
    if record.status.reason is not None:
        yield make_node("reason", record.status.reason["message"], at=record.status.at)
    lineage = asking.root[roots.METHODS].get(f"{message['receiver']} {message['selector']}")
    if known and lineage is not None:
        name, made = record.brief.value["id"], lineage.revisions.values()
        yield from (_explain_audit(each) for each in made if each.provenance.get("mission") == name)
        yield explain_method(asking, lineage)
    elif told and "generation" in told[0]:
        yield from map(make_call, asking.journal.sound([told[0]["generation"]]))


def _explain_audit(method: Method) -> WhyNode:
    """Return the node of what guardian and rehearsal found of a method."""
    told, mutants = method.provenance, method.provenance.get("mutants") or {}
    word = "accepted" if method.verdict.get("accepted") else "refused"
    found = f"{word} by {method.verdict.get('policy', 'the guardian')} at draft {told.get('attempts', 1)}"
    killed = f"{mutants.get('killed', 0)} of {mutants.get('made', 0)}"
    return make_node("audit", f"{found}, {len(method.checks)} checks passed, which find {killed} broken variants")


def _explain_attempts(asking: Asking, mission: str, record: MissionRecord) -> Iterator[WhyNode]:
    """Yield each race that a mission lost to another commit, and what its further attempts paid for again."""
    lost = [each for each in asking.journal.notes(mission) if "conflict" in each]
    for number, note in enumerate(lost, start=1):
        told = note["conflict"]
        winner = explain_reference(asking, told["by"]) if told["by"] else make_node("commit", "by no mission")
        yield make_node("conflict", f"race {number} was lost for {told['object']}", [winner], at=note["at"])
    again = record.status.attempts - 1
    if again <= 0:
        return
    others = again - len(lost)
    if others > 0:
        why = f"after a wait, a pause or the end of a process, or for a reason that was {NOT_RECORDED}"
        yield make_node("attempts", f"it began {others} more times {why}")
    asked = Counter(f"{each.path} {each.model} {each.request}" for each in records_of(asking, mission))
    twice = sum(count - 1 for count in asked.values())
    calls = f"{sum(asked.values())} calls, {twice or 'none'} of them a second time"
    yield make_node("attempts", f"{again + 1} attempts in all made {calls}")


def records_of(asking: Asking, mission: str) -> list[Record]:
    """Return the calls of a mission that wrote something, in order."""
    return [each for each in asking.journal.sound([mission]) if is_of_model(each)]


def make_calls(asking: Asking, mission: str) -> Iterator[WhyNode]:
    """Yield each call of a mission; the last word is that of the last one. Erased ones are told in one line."""
    for each in records_of(asking, mission):
        yield make_call(each)
    yield from map(make_outside, asking.journal.outside([mission]))
    if erased := asking.journal.count_erased([mission]):
        yield make_node("call", f"{erased} of its calls, whose words are erased; their digests are in the journal")


def explain_recalled(asking: Asking, brief: Mapping[str, object], known: ProvenanceDocument) -> Iterator[WhyNode]:
    """Yield what the models were shown: files, memories, earlier turns and their summaries."""
    quotes = {row["name"]: f": {row['quote']}" for each in known.get("computed", ()) for row in each["rows"]}
    for each in known.get("recalled", ()):
        yield explain_evidence(asking, brief, each, quotes.get(each["name"], "") if "name" in each else "")


def explain_evidence(asking: Asking, brief: Mapping[str, Any], told: Mapping[str, Any], quote: str = "") -> WhyNode:
    """Return one thing that the models were shown, and where it came from; `quote`: of figures, behind their source."""
    if "mission" in told:
        return make_node("turn", f"turn {told['turn']} of the conversation", [explain_mission(asking, told["mission"])])
    if "turns" in told:
        first, last = told["turns"]
        return make_node("summary", f"a summary of the turns {first} to {last}", ref=brief.get("conversation") or "")
    if "memory" in told:
        document = asking.root[roots.DOCUMENTS].get(told["memory"])
        if document is None:
            return make_node("memory", f"{told['name']}, which is forgotten", ref=told["memory"])
        found = explain_memory(asking, document)
        return {**found, "text": f"{found['text']}; found by {told['why']}"} if told.get("why") else found
    if told.get("source"):
        span = f"characters {told['start']} to {told['start'] + told['length']}"
        return make_node("brought", f"{told['name']}, {span}, came of {told['source']}", ref=told["sha256"])
    if told.get("trust") == "tool":
        return make_node("figures", f"{told['name']}, counted from the mind's own records for this question{quote}")
    text = f"{told['name']}, characters {told['start']} to {told['start'] + told['length']}, came with the question"
    return make_node("file", text, ref=told["sha256"])


def _explain_methods(asking: Asking, known: ProvenanceDocument) -> Iterator[WhyNode]:
    """Yield each method and interpreted intent that ran, once."""
    ran: dict[tuple[str, str], RanDocument] = {}
    for each in known.get("methods", ()):
        ran.setdefault((each["oid"], each["selector"]), each)
    for (oid, selector), each_ran in ran.items():
        holder = find_object(asking.root, oid, ownership.NOBODY)
        name = f"{roots.name_of_object(asking.root, holder)}.{selector}"
        lineage = methods.lineage_of(asking.root, holder, selector)
        if lineage is None or "intent" in each_ran.get("as", ""):
            yield make_node("intent", f"{name}, as the codex words it", ref=name)
        else:
            yield explain_method(asking, lineage)


def _explain_writes(asking: Asking, known: ProvenanceDocument) -> Iterator[WhyNode]:
    for each in known.get("written", ()):
        yield make_node("write", f"its methods wrote {each['oid']}.{each['slot']}", ref=f"{each['oid']}.{each['slot']}")


def _list_commits(asking: Asking, mission: str, known: ProvenanceDocument) -> Iterator[WhyNode]:
    """Yield the commit that the mission read, its own, and the one that published it."""
    record = roots.mission_record(asking.root, mission)
    if "read_at" in known:
        yield make_commit(serial_of(known["read_at"]), "read the mind")
    if "answer" in own_slots(record.thought):
        yield make_commit(record.thought._p_serial, "committed the thought")
    published = published_at(asking.root, record.status)
    if published is not None:
        yield make_commit(published, "published what it contributes")


# -- methods


def explain_method(asking: Asking, lineage: Lineage) -> WhyNode:
    """Return the method of a slot with the calls that wrote it, and the missions that it was made for."""
    name = methods.name_of(asking.root, lineage)
    number = lineage.active or (lineage.revisions.maxKey() if lineage.revisions else 0)
    stands = f"revision {number}{'' if lineage.active else ', out of use'}" if number else "no method yet"
    is_new = asking.is_new(name)
    gone = [number] if number and not lineage.active else []
    gone += [each for each in sorted(lineage.retired, reverse=True) if each != number][:_MOST_GONE]
    because = [_explain_retirement(asking, lineage, each) for each in gone] if is_new else []
    because += _explain_revision(asking, lineage, number) if is_new and number else ()
    return make_node("method", f"{name}: {stands}", because, name)


def _explain_retirement(asking: Asking, lineage: Lineage, number: int) -> WhyNode:
    """Return why a revision went, with its uses, those that ended badly, and the way to bring it back."""
    went = [each for each in lineage.history.values() if each["former"] == number and each["revision"] != number]
    change = change_for(lineage, went[-1], asking.user) if went else None
    counts = (lineage.totals.get(number) or no_use())["method"]
    used = f"{counts['calls']} uses, of which {counts['faults']} failed and {counts['bad']} ended badly"
    bad = [each for each in outcomes.entries(lineage.ledger) if each["revision"] == number and _is_bad(each)]
    because = [
        make_node("uses", used, [explain_reference(asking, each["mission"]) for each in bad[-_MOST_USES:]]),
        make_node("undo", f"`batos method rollback {methods.name_of(asking.root, lineage)} --revision {number}`"),
    ]
    if change is None:
        return make_node("retired", f"revision {number} went for a reason that was {NOT_RECORDED}", because)
    return make_node(
        "retired", f"revision {number} went: {change['reason']} (by {change['by']})", because, at=change["at"]
    )


def _is_bad(use: UseDocument) -> bool:
    """Test if a use of a method itself failed, or if the gate found a fault in its mission's answer."""
    return not use["control"] and (use["outcome"] == "fault" or use["gate_faults"] > 0)


def _explain_revision(asking: Asking, lineage: Lineage, number: int) -> Iterator[WhyNode]:
    method = lineage.revisions[number]
    told = provenance_for(asking.root, method.provenance, asking.user)
    yield make_node("intent", method.intent or (lineage.intent.text if lineage.intent else ""))
    if told.get("by"):
        yield make_node("person", f"redefined by {told['by']}", at=told.get("at", ""))
    for each in asking.journal.sound([told["generation"]]) if told.get("generation") else ():
        yield make_call(each)
    for mission in (*method.provenance.get("missions", ()), method.provenance.get("mission", "")):
        if mission:
            yield explain_mission(asking, mission)
    if told.get("approved_by"):
        yield make_node(
            "approval",
            f"approved by {told['approved_by']}",
            ref=told.get("approval", ""),
            at=told.get("approved_at", ""),
        )
    for number_, change in reversed(list(lineage.history.items())):
        if change["revision"] == number and change["event"] == "installed":
            seen = change_for(lineage, change, asking.user)
            yield make_node("change", f"change {number_}: {seen['reason']} (by {seen['by']})", at=seen["at"])
            break
    yield make_commit(first_writing(asking.root, method), "installed")
