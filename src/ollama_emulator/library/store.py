"""The daemon's store of blobs by digest and manifests by name, in memory or in a folder."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import time
from typing import IO, Any, TypeVar

from model_files import gguf
from model_files.bounded import NotWeights
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go.json import encode
from ollama_emulator.library import cards
from ollama_emulator.library.cards import Card
from ollama_emulator.library.model_tags import Name, parse

IN_MEMORY = "/emulator/models"
MODEL = "application/vnd.ollama.image.model"
ADAPTER = "application/vnd.ollama.image.adapter"
PROJECTOR = "application/vnd.ollama.image.projector"
DRAFT = "application/vnd.ollama.image.draft"
TEMPLATE = "application/vnd.ollama.image.template"
SYSTEM = "application/vnd.ollama.image.system"
PARAMS = "application/vnd.ollama.image.params"
MESSAGES = "application/vnd.ollama.image.messages"
LICENSE = "application/vnd.ollama.image.license"
CONFIG = "application/vnd.docker.container.image.v1+json"
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_DIGEST = re.compile(r"sha256[:-]([0-9a-fA-F]{64})\Z", re.ASCII)
_PARTIAL = "-partial"
_FORGOTTEN_S = 3600.0  # seconds: a start removes older files that no model refers to
_MOST_TEXT = 64 << 20  # bytes of the largest layer that is read whole
_THREAD_BYTES = 1 << 16  # bytes: larger files are written in a thread

Kind = TypeVar("Kind", dict[str, Any], list[Any])


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of data as `sha256:` and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Blob:
    """A content by its digest: short `data`, a file at `path`, or weights of which only the metadata exist."""

    digest: str
    size: int
    data: bytes | None = None
    path: Path | None = None
    card: Card | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of a manifest: `source` is the model or file that it is from, `note` a progress line of `create`."""

    media: str
    digest: str
    size: int
    source: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A stored model: its layers in order, its configuration, and the layer `held` that has the configuration."""

    name: Name
    layers: tuple[Layer, ...]
    config: dict[str, Any]
    held: Layer
    digest: str
    modified_ns: int

    @property
    def all(self) -> tuple[Layer, ...]:
        """Return the layers, with that of the configuration last."""
        return (*self.layers, self.held)

    @property
    def size(self) -> int:
        """Return the bytes of all its layers, shared ones included."""
        return sum(layer.size for layer in self.all)


@dataclass(slots=True)
class Store:
    """The blobs and manifests. A `folder` keeps them across restarts; without one uploads go to a temporary folder."""

    now_ns: Callable[[], int]
    folder: Path | None = None
    blobs: dict[str, Blob] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=dict)
    _texts: dict[str, bytes] = field(default_factory=dict)
    _scratch: tempfile.TemporaryDirectory[str] | None = None

    def __post_init__(self) -> None:
        if self.folder is not None:
            (self.folder / "blobs").mkdir(parents=True, exist_ok=True)
            (self.folder / "manifests").mkdir(exist_ok=True)
            self._load(self.folder)

    def close(self) -> None:
        """Remove the temporary folder, if there is one."""
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    # blobs

    def blob_path(self, digest: str) -> str:
        """Return the path of a blob, as the daemon's messages give it."""
        root = str(self.folder.resolve()) if self.folder is not None else IN_MEMORY
        return f"{root}/blobs/{digest.replace(':', '-')}"

    def put(self, data: bytes) -> tuple[Blob, bool]:
        """Store short content; return its blob, and whether it is new."""
        digest = digest_of(data)
        if digest in self.blobs:
            return self.blobs[digest], False
        blob = Blob(digest, len(data), data=data)
        self.blobs[digest] = blob
        if self.folder is not None:
            self._write_whole(self._file(digest), data)
        return blob, True

    def put_card(self, digest: str, size: int, card: Card) -> Blob:
        """Store weights of which only the metadata exist; return their blob."""
        blob = Blob(digest, size, card=card)
        self.blobs[digest] = blob
        if self.folder is not None:
            described = {"size": size, "card": asdict(card)}
            self._write_whole(self._file(digest).with_suffix(".card"), json.dumps(described).encode())
        return blob

    async def receive(self, claimed: str, pieces: AsyncIterator[bytes]) -> int:
        """Store an upload and return the status: 201, or 200 for a known one.

        Raises: ApiError: 400, it has another digest, under which it is kept.
        """
        if claimed in self.blobs:
            return 200
        hasher = hashlib.sha256()
        with tempfile.NamedTemporaryFile(dir=self.uploads, prefix="upload-", delete=False) as target:
            try:
                async for piece in pieces:
                    hasher.update(piece)
                    target.write(piece)
                digest = "sha256:" + hasher.hexdigest()
                self.adopt(digest, Path(target.name), target.tell())
            except BaseException:
                _remove(Path(target.name))  # the client left, or the disk is full
                raise
        if digest != claimed:
            raise ApiError(400, f'digest mismatch, expected "{claimed}", got "{digest}"')
        return 201

    async def write(self, make: Callable[[IO[bytes]], str], size: int) -> tuple[Blob, bool]:
        """Store a file of about `size` bytes; return its blob, and whether it is new.

        `make` writes the file and returns its digest.
        """
        with tempfile.NamedTemporaryFile(dir=self.uploads, prefix="write-", delete=False) as target:
            try:
                digest = await asyncio.to_thread(make, target) if size > _THREAD_BYTES else make(target)
                written = target.tell()
            except BaseException:
                _remove(Path(target.name))
                raise
        if digest in self.blobs:
            _remove(Path(target.name))
            return self.blobs[digest], False
        return self.adopt(digest, Path(target.name), written), True

    def adopt(self, digest: str, path: Path, size: int) -> Blob:
        """Make a file in the folder of uploads the blob of a digest; return the blob."""
        blob = Blob(digest, size, path=path.rename(self._file(digest)))
        self.blobs[digest] = blob
        return blob

    def _write_whole(self, path: Path, data: bytes) -> None:
        """Write a file of the store at once: who is killed in the midst leaves none of that name, or the one before."""
        with tempfile.NamedTemporaryFile(dir=self.uploads, prefix="write-", delete=False) as target:
            target.write(data)
        Path(target.name).rename(path)

    def drop(self, digest: str) -> None:
        """Remove a blob, unless a manifest refers to it."""
        if all(layer.digest != digest for manifest in self.manifests.values() for layer in manifest.all):
            self._unlink(digest)

    def missing_text(self, digest: str) -> str:
        """Return the daemon's error message for a blob that does not exist."""
        return f"open {self.blob_path(digest)}: no such file or directory"

    def content(self, digest: str) -> bytes:
        """Return the bytes of a blob. Raises: ApiError: 500, it does not exist or is too large to read."""
        blob = self.blobs.get(digest)
        if blob is None:
            raise ApiError(500, self.missing_text(digest))
        if blob.data is not None:
            return blob.data
        if blob.size > _MOST_TEXT:
            raise ApiError(500, f"the emulator reads no text of {blob.size} bytes")
        return blob.path.read_bytes() if blob.path is not None else b""

    def card(self, digest: str) -> Card | None:
        """Return the metadata of the weights in a blob; None if it is no GGUF file."""
        blob = self.blobs.get(digest)
        if blob is None or blob.card is not None or blob.path is None:
            return blob.card if blob is not None else None
        try:
            card = cards.card_of_header(gguf.read(blob.path))
        except NotWeights:
            return None
        self.blobs[digest] = replace(blob, card=card)
        return card

    @property
    def uploads(self) -> Path:
        """Return the folder in which uploads are stored."""
        if self.folder is not None:
            return self.folder / "blobs"
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="ollama-emulator-")
        return Path(self._scratch.name)

    def partial(self, digest: str, part: int | None = None) -> Path:
        """Return the path of an unfinished download, or of the progress of its part with the number `part`."""
        path = self._file(digest)
        return path.with_name(f"{path.name}{_PARTIAL}" + ("" if part is None else f"-{part}"))

    def _file(self, digest: str) -> Path:
        return self.uploads / digest.replace(":", "-")

    # manifests

    def find(self, name: Name) -> Manifest | None:
        """Return the manifest of a name, compared without case, or None."""
        return self.manifests.get(name.key)

    def with_stored_spelling(self, name: Name) -> Name:
        """Return the name with each part spelled as in a stored name, since names are compared without case."""
        known: dict[str, str] = {}
        for key in sorted(self.manifests, reverse=True):
            known |= {f"{part} {text.lower()}": text for part, text in self.manifests[key].name.parts()}
        return name.with_spelling(known)

    def save(self, name: Name, layers: Iterable[Layer], config: dict[str, Any]) -> Manifest:
        """Store a manifest under a name, whose known spelling stays; remove layers that nothing refers to any more."""
        blob, _ = self.put(cards.config_text(config))
        return self.save_text(name, _manifest_text(Layer(CONFIG, blob.digest, blob.size), tuple(layers)))

    def save_text(self, name: Name, text: bytes, *, prune: bool = True) -> Manifest:
        """Store the text of a manifest, as from a registry, and return it read. `prune` removes layers of the old one.

        Raises: ApiError: 500, its configuration does not exist.
        """
        older = self.manifests.get(name.key)
        known = older.name if older is not None else self.with_stored_spelling(name)
        manifest = self._read(known, text, self.now_ns())
        self.manifests[name.key] = manifest
        self._texts[name.key] = text
        if self.folder is not None:
            file = _manifest_file(self.folder, known)
            file.parent.mkdir(parents=True, exist_ok=True)
            self._write_whole(file, text)
        for layer in older.all if older is not None and prune else ():
            self.drop(layer.digest)
        return manifest

    def copy(self, manifest: Manifest, name: Name) -> None:
        """Store a model under one more name. Layers of the model that had the name are not removed."""
        self.save_text(name, self._texts[manifest.name.key], prune=False)

    def remove(self, name: Name) -> None:
        """Remove a model, and the layers that no other model refers to."""
        gone = self.manifests.pop(name.key)
        self._texts.pop(name.key, None)
        if self.folder is not None:
            _manifest_file(self.folder, gone.name).unlink(missing_ok=True)
        for layer in gone.all:
            self.drop(layer.digest)

    def _unlink(self, digest: str) -> None:
        """Forget a blob and delete its files."""
        blob = self.blobs.pop(digest, None)
        if blob is not None and blob.path is not None:
            blob.path.unlink(missing_ok=True)
        elif blob is not None and self.folder is not None:
            self._file(blob.digest).unlink(missing_ok=True)
            self._file(blob.digest).with_suffix(".card").unlink(missing_ok=True)

    def _read(self, name: Name, text: bytes, modified_ns: int) -> Manifest:
        """Read a manifest that was stored at a time in nanoseconds. Raises: ApiError: 500, it is damaged."""
        found = read_json(text, dict)
        try:
            layers = tuple(map(layer_of, found.get("layers") or ()))
            held = layer_of(found.get("config") or {})
        except (TypeError, ValueError, AttributeError) as fault:
            raise ApiError(500, f"a manifest has a layer that is none: {fault}") from None
        config = read_json(self.content(held.digest), dict) if held.digest else {}
        return Manifest(name, layers, config, held, hashlib.sha256(text).hexdigest(), modified_ns)

    # restarts

    def _load(self, folder: Path) -> None:
        """Read the blobs and manifests that the folder holds."""
        for path in (folder / "blobs").iterdir():
            digest = digest_in(path.stem)
            if path.suffix == ".card" and digest:
                found = json.loads(path.read_text("utf-8"))
                self.blobs[digest] = Blob(digest, found["size"], card=Card(**found["card"]))
            elif digest_in(path.name):
                self.blobs[digest] = Blob(digest, path.stat().st_size, path=path)
        for path in (folder / "manifests").glob("*/*/*/*"):
            host, namespace, model, tag = path.relative_to(folder / "manifests").parts
            name = parse(f"{host}/{namespace}/{model}:{tag}")
            if name is not None:
                text = path.read_bytes()
                with suppress(ApiError):  # like the daemon, skip a broken manifest
                    self.manifests[name.key] = self._read(name, text, path.stat().st_mtime_ns)
                    self._texts[name.key] = text
        self._forget(folder / "blobs")

    def _forget(self, folder: Path) -> None:
        """Remove uploads and unfinished downloads that are old and belong to no model."""
        used = {layer.digest for manifest in self.manifests.values() for layer in manifest.all}
        for path in list(folder.iterdir()):
            digest = digest_in(path.stem if path.suffix == ".card" else path.name)
            if digest not in used and path.stat().st_mtime < time() - _FORGOTTEN_S:
                path.unlink()
                self.blobs.pop(digest, None)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def digest_in(text: str) -> str:
    """Return the digest in a text, as `sha256:` and 64 digits; "" if there is none."""
    found = _DIGEST.match(text)
    return "sha256:" + found[1] if found else ""


def read_json(text: bytes | str, kind: type[Kind]) -> Kind:
    """Return the JSON value in a layer, which must be of `kind`; null becomes an empty one.

    Raises: ApiError: 500, the value is malformed or of another kind.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise ApiError(500, f"a layer that is to be JSON is none: {fault}") from None
    if found is None:
        return kind()
    if not isinstance(found, kind):
        raise ApiError(500, f"a layer holds JSON that is no {kind.__name__}")
    return found


def layer_of(found: dict[str, Any]) -> Layer:
    """Return the layer that an entry of a manifest describes."""
    return Layer(
        str(found.get("mediaType", "")),
        str(found.get("digest", "")),
        int(found.get("size", 0)),
        str(found.get("from", "")),
    )


def _manifest_text(held: Layer, layers: tuple[Layer, ...]) -> bytes:
    """Return a manifest as the JSON that a registry stores."""
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _describe(held),
        "layers": [_describe(layer) for layer in layers],
    }
    return (encode(document) + "\n").encode()


def _describe(layer: Layer) -> dict[str, Any]:
    described: dict[str, Any] = {"mediaType": layer.media, "digest": layer.digest, "size": layer.size}
    return {**described, "from": layer.source} if layer.source else described


def _manifest_file(folder: Path, name: Name) -> Path:
    return folder / "manifests" / name.host / name.namespace / name.model / name.tag
