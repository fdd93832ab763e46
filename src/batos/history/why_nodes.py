"""Nodes of the trees that say what something came from, and who asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from batos.image import ownership, roots
from batos.image.ids import iso, tid_text
from batos.image.past import Writing, moment_of
from batos.image.records import MissionRecord
from batos.image.roots import Root
from batos.inference.journal import Entries, Record
from batos.memory.segmentation import clip_line
from batos.protocol.image_documents import WhyNode

#: Longest text of a node, in characters.
_LONGEST: Final = 400
#: The words for a mission that the user may not see, and for what a record of an older version lacks.
ANOTHERS: Final = "a mission of another user"
NOT_RECORDED: Final = "not recorded by that version"
#: The characters of the end of a prompt that are told.
_END: Final = 160


@dataclass(frozen=True, slots=True)
class Asking:
    """The root and journal that reasons are read from, and the user who asks (None: anybody).

    `seen` are the things that the tree has already: each is told once, and named where it is met again.
    """

    root: Root
    journal: Entries
    user: str | None
    seen: set[str] = field(default_factory=set)

    def is_new(self, ref: str) -> bool:
        """Test if a thing is not in the tree yet, and take it in."""
        is_new = ref not in self.seen
        self.seen.add(ref)
        return is_new

    def record(self, mission: str) -> MissionRecord | None:
        """Return a mission; None: there is none that this user may see."""
        found = roots.find_record(self.root, mission)
        if found is None or (self.user is not None and not ownership.is_asked_by(self.root, [mission], self.user)):
            return None
        return found


def make_node(kind: str, text: str, because: Iterable[WhyNode] = (), ref: str = "", at: str = "") -> WhyNode:
    """Return a node, its text on one line."""
    node = WhyNode(kind=kind, text=clip_line(text, _LONGEST), because=[*because])
    if ref:
        node["ref"] = ref
    if at:
        node["at"] = at
    return node


def make_commit(written: Writing | bytes, what: str = "committed") -> WhyNode:
    """Return the node of a commit."""
    tid = written.tid if isinstance(written, Writing) else written
    node = make_node("commit", what, at=iso(moment_of(tid)))
    node["tid"] = tid_text(tid)
    return node


def make_call(record: Record) -> WhyNode:
    """Return the node of a call: its step, its model and tokens; its key names the journal's entry."""
    tokens = record.tokens
    spent = f", {tokens.get('prompt', '?')} -> {tokens.get('answer', '?')} tokens" if tokens else ""
    text = f"{record.path} by {record.model} ({record.digest[:12]}){spent}"
    state = "" if record.state == "done" else f", {record.state}"
    return make_node("call", text + state, [_prompt_of(record)], record.key, record.started)


def make_outside(record: Record) -> WhyNode:
    """Return the node of a call to the world: its step, what was asked, and its state where it is not done."""
    if not record.request:
        return make_node("outside", f"{record.path}: its words are erased", ref=record.key, at=record.started)
    asked = ", ".join(f"{name} {value}" for name, value in sorted(record.request["asked"].items()))
    state = "" if record.state == "done" else f", {record.state}"
    text = f"{record.path}: {record.request['kind']} ({asked}){state}"
    return make_node("outside", text, _pages_of(record), record.key, record.started)


def _pages_of(record: Record) -> Iterator[WhyNode]:
    """Yield the node of a page that a call brought; `batos show MISSION --prompts` prints it as it was."""
    document = ((record.response or {}).get("value") or {}).get("document")
    if document is not None:
        size = f"{len(document['text']):,} characters of a page of {len(document['page']):,}"
        named = f"{document['title']}, read {document['at']}, {size}, SHA-256 {document['digest'][:12]}"
        yield make_node("page", named, ref=f"{record.mission} {record.path}", at=document["at"])


def _prompt_of(record: Record) -> WhyNode:
    """Return the node of a call's prompt: its size and its end; `batos show MISSION --call PATH` prints all of it."""
    messages = record.request.get("messages", ())
    size = sum(len(each["content"]) for each in messages)
    end = " ".join(str(messages[-1]["content"]).split())[-_END:] if messages else ""
    return make_node("prompt", f"{size:,} characters, ending “{end}”", ref=f"{record.mission} {record.path}")


def explain_reference(asking: Asking, mission: str, said: str = "") -> WhyNode:
    """Return a mission in a line, without what it came from."""
    record = asking.record(mission)
    if record is None:
        return make_node("mission", ANOTHERS)
    return make_node("mission", said + record.brief.value["text"], (), mission, record.brief.accepted_at)
