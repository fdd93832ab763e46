"""Reading of missions, conversations and objects, for the owner of the image and for readers beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from batos.agency import granting
from batos.agency.look_ups.grants import add_usage
from batos.agency.records import effect_records, look_up_records
from batos.config import Settings
from batos.conversations import conversations
from batos.image.ids import utc_now
from batos.image.readable import ReadableImage
from batos.image.roots import Root
from batos.inference.journal import Entries
from batos.memory.records import memory_segments
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.metadata import MemoryReach
from batos.memory.search.recollection import MARKED, RecallView, Recollection
from batos.methods.lifecycle.method_reports import MethodReader
from batos.missions import reports
from batos.notation import mask_passwords
from batos.protocol.effect_documents import EffectDocument, GrantDocument, QueryDocument
from batos.protocol.errors import NotFound
from batos.protocol.evidence_documents import PromptDocument
from batos.protocol.image_documents import (
    ConversationPage,
    CountersDocument,
    InspectedDocument,
    NodeLine,
    ProgressLine,
    RootNames,
)
from batos.protocol.memory_documents import MemoriesPage, RecalledPage, WholeMemory
from batos.protocol.mission_documents import MissionDocument, MissionLineDocument
from batos.protocol.server_documents import JobLine, LearningStatus, MindStatus


@dataclass(frozen=True, slots=True)
class Doing:
    """The work of the process that has the image open; `nodes` are all that have one on a server."""

    counted: CountersDocument
    running: Sequence[ProgressLine]
    learning: LearningStatus
    jobs: Sequence[JobLine] = ()
    nodes: Sequence[NodeLine] = ()
    #: The process, where another one asks; else "".
    holder: str = ""


@dataclass(frozen=True, slots=True)
class Readings:
    """Reads missions, conversations and objects. Each call takes a snapshot of its own, and may wait for a disk."""

    settings: Settings
    image: ReadableImage
    journal: Entries
    lifecycle: MethodReader
    clock: Callable[[], datetime] = utc_now
    recollection: Recollection = field(default_factory=Recollection)

    def status(self, root: Root, doing: Doing, user: str | None = None) -> MindStatus:
        """Return one screen's worth, asking nobody; where a user is named, with no other's missions."""
        screen = reports.screen(root, doing.counted, doing.running, self.settings.queue)
        return {
            **(screen if user is None else reports.screen_of(root, screen, user)),
            "learning": doing.learning,
            "jobs": list(doing.jobs),
            "ollama": {"host": mask_passwords(self.settings.ollama_host)},
            "image": {"uri": mask_passwords(self.image.uri), "error": None, **self.image.sizes()},
            "holder": doing.holder,
            "nodes": list(doing.nodes),
        }

    def mission(self, mission: str) -> MissionDocument:
        """Return the document of a mission, with its cost; raises NotFound."""
        with self.image.snapshot() as root:
            found = reports.mission_report(mission, *self.image.find(root, mission))
            found = reports.with_outcomes(root, found)
        return reports.with_cost(found, self.journal)

    def newest(
        self, most: int = 20, *, status: str | None = None, user: str | None = None, without: Collection[str] = ()
    ) -> list[MissionLineDocument]:
        """Return a line for each of the newest missions, optionally only those with a status, or of a user.

        Those that came through the doors in `without` are left out.
        """
        with self.image.snapshot() as root:
            return reports.mission_lines(root, most, status, user, without)

    def resolve_mission(self, name: str, user: str | None = None) -> str:
        """Return the id of the mission that a name means; a named user finds only their own.

        Raises: NotFound: there is none. BriefError: the name is the beginning of several ids.
        """
        with self.image.snapshot() as root:
            return reports.resolve_mission(root, name, user or self.settings.asker, user)

    def prompts(self, mission: str) -> list[PromptDocument]:
        """Return every call of a mission, and of the generations it began, with its exact prompt.

        Those of an undone mission are not shown. Raises: NotFound.
        """
        found = self.mission(mission)
        if found["status"] == "undone":
            return []
        return reports.prompts_report(self.journal.read(reports.logs(found)), reports.generated_methods(found))

    def turns(self, conversation: str, start: int = 1, limit: int = 20, user: str | None = None) -> ConversationPage:
        """Return a conversation's turns by position (`last` is the newest), and the summaries of its older turns.

        Only the conversation's user may read it: `user`, or the configured asker if that is None.
        """
        user = user or self.settings.asker
        with self.image.snapshot() as root:
            return conversations.page(root, conversations.resolve_name(root, conversation, user), start, limit, user)

    def root_names(self) -> RootNames:
        """List the names of the image's root: its objects, and what its trees of records hold."""
        with self.image.snapshot() as root:
            return reports.root_names(root)

    def inspect(self, reference: str, user: str | None = None) -> InspectedDocument:
        """Return an object or a slot, as a named user may see it. Raises: NotFound."""
        with self.image.snapshot() as root:
            return reports.inspect_object(root, reference, user or "")

    def grants(self, user: str | None = None) -> list[GrantDocument]:
        """Return the grants (of a user's), by name."""
        with self.image.snapshot() as root:
            return granting.list_grants(root, user)

    def grant(self, name: str, user: str | None = None) -> GrantDocument:
        """Return a grant (of a user's); of a look-up with its usage. Raises: NotFound."""
        with self.image.snapshot() as root, self.journal.snapshot() as journal:
            found = effect_records.find_capability(root, name, user)
            if found is None:
                raise NotFound(f"there is no grant {name!r}", field="name", remedy="`batos grants list` lists them.")
            told = granting.grant_document(found)
            return add_usage(told, found, journal, self.clock()) if look_up_records.is_look_up(found) else told

    def queries(self, most: int, user: str | None = None) -> list[QueryDocument]:
        """Return what was asked of the world (for a user's missions), the newest first."""
        with self.journal.snapshot() as root:
            return look_up_records.list_queries(root, most, user=user)

    def effects(self, most: int, mission: str | None = None, user: str | None = None) -> list[EffectDocument]:
        """Return the newest effects on the world, optionally of a mission, or of a user's missions."""
        with self.image.snapshot() as root:
            return granting.list_effects(root, most, mission, user)

    # -- memory; where no user is named, the settings' own

    def recall(self, query: RecallQuery, most: int, reach: MemoryReach, shown: RecallView = MARKED) -> RecalledPage:
        """Return the parts of what is remembered that match a query best."""
        with self.image.snapshot() as root:
            return self.recollection.recall(root, query, reach, most, shown)

    def has_vectors(self) -> bool:
        """Test if any part of what is remembered has a vector."""
        with self.image.snapshot() as root:
            return bool(memory_segments.embedded_digests(root))

    def memories(
        self, most: int, *, scope: str | None = None, sha256: Sequence[str] = (), user: str | None = None
    ) -> MemoriesPage:
        """Return the newest documents that are remembered, optionally only those with one of these contents."""
        with self.image.snapshot() as root:
            return self.recollection.list_memories(root, self._reach(scope, user), most, sha256)

    def memories_from(self, source: str, most: int, user: str | None = None) -> MemoriesPage:
        """Return the newest documents that came from a source, of a mailbox its mails."""
        with self.image.snapshot() as root:
            reach = replace(self._reach(None, user), sources=frozenset({source}))
            return self.recollection.list_memories(root, reach, most)

    def list_pinned(self, most: int, *, scope: str | None = None, user: str | None = None) -> MemoriesPage:
        """Return the documents that are pinned."""
        with self.image.snapshot() as root:
            return self.recollection.list_pinned(root, self._reach(scope, user), most)

    def memory(self, named: str, user: str | None = None) -> WholeMemory:
        """Return a document with its parts. Raises: NotFound."""
        with self.image.snapshot() as root:
            return self.recollection.show(root, named, user or self.settings.asker)

    def _reach(self, scope: str | None, user: str | None) -> MemoryReach:
        return MemoryReach(user or self.settings.asker, None if scope is None else frozenset({scope}))
