"""A model's name follows from what it is made of, and its Modelfile says the same by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.genesis import persona_models
from batos.genesis.adapters.inventory import Adapter
from batos.genesis.codex.codex import Codex
from batos.genesis.persona_models import Recipe
from batos.inference import model_names
from batos.protocol.errors import CodexError, UsageError

RECIPE = Recipe("ROBIN", "llama3.1:8b", "ab" * 32, "You are ROBIN.", {"num_ctx": 4096, "temperature": 0.8})

WARM = Adapter("ROBIN", "Warm", "gguf", {"adapter.gguf": Path("warm.gguf")}, {"adapter.gguf": f"sha256:{'a' * 64}"},
               8, 16.0, "llama", None)  # fmt: skip


def texts(*recipes: Recipe) -> dict[str, str]:
    """The Modelfiles of recipes, as they are written."""
    return {persona_models.file_name(made): persona_models.text(made) for made in recipes}


def test_text() -> None:
    """A Modelfile has its base, its parameters sorted, and the persona's text."""
    made = replace(RECIPE, parameters={"temperature": 0.8, "num_ctx": 4096, "use_mmap": True, "stop": ["a", 'say "b"']})
    assert persona_models.text(made).splitlines()[3:] == [
        "FROM llama3.1:8b",
        "PARAMETER num_ctx 4096",
        'PARAMETER stop "a"',
        'PARAMETER stop """say "b""""',
        "PARAMETER temperature 0.8",
        "PARAMETER use_mmap true",
        'SYSTEM "You are ROBIN."',
    ]


def read_value(text: str, instruction: str) -> str:
    """A value as the daemon's own command line reads it: quotes are closed only at the end of a line."""
    rest = text.partition(f"\n{instruction} ")[2]
    for quote in ('"""', '"'):
        if rest.startswith(quote):
            ends = [at for at, sign in enumerate(rest) if sign == "\n"]
            end = next(at for at in ends if at >= 2 * len(quote) and rest[:at].endswith(quote))
            return rest[len(quote) : end - len(quote)]
    return rest.partition("\n")[0]


@given(st.text(alphabet='ab"\n $#\\é', min_size=1, max_size=40).map(str.strip).filter(bool))
def test_system_round_trip(system: str) -> None:
    """Any text without three quotes in a row comes back as it was, inner and closing quotes included."""
    made = replace(RECIPE, system=system)
    if '"""' in system:
        with pytest.raises(CodexError, match="three double quotes"):
            persona_models.text(made)
    else:
        assert read_value(persona_models.text(made), "SYSTEM") == system


@given(
    st.sampled_from(
        [
            {"base_digest": "cd" * 32},
            {"system": "You are ROBIN!"},
            {"parameters": {"num_ctx": 4096, "temperature": 0.9}},
            {"adapter": WARM},
        ]
    )
)
def test_name_follows(change: dict[str, object]) -> None:
    """Any change of what a model is made of changes its name; the order of parameters and the base's name do not."""
    other = replace(RECIPE, **change)  # type: ignore[arg-type]  # the values are of the fields' types
    assert other.name != RECIPE.name
    same = replace(RECIPE, base="llama3.1:8B", parameters={"temperature": 0.8, "num_ctx": 4096})
    assert same.name == RECIPE.name
    assert model_names.fault(RECIPE.name) is None


def test_recipe_of_a_persona(codex: Codex) -> None:
    """A persona's recipe has its core as system text, its options as parameters, and nothing of ours."""
    made = persona_models.recipe(codex, "BABS", "small", "ab" * 32)
    assert made.base == "llama3.2:3b-instruct-q4_K_M"
    assert made.system.startswith("You are BABS")
    assert made.parameters == {"num_ctx": 4096, "num_predict": 1024, "temperature": 0.2, "top_p": 0.9}


def test_recipe_with_an_adapter() -> None:
    """An adapter is part of the name and the digest, and an ADAPTER line of the Modelfile."""
    made = replace(RECIPE, adapter=WARM)
    assert made.name.startswith("batos-robin-warm:")
    assert made.label == "ROBIN with the adapter Warm"
    assert persona_models.file_name(made) == "batos-robin-warm.Modelfile"
    assert persona_models.text(made, "./adapters/warm").splitlines()[3:5] == [
        "FROM llama3.1:8b",
        "ADAPTER ./adapters/warm",
    ]


@pytest.mark.parametrize("name", [RECIPE.name, replace(RECIPE, adapter=WARM).name, "BATOS-ROBIN:0123456789ab"])
def test_names_of_our_form(name: str) -> None:
    """What genesis names is known by its form, without regard to case."""
    assert persona_models.is_of_a_persona(name)


@pytest.mark.parametrize("name", ["batos-robin:handmade", "batos-joker:0123456789ab", "robin:0123456789ab"])
def test_names_of_another_form(name: str) -> None:
    """What people name is not taken for ours."""
    assert not persona_models.is_of_a_persona(name)


def test_write_only_what_differs(tmp_path: Path) -> None:
    """A Modelfile is written when its content differs, whole, under a name that does not change."""
    assert persona_models.write(tmp_path, texts(RECIPE)) == [tmp_path / "batos-robin.Modelfile"]
    assert persona_models.write(tmp_path, texts(RECIPE)) == []
    assert persona_models.write(tmp_path, texts(replace(RECIPE, system="Other."))) == [
        tmp_path / "batos-robin.Modelfile"
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["batos-robin.Modelfile"]


def test_what_we_wrote_and_nobody_wants_goes(tmp_path: Path) -> None:
    """A Modelfile of an adapter that is gone is removed if it is as it was written; a person's own files stay."""
    persona_models.write(tmp_path, texts(RECIPE, replace(RECIPE, adapter=WARM), replace(RECIPE, persona="BABS")))
    edited = tmp_path / "batos-babs.Modelfile"
    edited.write_text(edited.read_text(encoding="utf-8") + "PARAMETER seed 7\n", encoding="utf-8")
    for name, content in (("batos-mine.Modelfile", b"FROM x\n"), ("batos-odd.Modelfile", b"\xff"), ("notes", b"")):
        (tmp_path / name).write_bytes(content)
    assert persona_models.write(tmp_path, texts(RECIPE)) == [tmp_path / "batos-robin-warm.Modelfile"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "batos-babs.Modelfile",
        "batos-mine.Modelfile",
        "batos-odd.Modelfile",
        "batos-robin.Modelfile",
        "notes",
    ]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """A file in the place of the folder, or a folder in that of a Modelfile, is told; strange bytes give way."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder" / "batos-robin.Modelfile").mkdir(parents=True)
    for folder in (tmp_path / "file", tmp_path / "folder"):
        with pytest.raises(UsageError, match=str(folder)) as raised:
            persona_models.write(folder, texts(RECIPE))
        assert raised.value.remedy
    (tmp_path / "batos-robin.Modelfile").write_bytes(b"\xff\xfe")
    assert persona_models.write(tmp_path, texts(RECIPE)) == [tmp_path / "batos-robin.Modelfile"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("llama3.1:8b-instruct-q4_K_M", False),
        ("all-minilm", False),
        ("registry.example.org:5000/team/model:tag", False),
        ("team/model", False),
        ("model:cloud", True),
        ("model:20b-CLOUD", True),
        ("model:local", True),
        ("model:", True),
        ("", True),
        ("a/b/c/d:e", True),
        ("te.am/model", True),
        ("mo del", True),
        ("x" * 81, True),
    ],
)
def test_model_names(name: str, wrong: bool) -> None:
    """Names are judged by the daemon's own grammar; cloud and reserved tags are never used."""
    problem = model_names.fault(name)
    assert (problem is not None) == wrong
    assert problem is None or all(problem)


def test_same_model() -> None:
    """Names are one model without regard to case and with the tag `latest` understood."""
    assert model_names.same("All-MiniLM", "all-minilm:latest")
    assert not model_names.same("all-minilm:l6", "all-minilm")
