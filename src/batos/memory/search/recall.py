"""Recall the evidence for a question within a budget of bytes: the passages that match it, the newest turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from batos.memory.evidence import MOST_DOCUMENTS, Evidence, Passage, Past, Summary, Turn, count_standing, scores
from batos.memory.search import shown_documents

#: The share of the better one of its neighbours' matches that counts for a passage: neighbours explain each other.
NEIGHBOUR_SHARE = 0.5
#: The share of the turns' room that summaries of older turns may take from the newest turns: one in so many.
VIEW_SHARE = 3


def recall(candidates: Sequence[Passage], past: Past, query: str, room: int, turns: int | None = None) -> Evidence:
    """Return the evidence that fits into `room` bytes: earlier turns in at most half of it, passages in the rest.

    With `turns`, that is the bytes for earlier turns, and all of `room` is the passages'.

    All passages are returned if they fit; else as many as the room holds, the best matches and their neighbours first,
    or the first ones if none matches. Passages keep the order of their files, and are numbered from 1. Turns are
    loaded, newest first, until one does not fit.
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
    if len(candidates) <= MOST_DOCUMENTS and shown_documents.size(candidates) <= room:
        return list(candidates)
    found = scores(candidates, query)
    with_neighbours = [_match_with_neighbours(place, candidates, found) for place in range(len(candidates))]
    best = sorted(range(len(candidates)), key=lambda at: (not candidates[at].is_pinned, -with_neighbours[at], at))
    kept: list[Passage] = []
    for passage in (candidates[place] for place in best):
        if passage.size <= room and len(kept) < MOST_DOCUMENTS:
            room -= passage.size
            kept.append(passage)
    return sorted(kept, key=lambda each: each.number)


def _match_with_neighbours(place: int, candidates: Sequence[Passage], found: Sequence[float]) -> float:
    """Return how well a passage matches, if it is looked at with those before and behind it in its file."""
    beside = (at for at in (place - 1, place + 1) if 0 <= at < len(candidates))
    near = (found[at] for at in beside if candidates[at].sha256 == candidates[place].sha256)
    return max(found[place], NEIGHBOUR_SHARE * max(near, default=0.0))
