"""Handle POST /api/pull: download layers from the simulated registry, or from a real one on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from ollama_emulator.daemon import EmulatedDaemon, Lines, line, status_line
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go.json import layer_text
from ollama_emulator.library import cards, store
from ollama_emulator.library.model_tags import Name
from ollama_emulator.library.models import Model
from ollama_emulator.library.store import Layer, Manifest
from ollama_emulator.pulling import registry, remote, transfer
from ollama_emulator.pulling.fetching import Broken, near
from ollama_emulator.pulling.registry import RegistryEntry
from ollama_emulator.pulling.remote import RemoteModel

_LAST_SHARE = 0.98  # the last progress line is short of the total
_TOLD_BYTES = 100_000  # smaller layers have no progress lines between first and last


async def pulling(daemon: EmulatedDaemon, name: Name, *, insecure: bool) -> Lines:
    """Pull a model; yield its progress lines, without `success`. Raises: ApiError: 500, the pull fails."""
    older = daemon.store.find(name)
    yield [status_line("pulling manifest")]
    lines = _pull_from_registry(daemon, name, insecure) if near(name.host) else _simulate(daemon, name, insecure)
    try:
        async for some in lines:
            yield some
    except Broken as fault:
        raise ApiError(500, str(fault)) from None
    if older is not None and _has_unused_layer(daemon, older, name):
        yield [status_line("removing unused layers")]


def _has_unused_layer(daemon: EmulatedDaemon, older: Manifest, name: Name) -> bool:
    """Return whether the pull replaced a layer of the older model."""
    newer = daemon.store.find(name)
    kept = {layer.digest for layer in newer.all} if newer is not None else set()
    return any(layer.digest not in kept for layer in older.all)


def _progress_line(layer: Layer, total: int, completed: int) -> bytes:
    """Return a progress line for a layer; counts of zero bytes are left out."""
    told: dict[str, Any] = {"status": f"pulling {layer.digest[7:19]}", "digest": layer.digest}
    counts = {"total": total, "completed": completed}
    return line({**told, **{key: count for key, count in counts.items() if count}})


# a registry on this machine


async def _pull_from_registry(daemon: EmulatedDaemon, name: Name, insecure: bool) -> Lines:
    """Pull from a real registry on this machine; yield progress lines. Raises: Broken: the transfer fails."""
    source = RemoteModel(name, insecure, daemon.options.limits.upload)
    try:
        text, layers = await remote.manifest(source)
    except Broken as fault:
        raise Broken(f"pull model manifest: {fault}") from fault
    fresh = []
    for layer in layers:
        transfer.check(layer, f"{name.namespace}/{name.model}")
        known = daemon.store.blobs.get(layer.digest)
        if known is not None:
            yield [_progress_line(layer, known.size, known.size)]
            continue
        fresh.append(layer)
        download = transfer.Download(source, layer, daemon.store, daemon.registry, daemon.clock)
        async for total, done in transfer.layer(download):
            yield [_progress_line(layer, total, done)]
    yield [status_line("verifying sha256 digest")]
    for layer in fresh:
        await _verify(daemon, layer)
    yield [status_line("writing manifest")]
    daemon.store.save_text(name, text)


async def _verify(daemon: EmulatedDaemon, layer: Layer) -> None:
    """Check the digest of a downloaded layer. Raises: Broken: it is wrong, and the layer is removed."""
    blob = daemon.store.blobs.get(layer.digest)
    if blob is None or blob.path is None:
        return
    found = await asyncio.to_thread(transfer.digest_of_file, blob.path)
    if found != layer.digest:
        daemon.store.drop(layer.digest)
        raise Broken(_mismatch(layer.digest, found))


def _mismatch(wanted: str, found: str) -> str:
    return f"digest mismatch, file must be downloaded again: want {wanted}, got {found}"


# the simulated registry


async def _simulate(daemon: EmulatedDaemon, name: Name, insecure: bool) -> Lines:
    """Pull from the simulated registry; yield progress lines. Raises: Broken: the entry is missing or fails."""
    found = daemon.registry.find(name, "http" if insecure else "https")
    if isinstance(found, str):
        raise Broken(found)
    real = daemon.real(embeds=found.embeds)
    if real is not None:
        for some in _take_real(daemon, real, name):
            yield some
        return
    for layer in _layers(found):
        async for some in _layer(daemon, found, layer):
            yield some
    yield [status_line("verifying sha256 digest")]
    if found.corrupt and not daemon.registry.cut[f"{found.digest} corrupt"]:
        daemon.registry.cut[f"{found.digest} corrupt"] += 1
        raise Broken(_mismatch(found.digest, store.digest_of(found.digest.encode())))
    yield [status_line("writing manifest")]
    _store_simulated(daemon, name, found)


def install(daemon: EmulatedDaemon, name: Name) -> None:
    """Store a model as if it had been pulled. Raises: ApiError: 500, the registry has no model of that name."""
    found = daemon.registry.find(name)
    if isinstance(found, str):
        raise ApiError(500, found)
    real = daemon.real(embeds=found.embeds)
    if real is not None:
        daemon.store.copy(real.manifest, name)
    else:
        _store_simulated(daemon, name, found)


def _take_real(daemon: EmulatedDaemon, real: Model, name: Name) -> Iterator[list[bytes]]:
    """Store a model of `--gguf` under the name of an entry that it stands for; yield the lines of a pull."""
    for layer in real.manifest.all:
        yield [_progress_line(layer, layer.size, layer.size)]
    yield [status_line("verifying sha256 digest")]
    yield [status_line("writing manifest")]
    daemon.store.copy(real.manifest, name)


def _store_simulated(daemon: EmulatedDaemon, name: Name, entry: RegistryEntry) -> None:
    """Store a model of the simulated registry, its weights only as metadata."""
    daemon.store.put_card(entry.digest, entry.size, entry.card)
    for data in _text_layers(entry).values():
        daemon.store.put(data)
    daemon.store.save(name, _layers(entry)[:-1], cards.config(entry.card))


def _text_layers(entry: RegistryEntry) -> dict[str, bytes]:
    """Return the text layers of a model, by their media types."""
    parameters = registry.parameters(entry)
    found = {
        store.TEMPLATE: entry.template.encode(),
        store.LICENSE: entry.license.encode(),
        store.SYSTEM: entry.system.encode(),
        store.PARAMS: layer_text(parameters) if parameters else b"",
    }
    return {media: data for media, data in found.items() if data}


def _layers(entry: RegistryEntry) -> list[Layer]:
    """Return the layers of a model: the weights, the texts and the configuration."""
    texts = {**_text_layers(entry), store.CONFIG: cards.config_text(cards.config(entry.card))}
    layers = [Layer(store.MODEL, entry.digest, entry.size)]
    return layers + [Layer(media, store.digest_of(data), len(data)) for media, data in texts.items()]


async def _layer(daemon: EmulatedDaemon, entry: RegistryEntry, layer: Layer) -> Lines:
    """Download one simulated layer; yield its progress lines. Raises: Broken: the entry makes the download fail."""
    partial, registered = daemon.registry.partial, daemon.registry
    if layer.digest in daemon.store.blobs:
        yield [_progress_line(layer, layer.size, layer.size)]
        return
    done = partial.get(layer.digest, 0)
    lasts = daemon.options.pull_s if entry.seconds is None else entry.seconds
    seconds = lasts * layer.size / max(entry.size, 1)
    steps = max(2, int(seconds / transfer.TICK_S))
    while True:
        if layer.size >= _TOLD_BYTES:
            yield [_progress_line(layer, layer.size, min(done, int(layer.size * _LAST_SHARE)))]
        if done >= layer.size:
            break
        await daemon.clock.sleep(seconds / steps)
        before = max(done, partial.get(layer.digest, 0))  # another pull may have got further
        done = min(layer.size, before + -(-layer.size // steps))
        partial[layer.digest] = done
        registered.pulled[layer.digest] += done - before
        if entry.fails_at is not None and done >= entry.fails_at and registered.cut[entry.digest] < entry.cuts:
            registered.cut[entry.digest] += 1
            raise Broken("max retries exceeded: EOF")
    partial.pop(layer.digest, None)
