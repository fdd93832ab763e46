"""The change that each call of a mission made: computed from the texts before and after it, no model's opinion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from batos.gate import languages
from batos.gate.checks import GateVerdict
from batos.gate.evidence_index import Citation
from batos.genesis.codex.declarations import fold
from batos.memory.segmentation import line_of, words
from batos.minds.calls import answers, questions
from batos.minds.context import MindContext
from batos.minds.results import MindAnswer, PartResult, Synthesis
from batos.protocol.mission_documents import ChangeDocument

#: Texts whose words are remembered: each part is compared with the same answer, question and other parts.
_REMEMBERED = 16
#: Words for the decision between two orders that named different candidates.
_DECIDED = {
    "agreed": "both orders named it",
    "named": "the other order gave no valid choice",
    "votes": "more parts said the same",
    "faults": "it has the fewest faults",
    "citations": "it has the most citations",
    "place": "it came first",
}


def list_changes(context: MindContext, synthesis: Synthesis) -> list[ChangeDocument]:
    """List the change that each call of this mind made, in the order of the calls; nothing for a single call.

    A second try and free reasoning belong to the call that they serve. The calls of a mind within this one are compared
    with that mind's answer, and that mind with this one's answer.
    """
    if not synthesis.parts or not synthesis.drafts:
        return []
    return [
        *_decomposing(context, synthesis),
        *(entry for part in synthesis.parts for entry in _part(context, synthesis, part)),
        *_voting(context, synthesis),
        *_selecting(context, synthesis),
        *_weaving(context, synthesis),
        *_revising(context, synthesis),
        *_protocol(context, synthesis),
    ]


def share(part: str, answer: str, question: str) -> tuple[int, int]:
    """Count the words that a part adds (without small words and the question's) and that the answer has; and all it
    adds.

    >>> share("The lamp is wound every night", "It is wound at night.", "How does the lamp burn?")
    (2, 3)
    """
    brought = own_words(part) - own_words(question)
    return len(brought & own_words(answer)), len(brought)


@lru_cache(maxsize=_REMEMBERED)
def own_words(text: str) -> frozenset[str]:
    """Return the words of a text without small words."""
    return frozenset(words(text)) - languages.SMALL_WORDS


def count_kept(citations: Sequence[Citation], final: Sequence[Citation]) -> int:
    """Count the citations that are among the final ones, whole or in part."""
    return sum(1 for each in citations if any(_overlap(each, other) for other in final))


def changed_words(before: str, after: str) -> float:
    """Return the share (0 to 1) of the longer text's words that the other lacks, each counted as often as it occurs."""
    one, other = Counter(words(before)), Counter(words(after))
    longer = max(one.total(), other.total())
    return 1 - (one & other).total() / longer if longer else 0.0


def _overlap(one: Citation, other: Citation) -> bool:
    shorter, longer = sorted((line_of(each.quote) for each in (one, other)), key=len)
    return one.document == other.document and bool(shorter.strip()) and shorter in longer


def _entry(path: str, did: str, changed: bool, what: str) -> ChangeDocument:
    return ChangeDocument(path=path, did=did, changed=changed, what=what)


def _decomposing(context: MindContext, synthesis: Synthesis) -> Iterator[ChangeDocument]:
    if not synthesis.combined["decomposed"]:
        return  # every part was given the question itself, and no call was made
    own = fold(context.mind.question)
    other = sum(1 for query in synthesis.queries.values() if fold(query) != own)
    what = f"{len(synthesis.queries)} sub-queries, {other} of them other than the question"
    if synthesis.undivided:
        what = f"failed, so each part was given the question: {synthesis.undivided}"
    yield _entry(f"{context.mind.name}/decomposing#0", "decomposing", other > 0, what)


def _part(context: MindContext, synthesis: Synthesis, part: PartResult) -> Iterator[ChangeDocument]:
    for entry in part.changes:
        yield entry.copy()
    name, mind = context.mind.name, context.mind
    path = f"{name}/{part.slot}" if mind.is_council else questions.facet_path(name, part.slot)
    changed, what = _contribution(context, synthesis, part)
    did = "mind" if mind.is_council else "voice" if mind.is_duet else "facet"
    yield _entry(path, did, changed, f"{part.name}: {what}")


def _contribution(context: MindContext, synthesis: Synthesis, part: PartResult) -> tuple[bool, str]:
    """Return True if a part's answer is in the mission's, and a text that says how much of it is."""
    if part.failure is not None:
        return False, f"failed, {part.failure.code}"
    if part.open:
        return False, "had no answer"
    if "winner" in synthesis.combined:
        return _competition_outcome(synthesis, part)
    said = synthesis.standing.answer
    there, brought = share(part.answer, said.answer, context.mind.question)
    cited = count_kept(part.citations, said.citations)
    what = f"{there} of its {brought} words"
    if part.citations:
        what += f" and {cited} of its {len(part.citations)} citations"
    others = frozenset[str]().union(
        *(own_words(each.answer) for each in synthesis.parts if each is not part and not each.open),
        own_words(context.mind.question),
    )
    alone = (own_words(part.answer) - others) & own_words(said.answer)
    return bool(alone or cited), f"{what} stand in the answer"


def _competition_outcome(synthesis: Synthesis, part: PartResult) -> tuple[bool, str]:
    combined = synthesis.combined
    if combined["winner"]["number"] == part.number:
        return True, "its answer was chosen"
    group = next((group for group in combined.get("votes", ()) if part.number in group), ())
    if combined["winner"]["number"] in group:
        return True, "voted for the chosen answer"
    return False, "its answer was not chosen"


def _voting(context: MindContext, synthesis: Synthesis) -> Iterator[ChangeDocument]:
    combined = synthesis.combined
    if "votes" not in combined:
        return
    groups = combined["votes"]
    most = max(map(len, groups))
    if combined["majority"]:
        asked, of = combined["asked"], combined["of"]
        stopped = f", stopped after {asked} of {of}" if asked < of else ""
        what = f"{most} of {sum(map(len, groups))} votes for {combined['winner']['name']}{stopped}"
    else:
        what = f"no majority: {sum(map(len, groups))} votes for {len(groups)} answers"
    first = min(number for group in groups for number in group)
    yield _entry(f"{context.mind.name}/voting#0", "voting", combined["winner"]["number"] != first, what)


def _selecting(context: MindContext, synthesis: Synthesis) -> Iterator[ChangeDocument]:
    combined = synthesis.combined
    if "named" not in combined:
        return
    names: dict[int | None, str] = {part.number: part.name for part in synthesis.parts}
    winner, (one, other) = combined["winner"]["number"], combined["named"]
    first = min(combined["shown"])
    said = [names.get(number, "nobody validly") for number in (one, other)]
    what = f"named {said[0]}, of {combined['candidates']}"
    yield _entry(f"{context.mind.name}/selecting#0", "selecting", one not in (None, first), what)
    what = f"named {said[1]} in another order; {combined['winner']['name']} was chosen: {_DECIDED[combined['decided']]}"
    yield _entry(f"{context.mind.name}/selecting#1", "selecting", winner != (first if one is None else one), what)


def _weaving(context: MindContext, synthesis: Synthesis) -> Iterator[ChangeDocument]:
    path = f"{context.mind.name}/synthesizing#0"
    combined, both = synthesis.combined, synthesis.combined.get("mode") == "voices"
    if "ruled" in combined and ("winner" in combined or both):
        stands = "both answers stand" if both else "the best part stands"
        yield _entry(path, "weaving", False, f"failed, so {stands}: {combined['ruled']}")
    if "ruled" in combined or combined.get("mode") != "weave":
        return
    woven = synthesis.drafts[0].answer
    parts = [part for part in synthesis.parts if not part.open]
    from_parts = frozenset[str]().union(*(own_words(part.answer) for part in parts))
    own = own_words(woven.answer)
    cited = [each for part in parts for each in part.citations]
    what = f"{len(own & from_parts)} of {len(own)} words came from the parts"
    if cited:
        what += f", {count_kept(cited, woven.citations)} of {len(cited)} citations kept"
    as_it_was = any(fold(part.answer) == fold(woven.answer) for part in parts)
    yield _entry(path, "weaving", not as_it_was, what)


def _revising(context: MindContext, synthesis: Synthesis) -> Iterator[ChangeDocument]:
    path = answers.revising_path(context)
    if synthesis.revised is None or any(each["path"] == path for each in context.trace.rules):
        return  # no call was made
    if synthesis.discarded is not None:
        found = {fault.check: fault.what for fault in synthesis.discarded.faults}
        what = f"discarded, faults {len(synthesis.revised.faults)} -> {len(synthesis.discarded.faults)}"
        what = f"discarded, {found['kept']}" if "kept" in found else what
        what = f"failed, {found['budget']}" if "budget" in found else what
        yield _entry(path, "revising", False, f"{what}; the answer is unchanged")
        return
    before, after = synthesis.drafts[:2]
    what = f"{_faults(synthesis.revised, after.verdict)}, {_percent(before.answer, after.answer)} of the words changed"
    yield _entry(path, "revising", _differ(before.answer, after.answer), what)


def _protocol(context: MindContext, synthesis: Synthesis) -> Iterator[ChangeDocument]:
    if synthesis.protocol is None:
        return
    slot, tried = str(synthesis.protocol["slot"]), synthesis.protocol
    path = questions.protocol_path(context.mind.name, slot)
    if "failure" in tried:
        yield _entry(path, slot, False, f"failed, {tried['failure']['code']}; the answer is unchanged")
    elif not tried["applied"]:
        what = f"dropped: {len(synthesis.standing.verdict.faults)} faults would be {len(tried['faults'])}"
        yield _entry(path, slot, False, what)
    else:
        before, after = synthesis.drafts[-2:]
        faults, words_ = _faults(before.verdict, after.verdict), _percent(before.answer, after.answer)
        what = f"applied, {faults}, {words_} of the words changed"
        yield _entry(path, slot, _differ(before.answer, after.answer), what)


def _faults(before: GateVerdict, after: GateVerdict) -> str:
    found = ", ".join(dict.fromkeys(fault.check for fault in before.faults))
    return f"faults {len(before.faults)} -> {len(after.faults)}{f' ({found})' if found else ''}"


def _percent(before: MindAnswer, after: MindAnswer) -> str:
    return f"{100 * changed_words(before.answer, after.answer):.0f} %"


def _differ(before: MindAnswer, after: MindAnswer) -> bool:
    return fold(before.answer) != fold(after.answer)
