"""Model names: their parts, their suffixes, their spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ollama_emulator.clients import CHAT_MODEL, Client

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.library.model_tags import parse, select, stored_name


@pytest.mark.parametrize(
    ("raw", "display"),
    [
        ("x", "x:latest"),
        ("a/x:v", "a/x:v"),
        ("Library/x", "x:latest"),
        ("http://127.0.0.1:5055/library/tiny:v1", "127.0.0.1:5055/library/tiny:v1"),
        ("Registry.Ollama.AI/library/x", "x:latest"),
        ("a" * 80, "a" * 80 + ":latest"),
    ],
)
def test_a_name_is_shown_in_its_shortest_form(raw: str, display: str) -> None:
    """Without what is the default, always with its tag, never with a scheme."""
    found = parse(raw)
    assert found is not None
    assert found.display == display


@pytest.mark.parametrize(
    "raw", ["", "a b", "-x", ".x", "x:", ":x", "/x", "a//x", "a:b:c", "http://x", "a.b/x", "a" * 81]
)
def test_what_is_no_name(raw: str) -> None:
    """A part is missing, too long, or has a sign that it must not have."""
    assert parse(raw) is None


@given(st.text(max_size=40))
def test_any_text_is_a_name_or_none(raw: str) -> None:
    """And a name's display is that name again."""
    found = parse(raw)
    if found is not None:
        again = parse(found.display)
        assert again is not None
        assert again.key == found.key


@pytest.mark.parametrize(
    ("raw", "status", "text"),
    [
        ("x:cloud", 403, "ollama cloud is disabled: remote model is unavailable"),
        ("x:7b-Cloud", 403, "ollama cloud is disabled: remote model is unavailable"),
        ("x:cloud:local", 400, 'use either :local or :cloud, not both: "x:cloud:local"'),
        ("a b:cloud", 400, "invalid model name"),
        ("  ", 400, "model is required"),
    ],
)
def test_suffixes_select_where_a_model_is(raw: str, status: int, text: str) -> None:
    """The cloud is off; two suffixes contradict each other."""
    with pytest.raises(ApiError) as refused:
        select(raw)
    assert (refused.value.status, refused.value.text) == (status, text)


def test_pull_and_delete_mean_the_stub_of_a_cloud_model() -> None:
    """Whose tag keeps the suffix; `:local` is dropped everywhere."""
    assert stored_name("x:cloud").display == "x:cloud"
    assert stored_name("x:7b:cloud").display == "x:7b-cloud"
    assert stored_name(" x:local ").display == select("x:Local").display == "x:latest"


async def test_a_part_is_spelled_as_some_model_has_it(client: Client) -> None:
    """Another tag of a model takes over the spelling of its name, and a model with it keeps all of its own."""
    created = await client.lines("/api/create", model="LLAMA3.2:Mine", **{"from": CHAT_MODEL.upper()})
    assert created[-1] == {"status": "success"}
    rows = (await client.http.get("/api/tags")).json()["models"]
    assert "llama3.2:Mine" in {row["name"] for row in rows}
    await client.lines("/api/create", model="llama3.2:MINE", **{"from": CHAT_MODEL, "system": "x"})
    rows = (await client.http.get("/api/tags")).json()["models"]
    assert [row["name"] for row in rows if "mine" in row["name"].lower()] == ["llama3.2:Mine"]
    assert (await client.post("/api/show", model="Llama3.2:nope")).json() == {
        "error": "model 'llama3.2:nope' not found"
    }
