"""The bridge that the settings describe."""

from __future__ import annotations

from pathlib import Path

from batos.config import Settings
from batos.inference.ollama.opening import bridge


async def test_a_bridge_is_as_the_settings_say(tmp_path: Path) -> None:
    """It speaks with the configured daemon, and every deadline of its is the setting's."""
    seconds = {name: float(number) for number, name in enumerate(("connect", "load", "first_token", "progress"), 1)}
    given = {f"{name}_seconds": value for name, value in seconds.items()}
    settings = Settings.model_validate(
        {"home": tmp_path, "ollama_host": "127.0.0.1:9", "between_tokens_seconds": 9.0, **given}
    )
    async with bridge(settings) as opened:
        assert opened.url == "http://127.0.0.1:9"
        assert {name: getattr(opened.deadlines, name) for name in seconds} == seconds
        assert opened.deadlines.between_tokens == 9.0
