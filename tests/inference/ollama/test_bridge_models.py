"""Models and runners: list, show, ps, pull, create, blobs, delete, load, unload, from recorded bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.inference.conftest import MakeBridge
from tests.inference.raw_server import END, HEAD, exchanges, line, recorded, reply, said, serving
from tests.waiting import HANG

from batos.inference.ollama.bridge import PullProgress
from batos.protocol.errors import (
    ModelMissing,
    OllamaUnfit,
    PullFailed,
    RequestRejected,
    StreamCut,
    UsageError,
    WireError,
)


def _first(path: str, scenario: str) -> int:
    return next(
        number
        for number, one in exchanges().items()
        if one["request"]["path"] == path and one["scenario"] == scenario and one["response"].get("status") == 200
    )


async def test_version(bridge_to: MakeBridge) -> None:
    """The daemon's version as it says it; what does not say one is no daemon."""
    async with serving(recorded(3), reply(b"<html>"), recorded(8), reply({"version": None})) as server:
        bridge = bridge_to(server.url)
        assert await bridge.version() == "0.33.0-rc2"
        for kind in (WireError, OllamaUnfit):
            with pytest.raises(kind):
                await bridge.version()


async def test_list(bridge_to: MakeBridge) -> None:
    """A recorded catalogue: names with tags, digests of 64 hex digits, sizes in bytes; and an empty one."""
    async with serving(recorded(467), recorded(5)) as server:
        bridge = bridge_to(server.url)
        rows = await bridge.list()
        assert await bridge.list() == []
    assert rows[0].name == "127.0.0.1:5055/library/tiny:v1"
    assert rows[0].size == 620190
    assert all(len(row.digest) == 64 and ":" in row.name and row.family for row in rows)


async def test_show(bridge_to: MakeBridge) -> None:
    """A recorded card: what the model can, its base's blob (the runner's key), its adapters, its trained window."""
    shows = [
        number
        for number, one in exchanges().items()
        if one["request"]["path"] == "/api/show" and one["response"].get("status") == 200
    ]
    async with serving(*(recorded(number) for number in shows)) as server:
        bridge = bridge_to(server.url)
        cards = [await bridge.show(exchanges()[number]["request"]["json"]["model"]) for number in shows]
    assert all(card.blob.startswith("<models>/blobs/sha256-") and card.capabilities for card in cards)
    assert {2048} <= {card.trained_window for card in cards}
    assert any(card.adapters for card in cards)
    async with serving(recorded(87)) as server:
        with pytest.raises(ModelMissing):
            await bridge_to(server.url).show("nope")


async def test_ps(bridge_to: MakeBridge) -> None:
    """Recorded runners: sizes, the window asked for, and an expiry three centuries ahead for a pinned one."""
    async with serving(recorded(209), recorded(213), recorded(7)) as server:
        bridge = bridge_to(server.url)
        [loaded], [pinned], nothing = await bridge.ps(), await bridge.ps(), await bridge.ps()
    assert loaded.name == "robin:latest"
    assert loaded.size == 1803549
    assert pinned.expires_at is not None
    assert pinned.expires_at.year > 2300
    assert nothing == []


async def test_pull(bridge_to: MakeBridge) -> None:
    """A recorded pull: progress up to success; the last `completed` need not reach `total`."""
    async with serving(recorded(464)) as server:
        steps = [step async for step in bridge_to(server.url).pull("127.0.0.1:5055/library/tiny:v1")]
    assert steps[0] == PullProgress("pulling manifest")
    assert steps[-1] == PullProgress("success")
    assert any(step.total == 390000 and (step.completed or 0) < 390000 for step in steps)


@pytest.mark.parametrize(
    ("number", "kind", "remedy"),
    [(459, ModelMissing, "Correct the model"), (461, PullFailed, "network"), (458, RequestRejected, "HTTPS")],
)
async def test_pull_failures(bridge_to: MakeBridge, number: int, kind: type[Exception], remedy: str) -> None:
    """Errors of a pull come as 200 and an error line: the model is unknown, or the registry is out of reach."""
    async with serving(recorded(number)) as server:
        with pytest.raises(kind) as failed:
            [step async for step in bridge_to(server.url).pull("m")]
    assert remedy in failed.value.remedy  # type: ignore[attr-defined]  # both kinds have one


async def test_a_pull_that_just_ends_is_cut(bridge_to: MakeBridge) -> None:
    """Without `success` nothing was pulled, however politely the stream ends."""
    async with serving(recorded(463)) as server:
        with pytest.raises(StreamCut):
            [step async for step in bridge_to(server.url).pull("m")]


async def test_create(bridge_to: MakeBridge) -> None:
    """Today's form of create, from a local base, with parameters and adapters by digest; empty maps are left out."""
    card = recorded(_first("/api/show", "catalogue"))
    made = HEAD + line({"status": "writing manifest"}) + line({"status": "success"}) + END
    async with serving(card, made, card, made) as server:
        bridge = bridge_to(server.url)
        digest = "sha256:" + "0" * 64
        steps = [
            step
            async for step in bridge.create(
                "batos-robin", from_="base", system="You are.", parameters={"num_ctx": 512}, adapters={"a.gguf": digest}
            )
        ]
        assert steps[-1].status == "success"
        async for _ in bridge.create("batos-robin", from_="base", system="", parameters={}, adapters={}):
            pass
    assert server.asked[1].json == {
        "model": "batos-robin",
        "from": "base",
        "system": "You are.",
        "parameters": {"num_ctx": 512},
        "adapters": {"a.gguf": digest},
        "stream": True,
    }
    assert server.asked[3].json == {"model": "batos-robin", "from": "base", "stream": True}


async def test_create_never_goes_to_the_network_for_its_base(bridge_to: MakeBridge) -> None:
    """A base that is not there is ModelMissing, before the daemon is asked to make anything."""
    async with serving(recorded(87)) as server:
        with pytest.raises(ModelMissing):
            await anext(bridge_to(server.url).create("x", from_="nope"))
    assert [asked.path for asked in server.asked] == ["/api/show"]


async def test_blobs(bridge_to: MakeBridge, tmp_path: Path) -> None:
    """A file is measured, asked for first, and sent once under its digest with its length."""
    file = tmp_path / "adapter.gguf"
    file.write_bytes(b"GGUF" * 700_000)
    digest = "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()
    async with serving(recorded(111), recorded(112), recorded(113)) as server:
        bridge = bridge_to(server.url)
        assert await bridge.upload_blob(file) == digest
        assert await bridge.upload_blob(file) == digest
    assert [asked.method for asked in server.asked] == ["HEAD", "POST", "HEAD"]
    assert server.asked[1].path == f"/api/blobs/{digest}"
    assert server.asked[1].body == file.read_bytes()


async def test_blob_failures(bridge_to: MakeBridge, tmp_path: Path) -> None:
    """A digest in another form is refused here; a file that changed on the way is refused by the daemon."""
    file = tmp_path / "x"
    file.write_bytes(b"x")
    async with serving(recorded(111), recorded(115), recorded(117)) as server:
        bridge = bridge_to(server.url)
        for digest in ("sha256-" + "0" * 64, "nonsense", "sha256:0"):
            with pytest.raises(UsageError):
                await bridge.has_blob(digest)
        with pytest.raises(RequestRejected, match="digest mismatch") as changed:
            await bridge.upload_blob(file)
        assert "changed" in changed.value.remedy
        with pytest.raises(RequestRejected):
            await bridge.has_blob("sha256:" + "0" * 64)
    with pytest.raises(FileNotFoundError):
        await bridge_to("127.0.0.1:1").upload_blob(tmp_path / "absent")


async def test_delete(bridge_to: MakeBridge) -> None:
    """Deleting is silent; what is not there is ModelMissing."""
    async with serving(recorded(453), recorded(101)) as server:
        bridge = bridge_to(server.url)
        await bridge.delete("base-b")
        with pytest.raises(ModelMissing):
            await bridge.delete("nope")
    assert server.asked[0].method == "DELETE"
    assert server.asked[0].json == {"model": "base-b"}


async def test_embed_in_batches(bridge_to: MakeBridge) -> None:
    """Many texts go in several requests, their vectors come back in order, their tokens are added."""

    def vectors(count: int) -> bytes:
        return reply({"model": "e", "embeddings": [[float(n)] for n in range(count)], "prompt_eval_count": count})

    async with serving(vectors(32), vectors(8)) as server:
        bridge = bridge_to(server.url)
        found = await bridge.embed("e", [f"text {n}" for n in range(40)])
        assert (await bridge.embed("e", [])).vectors == []
    assert found.vectors == [[float(n)] for n in (*range(32), *range(8))]
    assert found.prompt_tokens == 40
    assert [len(asked.json["input"]) for asked in server.asked] == [32, 8]
    assert server.asked[0].json["options"] == {"num_ctx": 2048}


async def test_recorded_vectors(bridge_to: MakeBridge) -> None:
    """Three texts, one of them empty, are three vectors of a real embedder."""
    async with serving(recorded(351)) as server:
        found = await bridge_to(server.url).embed("embedder", ["the mind", "water", ""], options={"num_ctx": 256})
    assert len(found.vectors) == 3
    assert len({len(vector) for vector in found.vectors}) == 1


async def test_load_falls_back_to_embed(bridge_to: MakeBridge) -> None:
    """An embedding model refuses a chat before it loads anything; an empty list of texts loads it."""
    refusal = reply({"error": '"embedder" does not support chat'}, 400)
    async with serving(refusal, recorded(352)) as server:
        await bridge_to(server.url, cpu_threads=2).load("embedder", {"num_ctx": 256, "num_gpu": 0}, -1)
    assert server.asked[1].path == "/api/embed"
    assert server.asked[1].json["options"] == {"num_ctx": 256, "num_gpu": 0, "num_thread": 2}
    assert server.asked[1].json["keep_alive"] == -1


def _runner(name: str) -> dict[str, object]:
    return {"name": name, "model": name, "digest": "0" * 64, "size": 1, "size_vram": 1}


def _card(blob: str) -> bytes:
    return reply({"modelfile": f"# FROM x\nFROM /blobs/{blob}\n", "model_info": {}})


async def test_unload_waits_until_the_runner_left_the_list(bridge_to: MakeBridge) -> None:
    """A sibling of the same base stands for the runner: its row is the one that must go."""
    mine, sibling, other = _card("sha256-a"), _card("sha256-a"), _card("sha256-b")
    both = reply({"models": [_runner("brick:latest"), _runner("other:latest")]})
    rest = reply({"models": [_runner("other:latest")]})
    async with serving(mine, both, sibling, other, recorded(227), both, both, rest) as server:
        assert await bridge_to(server.url).unload("robin", within=HANG)
    assert server.asked[4].json["keep_alive"] == 0
    assert len(server.asked) == 8


async def test_unload_of_a_busy_runner_is_told(bridge_to: MakeBridge) -> None:
    """A runner that stays listed was answering: the unload is lost, and the caller hears it."""
    listed = reply({"models": [_runner("robin:latest")]})
    async with serving(_card("a"), listed, _card("a"), said("", done_reason="unload"), listed) as server:
        # any pace: the runner stays listed for ever
        assert not await bridge_to(server.url).unload("robin", within=0.05)


async def test_unload_knows_a_runner_whose_model_is_gone(bridge_to: MakeBridge) -> None:
    """A runner whose model was deleted is still listed; asking what it is fails, and that is no reason to fail."""
    listed = reply({"models": [_runner("gone:latest")]})
    async with serving(_card("a"), listed, recorded(87), recorded(227), listed) as server:
        assert await bridge_to(server.url).unload("robin")
