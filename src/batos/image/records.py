"""Define the persistent records: of missions, of the files that they came with, of methods, approvals and memories."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree
from persistent import Persistent
from ZODB.blob import Blob
from ZODB.FileStorage.format import CorruptedError
from ZODB.POSException import POSError

from batos.image.ids import oid_text
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import ImageDamaged, Refused
from batos.protocol.method_documents import CandidateDocument, RetirementDocument, UseTotals, no_use
from batos.protocol.mission_documents import AttemptDocument, ErrorDocument

if TYPE_CHECKING:
    _Tree: TypeAlias = OOBTree[str, Any]
else:
    _Tree = OOBTree

StatusWord: TypeAlias = Literal[
    "queued", "running", "waiting", "paused", "done", "failed", "cancelled", "parked", "undone"
]

#: Statuses of missions that proceed by themselves, here or in another process; and of all that have not ended.
UNDER_WAY: Final[frozenset[StatusWord]] = frozenset({"queued", "running"})
OPEN: Final[frozenset[StatusWord]] = UNDER_WAY | {"waiting", "paused", "parked"}

#: `asked` is the only one that can still change, and only once.
ApprovalWord: TypeAlias = Literal["asked", "approved", "rejected", "expired", "outdated"]

#: From most to least trusted; what is made from several things has the least of them.
TRUST = ("user", "model", "tool", "external")

#: The slot in which an object keeps what the codex declared for it: slot name to digest of the declaration.
DIGESTS = "codex_digests"

#: The slot in which an object keeps which of its slots are less trusted than what a model says: {slot: class}.
SLOT_TRUST = "slot_trust"


def least_trust(*classes: str) -> str:
    """Return the least trusted of these trust classes.

    >>> least_trust("user", "external", "model")
    'external'
    """
    return max(classes, key=TRUST.index)


class Chronicle(_Tree):
    """A tree of what is added under ever greater keys and kept: its nodes are small, since each one that grows is
    written again whole.

    The nodes of a plain tree hold up to 250 children: the one above the newest entries grows for thousands of missions.
    """

    max_leaf_size = 16
    max_internal_size = 16


class Brief(Persistent):
    """A request as a value: `value` is the brief of CONTRACT as plain data, `trust` the class of its text."""

    def __init__(self, value: dict[str, Any], accepted_at: str) -> None:
        self.value = value
        self.accepted_at = accepted_at
        origin = value.get("origin") or {}
        # A host's model wrote what comes over MCP, unless a person types there.
        self.trust = "external" if origin.get("door") == "mcp" and not origin.get("typed") else "user"

    def erase(self, kept: dict[str, object]) -> None:
        """Leave only these fields, which have no words of the request."""
        self.value = kept

    def drop_grants(self) -> None:
        """Leave the grants out that the request names."""
        self.value = {key: value for key, value in self.value.items() if key != "grants"}


class Status(Persistent):
    """Where a mission stands; changed only by short transactions, never by the mission.

    `deaths` counts the attempts that count against it: processes that died with it where the one before had died.
    """

    #: Written only where they say something else.
    deaths = 0
    #: The journal's length when a process last died with this mission: entries, closed entries, last path.
    mark: tuple[int, int, str] | None = None
    #: True if the mission runs, or last ran, with no other mission beside it.
    alone = False
    #: The fence of the node that runs the mission, or ran it last; 0: the image is one process's.
    claim = 0
    #: The status with which another node asks the one that runs it to stop; "": none does.
    asked: StatusWord | Literal[""] = ""

    def __init__(self, word: StatusWord, at: str) -> None:
        self.word: StatusWord = word
        self.at = at
        self.reason: ErrorDocument | None = None
        self.attempts = 0
        self.published = False
        self.tid: str | None = None
        #: States and cost of a failed mission, which a doomed thought cannot store.
        self.report: AttemptDocument | None = None

    def become(self, word: StatusWord, at: str, reason: ErrorDocument | None = None) -> None:
        """Move to another status; how often it began to run is counted."""
        if word == "running":
            self.attempts += 1
        if self.asked:
            self.asked = ""
        self.word = word
        self.at = at
        self.reason = reason

    def erase(self, reason: ErrorDocument) -> None:
        """Take out what it tells of the mission, for this reason."""
        self.reason, self.report = reason, None


class Attachment(Persistent):
    """A file that came with a brief, named by its content: short ones inline, long ones as a blob."""

    trust = "external"

    def __init__(self, sha256: str, size: int, data: bytes | None, blob: Blob | None) -> None:
        self.sha256 = sha256
        self.size = size
        self.data = data
        self.blob = blob

    def read(self) -> bytes:
        """Return the whole content.

        Raises: ImageDamaged: the content cannot be read or is not what was stored; the error names the file.
        """
        try:
            content = self._content()
        except (OSError, POSError, CorruptedError) as error:
            # Its record may be what cannot be read, and with it its name.
            name = self.__dict__.get("sha256") or oid_text(self._p_oid or b"")
            raise missing_file_error(name, f"cannot be read ({error!r})") from error
        return self.check_content(content)

    def check_content(self, content: bytes) -> bytes:
        """Return the content, if it is what was attached; else raise ImageDamaged."""
        found = hashlib.sha256(content).hexdigest()
        if (len(content), found) != (self.size, self.sha256):
            raise missing_file_error(self.sha256, f"is not what was attached: its sha256 is {found}")
        return content

    def _content(self) -> bytes:
        if self.data is not None:
            return self.data
        if self.blob is None:
            raise missing_file_error(self.sha256, "has neither content nor a blob")
        with self.blob.open("r") as file:
            content: bytes = file.read()
        return content


class Segment(Persistent):
    """A part of an index over memories, never changed: `kind` is the index, `data` the bytes that it reads."""

    def __init__(self, kind: str, data: bytes) -> None:
        self.kind = kind
        self.data = data


class Archive(Persistent):
    """The parts of memories that a summary stands for, never changed: their texts, packed, and what indexes them.

    `segments` are (kind, what it is about, Segment), one for each index that they stood in.
    """

    def __init__(self, texts: bytes, segments: tuple[tuple[str, str, Segment], ...]) -> None:
        self.texts = texts
        self.segments = segments


class MissionRecord(NamedTuple):
    """The three objects of a mission, as the image keeps them under its id: a tuple of references, and nothing more."""

    brief: Brief
    status: Status
    thought: UvmObject


class Lineage(Persistent):
    """All that was ever made for one slot of one object. Changed only by the functions of records/methods.py.

    `intent` is what the slot holds while no revision is active; None: it is declared no more. `revisions` counts from
    1, `active` is one of them or 0. `retired` says why revisions went ({at, reason}, by revision). `barred` is set
    while nothing may be generated: {intent, coders, reason}. `history` is every change of the slot, counted from 1,
    and `ledger` every use (records/outcomes.py); both are append-only. `totals` are the ledger's sums by revision,
    `since` those of the active revision when it became active: what came before is not held against it twice.
    """

    def __init__(self, holder: UvmObject, selector: str, intent: Intent) -> None:
        self.holder = holder
        self.selector = selector
        self.intent: Intent | None = intent
        self.kind: str = intent.kind
        self.active = 0
        self.retired: dict[int, RetirementDocument] = {}
        self.barred: dict[str, Any] | None = None
        self.since: UseTotals = no_use()
        self.revisions: IOBTree[Method] = IOBTree()
        self.history: IOBTree[dict[str, Any]] = IOBTree()
        self.ledger: IOBTree[Any] = IOBTree()
        self.totals: IOBTree[UseTotals] = IOBTree()

    def is_sound(self) -> bool:
        """Test if the slot holds what this says: the active revision, else the intent, else nothing."""
        value = own_slots(self.holder).get(self.selector)
        return value is (self.revisions[self.active] if self.active else self.intent)


class Approval(Persistent):
    """A question to a person, and what was answered.

    `candidate` is a `Candidate` as plain data, `object` how people call its holder, `former` the revision that was
    active (0: none), `until` when the question lapses (of a rejected one: until when the no stands for whoever asks the
    same again), `missions` those that wait or waited. `by`, `why`, `answered_at`, `revision` (what it became) are None
    until they are known.
    """

    def __init__(
        self, name: str, candidate: CandidateDocument, object: str, former: int, moments: tuple[str, str]
    ) -> None:
        self.name = name
        self.candidate = candidate
        self.object = object
        self.former = former
        self.asked_at, self.until = moments
        self.missions: tuple[str, ...] = ()
        self.word: ApprovalWord = "asked"
        self.answered_at: str | None = None
        self.by: str | None = None
        self.why: str | None = None
        self.revision: int | None = None

    def word_at(self, at: str) -> ApprovalWord:
        """Return the approval's state at a moment (ISO 8601 in UTC): a question past its time is expired."""
        return "expired" if self.word == "asked" and self.until <= at else self.word

    def become(self, word: ApprovalWord, at: str | None, by: str | None, why: str | None) -> None:
        """Answer it, once and for all; "asked" takes back that nobody needed the answer any more."""
        self.word, self.answered_at, self.by, self.why = word, at, by, why


def missing_file_error(name: str, why: str) -> ImageDamaged:
    """Make the error for an attached file that is not there as it was."""
    return ImageDamaged(
        f"the attached file {name} {why}",
        remedy="Attach the file again: that writes it anew. Or bring back the blobs from the last backup.",
    )


def check_move(mission: str, status: Status, thought: UvmObject, word: StatusWord) -> None:
    """Check that a mission's status may become `word`. Raises: Refused."""
    # A committed answer is never called anything else: what is left to be done with it is to fold it in.
    if status.published or "answer" in own_slots(thought):
        raise Refused(
            f"{mission} is {status.word} and can no longer change", remedy="Ask again: that is a new mission."
        )
    if word == status.word == "running":
        raise Refused(f"{mission} is running already", remedy="If its process has ended, `batos resume` runs it again.")
