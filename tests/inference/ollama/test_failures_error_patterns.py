"""The table of what the daemon says: each saying counts, and texts that no recording holds have their place too."""

from __future__ import annotations

import pytest

from batos.inference.ollama.failures import SAYINGS, ErrorPattern, field_in, refusal, saying_in
from batos.protocol.errors import (
    AnswerUnreadable,
    BatosError,
    ContextOverflow,
    ModelLoadFailed,
    ModelMissing,
    OllamaBusy,
    OllamaUnfit,
    PullFailed,
    RequestRejected,
    RunnerDied,
)


@pytest.mark.parametrize("saying", SAYINGS, ids=lambda saying: saying.sign)
def test_no_saying_hides_behind_another(saying: ErrorPattern) -> None:
    """What a saying waits for leads to it, or to one that says the same; signs are in lower case."""
    found = saying_in(saying.sign.upper())
    assert found is not None
    assert (found.kind, found.remedy, found.field) == (saying.kind, saying.remedy, saying.field)
    assert saying.sign == saying.sign.lower()


@pytest.mark.parametrize("saying", SAYINGS, ids=lambda saying: saying.sign)
def test_every_saying_ends_in_advice(saying: ErrorPattern) -> None:
    """Whatever is said, the error is of the named kind, keeps the words, and says what to do."""
    error = refusal(f"before {saying.sign} after", 400, "m")
    assert type(error) is saying.kind
    assert error.remedy.endswith((".", "lists the capabilities."))
    assert saying.sign in error.message or isinstance(error, ModelMissing)


#: What the daemon's source says beside the recordings.
BESIDE: list[tuple[str, int, type[BatosError]]] = [
    ("llama-server process has terminated: exit status 1: CUDA error: out of memory", 500, ModelLoadFailed),
    ("llama-server reported out-of-memory during startup: cudaMalloc failed", 500, ModelLoadFailed),
    ("timed out waiting for llama-server to start - ", 500, ModelLoadFailed),
    ("timed out waiting for llama-server to start: context canceled", 500, ModelLoadFailed),
    ("model requires more system memory (9.0 GiB) than is available (2.0 GiB)", 500, ModelLoadFailed),
    ("an error was encountered while running the model: CUDA error: out of memory", 500, RunnerDied),
    ("model runner has unexpectedly stopped, this may be due to resource limitations", 500, RunnerDied),
    ("llama-server process no longer running: exit status 1 ", 500, RunnerDied),
    ("unexpected server status: llm server error", 500, RunnerDied),
    ("error reading llama-server chat response: connection reset by peer", 500, RunnerDied),
    ("error unmarshalling llama-server response: invalid character 'x'", 500, RunnerDied),
    ("no slots available after 10 retries", 500, OllamaBusy),
    ("model produced output that does not match the expected peg-native format", -1, AnswerUnreadable),
    ("the prompt is longer than the context length currently available to the model; x", 400, ContextOverflow),
    ("error starting llama-server: llama-server binary not found (checked: /x)", 500, OllamaUnfit),
    ("this model requires MLX support, but the MLX runtime is not available", 500, OllamaUnfit),
    ("pull model manifest: unauthorized", 500, RequestRejected),
    ("max retries exceeded: unexpected EOF", -1, PullFailed),
    ("digest mismatch, file must be downloaded again: want sha256:a, got sha256:b", -1, PullFailed),
    ("write /models/blobs/sha256-a-partial: no space left on device", -1, RequestRejected),
]


@pytest.mark.parametrize(("text", "status", "kind"), BESIDE)
def test_what_no_recording_holds(text: str, status: int, kind: type[BatosError]) -> None:
    """Texts of the daemon that were not recorded are the error that they mean."""
    error = refusal(text, status, "m")
    assert type(error) is kind
    assert error.remedy


def test_a_gateway_is_not_the_daemon() -> None:
    """A page of 502 or 504 is not read for sayings: whoever wrote it is not Ollama."""
    assert refusal("<html>out of memory: dial tcp</html>", 502).code == "ollama_unreachable"
    assert refusal("server busy", 504).code == "ollama_unreachable"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('option "stop" must be of an array of strings', "options.stop"),
        ("json: cannot unmarshal string into Go struct field ChatRequest.messages of type []api.Message", "messages"),
        ("invalid model name", None),
    ],
)
def test_fields_that_the_text_names(text: str, field: str | None) -> None:
    """Go's own words name the field of the request."""
    assert field_in(text) == field
