"""The texts on methods in a mission: which ran, which were learnt on the way, and the cost of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from batos.protocol.method_documents import LateReport
from batos.protocol.mission_documents import LearntDocument, ProvenanceDocument
from batos.terminal.console import count_text

#: Characters of why something was not learnt.
_WHY: Final = 200
#: The end of a generation, in words that follow its selector; where a method came of it nothing need be said.
_OUTCOMES: Final = {
    "declined": "was not tried again",
    "budget": "was not tried",
    "failed": "failed",
    "left": "was stopped while being written",
}


def ran_lines(provenance: ProvenanceDocument) -> Iterator[str]:
    """Tell which methods ran and which intents were interpreted, a line for each way; a method with its revision."""
    ways: dict[str, Counter[str]] = {}
    for each in provenance.get("methods", ()):
        way = each["as"]
        revision = f" {each['revision']}" if way.startswith("method") else ""
        ways.setdefault(way, Counter())[f"{each['selector']}{revision}"] += 1
    for way, selectors in ways.items():
        often = (f"{name} ({count} times)" if count > 1 else name for name, count in selectors.items())
        yield f"ran      {', '.join(often)}: {way}"


def learnt_lines(provenance: ProvenanceDocument) -> Iterator[str]:
    """Tell which methods were made, tried and waited for, with the cost, which is no part of the mission's own."""
    generated = provenance.get("generated", ())
    made = [each for each in generated if each["outcome"] in ("installed", "made")]
    if made:
        names = dict.fromkeys(str(each["selector"]) for each in made)
        yield f"learnt   {', '.join(names)}: {_cost(made)}"
    later: list[str] = []
    for each in generated:
        if each["outcome"] == "asked":
            asked = f"it waits for approval (batos approvals {each['approval']})"
            yield f"learnt   {each['selector']}, {asked}: {_cost([each])}"
        elif each["outcome"] == "later":
            later.append(str(each["selector"]))
        elif each["outcome"] in _OUTCOMES:
            how = f"{_OUTCOMES[each['outcome']]}{_reason_text(each)}"
            yield f"learnt   not {each['selector']}: it {how}; {_cost([each])}"
    if later:
        yield f"learnt   later: {', '.join(dict.fromkeys(later))}: interpreted here, made when the answer is out"


def learning_line(provenance: ProvenanceDocument) -> str:
    """Return what methods of a mission have cost so far, as a line; "" where that is nothing."""
    begun = [each for each in provenance.get("generated", ()) if each["calls"]]
    return f"Methods: {_cost(begun)}." if begun else ""


def after_lines(told: LateReport) -> Iterator[str]:
    """Yield lines on the methods made after the answer, and on those still to be made: {made, left}."""
    made = [each for each in told["made"] if each["outcome"] == "installed"]
    if made:
        yield f"Methods now: {', '.join(str(each['selector']) for each in made)} ({_cost(made)})."
    for each in told["made"]:
        if each["outcome"] == "asked":
            yield f"{each['selector']} waits for you: `batos approve {each['approval']}`."
        elif each["outcome"] != "gone" and each not in made:
            yield f"No method: {each['selector']} {_OUTCOMES.get(each['outcome'], 'was not made')}{_reason_text(each)}."
    if told["left"]:
        many = count_text(told["left"], "method")
        yield f"{many} to be made: `batos serve` makes them while idle, `batos method make` at once."


def _reason_text(told: LearntDocument) -> str:
    why = " ".join(str(told["failure"].get("message", "")).split()) if "failure" in told else ""
    return f" ({why if len(why) <= _WHY else f'{why[: _WHY - 3]}...'})" if why else ""


def _cost(generated: Iterable[LearntDocument]) -> str:
    """Return the cost of generations with the mission that began them, else the missions whose own cost it is."""
    told = list(generated)
    calls, tokens = sum(each["calls"] for each in told), sum(each["tokens"] for each in told)
    if calls:
        return f"{count_text(calls, 'call')}, {count_text(tokens, 'token')}, beside what was spent"
    makers = dict.fromkeys(each["mission"] for each in told if "mission" in each)
    return f"paid by {', '.join(makers)}" if makers else "nothing was paid"
