"""The reasons for a sentence of an answer, and for a slot: what carries it, and the mission that wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from batos.agency.lookup import find_object
from batos.gate.figures import read_numbers
from batos.history.why_missions import explain_evidence, explain_method, explain_mission, records_of
from batos.history.why_nodes import Asking, make_call, make_commit, make_node
from batos.image import guards, ids, ownership, roots
from batos.image.past import Writing, slot_writing
from batos.image.records import DIGESTS, MissionRecord
from batos.memory.segmentation import sentence_spans, stems, terms
from batos.missions import reports
from batos.objects.method import Intent, Method, Primitive
from batos.objects.mirror import as_json
from batos.objects.prototype import UvmObject, delegation, own_slots
from batos.protocol.errors import NotFound
from batos.protocol.evidence_documents import CitationDocument, SentenceDocument
from batos.protocol.image_documents import WhyNode
from batos.protocol.mission_documents import ProvenanceDocument
from batos.records import methods, redefinitions
from batos.records.redefinitions import Redefinition

#: Answers that are looked through, the newest first.
_MOST_ANSWERS: Final = 10_000
#: The newest values of a slot that are explained.
_MOST_VALUES: Final = 3
#: The share of the words of a sentence that one of an answer must have, where none has it word for word.
_LEAST_SHARE: Final = 0.6
#: A word within a quotation that begins with a capital.
_NAME: Final = re.compile(r"(?<=\w[\s,;:-])[A-ZÀ-ÖØ-Þ]\w+")
_STATES: Final = {"carried": "carried by evidence", "not_carried": "carried by no evidence"}


@dataclass(frozen=True, slots=True)
class FoundSentence:
    """A sentence of an answer: its mission, its words, and what `provenance.sentences` tells of it, if anything."""

    mission: str
    record: MissionRecord
    text: str
    told: SentenceDocument | None = None
    #: The words differ from those that were quoted.
    is_nearest: bool = False


def find_sentence(asking: Asking, quoted: str, user: str) -> FoundSentence | None:
    """Return the newest sentence of an answer to a user that has these words, else the one that has most of them.

    A sentence with another number or name than the quotation says something else.
    """
    wanted, words = _fold(quoted), frozenset(stems(quoted))
    best: tuple[float, FoundSentence] | None = None
    for mission, record in islice(reports.newest(asking.root), _MOST_ANSWERS):
        answer = own_slots(record.thought).get("answer")
        if record.brief.value["user"] != user or not isinstance(answer, str):
            continue
        if wanted and wanted in _fold(answer):
            return _sentence_with(mission, record, answer, wanted)
        for start, end in sentence_spans(answer) if words else ():
            share = len(words.intersection(stems(answer[start:end]))) / len(words)
            if share >= _LEAST_SHARE and (best is None or share > best[0]) and _has_values(answer[start:end], quoted):
                best = share, _at(mission, record, answer, (start, end))
    return None if best is None else replace(best[1], is_nearest=True)


def _has_values(sentence: str, quoted: str) -> bool:
    """Test if a sentence has every number and name of a quotation; its first word may be no name."""
    names = frozenset(_fold(each) for each in _NAME.findall(quoted))
    return read_numbers(quoted).values <= read_numbers(sentence).values and names <= frozenset(terms(sentence))


def explain_sentence(asking: Asking, found: FoundSentence) -> WhyNode:
    """Return a sentence with what it came from."""
    known: ProvenanceDocument = own_slots(found.record.thought).get("provenance") or ProvenanceDocument()
    brief = found.record.brief.value
    because = [*_explain_citations(asking, brief, known, found), *_explain_result(known, found.text)]
    because += _find_calls(asking, found)
    because.append(explain_mission(asking, found.mission))
    nearest = "nearest to what was quoted: " if found.is_nearest else ""
    return make_node("sentence", f"{nearest}“{found.text}” {_state(found)}", because, found.mission)


def _state(found: FoundSentence) -> str:
    if found.told is None:
        return ""
    reason = f", {found.told['reason']}" if "reason" in found.told else ""
    return f"({_STATES.get(found.told['state'], 'nothing to check')}{reason})"


def _sentence_with(mission: str, record: MissionRecord, answer: str, wanted: str) -> FoundSentence:
    """Return the sentence that has these words, or all that they stand in if that is more than one."""
    spans = sentence_spans(answer)
    whole = next(((start, end) for start, end in spans if wanted in _fold(answer[start:end])), None)
    if whole is None:
        part = next(((start, end) for start, end in spans if _fold(answer[start:end]) in wanted), (0, len(answer)))
        return _at(mission, record, answer, part)
    return _at(mission, record, answer, whole)


def _at(mission: str, record: MissionRecord, answer: str, span: tuple[int, int]) -> FoundSentence:
    """Return the sentence at a place, with what the mission recorded of the one that it overlaps most."""
    start, end = span
    provenance = own_slots(record.thought).get("provenance") or {}
    told = max(
        provenance.get("sentences", ()),
        key=lambda each: min(end, each["span"][1]) - max(start, each["span"][0]),
        default=None,
    )
    if told is not None and min(end, told["span"][1]) <= max(start, told["span"][0]):
        told = None
    return FoundSentence(mission, record, answer[start:end], told)


def _explain_citations(
    asking: Asking, brief: Mapping[str, object], known: ProvenanceDocument, found: FoundSentence
) -> Iterator[WhyNode]:
    """Yield the sentences of documents that carry a sentence; one without any is carried by the conversation."""
    cited = [each for each in known.get("citations", ()) if _is_of(each, found.text)]
    recalled = known.get("recalled", ())
    for each in cited:
        shown = next((told for told in recalled if told.get("document") == each["document"]), None)
        origin = [] if shown is None else [explain_evidence(asking, brief, shown)]
        start, end = each["span"]
        name = each.get("name", "a document") + (f", page {each['page']}" if "page" in each else "")
        text = f"“{each['quote']}” ({name}, {start} to {end}, score {each['score']:.2f})"
        yield make_node("citation", text, origin, each.get("sha256", ""))
    if not cited and found.told is not None and found.told["state"] == "carried":
        for told in recalled:
            if "mission" in told or "turns" in told:
                yield explain_evidence(asking, brief, told)


def _explain_result(known: ProvenanceDocument, text: str) -> Iterator[WhyNode]:
    """Yield what was computed, with its rows, below a sentence that says the result."""
    for each in known.get("computed", ()):
        is_said = re.search(rf"(?<!\w){re.escape(_fold(each['result']))}(?!\w)", _fold(text))
        if each["result"] and (is_said or _fold(text) in _fold(each["lead"])):
            rows = [
                (f"“{row['quote']}” ({row['name']}, {row['span'][0]} to {row['span'][1]})", row) for row in each["rows"]
            ]
            yield make_node(
                "computed", each["line"], [make_node("citation", said, [], row["sha256"]) for said, row in rows]
            )


def _is_of(cited: CitationDocument, text: str) -> bool:
    sentence, whole = _fold(cited["sentence"]), _fold(text)
    return bool(sentence) and (sentence in whole or whole in sentence)


def _find_calls(asking: Asking, found: FoundSentence) -> Iterator[WhyNode]:
    """Yield the last call whose answer has the sentence, and the first one if that is another."""
    said = ((each, (each.response or {}).get("text") or each.partial) for each in records_of(asking, found.mission))
    wrote = [each for each, text in said if _fold(found.text) in _fold(str(text or ""))]
    for each in dict.fromkeys((len(wrote) - 1, 0)) if wrote else ():
        call = make_call(wrote[each])
        how = "written by" if each == len(wrote) - 1 else "first written by"
        yield {**call, "text": f"{how} {call['text']}"}


def _fold(text: str) -> str:
    """Return a text without the differences that a person who quotes it makes: case, blanks and quotation marks."""
    return " ".join(text.casefold().split()).strip("\"'“”„«»")


def explain_slot(asking: Asking, named: str) -> WhyNode:
    """Return a slot (`OBJECT.SLOT`) with what its value came from. Raises: NotFound: there is none."""
    name, _, slot = named.rpartition(".")
    obj = find_object(asking.root, name, asking.user)
    holder = next((each for each in delegation(obj) if _value(asking, each, slot) is not ownership.ABSENT), None)
    if holder is None or slot == ownership.SLOT_USERS:
        raise NotFound(f"{name} has no slot {slot!r}", field="what", remedy=f"`batos inspect {name}` lists them.")
    value, where = _value(asking, holder, slot), _name(asking, holder)
    because: list[WhyNode] = []
    lineage = methods.lineage_of(asking.root, holder, slot)
    if lineage is not None:
        because.append(explain_method(asking, lineage))
    because += _explain_writing(asking, holder, slot, slot_writing(asking.root, holder, slot, asking.user or ""))
    inherited = "" if holder is obj else f" (from {where})"
    return make_node("slot", f"{named}{inherited} is {_short(value)}", because, f"{where}.{slot}")


def explain_redefined(asking: Asking, named: str) -> WhyNode | None:
    """Return a slot that was redefined (`ROBIN.line`), with the origins of its last values; None: there is none."""
    kept = asking.root.get(roots.REDEFINITIONS)
    name = next((each for each in kept or () if each.casefold() == named.casefold()), None)
    if name is None:
        return None
    values = redefinitions.list_values(asking.root, name)
    because = [_explain_value(asking, each) for each in reversed(values[-_MOST_VALUES:])]
    return make_node("slot", f"{name} was given {_short(values[-1].value)}", because, name)


def _explain_value(asking: Asking, told: Redefinition) -> WhyNode:
    origin = told.origin
    trial = [explain_trial(asking, origin.trial)] if origin.trial else []
    why = f": {origin.why}" if origin.why else ""
    return make_node("value", f"{_short(told.value)} by {origin.by}{why}", trial, str(told.number), origin.at)


def explain_trial(asking: Asking, named: str) -> WhyNode:
    """Return a trial with what called for it. Raises: NotFound: there is none."""
    kept = asking.root.get(roots.TRIALS)
    told = None if kept is None else kept.get(ids.complete_id(kept, named))
    if told is None:
        raise NotFound(f"there is no trial {named!r}", field="what", remedy="`batos trials` lists them.")
    reason = f": {told['reason']}" if told["reason"] else ""
    asked = f"{len(told['pairs'])} questions, kept at an evidence of {told['needed']:g}"
    why = make_node("reason", f"{told['why'] or 'no reason was given'}, by {told['by']}", at=told["begun"])
    what = f"the trial of {told['lever']} is {told['state']}{reason} ({asked})"
    return make_node("trial", what, [why], named, told["ended"] or "")


def _explain_writing(asking: Asking, holder: UvmObject, slot: str, written: Writing) -> Iterator[WhyNode]:
    if written.note.startswith("m-"):
        yield explain_mission(asking, written.note)
    elif slot in own_slots(holder).get(DIGESTS, {}) or slot in guards.IDENTITY.get(_name(asking, holder), ()):
        digest = asking.root[roots.GENESIS].get("codex_digest") or ""
        yield make_node("codex", f"declared by the codex ({digest[:12]})", ref=digest)
    yield make_commit(written, "has this value since")


def _name(asking: Asking, holder: UvmObject) -> str:
    return roots.name_of_object(asking.root, holder)


def _value(asking: Asking, obj: UvmObject, slot: str) -> object:
    return ownership.slot_for(own_slots(obj), slot, asking.user or "")


def _short(value: object) -> str:
    if isinstance(value, Method):
        return f"a method of {len(value.source.splitlines())} lines"
    if isinstance(value, Intent):
        return f"an intent: {value.text}"
    if isinstance(value, Primitive):
        return f"the kernel's {value.name}"
    return json.dumps(as_json(value), ensure_ascii=False, default=str)
