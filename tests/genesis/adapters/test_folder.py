"""What an adapters folder holds, and what of it a persona uses."""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from pathlib import Path

import pytest
from tests.genesis.loras import MODELS, gguf_adapter, lora, peft_adapter

from batos.genesis.adapters.folder import discover, in_use
from batos.genesis.adapters.inventory import NONE, AdapterFault, AdapterInventory, Digests


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty adapters folder."""
    place = tmp_path / "adapters"
    place.mkdir()
    return place


def only(inventory: AdapterInventory) -> AdapterFault:
    """The one fault of an inventory that holds nothing else."""
    assert inventory.adapters == ()
    (fault,) = inventory.faults
    return fault


def test_both_kinds_are_found(folder: Path) -> None:
    """PEFT folders and GGUF files, several for a persona, in the codex's order and by name."""
    gguf_adapter(folder / "alfred" / "audit")
    peft_adapter(folder / "Robin" / "warm")
    peft_adapter(folder / "ROBIN" / "Koan")
    (folder / "README.md").write_text("about")
    (folder / ".hidden").mkdir()
    (folder / "Robin" / ".DS_Store").write_text("")
    (folder / "Robin" / "notes.txt").write_text("")
    inventory = discover(folder)
    assert inventory.faults == ()
    assert [(each.label, each.kind) for each in inventory.adapters] == [
        ("ROBIN/Koan", "peft"),
        ("ROBIN/warm", "peft"),
        ("ALFRED/audit", "gguf"),
    ]
    warm = inventory.find("ROBIN", "WARM")
    assert warm is not None
    assert list(warm.files) == list(warm.digests) == ["adapter_model.safetensors", "adapter_config.json"]
    assert list(inventory.adapters[2].files) == ["adapter.gguf"]


def test_no_folder_holds_nothing(tmp_path: Path) -> None:
    """A home without adapters is no error."""
    assert discover(tmp_path / "absent") == AdapterInventory()


def test_other_content_is_another_adapter(folder: Path) -> None:
    """The digest is over all files, so a changed configuration changes it too."""
    place = peft_adapter(folder / "robin" / "warm")
    before = discover(folder).adapters[0].digest
    assert discover(folder).adapters[0].digest == before
    peft_adapter(place, {"lora_alpha": 16})
    after = discover(folder).adapters[0]
    assert after.digest != before
    assert after.alpha == 16.0


def test_a_second_look_costs_stats(folder: Path, tmp_path: Path) -> None:
    """What was read once is not read again: a digest that was written down is believed."""
    place = gguf_adapter(folder / "babs" / "atlas")
    old = 10**18
    os.utime(place / "lora.gguf", ns=(old, old))
    known = Digests(tmp_path / "known.json")
    (first,) = discover(folder, known).adapters[0].digests.values()
    known.save()
    text = (tmp_path / "known.json").read_text(encoding="utf-8")
    (tmp_path / "known.json").write_text(text.replace(first, f"sha256:{'7' * 64}"), encoding="utf-8")
    (believed,) = discover(folder, Digests(tmp_path / "known.json")).adapters[0].digests.values()
    assert believed == f"sha256:{'7' * 64}"


def test_other_content_with_the_old_time_is_another_adapter(folder: Path) -> None:
    """Adapters of one rank have one size, and `cp -p` and archives keep times: the new one acts all the same."""
    place = gguf_adapter(folder / "babs" / "atlas")
    old = 10**18
    os.utime(place / "lora.gguf", ns=(old, old))
    first = discover(folder).adapters[0]
    data = lora(alpha=64.0)
    assert len(data) == (place / "lora.gguf").stat().st_size
    (place / "lora.gguf").write_bytes(data)
    os.utime(place / "lora.gguf", ns=(old, old))
    second = discover(folder).adapters[0]
    assert (second.alpha, second.digest == first.digest) == (64.0, False)


def test_a_folder_of_nobody_is_told_with_the_nearest(folder: Path) -> None:
    """A mistyped persona is no reason to leave its adapters out in silence."""
    (folder / "robyn").mkdir()
    (folder / "zzz").mkdir()
    faults = discover(folder).faults
    assert [fault.remedy for fault in faults] == [
        "Rename it to robin.",
        "The personas are robin, brick, babs, alfred.",
    ]


@pytest.mark.parametrize("name", ["none", "NONE", "a b", "ö", "-a", "x" * 41, "a:b"])
def test_a_name_that_no_model_can_have_is_refused(folder: Path, name: str) -> None:
    """An adapter's name is a part of its model's."""
    peft_adapter(folder / "robin" / name)
    assert "Rename it" in only(discover(folder)).remedy


def test_names_that_differ_in_capitals_are_one(folder: Path) -> None:
    """The daemon matches names without case, so the second is refused."""
    peft_adapter(folder / "robin" / "warm")
    peft_adapter(folder / "ROBIN" / "Warm")
    inventory = discover(folder)
    assert len(inventory.adapters) == 1
    assert "same name" in inventory.faults[0].what


def test_weights_that_lie_loose_are_told(folder: Path) -> None:
    """An adapter beside the folders would never be found."""
    (folder / "a.gguf").write_bytes(lora())
    (folder / "robin").mkdir()
    (folder / "robin" / "b.safetensors").write_bytes(b"")
    assert [(fault.name, "in no folder" in fault.what) for fault in discover(folder).faults] == [
        ("a", True),
        ("b", True),
    ]


def test_a_pickle_is_never_opened(folder: Path) -> None:
    """Weights as .bin are refused by their name, with how to save them otherwise."""
    place = peft_adapter(folder / "robin" / "warm")
    (place / "adapter_model.safetensors").unlink()
    os.mkfifo(place / "adapter_model.bin")  # opening it would wait for ever
    fault = only(discover(folder))
    assert "pickle" in fault.what
    assert "safe_serialization=True" in fault.remedy


def test_what_lacks_a_file_is_told(folder: Path) -> None:
    """An empty folder, one without its configuration, one with several weights."""
    (folder / "robin" / "empty").mkdir(parents=True)
    (peft_adapter(folder / "robin" / "half") / "adapter_config.json").unlink()
    (folder / "robin" / "many").mkdir()
    for name in ("a.safetensors", "b.safetensors"):
        (folder / "robin" / "many" / name).write_bytes(b"")
    gguf_adapter(gguf_adapter(folder / "robin" / "two"), name="other.gguf")
    gguf_adapter(peft_adapter(folder / "robin" / "both"))
    found = {fault.name: fault.what for fault in discover(folder).faults}
    assert found["empty"] == "it holds no adapter"
    assert found["half"] == "it lacks adapter_config.json"
    assert found["many"] == "it holds several safetensors files"
    assert "more than one adapter: lora.gguf, other.gguf" in found["two"]
    assert "more than one adapter" in found["both"]


def test_weights_under_the_name_that_the_command_line_sees_are_taken(folder: Path) -> None:
    """A folder that somebody has laid out for `ollama create` already is an adapter too."""
    place = peft_adapter(folder / "robin" / "warm")
    (place / "adapter_model.safetensors").rename(place / "model.safetensors")
    (adapter,) = discover(folder).adapters
    assert adapter.files["adapter_model.safetensors"].name == "model.safetensors"


def test_what_a_training_leaves_beside_the_adapter_is_passed_over(folder: Path) -> None:
    """Tokenizer, optimiser and checkpoints are no part of it."""
    place = peft_adapter(folder / "robin" / "warm")
    for name in ("README.md", "tokenizer.json", "training_args.bin", "optimizer.pt"):
        (place / name).write_bytes(b"")
    (place / "checkpoint-100").mkdir()
    assert len(discover(folder).adapters) == 1


def test_a_folder_may_be_a_link(folder: Path, tmp_path: Path) -> None:
    """A person may keep weights on another disk."""
    (folder / "robin").mkdir()
    (folder / "robin" / "warm").symlink_to(peft_adapter(tmp_path / "elsewhere"))
    assert [each.label for each in discover(folder).adapters] == ["ROBIN/warm"]


def test_a_file_may_not_lead_out_of_its_folder(folder: Path, tmp_path: Path) -> None:
    """What is unpacked from an archive could name any file of its owner's; one beside it is harmless."""
    place = gguf_adapter(folder / "robin" / "warm", name="real.bin")
    (place / "lora.gguf").symlink_to("real.bin")
    assert len(discover(folder).adapters) == 1
    (place / "lora.gguf").unlink()
    (gguf_adapter(tmp_path / "elsewhere") / "lora.gguf").rename(tmp_path / "secret")
    (place / "lora.gguf").symlink_to(tmp_path / "secret")
    fault = only(discover(folder))
    assert "leads out of its folder" in fault.what
    assert "cp -L" in fault.remedy


def test_what_is_no_file_is_never_waited_for(folder: Path) -> None:
    """A pipe in the place of weights is told at once."""
    (folder / "robin" / "warm").mkdir(parents=True)
    os.mkfifo(folder / "robin" / "warm" / "lora.gguf")
    assert only(discover(folder)).what == "it is no file"


def test_links_that_lead_nowhere_are_told(folder: Path) -> None:
    """A link whose target is gone is a fault of its adapter, and of no other."""
    gguf_adapter(folder / "robin" / "good")
    (folder / "robin" / "warm").mkdir()
    (folder / "robin" / "warm" / "lora.gguf").symlink_to("gone")
    inventory = discover(folder)
    assert [each.name for each in inventory.adapters] == ["good"]
    assert inventory.faults[0].what.startswith("it cannot be read")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_told(folder: Path) -> None:
    """A file without permission names itself."""
    place = gguf_adapter(folder / "robin" / "warm")
    (place / "lora.gguf").chmod(0)
    assert "cannot be read" in only(discover(folder)).what


def test_a_model_is_no_adapter(folder: Path) -> None:
    """The base of the recordings, given as an adapter, is refused."""
    gguf_adapter(folder / "robin" / "warm", (MODELS / "tiny-a.gguf").read_bytes())
    assert "not an adapter but a model" in only(discover(folder)).what


def test_the_first_is_used_and_a_further_one_only_when_chosen(folder: Path) -> None:
    """Nobody chose: the first by name. A name: that one. `none`, or a name that is gone: the base."""
    for name in ("b", "a", "c"):
        gguf_adapter(folder / "robin" / name)
    inventory = discover(folder)
    used = {choice: in_use(inventory, {"ROBIN": choice}).get("ROBIN") for choice in (None, "b", "C", NONE, "gone")}
    assert {choice: None if each is None else each.name for choice, each in used.items()} == {
        None: "a",
        "b": "b",
        "C": "c",
        NONE: None,
        "gone": None,
    }
    assert in_use(inventory, {}).keys() == {"ROBIN"}


def test_header_and_digest_are_of_one_content(folder: Path, tmp_path: Path) -> None:
    """However often a file is replaced while it is looked at, nothing is judged by one content and sent as another."""
    place = gguf_adapter(folder / "babs" / "atlas")
    contents = {alpha: lora(alpha=alpha) for alpha in (8.0, 16.0)}
    wanted = {alpha: f"sha256:{hashlib.sha256(data).hexdigest()}" for alpha, data in contents.items()}
    done = threading.Event()

    def write() -> None:
        for number in itertools.count():
            if done.is_set():
                return
            (tmp_path / "next").write_bytes(contents[(8.0, 16.0)[number % 2]])
            (tmp_path / "next").replace(place / "lora.gguf")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        looks = [discover(folder, Digests(tmp_path / "known.json")) for _ in range(200)]
    finally:
        done.set()
        writer.join()
    seen = {(each.alpha, each.digests["adapter.gguf"]) for inventory in looks for each in inventory.adapters}
    assert seen <= set(wanted.items())
    assert {fault.what for inventory in looks for fault in inventory.faults} <= {"it is still being written"}
