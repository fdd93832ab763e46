"""What one request may use up: texts to embed, messages to read, what a template makes of a value."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ollama_emulator.clients import CHAT_MODEL, EMBEDDER, Client

from ollama_emulator.templating.bounding import LONGEST, NotRendered, RenderBudget
from ollama_emulator.templating.templates import collate


async def test_more_texts_than_vectors_are_held_of_are_refused(client: Client) -> None:
    """A million texts would be gigabytes of numbers; the emulator goes on serving."""
    reply = await client.post("/api/embed", model=EMBEDDER, input=["a"] * 5_462)
    assert reply.status_code == 400
    assert "no more than 5461 texts" in reply.json()["error"]
    assert (await client.post("/api/embed", model=EMBEDDER, input=["a"] * 9)).json()["embeddings"]


@pytest.mark.blocks_loop(reason="a body is decoded in one step, and this one holds sixteen thousand messages")
async def test_a_talk_without_end_is_refused(client: Client) -> None:
    """What is left out of it would be looked for by writing it again and again."""
    reply = await client.post("/api/chat", model=CHAT_MODEL, messages=[{"role": "user"}] * 16_385, stream=False)
    assert reply.status_code == 400
    assert "no more than 16384 messages" in reply.json()["error"]
    assert (await client.chat())["done"]


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "system"]), st.text(max_size=3)), max_size=12))
def test_neighbours_of_one_role_are_one_message(said: list[tuple[str, str]]) -> None:
    """But those of tools; no text is lost, and what is collated once stays as it is."""
    messages = [{"role": role, "content": content} for role, content in said]
    system, whole = collate(messages)
    assert system == "\n\n".join(content for role, content in said if role == "system")
    roles = [message["role"] for message in whole]
    assert all(one != two or one == "tool" for one, two in pairwise(roles))
    assert sum(len(message["content"]) for message in whole) == sum(len(content) for _, content in said) + 2 * (
        len(said) - len(whole)
    )
    assert collate(whole)[1] == whole


def test_a_value_weighs_what_its_text_would_be() -> None:
    """However often the same part is in it."""
    part = ["a" * 1000] * 1000
    RenderBudget().weigh(part)
    with pytest.raises(NotRendered, match=str(LONGEST)):
        RenderBudget().weigh([part, part])
