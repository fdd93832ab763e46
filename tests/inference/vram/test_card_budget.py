"""The budget: what models take of a card, by formula and by law, and the largest window that fits."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.inference.conftest import MakeBridge
from tests.inference.raw_server import reply, serving

from batos.inference.vram import card_budget
from batos.inference.vram.card_budget import ELEMENT, GIB, STEP, Cache, Resident, Terms, cache_of, rows, usable_of
from batos.protocol.errors import RequestRejected, WireError

KIB = 1 << 10


def info(architecture: str = "llama", **values: Any) -> dict[str, Any]:
    """A model's metadata; `__` stands for a dot."""
    named = {f"{architecture}.{key.replace('__', '.')}": value for key, value in values.items()}
    return {"general.architecture": architecture, **named}


LLAMA_8B = info(
    block_count=32, attention__head_count=32, attention__head_count_kv=8, embedding_length=4096, context_length=131072
)
#: Its bytes in the list, at Q4_K_M.
LLAMA_BYTES = 4_920_753_328


@pytest.mark.parametrize(
    ("said", "kib_a_token"),
    [
        (LLAMA_8B, 128),
        # Llama 3.2 3B
        (info(block_count=28, attention__head_count=24, attention__head_count_kv=8, attention__key_length=128,
              attention__value_length=128, embedding_length=3072), 112),
        # Qwen3 4B, whose heads are wider than its width by its heads
        (info("qwen3", block_count=36, attention__head_count=32, attention__head_count_kv=8,
              attention__key_length=128, attention__value_length=128, embedding_length=2560), 144),
        # Phi 3 mini, which names no heads of its own for the cache
        (info("phi3", block_count=32, attention__head_count=32, embedding_length=3072), 384),
        # Gemma 2 9B
        (info("gemma2", block_count=42, attention__head_count=16, attention__head_count_kv=8,
              attention__key_length=256, attention__value_length=256, embedding_length=3584,
              attention__sliding_window=4096), 336),
        # a hybrid of four layers, of which one attends
        (info("lfm2", block_count=4, attention__head_count=32, attention__head_count_kv=[0, 0, 8, 0],
              embedding_length=2048), 2),
    ],
)  # fmt: skip
def test_the_cache_of_known_models(said: dict[str, Any], kib_a_token: int) -> None:
    """Kilobytes a token at f16, as their configurations give them."""
    assert known(said).size(STEP, 1, "f16") == STEP * kib_a_token * KIB


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"general.architecture": "llama"},
        info(block_count=32),
        info(block_count=32, attention__head_count=None, embedding_length=4096),
        info(block_count=32, attention__head_count=32, attention__head_count_kv=None, embedding_length=4096),
        info(block_count=32, attention__head_count=32, attention__head_count_kv=[8, "x"], embedding_length=4096),
        info(block_count=32, attention__head_count=32, attention__head_count_kv=8),
        info(block_count=0, attention__head_count=32, embedding_length=4096),
        info(block_count=True, attention__head_count=32, embedding_length=4096),
        info(block_count="32", attention__head_count=32, embedding_length=4096),
    ],
)
def test_metadata_that_does_not_tell(said: dict[str, Any]) -> None:
    """Where layers, heads or widths are missing or no numbers, the cache is unknown and nothing is guessed."""
    assert cache_of(said) is None


def test_arrays_are_held_back() -> None:
    """A null among the heads is an array that a verbose show gives; a number or nothing is not."""
    assert card_budget.lacks_arrays(info(attention__head_count_kv=None))
    assert card_budget.lacks_arrays(info(attention__head_count=None))
    assert not card_budget.lacks_arrays(LLAMA_8B)
    assert not card_budget.lacks_arrays({})


def known(said: dict[str, Any]) -> Cache:
    """The cache of metadata that tells it."""
    cache = cache_of(said)
    assert cache is not None
    return cache


def test_what_is_only_a_bound_says_so() -> None:
    """Sliding windows and layers without a cache make the count an upper bound; a plain model's is exact."""
    heads: dict[str, Any] = {"attention__head_count": 8, "embedding_length": 512, "block_count": 4}
    windowed = known(info("gemma3", attention__sliding_window=1024, **heads))
    hybrid = known(info("granitehybrid", ssm__state_size=16, **heads))
    layered = known(info("lfm2", **heads, attention__head_count_kv=[0, 2, 0, 2]))
    exact = known(LLAMA_8B)
    assert "sliding window" in windowed.bound
    assert hybrid.bound == layered.bound == "at most: some of its layers keep no cache"
    assert exact.bound == ""


def test_the_window_in_force() -> None:
    """It is rounded up to a multiple of 256, then held to what the model was trained for."""
    cache = Cache(1, trained=2000)
    asked = (1, 256, 257, 300, 1792, 1793, 4096)
    assert [cache.window(each) for each in asked] == [256, 256, 512, 512, 1792, 2000, 2000]
    assert Cache(1).window(1_000_000) == 1_000_192


def test_parallel_requests_each_have_a_window() -> None:
    """OLLAMA_NUM_PARALLEL multiplies the cache, but of models that the daemon serves one request at a time."""
    several = known(LLAMA_8B)
    alone = {key.replace("llama", "qwen35moe"): value for key, value in LLAMA_8B.items()}
    one = known({**alone, "general.architecture": "qwen35moe"})
    embedder = known({**LLAMA_8B, "llama.pooling_type": 1})
    assert several.size(4096, 4, "f16") == 4 * several.size(4096, 1, "f16") == 2 * GIB
    assert one.size(4096, 4, "f16") == embedder.size(4096, 4, "f16") == GIB // 2


def resident(num_ctx: int = 4096, **changes: Any) -> Resident:
    """The shipped codex's model."""
    given_: dict[str, Any] = {"weights": LLAMA_BYTES, "cache": known(LLAMA_8B), "blob": "b"}
    return Resident("llama3.1:8b", ("ROBIN", "BRICK"), num_ctx, **{**given_, **changes})


EIGHT = Terms(usable_of(8 * GIB))


def test_an_eight_gib_card() -> None:
    """6.5 GiB are usable; the shipped 8B model fits with 4096 tokens, and its rows are the daemon's formula."""
    assert EIGHT.usable == 6.5 * GIB
    table = rows([resident()], EIGHT)
    (runner,) = table.runners
    assert [(row.what, row.size) for row in runner.rows] == [
        ("weights", LLAMA_BYTES),
        ("KV cache of 4096 tokens, f16", GIB // 2),
        ("compute buffers", GIB // 2),
    ]
    assert table.fits
    assert table.needed_bytes == table.together == LLAMA_BYTES + GIB
    # 6.5 GiB less 0.5 GiB and the weights leave room for 11,609 tokens of 128 KiB.
    assert runner.largest == table.largest == 11_520


@pytest.mark.parametrize(("kv_type", "largest"), [("f16", 11_520), ("q8_0", 21_760), ("q4_0", 41_216)])
def test_a_smaller_cache_holds_more(kv_type: str, largest: int) -> None:
    """The daemon's cache type is in the row and in what fits."""
    table = rows([resident(65_536)], replace(EIGHT, kv_type=kv_type))
    assert table.fits is False
    assert table.largest == largest
    assert table.runners[0].rows[1].what == f"KV cache of 65536 tokens, {kv_type}"


def test_other_programs_and_an_adapter_count() -> None:
    """What other programs take stands in the sum, and an adapter's bytes in a row of its own."""
    table = rows([resident(adapter=80 << 20)], replace(EIGHT, reserve=GIB))
    assert [row.what for row in table.runners[0].rows][2] == "adapter"
    assert table.needed_bytes == LLAMA_BYTES + GIB + (80 << 20) + GIB
    assert table.fits is False
    assert table.largest == 2560


def test_what_is_not_pulled_is_unknown() -> None:
    """It is neither refused nor said to fit, unless what is known is too much already."""
    table = rows([Resident("llama3.1:8b", ("ROBIN",), 4096)], EIGHT)
    assert table.fits is None
    assert table.largest is None
    assert [(row.size, row.note) for row in table.runners[0].rows][:2] == [(None, "unknown until pulled")] * 2
    told = {line.split("  ")[0]: line for line in table.lines()}
    assert "unknown until pulled" in "\n".join(table.lines())
    # What is not known is not said to be nothing: the sums are bounds.
    assert "> 0.50 GiB" in told["needed at once"]
    assert "< 6.00 GiB" in told["left"]
    assert rows([Resident("x", ("ROBIN",), 4096), resident(65_536)], EIGHT).fits is False


def test_a_model_on_the_cpu_takes_nothing() -> None:
    """With num_gpu 0 there is a row that says so, whatever the model weighs and whether it is there or not."""
    for weights in (None, 40 * GIB):
        table = rows([resident(weights=weights, share=Fraction(0))], EIGHT)
        assert (table.fits, table.needed_bytes, table.runners[0].fits) == (True, 0, True)
        assert table.runners[0].rows[0].what == "on the CPU"


def test_models_take_turns() -> None:
    """Two that fit alone and not together are no reason to refuse: the daemon loads one after the other, as is said."""
    table = rows([resident(), resident(blob="c")], EIGHT)
    assert table.fits
    assert table.as_dict()["takes_turns"]
    assert "take turns" in table.lines()[-1]
    # With two adapters on one base only one of them is ever in memory.
    twins = rows([resident(), resident(adapter=1)], EIGHT)
    assert twins.together == twins.needed_bytes == LLAMA_BYTES + GIB + 1


def test_where_nothing_fits() -> None:
    """The largest window is then none at all, and the table stays a table."""
    for table in (rows([resident(weights=7 * GIB)], EIGHT), rows([resident()], Terms(usable=0)),
                  rows([resident()], replace(EIGHT, reserve=7 * GIB))):  # fmt: skip
        assert table.fits is False
        assert table.largest == 0
        assert json.loads(json.dumps(table.as_dict()))["left"] < 0
        assert table.lines()


CACHES = st.builds(
    Cache,
    numbers=st.integers(1, 1 << 19),
    trained=st.none() | st.integers(1, 1 << 18),
    serves_one=st.booleans(),
    layers=st.integers(1, 100),
)
RESIDENTS = st.builds(
    Resident,
    model=st.just("m"),
    uses=st.just(("ROBIN",)),
    num_ctx=st.integers(1, 1 << 18),
    weights=st.integers(0, 64 * GIB),
    cache=CACHES,
    blob=st.sampled_from(("a", "b", "")),
    adapter=st.integers(0, GIB),
    share=st.sampled_from((Fraction(1), Fraction(1), Fraction(1, 3), Fraction(0))),
)
TERMS = st.builds(
    Terms,
    usable=st.integers(0, 96 * GIB),
    reserve=st.integers(0, 8 * GIB),
    parallel=st.integers(1, 16),
    kv_type=st.sampled_from(sorted(ELEMENT)),
)


@given(models=st.lists(RESIDENTS, max_size=4), terms=TERMS)
def test_sums_equal_rows_and_refusal_is_being_over(models: list[Resident], terms: Terms) -> None:
    """A runner's sum is its rows', what is needed is the largest and the reserve, and only what is over is refused."""
    table = rows(models, terms)
    sums = [sum(row.size or 0 for row in runner.rows) for runner in table.runners]
    assert [runner.size for runner in table.runners] == sums
    assert table.needed_bytes == max(sums, default=0) + terms.reserve
    assert table.needed_bytes <= table.together <= sum(sums) + terms.reserve
    assert table.fits == (table.needed_bytes <= terms.usable)
    shown = table.as_dict()
    assert shown["left"] == terms.usable - table.needed_bytes
    assert [sum(row["bytes"] or 0 for row in each["rows"]) for each in shown["runners"]] == sums


@given(model=RESIDENTS, terms=TERMS, more=st.integers(0, 1 << 17))
def test_more_never_needs_less(model: Resident, terms: Terms, more: int) -> None:
    """A longer window, more requests at once, a bigger adapter or a reserve never make the need smaller."""
    least = rows([model], terms).needed_bytes
    assert rows([replace(model, num_ctx=model.num_ctx + more)], terms).needed_bytes >= least
    assert rows([replace(model, adapter=model.adapter + more)], terms).needed_bytes >= least
    assert rows([model], replace(terms, parallel=terms.parallel + 1)).needed_bytes >= least
    assert rows([model], replace(terms, reserve=terms.reserve + more)).needed_bytes == least + more
    assert rows([model], replace(terms, kv_type="f16")).needed_bytes >= least


@given(model=RESIDENTS, terms=TERMS)
def test_the_largest_window_is_the_largest(model: Resident, terms: Terms) -> None:
    """Of a plan that is over: it is a multiple of 256 below what was asked, it fits, and 256 more do not."""
    table = rows([model], terms)
    largest = table.largest
    assume(table.fits is False and largest is not None)
    assert largest is not None
    assert largest % STEP == 0
    assert largest < model.num_ctx
    if largest:
        assert rows([replace(model, num_ctx=largest)], terms).fits
    assert rows([replace(model, num_ctx=largest + STEP)], terms).fits is False


async def test_arrays_are_asked_for(bridge_to: MakeBridge) -> None:
    """A verbose show says so to the daemon and gives its arrays; a refusal and what is no card are errors of ours."""
    shown = {"model_info": info("lfm2", attention__head_count_kv=[0, 8]), "capabilities": ["completion"], "details": {}}
    replies = (reply(shown), reply({"error": "broken"}, status=500), reply(b"{}"), reply(b"[1"))
    async with serving(*replies) as server:
        bridge = bridge_to(server.url)
        card = await bridge.show("lfm2", verbose=True)
        assert card.info["lfm2.attention.head_count_kv"] == [0, 8]
        with pytest.raises(RequestRejected):
            await bridge.show("lfm2", verbose=True)
        for _ in range(2):
            with pytest.raises(WireError):
                await bridge.show("lfm2", verbose=True)
    assert server.asked[0].json == {"model": "lfm2", "verbose": True}


def test_a_model_of_more_layers_than_any_has_is_not_believed() -> None:
    """Its cache is unknown; it is not counted layer by layer until memory is full."""
    said = {
        "general.architecture": "llama",
        "llama.block_count": 2**53,
        "llama.attention.head_count": 2**53,
        "llama.attention.head_count_kv": 2**53,
        "llama.embedding_length": 2**53,
    }
    assert cache_of(said) is None
    assert cache_of({**said, "llama.block_count": 32}) is not None
