"""The file of a real model: where it is found, what it is called, and how it is stored."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from tests.ollama_emulator.voices.real_models import MODELS

from ollama_emulator.emulator_errors import OptionError
from ollama_emulator.library.cards import Card
from ollama_emulator.library.store import Store
from ollama_emulator.options import Options
from ollama_emulator.voices import gguf_model, model_cache

TINY = MODELS / "tiny-a.gguf"


def _finder(*installed: str) -> gguf_model.Finder:
    """A `find_spec` in whose environment only these packages are installed, each without files."""

    def find(name: str) -> object | None:
        return object() if name in installed else None

    return find


@pytest.mark.parametrize(
    ("text", "installed", "told"),
    [
        ("smollm2", (), "xllamacpp"),
        (str(TINY), ("torch",), "xllamacpp"),
    ],
)
def test_what_is_missing_is_told_with_the_command(text: str, installed: tuple[str, ...], told: str) -> None:
    """Without the library the error names it, and the command that installs it, whatever is asked for."""
    with pytest.raises(OptionError, match=told) as caught:
        gguf_model.find(text, _finder(*installed))
    assert caught.value.field == "gguf"
    assert "`make real`" in caught.value.remedy


def test_a_file_is_found_by_its_path(tmp_path: Path) -> None:
    """A path is that file; one at which nothing lies is refused."""
    assert gguf_model.find(str(TINY), _finder("xllamacpp")) == TINY
    with pytest.raises(OptionError, match="there is no file"):
        gguf_model.find(str(tmp_path / "none.gguf"), _finder("xllamacpp"))


def test_a_name_is_a_file_of_the_cache(tmp_path: Path) -> None:
    """XDG_CACHE_HOME moves the cache, unless it is relative; a path comes before a name."""
    cached = tmp_path / "batos" / "models" / "qwen-1.5b.gguf"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"")
    for environ in ({"XDG_CACHE_HOME": str(tmp_path)}, {"XDG_CACHE_HOME": str(tmp_path), "HOME": "/nowhere"}):
        assert gguf_model.find("qwen-1.5b", _finder("xllamacpp"), environ) == cached
    assert model_cache.models_folder({"HOME": "/home/a"}) == Path("/home/a/.cache/batos/models")
    assert model_cache.models_folder({"HOME": "/home/a", "XDG_CACHE_HOME": "b"}) == Path("/home/a/.cache/batos/models")


@pytest.mark.parametrize("text", ["smollm2", "qwen-1.5b"])
def test_a_name_that_is_not_in_the_cache_is_told_with_the_command(tmp_path: Path, text: str) -> None:
    """Nothing is downloaded: the error says where it was looked for, and what brings it there."""
    with pytest.raises(OptionError, match=rf"neither a file {text} nor a model of that name in the cache") as caught:
        gguf_model.find(text, _finder("xllamacpp"), {"XDG_CACHE_HOME": str(tmp_path)})
    assert str(tmp_path) in caught.value.message
    assert f"`make real MODEL={text}`" in caught.value.remedy
    assert not [*tmp_path.iterdir()]


@pytest.mark.real
def test_the_embedder_of_the_cache_stands_beside_a_model_that_writes() -> None:
    """Unless another embedder is given, or a function that embeds; the one that writes comes first."""
    base, embedder = MODELS / "tiny-a.gguf", MODELS / "tiny-embed.gguf"

    def names(options: Options) -> list[str]:
        with closing(Store(lambda: 1)) as stored:
            return [model.name.model for model in gguf_model.install_all(stored, options)]

    assert names(Options(gguf=base)) == ["tiny-a", "all-minilm"]
    assert names(Options(gguf=base, embedder=lambda text: [1.0])) == ["tiny-a"]
    assert names(Options(gguf=(embedder, base))) == ["tiny-a", "tiny-embed"]
    assert names(Options(gguf=embedder)) == ["tiny-embed"]


@pytest.mark.real
def test_two_models_of_one_kind_are_refused() -> None:
    """A request's name does not say which of the two would answer."""
    both = Options(gguf=(MODELS / "tiny-a.gguf", MODELS / "tiny-b.gguf"))
    with (
        closing(Store(lambda: 1)) as stored,
        pytest.raises(OptionError, match="one model that writes and one embedder"),
    ):
        gguf_model.install_all(stored, both)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ({"basename": "smollm2", "size_label": "135M"}, "smollm2:135m"),
        ({"basename": "Qwen2.5", "size_label": "0.5B"}, "qwen2.5:0.5b"),
        ({"name": "Tiny Llama (chat)"}, "tiny-llama-chat:latest"),
        ({}, "my-file:latest"),
    ],
)
def test_the_header_gives_the_name(header: Mapping[str, str], name: str) -> None:
    """Base and size as the library writes them, else the title, else the name of the file."""
    card = Card({f"general.{key}": value for key, value in header.items()}, 1, "F16")
    assert gguf_model.name_of(card, "My File").display == name


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (134_515_008, "a real and very small model of 134.52M"),
        (8_030_261_248, "a real model of 8.0B"),
    ],
)
def test_the_notice_tells_the_size(parameters: int, words: str) -> None:
    """What answers is a real model, and a very small one is called so."""
    assert gguf_model.notice(Card({}, parameters, "F16")) == f"{words} parameters, run by llama.cpp"


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in a folder"])
async def test_a_file_becomes_a_model(tmp_path: Path, kept: bool) -> None:
    """The weights have the file's own digest and bytes; removing the model leaves the file where it is."""
    file = tmp_path / "tiny.gguf"
    file.write_bytes(TINY.read_bytes())
    stored = Store(lambda: 1, tmp_path / "store" if kept else None)
    manifest = await asyncio.to_thread(gguf_model.install, stored, file)
    weights = manifest.layers[0]
    assert weights.digest == "sha256:" + hashlib.sha256(TINY.read_bytes()).hexdigest()
    blob = stored.blobs[weights.digest].path
    assert blob is not None
    assert blob.is_symlink() is not kept
    assert blob.read_bytes() == TINY.read_bytes()
    stored.remove(manifest.name)
    assert (blob.exists(), file.exists()) == (False, True)
    stored.close()


@pytest.mark.parametrize("name", ["babs-lora.gguf", "peft"])
def test_what_is_no_model_is_refused(name: str) -> None:
    """An adapter, or what is no GGUF file, is an error of the option."""
    path = MODELS / name if name.endswith("gguf") else Path(__file__)
    with pytest.raises(OptionError, match=r"no whole model|cannot be read"):
        gguf_model.install(Store(lambda: 1), path)
