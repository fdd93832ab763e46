"""What the emulator keeps of what clients sent: short texts, and bodies as far as there is room."""

from __future__ import annotations

from tests.ollama_emulator.clients import CHAT_MODEL, Client

from ollama_emulator.remembering import short


def test_long_texts_are_not_kept() -> None:
    """They are made anew each time; short ones are made once."""
    made: list[str] = []

    @short(8, 3)
    def double(text: str) -> str:
        made.append(text)
        return text + text

    assert [double(text) for text in ("abc", "abc", "abcd", "abcd")] == ["abcabc", "abcabc", "abcdabcd", "abcdabcd"]
    assert made == ["abc", "abcd", "abcd"]


async def test_the_log_keeps_bodies_as_far_as_there_is_room(client: Client) -> None:
    """Of what is too large the short fields stay, and what came after it is whole."""
    client.emulator.daemon.held_most = 4096
    for prompt in ("x" * 5000, "short"):
        await client.post("/api/generate", model=CHAT_MODEL, prompt=prompt, stream=False, raw=True)
    long, brief = (entry["body"] for entry in client.emulator.requests if entry["path"] == "/api/generate")
    assert long == {"model": CHAT_MODEL, "stream": False}
    assert brief["prompt"] == "short"
