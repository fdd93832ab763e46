"""Compaction: summarises the older turns of a conversation piece by piece; each piece is paid and stored alone.

The view is derived: a row of summaries over the turns from the first on, each an object in the conversation's slot
`view`. When there are FANOUT + 1 summaries of a level, the oldest FANOUT become one of the next level: a tree, in which
a turn is summarised log(turns) times. docs/conversations.md says when compaction runs and how it is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

from batos.conversations import conversations, summaries
from batos.conversations.summaries import RecordedPiece
from batos.image import roots
from batos.image.ids import iso
from batos.image.ownership import DOOR
from batos.image.records import least_trust
from batos.image.roots import Root
from batos.inference.cost import LEAST_RATIO
from batos.inference.session import Session
from batos.memory.evidence import Turn
from batos.memory.records import memories_set_aside
from batos.minds import context_building
from batos.minds.context import MindContext
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import NotFound, ObjectError

#: Turns are compacted when those before the newest make more than the difference of these marks: the window's HIGHth
#: part, which a cycle has room for beside a view, and its LOWth, which stays verbatim.
HIGH: Final = 5
LOW: Final = 12
#: Summaries of one level that become one of the next, once there is another behind them.
FANOUT: Final = 3
#: Pieces of one mission; what is left is the next one's.
MOST_PIECES: Final = 16
#: The share of a mission's seconds after which it begins no further piece: one in so many.
_TIME: Final = 2

SELECTOR: Final = "compact_"
#: Missions through these doors, which no person asked for, never make a compaction due.
_BACKGROUND: Final = frozenset({DOOR, "event"})
#: A compaction that will come to something by itself.
UNENDED: Final = frozenset({"queued", "running", "waiting"})
#: The journal note of a compaction's beginning has the turn up to which it goes under this name.
_NOTE: Final = "compacting"


class Derives(Protocol):
    """The part of a mission's interpreter that compaction needs."""

    context: MindContext

    async def derive(self, change: Callable[[Any], Any]) -> Any:
        """Change what is derived from the image's truth in a short commit of its own; what the change answers."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Bytes of turns: more than `high` are compacted until no more than `low` are verbatim."""

    high: int
    low: int

    @classmethod
    def for_window(cls, window: int, tokens: float) -> Marks:
        """Return the marks for a window of so many tokens, with so many tokens for each byte."""
        size = window / max(tokens, LEAST_RATIO)
        return cls(int(size / HIGH), int(size / LOW))

    def target(self, newest: Iterable[Turn], *, eager: bool = False) -> int:
        """Return the last turn to be compacted among those not compacted yet, given newest first; 0 if none is due.

        The newest turn stays verbatim whatever its size. With `eager`, used when a person asks, any older turn is due.
        """
        tail = older = upto = 0
        for turn in newest:
            if not upto and (not tail or tail + turn.size <= self.low):
                tail += turn.size
                continue
            upto = upto or turn.position
            older += turn.size
            if eager or older > self.high - self.low:
                return upto
        return 0


def due(root: Root, mission: str) -> dict[str, Any] | str | None:
    """Return the brief of a compaction that an answered mission makes due, or the id of an unfinished one, or None.

    Only a person's turn can make one due, not a message or the system's own missions. Loads no more turns than the high
    mark holds.
    """
    record = roots.find_record(root, mission)
    if record is None:
        return None
    asked, slots = record.brief.value, own_slots(record.thought)
    name = asked.get("conversation")
    if name is None or "message" in asked or "answer" not in slots or asked["origin"]["door"] in _BACKGROUND:
        return None
    conversation = conversations.own_conversation(root, name, asked["user"])
    persona = str(slots["route"]["personas"][0])
    marks = _marks(root, persona)
    if not marks.target(conversations.backwards(root, conversation, _last_summarised_turn(conversation))):
        return None
    before = own_slots(conversation).get("compacting")
    word = roots.mission_record(root, before).status.word if before else None
    if word in UNENDED:
        return str(before)
    # A compaction that was accepted and never ran has left nothing at the conversation yet.
    waiting = next(
        (
            each
            for each in unfinished_compactions(root)
            if roots.mission_record(root, each).brief.value["message"]["receiver"] == name
        ),
        "",
    )
    if waiting:
        return waiting
    brief = {
        # The same words every time: then what an interrupted one paid for is found by its ancestor's clock.
        "text": f"Compact the older turns of {name}.",
        "user": asked["user"],
        "persona": persona,
        "priority": -9,
        "message": {"receiver": name, "selector": SELECTOR},
        "origin": {"door": DOOR, "client": "compaction"},
    }
    return {**brief, "ancestor": before} if word in ("failed", "cancelled") else brief


def unfinished_compactions(root: Root) -> list[str]:
    """List the compactions that were accepted and have not ended."""
    found = []
    for mission in root[roots.UNFOLDED]:
        brief = roots.mission_record(root, mission).brief.value
        if brief["origin"]["door"] == DOOR and (brief.get("message") or {}).get("selector") == SELECTOR:
            found.append(mission)
    return found


def _marks(root: Root, persona: str) -> Marks:
    """Return the marks for a persona's window, by the measured tokens of its model."""
    thinking = context_building.thinking_of(context_building.persona_of(root, persona))
    return Marks.for_window(thinking.window, context_building.ratio_of(root, thinking.model))


def _last_summarised_turn(conversation: UvmObject) -> int:
    view = conversations.nodes(conversation)
    return int(view[-1].last) if view else 0


async def compact(interpreter: Derives, receiver: UvmObject, args: tuple[Any, ...]) -> dict[str, object]:
    """Compact a conversation's older turns: `compact_`."""
    return await _Compaction(interpreter, receiver).run(afresh=False)


async def recompact(interpreter: Derives, receiver: UvmObject, args: tuple[Any, ...]) -> dict[str, object]:
    """Drop the view and make it anew: `recompact_`. The turns are not touched."""
    return await _Compaction(interpreter, receiver).run(afresh=True)


def summaries_to_join(view: Sequence[RecordedPiece]) -> Sequence[RecordedPiece] | None:
    """Return the summaries to be joined: the oldest of the lowest level that has too many; None if no level has."""
    for level in sorted({kept.level for kept in view}):
        alike = [kept for kept in view if kept.level == level]
        if len(alike) > FANOUT:
            return alike[:FANOUT]
    return None


class _Compaction:
    """A mission's compaction of one conversation."""

    def __init__(self, interpreter: Derives, receiver: UvmObject) -> None:
        self._interpreter = interpreter
        self._context: MindContext = summaries.recorder(interpreter.context)
        self._name = _name_of(self._context, receiver)
        self._conversation = receiver
        self._drops = memories_set_aside.count_drops(receiver)
        self._view: list[RecordedPiece] = []
        self._made: list[RecordedPiece] = []
        self._interrupted = ""

    async def run(self, *, afresh: bool) -> dict[str, object]:
        """Make all pieces that are due, within the mission's limits; return what was done and what is left."""
        session = self._context.io.session
        holder, resumed = await self._interpreter.derive(partial(_claim, self._name, self._context.mission.id, afresh))
        if holder:
            said = f"{holder} compacts it already; if its process has ended, run `batos resume {holder}`."
            return self._report(0, said)
        if resumed or not afresh:
            nodes = conversations.nodes(self._conversation)
            self._view = [RecordedPiece(conversations.summary(node), node.level) for node in nodes]
        targets = self._targets(afresh=afresh)
        leave = self._context.io.asked.call(self._yield)
        began = session.ticks()
        try:
            while len(self._made) < MOST_PIECES and not self._interrupted and await self._next(targets):
                if session.ticks() - began > session.limits.seconds / _TIME or _is_spent(session, self._context):
                    self._interrupted = "this mission's budget"
        finally:
            leave()
        return self._report(targets[-1] if targets else 0, "")

    def _yield(self, mission: str) -> None:
        """Begin no further piece when somebody asks something, so that the answer does not wait."""
        if mission != self._context.mission.id:
            self._interrupted = "a question came"

    def _targets(self, *, afresh: bool) -> list[int]:
        """List the turns up to which to compact, ascending, as noted by the first attempt and by earlier missions.

        So pieces are cut in the same places, and paid answers are found again. The turn before stands for one that is
        undone since.
        """
        context, decided = self._context, self._context.trace.decided
        found = {int(note[_NOTE]) for note in decided.notes() if _NOTE in note}
        if decided.own(_NOTE) is None:
            marks = Marks.for_window(context.mind.thinking.window, context.ratio)
            turns = conversations.backwards(context.mission.root, self._conversation, self._last_summarised_turn)
            target = marks.target(turns, eager=afresh or context.mission.brief.origin.door != DOOR)
            if target:
                decided.note(**{_NOTE: target})
                found.add(target)
        there = {conversations.last_up_to(self._conversation, target) for target in found}
        return sorted(target for target in there if target > self._last_summarised_turn)

    @property
    def _last_summarised_turn(self) -> int:
        """Return the last turn that the view stands for."""
        return self._view[-1].piece.last if self._view else 0

    async def _next(self, targets: Sequence[int]) -> bool:
        """Make and keep one piece, if there is one to be made and nobody else changed the view."""
        merging = summaries_to_join(self._view)
        if merging is not None:
            made = await summaries.join_pieces(self._context, [each.piece for each in merging], merging[0].level + 1)
        else:
            upto = next((target for target in targets if target > self._last_summarised_turn), 0)
            if not upto:
                return False
            turns = conversations.forwards(
                self._context.mission.root, self._conversation, self._last_summarised_turn + 1, upto
            )
            made = await summaries.summarise_turns(self._context, turns)
            # Positions of undone turns before it are its own too: the view has no gap.
            made = replace(made, piece=replace(made.piece, first=self._last_summarised_turn + 1))
        kept = await self._interpreter.derive(partial(_keep, self._name, self._node(made), merging or (), self._drops))
        if not kept:
            self._interrupted = "its turns or its view were changed meanwhile"
        else:
            place = self._view.index(merging[0]) if merging else len(self._view)
            self._view[place : place + len(merging or ())] = [made]
            self._made.append(made)
        return bool(kept)

    def _node(self, made: RecordedPiece) -> dict[str, object]:
        return {
            **asdict(made.piece),
            "level": made.level,
            "why": made.why,
            "shortened": made.shortened,
            "mission": self._context.mission.id,
            "at": iso(self._context.io.session.clock()),
        }

    def _report(self, target: int, note: str) -> dict[str, object]:
        """Return the result of the message: the new pieces, the view's reach, the turns left and the reason."""
        left = max(0, target - self._last_summarised_turn)
        if left and not note:
            note = f"{left} more turns wait for the next time: {self._interrupted or 'so many pieces at once'}."
        return {
            "conversation": self._name,
            "turns": conversations.count(self._conversation),
            "covered": self._last_summarised_turn,
            "made": [
                {
                    "turns": [each.piece.first, each.piece.last],
                    "level": each.level,
                    "by": "model" if each.piece.by_model else "first sentences",
                }
                for each in self._made
            ],
            "summaries": len(self._view),
            "left": left,
            "note": note or ("" if self._made else "There is nothing to compact: the turns are short enough."),
            "trust": least_trust("user", *(each.piece.trust for each in self._made)),
        }


def _name_of(context: MindContext, receiver: UvmObject) -> str:
    """Return the conversation's id. Raises: ObjectError: the receiver is no conversation, or another user's."""
    name = own_slots(receiver).get("name")
    try:
        found = conversations.own_conversation(context.mission.root, str(name), context.mission.brief.user)
    except NotFound:
        found = None
    if found is not receiver:
        raise ObjectError("only a conversation has turns", remedy="Send it to a conversation, c- and its number.")
    return str(name)


def _is_spent(session: Session, context: MindContext) -> bool:
    """Test if the budget may not pay another piece: at worst two calls with a window each, each made twice."""
    spent = session.cost.prompt_tokens + session.cost.answer_tokens
    worst = summaries.MOST_CALLS
    return (
        session.cost.calls + worst > session.limits.calls
        or spent + 2 * context.mind.thinking.window > session.limits.tokens
    )


# -- changes of the image, each in a short commit of its own; they may be made twice


def _claim(name: str, mission: str, afresh: bool, root: Root) -> tuple[str, bool]:
    """Take the conversation for this mission: who has it instead, if somebody does, and whether it was ours before."""
    conversation = root[roots.CONVERSATIONS][name]
    holder = own_slots(conversation).get("compacting")
    if holder is not None and holder != mission and roots.mission_record(root, holder).status.word == "running":
        return str(holder), False
    if holder != mission:
        conversation.compacting = mission
        if afresh:
            conversation.view = ()
    return "", holder == mission


def _keep(name: str, slots: Mapping[str, object], merged: Sequence[RecordedPiece], drops: int, root: Root) -> bool:
    """Put a summary into the view, in the place of those that it was made of.

    Returns False if the view is another by now, or if one was dropped since its turns were read, which `drops` tells.
    """
    conversation = root[roots.CONVERSATIONS][name]
    view = conversations.nodes(conversation)
    if (
        own_slots(conversation).get("compacting") != slots["mission"]
        or memories_set_aside.count_drops(conversation) != drops
    ):
        return False
    if not merged:
        if slots["first"] != (view[-1].last + 1 if view else 1):
            return False
        conversation.view = (*view, UvmObject({**slots, "parts": ()}))
        return True
    spans = [(each.piece.first, each.piece.last) for each in merged]
    place = next((at for at, node in enumerate(view) if node.first == spans[0][0]), 0)
    parts = view[place : place + len(spans)]
    if [(node.first, node.last) for node in parts] != spans:
        return False
    conversation.view = (*view[:place], UvmObject({**slots, "parts": parts}), *view[place + len(spans) :])
    return True
