"""The daemon's environment, read as the daemon reads it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ollama_emulator.emulator_errors import OptionError
from ollama_emulator.options import FOR_EVER, DaemonSettings, Options

SECOND = 10**9
FIVE_MINUTES = 300 * SECOND


def _settings(**environ: str) -> DaemonSettings:
    return DaemonSettings.read(Options(environ={f"OLLAMA_{name}": value for name, value in environ.items()}))


@pytest.mark.parametrize(
    ("given", "name"),
    [({"endless": True}, "endless"), ({"tok_s": 5.0}, "tok_s"), ({"authors": ("hostile",)}, "author")],
)
def test_options_of_invented_answers_are_refused_beside_a_real_model(given: dict[str, Any], name: str) -> None:
    """A real model has its own words and speed: each such option is named, with what to leave out."""
    with pytest.raises(OptionError) as caught:
        DaemonSettings.read(Options(gguf="smollm2", **given))
    assert caught.value.field == name
    assert f"Leave out --{name.replace('_', '-')}, or --gguf." == caught.value.remedy


@pytest.mark.parametrize(("text", "count"), [("7", 7), (" '7' ", 7), ('"7"', 7), ("", 512), ("0", 0)])
def test_counts(text: str, count: int) -> None:
    """Blanks and quotes around a number are no part of it."""
    found = _settings(MAX_QUEUE=text)
    assert (found.max_queue, found.warnings) == (count, ())


@pytest.mark.parametrize("text", ["-1", "+3", "1.5", "many", "0x10", "1_000", str(2**64)])
def test_what_is_no_count_is_told_and_left_at_its_default(text: str) -> None:
    """As the daemon does, it goes on with the default; the warning names the variable and the value."""
    found = _settings(MAX_QUEUE=text)
    assert found.max_queue == 512
    assert "OLLAMA_MAX_QUEUE" in found.warnings[0]
    assert text in found.warnings[0]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("", FIVE_MINUTES),
        ("2s", 2 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("300", 300 * SECOND),
        ("0", 0),
        ("-1", FOR_EVER),
        ("-1s", FOR_EVER),
        ("'10m'", 600 * SECOND),
        ("soon", FIVE_MINUTES),
        ("1.5", FIVE_MINUTES),
    ],
)
def test_keep_alive_is_a_duration_or_seconds(text: str, ns: int) -> None:
    """Negative is for ever, zero unloads at once, what is neither is five minutes without a word."""
    found = _settings(KEEP_ALIVE=text)
    assert (found.keep_alive_ns, found.warnings) == (ns, ())


@pytest.mark.parametrize(("text", "ns"), [("", FIVE_MINUTES), ("90s", 90 * SECOND), ("0", FOR_EVER), ("-1", FOR_EVER)])
def test_a_load_timeout_of_zero_is_for_ever(text: str, ns: int) -> None:
    """Unlike a keep-alive of zero."""
    assert _settings(LOAD_TIMEOUT=text).load_timeout_ns == ns


def test_parallel_is_at_least_one_and_the_option_goes_first() -> None:
    """OLLAMA_NUM_PARALLEL=0 is one; --parallel is refused below one."""
    assert _settings(NUM_PARALLEL="0").parallel == 1
    assert DaemonSettings.read(Options(parallel=3, environ={"OLLAMA_NUM_PARALLEL": "5"})).parallel == 3
    with pytest.raises(OptionError) as refused:
        DaemonSettings.read(Options(parallel=0))
    assert refused.value.field == "parallel"


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["vram", "load_s", "tok_s", "latency_ms", "pull_s"])
def test_sizes_and_times_are_numbers_from_zero(name: str, value: Any) -> None:
    """What is none is refused with its name."""
    with pytest.raises(OptionError) as refused:
        DaemonSettings.read(replace(Options(), **{name: value}))
    assert (refused.value.field, refused.value.remedy) == (name, "The option --help lists what can be given.")


def test_the_type_of_the_cache_is_not_looked_at() -> None:
    """The daemon hands it to the runner, which knows it or does not."""
    assert _settings(KV_CACHE_TYPE=" q8_0 ").cache_type == "q8_0"
