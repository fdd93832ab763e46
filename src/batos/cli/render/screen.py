"""The screen under an answer: its sources as footnotes, what the model was not shown, what waits, and one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from batos.cli.render.mission import computed_lines, moment, placements
from batos.cli.render.voices import voices_lines
from batos.protocol.mission_documents import MissionDocument, ProvenanceDocument
from batos.terminal.console import count_text
from batos.terminal.short_names import title_with_path

#: Characters of a quotation in a footnote, and how many of one document are shown.
_QUOTE: Final = 240
_QUOTES: Final = 3


def screen_lines(mission: MissionDocument, *, voices: bool) -> list[str]:
    """Return the lines under an answer above its last ones; none where it has no source and nothing waits."""
    provenance = mission["provenance"]
    lines = [*voices_lines(mission.get("voices", ()), whole=True)] if voices else []
    lines += [*footnotes(provenance), *computed_lines(provenance), *unseen_lines(provenance)]
    return [*lines, *_waiting(provenance), *placements(provenance, ("spilled",))]


def _waiting(provenance: ProvenanceDocument) -> Iterator[str]:
    """Yield one line, however many methods wait for a person."""
    asked = [each for each in provenance.get("generated", ()) if each["outcome"] == "asked"]
    if len(asked) == 1:
        yield f"{asked[0]['selector']} waits for your approval: batos approvals {asked[0]['approval']}"
    elif asked:
        yield f"{count_text(len(asked), 'method')} wait for your approval: batos approvals"


def footnotes(provenance: ProvenanceDocument) -> Iterator[str]:
    """Yield a line for each document that the answer cites, with the sentences that it quotes."""
    recalled = [each for each in provenance["recalled"] if "document" in each]
    names = {each["document"]: title_with_path(each["name"], each.get("source", "")) for each in recalled}
    found = {each["document"]: each["why"] for each in recalled if "why" in each}
    lacking = {each["document"]: each["left_out"] for each in recalled if "left_out" in each}
    quotes: dict[int, dict[str, None]] = {}
    for each in provenance["citations"]:
        quotes.setdefault(each["document"], {})[_short(each["quote"])] = None
    for document, said in sorted(quotes.items()):
        shown = "; ".join(f'"{quote}"' for quote in list(said)[:_QUOTES])
        more = f"; and {len(said) - _QUOTES} more" if len(said) > _QUOTES else ""
        why = f" (remembered; {found[document]})" if document in found else ""
        yield f"[{document}] {names.get(document, '?')}: {shown}{more}{why}"
        if document in lacking:
            yield f"[{document}] was read in part: {'; '.join(lacking[document])}."


def _short(quote: str) -> str:
    told = " ".join(quote.split())
    return told if len(told) <= _QUOTE else f"{told[: _QUOTE - 3]}..."


def unseen_lines(provenance: ProvenanceDocument) -> Iterator[str]:
    """Yield lines on what did not fit into the prompt, so that nothing is left out in silence."""
    omitted = provenance["omitted"]
    gone = []
    if omitted["passages"]:
        shown = sum("document" in each for each in provenance["recalled"])
        gone.append(f"{count_text(omitted['passages'], 'passage')} of the files ({shown:,} shown)")
    if omitted["turns"]:
        gone.append(count_text(omitted["turns"], "earlier turn"))
    if omitted.get("parts"):
        gone.append(f"the end of {count_text(omitted['parts'], 'part')}")
    if gone:
        yield f"Not shown to the model, for lack of room: {', '.join(gone)}."


def summary_line(mission: MissionDocument, again: str) -> str:
    """Say in one line who answered, with how much effort, the cost, and where all of it can be read."""
    cost, route = mission["cost"], mission["route"]
    seconds = _seconds(mission)
    took = [
        *([f"{', '.join(route['personas'])}, {route['effort']}"] if route["personas"] else []),
        count_text(cost["calls"], "call"),
        *([f"{count_text(cost['from_journal'], 'answer')} from the journal"] if cost["from_journal"] else []),
        f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s",
    ]
    return " · ".join([*took, again] if again else took)


def _seconds(mission: MissionDocument) -> float:
    """Return the seconds from the first state to the last; without states, those of its calls."""
    states = mission["states"]
    if len(states) < 2:
        return mission["cost"]["seconds"]
    return (moment(states[-1]["at"]) - moment(states[0]["at"])).total_seconds()
