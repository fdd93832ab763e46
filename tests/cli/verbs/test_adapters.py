"""The verbs about adapters: what a person who trained one goes through."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.cli.processes import User, emulator
from tests.genesis.loras import gguf_adapter, halves, peft_adapter
from tests.model_files.building import lora

QUESTION = ("ask", "--json", "--effort", "reflex", "--persona", "robin", "Why does it hurt?")


@pytest.fixture
def folder(user: User) -> Path:
    """The adapters folder of a user whose genesis is done."""
    return user.home / "adapters"


def warm(folder: Path, name: str = "warm", alpha: int = 8) -> Path:
    """An adapter of ROBIN's that fits the base of the shipped codex."""
    return peft_adapter(folder / "robin" / name, {"lora_alpha": alpha}, halves(ins=4096, outs=4096))


def test_nothing_is_there(user: User) -> None:
    """Without adapters each verb says so and where one would go, and none is wrong."""
    listed, checked = user.run("adapters", "list"), user.run("adapters", "check", "--json")
    assert (listed.code, len(listed.out.splitlines())) == (0, 1)
    assert listed.out.startswith("There are no adapters")
    assert str(user.home / "adapters" / "robin") in listed.out
    assert checked.document["data"] == {"ok": True, "adapters": [], "faults": [], "unchecked": []}


def test_from_the_folder_to_the_mission(user: User, folder: Path) -> None:
    """It is listed, checked, taken at the next mission without another word, and can be laid aside."""
    warm(folder)
    (row,) = user.run("adapters", "list", "--json").document["data"]["adapters"]
    assert (row["persona"], row["name"], row["kind"], row["rank"]) == ("ROBIN", "warm", "peft", 4)
    assert (row["state"], row["model"]) == ("in use once it is made", None)
    assert user.run("adapters", "check").code == 0

    mission = user.run(*QUESTION).document["data"]
    (model,) = mission["provenance"]["models"]
    assert model.startswith("batos-robin-warm:")
    (row,) = user.run("adapters", "list", "--json").document["data"]["adapters"]
    assert (row["state"], row["model"]) == ("in use", model)

    used = user.run("adapters", "use", "robin", "none")
    assert (used.code, used.out) == (0, "ROBIN thinks with its bare base from its next mission on.\n")
    (model,) = user.run(*QUESTION).document["data"]["provenance"]["models"]
    assert model.startswith("batos-robin:")
    (row,) = user.run("adapters", "list", "--json").document["data"]["adapters"]
    assert row["state"] == "ready"


def test_a_further_one_waits_until_it_is_chosen(user: User, folder: Path) -> None:
    """It is made into a model, and used when somebody says so; the price of alternating is told."""
    warm(folder)
    assert user.run("genesis", "--json").code == 0
    warm(folder, "koan", alpha=16)
    assert user.run("genesis", "--json").code == 0
    rows = user.run("adapters", "list", "--json").document["data"]["adapters"]
    assert {row["name"]: row["state"] for row in rows} == {"koan": "ready", "warm": "in use"}
    told = user.run("adapters", "use", "ROBIN", "Koan", "--json").document["data"]
    assert (told["persona"], told["adapter"], told["changed"]) == ("ROBIN", "koan", True)
    assert "loads it again" in told["notes"][-1]
    assert user.run("adapters", "use", "ROBIN", "koan", "--json").document["data"]["changed"] is False
    (model,) = user.run(*QUESTION).document["data"]["provenance"]["models"]
    assert model.startswith("batos-robin-koan:")


def test_other_content_acts_at_the_next_mission(user: User, folder: Path) -> None:
    """The same name with other weights is another model, made when a question comes."""
    warm(folder)
    (before,) = user.run(*QUESTION).document["data"]["provenance"]["models"]
    warm(folder, alpha=32)
    (after,) = user.run(*QUESTION).document["data"]["provenance"]["models"]
    assert before.partition(":")[0] == after.partition(":")[0]
    assert before != after


def test_what_is_wrong_is_told_with_what_to_do(user: User, folder: Path) -> None:
    """Exit 1, every fault with place and remedy; what does not fit the base too."""
    warm(folder, "float")
    config = json.loads((folder / "robin" / "float" / "adapter_config.json").read_text())
    (folder / "robin" / "float" / "adapter_config.json").write_text(json.dumps({**config, "lora_alpha": 16.0}))
    gguf_adapter(folder / "babs" / "narrow")
    gguf_adapter(folder / "brick" / "qwen", lora(architecture="qwen2"))
    (folder / "robyn").mkdir()
    checked = user.run("adapters", "check")
    assert checked.code == 1
    for said in (
        "ROBIN/float (adapter_config.json: lora_alpha): the daemon reads only whole numbers",
        "Write 16.",
        "BABS/narrow (blk.0.attn_q.weight.lora_a): it is for 64 in and 64 out",
        "4096 in and 4096 out",
        "for the architecture qwen2",
        "Rename it to robin.",
    ):
        assert said in checked.out
    assert "/home" not in checked.err
    faults = user.run("adapters", "check", "babs", "--json").document["data"]["faults"]
    assert [fault["name"] for fault in faults] == ["narrow"]
    assert user.run("adapters", "check", "robin/float").code == 1
    assert user.run("adapters", "use", "babs", "narrow", "--json").document["error"]["code"] == "adapter"
    assert user.run("adapters", "use", "robin", "float").code == 2


def test_one_that_does_not_fit_is_left_out(user: User, folder: Path) -> None:
    """The persona thinks on without it, genesis tells and exits 1, and nothing was made of it."""
    gguf_adapter(folder / "robin" / "narrow")
    asked = user.run(*QUESTION)
    assert asked.code == 0, asked.err
    (model,) = asked.document["data"]["provenance"]["models"]
    assert model.startswith("batos-robin:")
    made = user.run("genesis", "--json")
    assert made.code == 1
    wrong = [finding for finding in made.document["data"]["audit"] if not finding["ok"]]
    assert [finding["id"] for finding in wrong] == ["adapters.files"]
    assert "64 in and 64 out" in wrong[0]["what"]


def test_one_that_was_given_and_broke_stops_its_missions(user: User, folder: Path) -> None:
    """Without it the persona would be another: that is refused, with the way out."""
    place = warm(folder)
    assert user.run("genesis", "--json").code == 0
    (place / "adapter_config.json").write_text("{")
    asked = user.run(*QUESTION)
    assert asked.code == 2
    assert asked.document["error"]["code"] == "adapter"
    assert "adapter_config.json:1" in asked.document["error"]["message"]
    assert user.run("adapters", "use", "robin", "none").code == 0
    assert user.run(*QUESTION).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "robyn"), "Did you mean ROBIN?"),
        (("check", "robin/wram"), "Did you mean 'warm'?"),
        (("use", "robin", "wram"), "Did you mean 'warm'?"),
        (("use", "babs", "warm"), "adapters/babs/"),
        (("use", "nobody", "warm"), "ROBIN, BRICK, BABS, ALFRED"),
    ],
)
def test_who_and_what_is_not_there(user: User, folder: Path, arguments: tuple[str, ...], said: str) -> None:
    """Exit 2, with what comes near."""
    warm(folder)
    ran = user.run("adapters", *arguments, "--json")
    assert ran.code == 2
    assert ran.document["error"]["code"] == "not_found"
    assert said in ran.document["error"]["remedy"]


def test_without_ollama_it_is_said_what_was_not_checked(user: User, folder: Path) -> None:
    """Files are checked all the same, and a choice is written down."""
    warm(folder)
    alone = User(user.home, "127.0.0.1:9")
    checked = alone.run("adapters", "check", "--json")
    assert checked.code == 0
    assert "whether they fit" in checked.document["data"]["unchecked"][0]
    with emulator("--model", "all-minilm:latest") as url:
        checked = User(user.home, url).run("adapters", "check")
    assert checked.code == 0
    assert "not checked: whether they fit llama3.1" in checked.out
    assert "does not have it yet" in checked.out
    told = alone.run("adapters", "use", "robin", "warm", "--json")
    assert told.code == 0
    assert "Not checked" in told.document["data"]["notes"][0]


def test_what_is_laid_out_works_by_hand(user: User, folder: Path) -> None:
    """The Modelfile names a folder beside it that holds what today's command line looks for."""
    warm(folder)
    assert user.run("genesis", "--json").code == 0
    modelfile = (user.home / "modelfiles" / "batos-robin-warm.Modelfile").read_text()
    (named,) = [line.partition(" ")[2] for line in modelfile.splitlines() if line.startswith("ADAPTER ")]
    listed = subprocess.run(["ls", user.home / "modelfiles" / named], capture_output=True, text=True, check=True)
    assert listed.stdout.split() == ["adapter_config.json", "model.safetensors"]


def test_a_peft_adapter_is_written_as_gguf(user: User, folder: Path) -> None:
    """It is said that it should be, done, and the result is chosen and thought with; a second time changes nothing."""
    warm(folder)
    assert "batos adapters convert ROBIN/warm" in user.run("adapters", "check").out
    made = user.run("adapters", "convert", "robin/warm", "--json")
    assert made.code == 0, made.err
    assert made.document["data"]["name"] == "warm-gguf"
    assert Path(made.document["data"]["file"]) == folder / "robin" / "warm-gguf" / "adapter.gguf"
    again = user.run("adapters", "convert", "robin/warm")
    assert again.code == 2
    assert "is there already" in again.err
    assert user.run("adapters", "use", "robin", "warm-gguf").code == 0
    (model,) = user.run(*QUESTION).document["data"]["provenance"]["models"]
    assert model.startswith("batos-robin-warm-gguf:")
    assert [path.name for path in (folder / "robin" / "warm-gguf").iterdir()] == ["adapter.gguf"]
