"""Replies to what Ollama's clients ask of models: lists and cards, from the image alone; and vectors of texts."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from batos.minds.context_building import persona_of, thinking_of
from batos.protocol.errors import NotFound, Refused
from batos.server.http.client_missions import ClientMissions
from batos.server.http.door_models import ModelChoice, for_ollama, names
from batos.server.http.http_errors import UnknownModel
from batos.server.http.http_exchange import Exchange
from batos.server.http.ollama_chat import model_of, now
from batos.server.http.openai_chat import embed, read_texts
from batos.server.http.sent_messages import clean
from batos.version import __version__

#: The version whose wire is spoken here; ours is in a header.
_WIRE: Final = "0.33.0"
#: The window in tokens before the first genesis.
_WINDOW: Final = 4_096
#: The time that a model is said to stay loaded.
_STAYS: Final = timedelta(minutes=5)


class _Card(NamedTuple):
    """A model of ours: the model that its persona thinks with, and its window in tokens."""

    chosen: ModelChoice
    base: str
    window: int

    @property
    def digest(self) -> str:
        """Return a digest that changes with what the persona thinks with."""
        return hashlib.sha256(f"{self.chosen.name}\0{self.base}\0{self.window}".encode()).hexdigest()

    def details(self) -> dict[str, object]:
        """Return what lists say of a model."""
        return {
            "parent_model": self.base, "format": "gguf", "family": "batos", "families": ["batos"],
            "parameter_size": "unknown", "quantization_level": "unknown",
        }  # fmt: skip

    def row(self) -> dict[str, object]:
        """Return the model as a row of a list."""
        name = for_ollama(self.chosen.name)
        return {"name": name, "model": name, "size": 0, "digest": self.digest, "details": self.details()}


class OllamaLists:
    """Answers what is asked of models."""

    def __init__(self, asking: ClientMissions) -> None:
        self._asking = asking
        self._began = now()

    async def version(self, exchange: Exchange) -> None:
        """Tell the version of Ollama whose wire is spoken."""
        exchange.more["x-batos-version"] = __version__
        await exchange.reply_json({"version": _WIRE})

    async def tags(self, exchange: Exchange) -> None:
        """List the models."""
        cards = await asyncio.to_thread(self._cards)
        more = {"modified_at": self._began, "capabilities": self._capabilities()}
        await exchange.reply_json({"models": [{**each.row(), **more} for each in cards]})

    async def ps(self, exchange: Exchange) -> None:
        """List the models as loaded: the mind loads and unloads what they stand for by itself."""
        until = (datetime.now(UTC) + _STAYS).isoformat().replace("+00:00", "Z")
        cards = await asyncio.to_thread(self._cards)
        rows = [{**each.row(), "expires_at": until, "size_vram": 0, "context_length": each.window} for each in cards]
        await exchange.reply_json({"models": rows})

    async def show(self, exchange: Exchange, given: dict[str, Any]) -> None:
        """Show a model's card."""
        try:
            chosen = model_of(given)
        except UnknownModel as error:
            asked = given.get("model") or given.get("name")
            raise error if not isinstance(asked, str) else NotFound(f"model '{clean(asked)[:80]}' not found") from None
        card = await asyncio.to_thread(self._card, chosen)
        await exchange.reply_json({
            "license": "Apache-2.0", "modelfile": f"# {card.chosen.name} of BAT OS\nFROM {card.base}\n",
            "parameters": f"num_ctx                        {card.window}", "template": "{{ .Prompt }}",
            "system": f"You are {(chosen.persona or 'BAT OS')}.", "details": card.details(),
            "model_info": {
                "general.architecture": "batos", "general.parameter_count": 0,
                "batos.context_length": card.window, "batos.embedding_length": 0,
            },
            "capabilities": self._capabilities(), "modified_at": self._began,
        })  # fmt: skip

    def _capabilities(self) -> list[str]:
        """Return the abilities of each model; some clients show only models that call tools."""
        return ["completion", "thinking", *(["tools"] if self._asking.settings.client_tools == "auto" else [])]

    def _cards(self) -> list[_Card]:
        return [self._card(ModelChoice(name)) for name in names()]

    def _card(self, chosen: ModelChoice) -> _Card:
        """Return the card of a model; before the first genesis there is no model behind it."""
        who = chosen.name.partition(":")[0].upper()
        with self._asking.dispatcher.uvm.image.snapshot() as root:
            try:
                thinking = thinking_of(persona_of(root, who if who not in {"BATOS", "COUNCIL"} else "ROBIN"))
            except (NotFound, KeyError):  # genesis has not been yet
                return _Card(chosen, "none", _WINDOW)
            return _Card(chosen, thinking.model, thinking.window)

    # -- vectors

    async def embed(self, exchange: Exchange, given: dict[str, Any]) -> None:
        """Answer with a vector for each text."""
        texts = read_texts(given.get("input"))
        _, vectors = await embed(self._asking, texts)
        told = {"total_duration": 0, "load_duration": 0, "prompt_eval_count": sum(map(len, texts)) // 4}
        await exchange.reply_json({"model": given.get("model"), "embeddings": vectors, **told})

    async def embeddings(self, exchange: Exchange, given: dict[str, Any]) -> None:
        """Answer the older request for the vector of one text."""
        _, vectors = await embed(self._asking, read_texts(given.get("prompt"), "prompt")[:1])
        await exchange.reply_json({"embedding": vectors[0]})

    # -- what is not done by this way

    async def pull(self, exchange: Exchange, given: dict[str, Any]) -> None:
        """Tell who pulls a model that it is here; the error of one that is not is what the command line prints."""
        model_of(given)
        await exchange.reply_json({"status": "success"})

    def refusals(self) -> Mapping[str, Callable[[Exchange, dict[str, Any]], Awaitable[None]]]:
        """Return what answers the requests that would change models."""
        return dict.fromkeys(("/api/create", "/api/copy", "/api/push", "/api/delete"), _refuse)


async def _refuse(_exchange: Exchange, _given: dict[str, Any]) -> None:
    raise Refused(
        "models are not changed by this way", remedy="`batos codex` and `batos genesis` say and make what they are."
    )
