"""What `make real` fetches: wheels as data, checked by the pins, joined, and kept in the user's cache."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import HANG

from model_files import gguf

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "scripts"
#: The bytes of a model in three parts of unlike sizes.
PIECES = (b"GGUF" * 300, b"\0\1\2" * 500, b"the end")


@pytest.fixture
def fetching(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, which lies beside the one that it imports."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("real_models")


@dataclass(slots=True)
class Index:
    """A package index in a folder: wheels by package, and what was asked for."""

    folder: Path
    asked: list[str] = field(default_factory=list)
    fails_at: str = ""

    def add(self, package: str, members: Mapping[str, bytes]) -> Path:
        """Make a wheel of a package; its code would end whoever imported it."""
        path = self.folder / f"{package}.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.writestr(f"{package}/__init__.py", "raise SystemExit('imported')\n")
            for name, data in members.items():
                wheel.writestr(name, data)
        return path

    def download(self, part: Any, folder: Path) -> Path:
        """Put a wheel into the folder as pip does, or stop as somebody who presses Ctrl-C does."""
        self.asked.append(part.package)
        if part.package == self.fails_at:
            raise KeyboardInterrupt
        target = folder / f"{part.package}.whl"
        target.write_bytes((self.folder / target.name).read_bytes())
        return target


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """An index with a package for each piece."""
    folder = tmp_path / "index"
    folder.mkdir()
    found = Index(folder)
    for number, piece in enumerate(PIECES, 1):
        found.add(f"p{number}", {f"p{number}/data/part.bin": piece, f"p{number}/other.bin": b"not read"})
    return found


@pytest.fixture
def model(fetching: Any, index: Index) -> Any:
    """A model of these pieces."""
    parts = tuple(
        fetching.Part(
            f"p{number}",
            "1.0",
            sha256((index.folder / f"p{number}.whl").read_bytes()).hexdigest(),
            len(piece),
            (f"p{number}/data/part.bin",),
        )
        for number, piece in enumerate(PIECES, 1)
    )
    whole = b"".join(PIECES)
    return fetching.Model("tiny", "these tests", "Apache-2.0", len(whole), sha256(whole).hexdigest(), parts)


def names(folder: Path) -> set[str]:
    """The files in a folder but for the lock."""
    return {path.name for path in folder.iterdir()} - {"tiny.lock"}


def test_parts_are_joined_in_their_order(fetching: Any, index: Index, model: Any, tmp_path: Path) -> None:
    """The file has the named members alone; nothing else is left, and each part was told with how much is there."""
    told: list[str] = []
    path = fetching.fetch(model, tmp_path / "cache", index.download, told.append)
    assert path.read_bytes() == b"".join(PIECES)
    assert names(path.parent) == {"tiny.gguf", "tiny.verified"}
    assert [line.split(";")[0] for line in told[:3]] == [f"tiny: part {n} of 3 (p{n}==1.0)" for n in (1, 2, 3)]
    assert "these tests, licence Apache-2.0" in told[-1]


def test_a_file_that_is_there_is_neither_fetched_nor_read(
    fetching: Any, index: Index, model: Any, tmp_path: Path
) -> None:
    """A second run asks for nothing, and does not even read the file while it is as it was when it was found right."""
    path = fetching.fetch(model, tmp_path / "cache", index.download)
    state = path.stat()
    path.write_bytes(bytes(state.st_size))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    index.asked.clear()
    fetching.fetch(model, path.parent, index.download)
    assert index.asked == []
    os.utime(path)
    assert fetching.fetch(model, path.parent, index.download).read_bytes() == b"".join(PIECES)
    assert index.asked == ["p1", "p2", "p3"], "touched: it was read, found to be another, and fetched anew"


def test_a_right_file_that_was_touched_is_only_read(fetching: Any, index: Index, model: Any, tmp_path: Path) -> None:
    """A file that was copied into the cache, or lost its stamp, is read once and kept."""
    path = fetching.fetch(model, tmp_path / "cache", index.download)
    path.with_suffix(".verified").unlink()
    index.asked.clear()
    fetching.fetch(model, path.parent, index.download)
    assert (index.asked, names(path.parent)) == ([], {"tiny.gguf", "tiny.verified"})


@pytest.mark.parametrize("torn", [0, 700], ids=["between parts", "in the middle of one"])
def test_an_interrupted_run_goes_on_where_it_was(
    fetching: Any, index: Index, model: Any, tmp_path: Path, torn: int
) -> None:
    """No part is fetched twice that was whole; a torn one is fetched anew, and nothing is there under the name."""
    cache = tmp_path / "cache"
    index.fails_at = "p2"
    with pytest.raises(KeyboardInterrupt):
        fetching.fetch(model, cache, index.download)
    assert names(cache) == {"tiny.partial"}
    with (cache / "tiny.partial").open("ab") as partial:
        partial.write(PIECES[1][:torn])
    index.asked.clear()
    index.fails_at = ""
    assert fetching.fetch(model, cache, index.download).read_bytes() == b"".join(PIECES)
    assert index.asked == ["p2", "p3"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sha256": "0" * 64}, r"p2==1\.0 has the SHA-256 \w{64}, and 0{64} is pinned\. It was not read"),
        ({"members": ("p2/none.bin",)}, r"p2==1\.0 has no p2/none\.bin\. Correct real_models\.toml"),
        ({"bytes": 9}, r"p2==1\.0 have not 9 bytes\. Correct real_models\.toml"),
    ],
    ids=["another wheel", "no such member", "another size"],
)
def test_a_wheel_that_is_not_the_pinned_one_is_refused(
    fetching: Any, index: Index, model: Any, tmp_path: Path, change: Mapping[str, Any], told: str
) -> None:
    """The error names the package and the remedy; nothing of the wheel is kept, and the parts before it are."""
    first, second, third = model.parts
    wrong = replace(model, parts=(first, replace(second, **change), third))
    with pytest.raises(fetching.NotFetched, match=told):
        fetching.fetch(wrong, tmp_path / "cache", index.download)
    assert names(tmp_path / "cache") == {"tiny.partial"}
    assert (tmp_path / "cache" / "tiny.partial").read_bytes() == PIECES[0]
    index.asked.clear()
    fetching.fetch(model, tmp_path / "cache", index.download)
    assert index.asked == ["p2", "p3"]


def test_parts_that_make_another_file_are_removed(fetching: Any, index: Index, model: Any, tmp_path: Path) -> None:
    """A part that was spoilt on the disk shows in the digest of the whole: all are fetched anew by the next run."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "tiny.partial").write_bytes(bytes(len(PIECES[0])))
    with pytest.raises(fetching.NotFetched, match=r"they are removed\. Run this again: all are fetched anew"):
        fetching.fetch(model, cache, index.download)
    assert (names(cache), index.asked) == (set(), ["p2", "p3"])
    assert fetching.fetch(model, cache, index.download).read_bytes() == b"".join(PIECES)


#: The shapes of a BERT of one layer: two numbers a token, three places, inner layers of four.
SHAPES = {
    "embeddings.word_embeddings.weight": (7, 2),
    "embeddings.position_embeddings.weight": (3, 2),
    "embeddings.token_type_embeddings.weight": (2, 2),
    "encoder.layer.0.intermediate.dense.weight": (4, 2),
    "encoder.layer.0.intermediate.dense.bias": (4,),
    "encoder.layer.0.output.dense.weight": (2, 4),
    **{
        f"{name}.{part}": (2, 2) if part == "weight" and "LayerNorm" not in name else (2,)
        for name in (
            "embeddings.LayerNorm",
            *(f"encoder.layer.0.attention.self.{each}" for each in ("query", "key", "value")),
            "encoder.layer.0.attention.output.dense",
            "encoder.layer.0.attention.output.LayerNorm",
            "encoder.layer.0.output.LayerNorm",
        )
        for part in ("weight", "bias")
    },
    "encoder.layer.0.output.dense.bias": (2,),
}
PIECES_OF_WORDS = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nmind\n##s\n"


def _bert(path: Path, shapes: Mapping[str, tuple[int, ...]], vocabulary: str = PIECES_OF_WORDS) -> Path:
    """A safetensors file of rising numbers, with a vocabulary behind it."""
    at, header, data = 0, {}, b""
    for name, shape in shapes.items():
        weights = struct.pack(f"<{prod(shape)}f", *range(at, at + prod(shape)))
        offsets = [len(data), len(data) + len(weights)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
        data, at = data + weights, at + prod(shape)
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data + vocabulary.encode())
    return path


def test_an_embedder_is_written_with_its_weights_as_they_are(fetching: Any, tmp_path: Path) -> None:
    """The header has the numbers, marks and pieces of its kind; of the places there are as many as the window has."""
    about = {"name": "mini", "licence": "Apache-2.0", "heads": 1, "window": 2}
    target = tmp_path / "mini.gguf"
    fetching.bert_gguf.write(_bert(tmp_path / "joined", SHAPES), target, about)
    header = gguf.read(target)
    assert [header.metadata[f"bert.{key}"] for key in ("block_count", "context_length", "embedding_length")] == [
        1,
        2,
        2,
    ]
    assert header.metadata["tokenizer.ggml.tokens"] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "▁mind", "s"]
    assert header.metadata["tokenizer.ggml.seperator_token_id"] == 3
    tensors = {tensor.name: tensor for tensor in header.tensors}
    assert len(tensors) == len(SHAPES)
    places = tensors["position_embd.weight"]
    assert places.shape == (2, 2)
    start = header.data + places.offset
    assert struct.unpack("<4f", target.read_bytes()[start : start + 16]) == (14.0, 15.0, 16.0, 17.0)


@pytest.mark.parametrize(
    ("absent", "vocabulary"),
    [
        ("embeddings.LayerNorm.bias", PIECES_OF_WORDS),
        ("", "[PAD]\n[UNK]\n"),
        ("", PIECES_OF_WORDS.replace("[SEP]", "x")),
    ],
    ids=["a tensor", "pieces", "a mark"],
)
def test_an_embedder_that_lacks_something_is_refused(
    fetching: Any, tmp_path: Path, absent: str, vocabulary: str
) -> None:
    """What is no embedder of that kind makes no file that is kept."""
    shapes = {name: shape for name, shape in SHAPES.items() if name != absent}
    source = _bert(tmp_path / "joined", shapes, vocabulary)
    with pytest.raises(ValueError, match=r"lacks|names 2|not in list"):
        fetching.bert_gguf.write(source, tmp_path / "x", {"name": "x", "licence": "", "heads": 1, "window": 2})


def test_joined_parts_that_are_no_embedder_are_removed(fetching: Any, index: Index, model: Any, tmp_path: Path) -> None:
    """Where a file is to be made of the parts, parts of which none can be are removed as those of a wrong digest."""
    with pytest.raises(fetching.NotFetched, match="do not make the file that is pinned"):
        fetching.fetch(replace(model, bert={"heads": 1, "window": 2}), tmp_path / "cache", index.download)
    assert names(tmp_path / "cache") == set()


def test_too_little_room_is_told_before_anything_is_fetched(
    fetching: Any, index: Index, model: Any, tmp_path: Path
) -> None:
    """The error says how much is needed and how to put the cache elsewhere."""
    large = replace(model, parts=(replace(model.parts[0], bytes=1 << 60),))
    with pytest.raises(fetching.NotFetched, match=r"needs [\d,]+ MB in .+ are free\. Make room, or set XDG_CACHE_HOME"):
        fetching.fetch(large, tmp_path / "cache", index.download)
    assert index.asked == []


def test_two_runs_do_not_mix(fetching: Any, model: Any, tmp_path: Path) -> None:
    """A run of the same model elsewhere holds the lock; the second says that it waits, and for whom."""
    lock = tmp_path / "tiny.lock"
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        held.close()

    held = lock.open("w")
    fcntl.flock(held, fcntl.LOCK_EX)
    with fetching._alone(lock, tell):
        assert told == [f"Another run is fetching the same model ({lock}); waiting for it ..."]


def test_pip_is_asked_for_an_exact_wheel_alone(fetching: Any, model: Any, tmp_path: Path) -> None:
    """No index is there in this process' place: pip's failure is an error with the package and what to do."""
    script = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import real_models\n"
        "part = real_models.Part('batos-no-such-part', '9.9', '', 0, ())\n"
        "try: real_models.by_pip(part, pathlib.Path(sys.argv[2]))\n"
        "except real_models.NotFetched as fault: print(fault)\n"
    )
    environ = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(SCRIPTS), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=environ,
        timeout=HANG,
    )
    assert done.stdout.startswith("pip did not fetch batos-no-such-part==9.9."), done.stderr
    assert "the parts that are there are kept" in done.stdout


def test_the_pins_are_whole(fetching: Any) -> None:
    """Each model has its origin and licence; versions and digests are exact, and parts add up to the file."""
    pins = fetching.read_pins()
    assert list(pins) == ["smollm2", "qwen-0.5b", "qwen-1.5b", "all-minilm"]
    for model in pins.values():
        assert model.origin
        assert model.licence == "Apache-2.0"
        digests = [model.sha256, *(part.sha256 for part in model.parts)]
        assert all(len(each) == 64 and int(each, 16) for each in digests)
        assert len(set(digests)) == len(digests)
        assert all(part.version.replace(".", "").isdigit() and part.members for part in model.parts)
        assert bool(model.bert) or sum(part.bytes for part in model.parts) == model.bytes


def test_what_is_shipped_names_none_of_the_packages(fetching: Any) -> None:
    """The packages, docs and extras of the wheel say nothing of where the tests' models come from."""
    packages = {part.package for model in fetching.read_pins().values() for part in model.parts}
    spelled = packages | {package.replace("-", "_") for package in packages}
    assert len(packages) == 30
    texts = {path.relative_to(ROOT): path.read_text("utf-8") for path in _shipped()}
    assert [(path, name) for path, text in texts.items() for name in spelled if name in text] == []


def _shipped() -> Iterable[Path]:
    yield ROOT / "pyproject.toml"
    yield ROOT / "constraints.txt"
    for folder in ("src", "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".md", ".toml", ".txt", ".json"}:
                yield path
