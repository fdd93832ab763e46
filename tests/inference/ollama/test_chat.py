"""What of a request makes the daemon load a model again."""

from __future__ import annotations

from batos.inference.ollama.chat import default_cpu_threads, runner_key


def test_what_makes_the_daemon_reload() -> None:
    """Model, window and threads are of the key; temperature is not."""
    one = runner_key("m", {"num_ctx": 512, "temperature": 0})
    assert one == runner_key("m", {"num_ctx": 512, "temperature": 1, "seed": 3})
    assert one != runner_key("m", {"num_ctx": 1024})
    assert one != runner_key("n", {"num_ctx": 512})
    assert default_cpu_threads() >= 1
