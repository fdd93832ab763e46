"""Make layers of uploaded files for `create`, and convert them as the daemon does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import IO, Any

from model_files import gguf, safetensors
from model_files.bounded import NotWeights
from ollama_emulator.daemon import Lines, status_line
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go.json import layer_text
from ollama_emulator.library import adapter_layers, cards, rewriting, store
from ollama_emulator.library.cards import NOT_GGUF, Card
from ollama_emulator.library.store import Blob, Layer, Store, digest_in
from ollama_emulator.templating import templates

_UNKNOWN = "unknown type"
_ONE_ADAPTER = "only one adapter is currently supported"
_UNSUPPORTED = "unsupported quantization type {} - supported types are F32, F16, Q4_K_S, Q4_K_M, Q8_0"
_QUANTIZED_ALREADY = "quantization is only supported for F16, BF16 and F32 models"
_INVALID_GGUF = "failed to validate GGUF with llama-quantize without compatibility patches: exit status 1"
_KINDS = {
    "F32": "F32",
    "F16": "F16",
    "BF16": "BF16",
    "Q4_K": "Q4_K_M",
    "Q4_K_S": "Q4_K_S",
    "Q4_K_M": "Q4_K_M",
    "Q8_0": "Q8_0",
}
_WHOLE = ("F16", "BF16", "F32")
_SHRINKS = {"Q8_0": 0.53, "Q4_K_M": 0.31, "Q4_K_S": 0.29}
_EMBEDDED = ("a.", "mm.", "mtp.", "s.", "v.")  # tensors of parts that the runner's tools would drop
_ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "llama",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3",
    "Phi3ForCausalLM": "phi3",
    "Qwen2ForCausalLM": "qwen2",
    "BertModel": "bert",
}
_SIZES = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
}


@dataclass(slots=True)
class ImportedLayer:
    """A layer of a model that is being created, with the metadata of its weights; an `upload` is still to be rewritten.

    `data` is the content of a small layer, since another request may remove it from the store before the model exists.
    An adapter `beside` its base came in the same `files`; the daemon counts its architecture again.
    """

    layer: Layer
    card: Card | None = None
    upload: bool = False
    data: bytes | None = None
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a request, digests by path; `status` is the HTTP status for a fault in their content."""

    given: Mapping[str, str]
    adapter: bool = False
    media: str = ""
    status: int = 500


async def layers(stored: Store, files: Files, parts: list[ImportedLayer], base: Card | None) -> Lines:
    """Add the layers of the files to `parts`; yield progress lines. Raises: ApiError: a file is missing or invalid."""
    kind = _kind(stored, files.given)
    if kind == "safetensors":
        staged = _file_digests(files)
        if files.adapter:
            if base is None:
                raise ApiError(400, "no base model was found")
            yield [status_line("converting adapter")]
            parts.append(ImportedLayer(await adapter_layers.convert(stored, staged, base)))
        else:
            yield [status_line("converting model")]
            parts.append(_convert_safetensors(stored, files, staged))
            _add_template(stored, parts[-1], parts)
        return
    if not kind:
        raise ApiError(400, _UNKNOWN)
    if files.adapter and len(files.given) > 1:
        raise ApiError(400, _ONE_ADAPTER)
    found = []
    for path in sorted(files.given):
        yield [status_line("parsing GGUF")]
        found.append(_parse_gguf(stored, files, path))
    parts += found
    for part in found if files.media != store.DRAFT else ():
        _add_template(stored, part, parts)


def _file_digests(files: Files) -> dict[str, str]:
    """Return the digests of an import's files by path. Raises: ApiError: a path or a digest is invalid."""
    try:
        return adapter_layers.stage(files.given)
    except ApiError as fault:
        raise ApiError(400 if "path" in fault.text else files.status, fault.text) from None


def _kind(stored: Store, given: Mapping[str, str]) -> str:
    """Return the format of the files, gguf or safetensors, by their names or first bytes; "" if unknown."""
    for path, digest in given.items():
        if path.endswith((".safetensors", ".gguf")):
            return path.rpartition(".")[2]
        known = digest_in(digest)
        start = _magic_bytes(stored.blobs.get(known)) if known else b""
        if len(start) < len(gguf.MAGIC):
            return ""
        if start == gguf.MAGIC:
            return "gguf"
    return ""


def _magic_bytes(blob: Blob | None) -> bytes:
    """Return the first four bytes of a blob, b"" without one."""
    if blob is None:
        return b""
    if blob.path is None:
        return (blob.data or gguf.MAGIC)[:4]
    with blob.path.open("rb") as source:
        return source.read(len(gguf.MAGIC))


def _parse_gguf(stored: Store, files: Files, path: str) -> ImportedLayer:
    """Return a GGUF file as a layer. Raises: ApiError: it is missing, or no GGUF file."""
    digest = digest_in(files.given[path])
    if not digest:
        raise ApiError(files.status, "invalid digest format")
    if digest not in stored.blobs:
        raise ApiError(files.status, stored.missing_text(digest))
    if _magic_bytes(stored.blobs[digest]) != gguf.MAGIC:
        raise ApiError(400, NOT_GGUF)
    card = stored.card(digest)
    if card is None:
        raise ApiError(files.status, "unexpected EOF")
    media = files.media or (store.ADAPTER if card.adapter else store.PROJECTOR if card.projector else store.MODEL)
    size = stored.blobs[digest].size
    beside = media == store.ADAPTER and not files.adapter
    return ImportedLayer(
        Layer(media, digest, size, path, adapter_layers.layer_line(digest, fresh=False)),
        card,
        upload=True,
        beside=beside,
    )


def _add_template(stored: Store, part: ImportedLayer, parts: list[ImportedLayer]) -> None:
    """Add the Go template and the parameters that belong to the weights' Jinja template, if it is a known one."""
    detected = templates.detect(part.card.template) if part.card is not None else None
    if detected is None:
        return
    name, text, parameters = detected
    blob, _ = stored.put(text.encode())
    note = f"using autodetected template {name}"
    parts.append(ImportedLayer(Layer(store.TEMPLATE, blob.digest, blob.size, note=note), data=text.encode()))
    if parameters:
        blob, fresh = stored.put(data := layer_text(parameters))
        note = adapter_layers.layer_line(blob.digest, fresh)
        parts.append(ImportedLayer(Layer(store.PARAMS, blob.digest, blob.size, note=note), data=data))


def _convert_safetensors(stored: Store, files: Files, staged: Mapping[str, str]) -> ImportedLayer:
    """Return safetensors files as a layer of a GGUF file that exists only as metadata: no whole model is converted."""
    config = _json(stored, files, staged, "config.json")
    named = config.get("architectures") or [""]
    if not named[0]:
        raise ApiError(files.status, "unknown architecture")
    if named[0] not in _ARCHITECTURES:
        raise ApiError(files.status, f'unsupported architecture "{named[0]}"')
    architecture = _ARCHITECTURES[named[0]]
    info: dict[str, Any] = {"general.architecture": architecture, "general.file_type": 1}
    info |= {f"{architecture}.{key}": config[name] for key, name in _SIZES.items() if isinstance(config.get(name), int)}
    if architecture == "bert":
        info["bert.pooling_type"] = 1
    told = _json(stored, files, staged, "tokenizer_config.json") if "tokenizer_config.json" in staged else {}
    if isinstance(told.get("chat_template"), str):
        info["tokenizer.chat_template"] = told["chat_template"]
    parameters = sum(_count_elements(stored, files, staged, path) for path in staged if path.endswith(".safetensors"))
    digest = store.digest_of(json.dumps(sorted(staged.items())).encode())
    card = Card(info, parameters, "F16")
    size = stored.put_card(digest, 2 * parameters, card).size
    return ImportedLayer(
        Layer(store.MODEL, digest, size, note=adapter_layers.layer_line(digest, fresh=True)), card, upload=True
    )


def _json(stored: Store, files: Files, staged: Mapping[str, str], path: str) -> dict[str, Any]:
    """Read a JSON object among the files, {} for any other JSON. Raises: ApiError: it is missing or no JSON."""
    if staged.get(path) not in stored.blobs:
        raise ApiError(files.status, f"open {path}: no such file or directory")
    try:
        found = json.loads(stored.content(staged[path]))
    except (ValueError, RecursionError):
        raise ApiError(files.status, "unexpected end of JSON input") from None
    return found if isinstance(found, dict) else {}


def _count_elements(stored: Store, files: Files, staged: Mapping[str, str], path: str) -> int:
    """Count the numbers in all tensors of a safetensors file. Raises: ApiError: it is missing or damaged."""
    blob = stored.blobs.get(staged[path])
    if blob is None or blob.path is None:
        raise ApiError(files.status, f"open {path}: no such file or directory")
    try:
        return sum(prod(tensor.shape) for tensor in safetensors.read(blob.path).tensors.values())
    except NotWeights:
        raise ApiError(files.status, "EOF") from None


async def build(stored: Store, part: ImportedLayer, wanted: str) -> Lines:
    """Quantise the weights of a layer to `wanted`, or rewrite uploaded ones; yield progress lines.

    Raises: ApiError: 500, the daemon's tools would fail.
    """
    card = part.card
    if card is None or part.layer.media not in (store.MODEL, store.DRAFT):
        return
    if wanted and _quantises(part, card, wanted.upper()):
        await _quantize(stored, part, card, _KINDS[wanted.upper()])
    elif part.layer.media == store.MODEL and part.upload and not _has_embedded(card):
        await _copy(stored, part)
    else:
        return
    yield [status_line("verifying conversion")]


def _quantises(part: ImportedLayer, card: Card, wanted: str) -> bool:
    """Return whether the weights must be quantised. Raises: ApiError: 500, they cannot be."""
    if wanted not in _KINDS:
        raise ApiError(500, _UNSUPPORTED.format(wanted))
    if card.quantization not in _WHOLE:
        draft = f"draft quantization requires an unquantized draft model, got {card.quantization}"
        raise ApiError(500, draft if part.layer.media == store.DRAFT else _QUANTIZED_ALREADY)
    return card.quantization != _KINDS[wanted]


def _has_embedded(card: Card) -> bool:
    return any(str(tensor["name"]).startswith(_EMBEDDED) for tensor in card.tensors)


async def _quantize(stored: Store, part: ImportedLayer, card: Card, kind: str) -> None:
    """Quantise a layer's weights: small files of plain types really, others only as metadata."""
    blob = stored.blobs[part.layer.digest]
    if blob.path is not None and rewriting.can_shrink(blob.path, kind):
        made, fresh = await _write_blob(stored, blob.path, blob.size, partial(rewriting.quantize_file, wanted=kind))
    else:
        digest = store.digest_of(f"{kind} of {blob.digest}".encode())
        fresh = digest not in stored.blobs
        described, grown = cards.quantize(card, kind)
        size = blob.size + grown if card.tensors else int(blob.size * _SHRINKS.get(kind, 1.0))
        made = stored.blobs.get(digest) or stored.put_card(digest, size, described)
    _replace(stored, part, made, fresh)


async def _copy(stored: Store, part: ImportedLayer) -> None:
    """Store uploaded weights anew, as the daemon does, and put the new blob into the layer."""
    blob = stored.blobs[part.layer.digest]
    if blob.path is not None:
        _replace(stored, part, *await _write_blob(stored, blob.path, blob.size, rewriting.copy_file))


async def _write_blob(
    stored: Store, path: Path, size: int, make: Callable[[Path, IO[bytes]], str]
) -> tuple[Blob, bool]:
    try:
        return await stored.write(partial(make, path), size)
    except NotWeights:
        raise ApiError(500, _INVALID_GGUF) from None


def _replace(stored: Store, part: ImportedLayer, made: Blob, fresh: bool) -> None:
    part.layer = Layer(part.layer.media, made.digest, made.size, note=adapter_layers.layer_line(made.digest, fresh))
    part.card = stored.card(made.digest)
