"""The texts on a mission: its states, its route, its cost, the voices beside its answer, and what is known of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from batos.protocol.evidence_documents import RecalledPassage
from batos.protocol.mission_documents import (
    CombinedDocument,
    LearningDocument,
    LoadedModel,
    MissionDocument,
    PlacementDocument,
    ProvenanceDocument,
    RouteDocument,
    VoiceDocument,
)
from batos.terminal.console import count_text, size
from batos.terminal.layout import wrap
from batos.verbs.method_verbs import learnt_lines, ran_lines

#: The columns before a line's text.
_MARGIN = 9


def voices_lines(voices: Sequence[VoiceDocument], *, whole: bool, depth: int = 0) -> Iterator[str]:
    """List the parts, a line each, and with `whole` their answers; a persona's facets stand beneath, further in."""
    for voice in voices:
        indent = "  " * depth
        kind = "facet" if "voices" not in voice else "persona"
        asked = f", asked: {voice['query']}" if voice["query"] else ""
        yield f"{indent}{kind.ljust(_MARGIN)}{voice['name']}{asked} ({_outcome_text(voice)})"
        if whole and voice["answer"]:
            yield wrap(voice["answer"], indent + " " * _MARGIN)
        yield from voices_lines(voice.get("voices", ()), whole=whole, depth=depth + 1)


def _outcome_text(voice: VoiceDocument) -> str:
    if "failure" in voice:
        return f"failed: {voice['failure']['message']}"
    said = _answer_text(voice)
    faults = voice.get("faults", ())
    return f"{said}; the gate found {count_text(len(faults), 'fault')}" if faults else said


def _answer_text(voice: VoiceDocument) -> str:
    """Test if there is an answer, and if documents carry any of it: without that it is not `known`."""
    if not voice["answer"].strip():
        return "had no answer"
    return "answered" if voice["known"] else "answered; no document carries it"


def changes_lines(provenance: ProvenanceDocument) -> Iterator[str]:
    """List the changes of each call, a line each."""
    for change in provenance.get("changes", ()):
        kind = "changed" if change["changed"] else "same"
        yield f"{kind.ljust(_MARGIN)}{change['path'].removesuffix('#0')}: {change['what']}"


#: Seconds of waiting that are told of.
_NOTICED = 0.1
#: Said of a mission without a cost.
_NOTHING = "nothing was spent"


#: Characters of a withdrawn text that stand under an answer.
_SHOWN: Final = 200
#: Doubts of the gate that the line under an answer names, and rows of a computation.
_TOLD: Final = 3


def retracted_text(keys: Mapping[str, object]) -> str:
    """Tell why what was streamed no longer stands: without a path the attempt broke off, and is made again.

    >>> retracted_text({"mission": "m-1"})
    'The stream broke off; the answer starts again from its beginning'
    """
    if keys.get("path") is None:
        return "The stream broke off; the answer starts again from its beginning"
    return f"This text is withdrawn: {str(keys.get('reason') or 'another follows').rstrip('.')}"


def states_text(mission: MissionDocument) -> str:
    """Write the states that it was in; a cancelled mission is not told as failed."""
    states = [step["state"] for step in mission["states"]]
    if mission["status"] == "cancelled" and states and states[-1] == "FAILED":
        states[-1] = "CANCELLED"
    return " > ".join(states)


def moment(at: str) -> datetime:
    """Parse a moment of a report."""
    return datetime.fromisoformat(at)


def state_text(keys: Mapping[str, object]) -> str:
    """Tell a state that a mind entered; a mind within another stands further to the right, with its name."""
    inner = str(keys.get("path") or "").split("/")[1:]
    return f"  {'  ' * len(inner)}{f'{inner[-1].upper()} ' if inner else ''}{keys['state']}"


def partial_text(keys: Mapping[str, object]) -> str:
    """Tell that a part came back: a facet of the mind at work, or a mind within it."""
    facet = keys.get("facet")
    who = str(keys.get("persona") if facet is None else facet).removesuffix("_facet_")
    # A facet's path ends in the state and itself: what stands before them, but the outermost mind, it is within.
    depth = 0 if facet is None else max(0, str(keys["path"]).count("/") - 2)
    return f"    {'  ' * depth}{who} {'answered' if keys['known'] else 'has no answer'}"


def route_text(route: RouteDocument) -> str:
    """Write who takes it, with how much effort, and why."""
    who = ", ".join(route["personas"])
    return f"{who} at effort {route['effort']}, confidence {route['confidence']:.2f}: {route['reason']}"


def _rules_text(provenance: ProvenanceDocument) -> str:
    """Tell which decisions a rule made in place of the model; nothing where it made none."""
    decided = dict.fromkeys(rule["decision"] for rule in provenance.get("rules", ()))
    return f"; by rule: {', '.join(decided)}" if decided else ""


def cost_text(mission: MissionDocument) -> str:
    """Write what it cost; of what was not spent nothing is said."""
    if "cost" not in mission:
        return _NOTHING
    # A chat sums up some of the fields, and an older server knows fewer.
    cost, told = mission["cost"], []
    if cost.get("calls"):
        told.append(count_text(cost["calls"], "call"))
    if cost.get("prompt_tokens") or cost.get("answer_tokens"):
        told.append(f"{cost['prompt_tokens']} prompt and {cost['answer_tokens']} answer tokens")
    if cost.get("seconds", 0) >= _NOTICED:
        told.append(f"{cost['seconds']:.1f} s in Ollama")
    if cost.get("waited", 0) >= _NOTICED:
        told.append(f"{cost['waited']:.1f} s of waiting there")
    if cost.get("loads"):
        told.append(count_text(cost["loads"], "load"))
    if cost.get("from_journal"):
        told.append(f"{count_text(cost['from_journal'], 'answer')} from the journal")
    spent = ", ".join(told) or _NOTHING
    return spent + _learning_text(cost["learning"]) if "learning" in cost else spent


def _learning_text(learning: LearningDocument) -> str:
    if not learning["calls"]:
        return ""
    calls, tokens = count_text(learning["calls"], "call"), count_text(learning["tokens"], "token")
    return f"; beside it, for methods, {calls} and {tokens}"


def notes_text(mission: MissionDocument, *, voices: bool, named: bool = False) -> str:
    """Write the notes under an answer: facets, sources, the gate, route, cost, transitions.

    The last one is the commit, after the mission's id unless the mission is `named` above.
    """
    provenance = mission["provenance"]
    lines = [*voices_lines(mission.get("voices", ()), whole=voices), *_combination_lines(provenance)]
    lines += [
        *withdrawn_lines(provenance),
        *_tools_lines(provenance),
        *_sources(provenance),
        *(f"computed {line}" for line in computed_lines(provenance)),
        *_gate(provenance),
    ]
    if voices:
        lines += changes_lines(provenance)
    lines += ran_lines(provenance)
    lines.append(f"route    {route_text(mission['route'])}{_rules_text(provenance)}")
    lines.append(f"spent    {cost_text(mission)}")
    lines += [*learnt_lines(provenance), *placements(provenance)]
    if mission["states"]:  # a message that is no cycle has none
        lines.append(f"states   {states_text(mission)}")
    if "conversation" in mission["brief"]:
        lines.append(f"talk     {mission['brief']['conversation']} (go on with --conversation last)")
    lines.append(f"commit   {mission['tid']}" if named else f"mission  {mission['id']}, commit {mission['tid']}")
    return "\n".join(lines)


def placement_text(placement: LoadedModel | PlacementDocument) -> str:
    """Tell where a model lies."""
    model, whole = placement["model"], placement["size"]
    if placement["where"] == "card":
        return f"{model} is on the card, {size(whole)}"
    if placement["where"] == "processor" or not placement["size_vram"]:
        return f"{model} runs on the CPU, {size(whole)}"
    return f"{model} does not fit the card: {size(whole - placement['size_vram'])} of its {size(whole)} run on the CPU"


def placements(provenance: ProvenanceDocument, where: Collection[str] = ("spilled", "processor")) -> list[str]:
    """Write which models did not lie on the card whole, a line a runner: those of one base are in memory once."""
    runners: dict[tuple[str, str, int], list[PlacementDocument]] = {}
    for each in provenance.get("placements", ()):
        if each["where"] in where:
            runners.setdefault((each["runner"], each["where"], each["size_vram"]), []).append(each)
    return [f"memory   {placement_text(one)}{_sharing(more)}" for one, *more in runners.values()]


def _sharing(more: Sequence[PlacementDocument]) -> str:
    names = ", ".join(each["model"] for each in more)
    return f"; {names} {'shares' if len(more) == 1 else 'share'} its runner" if more else ""


def _combination_lines(provenance: ProvenanceDocument) -> list[str]:
    """Tell how one part's answer came to stand, and for whom nobody was asked; the usual, a weave, is not told."""
    combined = provenance.get("combined", CombinedDocument())
    undivided = (
        [f"parts    each was given the whole question: {combined['undivided']}"] if "undivided" in combined else []
    )
    if "ruled" in combined:
        both = "both answers, each under its name" if combined.get("mode") == "voices" else "a rule made the answer"
        how = f"the answer of {combined['winner']['name']}" if "winner" in combined else both
        return [*undivided, f"by rule  {how}: {combined['ruled']}"]
    if "winner" not in combined:
        return undivided
    if "votes" in combined:
        way = f"by vote, {combined['asked']} of {count_text(combined['of'], 'part')} asked"
    elif combined["decided"] == "alike":
        way = "both voices said nearly the same"
    else:
        way = f"by selection among {count_text(combined['candidates'], 'answer')}"
    return [*undivided, f"combined {way}: the answer of {combined['winner']['name']} was chosen"]


def _mark_of(recalled: Mapping[str, object]) -> str:
    return f" {recalled['standing']}" if "standing" in recalled else ""


def computed_lines(provenance: ProvenanceDocument) -> Iterator[str]:
    """Yield a line for each computation, and one with the first of the rows that it was made from."""
    for each in provenance.get("computed", ()):
        yield each["line"]
        rows = [f'"{" ".join(row["quote"].split())}"' for row in each["rows"][:_TOLD]]
        more = f"; and {each['of'] - len(rows)} more" if each["of"] > len(rows) else ""
        if rows:
            yield f"  from {'; '.join(rows)}{more}"


def tool_text(keys: Mapping[str, object]) -> str:
    """Return a line on what a call of a tool brought."""
    if keys["failure"]:
        return f"{keys['tool']} failed: {keys['failure']}"
    return f"{keys['tool']} brought {count_text(int(str(keys['texts'])), 'text')}"


def _tools_lines(provenance: ProvenanceDocument) -> list[str]:
    """Write each call of a tool, with what it was given and what it brought."""
    lines = []
    for each in provenance.get("tools", ()):
        given = ", ".join(
            f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in each["arguments"].items()
        )
        told = tool_text({"tool": each["tool"], "failure": each["failure"], "texts": len(each["texts"])})
        lines.append(f"tool     {told} ({given}){' as before' if each['again'] else ''}")
    return lines


def _sources(provenance: ProvenanceDocument) -> list[str]:
    names = {each["document"]: _name_of(each) for each in provenance["recalled"] if "document" in each}
    lines = [
        f"memory   [{each['document']}] {each['name']} ({each['memory']}; {each['why']}){_mark_of(each)}"
        for each in provenance["recalled"]
        if "memory" in each
    ]
    lines += [
        f'source   [{each["document"]}] {names.get(each["document"], "?")}: "{each["quote"]}"'
        for each in provenance["citations"]
    ]
    omitted = provenance["omitted"]
    left = [count_text(omitted["passages"], "passage")] if omitted["passages"] else []
    left += [count_text(omitted["turns"], "turn")] if omitted["turns"] else []
    if left:
        lines.append(f"left out {' and '.join(left)}, for lack of room")
    return lines


def _name_of(told: RecalledPassage) -> str:
    """Return a document's name, with the address where a tool brought it from."""
    is_brought = "memory" not in told and told.get("source")
    return f"{told['name']} ({told['source']})" if is_brought else told["name"]


def _gate(provenance: ProvenanceDocument) -> list[str]:
    gate = provenance["gate"]
    if gate["ok"] and not gate["checked"]:  # a value that a message read: nothing of it could be faulty
        return []
    revised = " after one revision" if gate["revised"] else ""
    if "discarded" in gate:
        revised = " after a revision that was discarded"
    if gate.get("state") == "unchecked":
        return [f"gate     nothing of this could be checked{revised}"]
    if gate["ok"]:
        return [f"gate     passed{revised} ({count_text(len(gate['checked']), 'check')})"]
    return [f"gate     doubts{revised}:", *(f"         {fault.get('told', fault['what'])}" for fault in gate["faults"])]


def withdrawn_lines(provenance: ProvenanceDocument) -> Iterator[str]:
    """Yield a line for each text of the model that does not stand, with its beginning and the reason."""
    for each in provenance.get("withdrawn", ()):
        text = " ".join(each["text"].split())
        yield f"withdrawn: “{text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}” ({each['reason'].rstrip('.')})"


def gate_line(provenance: ProvenanceDocument) -> str:
    """Return what the gate doubts in an answer as one line in plain words, "" if it doubts nothing."""
    told = list(dict.fromkeys(fault.get("told", fault["what"]) for fault in provenance["gate"]["faults"]))
    more = f"; and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    return f"{'; '.join(told[:_TOLD])}{more}"
