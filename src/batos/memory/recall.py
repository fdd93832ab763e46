"""Recall the evidence for a question within a budget of bytes: the passages that match it, the newest turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from batos.memory.evidence import MOST_DOCUMENTS, Evidence, Passage, Past, Summary, Turn, count_standing
from batos.memory.ranking import scores

#: Passages that are picked from more than the room holds: what comes after 10 to 15 no longer helps (docs/why.md).
MOST_PASSAGES = 15
#: The share of the turns' room that summaries of older turns may take from the newest turns: one in so many.
VIEW_SHARE = 3


def recall(candidates: Sequence[Passage], past: Past, query: str, room: int, turns: int | None = None) -> Evidence:
    """Return the evidence that fits into `room` bytes: earlier turns in at most half of it, passages in the rest.

    With `turns`, that is the bytes for earlier turns, and all of `room` is the passages'.

    All passages are returned if they fit; else the best matches, or the first ones if none matches. Passages keep the
    order of their files, since neighbours explain each other, and are numbered from 1. Turns are loaded, newest first,
    until one does not fit.
    """
    if turns is not None:
        kept = recall_turns(past, turns)
    else:
        kept = recall_turns(past, room // 2 if candidates else room)
        room -= sum(turn.size for turn in kept.turns) + sum(summary.size for summary in kept.view)
    shown = {turn.mission for turn in kept.turns}  # a turn that is shown whole is not quoted from memory beside
    candidates = [each for each in candidates if not each.mission or each.mission not in shown]
    passages_ = _select_passages(candidates, query, room)
    numbered = tuple(replace(each, number=number) for number, each in enumerate(passages_, start=1))
    return replace(kept, passages=numbered, omitted_passages=len(candidates) - len(numbered))


def recall_turns(past: Past, room: int) -> Evidence:
    """Return the turns and summaries that fit into `room` bytes.

    The exchange that is replied to first, then the newest turns, then the newest summaries of what is older; these
    have a share of the room that turns do not take.
    """
    meant = past.meant if past.meant is not None and past.meant.size <= room else None
    room -= meant.size if meant else 0
    reserved = min(sum(each.size for each in past.view), room // VIEW_SHARE)
    turns: list[Turn] = []
    for turn in past.newest():
        if meant is not None and turn.mission == meant.mission:
            continue
        if turn.size > room - reserved:
            break
        room -= turn.size
        turns.insert(0, turn)
    view: list[Summary] = []
    for summary in reversed(past.view):
        if summary.size > room:
            break
        room -= summary.size
        view.insert(0, summary)
    shown = (*turns, *([meant] if meant else ()))
    first = view[0].first if view else past.last_summarised_turn + 1
    told = sum(0 < each.position < first or each.position > past.last_summarised_turn for each in shown)
    older = count_standing(1, first - 1, past.undone)
    newer = count_standing(past.last_summarised_turn + 1, past.count, past.undone)
    return Evidence(turns=shown, view=tuple(view), omitted_turns=older + newer - told, undone=past.undone)


def _select_passages(candidates: Sequence[Passage], query: str, room: int) -> list[Passage]:
    if len(candidates) <= MOST_DOCUMENTS and sum(each.size for each in candidates) <= room:
        return list(candidates)
    scored = [pair for pair in zip(scores(candidates, query), candidates, strict=True) if pair[0] > 0]
    matching = [passage for _, passage in sorted(scored, key=lambda pair: -pair[0])] or list(candidates)
    pinned = [each for each in candidates if each.is_pinned]
    best = [*pinned, *(each for each in matching if not each.is_pinned)]
    kept: list[Passage] = []
    for passage in best[:MOST_PASSAGES]:
        if passage.size <= room:
            room -= passage.size
            kept.append(passage)
    return sorted(kept, key=lambda each: each.number)
