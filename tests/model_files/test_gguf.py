"""The header of a GGUF file."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model_files.building import MODELS, gguf, lora, text, value

from model_files.bounded import NotWeights
from model_files.gguf import ELEMENTS, GgufHeader, read, shortest

METADATA: list[tuple[str, str, Any]] = [
    ("general.architecture", "str", "llama"),
    ("llama.block_count", "u32", 2),
    ("llama.rope.freq_base", "f32", 0.1),
    ("tokenizer.ggml.tokens", "[str]", ["<s>", "a", "ö"]),
    ("tokenizer.ggml.scores", "[f32]", [0.0, -1.5, -0.1]),
    ("tokenizer.ggml.add_bos_token", "bool", True),
]
SHAPES = {"token_embd.weight": (64, 3), "blk.0.attn_q.weight": (64, 64), "output_norm.weight": (64,)}


def written(folder: Path, data: bytes) -> Path:
    path = folder / "a.gguf"
    path.write_bytes(data)
    return path


def test_a_header_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Keys come in order with their values, floats with the fewest digits; tensors with type, shape and size."""
    header = read(written(tmp_path, gguf(METADATA, SHAPES)))
    assert list(header.metadata.items()) == [(key, content) for key, _, content in METADATA]
    assert [(each.name, each.type, each.shape, each.size) for each in header.tensors] == [
        ("token_embd.weight", "F32", (64, 3), 768),
        ("blk.0.attn_q.weight", "F32", (64, 64), 16384),
        ("output_norm.weight", "F32", (64,), 256),
    ]
    assert header.parameters == 64 * 3 + 64 * 64 + 64
    assert header.cut is None


def test_arrays_may_be_gone_past(tmp_path: Path) -> None:
    """Without arrays each stands as None, and everything behind them is read all the same."""
    path = written(tmp_path, gguf(METADATA, SHAPES))
    whole, short = read(path), read(path, arrays=False)
    assert short.tensors == whole.tensors
    assert [key for key, content in short.metadata.items() if content is None] == [
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.scores",
    ]


def test_files_of_a_real_tool_are_read() -> None:
    """The bases and adapters that a real daemon ran are read, and their last tensor ends where the file does."""
    for path in sorted(MODELS.glob("*.gguf")):
        header = read(path)
        assert header.cut is None
        assert header.data + header.tensors[-1].offset + (header.tensors[-1].size or 0) == path.stat().st_size


def test_a_file_that_was_cut_says_which_tensor_is_gone(tmp_path: Path) -> None:
    """The header of a file whose end is missing is read, and names the first tensor that is not whole."""
    header = read(written(tmp_path, gguf(METADATA, SHAPES, cut=300)))
    assert header.cut is not None
    assert header.cut.name == "blk.0.attn_q.weight"
    assert read(written(tmp_path, gguf(METADATA, SHAPES, cut=10))).cut == header.tensors[-1]


WRONG: list[tuple[bytes, str]] = [
    (b"", "does not begin"),
    (b"GGU", "does not begin"),
    (b"gguf" + b"\0" * 40, "does not begin"),
    (b"GGUF", "ends too early"),
    (gguf([], {}, version=1), "version is 1"),
    (b"GGUF" + struct.pack(">I", 3) + b"\0" * 16, "big-endian"),
    (b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 0), "claims"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 63), "claims"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 62), "a name of"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IQ", 8, 1 << 62), "a text of"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IQ", 8, 900), "ends too early"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", 9, 0, 1 << 40), "elements"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", 9, 9, 1), "unknown type 9"),
    (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", 77), "unknown type 77"),
    (gguf([("k", "u32", 1), ("k", "u32", 2)], {}), "stands twice"),
    (gguf([("general.alignment", "u32", 0)], {}), "power of two"),
    (gguf([("general.alignment", "u32", 24)], {}), "power of two"),
    (gguf([], {"t": (1, 1, 1, 1, 1)}), "5 dimensions"),
    (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("t") + struct.pack("<I2QIQ", 2, 1 << 40, 1 << 40, 0, 0), "shape"),
    (b"GGUF" + struct.pack("<IQQ", 3, 2, 0) + 2 * (text("t") + struct.pack("<IQIQ", 1, 1, 0, 0)), "one name"),
]


@pytest.mark.parametrize(("data", "said"), WRONG)
def test_what_is_no_gguf_says_why(tmp_path: Path, data: bytes, said: str) -> None:
    """Each way of being wrong is told, with the key, tensor or count at which it is."""
    with pytest.raises(NotWeights, match=said):
        read(written(tmp_path, data))


def test_a_hostile_header_takes_little_memory(tmp_path: Path) -> None:
    """A file that claims everything is refused before anything is made room for."""
    for data, _ in WRONG:
        path = written(tmp_path, data)
        tracemalloc.start()
        with pytest.raises(NotWeights):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
        tracemalloc.stop()


def test_all_arrays_together_are_bounded(tmp_path: Path) -> None:
    """Many small arrays do not make one large one: their elements are counted together, read or gone past."""
    half = ("u8s", "[u8]", bytes(ELEMENTS // 2 + 1))
    path = written(tmp_path, gguf([half, ("more", *half[1:])], {}))
    for arrays in (True, False):
        with pytest.raises(NotWeights, match="elements"):
            read(path, arrays=arrays)


def test_a_type_nobody_knows_is_no_error(tmp_path: Path) -> None:
    """A tensor of a type that is newer than this program has a number for a name and no size."""
    header = read(written(tmp_path, gguf([], {"t": (32, 2)}, kind=99)))
    assert (header.tensors[0].type, header.tensors[0].size) == ("type 99", None)
    assert header.cut is None


def test_long_names_are_not_repeated_whole() -> None:
    """What a file says of itself does not fill a screen."""
    assert len(str(NotWeights("it is wrong", "n" * 10_000))) < 200


def told(folder: Path, data: bytes, **options: bool) -> GgufHeader | NotWeights:
    try:
        return read(written(folder, data), **options)
    except NotWeights as error:
        return error


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=400), whole=st.booleans())
def test_any_bytes_are_a_header_or_refused(reused_folder: Path, data: bytes, whole: bool) -> None:
    """No bytes behind the magic make anything but a header or NotWeights."""
    start = b"GGUF" + struct.pack("<I", 3)
    assert isinstance(told(reused_folder, start + data, arrays=whole), GgufHeader | NotWeights)


@settings(max_examples=100, deadline=None)
@given(at=st.integers(0, 600), byte=st.integers(0, 255), length=st.integers(0, 600))
def test_any_damage_is_a_header_or_refused(reused_folder: Path, at: int, byte: int, length: int) -> None:
    """A sound file with a byte changed, or cut anywhere, is a header or NotWeights."""
    data = bytearray(gguf(METADATA, {"t": (4, 4)}))
    data[at % len(data)] = byte
    for damaged in (bytes(data), bytes(data[: length % len(data)])):
        assert isinstance(told(reused_folder, damaged), GgufHeader | NotWeights)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_shortest_number_is_the_same_in_32_bits(number: float) -> None:
    """What is shown of a 32-bit float is that float."""
    assert struct.pack("<f", shortest(number)) == struct.pack("<f", number)


def test_an_adapter_is_small(tmp_path: Path) -> None:
    """The metadata of an adapter is what `adapter.*` and `general.*` say."""
    header = read(written(tmp_path, lora()))
    assert header.metadata["adapter.lora.alpha"] == 8.0
    assert header.metadata["general.type"] == "adapter"
    assert value("u32", 3) == struct.pack("<II", 4, 3)
