"""The verbs that change what is remembered, through every door: remember, forget, and corrections by a person."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from batos.autotelic.curator import CurationWish
from batos.client.pending import OnEvent
from batos.inference.embedder import Unembedded
from batos.memory.backfill import BackfillState
from batos.memory.corrections import Corrections
from batos.memory.known_texts import Incoming, fact_of
from batos.memory.search.chunk_search import RecallQuery, VectorQuery
from batos.protocol.brief import DEFAULT_SCOPE
from batos.protocol.errors import BatosError, BriefError, message_of
from batos.protocol.event_payloads import MEMORY_FOLDED, MEMORY_VECTORS, MemoryVectors
from batos.protocol.memory_documents import (
    CuratedPage,
    EditedPage,
    EmbeddedPage,
    ForgottenPage,
    RecalledPage,
    RememberedLine,
    RememberedPage,
    RetractedPage,
    UnfoldedPage,
    UnreadLine,
)
from batos.protocol.wire_messages import StrictModel
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.server.dispatch.reads import Reader, no_vectors
from batos.server.dispatch.sent_files import OwnedPlace, SentFiles, contents_of
from batos.uvm import UVM
from batos.verbs.correction_verbs import (
    CURATE,
    MEMORIES_EDIT,
    MEMORIES_RESTORE,
    MEMORIES_RETRACT,
    PIN,
    UNPIN,
    CurateArgs,
    MemoriesEditArgs,
    MemoriesRetractArgs,
)
from batos.verbs.memory_verbs import (
    EMBED_MEMORIES,
    FORGET,
    RECALL,
    REMEMBER,
    ForgetArgs,
    RecallArgs,
    RememberArgs,
)

#: Seconds that a recall waits for the vector of its query.
_PATIENCE = 10.0
#: The id of a document, or the beginning of it.
_DOCUMENT = re.compile(r"d-[0-9A-HJKMNP-TV-Z]{6,26}\Z")
#: Characters of a typed text that are its title.
_TITLE = 60


class MemoryChanges:
    """Remembers and forgets what requests name."""

    def __init__(self, uvm: UVM, reader: Reader, files: SentFiles, shield: Shield) -> None:
        self._uvm = uvm
        self._reader = reader
        self._files = files
        self._shield = shield

    def verbs(self) -> Mapping[str, Handler]:
        """Return the function of each verb, by name."""
        return dict(
            (
                bind(REMEMBER, self._remember),
                bind(FORGET, self._forget),
                bind(EMBED_MEMORIES, self._embed_memories),
                bind(RECALL, self._recall),
            )
        )

    async def _remember(self, given: RememberArgs, *_told: object) -> RememberedPage:
        if (given.text is None) == (not given.files):
            raise BriefError(
                "either a text or files are to be remembered", field="args.text", remedy="Give one of them."
            )
        # A guest names nobody else: `user` is then who asks, and goes first.
        user = given.user or given.owner or self._uvm.settings.asker
        scope = given.scope or DEFAULT_SCOPE
        if given.check:
            known = contents_of(given.files, OwnedPlace(user, scope))
            return await self._shield(self._uvm.document_store.recognise(known))
        if given.key is None and (given.supersedes or given.depends_on):
            raise BriefError("only a fact supersedes or depends on others", field="args.key", remedy="Give it a key.")
        unread: list[UnreadLine] = []
        if given.key is not None:
            incoming = [await self._fact(given, user, scope)]
        elif given.text is not None:
            incoming = [_typed_text(given, given.text, user, scope)]
        else:
            limit = self._uvm.settings.attachment_bytes
            sent = await self._files.texts(given.files, given.user, OwnedPlace(user, scope), limit)
            incoming, unread = sent.texts, sent.unread
        told = await self._shield(self._uvm.document_store.remember(incoming))
        await self._files.forget({each.sha256 for each in given.files}, given.user or "")
        self._uvm.backfill.job.wake()
        if unread:
            told["unread"] = unread
        if given.supersedes and await self._is_missed(told["remembered"][0], incoming[0]):
            told["not_found"] = [given.supersedes]
        return told

    async def _is_missed(self, line: RememberedLine, fact: Incoming) -> bool:
        """Test if a fact is new and no current one had the key that it is to supersede."""
        keys = [await self._reader.key_of(each, fact.user) for each in line["superseded"]]
        return line["state"] != "known" and fact.supersedes.casefold() not in map(str.casefold, keys)

    async def _fact(self, given: RememberArgs, user: str, scope: str) -> Incoming:
        """Return a fact. A fact that it supersedes by its id is named by its key.

        Raises: BriefError: there is no text. NotFound: there is no fact of that id.
        """
        if given.text is None:
            raise BriefError("a fact is one text, no files", field="args.files", remedy="Give its value as a text.")
        supersedes = given.supersedes or ""
        if _DOCUMENT.match(supersedes):
            supersedes = await self._reader.key_of(supersedes, user)
        typed = _typed_text(given, given.text, user, scope)
        return fact_of(typed, given.key or "", supersedes, tuple(given.depends_on))

    async def _embed_memories(self, _given: StrictModel, on_event: OnEvent, *_told: object) -> EmbeddedPage:
        def tell(state: BackfillState) -> None:
            on_event(MEMORY_VECTORS.name, MemoryVectors(model=state.model, missing=state.missing))

        state = await self._uvm.backfill.wait(tell)
        return EmbeddedPage(model=state.model, missing=state.missing, reason=state.reason)

    async def _recall(self, given: RecallArgs, *_told: object) -> RecalledPage:
        """Recall by words and, where something embeds, by vectors too."""
        await self._uvm.mission_memory.catch_up(given.user or self._uvm.settings.asker)
        vector, reason = await self._vector(given)
        if vector is None and given.mode == "vectors":
            raise no_vectors(reason or "no part has one yet")
        found = await self._reader.recall(given, RecallQuery(given.query, vector, given.mode))
        if given.as_of is None:
            self._uvm.curator.note_recalled(each["document"] for each in found["recalled"])
        if reason:
            found["note"] = f"by words alone: {reason}"
        return found

    async def _vector(self, given: RecallArgs) -> tuple[VectorQuery | None, str]:
        """Return the vector of a query, or the reason why it has none; neither where none is asked for or of use."""
        if given.mode == "text" or not await self._reader.has_vectors(given):
            return None, ""
        try:
            embedder = await self._uvm.embedder_finder.find()
            return VectorQuery(embedder.digest, await embedder.vector(given.query, _PATIENCE)), ""
        except (BatosError, Unembedded) as error:
            return None, message_of(error)

    async def _forget(self, given: ForgetArgs, *_told: object) -> ForgottenPage:
        user = given.user or self._uvm.settings.asker
        return await self._shield(self._uvm.document_store.forget(given.documents, user))


def _typed_text(given: RememberArgs, text: str, user: str, scope: str) -> Incoming:
    """Return a text that a person typed: it is that person's own word."""
    if not text.strip():
        raise BriefError("the text has only blanks", field="args.text", remedy="Give what is to be remembered.")
    title = given.title or " ".join(text.split())[:_TITLE]
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Incoming(user, scope, given.source or "", title, "text/plain", text, digest, "user")


def correction_verbs(uvm: UVM, shield: Shield) -> Mapping[str, Handler]:
    """Return the function of each verb, by name."""

    def corrections() -> Corrections:
        return Corrections(uvm.image, uvm.document_store, uvm.clock)

    def owner_of(user: str | None) -> str:
        return user or uvm.settings.asker

    async def edit(given: MemoriesEditArgs, *_told: object) -> EditedPage:
        told = await shield(uvm.document_store.edit(given.document, given.text, owner_of(given.user)))
        uvm.backfill.job.wake()
        return told

    async def retract(given: MemoriesRetractArgs, *_told: object) -> RetractedPage:
        if bool(given.documents) == (given.source is not None):
            raise BriefError("either documents or a source is given", field="args.source", remedy="Give one of them.")
        work = corrections().retract(given.documents, owner_of(given.user), source=given.source, cascade=given.cascade)
        return await shield(work)

    async def curate(given: CurateArgs, on_event: OnEvent, *_told: object) -> CuratedPage | UnfoldedPage:
        if given.undo is not None and given.dry_run:
            raise BriefError(
                "nothing is undone to look at it", field="args.dry_run", remedy="Leave one of the two out."
            )
        if given.undo is not None:
            told: CuratedPage | UnfoldedPage = await shield(uvm.curator.undo(given.undo, owner_of(given.user)))
        else:
            days = uvm.settings.cold_days if given.cold_days is None else given.cold_days
            wish = CurationWish(owner_of(given.user), days, given.limit, given.dry_run, given.rule)
            told = await shield(uvm.curator.curate(wish, lambda folded: on_event(MEMORY_FOLDED.name, folded)))
        uvm.backfill.job.wake()
        return told

    return dict(
        (
            bind(CURATE, curate),
            bind(MEMORIES_EDIT, edit),
            bind(MEMORIES_RETRACT, retract),
            bind(
                MEMORIES_RESTORE,
                lambda given, *_told: shield(
                    corrections().restore(given.documents, owner_of(given.user), alone=given.alone)
                ),
            ),
            bind(PIN, lambda given, *_told: shield(corrections().pin(given.documents, owner_of(given.user)))),
            bind(UNPIN, lambda given, *_told: shield(corrections().unpin(given.documents, owner_of(given.user)))),
        )
    )
