"""Conversations: all turns, read by position, and the view in which summaries replace the older ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import islice
from typing import Any, Final

from ZODB.POSException import POSKeyError

from batos.image import attached_files, ids, ownership, roots
from batos.image.roots import Root, connection_of
from batos.inference.canonical import canonical
from batos.memory.evidence import Past, Summary, Turn
from batos.memory.records import memories_set_aside
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.brief import MissionBrief
from batos.protocol.errors import BriefError, MessageNotUnderstood, NotFound
from batos.protocol.image_documents import CompactionDocument, ConversationPage, TurnDocument
from batos.records import memory_lineage

#: Characters of questions and answers that one page of turns holds at most, beside its first turn.
PAGE = 256 * 1024
#: The journal note of an attempt's beginning has how far it looked back under this name.
REACH_NOTE = "past"
#: Positions that are looked at in one step on the way back.
_STEP = 64

#: Stands in the place of an answer that is retracted; `batos show` still has the answer.
_RETRACTED = "(This answer is retracted.)"
_FORGOTTEN = "(This question is forgotten.)"

#: The slot of the highest position ever given, in a conversation whose last turn was undone: no other turn gets it.
_HIGHEST: Final = "highest_position"

#: The remedy if there is no such conversation.
_BEGIN = 'Begin one: batos ask --conversation new "..."'


def own_conversation(root: Root, name: str, user: str | None) -> UvmObject:
    """Return the conversation of that name; `user` None asks for nobody.

    Raises: NotFound: there is none, or it is another user's: who asks is not told which.
    """
    found = root[roots.CONVERSATIONS].get(name)
    if not isinstance(found, UvmObject) or (user is not None and found.user != user):
        of = "" if user is None else f" of {user}'s"
        raise NotFound(f"there is no conversation {name!r}{of}", field="conversation", remedy=_BEGIN)
    return found


def newest(root: Root, user: str, before: int = 0) -> str | None:
    """Return the user's newest conversation, or the one so many before it, if any; older ones are not loaded."""
    kept = root[roots.CONVERSATIONS]
    own = (name for name in ids.newest_first(kept) if kept[name].user == user)
    return next(islice(own, before, None), None)


def count(conversation: UvmObject) -> int:
    """Return the position of the last turn, 0 if there is none; positions of undone turns are given to no other."""
    turns = conversation.turns
    return int(turns.maxKey()) if turns else 0


def last_up_to(conversation: UvmObject, position: int) -> int:
    """Return the position of the last turn up to a position, 0 if there is none."""
    try:
        return int(conversation.turns.maxKey(position))
    except ValueError:
        return 0


def undone_turns(conversation: UvmObject) -> dict[int, str]:
    """Return the missions of the undone turns by their positions."""
    found: dict[int, str] = own_slots(conversation).get(memory_lineage.UNDONE_TURNS, {})
    return found


def next_position(conversation: UvmObject) -> int:
    """Return the position of the next turn: one that no turn ever had."""
    return int(max(count(conversation), own_slots(conversation).get(_HIGHEST, 0))) + 1


def position_of(conversation: UvmObject, mission: str, last: int | None = None) -> int:
    """Return the position of a mission's turn, up to the `last` one; 0 if it has none there."""
    return next((place for place, each in _places(conversation, 0, last) if each == mission), 0)


def take_out(conversation: UvmObject, position: int) -> None:
    """Take a turn out. The summaries of older turns are dropped, since one may quote it; they are made anew."""
    setattr(conversation, _HIGHEST, next_position(conversation) - 1)
    mission = conversation.turns.pop(position)
    setattr(conversation, memory_lineage.UNDONE_TURNS, {**undone_turns(conversation), position: mission})
    memories_set_aside.drop_view(conversation)


def put_back(conversation: UvmObject, position: int, mission: str) -> None:
    """Give a turn its former position again."""
    conversation.turns[position] = mission
    left = {place: each for place, each in undone_turns(conversation).items() if place != position}
    setattr(conversation, memory_lineage.UNDONE_TURNS, left)
    memories_set_aside.drop_view(conversation)


def turn(root: Root, position: int, mission: str) -> Turn:
    """Return a turn verbatim; of one whose answer is retracted, a mark in its place."""
    record, _, thought = root[roots.MISSIONS][mission]
    asked, day = record.value["text"], record.accepted_at[:10]
    if (mark := own_slots(thought).get(memories_set_aside.RETRACTED)) is not None:
        asked = _FORGOTTEN if mark == memories_set_aside.WHOLE else asked
        return Turn(mission, asked, _RETRACTED, record.trust, position, day)
    return Turn(mission, asked, thought.answer, thought.lineage_trust, position, day)


def backwards(root: Root, conversation: UvmObject, after: int = 0, last: int | None = None) -> Iterator[Turn]:
    """Yield the turns from the newest, or `last`, down to the one after a position, loaded one by one."""
    return (turn(root, position, mission) for position, mission in _places(conversation, after, last))


def forwards(root: Root, conversation: UvmObject, first: int, last: int) -> Iterator[Turn]:
    """Yield the turns of these positions; each is loaded when it is needed."""
    return (turn(root, *place) for place in conversation.turns.items(min=first, max=last))


def _places(conversation: UvmObject, after: int, last: int | None = None) -> Iterator[tuple[int, str]]:
    """Yield position and mission of each turn, newest first, in steps because a B-tree is only read forwards."""
    turns, last = conversation.turns, count(conversation) if last is None else last
    while last > after:
        first = max(after + 1, last - _STEP + 1)
        yield from reversed(list(turns.items(min=first, max=last)))
        last = first - 1


def lead(root: Root, conversation: UvmObject) -> str | None:
    """Return the persona that led the newest turn, or None."""
    last = count(conversation)
    return str(roots.mission_record(root, conversation.turns[last]).thought.route["personas"][0]) if last else None


def nodes(conversation: UvmObject) -> tuple[UvmObject, ...]:
    """Return the view: the summaries of older turns, oldest first; the slot `parts` of each holds its sources."""
    found: tuple[UvmObject, ...] = own_slots(conversation).get("view", ())
    return found


def summary(node: UvmObject) -> Summary:
    """Return an object of the view as a value."""
    return Summary(node.first, node.last, node.text, node.trust, node.by_model)


@dataclass(frozen=True, slots=True)
class Reach:
    """The past that a mission sees: a conversation up to the turn `last`, with these summaries of its older turns.

    `drops` is how often summaries had been dropped before these, because a turn went, came back or changed.
    """

    conversation: str
    last: int
    view: tuple[UvmObject, ...]
    drops: int

    def as_note(self) -> dict[str, Any]:
        """Return the journal's note: each summary by its object and a digest, since a later view may not contain it."""
        view = [[(node._p_oid or b"").hex(), _digest(node)] for node in self.view]
        return {"conversation": self.conversation, "last": self.last, "view": view, "drops": self.drops}


def reach(root: Root, brief: MissionBrief, notes: Iterable[Mapping[str, Any]] = ()) -> Reach | None:
    """Return the past that a mission sees; None outside a conversation. Raises what `own_conversation` raises.

    `notes` are of earlier attempts at the same question, nearest first. The first note for this conversation is used,
    so that the prompts are the same whatever was said or compacted since. If its summaries are gone from the image, or
    were dropped because a turn went, came back or changed, the next note is used, else everything to the newest turn.
    """
    name = brief.conversation
    if name is None:
        return None
    conversation = own_conversation(root, name, brief.user)
    drops = memories_set_aside.count_drops(conversation)
    for note in notes:
        noted = note.get(REACH_NOTE)
        if noted is not None and noted["conversation"] == name and noted["last"] <= count(conversation):
            kept = _kept_nodes(root, noted["view"]) if noted.get("drops", 0) == drops or not noted["view"] else None
            if kept is not None:
                return Reach(name, noted["last"], kept, drops)
    return Reach(name, count(conversation), nodes(conversation), drops)


def _kept_nodes(root: Root, noted: Iterable[tuple[str, str]]) -> tuple[UvmObject, ...] | None:
    """Return the noted summaries; None if one is gone, since packing removes summaries outside every view."""
    try:
        found = [(connection_of(root).get(bytes.fromhex(oid)), digest) for oid, digest in noted]
        whole = all(isinstance(node, UvmObject) and _digest(node) == digest for node, digest in found)
    except (POSKeyError, MessageNotUnderstood):  # gone, or its place has been given to something else
        return None
    return tuple(node for node, _ in found if isinstance(node, UvmObject)) if whole else None


def _digest(node: UvmObject) -> str:
    return hashlib.sha256(canonical(astuple(summary(node)))).hexdigest()


def past(root: Root, brief: MissionBrief, reached: Reach | None) -> Past:
    """Return the turns before a mission, within its reach, and the exchange that it replies to.

    Raises: NotFound: either is another user's. BriefError: the mission replied to has no answer.
    """
    if reached is None:
        return Past(meant=_replied_turn(root, brief, None))
    conversation = own_conversation(root, reached.conversation, brief.user)
    found = tuple(map(summary, reached.view))
    covered = found[-1].last if found else 0
    return Past(
        count=reached.last,
        newest=lambda: backwards(root, conversation, covered, reached.last),
        view=found,
        meant=_replied_turn(root, brief, reached),
        undone=tuple(sorted(each for each in undone_turns(conversation) if each <= reached.last)),
    )


def check_reply(root: Root, mission: str, user: str) -> None:
    """Raise NotFound if this user has no such mission to reply to, BriefError if it will never answer."""
    found = roots.find_record(root, mission)
    if found is None or found.brief.value["user"] != user:
        raise ownership.no_mission(mission, user, "in_reply_to")
    if found.status.word in ("failed", "cancelled", "undone"):
        raise BriefError(
            f"{mission} is {found.status.word}: it has no answer to reply to",
            field="in_reply_to",
            remedy="Reply to one that is done (`batos missions --status done --mine`), or ask without it.",
        )


def _replied_turn(root: Root, brief: MissionBrief, reached: Reach | None) -> Turn | None:
    """Return the exchange that is replied to, with its position if it is a turn within reach.

    A mission that ended with calls is no exchange: its result is replied to, in the place of what it replied to itself.
    """
    name = brief.in_reply_to
    if name is None:
        return None
    check_reply(root, name, brief.user)
    record, status, thought = root[roots.MISSIONS][name]
    if own_slots(thought).get("provenance", {}).get("tool_calls"):
        return _replied_turn(root, MissionBrief.from_document(record.value), reached)
    if "answer" not in own_slots(thought):
        raise BriefError(
            f"{name} is {status.word}: it has no answer to reply to",
            field="in_reply_to",
            remedy=f"Wait for it (`batos wait {name}`), or ask without it.",
        )
    found = turn(root, 0, name)
    if reached is None or record.value.get("conversation") != reached.conversation:
        return found
    conversation = own_conversation(root, reached.conversation, brief.user)
    return replace(found, position=position_of(conversation, name, reached.last))


def resolve_name(root: Root, name: str, user: str) -> str:
    """Return the id that a name means: `last` and `last-1` are the user's; NotFound if there are not so many.

    BriefError: it is the beginning of several.
    """
    before = ids.back(name)
    kept = root[roots.CONVERSATIONS]
    if before is None:
        return ids.complete_id(kept, name, lambda each: bool(kept[each].user == user))
    found = newest(root, user, before)
    if found is None:
        have = "yet" if before == 0 else f"{name}: you had fewer"
        raise NotFound(f"there is no conversation {have}", field="conversation", remedy=_BEGIN)
    return found


def page(root: Root, name: str, start: int = 1, limit: int = 20, user: str | None = None) -> ConversationPage:
    """Return turns verbatim by position, for doors: `start` counts from 1, or from the end if negative.

    `next` is the position after the page, None at the end: a page of long turns ends early. `files` can be used by the
    next question; `compactions` are the summaries that stand for older turns in prompts. Raises: as `own_conversation`.
    """
    conversation = own_conversation(root, name, user)
    whole = count(conversation)
    first = max(1, whole + start + 1 if start < 0 else start)
    shown: list[TurnDocument] = []
    size = 0
    for each in islice(forwards(root, conversation, first, whole), limit):
        size += len(each.question) + len(each.answer)
        if shown and size > PAGE:
            break
        shown.append(_turn_document(root, each))
    after = shown[-1]["position"] + 1 if shown else first
    return {
        "conversation": name,
        "user": conversation.user,
        "count": whole,
        "turns": shown,
        "files": [dict(each) for each in attached_files.files_of(conversation)],
        "next": after if shown and after <= whole else None,
        "compactions": [_compaction(node) for node in nodes(conversation)],
    }


def _turn_document(root: Root, each: Turn) -> TurnDocument:
    record, _, thought = root[roots.MISSIONS][each.mission]
    return {
        "position": each.position,
        "mission": each.mission,
        "at": record.accepted_at,
        "question": each.question,
        "answer": each.answer,
        "personas": list(thought.route["personas"]),
        "trust": each.trust,
    }


def _compaction(node: UvmObject) -> CompactionDocument:
    """Return a summary for doors: its turns, how and when it was made, and its text."""
    return {
        "turns": [node.first, node.last],
        "level": node.level,
        "by": "model" if node.by_model else "first sentences",
        "text": node.text,
        "trust": node.trust,
        "mission": node.mission,
        "at": node.at,
    }
