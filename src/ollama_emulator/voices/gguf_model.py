"""Find the GGUF files of real models, in the user's cache too, and store them under the names in their headers."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from model_files import gguf
from model_files.bounded import NotWeights
from ollama_emulator.emulator_errors import OptionError
from ollama_emulator.go.json import human_number, layer_text
from ollama_emulator.library import cards, models, store
from ollama_emulator.library.cards import Card
from ollama_emulator.library.model_tags import Name, parse
from ollama_emulator.library.models import Model
from ollama_emulator.library.store import Layer, Manifest, Store
from ollama_emulator.options import Options
from ollama_emulator.templating import templates
from ollama_emulator.tokenizers import vocabulary
from ollama_emulator.voices import model_cache

_RUNS_IT = "xllamacpp"
_REMEDY = "Run `make real` in the checkout, or `pip install xllamacpp`."
_CACHED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SMALL = 4_000_000_000  # parameters under which a model is called very small
_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]+")


Finder = Callable[[str], object | None]


def find(text: str, find_spec: Finder = find_spec, environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of a GGUF file, or of the one of that name in the user's cache; nothing is downloaded.

    `find_spec` tells what is installed, `environ` where the cache is (None: this process' own). Raises: OptionError:
    there is no such file, or nothing installed that runs it.
    """
    if find_spec(_RUNS_IT) is None:
        raise OptionError("--gguf needs the package xllamacpp, which is not installed", field="gguf", remedy=_REMEDY)
    path = Path(text)
    if path.is_file():
        return path
    if not _CACHED.fullmatch(text) or path.suffix == ".gguf":
        raise OptionError(f"there is no file {text}", field="gguf", remedy="Name a GGUF file, or one in the cache.")
    cached = model_cache.cached_model(text, environ)
    if not cached.is_file():
        raise OptionError(
            f"there is neither a file {text} nor a model of that name in the cache ({cached.parent})",
            field="gguf",
            remedy=f"Run `make real MODEL={text}` in the checkout, or name a GGUF file.",
        )
    return cached


def install_all(stored: Store, options: Options) -> list[Model]:
    """Store the models of `--gguf` and return them, the one that writes first.

    If no embedder is given, the one of the cache stands beside it, where it is there. Raises: OptionError: one is
    missing or no model, or two are of one kind.
    """
    given = [options.gguf] if isinstance(options.gguf, Path | str) else options.gguf
    headers = {path: _header(path) for path in (find(str(each), environ=options.environ) for each in given)}
    if len({card.embeds for card in headers.values()}) < len(given):
        raise OptionError(
            f"--gguf takes one model that writes and one embedder, and got {' and '.join(map(str, given))}",
            field="gguf",
            remedy="Leave one of them out, or start a second emulator.",
        )
    beside = model_cache.cached_model(model_cache.EMBEDDER, options.environ)
    if options.embedder is None and not any(card.embeds for card in headers.values()) and beside.is_file():
        headers[beside] = _header(beside)
    # The newest model is listed first: the one that writes.
    ordered = sorted(headers, key=lambda path: headers[path].embeds, reverse=True)
    found = [models.resolve(stored, install(stored, path, headers[path])) for path in ordered]
    return found[::-1]


def install(stored: Store, path: Path, card: Card | None = None) -> Manifest:
    """Store a GGUF file as a model, as `create` does, and return its manifest; the file itself is not changed.

    `card` is its metadata where they were read before. Without a folder the store links to the file, with one it keeps
    a copy. Raises: OptionError: it is no GGUF model.
    """
    card = card or _header(path)
    with path.open("rb") as source:
        digest = "sha256:" + hashlib.file_digest(source, "sha256").hexdigest()
    if card.adapter or card.projector:
        raise OptionError(f"{path} is no whole model", field="gguf", remedy="Name the GGUF file of a model.")
    size = path.stat().st_size
    if digest not in stored.blobs:
        _keep(stored, digest, path, size)
    vocabulary.vocabulary_of(digest, card)  # built before the first request, since that takes a moment
    texts = {store.LICENSE: f"{card.info.get('general.license', 'unknown licence')}\n{notice(card)}.".encode()}
    detected = templates.detect(card.template)
    if detected is not None:
        _, template, parameters = detected
        texts[store.TEMPLATE] = template.encode()
        texts[store.PARAMS] = layer_text(parameters) if parameters else b""
    layers = [Layer(store.MODEL, digest, size)]
    for media, data in texts.items():
        if data:
            blob, _ = stored.put(data)
            layers.append(Layer(media, blob.digest, blob.size))
    return stored.save(name_of(card, path.stem), layers, cards.config(card))


def _header(path: Path) -> Card:
    """Return the metadata of a GGUF file. Raises: OptionError: it is none."""
    try:
        return cards.card_of_header(gguf.read(path))
    except (NotWeights, OSError) as fault:
        raise OptionError(f"{path} cannot be read: {fault}", field="gguf", remedy="Name a whole GGUF file.") from fault


def _keep(stored: Store, digest: str, path: Path, size: int) -> None:
    """Put a file among the blobs: as a link, or as a copy that outlives the file where models are kept."""
    place = stored.uploads / f"gguf-{digest[-12:]}"
    place.unlink(missing_ok=True)
    if stored.folder is None:
        place.symlink_to(path.resolve())
    else:
        shutil.copyfile(path, place)
    stored.adopt(digest, place, size)


def name_of(card: Card, stem: str) -> Name:
    """Return the name in a header, such as `smollm2:135m`: its base and its size, else its title, else the file's."""
    base, size = (_part(card.info.get(f"general.{key}")) for key in ("basename", "size_label"))
    title = _part(card.info.get("general.name")) or _part(stem)
    found = parse(f"{base or title}:{size}" if size else base or title)
    if found is None:
        raise OptionError(
            f"the header of {stem} gives no name", field="gguf", remedy="Rename the file: letters, digits."
        )
    return found


def _part(value: object) -> str:
    """Return a text of a header as a part of a model name, "" for none."""
    return _NOT_IN_NAMES.sub("-", str(value or "").lower()).strip("-._")


def notice(card: Card) -> str:
    """Return the sentence that says what answers: a real model, how large, and that llama.cpp runs it."""
    small = " and very small" if card.parameters < _SMALL else ""
    return f"a real{small} model of {human_number(card.parameters)} parameters, run by llama.cpp"
