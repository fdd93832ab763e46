"""The daemon's store: blobs by digest and manifests by name, in memory or under a folder."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from batos.emulator import cards
from batos.emulator.cards import Card
from batos.emulator.names import Name, parse
from batos.emulator.replies import ApiError
from batos.weights import gguf
from batos.weights.bounded import NotWeights

IN_MEMORY = "/emulator/models"
MODEL = "application/vnd.ollama.image.model"
ADAPTER = "application/vnd.ollama.image.adapter"
TEMPLATE = "application/vnd.ollama.image.template"
SYSTEM = "application/vnd.ollama.image.system"
PARAMS = "application/vnd.ollama.image.params"
MESSAGES = "application/vnd.ollama.image.messages"
LICENSE = "application/vnd.ollama.image.license"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})\Z", re.ASCII)


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Blob:
    """Content by digest: small `data`, an uploaded file at `path`, or weights that exist only as their card."""

    digest: str
    size: int
    data: bytes | None = None
    path: Path | None = None
    card: Card | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """One entry of a manifest; `note` is what create says of it."""

    media: str
    digest: str
    size: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A model as stored: its layers in order and its configuration."""

    name: Name
    layers: tuple[Layer, ...]
    config: dict[str, Any]
    digest: str
    modified_ns: int

    @property
    def size(self) -> int:
        """Bytes of all layers, shared ones included."""
        return sum(layer.size for layer in self.layers)


@dataclass(slots=True)
class Store:
    """Blobs and manifests; `folder` keeps them across restarts, without one uploads go to a temporary folder."""

    now_ns: Callable[[], int]
    folder: Path | None = None
    blobs: dict[str, Blob] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=dict)
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
        """Where the daemon would say that a blob lies."""
        root = str(self.folder.resolve()) if self.folder is not None else IN_MEMORY
        return f"{root}/blobs/{digest.replace(':', '-')}"

    def put(self, data: bytes) -> tuple[Blob, bool]:
        """Keep small content; answers the blob and whether it is new."""
        digest = digest_of(data)
        if digest in self.blobs:
            return self.blobs[digest], False
        blob = Blob(digest, len(data), data=data)
        self.blobs[digest] = blob
        if self.folder is not None:
            self._file(digest).write_bytes(data)
        return blob, True

    def put_card(self, digest: str, size: int, card: Card) -> Blob:
        """Weights that exist only as what they say of themselves."""
        blob = Blob(digest, size, card=card)
        self.blobs[digest] = blob
        if self.folder is not None:
            described = {"size": size, "card": asdict(card)}
            self._file(digest).with_suffix(".card").write_text(json.dumps(described), "utf-8")
        return blob

    async def receive(self, claimed: str, pieces: AsyncIterator[bytes]) -> int:
        """Take an upload; the status, 201 or 200. ApiError 400 for another digest (kept under its true one)."""
        if claimed in self.blobs:
            return 200
        hasher = hashlib.sha256()
        with tempfile.NamedTemporaryFile(dir=self.uploads, prefix="partial-", delete=False) as target:
            try:
                async for piece in pieces:
                    hasher.update(piece)
                    target.write(piece)
                digest = "sha256:" + hasher.hexdigest()
                self._keep(digest, Path(target.name), target.tell())
            except BaseException:
                _remove(Path(target.name))  # the client left, or the disk is full
                raise
        if digest != claimed:
            raise ApiError(400, f'digest mismatch, expected "{claimed}", got "{digest}"')
        return 201

    def _keep(self, digest: str, path: Path, size: int) -> None:
        self.blobs[digest] = Blob(digest, size, path=path.rename(self._file(digest)))

    def content(self, digest: str) -> bytes:
        """The bytes of a blob that has some; ApiError 500 in the words of a missing file otherwise."""
        blob = self.blobs.get(digest)
        if blob is None:
            raise ApiError(500, f"open {self.blob_path(digest)}: no such file or directory")
        if blob.data is not None:
            return blob.data
        return blob.path.read_bytes() if blob.path is not None else b""

    def card(self, digest: str) -> Card | None:
        """What the blob's weights say of themselves; None when it is no GGUF."""
        blob = self.blobs.get(digest)
        if blob is None or blob.card is not None or blob.path is None:
            return blob.card if blob is not None else None
        try:
            card = cards.of_header(gguf.read(blob.path))
        except NotWeights:
            return None
        self.blobs[digest] = replace(blob, card=card)
        return card

    @property
    def uploads(self) -> Path:
        """The folder that uploads are written to."""
        if self.folder is not None:
            return self.folder / "blobs"
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="batos-emulator-")
        return Path(self._scratch.name)

    def _file(self, digest: str) -> Path:
        return self.uploads / digest.replace(":", "-")

    # manifests

    def find(self, name: Name) -> Manifest | None:
        return self.manifests.get(name.key)

    def save(self, name: Name, layers: Iterable[Layer], config: dict[str, Any]) -> Manifest:
        """Write a manifest, replacing one of that name (whose spelling stays), and drop layers nobody refers to."""
        kept = tuple(layers)
        older = self.manifests.get(name.key)
        known = older.name if older is not None else name
        blob, _ = self.put(json.dumps(config, separators=(",", ":")).encode())
        text = _manifest_text(blob, kept)
        self.manifests[name.key] = Manifest(known, kept, config, hashlib.sha256(text).hexdigest(), self.now_ns())
        if self.folder is not None:
            self._manifest_file(known).parent.mkdir(parents=True, exist_ok=True)
            self._manifest_file(known).write_bytes(text)
        if older is not None:
            self._prune(older.layers)
        return self.manifests[name.key]

    def remove(self, name: Name) -> None:
        """Forget a model and the layers that only it had."""
        gone = self.manifests.pop(name.key)
        if self.folder is not None:
            self._manifest_file(gone.name).unlink(missing_ok=True)
        self._prune(gone.layers)

    def _prune(self, layers: Iterable[Layer]) -> None:
        used = {layer.digest for manifest in self.manifests.values() for layer in manifest.layers}
        for layer in layers:
            if layer.digest in used:
                continue
            blob = self.blobs.pop(layer.digest, None)
            if blob is not None and blob.path is not None:
                blob.path.unlink(missing_ok=True)
            elif blob is not None and self.folder is not None:
                self._file(blob.digest).unlink(missing_ok=True)
                self._file(blob.digest).with_suffix(".card").unlink(missing_ok=True)

    def _manifest_file(self, name: Name) -> Path:
        assert self.folder is not None
        return self.folder / "manifests" / name.host / name.namespace / name.model / name.tag

    # restarts

    def _load(self, folder: Path) -> None:
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
                self._load_manifest(name, path)

    def _load_manifest(self, name: Name, path: Path) -> None:
        text = path.read_bytes()
        found = json.loads(text)
        layers = tuple(Layer(layer["mediaType"], layer["digest"], layer["size"]) for layer in found["layers"])
        config = json.loads(self.content(found["config"]["digest"]))
        digest = hashlib.sha256(text).hexdigest()
        self.manifests[name.key] = Manifest(name, layers, config, digest, path.stat().st_mtime_ns)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def digest_in(text: str) -> str:
    """The canonical digest that a path segment names, or nothing."""
    found = _DIGEST.match(text)
    return "sha256:" + found[1] if found else ""


def _manifest_text(config: Blob, layers: tuple[Layer, ...]) -> bytes:
    document = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": {"mediaType": _CONFIG, "digest": config.digest, "size": config.size},
        "layers": [{"mediaType": layer.media, "digest": layer.digest, "size": layer.size} for layer in layers],
    }
    return json.dumps(document, separators=(",", ":")).encode()
