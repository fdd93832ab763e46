"""The adapters folder: its contents, checked file by file, and laid out for `ollama create -f`."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from batos.genesis.adapters import gguf_lora, peft
from batos.genesis.adapters.inventory import (
    NONE,
    Adapter,
    AdapterFault,
    AdapterFaults,
    AdapterInventory,
    Digests,
    FileMark,
    Kind,
    is_settled,
    mark,
)
from batos.genesis.codex.codex import PILLARS
from batos.protocol.errors import UsageError

#: The name of an adapter is a part of its model's name (at most 80 characters in all), and of a path.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,39}")
_WEIGHTS = (".gguf", ".safetensors", ".bin", ".pt", ".pth")
_PICKLES = (".bin", ".pt", ".pth")
_GGUF_KEY = "adapter.gguf"


def discover(folder: Path, known: Digests | None = None) -> AdapterInventory:
    """Read the contents of a folder `adapters/`; a missing folder is empty.

    Every file's header is read once, and a whole file only if its digest is not `known`.
    """
    digests = known or Digests()
    adapters: list[Adapter] = []
    faults: list[AdapterFault] = []
    for persona, path in _personas(folder, faults):
        for name, place in _adapter_paths(persona, path, faults):
            if any(each.persona == persona and each.name.casefold() == name.casefold() for each in adapters):
                remedy = "Rename one: the name of a model ignores case."
                faults.append(AdapterFault(persona, name, "another adapter has the same name", remedy, str(place)))
                continue
            complaints = AdapterFaults(persona, name)
            adapter = _adapter(persona, name, place, digests, complaints)
            faults.extend(complaints)
            if adapter is not None and not complaints:
                adapters.append(adapter)
    order = {persona: number for number, persona in enumerate(PILLARS)}
    adapters.sort(key=lambda each: (order[each.persona], each.name.casefold()))
    return AdapterInventory(tuple(adapters), tuple(faults))


def in_use(inventory: AdapterInventory, choices: Mapping[str, str | None]) -> dict[str, Adapter]:
    """Return the adapter of each persona that uses one; `choices` are the image's records.

    The choice None takes the first adapter by name. A name takes that adapter, or the bare base if it is gone. NONE
    takes the bare base.
    """
    used = {}
    for persona in PILLARS:
        choice = choices.get(persona)
        there = inventory.adapters_of(persona)
        adapter = next(iter(there), None) if choice is None else inventory.find(persona, choice)
        if adapter is not None and choice != NONE:
            used[persona] = adapter
    return used


# -- folders


def _entries(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            names = sorted(entry.name for entry in found if not entry.name.startswith("."))
    except FileNotFoundError:
        return []
    return [folder / name for name in names]


def _folders(folder: Path, persona: str, faults: list[AdapterFault]) -> Iterator[Path]:
    """Yield the folders in one; a fault is one that cannot be read, and weights that are in none of them."""
    try:
        entries = _entries(folder)
    except OSError as error:
        what = f"it cannot be read: {error.strerror}"
        faults.append(AdapterFault(persona, "", what, "Make it readable.", str(folder)))
        return
    for path in entries:
        if path.is_dir():
            yield path
        elif path.suffix.lower() in _WEIGHTS:
            place = f"a folder of its own: {folder.name}" if persona else f"{folder.name}/<persona>"
            what = f"it is in no folder of {'its own' if persona else 'a persona'}"
            faults.append(AdapterFault(persona, path.stem, what, f"Put it into {place}/{path.stem}/.", str(path)))


def _personas(folder: Path, faults: list[AdapterFault]) -> Iterator[tuple[str, Path]]:
    for path in _folders(folder, "", faults):
        if path.name.upper() in PILLARS:
            yield path.name.upper(), path
        else:
            near = difflib.get_close_matches(path.name.upper(), PILLARS, 1, 0.5)
            known = ", ".join(persona.lower() for persona in PILLARS)
            remedy = f"Rename it to {near[0].lower()}." if near else f"The personas are {known}."
            faults.append(AdapterFault(path.name, "", f"there is no persona {path.name!r}", remedy, str(path)))


def _adapter_paths(persona: str, folder: Path, faults: list[AdapterFault]) -> Iterator[tuple[str, Path]]:
    for path in _folders(folder, persona, faults):
        name = path.name
        if not NAME.fullmatch(name) or name.casefold() == NONE:
            remedy = "Rename it: at most 40 letters, digits, `_`, `-` and `.`, the first a letter or digit."
            what = "`none` means no adapter" if name.casefold() == NONE else "its name cannot be part of a model's name"
            faults.append(AdapterFault(persona, name, what, remedy, str(path)))
        else:
            yield name, path


# -- one adapter


def _adapter(persona: str, name: str, folder: Path, digests: Digests, faults: AdapterFaults) -> Adapter | None:
    try:
        files = _files(folder, faults)
        if files is None:
            return None
        kind: Kind = "gguf" if _GGUF_KEY in files else "peft"
        marks = tuple((path, mark(path)) for path in files.values())
        look = _contents if all(is_settled(seen) for _, seen in marks) else _contents.__wrapped__
        contents, problems = look(persona, name, kind, marks)
        for fault in problems:
            faults.add(fault.what, fault.remedy, fault.where)
        if contents is None:
            return None
        hashed = {key: digests.digest(path) for key, path in files.items()}
        if any(mark(path) != seen for path, seen in marks):
            faults.add("it is still being written", "Wait until it is whole; then it is read again.", str(folder))
            return None
    except OSError as error:
        where = str(error.filename or folder)
        faults.add(f"it cannot be read: {error.strerror}", "Make it readable, or copy it again.", where)
        return None
    return Adapter(
        persona, name, kind, files, hashed, contents.rank, contents.alpha, contents.architecture, contents.base,
        contents.pairs, sum(seen.size for _, seen in marks), contents.doubts,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _contents(
    persona: str, name: str, kind: Kind, files: tuple[tuple[Path, FileMark], ...]
) -> tuple[peft.Contents | None, tuple[AdapterFault, ...]]:
    """Read the files of an adapter, once for each content that `stat` can tell from another."""
    faults = AdapterFaults(persona, name)
    paths = [path for path, _ in files]
    found = gguf_lora.read(paths[0], faults) if kind == "gguf" else peft.read(paths[1], paths[0], faults)
    return found, tuple(faults)


def _files(folder: Path, faults: AdapterFaults) -> dict[str, Path] | None:
    """Return the files of an adapter, by the names under which the daemon takes them; None if they are not sound."""
    there = [path for path in _entries(folder) if not path.is_dir()]
    ggufs = [path for path in there if path.suffix.lower() == ".gguf"]
    weights = [path for path in there if path.suffix.lower() == ".safetensors"]
    pickles = [path for path in there if path.suffix.lower() in _PICKLES and path.stem.startswith("adapter_model")]
    if len(ggufs) > 1 or (ggufs and weights):
        names = ", ".join(path.name for path in (*ggufs, *weights))
        faults.add(f"it holds more than one adapter: {names}", "Give each a folder of its own.", str(folder))
        return None
    if ggufs:
        return {_GGUF_KEY: ggufs[0]} if _are_regular(ggufs, folder, faults) else None
    named = [path for path in weights if path.name == peft.WEIGHTS] or weights
    if not named and pickles:
        remedy = (
            "Save it with `model.save_pretrained(FOLDER, safe_serialization=True)`: a pickle can run code when it is "
            "read, so BAT OS reads none."
        )
        faults.add("its weights are a pickle", remedy, str(pickles[0]))
        return None
    if len(named) != 1:
        what = "it holds several safetensors files" if named else "it holds no adapter"
        remedy = f"Put {peft.CONFIG} and {peft.WEIGHTS} of PEFT there, or one GGUF file."
        faults.add(what, remedy, str(folder))
        return None
    config = folder / peft.CONFIG
    if config not in there:
        faults.add(f"it lacks {peft.CONFIG}", "Copy it too: PEFT saves it beside the weights.", str(folder))
        return None
    return {peft.WEIGHTS: named[0], peft.CONFIG: config} if _are_regular([named[0], config], folder, faults) else None


def _are_regular(paths: Iterable[Path], folder: Path, faults: AdapterFaults) -> bool:
    """Test if each path is a plain file in this folder: an unpacked archive may contain links to anywhere.

    The folder itself may be a link, by which people keep weights on another disk.
    """
    home = folder.resolve()
    sound = True
    for path in paths:
        if not stat.S_ISREG(path.stat().st_mode):
            faults.add("it is no file", "Put the file itself there.", str(path))
        elif path.resolve().parent != home:
            faults.add("it is a link that leads out of its folder", "Copy the file itself (`cp -L`).", str(path))
        else:
            continue
        sound = False
    return sound


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
