"""Handle POST /api/create: a model from another one or from uploaded files, with the daemon's checks and messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ollama_emulator.api import importing
from ollama_emulator.api.importing import Files, ImportedLayer
from ollama_emulator.api.pull import pulling
from ollama_emulator.daemon import EmulatedDaemon, Lines, status_line
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go.json import layer_text, quote
from ollama_emulator.go.scan import GoError
from ollama_emulator.go.types import STRINGS, decode
from ollama_emulator.library import adapter_layers, store
from ollama_emulator.library.cards import Card
from ollama_emulator.library.model_tags import INVALID, Name, Reference, parse, refer
from ollama_emulator.library.store import Layer
from ollama_emulator.requests import Fields
from ollama_emulator.templating.templates import fault as template_fault

_NEITHER = "neither 'from' or 'files' was specified"
_REMOTE_DRAFT = "DRAFT cannot be used with remote models"
_CLOUD = "https://ollama.com:443"
_INHERITED = ("renderer", "parser", "requires", "capabilities")
_BUILT_IN = {
    "gemma4": "gemma4",
    "laguna": "laguna",
    "nemotron_h": "nemotron-3-nano",
    "nemotron_h_moe": "nemotron-3-nano",
    "nemotron_h_omni": "nemotron-3-nano",
}
_TEXTS = {
    "model_family": "model_family",
    "base_name": "base_name",
    "quantization_level": "file_type",
    "parameter_size": "model_type",
}
_COUNTS = ("context_length", "embedding_length")


@dataclass(slots=True)
class Making:
    """A model while it is created: its layers so far, and its configuration."""

    daemon: EmulatedDaemon
    fields: Fields
    name: Name
    parts: list[ImportedLayer] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def base(self) -> Card | None:
        """Return the metadata of its first weights, None as long as there are none."""
        return next((part.card for part in self.parts if part.card is not None), None)

    def append(self, media: str, data: bytes) -> None:
        """Store data as a layer of this model."""
        blob, fresh = self.daemon.store.put(data)
        note = adapter_layers.layer_line(blob.digest, fresh)
        self.parts.append(ImportedLayer(Layer(media, blob.digest, blob.size, note=note), data=data))

    def remove(self, media: str) -> None:
        """Remove its layers of one media type, and from the store those that no model refers to."""
        gone = [part.layer.digest for part in self.parts if part.layer.media == media]
        self.parts = [part for part in self.parts if part.layer.media != media]
        for digest in gone:
            self.daemon.store.drop(digest)


def check(daemon: EmulatedDaemon, fields: Fields) -> Making:
    """Check the fields of a request and return the model to be created. Raises: ApiError: 400, a field is invalid."""
    for given in ("files", "draft_files"):
        for path, digest in fields.get(given, {}).items():
            if not adapter_layers.valid_path(path):
                raise ApiError(400, "file path must be relative")
            _present(digest)
    if fields.get("draft_quantize") and not fields.get("draft_files"):
        raise ApiError(400, "--draft-quantize requires a DRAFT model")
    for digest in fields.get("adapters", {}).values():
        _present(digest)
    name = parse(str(fields.get("model") or fields.get("name") or ""))
    if name is None:
        raise ApiError(400, INVALID)
    return Making(daemon, fields, daemon.store.with_stored_spelling(name))


def _present(digest: str) -> None:
    if not digest:
        raise ApiError(400, "invalid digest format")


async def creating(making: Making) -> Lines:
    """Create a model; yield its progress lines up to `success`. Raises: ApiError: it cannot be created."""
    yield []
    async for some in _gather_layers(making):
        yield some
    _apply_info(making.config, making.fields.get("info", {}))
    quantize = str(making.fields.get("quantize") or making.fields.get("quantization") or "")
    for part in making.parts:
        wanted = str(making.fields.get("draft_quantize", "")) if part.layer.media == store.DRAFT else quantize
        async for some in importing.build(making.daemon.store, part, wanted):
            yield some
        _configure(making, part)
    _add_text_layers(making)
    layers = [part.layer for part in making.parts]
    yield [status_line(layer.note) for layer in layers if layer.note]
    yield [status_line("writing manifest")]
    for part in making.parts:
        if part.data is not None:
            making.daemon.store.put(part.data)
    making.daemon.store.save(making.name, layers, making.config)
    yield [status_line("success")]


async def _gather_layers(making: Making) -> Lines:
    """Collect the layers of the base, the draft model and the adapter, in this order; yield progress lines."""
    daemon, fields = making.daemon, making.fields
    making.config = {key: fields.get(key, "") for key in ("renderer", "parser", "requires")}
    if fields.get("from"):
        async for some in _take_base_layers(making, _base_reference(str(fields.get("from")))):
            yield some
    elif fields.given.get("files") is not None:
        async for some in importing.layers(daemon.store, Files(fields.get("files")), making.parts, None):
            yield some
    else:
        raise ApiError(400, _NEITHER)
    remote = bool(making.config.get("remote_host"))
    if remote and fields.get("draft_files"):
        raise ApiError(400, _REMOTE_DRAFT)
    base, behind = making.base, list[ImportedLayer]()
    drafts: list[ImportedLayer] = []
    if not remote and fields.given.get("draft_files") is not None:
        files = Files(fields.get("draft_files"), media=store.DRAFT, status=400)
        async for some in importing.layers(daemon.store, files, drafts, base):
            yield some
    if not remote and fields.given.get("adapters") is not None:
        files = Files(fields.get("adapters"), adapter=True, status=400)
        async for some in importing.layers(daemon.store, files, behind, base):
            yield some
    making.parts += [*behind, *drafts]


def _base_reference(base: str) -> Reference:
    """Return a reference to the base by its full name. Raises: ApiError: 400, the name is invalid."""
    try:
        found = refer(base)
    except ApiError:
        raise ApiError(400, INVALID) from None
    return Reference(found.name.full if found.name.scheme else found.base, found.source)


async def _take_base_layers(making: Making, source: Reference) -> Lines:
    """Take the layers of another model, pulled if it does not exist. A remote model only sets the configuration."""
    daemon, name = making.daemon, source.name
    host = str(making.fields.get("remote_host", "")) or (_CLOUD if source.source == "cloud" else "")
    if host:
        making.config |= {"remote_model": source.base, "remote_host": _remote(host)}
        return
    if daemon.store.find(name) is None:
        async for some in pulling(daemon, name, insecure=False):
            yield some
        yield [status_line("success")]
    manifest = daemon.store.find(name)
    if manifest is None:
        raise ApiError(500, "open manifest: no such file or directory")
    for key in _INHERITED:
        making.config[key] = making.config.get(key) or manifest.config.get(key)
    for layer in manifest.layers:
        note = adapter_layers.layer_line(layer.digest, fresh=False)
        card = daemon.store.card(layer.digest) if layer.media in (store.MODEL, store.ADAPTER, store.PROJECTOR) else None
        making.parts.append(
            ImportedLayer(Layer(layer.media, layer.digest, layer.size, manifest.name.display, note), card)
        )


def _remote(host: str) -> str:
    """Return the address of another daemon in the form that is stored. Raises: ApiError: 400, it is malformed."""
    if host.startswith("/"):
        return f"http://localhost:11434{host}"
    text = host if "://" in host else f"http://{host}"
    if text == "http://ollama.com":
        return _CLOUD
    try:
        found = urlsplit(text)
        port = found.port or 11434
    except ValueError:
        raise ApiError(400, "bad remote") from None
    path = "" if found.path == "/" else found.path
    return f"{found.scheme}://{found.hostname or 'localhost'}:{port}{path}"


def _apply_info(config: dict[str, Any], info: Mapping[str, Any]) -> None:
    """Put the request's `info` into the configuration. Raises: ApiError: 400, a value has the wrong type."""
    if "capabilities" in info:
        config["capabilities"] = [*(config.get("capabilities") or ()), *_capabilities(info["capabilities"])]
    for key, kept in _TEXTS.items():
        if key in info:
            if not isinstance(info[key], str):
                raise ApiError(400, f"info field {quote(key)} must be a string")
            config[kept] = info[key]
    if config.get("model_family"):
        config["model_families"] = [config["model_family"]]
    config |= {key: _count(key, info[key]) for key in _COUNTS if key in info}


def _capabilities(named: Any) -> list[str]:
    """Return the capabilities that a request names. Raises: ApiError: 400, they are no list of strings."""
    if not isinstance(named, list):
        raise ApiError(400, 'info field "capabilities" must be an array of strings')
    wrong = next((at for at, each in enumerate(named) if not isinstance(each, str)), None)
    if wrong is not None:
        raise ApiError(400, f'info field "capabilities" element {wrong} must be a string')
    return named


def _count(key: str, value: Any) -> int:
    """Return a value of `info` as a whole number. Raises: ApiError: 400, it is none, or below 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ApiError(400, f"info field {quote(key)} must be a number")
    if value < 0 or value != int(value):
        raise ApiError(400, f"info field {quote(key)} must be a non-negative integer")
    return int(value)


def _configure(making: Making, part: ImportedLayer) -> None:
    """Fill empty fields of the configuration from the metadata of the weights."""
    card, config = part.card, making.config
    if card is None:
        return
    if part.layer.media == store.DRAFT:
        config["draft"] = {"model_format": "gguf", "architecture": card.architecture}
    if part.beside and any(other.layer.media == store.MODEL for other in making.parts):
        config["model_families"] = [*(config.get("model_families") or ()), card.architecture]
    if part.layer.media != store.MODEL:
        return
    details = card.details()
    config["model_format"] = config.get("model_format") or "gguf"
    config["model_family"] = config.get("model_family") or card.architecture
    config["model_type"] = config.get("model_type") or details["parameter_size"]
    config["file_type"] = config.get("file_type") or card.quantization
    families = list(config.get("model_families") or ())
    known = card.architecture in families and not any(other.beside for other in making.parts)
    config["model_families"] = families if known else [*families, card.architecture]
    built_in = _BUILT_IN.get(card.architecture, "")
    for key in ("renderer", "parser"):
        config[key] = config.get(key) or built_in


def _add_text_layers(making: Making) -> None:
    """Add layers for template, system text, licences, parameters and messages, in the daemon's order."""
    fields = making.fields
    if fields.get("template"):
        wrong = template_fault(fields.get("template"))
        if wrong:
            raise ApiError(400, f"template error: {wrong}")
    for media, text in ((store.TEMPLATE, fields.get("template")), (store.SYSTEM, fields.get("system"))):
        if text:
            making.remove(media)
            making.append(media, text.encode())
    for text in _licenses(fields.get("license")):
        making.append(store.LICENSE, text.encode())
    _params(making, fields.get("parameters", {}))
    if fields.get("messages"):
        making.remove(store.MESSAGES)
        making.append(store.MESSAGES, layer_text([_message_fields(message) for message in fields.get("messages")]))


def _message_fields(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as Go writes it: role and content always, other fields only if not empty."""
    always = {"role": message.get("role", ""), "content": message.get("content", "")}
    return always | {key: value for key, value in message.items() if key not in always and value}


def _licenses(given: Any) -> list[str]:
    """Return the licences that a request gives, as one text or as a list. Raises: ApiError: 500, a wrong type."""
    if isinstance(given, str):
        return [given] if given else []
    try:
        found: list[str] = decode(STRINGS, given) or []
    except GoError as fault:
        raise ApiError(500, str(fault)) from None
    return found


def _params(making: Making, given: Mapping[str, Any]) -> None:
    """Merge parameters into those of the base, as a layer behind the others."""
    merged = dict(given)
    for part in making.parts:
        if part.layer.media == store.PARAMS:
            known = json.loads(making.daemon.store.content(part.layer.digest)) or {}
            merged = {**known, **merged}
    if merged:
        making.remove(store.PARAMS)
        making.append(store.PARAMS, layer_text(merged))
