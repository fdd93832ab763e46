"""Lays out adapters for `ollama create -f`, which sees only some file names: by hard link, else by copy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from batos.genesis.adapters import peft
from batos.genesis.adapters.inventory import Adapter
from batos.protocol.errors import UsageError

#: The folder beside the Modelfiles that holds what was laid out.
FOLDER = "adapters"
#: Today's `ollama create` takes `model*.safetensors` out of a folder and passes over PEFT's own name.
_GGUF = "adapter.gguf"
_NAMES: Mapping[str, str] = {peft.WEIGHTS: "model.safetensors", peft.CONFIG: peft.CONFIG, _GGUF: _GGUF}
_PREFIX = "batos-"
_BEGUN = ".begun-"


def stage(folder: Path, adapter: Adapter) -> Path:
    """Lay an adapter out beside the Modelfiles in `folder`; answers what their ADAPTER line has to name.

    A GGUF file stands where it is, unless its path is one that no Modelfile can hold. A PEFT folder becomes one of
    our own, whole or not at all, under a name that has its digest; one that is there already is left alone.
    UsageError: the folder cannot be written.
    """
    place = folder / FOLDER / _name(adapter)
    if adapter.kind == "gguf":
        file = next(iter(adapter.files.values()))
        if _is_writable(str(file)):
            return file
    if _is_whole(place, adapter):
        return place if adapter.kind == "peft" else place / _GGUF
    begun = place.with_name(f"{_BEGUN}{place.name}.{os.getpid()}")
    try:
        _remove(begun)
        begun.mkdir(parents=True)
        for key, path in adapter.files.items():
            _lay(path, begun / _NAMES[key])
        _remove(place)
        begun.replace(place)
    except OSError as error:
        _remove(begun)
        remedy = "Make it a folder that you may write, with room on its disk."
        raise UsageError(f"{adapter.label} cannot be copied to {place}: {error.strerror}", remedy=remedy) from error
    return place if adapter.kind == "peft" else place / _GGUF


def adapter_line_path(folder: Path, staged: Path) -> str:
    """Return the text of an ADAPTER line for a staged adapter, relative to the folder of the Modelfile.

    >>> named(Path("/home/m"), Path("/home/m/adapters/batos-robin-warm"))
    './adapters/batos-robin-warm'
    """
    relative = os.path.relpath(staged, folder)
    return relative if relative.startswith(os.pardir) else f"./{relative}"


def tidy(folder: Path, adapters: Iterable[Adapter]) -> list[Path]:
    """Remove what was laid out for adapters that are no longer there; answers what went.

    Only folders of our own naming that hold nothing but what we put there.
    """
    wanted = {_name(adapter) for adapter in adapters}
    gone = []
    for place in sorted((folder / FOLDER).glob(f"{_PREFIX}*")) + sorted((folder / FOLDER).glob(f"{_BEGUN}*")):
        if place.name not in wanted and not place.is_symlink() and place.is_dir() and _has_only_ours(place):
            _remove(place)
            gone.append(place)
    return gone


def _name(adapter: Adapter) -> str:
    digest = adapter.digest.partition(":")[2]
    return f"{_PREFIX}{adapter.persona.lower()}-{adapter.name.lower()}-{digest[:12]}"


def _is_writable(path: str) -> bool:
    """Test if a Modelfile can name a path: Ollama's tool drops unprintable characters and reads quotes."""
    return path.isprintable() and '"' not in path and path == path.strip()


def _is_whole(place: Path, adapter: Adapter) -> bool:
    """Test if each staged file is the original, or an up-to-date copy of it."""
    try:
        return all(_is_same_file(path, place / _NAMES[key]) for key, path in adapter.files.items())
    except OSError:
        return False


def _is_same_file(path: Path, laid: Path) -> bool:
    one, other = path.stat(), laid.stat()
    return (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)


def _lay(path: Path, place: Path) -> None:
    try:
        os.link(path, place)
    except OSError:  # another disk, a file of someone else, a file system without links
        shutil.copy2(path, place)


def _has_only_ours(place: Path) -> bool:
    return {path.name for path in place.iterdir()} <= set(_NAMES.values())


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
