"""`batos budget` and what refuses a plan that does not fit; a spill is a warning, an event and a line."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.processes import User, emulator

BASE = "llama3.1:8b-instruct-q4_K_M"
WITH_MODELS = ("--model", BASE, "--model", "all-minilm:latest")


def widen(home: Path, num_ctx: int) -> None:
    """Give all personas another window."""
    for path in (home / "codex").glob("[!m]*.toml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"num_ctx = \d+", f"num_ctx = {num_ctx}", text), encoding="utf-8")


def test_the_table(user: User) -> None:
    """People read rows, sums and the largest window; programs the same numbers; sums are those of the rows."""
    told = user.run("budget")
    assert told.code == 0, told.err
    assert f"{BASE} (ROBIN, BRICK, BABS, ALFRED, the coder)" in told.out
    assert "KV cache of 4096 tokens, f16" in told.out
    assert "all-minilm:latest (the embedder)" in told.out
    assert "The largest num_ctx that fits is 11520." in told.out
    assert user.run("budget", "--quiet").out == told.out
    table = user.run("budget", "--json").document["data"]
    (runner, embedder) = table["runners"]
    assert runner["bytes"] == sum(row["bytes"] for row in runner["rows"]) == table["needed"]
    assert (embedder["on_cpu"], embedder["bytes"]) == (True, 0)
    assert table["left"] == table["usable"] - table["needed"] == 6.5 * 2**30 - runner["bytes"]
    assert (table["fits"], table["largest_num_ctx"], runner["window"]) == (True, 11_520, 4096)


def test_before_anything_is_pulled(tmp_path: Path) -> None:
    """Without models, codex or image the rows are unknown until pulled, and nothing is refused."""
    with emulator() as url:
        newcomer = User(tmp_path / "home", url)
        told = newcomer.run("budget")
        table = newcomer.run("budget", "--json").document["data"]
    assert told.code == 0
    assert "unknown until pulled" in told.out
    assert table["fits"] is None
    assert not (tmp_path / "home" / "live_image.fs").exists()


@pytest.mark.parametrize(
    ("flags", "code", "largest"),
    [
        (("--vram", "12"), 0, 44_288),
        (("--vram", "12GiB", "--parallel", "2"), 0, 22_016),
        (("--usable", "5717MiB"), 0, 4096),
        (("--usable", "5716MiB"), 4, 3840),
        (("--vram", "8", "--reserve", "1GiB"), 4, 3328),
        (("--vram", "8", "--reserve", "1GiB", "--kv-type", "q8_0"), 0, 6400),
        (("--usable", "4GiB"), 4, 0),
    ],
)
def test_the_flags(user: User, flags: tuple[str, ...], code: int, largest: int) -> None:
    """Each moves what fits; what does not is exit 4 with the table and the largest window."""
    ran = user.run("budget", "--json", *flags)
    assert ran.code == code
    found = ran.document["data"] if code == 0 else ran.document["error"]
    assert found["largest_num_ctx"] == largest
    if code:
        assert found["code"] == "budget_exceeded"
        assert found["budget"]["fits"] is False
        assert found["remedy"]


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--vram", "eight", "a size such as 8, 8GiB or 6500MiB"),
        ("--usable", "-1", "a size such as"),
        ("--reserve", "1TiB", "a size such as"),
        ("--parallel", "0", "at least 1"),
        ("--parallel", "two", "a whole number"),
        ("--kv-type", "q5_0", "'f16', 'q8_0' or 'q4_0'"),
    ],
)
def test_a_flag_that_is_none(user: User, flag: str, value: str, said: str) -> None:
    """The error names the option, what it must be and what was given."""
    ran = user.run("budget", flag, value)
    assert ran.code == 2
    assert said in ran.err
    assert f"Correct {flag}." in ran.err
    assert ran.out == ""


def test_the_settings_have_a_source(user: User) -> None:
    """batos.toml and the environment set the same, a flag wins, and `config` says which it was."""
    (user.home / "batos.toml").write_text('vram = 24\nkv_type = "q8_0"\n', encoding="utf-8")
    shown = user.run("config", "--json", environ={"BATOS_RESERVE": "1GiB"}).document["data"]
    assert shown["vram"] == {"value": "24", "source": str(user.home / "batos.toml")}
    assert shown["reserve"] == {"value": "1GiB", "source": "BATOS_RESERVE"}
    table = user.run("budget", "--json", environ={"BATOS_VRAM": "16"}).document["data"]
    assert (table["usable"], table["kv_type"]) == (14.5 * 2**30, "q8_0")
    assert user.run("budget", "--json", "--vram", "10", environ={"BATOS_VRAM": "16"}).document["data"]["usable"] == (
        8.5 * 2**30
    )


def test_no_password_is_shown(user: User) -> None:
    """Neither `config` nor an error says what stands before the host of a database, or among its keywords."""
    secret = {"BATOS_IMAGE": "postgres://ada:secret@127.0.0.1:1/x", "BATOS_JOURNAL": "zeo://box?password=secret"}
    for verb in (("config",), ("config", "--json"), ("missions",), ("doctor",)):
        ran = user.run(*verb, environ=secret)
        assert "secret" not in ran.out + ran.err
    assert "postgres://ada:***@127.0.0.1:1/x" in user.run("config", environ=secret).out


def test_genesis_refuses_and_takes_what_it_named(user: User) -> None:
    """Nothing is made of a codex that does not fit; the window that the refusal names is taken, 256 more are not."""
    before = {row["name"] for row in user.run("ps", "--json").document["data"]["cold"]}
    widen(user.home, 65_536)
    planned = user.run("genesis", "--plan")
    assert planned.code == 0
    assert "would refuse" in planned.out
    refused = user.run("genesis", "--json")
    assert refused.code == 4
    error = refused.document["error"]
    assert error["code"] == "budget_exceeded"
    largest = error["largest_num_ctx"]
    assert largest % 256 == 0
    told = user.run("genesis")
    assert told.code == 4
    assert "KV cache of 65536 tokens" in told.err
    assert f"num_ctx = {largest}" in told.err
    assert user.run("ask", "-q", "--effort", "reflex", "Why?").code == 4
    assert {row["name"] for row in user.run("ps", "--json").document["data"]["cold"]} == before
    widen(user.home, largest + 256)
    assert user.run("genesis").code == 4
    widen(user.home, largest)
    assert user.run("genesis").code == 0


@pytest.fixture
def cramped(tmp_path: Path) -> Iterator[User]:
    """A user whose daemon's card has four GiB, and who has said that it has eight."""
    with emulator(*WITH_MODELS, "--vram", "4") as url:
        made = User(tmp_path / "cramped", url)
        assert made.run("genesis", "--json").code == 0
        yield made
        shutil.rmtree(made.home)


def test_a_spill_is_told(cramped: User) -> None:
    """It is a warning once on stderr, an event for programs, a line of the mission, of ps and of the doctor."""
    asked = cramped.run("ask", "--quiet", "--effort", "cycle", "How do I build a shed?")
    assert asked.code == 0
    assert asked.err.count("warning: ") == 1
    assert "does not fit the card" in asked.err
    events = cramped.run("ask", "--json", "--effort", "reflex", "Why?").documents
    told = [event for event in events if event.get("event", "").startswith("vram.")]
    assert [event["event"] for event in told] == ["vram.sample", "vram.spill"]
    assert 0 < told[1]["size_vram"] < told[1]["size"]
    (placed,) = events[-1]["data"]["provenance"]["placements"]
    assert placed["where"] == "spilled"
    assert "memory   batos-" in cramped.run("show", "last").out
    assert "SPILLED" in cramped.run("ps").out
    health = cramped.run("doctor", "--json")
    assert health.code == 1
    assert [each["id"] for each in health.document["data"]["findings"] if not each["ok"]] == ["vram.spill"]


def test_siblings_are_hot(cramped: User) -> None:
    """Whichever persona made the runner load (genesis counts with ROBIN's), all of its base are in memory."""
    assert cramped.run("ask", "--quiet", "--persona", "BRICK", "--effort", "reflex", "How?").code == 0
    shown = cramped.run("ps", "--json").document["data"]
    hot, embedder = shown["hot"]
    assert hot["name"].startswith("batos-robin:")
    assert len([name for name in hot["serves"] if name.startswith("batos-")]) == 4
    assert (embedder["name"], embedder["where"], shown["cold"]) == ("all-minilm:latest", "processor", [])
    people = cramped.run("ps").out
    assert people.count("as well") == len(hot["serves"]) - 1


def test_the_embedder_is_where_it_is_wanted(user: User) -> None:
    """Routing asks for it on the processor, beside models on the card: no spill, in whatever state the others are."""
    assert user.run("genesis", "--json").code == 0
    assert user.run("ask", "--quiet", "How do I build a shed that lasts for many years?").code == 0
    hot = {row["name"]: row["where"] for row in user.run("ps", "--json").document["data"]["hot"]}
    assert hot.pop("all-minilm:latest") == "processor"
    assert set(hot.values()) == {"card"}
    assert "uses no card" not in user.run("budget").out
    assert "SPILLED" not in user.run("ps").out


def test_a_machine_without_a_card(tmp_path: Path) -> None:
    """There the model runs on the CPU, which is said and is no alarm."""
    with emulator(*WITH_MODELS, "--vram", "0") as url:
        plain = User(tmp_path / "plain", url)
        assert plain.run("genesis", "--json").code == 0
        asked = plain.run("ask", "-v", "--effort", "reflex", "Why?")
        assert "warning" not in asked.err
        assert "runs on the CPU" in asked.err
        assert "on the CPU" in plain.run("ps").out
        assert "uses no card" in plain.run("budget").out
        assert plain.run("doctor").code == 0
