"""The verbs that change what is remembered, through every door: remember and forget."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from batos.brief import DEFAULT_SCOPE, AttachmentRef
from batos.client.wire.verb_shapes import ForgetArgs, RememberArgs, RememberedFile
from batos.errors import BriefError
from batos.memory.document_store import Incoming, title_of
from batos.mission_documents import as_plain
from batos.server.dispatch.reads import Verb
from batos.uvm import UVM

#: Returns the bytes of a file that a user sent before, or that the image has.
Content: TypeAlias = Callable[[AttachmentRef, str | None], Awaitable[bytes]]
#: Does something to its end, also when who asked for it is gone.
Shield: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]

#: Characters of a typed text that are its title.
_TITLE = 60


class MemoryChanges:
    """Remembers and forgets what requests name."""

    def __init__(self, uvm: UVM, content: Content, shield: Shield) -> None:
        self._uvm = uvm
        self._content = content
        self._shield = shield

    def verbs(self) -> Mapping[str, Verb]:
        """Return the function of each verb, by name."""
        return {"remember": self._remember, "forget": self._forget}

    async def _remember(self, given: RememberArgs, *_told: object) -> dict[str, Any]:
        if (given.text is None) == (not given.files):
            raise BriefError(
                "either a text or files are to be remembered", field="args.text", remedy="Give one of them."
            )
        # A guest names nobody else: `user` is then who asks, and goes first.
        user = given.user or given.owner or self._uvm.settings.asker
        scope = given.scope or DEFAULT_SCOPE
        if given.text is not None:
            incoming = [_typed_text(given, given.text, user, scope)]
        else:
            incoming = [await self._file(each, given.user, user, scope) for each in given.files]
        return as_plain(await self._shield(self._uvm.document_store.remember(incoming)))

    async def _file(self, file: RememberedFile, sender: str | None, user: str, scope: str) -> Incoming:
        ref = AttachmentRef(name=file.name, media_type=file.media_type, sha256=file.sha256)
        text = _text(file.name, await self._content(ref, sender))
        title = file.title or title_of(file.name, text)
        return Incoming(user, scope, file.source, title, file.media_type, text, file.sha256, "external")

    async def _forget(self, given: ForgetArgs, *_told: object) -> dict[str, Any]:
        user = given.user or self._uvm.settings.asker
        return as_plain(await self._shield(self._uvm.document_store.forget(given.documents, user)))


def _typed_text(given: RememberArgs, text: str, user: str, scope: str) -> Incoming:
    """Return a text that a person typed: it is that person's own word."""
    if not text.strip():
        raise BriefError("the text has only blanks", field="args.text", remedy="Give what is to be remembered.")
    title = given.title or " ".join(text.split())[:_TITLE]
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Incoming(user, scope, given.source or "", title, "text/plain", text, digest, "user")


def _text(name: str, data: bytes) -> str:
    """Return a file's text. Raises: BriefError: it is none."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        remedy = "Convert it to UTF-8 text."
        raise BriefError(f"{name} is not a text file: byte {error.start}", field="args.files", remedy=remedy) from error
