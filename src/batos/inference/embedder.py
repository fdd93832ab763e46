"""The embedder on the processor: found by its name in the image, it gives vectors of short texts, or says why not."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from batos.image.image import LivingImage
from batos.inference.model_names import with_tag
from batos.inference.ollama.bridge import Embedding
from batos.inference.ollama.catalogue import ModelRow
from batos.objects.prototype import own_slots
from batos.protocol.errors import ContextOverflow, OllamaError, OllamaTimeout, OllamaUnreachable, UsageError

#: No layer on the card, which is the personas'; the bridge adds one number of threads for all calls.
OPTIONS: Mapping[str, object] = {"num_gpu": 0}
#: Characters of a text's head and tail that are embedded. A small embedder reads 256 tokens, which is about so much
#: of English, and each character may be a token; what is longer is refused and tried again, a share of it.
HEAD, TAIL = 600, 200
SHARES = (1, 4, 16)


#: Vectors of sentences that are kept for other missions over the same file.
KEPT = 2_048


class Unembedded(Exception):
    """There is no vector; its text says why."""


class Embeds(Protocol):
    """The part of the bridge that embedding needs."""

    def embed(
        self,
        model: str,
        texts: Sequence[str],
        *,
        options: Mapping[str, object] | None = None,
        keep_alive: float | str | None = None,
    ) -> Coroutine[Any, Any, Embedding]:
        """Return one vector for each text."""
        ...


class ListsEmbedders(Embeds, Protocol):
    """The part of the bridge that finding an embedder needs."""

    async def list(self) -> Sequence[ModelRow]:
        """Return the models that the daemon has."""
        ...


@dataclass(frozen=True, slots=True)
class Embedder:
    """A model that embeds, with its digest: vectors of another digest are of another space."""

    bridge: Embeds
    model: str
    digest: str

    @property
    def identity(self) -> tuple[str, str]:
        """Return the embedder's name and digest."""
        return self.model, self.digest

    async def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text; of a long text only both ends are embedded.

        Raises: Unembedded: the embedder is missing or fails.
        """
        for share in SHARES:
            try:
                return await self._embed([clip(text, share) for text in texts])
            except ContextOverflow as error:
                reason: OllamaError = error
            except (OllamaError, UsageError) as error:
                raise Unembedded(error.message) from error
        raise Unembedded(reason.message) from reason

    async def vector(self, text: str, seconds: float) -> list[float]:
        """Return the vector of a text.

        Raises: Unembedded: the embedder is missing, fails, or takes longer than `seconds`.
        """
        return (await self.vectors_within([text], seconds))[0]

    async def vectors_within(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Return a vector for each text.

        Raises: Unembedded: the embedder is missing, fails, or takes longer than `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self.vectors(texts)
        except TimeoutError as late:
            raise Unembedded(f"no vector came within {seconds:g} s") from late

    async def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        return (await self.bridge.embed(self.model, texts, options=OPTIONS)).vectors


class KnownVectors:
    """Vectors by the embedder's digest and the text; those that were used longest ago go first."""

    def __init__(self, most: int = KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], list[float]] = OrderedDict()

    def find(self, digest: str, text: str) -> list[float] | None:
        """Return the vector of a text, or None."""
        found = self._kept.pop((digest, text), None)
        if found is not None:
            self._kept[digest, text] = found
        return found

    def keep(self, digest: str, text: str, vector: list[float]) -> None:
        """Keep a vector."""
        self._kept[digest, text] = vector
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)


def find_embedder(bridge: Embeds, name: str, digests: Mapping[str, str]) -> Embedder | None:
    """Return the embedder of that name if the daemon has it; "" names none."""
    digest = digests.get(with_tag(name)) if name else None
    return Embedder(bridge, name, digest) if digest is not None else None


@dataclass(frozen=True, slots=True)
class EmbedderFinder:
    """Finds the embedder that missions run on: the image has its name from the codex.

    A changed codex gives another with the next mission. A part of memory that gets its vector before that does not.
    """

    image: LivingImage
    bridge: ListsEmbedders
    #: Brings the codex into an image that has none yet.
    begin: Callable[[], Awaitable[object]]

    async def find(self) -> Embedder:
        """Return the embedder, with the digest that the daemon has now.

        Raises:
            Unembedded: the codex names no embedder, or the daemon does not have it.
            BatosError: Ollama cannot be asked, or genesis must run first.
        """
        name = self._name()
        if name is None:
            await self.begin()
            name = self._name()
        try:
            digests = {row.name: row.digest for row in await self.bridge.list()}
        except (OllamaUnreachable, OllamaTimeout) as error:
            raise Unembedded("Ollama does not answer") from error
        found = find_embedder(self.bridge, name or "", digests)
        if found is None:
            raise Unembedded("there is no embedding model: the codex names none, or `batos genesis` must pull it")
        return found

    def _name(self) -> str | None:
        """Return the name that the image has, None before its first genesis."""
        with self.image.snapshot() as root:
            model = root.get("pLLM_obj")
            return None if model is None else str(own_slots(model).get("embedder", ""))


def clip(text: str, share: int = 1) -> str:
    """Return both ends of a text, or a blank for an empty one: not every embedder accepts an empty text."""
    head, tail = HEAD // share, TAIL // share
    return (f"{text[:head]} {text[-tail:]}" if len(text) > head + tail else text) or " "
