"""POST /api/create: a model from another one or from uploaded files, with today's checks, lines and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from batos.emulator import adapters, cards, store
from batos.emulator.cards import NOT_GGUF, Card
from batos.emulator.daemon import Daemon, Lines, line
from batos.emulator.gojson import layer_text
from batos.emulator.names import Name, parse
from batos.emulator.pull import pulling
from batos.emulator.registry import CHATML
from batos.emulator.replies import ApiError
from batos.emulator.requests import Fields
from batos.emulator.store import Layer, digest_in
from batos.emulator.templates import fault as template_fault

SHAPE = {
    "model": "string",
    "name": "string",
    "from": "string",
    "files": "map[string]string",
    "adapters": "map[string]string",
    "template": "string",
    "system": "string",
    "license": "any",
    "parameters": "map[string]interface {}",
    "messages": "[]api.Message",
    "quantize": "string",
    "quantization": "string",
    "stream": "bool",
}
_QUANTIZED = "unsupported quantization type {} - supported types are F32, F16, Q4_K_S, Q4_K_M, Q8_0"
_KINDS = ("F32", "F16", "Q4_K_S", "Q4_K_M", "Q8_0")
_SHRINKS = {"Q8_0": 0.53, "Q4_K_M": 0.31, "Q4_K_S": 0.29}
_STOPS = {"stop": ["<|im_start|>", "<|im_end|>"]}
_SHORT_TEMPLATE = 160  # characters up to which any chat template is near enough to chatml to be taken for it


@dataclass(slots=True)
class Making:
    """One create in progress: the layers so far and what the configuration will say."""

    daemon: Daemon
    fields: Fields
    name: Name
    layers: list[Layer] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    card: Card | None = None


def check(daemon: Daemon, fields: Fields) -> Making:
    """The checks of the request itself; ApiError 400."""
    name = parse(str(fields.get("model") or fields.get("name") or ""))
    if name is None:
        raise ApiError(400, "invalid model name")
    _check_paths({**fields.get("files", {}), **fields.get("adapters", {})})
    return Making(daemon, fields, name)


def _check_paths(given: dict[str, str]) -> None:
    for path, digest in given.items():
        if path.startswith("/") or ".." in path.split("/"):
            raise ApiError(400, "file path must be relative")
        if not digest:
            raise ApiError(400, "invalid digest format")


def _source(base: str) -> Name:
    name = parse(base)
    if name is None:
        raise ApiError(400, "invalid model name")
    return name


def _early(making: Making) -> None:
    """What is refused before the first line when the base is here: adapters, template, quantisation."""
    fields = making.fields
    given = fields.given.get("adapters")
    if given is not None:
        adapters.check(given)
    _check_template(fields)
    wanted = _quantization(fields)
    if wanted and wanted not in _KINDS:
        raise ApiError(500, _QUANTIZED.format(wanted))


def _check_template(fields: Fields) -> None:
    wrong = template_fault(fields.get("template", ""))
    if wrong:
        raise ApiError(400, f"template error: {wrong}")


def _quantization(fields: Fields) -> str:
    return str(fields.get("quantize") or fields.get("quantization") or "").upper()


async def creating(making: Making) -> Lines:
    """The lines of a create, from the first status to `success`; ApiError where it ends early."""
    yield []
    daemon, fields = making.daemon, making.fields
    base = fields.get("from")
    if base:
        source = _source(base)
        if daemon.find(source) is None:
            async for some in pulling(daemon, source):
                yield some
        _early(making)
        _inherit(making, source)
    elif not fields.get("files"):
        given = fields.given.get("files")
        raise ApiError(400, "neither 'from' or 'files' was specified" if given is None else "unknown type")
    else:
        yield [_status("parsing GGUF")]
        _from_files(making, fields.get("files", {}))
        yield [_status("verifying conversion")]
    wanted = _quantization(fields)
    if wanted and _quantize(making, wanted):
        yield [_status("verifying conversion")]
    given = fields.get("adapters", {})
    if given:
        yield [_status(adapters.announced(given))]
        try:
            layer = adapters.add(daemon.store, given, making.card)
        except ApiError as error:
            raise ApiError(400, error.text) from None
        making.layers.append(layer)
        making.card = making.card if layer.media == store.ADAPTER else daemon.store.card(layer.digest)
    _check_template(fields)
    _texts(making)
    yield [_status(layer.note) for layer in making.layers if layer.note]
    yield [_status("writing manifest")]
    daemon.store.save(making.name, making.layers, making.config)
    yield [_status("success")]


def _status(text: str) -> bytes:
    return line({"status": text})


def _inherit(making: Making, source: Name) -> None:
    model = making.daemon.find(source)
    if model is None:
        raise ApiError(404, f"model '{source.display}' not found")
    making.layers = [_existing(layer) for layer in model.manifest.layers]
    making.card = model.card
    making.config = {**model.manifest.config, "parent_model": model.name.display}


def _existing(layer: Layer) -> Layer:
    return Layer(layer.media, layer.digest, layer.size, f"using existing layer {layer.digest}")


def _from_files(making: Making, files: dict[str, str]) -> None:
    """The weights of the uploaded files, re-written as the daemon does: their digest is another one."""
    stored = making.daemon.store
    for digest in files.values():
        known = digest_in(digest)
        if not known:
            raise ApiError(500, "invalid digest format")
        if known not in stored.blobs:
            raise ApiError(500, f"open {stored.blob_path(known)}: no such file or directory")
        card = stored.card(known)
        if card is None:
            raise ApiError(400, NOT_GGUF)
        if card.adapter:
            making.layers.append(_existing(Layer(store.ADAPTER, known, stored.blobs[known].size)))
            continue
        rewritten = store.digest_of(f"re-written {known}".encode())
        fresh = rewritten not in stored.blobs
        blob = stored.blobs.get(rewritten) or stored.put_card(rewritten, stored.blobs[known].size, card)
        making.layers.insert(0, Layer(store.MODEL, rewritten, blob.size, _note(rewritten, fresh)))
        making.card = card
    card = making.card
    if card is not None and card.template and not card.embeds and _like_chatml(card.template):
        blob, _ = stored.put(CHATML.encode())
        making.layers.append(Layer(store.TEMPLATE, blob.digest, blob.size, "using autodetected template chatml"))
        _params(making, _STOPS)
    making.config = cards.config(card) if card is not None else {}


def _like_chatml(template: str) -> bool:
    return "<|im_start|>" in template or len(template) < _SHORT_TEMPLATE


def _quantize(making: Making, wanted: str) -> bool:
    """Replace the weights by smaller ones of the same shape; whether there was anything to do."""
    card = making.card
    if card is None or card.quantization == wanted:
        return False
    if card.quantization not in ("F16", "BF16", "F32"):
        raise ApiError(500, "quantization is only supported for F16, BF16 and F32 models")
    if wanted not in _KINDS:
        raise ApiError(500, _QUANTIZED.format(wanted))
    stored = making.daemon.store
    at = next(at for at, layer in enumerate(making.layers) if layer.media == store.MODEL)
    old = making.layers[at]
    digest = store.digest_of(f"{wanted} of {old.digest}".encode())
    smaller = cards.quantized(card, wanted)
    fresh = digest not in stored.blobs
    blob = stored.put_card(digest, int(old.size * _SHRINKS.get(wanted, 1.0)), smaller)
    making.layers[at] = Layer(store.MODEL, digest, blob.size, _note(digest, fresh))
    making.card = smaller
    making.config["file_type"] = wanted
    making.config.pop("parent_model", None)
    return True


def _note(digest: str, fresh: bool) -> str:
    return f"{'creating new' if fresh else 'using existing'} layer {digest}"


def _texts(making: Making) -> None:
    """Template, system, licences, parameters and messages, in the daemon's order."""
    fields = making.fields
    for media, text in ((store.TEMPLATE, fields.get("template")), (store.SYSTEM, fields.get("system"))):
        if text:
            _replace(making, media, text.encode())
    for text in _licenses(fields.get("license")):
        _append(making, store.LICENSE, text.encode())
    _params(making, fields.get("parameters", {}))
    messages = fields.get("messages", [])
    if messages:
        kept = [{"role": message.get("role", ""), "content": message.get("content", "")} for message in messages]
        _replace(making, store.MESSAGES, layer_text(kept))


def _licenses(given: Any) -> Iterator[str]:
    for text in given if isinstance(given, list) else [given]:
        if isinstance(text, str) and text:
            yield text


def _params(making: Making, given: dict[str, Any]) -> None:
    """Merge parameters into those of the base, key by key; their layer comes behind the others."""
    old = next((layer for layer in making.layers if layer.media == store.PARAMS), None)
    known = json.loads(making.daemon.store.content(old.digest)) if old is not None else {}
    merged = {**known, **given}
    if merged:
        _replace(making, store.PARAMS, layer_text(merged))


def _replace(making: Making, media: str, data: bytes) -> None:
    making.layers = [layer for layer in making.layers if layer.media != media]
    _append(making, media, data)


def _append(making: Making, media: str, data: bytes) -> None:
    blob, fresh = making.daemon.store.put(data)
    making.layers.append(Layer(media, blob.digest, blob.size, _note(blob.digest, fresh)))
