"""POST /api/pull: layers come down from the simulated registry, shared between pulls and continued after a break."""

from __future__ import annotations

from batos.emulator import cards, registry, store
from batos.emulator.daemon import Daemon, Lines, line
from batos.emulator.gojson import layer_text
from batos.emulator.names import Name
from batos.emulator.registry import Entry
from batos.emulator.replies import ApiError
from batos.emulator.store import Layer

SHAPE = {
    "model": "string",
    "name": "string",
    "insecure": "bool",
    "username": "string",
    "password": "string",
    "stream": "bool",
}
_TICK_S = 0.06
_LAST_SHARE = 0.98  # the last progress line is short of the total


async def pulling(daemon: Daemon, name: Name) -> Lines:
    """The lines of a pull up to, not with, `success`; ApiError 500 where the registry refuses."""
    yield [line({"status": "pulling manifest"})]
    found = daemon.registry.find(name)
    if isinstance(found, str):
        raise ApiError(500, found)
    layers = _layers(found)
    for layer in layers:
        async for some in _layer(daemon, found, layer):
            yield some
    yield [line({"status": "verifying sha256 digest"})]
    yield [line({"status": "writing manifest"})]
    _keep(daemon, name, found, layers)


def install(daemon: Daemon, name: Name) -> None:
    """Put a model there as if it had been pulled; ApiError 500 when the registry has none of that name."""
    found = daemon.registry.find(name)
    if isinstance(found, str):
        raise ApiError(500, found)
    _keep(daemon, name, found, _layers(found))


def _keep(daemon: Daemon, name: Name, entry: Entry, layers: list[Layer]) -> None:
    daemon.store.put_card(entry.digest, entry.size, entry.card)
    for data in _small(entry).values():
        daemon.store.put(data)
    daemon.store.save(name, layers, cards.config(entry.card))


def _small(entry: Entry) -> dict[str, bytes]:
    """The layers that are text, by their media type."""
    parameters = registry.parameters(entry)
    found = {
        store.TEMPLATE: entry.template.encode(),
        store.LICENSE: entry.license.encode(),
        store.SYSTEM: entry.system.encode(),
        store.PARAMS: layer_text(parameters) if parameters else b"",
    }
    return {media: data for media, data in found.items() if data}


def _layers(entry: Entry) -> list[Layer]:
    layers = [Layer(store.MODEL, entry.digest, entry.size)]
    layers += [Layer(media, store.digest_of(data), len(data)) for media, data in _small(entry).items()]
    return layers


async def _layer(daemon: Daemon, entry: Entry, layer: Layer) -> Lines:
    """The progress of one layer."""
    said = {"status": f"pulling {layer.digest[7:19]}", "digest": layer.digest, "total": layer.size}
    if layer.digest in daemon.store.blobs:
        yield [line({**said, "completed": layer.size})]
        return
    done = daemon.partial.get(layer.digest, 0)
    seconds = daemon.options.pull_s * layer.size / max(entry.size, 1)
    steps = max(2, int(seconds / _TICK_S))
    while True:
        shown = min(done, int(layer.size * _LAST_SHARE))
        yield [line({**said, "completed": shown} if shown else said)]
        if done >= layer.size:
            break
        await daemon.clock.sleep(seconds / steps)
        done = min(layer.size, max(done, daemon.partial.get(layer.digest, 0)) + -(-layer.size // steps))
        daemon.partial[layer.digest] = done
        if entry.fails_at is not None and done >= entry.fails_at and f"failed {layer.digest}" not in daemon.partial:
            daemon.partial[f"failed {layer.digest}"] = 1
            raise ApiError(500, "max retries exceeded: EOF")
    daemon.partial.pop(layer.digest, None)
