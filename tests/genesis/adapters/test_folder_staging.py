"""Adapters laid out for `ollama create -f`."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import pytest
from tests.genesis.loras import gguf_adapter, peft_adapter

from batos.genesis.adapters.folder import adapter_line_path, discover, stage, tidy
from batos.genesis.adapters.inventory import Adapter
from batos.protocol.errors import UsageError

#: What today's command line takes out of a folder.
SEEN = ("model*.safetensors", "consolidated*.safetensors", "pytorch_model*.bin", "*.gguf", "*.bin", "*.json")


@pytest.fixture
def adapters(tmp_path: Path) -> Path:
    """A PEFT adapter of ROBIN's."""
    folder = tmp_path / "adapters"
    peft_adapter(folder / "robin" / "Warm")
    return folder


def first(folder: Path) -> Adapter:
    return discover(folder).adapters[0]


def contents(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


def test_a_peft_folder_goes_by_the_names_that_are_seen(adapters: Path, tmp_path: Path) -> None:
    """Both files are there, unchanged, under names of which the command line takes every one."""
    place = stage(tmp_path / "modelfiles", first(adapters))
    found = contents(place)
    source = adapters / "robin" / "Warm"
    assert found == {
        "model.safetensors": (source / "adapter_model.safetensors").read_bytes(),
        "adapter_config.json": (source / "adapter_config.json").read_bytes(),
    }
    assert all(any(fnmatch.fnmatch(name, sign) for sign in SEEN) for name in found)
    assert any(fnmatch.fnmatch("model.safetensors", sign) for sign in SEEN[:1])


def test_weights_are_not_there_twice(adapters: Path, tmp_path: Path) -> None:
    """On one disk they are linked, not copied."""
    place = stage(tmp_path / "modelfiles", first(adapters))
    assert (place / "model.safetensors").samefile(adapters / "robin" / "Warm" / "adapter_model.safetensors")


def test_what_is_laid_out_is_left_alone(adapters: Path, tmp_path: Path) -> None:
    """A second time changes nothing, and leaves no trace of its own."""
    folder = tmp_path / "modelfiles"
    place = stage(folder, first(adapters))
    before = place.stat()
    assert stage(folder, first(adapters)) == place
    assert place.stat() == before
    assert [path.name for path in (folder / "adapters").iterdir()] == [place.name]


def test_what_was_left_half_is_made_whole(adapters: Path, tmp_path: Path) -> None:
    """A process that died in between leaves nothing that counts, and nothing that stays."""
    folder = tmp_path / "modelfiles"
    place = stage(folder, first(adapters))
    whole = contents(place)
    (place / "model.safetensors").unlink()
    begun = folder / "adapters" / f".begun-{place.name}.1"
    begun.mkdir()
    (begun / "model.safetensors").write_bytes(b"half")
    assert contents(stage(folder, first(adapters))) == whole
    assert tidy(folder, [first(adapters)]) == [begun]


def test_other_content_has_a_place_of_its_own(adapters: Path, tmp_path: Path) -> None:
    """A Modelfile that was written before still names what it was written for, until it is tidied away."""
    folder = tmp_path / "modelfiles"
    before = stage(folder, first(adapters))
    peft_adapter(adapters / "robin" / "Warm", {"lora_alpha": 16})
    after = stage(folder, first(adapters))
    assert before != after
    assert tidy(folder, [first(adapters)]) == [before]
    assert after.is_dir()
    assert not before.exists()


def test_what_is_not_ours_is_not_tidied_away(adapters: Path, tmp_path: Path) -> None:
    """A folder with anything else in it, or a link, is somebody's own."""
    folder = tmp_path / "modelfiles"
    place = stage(folder, first(adapters))
    (place / "notes.txt").write_text("mine")
    (folder / "adapters" / "batos-linked").symlink_to(adapters)
    (folder / "adapters" / "other").mkdir()
    assert tidy(folder, []) == []
    assert tidy(tmp_path / "absent", []) == []


def test_a_gguf_file_stands_where_it_is(tmp_path: Path) -> None:
    """It is named by its path, from the Modelfile's folder."""
    gguf_adapter(tmp_path / "adapters" / "babs" / "atlas")
    folder = tmp_path / "modelfiles"
    staged = stage(folder, first(tmp_path / "adapters"))
    assert staged == tmp_path / "adapters" / "babs" / "atlas" / "lora.gguf"
    assert adapter_line_path(folder, staged) == "../adapters/babs/atlas/lora.gguf"
    assert not folder.exists()


@pytest.mark.parametrize("name", ['my "best".gguf', "two\nlines.gguf", "no\u00a0break.gguf"])
def test_a_path_that_no_modelfile_can_hold_is_laid_out(tmp_path: Path, name: str) -> None:
    """Its quotes would end a value, and what cannot be printed is dropped from one."""
    gguf_adapter(tmp_path / "adapters" / "babs" / "atlas", name=name)
    folder = tmp_path / "modelfiles"
    for _ in range(2):
        staged = stage(folder, first(tmp_path / "adapters"))
        assert staged.name == "adapter.gguf"
        assert adapter_line_path(folder, staged).startswith("./adapters/batos-babs-atlas-")


def test_a_place_that_cannot_be_written_is_told(adapters: Path, tmp_path: Path) -> None:
    """With the adapter, the place and what to do."""
    (tmp_path / "modelfiles").write_text("a file")
    with pytest.raises(UsageError, match="ROBIN/Warm cannot be copied to") as told:
        stage(tmp_path / "modelfiles", first(adapters))
    assert "room on its disk" in told.value.remedy
