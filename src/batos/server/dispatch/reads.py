"""The verbs of the protocol that only read, for the process that holds the image and for one that reads beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, ParamSpec, Protocol, TypedDict, TypeVar

from batos.agency.lookup import by_name
from batos.approvals import documents
from batos.history import as_of, dreams, why_sentences
from batos.history.as_of import Moment, PastReadings
from batos.history.why_missions import explain_mission
from batos.history.why_nodes import Asking, explain_effect, explain_memory
from batos.history.why_sentences import explain_redefined, explain_slot, explain_trial
from batos.image import ids
from batos.image.ids import iso
from batos.image.ownership import CHORE, NOBODYS_DOORS
from batos.image.roots import Root
from batos.memory.records import memory_records
from batos.memory.records.memory_records import MemoryKind
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.metadata import CURRENT, OWN_WORDS, WITH_SUMMARISED, MemoryReach
from batos.memory.search.recollection import RecallView
from batos.missions.readings import Readings
from batos.protocol.effect_documents import EffectList
from batos.protocol.errors import BriefError, NotFound
from batos.protocol.image_documents import ConversationPage, InspectedDocument, RootNames, WhyNode
from batos.protocol.memory_documents import DatedMemory, DreamDiff, MemoriesPage, RecalledPage
from batos.protocol.method_documents import (
    ApprovalDocument,
    ApprovalList,
    DatedMethod,
    MethodList,
)
from batos.protocol.mission_documents import AsOfDocument, MissionDocument
from batos.protocol.trial_documents import TrialDocument
from batos.server.dispatch import lending, motion_reads, scheduling
from batos.server.dispatch.handling import Handler, bind
from batos.verbs.approval_verbs import APPROVALS, ApprovalsArgs
from batos.verbs.effect_verbs import EFFECTS, GRANTS, GRANTS_QUERIES, GRANTS_SHOW, EffectsArgs
from batos.verbs.history_verbs import DREAM_DIFF, DREAM_LIST, DreamArgs
from batos.verbs.memory_verbs import MEMORIES, RECALL, MemoriesArgs, RecallArgs
from batos.verbs.method_verbs import (
    METHOD_HISTORY,
    METHOD_LIST,
    METHOD_SHOW,
    MethodListArgs,
    MethodShowArgs,
)
from batos.verbs.mission_verbs import (
    INSPECT,
    MISSIONS,
    SHOW,
    TURNS,
    WHY,
    InspectArgs,
    MissionArgs,
    MissionsArgs,
    ShowArgs,
    TurnsArgs,
    WhyArgs,
)

T = TypeVar("T")
P = ParamSpec("P")

#: The most that read the image at once.
READERS: Final = 2


class DatedRequest(Protocol):
    """A request that may ask about the past."""

    @property
    def as_of(self) -> str | None:
        """Return the moment that is asked about; None: now."""
        ...

    @property
    def user(self) -> str | None:
        """Return the user who asks, if only what is theirs is to be found."""
        ...


class SaidMoment(TypedDict, total=False):
    """The moment that a reply is about, if it is not now."""

    as_of: AsOfDocument


class Reader:
    """Reads an image for those who ask, in threads, few at a time.

    `remember` writes the memories of missions that wait for it; None where nothing is written.
    """

    def __init__(self, readings: Readings, remember: Callable[[], Awaitable[None]] | None = None) -> None:
        self._of, self._remember = readings, remember
        self._readers = asyncio.Semaphore(READERS)
        self.past = PastReadings(readings)

    def verbs(self) -> Mapping[str, Handler]:
        """Return the function of each verb, by name."""
        return {
            **motion_reads.verbs(self._of, self.read),
            **scheduling.reads(self._of, self.read),
            **lending.reads(self._of, self.read),
            **self._own_verbs(),
        }

    def _own_verbs(self) -> Mapping[str, Handler]:
        of, read = self._of, self.read
        return dict(
            (
                bind(
                    MISSIONS,
                    lambda given, *_told: read(
                        lambda: {
                            "missions": of.newest(
                                given.limit, status=given.status, user=given.user, without=_hidden_doors(given)
                            )
                        }
                    ),
                ),
                bind(SHOW, self._show),
                bind(TURNS, self._turns),
                bind(INSPECT, self._inspect),
                bind(APPROVALS, lambda given, *_told: read(self._approvals_document, given)),
                bind(METHOD_LIST, self._methods),
                bind(METHOD_SHOW, self._method),
                bind(METHOD_HISTORY, lambda given, *_told: read(of.lifecycle.history, given.method, given.user)),
                bind(WHY, self._explain),
                bind(GRANTS, lambda given, *_told: read(lambda: {"grants": of.grants(given.user)})),
                bind(GRANTS_SHOW, lambda given, *_told: read(lambda: {"grant": of.grant(given.name, given.user)})),
                bind(
                    GRANTS_QUERIES,
                    lambda given, *_told: read(lambda: {"queries": of.queries(given.limit, given.user)}),
                ),
                bind(EFFECTS, lambda given, *_told: read(self._effects_document, given)),
                bind(
                    DREAM_LIST,
                    lambda given, *_told: read(
                        lambda: {"dreams": dreams.list_dreams(of.image, given.limit, given.user)}
                    ),
                ),
                bind(DREAM_DIFF, self._differences),
                bind(RECALL, self._recall),
                bind(MEMORIES, self._memories),
            )
        )

    async def read(self, what: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """Read in a thread, because an image on a disk may make it wait; few at a time, each has a view of its own."""
        async with self._readers:
            return await asyncio.to_thread(what, *args, **more)

    async def as_of(self, given: DatedRequest) -> tuple[Readings, SaidMoment]:
        """Return what reads the image as of the moment that is asked about, and what the answer says of that."""
        if given.as_of is None:
            return self._of, SaidMoment()
        moment = await self.find_moment(given.as_of, given.user)
        return await self.read(self.past.readings, moment), SaidMoment(as_of=moment.as_dict())

    async def find_moment(self, named: str, user: str | None) -> Moment:
        """Return the moment that is meant; a mission that is named is remembered first."""
        moment = await self.read(self.past.find, named, user)
        if moment.waits and self._remember is not None:
            await self._remember()
            moment = await self.read(self.past.find, named, user)
        return moment

    # -- missions

    async def resolve_mission(self, mission: str, user: str | None) -> str:
        """Return the id of a mission as people name it; NotFound before the first, BriefError if several begin so."""
        return await self.read(self._of.resolve_mission, mission, user)

    async def mission_id(self, given: MissionArgs) -> str:
        """Return the id of the mission that is meant."""
        return await self.resolve_mission(given.mission, given.user)

    async def with_missions(self, brief: Mapping[str, Any]) -> dict[str, object]:
        """Return a brief with the ids of the missions that it names; raises as `resolve_mission`."""
        meant = dict(brief)
        user = str(meant.get("user") or self._of.settings.asker)
        for name in ("ancestor", "in_reply_to"):
            if isinstance(meant.get(name), str):  # what is none is the brief's own rules' to refuse
                meant[name] = await self.resolve_mission(meant[name], user)
        return meant

    async def find_past_question(self, given: MissionArgs) -> MissionDocument | None:
        """Return the document of a question to the past, which the image does not know; None: there is none."""
        return await self.read(self.past.find_question, given.mission, given.user)

    async def report(self, mission: str) -> MissionDocument:
        """Show a mission whole; NotFound."""
        return await self.read(self._of.mission, mission)

    async def _show(self, given: ShowArgs, *_told: object) -> MissionDocument:
        of, said = await self.as_of(given)
        try:
            mission = await self.read(of.resolve_mission, given.mission, given.user)
            found: MissionDocument = {**await self.read(of.mission, mission), **said}
            return {**found, "prompts": await self.read(of.prompts, mission)} if given.prompts else found
        except NotFound:
            asked = await self.find_past_question(given)
            if asked is None or said:
                raise
        if not given.prompts:
            return asked
        return {**asked, "prompts": await self.read(as_of.prompts_of, self._of.journal, asked["id"])}

    async def _turns(self, given: TurnsArgs, *_told: object) -> ConversationPage:
        of, said = await self.as_of(given)
        return {**await self.read(of.turns, given.conversation, given.start, given.limit, given.user), **said}

    # -- objects, methods, approvals

    async def _inspect(self, given: InspectArgs, *_told: object) -> InspectedDocument | RootNames:
        of, said = await self.as_of(given)
        if given.object is None:
            return {**await self.read(of.root_names), **said}
        word, dot, slot = given.object.partition(".")
        if ids.back(word) is not None:  # `last` of this user
            word = await self.read(of.resolve_mission, word, given.user)
        return {**await self.read(of.inspect, f"{word}{dot}{slot}", given.user), **said}

    def _approvals_document(self, given: ApprovalsArgs) -> ApprovalList | ApprovalDocument | TrialDocument:
        """Return {approvals, trials, waiting}, or one approval or trial whole; NotFound."""
        at = iso(self._of.clock())
        with self._of.image.snapshot() as root:
            if given.approval is not None and ids.is_trial(given.approval) and given.user is None:
                return motion_reads.show_trial(root, self._of.journal, given.approval)
            if given.approval is not None:
                (name,) = documents.resolve_ids(root, [given.approval], given.user)
                return documents.whole(root, name, at)
            tried = motion_reads.list_waiting(root) if given.user is None and given.status in (None, "asked") else ()
            return documents.list_approvals(root, at, given.limit, given.status, given.user, tried)

    async def _methods(self, given: MethodListArgs, *_told: object) -> MethodList:
        of, said = await self.as_of(given)
        listed = await self.read(of.lifecycle.list_methods, given.object, given.user)
        return {"methods": listed, "waiting": await self.read(of.lifecycle.count_wishes, given.object), **said}

    async def _method(self, given: MethodShowArgs, *_told: object) -> DatedMethod:
        of, said = await self.as_of(given)
        found = await self.read(of.lifecycle.describe, given.method, given.revision, given.user)
        return {**found, **said}

    async def _explain(self, given: WhyArgs, *_told: object) -> WhyNode:
        of, said = await self.as_of(given)
        found = await self.read(explain, of, given.what, given.user)
        return {**found, **said}

    def _effects_document(self, given: EffectsArgs) -> EffectList:
        mission = None if given.mission is None else self._of.resolve_mission(given.mission, given.user)
        return {"effects": self._of.effects(given.limit, mission, given.user)}

    async def _differences(self, given: DreamArgs, *_told: object) -> DreamDiff:
        dream = await self.read(dreams.read, self._of.image, given.dream, given.user)
        return await self.read(dreams.find_differences, self._of.image, dream)

    # -- memory

    async def _recall(self, given: RecallArgs, *_told: object) -> RecalledPage:
        """Recall by words: no daemon is asked here."""
        if given.mode == "vectors":
            raise no_vectors("no server runs, which would embed the query")
        found = await self.recall(given, RecallQuery(given.query, None, given.mode))
        if given.mode != "text" and await self.has_vectors(given):
            found["note"] = "by words alone: no server runs, which would embed the query"
        return found

    async def has_vectors(self, given: RecallArgs) -> bool:
        """Test if any part of what was remembered at the moment that is asked about has a vector."""
        of, _ = await self.as_of(given)
        return await self.read(of.has_vectors)

    async def recall(self, given: RecallArgs, query: RecallQuery) -> RecalledPage:
        """Return the parts that match a query best, of those that were asked for."""
        if given.history and given.strict:
            raise BriefError("history is not what holds", field="args.strict", remedy="Ask for one of them.")
        shown = RecallView("history" if given.history else "strict" if given.strict else "marked", given.newest)
        of, said = await self.as_of(given)
        found = await self.read(of.recall, query, given.limit, reach_of(given, of.settings.asker), shown)
        return {**found, **said}

    async def key_of(self, named: str, user: str) -> str:
        """Return the key of a fact. Raises: NotFound: there is no memory of this name. BriefError: it is no fact."""
        found = await self.read(self._of.memory, named, user)
        if not found["key"]:
            raise BriefError(f"{named} is no fact", field="args.supersedes", remedy="Give the key or id of a fact.")
        return found["key"]

    async def _memories(self, given: MemoriesArgs, *_told: object) -> MemoriesPage | DatedMemory:
        of, said = await self.as_of(given)
        if given.document is not None:
            try:
                found = await self.read(of.memory, given.document, given.user)
            except NotFound:  # a mailbox, or a file of chats, is many
                several = await self.read(of.memories_from, given.document, given.limit, given.user)
                if not several["memories"]:
                    raise
                return {**several, **said}
            memory: DatedMemory = {**found, **said}
            return memory
        if given.pinned:
            return {**await self.read(of.list_pinned, given.limit, scope=given.scope, user=given.user), **said}
        page = await self.read(of.memories, given.limit, scope=given.scope, sha256=given.sha256, user=given.user)
        return {**page, **said}


def no_vectors(reason: str) -> BriefError:
    """Return the error of a recall by vectors alone, where there are none."""
    return BriefError(f"nothing can be found by vectors: {reason}", remedy="Recall by words: --mode text.")


def _hidden_doors(given: MissionsArgs) -> frozenset[str]:
    """Return the doors of missions that a list leaves out."""
    return frozenset() if given.all else frozenset({CHORE}) if given.mind else NOBODYS_DOORS


def reach_of(given: RecallArgs, asker: str) -> MemoryReach:
    """Return the memories that a recall may find."""
    kinds: frozenset[MemoryKind] | None = _only(given.type)
    if given.summarised and not given.history and kinds is None:
        kinds = OWN_WORDS  # what a summary says is there in full
    return MemoryReach(
        given.user or asker,
        scopes=_only(given.scope),
        kinds=kinds,
        standings=None if given.history else WITH_SUMMARISED if given.summarised else CURRENT,
        sources=_only(given.source),
        missions=_only(given.mission),
        personas=_only(given.persona),
        since=given.since or "",
        until=given.until or "",
    )


def _only(value: T | None) -> frozenset[T] | None:
    return None if value is None else frozenset({value})


# -- the reasons for a sentence, a mission, a slot or a memory: the path of what it came from, as a tree


_REMEDY: Final = (
    "Name a mission, OBJECT.SLOT, a memory (d-...), an effect (e-...) or a trial (t-...), or quote a sentence of one of"
    " your answers."
)

_BY_ID: Final = {"t-": explain_trial, "e-": explain_effect}


def explain(readings: Readings, named: str, user: str | None = None) -> WhyNode:
    """Return what something came from. `user` sees nothing of the missions of others; None sees all.

    Raises: NotFound: nothing is named so, and no answer says so.
    """
    with readings.image.snapshot() as root:
        asking = Asking(root, readings.journal, user)
        if ids.back(named) is not None or named.startswith("m-"):
            return explain_mission(asking, readings.resolve_mission(named, user))
        if named.startswith("d-") and " " not in named:
            return explain_memory(asking, memory_records.find_document(root, named, user))
        if named[:2] in _BY_ID and " " not in named:
            return _BY_ID[named[:2]](asking, named)
        if (redefined := explain_redefined(asking, named)) is not None:
            return redefined
        if " " not in named and _is_slot(root, named, user):
            return explain_slot(asking, named)
        found = why_sentences.find_sentence(asking, named, user or readings.settings.asker)
        if found is None:
            what = f"no answer of yours says {named!r}, and nothing is named so"
            raise NotFound(what, field="what", remedy=_REMEDY)
        return why_sentences.explain_sentence(asking, found)


def _is_slot(root: Root, named: str, user: str | None) -> bool:
    holder, dot, slot = named.rpartition(".")
    return bool(dot and slot) and by_name(root, holder, user) is not None
